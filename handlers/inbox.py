"""Deliveries are kept before they are answered: all that arrive while one transaction runs share the next one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from bot.errors import RepriseError, TransientError
from bot.models.delivery import Delivery
from bot.service.ports import Claim, Queue, Store, Task

MOST_WAITING = 2_000
MOST_AT_ONCE = 500  # deliveries in one transaction, about
WAIT_S = 8.0  # GitHub gives up after ten
_log = logging.getLogger("reprise.inbox")


class Full(TransientError):
    """More waits than can be kept in time, or the store does not answer; GitHub should come back."""


class Inbox:
    """Group commit in front of the store. Belongs to one event loop; the store is used from one thread of its own."""

    def __init__(self, store: Store, queue: Queue, *, most_waiting: int = MOST_WAITING, wait_s: float = WAIT_S) -> None:
        self._store = store
        self._queue = queue
        self._most_waiting = most_waiting
        self._wait_s = wait_s
        self._waiting: list[tuple[Sequence[Delivery], asyncio.Future[tuple[Claim, ...]]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._writer = ThreadPoolExecutor(1, "inbox")
        self._teller = ThreadPoolExecutor(1, "offers")
        self._untold = 0

    async def put(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        """Claim deliveries durably; they are offered to the queue afterwards. Raises Full when that cannot be done in time."""
        if len(self._waiting) >= self._most_waiting:
            raise Full("Too many deliveries wait to be kept.")
        kept: asyncio.Future[tuple[Claim, ...]] = asyncio.get_running_loop().create_future()
        self._waiting.append((deliveries, kept))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        try:
            return await asyncio.wait_for(kept, self._wait_s)
        except TimeoutError:
            raise Full("The store did not answer in time.") from None

    async def _write(self) -> None:
        """One transaction after the other, until nothing waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch = self._next_batch()
            deliveries = [delivery for group, _ in batch for delivery in group]
            call = loop.run_in_executor(self._writer, self._store.claim, deliveries)
            (claims,) = await asyncio.gather(call, return_exceptions=True)
            if isinstance(claims, BaseException):
                _log.error("%d deliveries could not be kept: %s", len(deliveries), type(claims).__name__, exc_info=claims)
                _fail(batch)
                continue
            at = 0
            for group, kept in batch:
                if not kept.done():
                    kept.set_result(claims[at : at + len(group)])
                at += len(group)
            self._offer([each for each, claim in zip(deliveries, claims, strict=True) if claim != "known"])

    def _next_batch(self) -> list[tuple[Sequence[Delivery], asyncio.Future[tuple[Claim, ...]]]]:
        size = taken = 0
        while taken < len(self._waiting) and size < MOST_AT_ONCE:
            size += len(self._waiting[taken][0])
            taken += 1
        batch, self._waiting = self._waiting[:taken], self._waiting[taken:]
        return batch

    def _offer(self, deliveries: Sequence[Delivery]) -> None:
        """Off the answer's path. What is not offered now waits in the store, from where the reaper offers it."""
        if not deliveries or self._untold > self._most_waiting:
            return
        self._untold += len(deliveries)
        self._teller.submit(self._tell, [delivery.guid for delivery in deliveries]).add_done_callback(_report)

    def _tell(self, guids: Sequence[str]) -> None:
        try:
            for guid in guids:
                self._queue.offer(Task(kind="delivery", id=guid))
        except RepriseError as error:
            _log.warning("The queue is away, the reaper will offer what came in: %s", error)
        finally:
            self._untold -= len(guids)

    def close(self) -> None:
        """Let go of the threads once what was accepted is written; offers still to be made are dropped."""
        self._teller.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=True)


def _fail(batch: Sequence[tuple[Sequence[Delivery], asyncio.Future[tuple[Claim, ...]]]]) -> None:
    for _, kept in batch:
        if not kept.done():
            kept.set_exception(Full("The store did not keep it."))


def _report(done: Future[None]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        _log.error("Offering to the queue failed", exc_info=error)
