"""The queue between processes: arq on Redis, with a queue, a function and a worker for each lane.

arq says "look at this", and the store's leases say who works on it. So a job's id carries the turn:
what a dead worker held blocks no later turn. A lost job is offered again by the reaper.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event, Lock
from time import monotonic, time
from typing import Any

from arq import ArqRedis, Worker, func
from arq.constants import in_progress_key_prefix, job_key_prefix, retry_key_prefix
from arq.jobs import Job, JobStatus
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected, RedisError, TimeoutError as Silent
from typing_extensions import override

from bot.app.ports import Device, Handler, Lane, Queue, Task
from bot.app.queue import places
from bot.kernel.errors import TransientError, UserError

# An offer must not keep GitHub waiting.
_CONNECT_S, _ANSWER_S, _ASK_S = 0.5, 1.0, 1.5
_REST_S = 1.0
_POLL_S = 0.1
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.5, 10.0
_LONGEST_S = 24 * 3600  # no job lasts that long: the store's limits end it
_TRIES = 3  # a worker may die before it has asked the store
_READ_LIMIT = 1_000  # jobs in progress stand in the queue before those that wait
_log = logging.getLogger(__name__)
logging.getLogger("arq").setLevel(logging.WARNING)  # the worker logs each task itself


class RedisQueue(Queue):
    """Tasks in Redis at `url` (redis://, rediss:// or unix://, with everything redis-py reads
    from it). Connects when first used.

    Raises UserError for an invalid address.
    """

    def __init__(self, url: str) -> None:
        self._url, self._redis = url, _client(url)
        self._asking, self._lock = asyncio.Runner(), Lock()
        self._rests_until = 0.0

    @override
    def offer(self, task: Task, delay_s: float = 0.0) -> None:
        self._ask(partial(_offer, self._redis, task, max(delay_s, 0.0)))

    @override
    def abort(self, task: Task) -> None:
        self._ask(partial(_abort, self._redis, task))

    @override
    def work(self, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
        asyncio.run(self._work(handle, device, slots, stop))

    @override
    def close(self) -> None:
        with self._lock:
            self._asking.run(self._redis.aclose())
            self._asking.close()

    def _ask(self, question: Callable[[], Awaitable[None]]) -> None:
        """Raises TransientError within 2 s. For a moment after a silence it raises at once, so
        that callers do not pile up.
        """

        async def answer() -> None:
            async with asyncio.timeout(_ASK_S):
                await question()

        with self._lock:
            if monotonic() < self._rests_until:
                raise self._away("Silent")
            try:
                self._asking.run(answer())
            except (RedisError, OSError) as error:
                if isinstance(error, Silent | TimeoutError):
                    self._rests_until = monotonic() + _REST_S
                raise self._away(type(error).__name__) from None

    def _away(self, why: str) -> TransientError:
        return TransientError(
            f"Redis at {_address(self._redis)} does not answer ({why}).",
            "Stored work is offered again later.",
        )

    async def _work(self, handle: Handler, device: Device, slots: int, stop: Event) -> None:
        async with _client(self._url) as redis:
            lanes = [
                _Lane(redis, lane, free, handle) for lane, free in places(device, slots).items()
            ]
            await asyncio.gather(*(lane.serve(stop) for lane in lanes))


class _Worker(Worker):
    """arq's worker, which takes its next job as soon as it has a free place, and finds those that
    wait behind any that are in progress elsewhere: arq asks Redis three times about each of these.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fillings = set[asyncio.Task[None]]()

    @override
    async def start_jobs(self, job_ids: list[bytes]) -> None:
        keys = [in_progress_key_prefix + job_id.decode() for job_id in job_ids]
        in_progress = await self.pool.mget(keys) if keys else []
        waiting = [one for one, mark in zip(job_ids, in_progress, strict=True) if mark is None]
        if self.allow_pick_jobs:
            await super().start_jobs(waiting)

    @override
    async def run_job(self, job_id: str, score: int) -> None:
        try:
            await super().run_job(job_id, score)
        finally:  # its place is free once this returns, and Redis has answered later than that
            if self.allow_pick_jobs:
                filling = asyncio.create_task(self._fill())
                self.fillings.add(filling)
                filling.add_done_callback(self.fillings.discard)

    async def _fill(self) -> None:
        with suppress(RedisError, OSError):  # the next poll meets them as well
            due, most = round(time() * 1000), self.queue_read_limit
            job_ids = await self.pool.zrangebyscore(self.queue_name, "-inf", due, 0, most)
            await self.start_jobs(job_ids)


class _Lane:
    """arq's worker for one lane. It ends when Redis goes away, and another one starts; jobs in
    progress go on meanwhile, and keep their places.
    """

    def __init__(self, redis: ArqRedis, lane: Lane, free: int, handle: Handler) -> None:
        self._redis, self._lane, self._free, self._handle = redis, lane, free, handle
        self._threads = ThreadPoolExecutor(free, thread_name_prefix=f"queue-{lane}")
        self._pause_s = _FIRST_PAUSE_S

    async def serve(self, stop: Event) -> None:
        """Hand on jobs until `stop`, then wait for those in progress."""
        left: list[asyncio.Task[Any]] = []
        while not stop.is_set():
            worker = self._worker()
            try:
                await _run(worker, stop)
            except (RedisError, OSError) as error:
                await self._rest(error, stop)
            worker.allow_pick_jobs = False
            # None may ask Redis once the connections are closed.
            left += (*worker.tasks.values(), *worker.fillings)
        await asyncio.gather(*left, return_exceptions=True)
        self._threads.shutdown()

    def _worker(self) -> _Worker:
        return _Worker(
            [func(self._job, name=self._lane)],  # type: ignore[arg-type]
            queue_name=queue_name(self._lane),
            redis_pool=self._redis,
            on_startup=self._connected,
            handle_signals=False,
            max_jobs=self._free,
            job_timeout=_LONGEST_S,
            keep_result=0,
            poll_delay=_POLL_S,
            max_tries=_TRIES,
            queue_read_limit=_READ_LIMIT,
            allow_abort_jobs=True,
            job_serializer=_serialize,
            job_deserializer=json.loads,
        )

    async def _job(self, _ctx: dict[Any, Any], values: dict[str, Any]) -> None:
        task, event = Task.model_validate(values), Event()
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, self._handle, task, event)
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            event.set()
            await asyncio.wait([work])  # its guard ends the run; nothing else may work on it before
            raise

    async def _connected(self, ctx: dict[Any, Any]) -> None:  # noqa: ARG002
        if self._pause_s > _FIRST_PAUSE_S:
            _log.info("Redis answers again: the worker for %s takes tasks", self._lane)
        self._pause_s = _FIRST_PAUSE_S

    async def _rest(self, error: Exception, stop: Event) -> None:
        _log.warning(
            "Redis at %s does not answer (%s): the worker for %s ends and starts again in %.1f s",
            *(_address(self._redis), type(error).__name__, self._lane, self._pause_s),
        )
        await asyncio.to_thread(stop.wait, self._pause_s)
        self._pause_s = min(2 * self._pause_s, _MOST_PAUSE_S)


async def _run(worker: Worker, stop: Event) -> None:
    """Let a worker take jobs until `stop` or until it fails, which raises its error."""
    running = asyncio.ensure_future(worker.async_run())
    while not running.done():
        if not (worker.allow_pick_jobs or worker.tasks):
            running.cancel()  # more than once: redis-py may swallow it
        if stop.is_set():
            worker.allow_pick_jobs = False
        await asyncio.wait([running], timeout=_POLL_S)
    if not running.cancelled():
        running.result()


async def _offer(redis: ArqRedis, task: Task, delay_s: float) -> None:
    """Keep a task until it is due. Offered again while it waits, it is due at the earlier of the
    two times; offered again while it is handled, it is handled once more.
    """
    queue, due = queue_name(task.lane), round((time() + delay_s) * 1000)
    await _forget(redis, task.model_copy(update={"turn": task.turn - 1}))
    for name in _names(task):
        values = task.model_dump()
        job = await redis.enqueue_job(
            task.lane, values, _job_id=name, _queue_name=queue, _defer_by=delay_s
        )
        if job is not None:
            return
        if await Job(name, redis, queue).status() is not JobStatus.in_progress:
            await redis.zadd(queue, {name: due}, xx=True, lt=True)
            return


async def _forget(redis: ArqRedis, task: Task) -> None:
    """Drop what is in progress of a turn that another one follows: a killed worker's job would be
    counted for a day.
    """
    for name in _names(task) if task.turn >= 0 else ():
        if await redis.exists(in_progress_key_prefix + name):
            keys = (in_progress_key_prefix, job_key_prefix, retry_key_prefix)
            await redis.zrem(queue_name(task.lane), name)
            await redis.delete(*(key + name for key in keys))


async def _abort(redis: ArqRedis, task: Task) -> None:
    for name in _names(task):
        job = Job(name, redis, queue_name(task.lane), json.loads)
        if await job.status() is JobStatus.in_progress:  # one that waits must still be handled
            with suppress(TimeoutError):
                await job.abort(timeout=0, poll_delay=0.01)


def _names(task: Task) -> tuple[str, str]:
    """The ids of a task's job: the second for what is offered while the first is in progress,
    or seems to be because its worker died.
    """
    name = f"{task.kind}:{task.id}:{task.turn}"
    return name, f"{name}:again"


def queue_name(lane: Lane) -> str:
    """The sorted set of a lane's jobs, those in progress included; a scaler may count it."""
    return f"arq:queue:{lane}"


def _serialize(values: dict[str, Any]) -> bytes:
    return json.dumps(values, default=repr).encode()


def _client(url: str) -> ArqRedis:
    """The pool of arq. `create_pool` would neither time out nor read all of the address."""
    try:
        redis: ArqRedis = ArqRedis.from_url(
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
    redis.job_serializer, redis.job_deserializer = _serialize, json.loads
    return redis


def _address(redis: ArqRedis) -> str:
    options = redis.connection_pool.connection_kwargs
    address = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    return str(options.get("path") or address)
