"""The queue between processes, on Redis in the format of arq; what only offers never imports arq."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from time import monotonic
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as Silent
from redis.retry import Retry

from bot.adapters.queues import wire
from bot.adapters.queues.underway import Lane, lane
from bot.errors import TransientError, UserError
from bot.service.ports import Device, Handler, Task

_CONNECT_S, _ANSWER_S = 0.5, 1.0  # an offer must not keep GitHub waiting; what is lost is offered again from the store
_REST_S = 1.0
_KEEP_MS = 7 * 86_400_000
_MOST_AT_ONCE = 8  # each round trip lets go of Python's lock, so that the web process can answer in between


class ArqQueue:
    """Tasks in Redis at `url` (redis://, rediss:// or unix://, with everything redis-py reads from it).

    Raises UserError for an address that is none. Connects when first used.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            self._redis = Redis.from_url(
                url,
                socket_connect_timeout=_CONNECT_S,
                socket_timeout=_ANSWER_S,
                socket_keepalive=True,
                retry=Retry(NoBackoff(), 1, (Disconnected,)),  # a connection that Redis closed meanwhile, not one that is slow
                retry_on_error=[Disconnected],
            )
        except ValueError:  # its words may hold the part of a password that it took for a port
            raise UserError(
                "The address of Redis cannot be read.", "Set REPRISE_REDIS_URL to redis://:PASSWORD@HOST:6379/0."
            ) from None
        where = self._redis.connection_pool.connection_kwargs
        self._where = str(where.get("path") or f"{where.get('host', 'localhost')}:{where.get('port', 6379)}")
        self._rests_until = 0.0

    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        """Keep a task until it is due, in one round trip. Offered again while it waits, it is due at the earlier of the two
        times.
        """
        self._offer([task], int(max(delay_s, 0.0) * 1000))

    def offer_all(self, tasks: Sequence[Task]) -> None:
        """The same for several that are due now, a few in a round trip."""
        for at in range(0, len(tasks), _MOST_AT_ONCE):
            self._offer(tasks[at : at + _MOST_AT_ONCE], 0)

    def _offer(self, tasks: Sequence[Task], delay_ms: int) -> None:
        def do(redis: Any) -> None:
            offered: dict[Lane, dict[str, float]] = {lane(task): {} for task in tasks}
            with redis.pipeline(transaction=True) as pipe:
                for task, due in zip(tasks, wire.scores(delay_ms), strict=False):
                    offered[lane(task)].setdefault(wire.name(task), due)
                    pipe.set(wire.JOB + wire.name(task), wire.job_of(task), px=delay_ms + _KEEP_MS)
                for each, names in offered.items():
                    pipe.zadd(wire.queue_of(each), names, lt=True)
                    if not delay_ms:
                        pipe.publish(wire.offers_of(each), b"")
                pipe.execute()

        self._ask(do)

    def abort(self, task: Task) -> None:
        """Tell every worker; whoever handles it stops. Nothing is kept: arq's own aborts would drop what waits."""
        self._ask(lambda redis: redis.publish(wire.ABORTS, f"{task.kind}:{task.id}"))

    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        """Run a worker of arq in this thread until `stop`; then wait for those under way."""
        from bot.adapters.queues.arq_worker import work

        work(self._url, handle, device=device, slots=slots, stop=stop)

    def close(self) -> None:
        """Let go of connections."""
        self._redis.close()

    def _ask(self, do: Callable[[Any], object]) -> None:
        """Raises TransientError within 2 s; for a moment after a silence at once, so that callers do not pile up."""
        if monotonic() < self._rests_until:
            raise self._away("Silent")
        try:
            do(self._redis)
        except (RedisError, OSError) as error:
            if isinstance(error, Silent):
                self._rests_until = monotonic() + _REST_S
            raise self._away(type(error).__name__) from None

    def _away(self, why: str) -> TransientError:
        return TransientError(f"Redis at {self._where} does not answer ({why}).", "What is stored is offered again later.")
