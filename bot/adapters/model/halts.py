"""Why a call brought no answer, and so what to do next: once more, the next model, or none."""

from __future__ import annotations

from bot.models.dialogue import Usage


class Halted(Exception):
    """Root of the reasons; `usage` is what the call used all the same, without its price."""

    def __init__(self, reason: str, usage: Usage | None = None) -> None:
        super().__init__(reason)
        self.usage = usage or Usage()


class Lost(Halted):
    """The answer broke off or stalled after the model had begun: it may have been paid for. Another call may work."""


class Refused(Halted):
    """This model will not answer, whatever is tried."""


class OutOfTime(Halted):
    """The time for this model is used up."""


class Rejected(Exception):
    """No success, before a word was said: nothing was paid for. `after` is the wait that is asked for, in seconds."""

    def __init__(self, status: int, said: str, after: float | None = None) -> None:
        super().__init__(f"{status}" + (f": {said}" if said else ""))
        self.status, self.said, self.after = status, said, after


class Unreached(Exception):
    """No connection, or one that ended before any answer."""
