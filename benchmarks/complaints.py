"""Training complaints as bug reports: each program that learns too little must be reproduced, and
the same report with the repaired program must not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from rich.table import Table

from bot.app import bootstrap
from bot.issues.judge_training import learns_too_little
from bot.kernel import files
from bot.kernel.bug import Issue, TrainingSignature, members_of
from bot.kernel.errors import RepriseError
from bot.kernel.job import IssueOptions, ReproduceIssue
from bot.kernel.ports import Progress
from bot.kernel.report import IssueReport
from bot.kernel.settings import Settings
from bot.kernel.training_types import Repair
from bot.kernel.values import Record
from bot.report.run_folder import Folder
from sandbox.port import Sandbox, SandboxError

_quiet: Callable[[Progress], None] = lambda _: None  # noqa: E731


class ComplaintRow(Record):
    """A program as it went: the verdict on the report, what its control was, and, where only a
    repair could decide, the verdict on the same report with the program that the proven patch
    leaves ("" where none was proven).
    `kept` counts the runs in the key, of the faulty and of the repaired program, that the frozen
    signature calls failures.
    """

    id: str
    verdict: str = ""
    control: str = ""
    repaired: str = ""
    kept: tuple[int, int] | None = None
    kept_of: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    error: str = ""


class ComplaintSummary(Record):
    """The rows and their counts."""

    reproduced: int
    repaired: int
    repaired_reproduced: int
    rows: tuple[ComplaintRow, ...]


@dataclass(frozen=True, slots=True)
class ComplaintBench:
    """How the reports are run."""

    settings: Settings
    options: IssueOptions
    sandbox: Sandbox
    out: Path
    cancel: Event


def run(paths: Sequence[Path], bench: ComplaintBench, jobs: int) -> Iterator[ComplaintRow]:
    """The row of each case as it ends."""
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="complaints") as pool:
        for done in as_completed([pool.submit(_row, path, bench) for path in paths]):
            yield done.result()


def summarise(rows: Sequence[ComplaintRow]) -> ComplaintSummary:
    """The counts over all rows."""
    repaired = [row.repaired for row in rows if row.repaired]
    return ComplaintSummary(
        reproduced=sum(row.verdict == "reproduced" for row in rows),
        repaired=len(repaired),
        repaired_reproduced=repaired.count("reproduced"),
        rows=tuple(sorted(rows, key=lambda row: row.id)),
    )


def table(summary: ComplaintSummary) -> Table:
    """A row for each program, and the counts below."""
    counts = f"{summary.reproduced} of {len(summary.rows)} reproduced"
    again = f"{summary.repaired_reproduced} of {summary.repaired} repaired ones reproduced"
    result = Table(title=f"{counts}; {again}", title_justify="left")
    for name in ("program", "verdict", "control", "repaired", "failures in the key", "seconds"):
        result.add_column(name)
    for row in summary.rows:
        kept = "/".join(map(str, row.kept)) if row.kept is not None else ""
        verdict = row.error or row.verdict
        result.add_row(row.id, verdict, row.control, row.repaired, kept, f"{row.seconds:.0f}")
    return result


def line(row: ComplaintRow) -> str:
    """What is printed when a case ends."""
    return f"{row.id}  {row.error or row.verdict}  repaired: {row.repaired or '-'}"


def _row(path: Path, bench: ComplaintBench) -> ComplaintRow:
    try:
        case = json.loads(path.read_text())
        key = json.loads((path.parents[1] / "keys" / path.name).read_text())
        report = _report(case, case["body"], "", bench)
        if report.verdict.kind != "reproduced":
            report = _report(case, case["body"], "repair", bench)
        body = _repaired(case["body"], report.repair)
        again = _report(case, body, "repaired", bench) if body else None
    except (OSError, ValueError, KeyError, RepriseError, SandboxError) as error:
        return ComplaintRow(id=path.stem, error=f"{type(error).__name__}: {error}"[:200])
    verdict = report.verdict
    sides = (key["faulty"], key["repaired"])
    return ComplaintRow(
        id=case["id"],
        verdict=verdict.kind,
        control=verdict.control.type if verdict.kind == "reproduced" else "",
        repaired=again.verdict.kind if again is not None else "",
        kept=_kept(report, sides),
        kept_of=(len(sides[0]), len(sides[1])),
        seconds=sum(report.seconds.values()),
    )


def _report(case: dict[str, Any], body: str, kind: str, bench: ComplaintBench) -> IssueReport:
    """The report on a body, with a repair unless `kind` is ""."""
    pins = tuple(case["requirements"])
    environment = bench.options.environment.model_copy(update={"pins": pins})
    changes = {"environment": environment, **({} if kind else {"training": None})}
    options = bench.options.model_copy(update=changes)
    job = ReproduceIssue(issue=Issue(title=case["title"], body=body), **dict(options))
    with closing(Folder(bench.out / "-".join(filter(None, (case["id"], kind))))) as folder:
        return bootstrap.reproduce(
            job, bench.settings, folder,
            listener=_quiet, cancel=bench.cancel, sandbox=bench.sandbox,
        )  # fmt: skip


def _repaired(body: str, repair: Repair | None) -> str:
    """The report with the program that a proven patch leaves; "" without one."""
    if repair is None or not repair.proven or repair.source.strip() not in body:
        return ""
    diffs = dict(files.files(repair.diff))
    patched = files.apply_diff(diffs.get(repair.entry, ""), repair.source)
    return body.replace(repair.source.strip(), patched.strip()) if patched else ""


def _kept(report: IssueReport, sides: tuple[list[float], list[float]]) -> tuple[int, int] | None:
    members = members_of(report.signature) if report.signature is not None else ()
    member = next((row for row in members if isinstance(row, TrainingSignature)), None)
    if member is None or member.bound is None:
        return None
    faulty, repaired = (sum(learns_too_little(value, member) for value in side) for side in sides)
    return faulty, repaired
