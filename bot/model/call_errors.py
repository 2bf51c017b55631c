"""Why one model gave no answer, and the deadline that all it does shares."""

from threading import Event
from time import monotonic

from bot.kernel.dialogue import Usage
from bot.kernel.errors import Stopped


class CallFailed(Exception):
    """Root of the failures of one model; `usage` is what was used until then."""

    def __init__(self, reason: str, usage: Usage | None = None) -> None:
        super().__init__(reason)
        self.usage = usage or Usage()


class AnswerLost(CallFailed):
    """The answer broke off or stalled: it may have been paid for. Another call may work."""


class ModelRefused(CallFailed):
    """This model will not answer, whatever is tried."""


class DeadlineExceeded(CallFailed):
    """The time for this model is used up."""


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
