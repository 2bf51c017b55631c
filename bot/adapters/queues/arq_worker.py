"""A worker of arq within this process: tasks go to threads, Redis may come and go, malformed jobs are dropped.

A job leaves Redis when a worker takes it up; from then on the store's lease says who works on it. So nothing is blocked when
a worker is killed, and nothing has to be written to Redis when work ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any

from arq.connections import ArqRedis
from arq.worker import Worker, func
from redis.asyncio import ConnectionPool
from redis.exceptions import RedisError

from bot.adapters.queues import wire
from bot.adapters.queues.underway import Lane, UnderWay, lanes, log_escaped
from bot.service.ports import Device, Handler, Task

_log = logging.getLogger(__name__)
_POLL_S = 0.2
_AWAY_S = 0.5
_TAKING_S = 10.0
_NEVER_S = 10 * 365 * 86_400.0


def work(url: str, handle: Handler, *, device: Device, slots: int, stop: Event) -> None:
    """Hand on tasks until `stop`, in an event loop of its own; then wait for those under way."""
    logging.getLogger("arq.worker").setLevel(logging.WARNING)  # it tells every job, and the worker does already
    served = lanes(device, slots)
    with ThreadPoolExecutor(sum(served.values()), thread_name_prefix=f"queue-{device}") as threads:
        asyncio.run(_serve(url, handle, served, stop, threads))


async def _serve(url: str, handle: Handler, served: dict[Lane, int], stop: Event, threads: ThreadPoolExecutor) -> None:
    """Serve every lane in turns of one loop, over one pool of connections."""
    pool = ConnectionPool.from_url(
        url, socket_connect_timeout=2.0, socket_timeout=5.0, socket_keepalive=True, health_check_interval=15
    )
    redis = ArqRedis(pool)
    under_way = UnderWay()

    def submit(task: Task) -> Future[None]:
        return threads.submit(under_way.look, handle, task)

    workers = {lane: _Worker(redis, lane, most, submit, under_way) for lane, most in served.items()}
    ear = asyncio.create_task(_hear(redis, under_way, {wire.offers_of(lane): each.wake for lane, each in workers.items()}))
    serving = [asyncio.create_task(each.serve(stop)) for each in workers.values()]
    try:
        await asyncio.gather(*serving)
    finally:
        for each in (ear, *serving):
            each.cancel()
        await asyncio.gather(ear, *serving, return_exceptions=True)
        await asyncio.gather(*(task for each in workers.values() for task in each.tasks.values()), return_exceptions=True)
        await pool.disconnect()


async def _forget(redis: ArqRedis, lane: Lane, job: str) -> None:
    """Take a job out of Redis, with all that arq keeps of it."""
    try:
        async with redis.pipeline(transaction=True) as pipe:
            pipe.zrem(wire.queue_of(lane), job)
            pipe.delete(wire.JOB + job, wire.IN_PROGRESS + job, wire.RETRY + job)
            await pipe.execute()
    except (RedisError, OSError) as error:
        _log.warning("a task that was taken up may be handed out again (%s): %r", type(error).__name__, job)


async def _ended(thread: Future[None], task: Task, under_way: UnderWay) -> None:
    """Wait until the thread has ended. Cancelled, it asks the thread to stop and still waits."""
    future = asyncio.wrap_future(thread)
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            under_way.abort(task.kind, task.id)
    future.exception()
    log_escaped(task, thread)


async def _hear(redis: ArqRedis, under_way: UnderWay, wakes: Mapping[str, asyncio.Event]) -> None:
    """Listen for aborts, and for offers in the channels of `wakes`. What is said while Redis is away is lost: the store knows
    of aborts, and polling finds offers.
    """
    while True:
        with suppress(RedisError, OSError):
            async with redis.pubsub() as channel:
                await channel.subscribe(wire.ABORTS, *wakes)
                while True:
                    said = await channel.get_message(ignore_subscribe_messages=True, timeout=1.0)
                    if said is not None and said["channel"] == wire.ABORTS.encode():
                        kind, _, of = said["data"].decode(errors="replace").partition(":")
                        under_way.abort(kind, of)
                    elif said is not None:
                        wakes[said["channel"].decode()].set()
        await asyncio.sleep(_AWAY_S)


class _Worker(Worker):
    """arq's worker for one lane: it outlives Redis, counts what really runs, and keeps no books of its own."""

    def __init__(
        self, redis: ArqRedis, lane: Lane, most: int, submit: Callable[[Task], Future[None]], under_way: UnderWay
    ) -> None:
        super().__init__(
            [func(self._taken, name=wire.FUNCTION)],
            queue_name=wire.queue_of(lane),
            redis_pool=redis,
            handle_signals=False,
            max_jobs=most,
            job_timeout=_NEVER_S,
            max_tries=1_000,
            keep_result=0,
            job_serializer=wire.dump,
            job_deserializer=wire.load,
        )
        self._redis, self._lane, self._submit, self._under_way = redis, lane, submit, under_way
        self._handed = asyncio.Event()
        self.sem = asyncio.BoundedSemaphore(1 << 30)  # arq loses one for every error of Redis
        self.in_progress_timeout_s = _TAKING_S  # from taking to `_forget`; arq would say: as long as a job may last
        self.wake = asyncio.Event()
        self._away = False

    @property
    def job_counter(self) -> int:
        """How many jobs run. arq's own count drifts with every error of Redis."""
        return sum(not task.done() for task in self.tasks.values())

    @job_counter.setter
    def job_counter(self, value: int) -> None:
        pass

    async def serve(self, stop: Event) -> None:
        """Look for jobs when something is offered or ends, and now and then, until `stop`."""
        while not stop.is_set():
            self.wake.clear()
            await self._poll_iteration()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), _POLL_S)

    async def _poll_iteration(self) -> None:
        try:
            await super()._poll_iteration()
        except (RedisError, OSError) as error:
            if not self._away:
                _log.warning("Redis does not answer (%s); trying on", type(error).__name__)
            self._away = True
            await asyncio.sleep(_AWAY_S)
        else:
            if self._away:
                _log.info("Redis answers again")
            self._away = False

    async def start_jobs(self, job_ids: list[bytes]) -> None:
        """Start what is not under way here already, and throw out what has no name."""
        named = [job for job in job_ids if job.decode(errors="replace").encode() == job]
        for job in set(job_ids).difference(named):
            _log.warning("dropped a job without a readable name: %r", job[:80])
            await self.pool.zrem(self.queue_name, job)
        for job in named:
            if self.job_counter >= self.max_jobs:
                break
            if job.decode() not in self.tasks:
                self._handed.clear()
                await super().start_jobs([job])
                await self._until_handed(job.decode())

    async def _until_handed(self, job: str) -> None:
        """Wait until a job that was started is in its thread, or over: the next one must not overtake it."""
        task = self.tasks.get(job)
        if task is not None:
            handed = asyncio.create_task(self._handed.wait())
            await asyncio.wait([handed, task], return_when=asyncio.FIRST_COMPLETED)
            handed.cancel()

    async def _taken(self, ctx: dict[str, Any], *given: object, **_: object) -> None:
        await _forget(self._redis, self._lane, ctx["job_id"])
        task = wire.task_of(given)
        if task is None:
            _log.warning("dropped a job that is no task: %r", ctx["job_id"])
            return
        thread = self._submit(task)
        self._handed.set()
        await _ended(thread, task, self._under_way)

    def _release_sem_dec_counter_on_complete(self) -> None:
        self.sem.release()
        self.wake.set()

    async def finish_job(self, *_: Any, **__: Any) -> None:
        """Nothing is left to be done: the job went when it was taken."""

    async def heart_beat(self) -> None:
        """No cron, no health key."""
