"""The time that a question has left, and whether somebody asked to stop."""

from __future__ import annotations

from threading import Event
from time import monotonic

from bot.adapters.model.halts import OutOfTime
from bot.errors import Stopped


class Watch:
    """One deadline for everything done for one model: calls, retries and waits share it. Seconds."""

    def __init__(self, seconds: float, cancel: Event) -> None:
        self._seconds = seconds
        self._end = monotonic() + seconds
        self._cancel = cancel

    @property
    def left(self) -> float:
        """Seconds left, 0 when none are."""
        return max(0.0, self._end - monotonic())

    def check(self) -> None:
        """Raises Stopped when somebody asked to stop, OutOfTime when the time is used up."""
        if self._cancel.is_set():
            raise Stopped("asking the model was cancelled")
        if not self.left:
            raise OutOfTime(f"no answer within {round(self._seconds, 1):g} s")

    def sleep(self, seconds: float) -> None:
        """Wait, and leave early when somebody asks to stop."""
        self._cancel.wait(min(seconds, self.left))
        self.check()
