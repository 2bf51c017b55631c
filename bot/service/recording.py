"""What runs record in the store: the engine's Recorder, so that a run that was killed resumes from
its attempts, and the earlier run that a proof requested by name starts from.
"""

from typing_extensions import override

from bot.errors import Stopped
from bot.models.attempt import Attempt, Script
from bot.models.dialogue import Exchange
from bot.models.job import Job
from bot.models.report import Report
from bot.models.run import Run, RunState
from bot.ports import Recorder
from bot.render.log import log_text
from bot.service.ports.store import ResultStore, RunHistory
from sandbox.port import RunResult

_FOLLOWS = {"package", "proof_minutes", "without"}
"""Options about what follows a verdict, not about how it is reached."""


class StoreRecorder(Recorder):
    """Stores the attempts of one leased run. Raises Stopped once the lease is lost to another
    worker.
    """

    def __init__(self, store: ResultStore, run: str, owner: str) -> None:
        self._store, self._run, self._owner = store, run, owner
        self._attempts = {attempt.number: attempt for attempt in store.attempts(run)}
        self._open: dict[int, tuple[Script, str]] = {}
        self.count = len(self._attempts)

    @override
    def log(self, number: int, script: Script, result: RunResult) -> str:
        self._open[number] = (script, log_text(script, result))
        return f"logs/{number:03d}.log"

    @override
    def attempt(self, attempt: Attempt) -> None:
        script, log = self._open.pop(attempt.number)
        if any(number >= attempt.number for number in self._attempts):
            self._require(self._store.forget_attempts(self._run, self._owner, attempt.number - 1))
            self._attempts = {}
        self._require(self._store.note_attempt(self._run, self._owner, attempt, script, log))
        self.count = attempt.number

    @override
    def recall(self, number: int) -> Attempt | None:
        return self._attempts.get(number)

    @override
    def program(self, number: int) -> Script | None:
        return self._store.script(self._run, number)

    @override
    def exchange(self, exchange: Exchange) -> None:
        self._require(self._store.note_exchange(self._run, self._owner, exchange))

    @override
    def exchanges(self) -> tuple[Exchange, ...]:
        return self._store.exchanges(self._run)

    @staticmethod
    def _require(leased: bool) -> None:
        if not leased:
            raise Stopped("another worker has taken over")


def earlier(store: RunHistory, run: Run, owner: str) -> Report | None:
    """The report of the newest earlier run with the same, unchanged issue and the same options.
    Its attempts, programs and logs are copied to this run. None when there is none.
    """
    newest = _newest_reproduced(store, run) if run.request.proof is not None else None
    report = store.report(newest.id) if newest is not None else None
    if newest is None or report is None:
        return None
    if report.reconstruction is not None and "model" in run.request.job.options.without:
        return None  # an approval is for the programs that were shown, none of which is a model's
    scripts = [store.script(newest.id, attempt.number) for attempt in report.attempts]
    for attempt, script in zip(report.attempts, scripts, strict=True):
        log = store.log(newest.id, attempt.number)
        if script is None or not store.note_attempt(run.id, owner, attempt, script, log):
            return None
    notes = tuple(note for note in report.notes if note.text != report.interrupted)
    return report.model_copy(update={"notes": notes, "interrupted": ""})


def _newest_reproduced(store: RunHistory, run: Run) -> Run | None:
    where, number = run.request.repository.full_name, run.request.number
    finished = store.runs(repository=where, number=number, states=(RunState.FINISHED,))
    same = (
        other
        for other in finished
        if other.created_at < run.created_at
        and other.verdict == "reproduced"
        and _same(other.request.job, run.request.job)
    )
    return next(same, None)


def _same(one: Job, other: Job) -> bool:
    issue = (one.issue.title, one.issue.body) == (other.issue.title, other.issue.body)
    options = one.options.model_dump(exclude=_FOLLOWS)
    return issue and options == other.options.model_dump(exclude=_FOLLOWS)
