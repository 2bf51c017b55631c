"""What a job found → the Report that every interface shows."""

import re
import shlex
from collections.abc import Iterable
from importlib import metadata
from urllib.parse import urlsplit

from bot.issues import confirm
from bot.issues.confirm import Decision
from bot.issues.runner import IssueSession
from bot.kernel.attempt import Attempt, Script
from bot.kernel.bug import signature_hash
from bot.kernel.environment import Environment, EnvironmentSpec, PinSource, RepoSource
from bot.kernel.report import Report
from bot.model.budget import ModelBudget

_TOOLS = "setuptools"
_MOST_EVIDENCE = 4_000_000
"""Bytes. The evidence of one run is 5 kB as a rule and 400 kB at most."""
_PUBLIC = re.compile(r"(?:[a-z0-9-]{1,63}\.)+(?!(?:local|localhost|internal|lan)$)[a-z]{2,24}")
_CLONE = {
    True: "The command does not install {0}: add --with and the folder of its clone at commit {1}.",
    False: "The command lacks the repository: put its clone at commit {1} on PYTHONPATH.",
}
"""What a command cannot bring along, by whether the clone was built."""


def report(session: IssueSession, decision: Decision, budget: ModelBudget) -> Report:
    """The report of a job, whole or stopped half-way; `budget` has what a model was asked."""
    verdict, signature, result = decision.verdict, decision.signature, decision.result
    if verdict.kind == "different_failure" and signature is not None:
        verdict = verdict.model_copy(update={"reported": confirm.describe(signature)})
    answered_by = (row.answer.model for row in budget.exchanges if row.answer is not None)
    return Report(
        issue=session.job.issue,
        bug=decision.bug,
        verdict=verdict,
        signature=signature,
        signature_hash=signature_hash(signature) if signature is not None else "",
        spec=result.spec if result is not None else None,
        environment=result.environment if result is not None else None,
        script=result.script if result is not None else None,
        claims=decision.claims,
        notes=tuple(session.notes),
        version=metadata.version("reprise"),
        prompts=dict(budget.prompts),
        reconstruction=decision.reconstruction,
        cost=budget.usage,
        models=tuple(dict.fromkeys(filter(None, answered_by))),
    )


def finished(report: Report, session: IssueSession, started: float) -> Report:
    """The report with what needs the whole job: its attempts, timings, the table of what was
    reported and observed, and the command that runs the script.
    """
    took = {**session.seconds, "total": session.ports.clock() - started}
    total = {name: round(report.seconds.get(name, 0.0) + took[name], 3) for name in took}
    update: dict[str, object] = {
        "attempts": within_limit(session.attempts),
        "comparison": confirm.compare(
            report.signature, _shown(report, session), report.environment
        ),
        "seconds": {**report.seconds, **total},
        "sandbox": session.ports.sandbox.name if session.attempts else "",
        **_command(report),
    }
    return report.model_copy(update=update)


def within_limit(attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """The attempts, later ones without their evidence once a report could not be stored with it."""
    room, bounded = _MOST_EVIDENCE, []
    for attempt in attempts:
        room -= len(attempt.judgement.model_dump_json())
        bounded.append(attempt if room >= 0 else attempt.brief)
    return tuple(bounded)


def _shown(report: Report, session: IssueSession) -> Attempt | None:
    """The attempt to show: the last that matched, in the environment that is shown if any did."""
    matched, built = session.attempts.matched(), report.environment
    here = [row for row in matched if built is not None and row.environment == built.id]
    return next(reversed(here or matched or list(session.attempts)), None)


def _command(report: Report) -> dict[str, str]:
    """What runs the script anywhere, and what else that needs; nothing without an environment."""
    script, built, spec = report.script, report.environment, report.spec
    if script is None or built is None or report.verdict.kind == "setup_failed":
        return {}
    source = spec.repo if spec is not None else None
    address = _address(source) if built.cloned and source is not None else ""
    needs = ""
    if built.commit and not address:
        needs = _CLONE[bool(built.cloned)].format(built.cloned, built.commit[:12])
    return {"command": _line(script, built, spec, address), "command_needs": needs}


def _line(script: Script, built: Environment, spec: EnvironmentSpec | None, address: str) -> str:
    """One line that runs the script anywhere with uv, on any later day: the pins, and the date for
    everything else. What was built from a clone comes from its `address`, never from an index,
    where its name may be anybody's.
    """
    ours = [each for each in built.packages if each.name not in {_TOOLS, built.cloned}]
    ours = [
        each for each in ours if each.rung is not PinSource.DEPENDENCY or each.name in built.undated
    ]
    pins = [f"{each.name}=={each.version.split('+')[0]}" for each in ours]
    pins = [f"{built.cloned} @ git+{address}@{built.commit}", *pins] if address else pins
    words = [word for pin in pins for word in ("--with", pin)]
    minor = ".".join(built.python.split(".")[:2])
    return shlex.join(
        [
            "uv",
            "run",
            "--no-project",
            "--python",
            minor,
            *_date(built, spec),
            *words,
            "python",
            script.entry,
        ]
    )


def _address(source: RepoSource) -> str:
    """Where anyone may have a clone from, "" when it is a folder or a server of this machine or
    of one network.
    """
    parts = urlsplit(source.url)
    public = (
        parts.scheme == "https"
        and "@" not in parts.netloc
        and _PUBLIC.fullmatch(parts.hostname or "")
    )
    return source.url if public and not source.path else ""


def _date(built: Environment, spec: EnvironmentSpec | None) -> list[str]:
    given_up = any(each.name == "date" for each in built.claims)
    if spec is None or spec.exclude_newer is None or given_up:
        return []
    free = dict.fromkeys((*spec.undated, *built.undated))
    exempt = [name for name in free if built.version(name) and name not in {_TOOLS, built.cloned}]
    words = [word for name in exempt for word in ("--exclude-newer-package", f"{name}=false")]
    return ["--exclude-newer", spec.exclude_newer.strftime("%Y-%m-%dT%H:%M:%SZ"), *words]
