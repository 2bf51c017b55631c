"""The App within a workflow, without a server: one job decides and runs, another one, which runs
nothing, decides again and publishes. Between them lies a typed handover.

The second job believes the first one nothing but reports: who may run what, where the comment goes
and what the replies say it decides from its own copy of the event.
"""

import time
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from threading import Event
from typing import Literal, NoReturn

from pydantic import Field, ValidationError

from bot.app import publish
from bot.app.context import AppContext, new_owner
from bot.app.deliveries import handle
from bot.app.ports import GoneError, Task, Throttled
from bot.app.publish import announce
from bot.app.worker import Service
from bot.kernel.bug import Issue, signature_hash
from bot.kernel.errors import TransientError, UserError
from bot.kernel.outside_text import rewritten
from bot.kernel.report import (
    DifferentFailure,
    Inconclusive,
    NotReproduced,
    PaperReport,
    Reproduced,
    RequestedReport,
)
from bot.kernel.run import Delivery, Run, RunState
from bot.kernel.statistics import interval
from bot.kernel.values import Record
from bot.papers.comparison import is_supported
from bot.report import comment

HANDOVER = "handover.json"
MOST_BYTES = 32_000_000
_MOST_RUNS = 5  # commands of one comment
_MOST_COUNTED = 1_000  # runs of one verdict
_CLOSE = 1e-9
_HIDDEN = "[redacted]"
_PAUSES = (5.0, 30.0)
_MOST_PAUSE = 120.0
_COUNTED = (Reproduced, NotReproduced, DifferentFailure, Inconclusive)


class WorkflowResult(Record):
    """What came of one run. `ordinal` is the command that asked for it; without a `report` a
    defect of ours ended it.
    """

    ordinal: int = Field(ge=0, lt=_MOST_RUNS)
    report: RequestedReport | None = None


class Handover(Record):
    """What the job that runs leaves for the one that publishes. `event` is the hash of the event
    that both of them were started by, `workflow_run` the id of the workflow's run.
    """

    schema_: Literal[1] = Field(1, alias="schema")
    repository: str
    number: int
    event: str
    workflow_run: int
    results: tuple[WorkflowResult, ...] = Field((), max_length=_MOST_RUNS)

    def text(self) -> str:
        """The file."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"


class ArtifactRefused(UserError):
    """The artifact is none that this workflow's run has made for this event."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The artifact is refused: {reason}.", "Nothing was published. Run the workflow again."
        )


def runs_nothing(*_: object, **__: object) -> NoReturn:
    """The engine of a job that runs nothing."""
    raise AssertionError("this job runs nothing")


# The first job: decide, run, hand over.


def decide(context: AppContext, delivery: Delivery) -> tuple[Run, ...]:
    """Decide on an event, and answer it; the runs that it asks for, the oldest first."""
    _patiently(lambda: handle(context, delivery))
    return _runs(context, delivery)


def execute_runs(context: AppContext, delivery: Delivery) -> tuple[WorkflowResult, ...]:
    """Execute what was decided; what came of each run."""
    service = Service(context)

    def execute(task: Task, stop: Event) -> None:
        if task.kind == "run":
            service.handle(task, stop)

    for device in ("cpu", "gpu"):
        context.queue.work(execute, device=device, slots=1, stop=Event())
    return tuple(
        WorkflowResult(ordinal=run.request.ordinal, report=context.store.report(run.id))
        for run in _runs(context, delivery)
    )


def hand_over(
    delivery: Delivery,
    workflow_run: int,
    results: tuple[WorkflowResult, ...],
    secrets: tuple[str, ...] = (),
) -> Handover:
    """The handover, without these secrets. Nothing else is hidden, so that hashes stay what they
    are: whoever prints a report hides more.
    """
    repository, number = _place(delivery)

    def hide(text: str) -> str:
        return reduce(lambda rest, secret: rest.replace(secret, _HIDDEN), secrets, text)

    return Handover(
        repository=repository,
        number=number,
        event=delivery.cause,
        workflow_run=workflow_run,
        results=tuple(
            WorkflowResult(
                ordinal=result.ordinal,
                report=rewritten(result.report, hide) if result.report is not None else None,
            )
            for result in results
        ),
    )


# The second job: check, decide again, publish.


def read_handover(path: Path, delivery: Delivery, workflow_run: int) -> Handover:
    """The handover in a file, if it is the one that was made for this event in this run of the
    workflow, and says nothing that contradicts itself. Raises ArtifactRefused.
    """
    repository, number = _place(delivery)
    handover = _parse(path)
    ordinals = [result.ordinal for result in handover.results]
    refusals = (
        (handover.repository != repository, "it is of another repository"),
        (handover.number != number, "it is of another issue"),
        (handover.event != delivery.cause, "it is of another event"),
        (handover.workflow_run != workflow_run, "it is of another run of the workflow"),
        (len(ordinals) != len(set(ordinals)), "it holds two reports of one run"),
    )
    for applies, reason in refusals:
        if applies:
            raise ArtifactRefused(reason)
    assert delivery.issue is not None
    for result in handover.results:
        for reason in _contradictions(result.report, delivery.issue) if result.report else ():
            raise ArtifactRefused(reason)
    return handover


def _parse(path: Path) -> Handover:
    if path.is_symlink() or not path.is_file():
        raise ArtifactRefused(f"it has no plain file {HANDOVER}")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ArtifactRefused(f"it is larger than {MOST_BYTES // 1_000_000} MB")
    try:
        return Handover.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        # What lies deeper may be named by the artifact.
        where = ".".join(str(part) for part in first["loc"][:3])
        where = where if where.replace(".", "").replace("_", "").isalnum() else "it"
        raise ArtifactRefused(f"{where[:60]} is not of the schema ({first['type']})") from None


def _contradictions(report: RequestedReport, issue: Issue) -> Iterator[str]:
    """Why a report is not that of a run of this issue."""
    if isinstance(report, PaperReport):
        if report.job.issue is None or _text(report.job.issue) != _text(issue):
            yield "a report is of another issue, or of another text of this one"
        if not is_supported(report.result):
            yield "the verdict on a number does not follow from its runs"
        return
    if _text(report.issue) != _text(issue):
        yield "a report is of another issue, or of another text of this one"
    verdict, signature = report.verdict, report.signature
    if isinstance(verdict, _COUNTED):
        low, high = interval(verdict.failures, verdict.runs) if _countable(verdict) else (2, -1)
        if abs(verdict.interval[0] - low) > _CLOSE or abs(verdict.interval[1] - high) > _CLOSE:
            yield "the counts and the interval of a verdict do not agree"
        if isinstance(verdict, Reproduced) and not verdict.failures:
            yield "a failure is called reproduced in no run"
    if signature is not None and report.signature_hash not in {"", signature_hash(signature)}:
        yield "a signature is not the one that was frozen"


def _countable(verdict: Reproduced | NotReproduced | DifferentFailure | Inconclusive) -> bool:
    return 0 <= verdict.failures <= verdict.runs <= _MOST_COUNTED


def _text(issue: Issue) -> tuple[object, ...]:
    return issue.repository, issue.number, issue.title, issue.body, issue.author, issue.url


def expect_runs(runs: tuple[Run, ...], handover: Handover) -> None:
    """Check that the handover has a result of each run that the event asks for, and of no other.
    Raises ArtifactRefused.
    """
    if {run.request.ordinal for run in runs} != {result.ordinal for result in handover.results}:
        raise ArtifactRefused("it holds other runs than the event asks for now")


def publish_results(context: AppContext, delivery: Delivery, handover: Handover) -> None:
    """Answer an event and publish the reports. Raises ArtifactRefused."""
    expected_runs = decide(context, delivery)
    expect_runs(expected_runs, handover)
    results = {result.ordinal: result for result in handover.results}
    for run in expected_runs:
        _publish(context, run, results[run.request.ordinal].report)


def _publish(context: AppContext, run: Run, report: RequestedReport | None) -> None:
    owner, store = new_owner(), context.store
    if store.take_run(run.id, owner, context.policy.lease_s) is None:
        raise TransientError("A run of this issue is taken.", "Run the workflow again.")
    if report is None:
        body = comment.failed(run, context.page(run))
        _patiently(lambda: publish.show(context, run, body))
        _patiently(lambda: publish.react(context, run.request, "confused"))
        store.finish_run(run.id, owner, "failed in the job that runs")
        return
    store.put_report(run.id, owner, report)
    _patiently(lambda: announce(context, run, owner, lambda *_: None))


def _runs(context: AppContext, delivery: Delivery) -> tuple[Run, ...]:
    repository, number = _place(delivery)
    runs = context.store.runs(repository=repository, number=number)
    live = [run for run in runs if run.state is not RunState.WAITING]
    return tuple(sorted(live, key=lambda run: run.request.ordinal))


def _place(delivery: Delivery) -> tuple[str, int]:
    assert delivery.repository is not None
    assert delivery.issue is not None
    assert delivery.issue.number is not None
    return delivery.repository.full_name, delivery.issue.number


def _patiently(act: Callable[[], object]) -> None:
    """Act, and again after a while if GitHub asks to wait or has an error of its own."""
    for pause in _PAUSES:
        try:
            act()
        except GoneError:
            raise
        except TransientError as error:
            asked_s = error.after_s if isinstance(error, Throttled) else pause
            if asked_s > _MOST_PAUSE:
                raise
            time.sleep(asked_s)
        else:
            return
    act()
