"""The pages of the App: documents → HTML, through templates that escape everything."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bot.issues import sections
from bot.issues.phrases import OUTCOMES, interval
from bot.issues.program_phrases import telling
from bot.issues.sections import outcome, purpose
from bot.issues.verdicts import KINDS
from bot.kernel.attempt import Attempt
from bot.kernel.dialogue import Usage
from bot.kernel.document import (
    Block,
    Code,
    Document,
    Headline,
    Hyperlink,
    Paragraph,
    Preformatted,
    Section,
    StepList,
    Strong,
    Text,
    TrainingPlot,
    elsewhere,
    usage_figures,
)
from bot.kernel.outside_text import clean, clip, scrubbed, shorten_paths
from bot.kernel.redaction import redact
from bot.kernel.report import IssueReport, RequestedReport
from bot.kernel.run import LIVE, Run, RunState
from bot.kernel.training_types import Curve
from bot.report import svg
from bot.report.comment import elapsed, queued, requested_by, steps, unposted_text
from bot.report.sections import document
from bot.report.verbs import help_rows

# What a run's page shows: the document of its report, or of what is known so far.

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class RunView:
    """The page of a run. `base` is its address, `issue_url` "" where it cannot be linked,
    `request` who asked and when, `files` the names of what can be downloaded. `pull_url` is the
    address of the pull request made from it, "" for none; `list_url` that of the list of all runs
    of the repository, "" where this page does not open it.
    """

    base: str
    live: bool
    place: str
    issue_title: str
    issue_url: str
    request: Text
    document: Document
    files: tuple[str, ...] = ()
    pull_url: str = ""
    list_url: str = ""


@dataclass(frozen=True, slots=True)
class LiveDetails:
    """What the page of a live run shows beside its attempts: the end of the newest `output`, what
    models have used, and the loss so far.
    """

    output: str = ""
    usage: Usage = field(default_factory=Usage)
    curves: tuple[Curve, ...] = ()


def view(
    run: Run,
    report: RequestedReport | None,
    attempts: Sequence[Attempt],
    *,
    github_url: str,
    now: datetime,
    ahead: int = 0,
    secrets: Iterable[str] = (),
    name: str = "",
    pull: int | None = None,
    so_far: LiveDetails | None = None,
) -> RunView:
    """A run with its report, or with its attempts and the rest `so_far`. `now` is aware of its
    zone, `name` what the address calls the run, `pull` the number of the issue's pull request.
    """
    hidden = tuple(secrets)
    run = scrubbed(run, hidden)
    if report is not None and run.state is not RunState.FAILED:
        report = scrubbed(_light(report), hidden)
        whole, files = document(report), _files(report)
    else:
        briefs = [scrubbed(attempt.brief, hidden) for attempt in attempts]
        details = so_far or LiveDetails()
        details = replace(details, output=redact(clean(details.output), hidden))
        whole, files = _progress(run, briefs, ahead, now, details), ()
    place, number = run.request.repository.full_name, run.request.number
    return RunView(
        base=f"/runs/{name or run.id}",
        live=run.state in LIVE,
        place=f"{place}#{number}",
        issue_title=run.request.issue.title or f"{place}#{number}",
        issue_url=f"{github_url}/{place}/issues/{number}" if _NAME.fullmatch(place) else "",
        request=(*requested_by(run)[:-1], f" on {moment(run.created_at)}.", *_unposted_lines(run)),
        document=whole,
        files=files,
        pull_url=f"{github_url}/{place}/pull/{pull}" if pull and _NAME.fullmatch(place) else "",
        # The link to a private repository's run opens this run alone, whoever it was passed on to.
        list_url="" if run.request.repository.private else f"/runs/{run.id}/repository",
    )


def _unposted_lines(run: Run) -> list[str]:
    is_unposted = run.state is RunState.FINISHED and run.error
    return [f" The verdict {unposted_text(run)}."] if is_unposted else []


def _files(report: RequestedReport) -> tuple[str, ...]:
    if not isinstance(report, IssueReport):
        return ("report.json",)
    script = ("repro.py",) if report.script is not None else ()
    original = (
        (sections.ORIGINAL,)
        if script and report.reduced is not None and report.reduced.is_smaller
        else ()
    )
    return (*script, *original, "report.json")


def _light(report: RequestedReport) -> RequestedReport:
    """The report without the evidence that the page does not show: searching hundreds of
    tracebacks for secrets takes long.
    """
    if not isinstance(report, IssueReport):
        paper = report.draft()
        paper.attempts = tuple(run.brief for run in report.attempts)
        return paper.finish()
    attempt_with_output = telling(report)
    draft = report.draft()
    draft.attempts = tuple(
        run if run is attempt_with_output else run.brief for run in report.attempts
    )
    return draft.finish()


def _progress(
    run: Run, attempts: Sequence[Attempt], ahead: int, now: datetime, details: LiveDetails
) -> Document:
    title, tone, text = _state(run, ahead, now)
    blocks: list[Block] = [Headline(title, tone=tone), *([Paragraph(text)] if text else [])]
    waiting = run.state not in {RunState.RUNNING, RunState.REPORTED}
    live = tone == "running"
    blocks += [StepList(steps(run, waiting=waiting))] if live else []
    usage = details.usage
    blocks += [Paragraph(f"Models so far: {usage_figures(usage)}.")] if live and usage.calls else []
    runs = sections.attempts_section(attempts)
    refresh = "This page follows the run until there is a verdict"
    loss = Section("training", "Loss so far", blocks=[TrainingPlot(details.curves)])
    tail = Section("output", "Last output", blocks=[Preformatted(details.output)])
    parts = [
        Section("progress", blocks=blocks),
        *([loss] if live and details.curves else []),
        *([tail] if live and details.output else []),
        *([runs] if runs else []),
    ]
    return Document(parts, (f"Run {run.id}", *([refresh] if live else [])))


def _state(run: Run, ahead: int, now: datetime) -> tuple[str, str, str]:
    """Title, tone and sentence of a run without a verdict."""
    if run.state is RunState.FAILED:
        defect = "This is a bug in Reprise and says nothing about the bug report."
        verb = "/reproduce paper" if run.request.proof == "paper" else "/reproduce"
        again = f"To try again, comment `{verb}` on the issue."
        host = f"If it fails again, give the operator this run's id: {run.id}."
        return "Reprise failed", "broken", f"{defect} {again} {host}"
    if run.state is RunState.FINISHED and run.verdict:
        again = "For a new one, comment `/reproduce` on the issue."
        return "The report is too large to show", "broken", again
    if run.state is RunState.FINISHED:
        return "Ended without a verdict", "cancelled", ""
    if run.cancelled_by:
        return "Stopping", "running", f"{run.cancelled_by} cancelled it."
    if run.state is RunState.WAITING:
        plan = "The issue shows the plan and how someone with write permission can approve it."
        return "Waiting for approval", "running", f"Nothing has run yet. {plan}"
    if run.state is RunState.QUEUED:
        return "Waiting for its turn", "running", queued(ahead)
    began = aware(run.started_at) if run.started_at is not None else now
    return "Reproducing", "running", f"{elapsed((now - began).total_seconds()).capitalize()}."


def moment(at: datetime) -> str:
    """A time of day in UTC."""
    return f"{aware(at).astimezone(UTC):%Y-%m-%d at %H:%M} UTC"


def aware(at: datetime) -> datetime:
    """The same moment with its zone; without one it is UTC."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


# Documents → HTML, through templates that escape everything.

REFRESH_S = 6
_HERE = Path(__file__).parent
_TONES = "".join(f".{kind} {{ --tone: var(--{row.tone}); }}\n" for kind, row in KINDS.items())
STYLE = (_HERE / "style.css").read_bytes() + _TONES.encode()
ICON = (_HERE / "icon.svg").read_bytes()
LIVE_JS = (_HERE / "live.js").read_bytes()
_LINE, _EVIDENCE = 600, 20_000
_TICKS = re.compile(r"`([^`\n]+)`")


def inline(text: Text) -> Markup:
    """Inline text, escaped; `words in backticks` are monospaced."""
    match text:
        case str():
            parts = _TICKS.split(clip(shorten_paths(text), _LINE))
            code = Markup("<code>{}</code>")
            return Markup("").join(
                code.format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
            )
        case Code():
            return Markup("<code>{}</code>").format(clip(shorten_paths(text.text), _LINE))
        case Strong():
            return Markup("<strong>{}</strong>").format(text.text)
        case Hyperlink():
            address, rel = elsewhere(text.url), "noreferrer nofollow noopener"
            return Markup('<a href="{}" rel="{}">{}</a>').format(address, rel, text.text)
    return Markup("").join(map(inline, text))


def code(block: Preformatted) -> str:
    """The text of a code block; only a program is shown whole and with its paths."""
    return block.text if block.language else clip(shorten_paths(block.text), _EVIDENCE)


templates = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
"""What pages are made from."""

templates.filters.update(inline=inline, code=code, kind=lambda block: type(block).__name__)
templates.globals.update(
    refresh=0,
    style=hashlib.sha256(STYLE).hexdigest()[:12],
    icon=hashlib.sha256(ICON).hexdigest()[:12],
    live_js=hashlib.sha256(LIVE_JS).hexdigest()[:12],
    svg={
        "mark": svg.mark,
        "runs": svg,
        "bisection": svg,
        "descent": svg.descent,
        "training": svg.training,
    },
    words={"outcome": outcome, "purpose": purpose, "interval": interval, "outcomes": OUTCOMES},
)


def run_page(view: RunView) -> str:
    """The page of one run; it follows the run while it is live, without scripts by refreshing."""
    refresh = REFRESH_S if view.live else 0
    return templates.get_template("run.html").render(view=view, refresh=refresh)


def paper_page(document: Document) -> str:
    """A paper's report as a page of its own, with its style in it."""
    template = templates.get_template("paper.html")
    return template.render(document=document, css=Markup(STYLE.decode()))  # noqa: S704  # our own file


def landing(counts: dict[str, int], *, off: str, app: str, version: str) -> str:
    """The front page. `counts` is what a store counts, `off` why nothing is run for now, `app`
    the App's address on GitHub.
    """
    verdicts = [(kind, row.title, counts.get(f"verdicts.{kind}", 0)) for kind, row in KINDS.items()]
    return templates.get_template("landing.html").render(
        off=off,
        app=app,
        version=version,
        commands=help_rows(),
        waiting=counts.get("runs.waiting", 0) + counts.get("runs.queued", 0),
        running=counts.get("runs.running", 0) + counts.get("runs.reported", 0),
        done=counts.get("runs.finished", 0) + counts.get("runs.failed", 0),
        verdicts=[row for row in verdicts if row[2]],
    )


def missing(title: str, text: str) -> str:
    """The page at an address with nothing to show."""
    return templates.get_template("missing.html").render(title=title, text=text)


def metrics(counts: dict[str, int], switches: int, version: str, *, has_refusal: bool) -> str:
    """The same figures in Prometheus' text format."""
    families = [("deliveries", "state"), ("runs", "state"), ("verdicts", "kind")]
    families += [("pull_requests", "state")]
    lines = []
    for family, label in families:
        lines += _gauge(family, f"{family.replace('_', ' ').capitalize()} stored, by {label}.")
        rows = (name.split(".", 1) for name in sorted(counts) if name.startswith(f"{family}."))
        lines += [
            f'reprise_{family}{{{label}="{_escape(value)}"}} {counts[f"{family}.{value}"]}'
            for _, value in rows
        ]
    lines += [*_gauge("switches", "Kill switches that are on."), f"reprise_switches {switches}"]
    lines += _gauge("credentials_refused", "1 while GitHub refuses the App's credentials.")
    lines += [f"reprise_credentials_refused {int(has_refusal)}"]
    lines += _gauge("info", "The version of Reprise.")
    return "\n".join([*lines, f'reprise_info{{version="{_escape(version)}"}} 1']) + "\n"


def _gauge(name: str, what: str) -> list[str]:
    return [f"# HELP reprise_{name} {what}", f"# TYPE reprise_{name} gauge"]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
