"""Desk → Report: what one job found, in the form that all doors show."""

from __future__ import annotations

import shlex
from importlib import metadata

from bot.models.attempt import Match, Script
from bot.models.dialogue import Usage
from bot.models.environment import Environment, EnvironmentSpec, Rung
from bot.models.report import Report
from bot.models.signature import signature_hash
from bot.models.verdict import AnyVerdict
from bot.pipeline import conclude
from bot.pipeline.asking import Asking
from bot.pipeline.desk import Desk


def report(desk: Desk, verdict: AnyVerdict, asking: Asking | None = None) -> Report:
    """The report of a job, whole or stopped half-way; `asking` is what a model was asked."""
    met = [attempt for attempt in desk.attempts if attempt.judgement.match is Match.MET]
    here = [attempt for attempt in met if desk.environment is not None and attempt.environment == desk.environment.id]
    ran = here or met or desk.attempts
    last = ran[-1] if ran else None
    if verdict.kind == "different_failure" and desk.signature is not None:
        verdict = verdict.model_copy(update={"reported": conclude.describe(desk.signature)})
    return Report(
        issue=desk.job.issue,
        bug=desk.bug,
        verdict=verdict,
        signature=desk.signature,
        signature_hash=signature_hash(desk.signature) if desk.signature is not None else "",
        spec=desk.spec,
        environment=desk.environment,
        script=desk.script,
        command=_command(desk.script, desk.environment, desk.spec) if desk.script and desk.environment else "",
        comparison=conclude.compare(desk.signature, last, desk.environment),
        attempts=tuple(desk.attempts),
        claims=tuple(desk.claims),
        notes=tuple(desk.notes),
        proof_notes=dict(desk.proof_notes),
        seconds={name: round(value, 3) for name, value in desk.seconds.items()},
        sandbox=desk.ports.sandbox.name if desk.attempts else "",
        version=metadata.version("reprise"),
        prompts=dict(asking.prompts) if asking is not None else {},
        reconstruction=desk.reconstruction,
        cost=asking.usage if asking is not None else Usage(),
        models=models(asking),
        bisection=desk.bisection,
        other_bisections=desk.other_bisections,
        clone=desk.clone,
        reduced=desk.reduced,
        control_spec=desk.control_spec,
        cut_short=dict(desk.cut_short),
        defects=dict(desk.defects),
    )


def models(asking: Asking | None) -> tuple[str, ...]:
    """Whose answers were used, each once."""
    rows = asking.exchanges if asking is not None else []
    return tuple(dict.fromkeys(row.answer.model for row in rows if row.answer is not None and row.answer.model))


def _command(script: Script, built: Environment, spec: EnvironmentSpec | None) -> str:
    """One line that runs the script anywhere with uv, on any later day: the pins, and the date for everything else."""
    asked = [package for package in built.packages if package.rung is not Rung.DEPENDENCY and package.name != "setuptools"]
    pins = [word for package in asked for word in ("--with", f"{package.name}=={package.version.split('+')[0]}")]
    minor = ".".join(built.python.split(".")[:2])
    return shlex.join(["uv", "run", "--no-project", "--python", minor, *_date(built, spec), *pins, "python", script.entry])


def _date(built: Environment, spec: EnvironmentSpec | None) -> list[str]:
    if spec is None or spec.exclude_newer is None:
        return []
    exempt = [name for name in spec.undated if built.version(name)]
    words = [word for name in exempt for word in ("--exclude-newer-package", f"{name}=false")]
    return ["--exclude-newer", spec.exclude_newer.strftime("%Y-%m-%dT%H:%M:%SZ"), *words]
