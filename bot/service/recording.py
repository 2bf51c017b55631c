"""The engine's Recorder over the store: a run that was killed resumes from its attempts."""

from typing_extensions import override

from bot.errors import Stopped
from bot.models.attempt import Attempt, Script
from bot.models.dialogue import Exchange
from bot.ports import Recorder
from bot.render.log import log_text
from bot.service.ports.store import ResultStore
from sandbox.port import RunResult


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
