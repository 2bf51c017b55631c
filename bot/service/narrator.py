"""Keeps a run's lease and tells its issue what goes on, while the engine works in another thread."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from threading import Event, Thread
from time import monotonic
from typing import Self

from bot.errors import TransientError, UserError
from bot.models.run import Run
from bot.ports import Progress
from bot.progress import sentence
from bot.render import sticky
from bot.service import publish
from bot.service.office import Office
from bot.service.recording import StoreRecorder

_log = logging.getLogger(__name__)
_FIRST_S = 1.0  # what is over sooner needs no word in between


class Narrator(AbstractContextManager["Narrator"]):
    """The engine's Listener of one run. `lost` when another worker has taken over, `over_time` when the run took too long.

    Sets `cancel` when somebody asked to stop, when the lease is lost, when `stop` is set, or when the time is up.
    """

    def __init__(self, office: Office, run: Run, me: str, recorder: StoreRecorder, cancel: Event, stop: Event) -> None:
        self._office, self._run, self._me, self._recorder, self._cancel, self._stop = office, run, me, recorder, cancel, stop
        self._ended = Event()
        self._thread = Thread(target=self._narrate, name=f"narrator-{run.id[:8]}", daemon=True)
        self._now = Progress(stage="intake", text="starting")
        self._told = ""
        self._edited = float("-inf")
        self._began = self._beaten = monotonic()
        self.lost = False
        self.over_time = False

    def __call__(self, progress: Progress) -> None:
        """Hear one line; it is told with the next beat."""
        self._now = progress

    def __enter__(self) -> Self:
        """Begin to keep the lease."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """The engine is done: no word after this."""
        self._ended.set()
        self._thread.join()
        self._beat()

    def _narrate(self) -> None:
        wait = min(_FIRST_S, self._office.house.beat_s)
        while not self._ended.wait(wait):
            wait = self._office.house.beat_s
            self._beat()
            if monotonic() - self._edited >= self._office.house.edit_s and not self._cancel.is_set():
                self._edit()

    def _beat(self) -> None:
        """Renew the lease; a store that does not answer costs the lease in the end, not the run's thread."""
        now = monotonic()
        try:
            progress = self._now
            beat = self._office.store.beat(
                self._run.id, self._me, self._office.house.lease_s, progress.stage, sentence(progress), now - self._beaten
            )
        except TransientError as error:
            _log.warning("run %s: no heartbeat: %s", self._run.id, error)
            return
        self._beaten = now
        self.lost = self.lost or beat.lost
        self.over_time = now - self._began > self._office.house.run_minutes * 60
        if self.lost or self.over_time or beat.cancel or self._stop.is_set():
            self._cancel.set()

    def _edit(self) -> None:
        """A word on the issue. It is no loss when it cannot be had: the next one tells more."""
        self._edited = monotonic()
        current = self._office.store.run(self._run.id) or self._run
        body = sticky.working(
            current,
            ahead=0,
            page=self._office.page(current),
            elapsed_s=monotonic() - self._began,
            attempts=self._recorder.count,
        )
        if body == self._told:
            return
        try:
            publish.show(self._office, self._run, body, revive=False)
            self._told = body
        except (TransientError, UserError) as error:
            _log.info("run %s: progress not told: %s", self._run.id, error)
