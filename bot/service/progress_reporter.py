"""Keeps a run's lease and shows its progress on the issue, from a thread beside the engine's."""

import logging
from contextlib import AbstractContextManager
from threading import Event, Thread
from time import monotonic
from typing import Self

from bot.errors import TransientError, UserError
from bot.models.run import Run
from bot.ports import Progress
from bot.render import sticky
from bot.render.phrases.requests import progress_line
from bot.service import publish
from bot.service.app_context import AppContext
from bot.service.recording import StoreRecorder

_log = logging.getLogger(__name__)
_FIRST_S = 1.0  # a shorter run needs no progress comment


class ProgressReporter(AbstractContextManager["ProgressReporter"]):
    """The engine's Listener for one run. `lost`: another worker has taken over; `over_time`: the
    run exceeded its time limit.

    Sets `cancel` when someone cancels the run, the lease is lost, `stop` is set or the time is up.
    """

    def __init__(
        self,
        context: AppContext,
        run: Run,
        owner: str,
        recorder: StoreRecorder,
        cancel: Event,
        stop: Event,
    ) -> None:
        self._context, self._run, self._owner = context, run, owner
        self._recorder, self._cancel, self._stop = recorder, cancel, stop
        self._ended = Event()
        self._thread = Thread(target=self._report, name=f"progress-{run.id[:8]}", daemon=True)
        self._now, self._shown = Progress(stage="intake", text="starting"), ""
        self._edited = float("-inf")
        self._began = self._last_beat = monotonic()
        self.lost = self.over_time = False

    def __call__(self, progress: Progress) -> None:
        """Take one progress line; the next heartbeat stores it."""
        self._now = progress

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._beat()

    def _report(self) -> None:
        wait = min(_FIRST_S, self._context.policy.beat_s)
        while not self._ended.wait(wait):
            wait = self._context.policy.beat_s
            self._beat()
            if (
                monotonic() - self._edited >= self._context.policy.edit_s
                and not self._cancel.is_set()
            ):
                self._edit()

    def _beat(self) -> None:
        """Renew the lease. An unreachable store costs the lease in the end, not the thread."""
        now = monotonic()
        try:
            progress = self._now
            beat = self._context.store.beat(
                self._run.id,
                self._owner,
                self._context.policy.lease_s,
                progress.stage,
                progress_line(progress),
                now - self._last_beat,
            )
        except TransientError as error:
            _log.warning("run %s: no heartbeat: %s", self._run.id, error)
            return
        self._last_beat = now
        self.lost = self.lost or beat.lost
        self.over_time = now - self._began > self._context.policy.run_minutes * 60
        if self.lost or self.over_time or beat.cancel or self._stop.is_set():
            self._cancel.set()

    def _edit(self) -> None:
        """Update the comment. A failure does no harm: the next update says more."""
        self._edited, current = monotonic(), self._context.store.run(self._run.id) or self._run
        body = sticky.working(
            current,
            ahead=0,
            page=self._context.page(current),
            elapsed_s=monotonic() - self._began,
            attempts=self._recorder.count,
        )
        if body == self._shown:
            return
        try:
            publish.show(self._context, self._run, body, revive=False)
            self._shown = body
        except (TransientError, UserError) as error:
            _log.info("run %s: progress is not on GitHub: %s", self._run.id, error)
