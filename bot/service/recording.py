"""The engine's Recorder over the store: attempts are kept as they happen, and a run that was killed goes on from them."""

from __future__ import annotations

from bot.errors import Stopped
from bot.models.attempt import Attempt, Script
from bot.models.dialogue import Exchange
from bot.render.log import log_text
from bot.service.ports import Store
from sandbox.port import RunResult


class StoreRecorder:
    """Keeps the attempts of one leased run. Raises Stopped once the lease is lost: another worker goes on with the run."""

    def __init__(self, store: Store, run: str, owner: str) -> None:
        self._store, self._run, self._owner = store, run, owner
        self._kept = {attempt.number: attempt for attempt in store.attempts(run)}
        self._open: dict[int, tuple[Script, str]] = {}
        self.count = len(self._kept)

    def log(self, number: int, script: Script, result: RunResult) -> str:
        """Hold the streams until the attempt they belong to is kept."""
        self._open[number] = (script, log_text(script, result))
        return f"logs/{number:03d}.log"

    def attempt(self, attempt: Attempt) -> None:
        """Keep one attempt, and forget what an earlier process kept from here on."""
        script, log = self._open.pop(attempt.number)
        if any(number >= attempt.number for number in self._kept):
            self._held(self._store.forget_attempts(self._run, self._owner, attempt.number - 1))
            self._kept = {}
        self._held(self._store.note_attempt(self._run, self._owner, attempt, script, log))
        self.count = attempt.number

    def recall(self, number: int) -> Attempt | None:
        """What an earlier process kept of this run."""
        return self._kept.get(number)

    def program(self, number: int) -> Script | None:
        """The program of such an attempt."""
        return self._store.script(self._run, number)

    def exchange(self, exchange: Exchange) -> None:
        """Keep what a model was asked and answered."""
        self._held(self._store.note_exchange(self._run, self._owner, exchange))

    def exchanges(self) -> tuple[Exchange, ...]:
        """What an earlier process asked for this run and was told."""
        return self._store.exchanges(self._run)

    @staticmethod
    def _held(held: bool) -> None:
        if not held:
            raise Stopped("another worker has taken over")
