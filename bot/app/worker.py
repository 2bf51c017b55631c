"""The App as a worker calls it: one task at a time, and what is overdue."""

from __future__ import annotations

import logging
import signal
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from random import uniform
from threading import Event, Lock, Thread, current_thread, main_thread
from time import monotonic

from bot.app import publish
from bot.app.context import AppContext, heartbeat, new_owner
from bot.app.deliveries import handle
from bot.app.execute_run import execute
from bot.app.memory import give_back
from bot.app.ports import (
    ALARM_S,
    CREDENTIALS_ALARM,
    CredentialsRefused,
    Device,
    GoneError,
    Handler,
    Hook,
    PeriodicTask,
    Queue,
    Task,
    Throttled,
)
from bot.app.telemetry import work_ids
from bot.kernel.errors import RepriseError, TransientError, UserError
from bot.kernel.redaction import redact

# The App as a worker calls it: it handles one task at a time, and what is overdue.

_log = logging.getLogger(__name__)
_REAP_S = 5.0
_PROBE_S = 60.0
_SWEEP_S = 30.0
_GIVE_BACK_S = 30.0
_PRUNE_S = 6 * 3600.0
_AGAIN_S = 15.0
_MOST_TURNS = 40
_MOST_GONE = 4  # what GitHub does not know a moment after it told of it may still come
_LOOK_BACK = timedelta(hours=71)  # GitHub keeps deliveries for three days
_RECONCILED, _IN_TURN = "reconcile", 0.8  # the share of a period in which nobody follows
_IN_FLIGHT = timedelta(seconds=30)  # GitHub waits ten for an answer
_MOST = 50
_LEAST_PAUSE, _MOST_PAUSE = timedelta(minutes=1), timedelta(hours=2)  # it doubles each time


class Service:
    """Handles tasks and periodic work."""

    def __init__(self, context: AppContext, *, reconcile_s: float = 300.0) -> None:
        self.context = context
        self._reconcile_s = reconcile_s
        self._new = True
        self._spares_until = 0.0

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
            PeriodicTask("reap", _REAP_S, self._reap),
            PeriodicTask("probe", _PROBE_S, lambda: probe(self.context)),
            PeriodicTask("reconcile", self._reconcile_s, self._reconcile),
            PeriodicTask("sweep", _SWEEP_S, lambda: publish.sweep_due(self.context)),
            PeriodicTask("memory", _GIVE_BACK_S, give_back),
            PeriodicTask("prune", _PRUNE_S, lambda: prune(self.context)),
        )

    def _reap(self) -> None:
        try:
            reap(self.context, restarted=self._new, leases=monotonic() >= self._spares_until)
        except TransientError:
            # While the store was away nobody could renew a lease: whoever lives does it now.
            self._spares_until = monotonic() + self.context.policy.lease_s
            raise
        self._new = False

    def _reconcile(self) -> None:
        """One of all workers does it: it may take many requests of the App's own allowance."""
        store = self.context.store
        if not store.shared(_RECONCILED, _IN_TURN * self._reconcile_s):
            store.share(_RECONCILED, "begun")
            reconcile(self.context)

    def _describe(self, error: Exception) -> str:
        return redact(f"{type(error).__name__}: {error}", self.context.policy.secrets)[:500]

    def _delivery(self, task: Task) -> None:
        owner, store, lease_s = new_owner(), self.context.store, self.context.policy.lease_s
        delivery = store.take_delivery(task.id, owner, lease_s)
        if delivery is None:
            return
        work = self.context.telemetry.work("delivery", task.id, turn=task.turn)
        renew = partial(store.renew_delivery, task.id, owner, lease_s)
        try:
            with work, heartbeat(renew, lease_s / 4):
                handle(self.context, delivery)
        except CredentialsRefused:
            self._defer(task, owner, _patience(task.turn + 2), refused=True)
        except Throttled as error:
            self._defer(task, owner, error.after_s)
        except TransientError as error:
            most = _MOST_GONE if isinstance(error, GoneError) else _MOST_TURNS
            if task.turn < most:
                self._defer(task, owner, _patience(task.turn))
            else:
                self._give_up(task, owner, str(error))
        except UserError as error:
            self._give_up(task, owner, f"{error} {error.fix}")
        except Exception as error:
            store.finish_delivery(task.id, owner, self._describe(error))
            raise
        else:
            store.finish_delivery(task.id, owner)

    def _give_up(self, task: Task, owner: str, why: str) -> None:
        _log.warning("delivery %s is not handled: %s", task.id, why)
        self.context.store.finish_delivery(task.id, owner, why)

    def _defer(self, task: Task, owner: str, after_s: float, *, refused: bool = False) -> None:
        turn = self.context.store.defer_delivery(task.id, owner, after_s, refused=refused)
        self.context.queue.offer(task.model_copy(update={"turn": turn}), after_s)


def _patience(turn: int) -> float:
    return _AGAIN_S * float(2 ** min(turn, 6))


def reap(context: AppContext, *, restarted: bool = False, leases: bool = True) -> int:
    """Offer overdue tasks again; returns how many. With `leases` also those whose lease ran out.
    Those whose credentials GitHub refused are due once it accepts them, or a process starts that
    may have others.
    """
    accepted = restarted or not context.store.shared(CREDENTIALS_ALARM, ALARM_S)
    overdue = context.store.overdue(context.policy.unheard_s, refused=accepted, leases=leases)
    for task in overdue:
        _log.info("offered again: %s %s, turn %d", task.kind, task.id, task.turn)
        context.queue.offer(task)
    return len(overdue)


def probe(context: AppContext) -> None:
    """While GitHub refuses the credentials, ask whether it still does: nothing else may."""
    if context.store.shared(CREDENTIALS_ALARM, ALARM_S):
        context.github.hooks(datetime.fromtimestamp(context.now(), UTC))


def reconcile(context: AppContext) -> int:
    """Ask GitHub to resend deliveries that we never stored, for as long as it keeps them; returns
    how many. Young attempts may still be in flight.
    """
    now = datetime.fromtimestamp(context.now(), UTC)
    tries: dict[str, list[Hook]] = {}
    for hook in sorted(context.github.hooks(now - _LOOK_BACK), key=lambda hook: hook.at):
        tries.setdefault(hook.guid, []).append(hook)
    failed = [attempts for attempts in tries.values() if not any(hook.ok for hook in attempts)]
    pauses = [max(_IN_FLIGHT, _pause(len(attempts))) for attempts in failed]
    missed_hooks = [
        attempts[-1]
        for attempts, pause in zip(failed, pauses, strict=True)
        if attempts[-1].at <= now - pause
    ]
    handled = context.store.seen([hook.guid for hook in missed_hooks])
    hooks = [hook for hook in missed_hooks if hook.guid not in handled][:_MOST]
    for hook in hooks:
        _log.info("asked GitHub for delivery %s (%s) again", hook.guid, hook.event)
        context.github.redeliver(hook.id)
    return len(hooks)


def _pause(tries: int) -> timedelta:
    """How long a delivery that failed so often rests: at first not at all."""
    return min(_LEAST_PAUSE * 2 ** min(tries - 1, 8), _MOST_PAUSE) if tries > 1 else timedelta()


def prune(context: AppContext) -> int:
    """Delete what is older than the host keeps."""
    return context.store.prune(
        datetime.fromtimestamp(context.now(), UTC) - timedelta(days=context.policy.keep_days)
    )


# A worker: hands tasks to a handler, runs periodic tasks, and stops as it is asked to.

_POLL_S = 0.1
_FIRST_S = 2.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(
    handle: Handler,
    queue: Queue,
    *,
    device: Device,
    slots: int,
    ticks: Sequence[PeriodicTask] = (),
    stop: Event | None = None,
    grace_s: float = 20.0,
    secrets: Sequence[str] = (),
    once_s: float | None = None,
) -> None:
    """Work until `stop` is set or a signal comes. Tasks in progress then have `grace_s` seconds
    to end, after which their events are set. A second signal sets the events at once, a third
    ends the process. With `once_s`, take no more after the first run, or where none came within
    so many seconds, and wait for what is in progress.

    Only the main thread receives signals: inside a server they are the server's. `secrets` are
    kept out of the log. Raises what escapes `queue.work`.
    """
    stop = stop or Event()
    active = _ActiveTasks(handle, secrets, stop if once_s is not None else None)
    _log.info("worker started device=%s slots=%d", device, slots)
    with _signals() as signals, ThreadPoolExecutor(1, thread_name_prefix="worker") as threads:
        working = threads.submit(queue.work, active.handle, device=device, slots=slots, stop=stop)
        with _periodic(ticks, stop, secrets):
            try:
                _supervise(working, active, stop, signals, grace_s, once_s)
            finally:
                stop.set()
                active.abort()
    _log.info("worker stopped device=%s", device)
    working.result()


def _supervise(
    working: Future[None],
    active: _ActiveTasks,
    stop: Event,
    signals: Sequence[int],
    grace_s: float,
    once_s: float | None,
) -> None:
    """Watch from outside, so that no lock is held where a signal may interrupt."""
    began, ends_at = monotonic(), None
    while not working.done():
        wait([working], _POLL_S)
        is_asked = bool(signals) or (once_s is None and stop.is_set())
        if is_asked or (once_s is not None and monotonic() - began > once_s):
            stop.set()
        if ends_at is None and is_asked:
            ends_at = monotonic() + grace_s
            _log.info("worker stopping under_way=%d grace_s=%.0f", len(active.events), grace_s)
        if ends_at is not None and (len(signals) > 1 or monotonic() >= ends_at):
            active.abort()


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals received so far. After the second, the system handles them again."""
    signals: list[int] = []
    if current_thread() is not main_thread():
        yield signals
        return
    before = {number: signal.signal(number, partial(_receive, signals)) for number in _SIGNALS}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _receive(signals: list[int], number: int, _frame: object) -> None:
    signals.append(number)
    if len(signals) > 1:
        for again in _SIGNALS:
            signal.signal(again, signal.SIG_DFL)


class _ActiveTasks:
    """The tasks in progress: each is logged, and all can be aborted at once. The first run sets
    `once`.
    """

    def __init__(self, handle: Handler, secrets: Sequence[str], once: Event | None) -> None:
        self._handle, self._secrets, self._once = handle, secrets, once
        self._lock = Lock()
        self.events: list[Event] = []
        self._aborted = False

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            for event in self.events:
                event.set()

    def handle(self, task: Task, event: Event) -> None:
        with self._lock:
            self.events.append(event)
            if self._once is not None and task.kind == "run":
                self._once.set()
            if self._aborted:
                event.set()
        try:
            with work_ids(**{task.kind: task.id}):
                self._logged(task, event)
        finally:
            with self._lock:
                self.events.remove(event)

    def _logged(self, task: Task, event: Event) -> None:
        name, began = f"kind={task.kind} id={task.id} turn={task.turn}", monotonic()
        _log.info("task taken %s", name)
        try:
            self._handle(task, event)
            _log.info("task done %s seconds=%.2f", name, monotonic() - began)
        except Exception as error:
            seconds, text = monotonic() - began, _describe_error(error, self._secrets)
            _log.error("task failed %s seconds=%.2f error=%s", name, seconds, text)


@contextmanager
def _periodic(ticks: Sequence[PeriodicTask], stop: Event, secrets: Sequence[str]) -> Iterator[None]:
    threads = [
        Thread(target=_repeat, args=(tick, stop, secrets), name=tick.name, daemon=True)
        for tick in ticks
    ]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(_POLL_S)  # one that waits for an answer from outside is left behind


def _repeat(tick: PeriodicTask, stop: Event, secrets: Sequence[str]) -> None:
    """Run a periodic task soon, then every so often, out of step with other workers. An error
    skips this one time.
    """
    pause = uniform(0.0, min(tick.every_s, _FIRST_S))  # noqa: S311  # no secret
    while not stop.wait(pause):
        try:
            tick.do()
        except Exception as error:
            _log.error("tick failed name=%s error=%s", tick.name, _describe_error(error, secrets))
        pause = tick.every_s * uniform(0.9, 1.1)  # noqa: S311


def _describe_error(error: Exception, secrets: Sequence[str]) -> str:
    """One line for an expected error, the traceback for a defect; without secrets."""
    if isinstance(error, RepriseError):
        text = f"{type(error).__name__}: {error}"
    else:
        text = "".join(traceback.format_exception(error))
    return redact(text.strip(), secrets)
