"""How much a verdict costs over the bare runs it stands on: the same script, started directly,
without the probe.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from threading import Event

from bot.kernel.report import IssueReport
from sandbox.port import Limits, Mount, RunSpec, Sandbox

WARM_S = 2.0


def bare_seconds(
    report: IssueReport, sandbox: Sandbox, *, times: int = 3, cancel: Event | None = None
) -> float | None:
    """Median seconds of the final script run directly; None when there is none, or when it only
    ends by the clock.
    """
    script, built = report.script, report.environment
    if script is None or built is None:
        return None
    spec = RunSpec(
        argv=(built.interpreter, script.entry),
        files={name: text.encode() for name, text in script.files.items()},
        env={**built.variables, "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": ""},
        mounts=tuple(Mount(Path(path)) for path in built.mounts),
        limits=Limits(wall_s=120.0),
        label="bare",
    )
    results = [sandbox.run(spec, cancel=cancel) for _ in range(times)]
    if not all(result.ended_by_itself for result in results):
        return None
    return median(result.seconds for result in results)


def was_warm(report: IssueReport) -> bool:
    """Whether the environment was at hand, so that its building does not count."""
    return report.seconds.get("environment", 0.0) < WARM_S


def overhead(report: IssueReport, bare: float) -> float | None:
    """Verdict seconds over (runs x bare script seconds), where runs are all that were made,
    searching and confirming.
    """
    if not report.attempts or bare <= 0:
        return None
    return report.seconds["total"] / (len(report.attempts) * bare)
