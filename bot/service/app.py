"""The App: looks at one task at a time, and at what is overdue. All that a worker calls."""

from __future__ import annotations

import logging
from threading import Event

from bot.errors import TransientError, UserError
from bot.render.sanitize import redact
from bot.service import reaping
from bot.service.consider import consider
from bot.service.lease import kept
from bot.service.office import Office, owner
from bot.service.perform import perform
from bot.service.ports import Gone, Task, Throttled, Tick

_log = logging.getLogger(__name__)
_REAP_S = 5.0
_PRUNE_S = 6 * 3600.0
_AGAIN_S = 15.0
_MOST_TURNS = 40


class Service:
    """The App over its office."""

    def __init__(self, office: Office, *, reconcile_s: float = 300.0) -> None:
        self.office = office
        self._reconcile_s = reconcile_s

    def handle(self, task: Task, stop: Event) -> None:
        """Look at a task. This is the boundary of a job: whatever goes wrong here is kept with what was looked at."""
        try:
            if task.kind == "delivery":
                self._delivery(task)
            else:
                perform(self.office, task.id, stop)
        except TransientError as error:
            _log.warning("%s %s: %s", task.kind, task.id, error)  # the lease runs out, then it is offered again
        except Exception as error:
            _log.error("%s %s broke off: %s", task.kind, task.id, self._said(error), exc_info=True)

    def ticks(self) -> tuple[Tick, ...]:
        """What a worker does now and then."""
        return (
            Tick("reap", _REAP_S, lambda: reaping.reap(self.office)),
            Tick("reconcile", self._reconcile_s, lambda: reaping.reconcile(self.office)),
            Tick("prune", _PRUNE_S, lambda: reaping.prune(self.office)),
        )

    def _said(self, error: Exception) -> str:
        return redact(f"{type(error).__name__}: {error}", self.office.house.secrets)[:500]

    def _delivery(self, task: Task) -> None:
        me, store, lease_s = owner(), self.office.store, self.office.house.lease_s
        delivery = store.take_delivery(task.id, me, lease_s)
        if delivery is None:
            return
        try:
            with kept(lambda: store.renew_delivery(task.id, me, lease_s), lease_s / 4):
                consider(self.office, delivery)
        except Throttled as error:
            self._later(task, me, error.after_s)
        except Gone as error:
            store.finish_delivery(task.id, me, f"nothing there any more: {error}")
        except TransientError as error:
            if task.turn >= _MOST_TURNS:
                store.finish_delivery(task.id, me, str(error))
            else:
                self._later(task, me, _AGAIN_S * 2 ** min(task.turn, 6))
        except UserError as error:
            store.finish_delivery(task.id, me, f"{error} {error.fix}")
        except Exception as error:
            store.finish_delivery(task.id, me, self._said(error))
            raise
        else:
            store.finish_delivery(task.id, me)

    def _later(self, task: Task, me: str, after_s: float) -> None:
        turn = self.office.store.defer_delivery(task.id, me, after_s)
        self.office.queue.offer(task.model_copy(update={"turn": turn}), after_s)
