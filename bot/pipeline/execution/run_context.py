"""What a job runs with: the job, the ports, and a limit that can interrupt it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from time import monotonic

from bot.errors import Stopped
from bot.models.job import Job
from bot.models.note import Interruption
from bot.ports import Ports

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class RunContext:
    """The job and the ports. A context derived by `within` has a cancel flag of its own."""

    job: Job
    ports: Ports
    expired: Event = field(default_factory=Event)

    @property
    def interruption(self) -> Interruption:
        """Why work in this context stopped, once it has."""
        return Interruption.OUT_OF_TIME if self.expired.is_set() else Interruption.STOPPED

    def check(self) -> None:
        """Raise Stopped once the cancel flag is set."""
        if self.ports.cancel.is_set():
            raise Stopped(self.interruption)

    @contextmanager
    def within(self, seconds: float) -> Iterator[RunContext]:
        """A context whose cancel flag is also set after `seconds`.

        It interrupts builds and runs too: they raise Stopped, and `interruption` says why.
        """
        limited = replace(self, ports=replace(self.ports, cancel=Event()), expired=Event())
        deadline, done = monotonic() + seconds, Event()

        def watch() -> None:
            while not done.wait(_POLL_S):
                cancelled = self.ports.cancel.is_set()
                if cancelled or monotonic() > deadline:
                    if not cancelled or self.expired.is_set():
                        limited.expired.set()
                    limited.ports.cancel.set()
                    return

        watcher = Thread(target=watch, name="limit", daemon=True)
        watcher.start()
        try:
            yield limited
        finally:
            done.set()
            watcher.join()
