"""What a job found → the Report that every interface shows."""

import re
import shlex
from collections.abc import Iterable
from importlib import metadata
from urllib.parse import urlsplit

from bot.issues import confirm
from bot.issues.confirm import Decision
from bot.issues.missing_inputs import weights_note
from bot.issues.runner import IssueSession
from bot.kernel import launch
from bot.kernel.attempt import Attempt, Script
from bot.kernel.bug import signature_hash
from bot.kernel.environment import Environment, EnvironmentSpec, PinSource, RepoSource
from bot.kernel.report import IssueReport, ReportDraft
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
_IN_TREE = "Check out the repository at commit {0} and run the command in {1}{2}."


def draft(session: IssueSession, decision: Decision, budget: ModelBudget) -> ReportDraft:
    """The report of a job, whole or stopped half-way, before what comes after the verdict; `budget`
    has what a model was asked.
    """
    verdict, signature, result = decision.verdict, decision.signature, decision.result
    if verdict.kind == "different_failure" and signature is not None:
        verdict = verdict.model_copy(update={"reported": confirm.describe(signature)})
    if result is not None and (sentence := weights_note(result.script, result.environment)):
        session.note(sentence)
    return ReportDraft(
        issue=session.job.issue,
        bug=decision.bug,
        verdict=verdict,
        signature=signature,
        signature_hash=signature_hash(signature) if signature is not None else "",
        spec=result.spec if result is not None else None,
        environment=result.environment if result is not None else None,
        script=result.script if result is not None else None,
        claims=decision.claims,
        comparison=decision.facets,
        notes=tuple(session.notes),
        version=metadata.version("reprise"),
        prompts=dict(budget.prompts),
        reconstruction=decision.reconstruction,
        cost=budget.usage,
        models=budget.models,
    )


def finish(draft: ReportDraft, session: IssueSession, started: float) -> IssueReport:
    """The report with what needs the whole job: its attempts, timings, the table of what was
    reported and observed, and the command that runs the script.
    """
    before, took = draft.seconds, session.timings(started)
    total = {name: round(before.get(name, 0.0) + s, 3) for name, s in took.items()}
    matching_attempt = _matching_attempt(draft, session)
    draft.attempts = within_limit(session.attempts)
    beside = (confirm.ALSO, confirm.BESIDE)
    facets = tuple(row for row in draft.comparison if row.what.startswith(beside))
    rows = confirm.compare(draft.signature, matching_attempt, draft.environment)
    draft.comparison = (*rows[:1], *facets, *rows[1:])
    draft.seconds = {**before, **total}
    draft.sandbox = session.ports.sandbox.name if session.attempts else ""
    _set_command(draft)
    return draft.finish()


def within_limit(attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """The attempts, later ones without their evidence once a report could not be stored with it."""
    room, attempts_to_keep = _MOST_EVIDENCE, []
    for attempt in attempts:
        room -= len(attempt.judgement.model_dump_json())
        attempts_to_keep.append(attempt if room >= 0 else attempt.brief)
    return tuple(attempts_to_keep)


def _matching_attempt(report: IssueReport, session: IssueSession) -> Attempt | None:
    """The attempt to show: the last that matched, in the environment that is shown if any did."""
    matching, environment = session.attempts.matched(), report.environment
    here = [
        row for row in matching if environment is not None and row.environment == environment.id
    ]
    return next(reversed(here or matching or list(session.attempts)), None)


def _set_command(draft: ReportDraft) -> None:
    """What runs the script anywhere, and what else that needs; nothing without an environment."""
    script, environment, spec = draft.script, draft.environment, draft.spec
    if script is None or environment is None or draft.verdict.kind == "setup_failed":
        return
    source = spec.repo if spec is not None else None
    address = _address(source) if environment.cloned and source is not None else ""
    needs = ""
    if script.command:
        address = ""
        where = " on a machine with a GPU" if launch.CUDA in script.variables else ""
        needs = _IN_TREE.format(environment.commit[:12], script.folder or "its root", where)
    elif draft.reduced is not None and draft.reduced.before.command:
        address = ""  # the script has all that it needs of the repository
    elif environment.commit and not address:
        needs = _CLONE[bool(environment.cloned)].format(environment.cloned, environment.commit[:12])
    draft.command, draft.command_needs = _line(script, environment, spec, address), needs


def _line(
    script: Script, environment: Environment, spec: EnvironmentSpec | None, address: str
) -> str:
    """One line that runs the script anywhere with uv, on any later day: the pins, and the date for
    everything else. What was built from a clone comes from its `address`, never from an index,
    where its name may be anybody's.
    """
    ours = [
        package
        for package in environment.packages
        if package.name not in {_TOOLS, environment.cloned}
    ]
    ours = [
        package
        for package in ours
        if package.rung is not PinSource.DEPENDENCY or package.name in environment.undated
    ]
    pins = [f"{package.name}=={package.version.split('+')[0]}" for package in ours]
    pins = (
        [f"{environment.cloned} @ git+{address}@{environment.commit}", *pins] if address else pins
    )
    words = [word for pin in pins for word in ("--with", pin)]
    minor = ".".join(environment.python.split(".")[:2])
    return shlex.join(
        [
            "uv",
            "run",
            "--no-project",
            "--python",
            minor,
            *_date(environment, spec),
            *words,
            "python",
            *(script.command or (script.entry,)),
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


def _date(environment: Environment, spec: EnvironmentSpec | None) -> list[str]:
    given_up = any(claim.name == "date" for claim in environment.claims)
    if spec is None or spec.exclude_newer is None or given_up:
        return []
    free = dict.fromkeys((*spec.undated, *environment.undated))
    exempt = [
        name
        for name in free
        if environment.version(name) and name not in {_TOOLS, environment.cloned}
    ]
    words = [word for name in exempt for word in ("--exclude-newer-package", f"{name}=false")]
    return ["--exclude-newer", spec.exclude_newer.strftime("%Y-%m-%dT%H:%M:%SZ"), *words]
