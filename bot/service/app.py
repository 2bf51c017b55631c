"""The App as a worker calls it: it handles one task at a time, and what is overdue."""

import logging
from threading import Event

from bot.errors import TransientError, UserError
from bot.service import reaping
from bot.service.app_context import AppContext, new_owner
from bot.service.execute_run import execute
from bot.service.handle_delivery import handle
from bot.service.heartbeat import heartbeat
from bot.service.ports.github import Gone, Throttled
from bot.service.ports.tasks import PeriodicTask, Task
from bot.text.sanitize import redact

_log = logging.getLogger(__name__)
_REAP_S = 5.0
_PRUNE_S = 6 * 3600.0
_AGAIN_S = 15.0
_MOST_TURNS = 40


class Service:
    """Handles tasks and periodic work."""

    def __init__(self, context: AppContext, *, reconcile_s: float = 300.0) -> None:
        self.context = context
        self._reconcile_s = reconcile_s

    def handle(self, task: Task, stop: Event) -> None:
        """Handle a task. This is the error boundary of a job: errors are stored with what was
        handled.
        """
        try:
            if task.kind == "delivery":
                self._delivery(task)
            else:
                execute(self.context, task.id, stop)
        except TransientError as error:
            _log.warning(
                "%s %s: %s", task.kind, task.id, error
            )  # the lease runs out, then it is offered again
        except Exception as error:
            _log.error("%s %s failed: %s", task.kind, task.id, self._describe(error), exc_info=True)

    def ticks(self) -> tuple[PeriodicTask, ...]:
        """The periodic work of a worker."""
        return (
            PeriodicTask("reap", _REAP_S, lambda: reaping.reap(self.context)),
            PeriodicTask("reconcile", self._reconcile_s, lambda: reaping.reconcile(self.context)),
            PeriodicTask("prune", _PRUNE_S, lambda: reaping.prune(self.context)),
        )

    def _describe(self, error: Exception) -> str:
        return redact(f"{type(error).__name__}: {error}", self.context.policy.secrets)[:500]

    def _delivery(self, task: Task) -> None:
        owner, store, lease_s = new_owner(), self.context.store, self.context.policy.lease_s
        delivery = store.take_delivery(task.id, owner, lease_s)
        if delivery is None:
            return
        try:
            with heartbeat(lambda: store.renew_delivery(task.id, owner, lease_s), lease_s / 4):
                handle(self.context, delivery)
        except Throttled as error:
            self._defer(task, owner, error.after_s)
        except Gone as error:
            store.finish_delivery(task.id, owner, f"gone from GitHub: {error}")
        except TransientError as error:
            if task.turn >= _MOST_TURNS:
                store.finish_delivery(task.id, owner, str(error))
            else:
                self._defer(task, owner, _AGAIN_S * 2 ** min(task.turn, 6))
        except UserError as error:
            store.finish_delivery(task.id, owner, f"{error} {error.fix}")
        except Exception as error:
            store.finish_delivery(task.id, owner, self._describe(error))
            raise
        else:
            store.finish_delivery(task.id, owner)

    def _defer(self, task: Task, owner: str, after_s: float) -> None:
        turn = self.context.store.defer_delivery(task.id, owner, after_s)
        self.context.queue.offer(task.model_copy(update={"turn": turn}), after_s)
