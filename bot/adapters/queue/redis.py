"""The queue between processes: one sorted set in Redis for each lane, scored by due time.

A worker takes a task by removing it, and only the one whose ZREM counts has it; from then on the
store's lease says who works on it. Nothing is left in Redis that a killed worker would block, and
a lost message is offered again by the reaper.

arq's worker does not fit here: an error of Redis ends its loop and cancels the jobs in flight; a
killed worker's jobs stay blocked until their longest timeout has passed; and cancelling its
coroutines does not stop the threads that our jobs run in. So this uses redis-py alone.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Condition, Event, Thread
from time import monotonic, time
from typing import Any

from pydantic import ValidationError
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected, RedisError, TimeoutError as Silent
from redis.retry import Retry
from typing_extensions import override

from bot.adapters.queue.in_flight import Dispatcher, InFlight, Lane, lane_of
from bot.errors import TransientError, UserError
from bot.service.ports import Device, Handler, Queue, Task

ABORTS = "reprise:aborts"
# An offer must not keep GitHub waiting.
_CONNECT_S, _ANSWER_S = 0.5, 1.0
_REST_S = 1.0
_POLL_S = 0.1
_AWAY_S = 0.5
_log = logging.getLogger(__name__)


class RedisQueue(Queue):
    """Tasks in Redis at `url` (redis://, rediss:// or unix://, with everything redis-py reads
    from it). Connects when first used.

    Raises UserError for an invalid address.
    """

    def __init__(self, url: str) -> None:
        self._redis = _client(url)
        options = self._redis.connection_pool.connection_kwargs
        address = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
        self._address = str(options.get("path") or address)
        self._rests_until = 0.0
        self._silent = False

    @override
    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        """Keep a task until it is due, in one round trip. Offered again while it waits, it is
        due at the earlier of the two times.
        """
        due = time() + max(delay_s, 0.0)
        self._ask(self._redis.zadd, _key(lane_of(task)), {task.model_dump_json(): due}, lt=True)

    @override
    def abort(self, task: Task) -> None:
        self._ask(self._redis.publish, ABORTS, f"{task.kind}:{task.id}")

    @override
    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        in_flight, ended = InFlight(), Event()
        listener = Thread(target=_listen, args=(self._redis, in_flight, ended), daemon=True)
        listener.start()
        try:
            dispatcher = Dispatcher(device, slots, in_flight, Condition())
            dispatcher.run(self._take_any, handle, stop=stop, poll_s=_POLL_S)
        finally:
            ended.set()
            listener.join()

    @override
    def close(self) -> None:
        self._redis.close()

    def _ask(self, command: Callable[..., object], *given: object, **options: object) -> None:
        """Raises TransientError within 2 s. For a moment after a silence it raises at once, so
        that callers do not pile up.
        """
        if monotonic() < self._rests_until:
            raise self._away("Silent")
        try:
            command(*given, **options)
        except (RedisError, OSError) as error:
            if isinstance(error, Silent):
                self._rests_until = monotonic() + _REST_S
            raise self._away(type(error).__name__) from None

    def _away(self, why: str) -> TransientError:
        return TransientError(
            f"Redis at {self._address} does not answer ({why}).",
            "Stored work is offered again later.",
        )

    def _take_any(self, lanes: Iterable[Lane]) -> Task | None:
        """The next due task of these lanes; None while Redis is away."""
        try:
            task = next(filter(None, map(self._take, lanes)), None)
        except (RedisError, OSError) as error:
            if not self._silent:
                _log.warning("Redis does not answer (%s); trying again", type(error).__name__)
            self._silent = True
            return None
        if self._silent:
            _log.info("Redis answers again")
        self._silent = False
        return task

    def _take(self, lane: Lane) -> Task | None:
        """The next due task of a lane; malformed ones are dropped on the way."""
        key = _key(lane)
        while found := self._redis.zrange(key, "-inf", time(), byscore=True, offset=0, num=1):
            [member] = found
            if not self._redis.zrem(key, member):
                continue  # another worker was faster
            try:
                return Task.model_validate_json(member)
            except ValidationError:
                _log.warning("dropped a message that is not a task: %r", member[:80])
        return None


def _client(url: str) -> Any:
    try:
        return Redis.from_url(
            url,
            socket_connect_timeout=_CONNECT_S,
            socket_timeout=_ANSWER_S,
            socket_keepalive=True,
            # retry a connection that Redis has closed meanwhile, not one that is slow
            retry=Retry(NoBackoff(), 1, (Disconnected,)),
            retry_on_error=[Disconnected],
        )
    except ValueError:  # its message may hold the part of a password that it took for a port
        raise UserError(
            "The Redis address is invalid.",
            "Set REPRISE_REDIS_URL to redis://:PASSWORD@HOST:6379/0.",
        ) from None


def _listen(redis: Any, in_flight: InFlight, ended: Event) -> None:
    """Abort what the channel names. Messages sent while Redis is away are lost; the store knows
    of them.
    """
    while not ended.is_set():
        with suppress(RedisError, OSError), redis.pubsub() as channel:
            channel.subscribe(ABORTS)
            while not ended.is_set():
                message = channel.get_message(ignore_subscribe_messages=True, timeout=_AWAY_S)
                if message is not None:
                    kind, _, task = message["data"].decode(errors="replace").partition(":")
                    in_flight.abort(kind, task)
        ended.wait(_AWAY_S)


def _key(lane: Lane) -> str:
    """The sorted set of the tasks waiting in a lane; scores are seconds since 1970."""
    return f"reprise:{lane}"
