"""The engine's Recorder over the store: a run that was killed resumes from its attempts."""

from bot.errors import Stopped
from bot.models.attempt import Attempt, Script
from bot.models.dialogue import Exchange
from bot.render.log import log_text
from bot.service.ports.store import ResultStore
from sandbox.port import RunResult


class StoreRecorder:
    """Stores the attempts of one leased run. Raises Stopped once the lease is lost to another
    worker.
    """

    def __init__(self, store: ResultStore, run: str, owner: str) -> None:
        self._store, self._run, self._owner = store, run, owner
        self._attempts = {attempt.number: attempt for attempt in store.attempts(run)}
        self._open: dict[int, tuple[Script, str]] = {}
        self.count = len(self._attempts)

    def log(self, number: int, script: Script, result: RunResult) -> str:
        """Remember the streams until their attempt is stored."""
        self._open[number] = (script, log_text(script, result))
        return f"logs/{number:03d}.log"

    def attempt(self, attempt: Attempt) -> None:
        """Store one attempt; delete an earlier process's attempts from this number on."""
        script, log = self._open.pop(attempt.number)
        if any(number >= attempt.number for number in self._attempts):
            self._require(self._store.forget_attempts(self._run, self._owner, attempt.number - 1))
            self._attempts = {}
        self._require(self._store.note_attempt(self._run, self._owner, attempt, script, log))
        self.count = attempt.number

    def recall(self, number: int) -> Attempt | None:
        """The attempt that an earlier process stored under this number."""
        return self._attempts.get(number)

    def program(self, number: int) -> Script | None:
        """The program of a stored attempt."""
        return self._store.script(self._run, number)

    def exchange(self, exchange: Exchange) -> None:
        """Store a question to a model and its answer."""
        self._require(self._store.note_exchange(self._run, self._owner, exchange))

    def exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges that earlier processes of this run stored."""
        return self._store.exchanges(self._run)

    @staticmethod
    def _require(leased: bool) -> None:
        if not leased:
            raise Stopped("another worker has taken over")
