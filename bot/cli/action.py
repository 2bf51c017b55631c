"""`reprise action`: the two jobs of the GitHub Action, and a rehearsal of both."""

from __future__ import annotations

import json
import secrets as random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bot.app import factory
from bot.app.ports import CloneToken, GitHub, Permission, Write
from bot.cli import error_boundary
from bot.cli.error_boundary import say
from bot.kernel.errors import UserError
from bot.kernel.job import RequestedJob
from bot.kernel.ports import Journal, Listener, Progress
from bot.kernel.report import IssueReport, RequestedReport
from bot.kernel.run import Delivery, Repository
from bot.kernel.settings import Settings, WorkflowSettings, load, secrets

if TYPE_CHECKING:
    from bot.app.context import AppContext, JobRunner
    from bot.kernel.run import Run

# The App's modules are imported inside the functions: help stays fast.

Mode = Literal["never", "summary", "comment"]
_EVENTS = ("issues", "issue_comment")
_TRIGGERS = {"opened", "labeled", "comment"}
_REHEARSED = "owner/repository"
_MOST_SUMMARY = 900_000  # GitHub takes 1 MiB of a step
_DEFECT_EXIT = 1


@error_boundary.boundary(secrets=secrets)
def action(
    part: Annotated[
        Literal["run", "publish"] | None,
        typer.Argument(
            metavar="[run|publish]", help="The job of the workflow.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the artifact: run writes it, publish reads it.", metavar="DIR"
        ),
    ] = None,
    publish: Annotated[
        Mode, typer.Option(help="Where the result goes besides the artifact.")
    ] = "comment",
    dry_run: Annotated[
        str | None,
        typer.Option(
            "--dry-run",
            help="Rehearse both jobs on a saved event, or on an issue as if it was just opened "
            "(owner/repo#12, a URL, a file or `example`); write nothing to GitHub.",
            metavar="EVENT|ISSUE",
        ),
    ] = None,
    permission: Annotated[
        Literal["admin", "maintain", "write", "triage", "read", "none"],
        typer.Option(help="With --dry-run: the sender's permission on the repository."),
    ] = "write",
    config: Annotated[
        Path | None,
        typer.Option(help="With --dry-run: the repository's .github/reprise.yml.", metavar="FILE"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --dry-run: print what would be written as JSON.")
    ] = False,
) -> None:
    """Answer one issue or comment inside a GitHub workflow.

    It needs no server. `run` decides and runs, and needs no permission to write; `publish`
    comments, and runs nothing.

    Exit codes: 0 handled, whatever the verdict, 2 a user error or a refused artifact, 1 a bug in
    Reprise.
    """
    settings, workflow = load(), WorkflowSettings()
    if (part is None) == (dry_run is None):
        raise UserError("Name one job, run or publish, or pass --dry-run EVENT.")
    if dry_run is not None:
        _rehearse(dry_run, out, settings, permission, config, as_json=as_json)
        return
    if out is None:
        raise UserError("The folder of the artifact is missing.", "Pass --out DIR.")
    event = read_event(workflow.event_name, _path(workflow), settings, workflow.run_id)
    if isinstance(event, str):
        say(f"Ignored: {event}.")
        _write_outputs(workflow, {"run-url": workflow.run_url})
        return
    event = replace(event, run_url=workflow.run_url)
    _same_repository(event, workflow.repository)
    github = factory.workflow_hub(settings, workflow.repository)
    if part == "publish":
        publish_event(event, settings, github, out)
        return
    with _commands_stopped(workflow):
        ending = run_event(event, settings, github, out)
    if publish != "never":
        _append(workflow.step_summary, ending.summary(event, comment=publish == "comment"))
    _write_outputs(workflow, ending.outputs(event, out, publish))
    if ending.defects:
        say("A bug in Reprise ended a run. Please report it with this job's log.")
        raise typer.Exit(_DEFECT_EXIT)


# The event of a workflow.


@dataclass(frozen=True)
class WorkflowEvent:
    """What started the workflow, and the run of it."""

    delivery: Delivery
    workflow_run: int
    run_url: str = ""

    @property
    def place(self) -> str:
        """The issue, as owner/name#12."""
        assert self.delivery.repository is not None
        assert self.delivery.issue is not None
        return f"{self.delivery.repository.full_name}#{self.delivery.issue.number}"


def _path(workflow: WorkflowSettings) -> Path:
    if workflow.event_path is None:
        raise UserError(
            "GITHUB_EVENT_PATH is not set: this is no job of a workflow.",
            "To rehearse one, pass --dry-run EVENT.",
        )
    return workflow.event_path


def read_event(name: str, path: Path, settings: Settings, run_id: int) -> WorkflowEvent | str:
    """The event, or why there is nothing to do."""
    from bot.cli.rehearsal import payload_bytes
    from handlers.events import AppIdentity, IgnoredDelivery, InvalidPayload, parse_event

    data = _json(payload_bytes(path), path)
    name = name or ("issue_comment" if "comment" in data else "issues")
    if name not in _EVENTS:
        return f"the Action answers {' and '.join(_EVENTS)} only"
    identity = AppIdentity(
        settings.app_id or factory.WORKFLOW_APP,
        settings.app_slug or factory.WORKFLOW_SLUG,
        installation=0,
    )
    # Two jobs get the same event, not the same bytes.
    body = json.dumps(data, sort_keys=True).encode()
    deliveries = parse_event(name, f"workflow-{run_id}", body, _moment(data), identity)
    if isinstance(deliveries, InvalidPayload):
        raise UserError(f"{path} is not an event of {name}: {deliveries.reason}.")
    if isinstance(deliveries, IgnoredDelivery):
        return deliveries.reason
    if deliveries[0].trigger not in _TRIGGERS:
        return "the Action answers opened and labelled issues, and comments"
    return WorkflowEvent(deliveries[0], run_id)


def _json(data: bytes, path: Path) -> dict[str, Any]:
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise UserError(f"{path} is not the payload of an event.", "Pass it as GitHub sent it.")
    return payload


def _moment(data: dict[str, Any]) -> datetime:
    """When the event happened; a job may start much later."""
    issue = data.get("issue")
    try:
        moment = datetime.fromisoformat(issue["updated_at"]) if isinstance(issue, dict) else None
    except (KeyError, TypeError, ValueError):
        moment = None
    return moment if moment is not None and moment.tzinfo else datetime.now(UTC)


def _same_repository(event: WorkflowEvent, repository: str) -> None:
    where = event.delivery.repository
    if where is None or where.full_name.lower() != repository.lower():
        raise UserError(
            "The event is of another repository than GITHUB_REPOSITORY.",
            "Use the event of the workflow's own repository.",
        )


# The job that runs.


@dataclass(frozen=True)
class Ending:
    """What the first job came to. `comments` are those that the second one would write."""

    reports: tuple[RequestedReport, ...]
    defects: int
    comments: tuple[str, ...]
    has_answer: bool

    def outputs(self, event: WorkflowEvent, out: Path, mode: Mode) -> dict[str, str]:
        """The outputs of the step."""
        last = len(self.reports) - 1
        return {
            "verdict": self.reports[-1].verdict.kind if self.reports else "",
            "report": str(_folder(out, last) / "report.json") if self.reports else "",
            "run-url": event.run_url,
            "artifact": "true",
            "answer": str(mode == "comment" and self.has_answer).lower(),
        }

    def summary(self, event: WorkflowEvent, *, comment: bool) -> str:
        """The job's summary: the comments, or what was tried where there is none."""
        from bot.report.comment import comment as report_comment

        silent = [] if self.comments else [report_comment(report) for report in self.reports]
        if not self.comments:
            title = f"Nothing is posted on {event.place}"
        else:
            title = f"{'Posted' if comment else 'Would be posted'} on {event.place}"
        texts = [text.partition("\n")[2] for text in self.comments]
        return "\n\n".join([f"### {title}", *texts, *silent])[:_MOST_SUMMARY] + "\n"


def run_event(
    event: WorkflowEvent,
    settings: Settings,
    github: GitHub,
    out: Path,
    engine: Callable[[Settings], JobRunner] = factory.make_engine,
) -> Ending:
    """Decide on an event, run what it asks for, and write the artifact. GitHub is only read."""
    from bot.app import action as workflow
    from bot.app.rehearsal import ReadOnlyGitHub

    delivery = event.delivery
    context = _context(settings, ReadOnlyGitHub(github), event)
    runs = workflow.decide(context, delivery)
    if runs:
        context.engine = _LoggingEngine(engine(settings))
    results = workflow.execute_runs(context, delivery) if runs else ()
    handover = workflow.hand_over(delivery, event.workflow_run, results, settings.strong_secrets)
    out.mkdir(parents=True, exist_ok=True)
    for run, result in zip(runs, handover.results, strict=True):
        if result.report is not None:
            _keep(_folder(out, result.ordinal), context, run, result.report, settings)
    (out / workflow.HANDOVER).write_text(handover.text(), encoding="utf-8")
    writes: list[Write] = []
    silent = ReadOnlyGitHub(github)
    publish_event(event, settings, silent, out, writes.append)
    reports = tuple(result.report for result in handover.results if result.report is not None)
    return Ending(
        reports=reports,
        defects=len(results) - len(reports),
        comments=tuple(silent.comments.values()),
        has_answer=bool(silent.comments) or (delivery.trigger == "comment" and bool(writes)),
    )


def _folder(out: Path, ordinal: int) -> Path:
    return out / f"run-{ordinal + 1}"


def _keep(
    path: Path, context: AppContext, run: Run, report: RequestedReport, settings: Settings
) -> None:
    """A run folder, for people and for `reprise pr`; nothing of it is published."""
    from contextlib import closing

    from bot.kernel.journal import ATTEMPTS, LOGS
    from bot.kernel.outside_text import rewritten
    from bot.kernel.redaction import redact
    from bot.report.comment import comment
    from bot.report.paper_json import requested_text

    hide = partial(redact, secrets=settings.secrets)
    with closing(error_boundary.open_folder(path)) as folder:
        folder.begin(rewritten(run.request.job, hide))
        for attempt in context.store.entries(run.id, ATTEMPTS):
            folder.append(ATTEMPTS, rewritten(attempt, hide))
        for log in context.store.entries(run.id, LOGS):
            folder.append(LOGS, rewritten(log, hide))
        folder.finish(
            report,
            json_text=requested_text(report, secrets=settings.secrets),
            markdown=comment(report, run=path.name, secrets=settings.secrets),
            state=rewritten(report, hide).model_dump_json(),
        )


def _context(settings: Settings, github: GitHub, event: WorkflowEvent) -> AppContext:
    from bot.app.action import runs_nothing
    from bot.app.rehearsal import RehearsalQueue
    from bot.app.store import MEMORY, SqlStore

    store = SqlStore(MEMORY, write_gap_s=settings.write_gap_s, notify_gap_s=settings.notify_gap_s)
    return factory.make_context(
        settings, store, RehearsalQueue(), github, runs_nothing,
        keeps_runs=False, run_url=event.run_url,
    )  # fmt: skip


class _LoggingEngine:
    """An engine whose progress is also in the job's log."""

    def __init__(self, engine: JobRunner) -> None:
        self._engine = engine

    def __call__(
        self,
        job: RequestedJob,
        *,
        journal: Journal,
        listener: Listener,
        cancel: Event,
        clone: CloneToken | None,
        earlier: IssueReport | None = None,
    ) -> RequestedReport:
        from rich.console import Console

        from bot.cli.runner import PlainLines

        lines = PlainLines(Console(stderr=True))

        def both(progress: Progress) -> None:
            lines(progress)
            listener(progress)

        return self._engine(
            job, journal=journal, listener=both, cancel=cancel, clone=clone, earlier=earlier
        )


@contextmanager
def _commands_stopped(workflow: WorkflowSettings) -> Iterator[None]:
    """The runner takes lines of a log for its commands. Here strangers' text may be among them:
    until a random word comes, none counts.
    """
    if workflow.output is None:
        yield
        return
    word = random.token_hex(16)
    say(f"::stop-commands::{word}")  # on the stream that the log is on, so that none overtakes it
    try:
        yield
    finally:
        say(f"\n::{word}::")


def _write_outputs(workflow: WorkflowSettings, outputs: dict[str, str]) -> None:
    """Write the outputs of a step. None of them is a text of the event or of the report."""
    _append(workflow.output, "".join(f"{name}={value}\n" for name, value in outputs.items()))


def _append(path: Path | None, text: str) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)


# The job that publishes, and a rehearsal of both.


def publish_event(
    event: WorkflowEvent,
    settings: Settings,
    github: GitHub,
    out: Path,
    record: Callable[[Write], None] = lambda _: None,
) -> None:
    """Check the artifact, then answer the event. Nothing is run, and nothing is written if the
    artifact is refused.
    """
    from bot.app import action as workflow
    from bot.app.github.writes import recording
    from bot.app.rehearsal import ReadOnlyGitHub

    delivery = event.delivery
    handover = workflow.read_handover(out / workflow.HANDOVER, delivery, event.workflow_run)
    silent = _context(settings, ReadOnlyGitHub(github), event)
    workflow.expect_runs(workflow.decide(silent, delivery), handover)
    context = _context(settings, github.hooked(recording(record)), event)
    workflow.publish_results(context, delivery, handover)


def _rehearsal_event(source: str, settings: Settings) -> WorkflowEvent | str:
    """A saved event; or an issue, as if its author had just opened it."""
    from bot.cli import sources
    from bot.cli.rehearsal import payload_bytes

    path = Path(source)
    if path.is_file() and path.suffix == ".json" and "action" in _json(payload_bytes(path), path):
        return read_event("", path, settings, 0)
    issue = sources.load(source, settings)
    where = {"number": issue.number or 1, "repository": issue.repository or _REHEARSED}
    issue = issue.model_copy(update={**where, "author": issue.author or "reporter"})
    return WorkflowEvent(
        Delivery(
            guid="workflow-0",
            event="issues",
            action="opened",
            trigger="opened",
            installation=0,
            repository=Repository(id=0, full_name=str(issue.repository)),
            issue=issue,
            sender=str(issue.author),
            received_at=datetime.now(UTC),
        ),
        workflow_run=0,
    )


def _rehearse(
    source: str,
    out: Path | None,
    settings: Settings,
    permission: Permission,
    config: Path | None,
    *,
    as_json: bool,
) -> None:
    from tempfile import TemporaryDirectory

    from bot.app.rehearsal import DryRunGitHub
    from bot.cli.rehearsal import payload_bytes, print_writes

    event = _rehearsal_event(source, settings)
    if isinstance(event, str):
        print_writes([], f"Ignored: {event}.", as_json=as_json)
        return
    text = payload_bytes(config).decode() if config else None
    github = DryRunGitHub(event.delivery, permission, text)
    settings = settings.model_copy(update={"write_gap_s": 0.0, "notify_gap_s": 0.0})
    writes: list[Write] = []
    with TemporaryDirectory(prefix="reprise-action-") as temporary:
        folder = out or Path(temporary)
        ending = run_event(event, settings, github, folder)
        if ending.has_answer:
            publish_event(event, settings, github, folder, writes.append)
    count = len(writes)
    outcome = f"{count} write{'' if count == 1 else 's'}. This would be written to GitHub."
    if not writes:
        outcome = "Nothing would be written to GitHub."
        summary = ending.summary(event, comment=True).partition("\n\n")[2]
        outcome += f" The job's summary would say:\n\n{summary}" if summary.strip() else ""
    print_writes(writes, outcome, as_json=as_json)
