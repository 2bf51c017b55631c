"""A run as its page shows it: plain values, so that the templates decide nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from bot.models.attempt import Attempt
from bot.models.environment import Environment
from bot.models.report import Comparison, Report
from bot.models.run import LIVE, Run, RunState
from bot.render.comment import scrubbed
from bot.render.details import MATCHES, telling
from bot.render.html import finding, plot
from bot.render.html.finding import Pin, shortened
from bot.render.html.proved import Bisected, Smaller
from bot.render.requests import choices, so_far
from bot.render.sticky import STEPS, present, step
from bot.render.words import count

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class Row:
    """One run of the program. `log` is the address of what it printed, "" for none."""

    number: int
    purpose: str
    seed: str
    mark: Markup
    result: str
    seconds: str
    log: str


@dataclass(frozen=True, slots=True)
class RunView:
    """What stands on the page. Everything is text to be escaped, save the pictures and the marks."""

    base: str
    title: str
    tone: str
    live: bool
    place: str
    issue_title: str
    issue_url: str
    request: str
    foot: str
    said: tuple[str, ...] = ()
    steps: tuple[tuple[str, str, str], ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    interval: Markup | None = None
    interval_words: str = ""
    asked_items: tuple[str, ...] = ()
    comparison: tuple[Comparison, ...] = ()
    report: bool = False
    command: str = ""
    command_needs: str = ""
    entry: str = ""
    script: tuple[tuple[str, str], ...] = ()
    mends: tuple[str, ...] = ()
    attempts: tuple[Row, ...] = ()
    plot: Markup | None = None
    legend: tuple[tuple[Markup, str], ...] = ()
    counts: tuple[tuple[str, str], ...] = ()
    fixed: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    environment: Environment | None = None
    tried: tuple[str, ...] = ()
    cut_off: str = ""
    pins: tuple[Pin, ...] = ()
    drawn: tuple[tuple[str, str], ...] = ()
    notes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    claim: str = ""
    written: str = ""
    proposals: tuple[tuple[str, tuple[str, ...]], ...] = ()
    control: tuple[str, ...] = ()
    patch: str = ""
    pairs: Markup | None = None
    bisected: Bisected | None = None
    bisected_too: tuple[Bisected, ...] = ()
    smaller: Smaller | None = None


def view(
    run: Run,
    report: Report | None,
    attempts: Sequence[Attempt],
    *,
    github_url: str,
    now: datetime,
    ahead: int = 0,
    secrets: Iterable[str] = (),
) -> RunView:
    """A run with its report, or with what is known of it while there is none. `now` is aware of its zone."""
    hidden = tuple(secrets)
    run = scrubbed(run, hidden)
    report = scrubbed(_light(report), hidden) if report is not None else None
    several = tuple(scrubbed(_brief(each), hidden) for each in attempts) if report is None else report.attempts
    name, number = run.request.repository.full_name, run.request.number
    shared: dict[str, Any] = {
        "base": f"/runs/{run.id}",
        "live": run.state in LIVE,
        "place": f"{name}#{number}",
        "issue_title": run.request.job.issue.title or f"{name}#{number}",
        "issue_url": f"{github_url}/{name}/issues/{number}" if _NAME.fullmatch(name) else "",
        "request": request(run),
        "attempts": tuple(_row(each, f"/runs/{run.id}") for each in several),
        "plot": plot.attempts(several),
        "legend": tuple(plot.legend(several)),
    }
    found = finding.of(report) if report is not None and run.state is not RunState.FAILED else _under_way(run, ahead, now)
    return RunView(**(shared | found))


def _light(report: Report) -> Report:
    """The report without the evidence that the page does not show: hundreds of tracebacks take long to search for secrets."""
    shown = telling(report)
    return report.model_copy(update={"attempts": tuple(each if each is shown else _brief(each) for each in report.attempts)})


def _brief(attempt: Attempt) -> Attempt:
    return attempt.model_copy(update={"judgement": attempt.judgement.model_copy(update={"evidence": "", "failure": None})})


def _under_way(run: Run, ahead: int, now: datetime) -> dict[str, Any]:
    """What is known of a run without a verdict."""
    if run.state is RunState.FAILED:
        said = (
            "The fault is Reprise's own: this says nothing about the report.",
            f"To try again, comment /reproduce on the issue. If it breaks down again, quote run {run.id} to this App's host.",
        )
        return {"title": "Reprise broke down on this one", "tone": "broken", "said": said, "foot": f"Run {run.id}"}
    if run.state is RunState.FINISHED:
        return {"title": "Over without a verdict", "tone": "cancelled", "foot": f"Run {run.id}"}
    titles = {RunState.WAITING: "Waiting for approval", RunState.QUEUED: "Waiting for its turn"}
    title = "Stopping" if run.cancelled_by else titles.get(run.state, "Reproducing")
    told: list[str] = []
    if run.cancelled_by:
        told.append(f"{run.cancelled_by} asked to stop.")
    elif run.state is RunState.WAITING:
        told.append("Nothing has been run. The issue shows the plan, and how someone with write permission approves it.")
    elif run.state is RunState.QUEUED and ahead:
        told.append(f"{count(ahead, 'run')} {'is' if ahead == 1 else 'are'} ahead of it.")
    elif run.started_at is not None and run.state is not RunState.QUEUED:
        told.append(f"{so_far((now - aware(run.started_at)).total_seconds()).capitalize()}.")
    foot = f"Run {run.id}. This page renews itself until there is a verdict."
    return {"title": title, "tone": "running", "said": tuple(told), "steps": steps(run), "foot": foot}


def steps(run: Run) -> tuple[tuple[str, str, str], ...]:
    """The stages as (done, now or later; what; what goes on in it)."""
    working = run.state in {RunState.RUNNING, RunState.REPORTED}
    now = step(run.stage) if working else -1
    states = ["done" if at < now else "now" if at == now else "later" for at in range(len(STEPS))]
    return tuple(
        (state, title, present(run) if state == "now" else "") for state, (title, _) in zip(states, STEPS, strict=True)
    )


def request(run: Run) -> str:
    """Who asked for the run, when and how, as one sentence."""
    who = run.request.requester or "somebody"
    how = {"opened": f"Begun when {who} opened the issue", "labeled": f"Asked for by {who} with a label"}
    parts = [how.get(run.request.trigger, f"Asked for by {who}"), f" on {moment(run.created_at)}"]
    chosen = choices(run.request.job.options)
    parts += [f" with {', '.join(chosen)}"] if chosen else []
    parts += [f", approved by {run.approved_by}"] if run.approved_by else []
    return "".join(parts) + "."


def moment(at: datetime) -> str:
    """A time of day in UTC."""
    return f"{aware(at).astimezone(UTC):%Y-%m-%d at %H:%M} UTC"


def aware(at: datetime) -> datetime:
    """The same moment with its zone; without one it is UTC."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def _row(attempt: Attempt, base: str) -> Row:
    judgement, execution = attempt.judgement, attempt.execution
    said = f"{MATCHES[judgement.match]}: {judgement.reason}" if judgement.reason else MATCHES[judgement.match]
    return Row(
        number=attempt.number,
        purpose=f"{attempt.purpose}: {attempt.change}" if attempt.change else attempt.purpose,
        seed="" if execution.seed is None else str(execution.seed),
        mark=plot.mark(judgement.match),
        result=shortened(said),
        seconds=f"{execution.seconds:.1f}",
        log=f"{base}/logs/{attempt.number}" if execution.log else "",
    )
