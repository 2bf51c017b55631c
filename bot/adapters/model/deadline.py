"""The time left for a question, and the request to cancel it."""

from __future__ import annotations

from threading import Event
from time import monotonic

from bot.adapters.model.failures import DeadlineExceeded
from bot.errors import Stopped


class Deadline:
    """One deadline for everything one model does: calls, retries and waits share it. Seconds."""

    def __init__(self, seconds: float, cancel: Event) -> None:
        self._seconds = seconds
        self._end = monotonic() + seconds
        self._cancel = cancel

    @property
    def left(self) -> float:
        """Seconds left, 0 after the deadline."""
        return max(0.0, self._end - monotonic())

    def check(self) -> None:
        """Raises Stopped after a cancel, DeadlineExceeded after the deadline."""
        if self._cancel.is_set():
            raise Stopped("The question to the model was cancelled.")
        if not self.left:
            raise DeadlineExceeded(f"no answer within {round(self._seconds, 1):g} s")

    def sleep(self, seconds: float) -> None:
        """Wait, but return early with an error after a cancel."""
        self._cancel.wait(min(seconds, self.left))
        self.check()
