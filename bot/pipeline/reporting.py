"""Desk → Report: what one job found, in the form that all doors show."""

from __future__ import annotations

import re
import shlex
from importlib import metadata
from urllib.parse import urlsplit

from bot.models.attempt import Match, Script
from bot.models.dialogue import Usage
from bot.models.environment import Environment, EnvironmentSpec, RepoSource, Rung
from bot.models.report import Report
from bot.models.signature import signature_hash
from bot.models.verdict import AnyVerdict
from bot.pipeline import conclude
from bot.pipeline.asking import Asking
from bot.pipeline.desk import Desk

_TOOLS = "setuptools"
_PUBLIC = re.compile(r"(?:[a-z0-9-]{1,63}\.)+(?!(?:local|localhost|internal|lan)$)[a-z]{2,24}")
_CLONE = {
    True: "The command does not install {0}: add --with and the folder of its clone at commit {1}.",
    False: "The command does not bring the repository: put its clone at commit {1} on PYTHONPATH.",
}
"""What a command cannot bring along, by whether the clone was built."""


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
        **_command(desk, verdict),
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


def _command(desk: Desk, verdict: AnyVerdict) -> dict[str, str]:
    """What runs the script anywhere, and what else that needs; nothing where no environment was had."""
    if desk.script is None or desk.environment is None or verdict.kind == "setup_failed":
        return {}
    built, source = desk.environment, desk.spec.repo if desk.spec is not None else None
    address = _address(source) if built.cloned and source is not None else ""
    needs = _CLONE[bool(built.cloned)].format(built.cloned, built.commit[:12]) if built.commit and not address else ""
    return {"command": _line(desk.script, built, desk.spec, address), "command_needs": needs}


def _line(script: Script, built: Environment, spec: EnvironmentSpec | None, address: str) -> str:
    """One line that runs the script anywhere with uv, on any later day: the pins, and the date for everything else. What was
    built from a clone is had from its `address`, never from an index, where its name may be anybody's.
    """
    ours = [each for each in built.packages if each.name not in {_TOOLS, built.cloned}]
    ours = [each for each in ours if each.rung is not Rung.DEPENDENCY or each.name in built.undated]
    pins = [f"{each.name}=={each.version.split('+')[0]}" for each in ours]
    pins = [f"{built.cloned} @ git+{address}@{built.commit}", *pins] if address else pins
    words = [word for pin in pins for word in ("--with", pin)]
    minor = ".".join(built.python.split(".")[:2])
    return shlex.join(["uv", "run", "--no-project", "--python", minor, *_date(built, spec), *words, "python", script.entry])


def _address(source: RepoSource) -> str:
    """Where anyone may have a clone from, "" when it is a folder or a server of this machine or of one network."""
    parts = urlsplit(source.url)
    public = parts.scheme == "https" and "@" not in parts.netloc and _PUBLIC.fullmatch(parts.hostname or "")
    return source.url if public and not source.path else ""


def _date(built: Environment, spec: EnvironmentSpec | None) -> list[str]:
    given_up = any(each.name == "date" for each in built.claims)
    if spec is None or spec.exclude_newer is None or given_up:
        return []
    free = dict.fromkeys((*spec.undated, *built.undated))
    exempt = [name for name in free if built.version(name) and name not in {_TOOLS, built.cloned}]
    words = [word for name in exempt for word in ("--exclude-newer-package", f"{name}=false")]
    return ["--exclude-newer", spec.exclude_newer.strftime("%Y-%m-%dT%H:%M:%SZ"), *words]
