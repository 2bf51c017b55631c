"""Deliveries are kept before they are answered: at once where the store can, else all that wait share a transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

from bot.errors import RepriseError, TransientError
from bot.models.delivery import Delivery
from bot.service.ports import Claim, ClaimsNow, OffersMany, Queue, Store, Task

MOST_WAITING = 2_000
MOST_AT_ONCE = 500  # deliveries in one transaction, about
WAIT_S = 8.0  # GitHub gives up after ten
SLOW_S = 0.003  # a claim at once that took longer than this: the disk is better waited for in a thread,
REST = 10  # for so many times as long, so that the loop stands still for a tenth of the time at most
TELL_S = 0.02
TELL_EACH_S = 0.4  # while deliveries keep coming: each time costs as much as answering several of them
_log = logging.getLogger("reprise.inbox")


class Full(TransientError):
    """More waits than can be kept in time, or the store does not answer; GitHub should come back."""


@dataclass(slots=True)
class _Group:
    """Deliveries that came in one request, and who waits for their claims."""

    deliveries: Sequence[Delivery]
    kept: asyncio.Future[tuple[Claim, ...]]


class Inbox:
    """What stands in front of the store. Its state belongs to one event loop. A claim that can be made at once is made in the
    loop's own thread, since waking another takes longer; while somebody else writes, or the disk is slow, deliveries
    gather for one transaction in a thread. The queue has a thread too, which is woken as seldom as can be.
    """

    def __init__(self, store: Store, queue: Queue, *, most_waiting: int = MOST_WAITING, wait_s: float = WAIT_S) -> None:
        self._store = store
        self._queue = queue
        self._claim_now = store.claim_now if isinstance(store, ClaimsNow) else None
        self._rests_until = 0.0
        self._most_waiting = most_waiting
        self._wait_s = wait_s
        self._waiting: list[_Group] = []
        self._writing = False
        self._untold: list[str] = []
        self._told_at = 0.0
        self._writer = ThreadPoolExecutor(1, "inbox")
        self._teller = ThreadPoolExecutor(1, "offers")

    async def put(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        """Claim deliveries durably; they are offered to the queue afterwards. Raises Full when that cannot be done in time."""
        if not self._writing and (claims := self._at_once(deliveries)) is not None:
            self._tell_soon(asyncio.get_running_loop(), deliveries, claims)
            return claims
        if len(self._waiting) >= self._most_waiting:
            raise Full("Too many deliveries wait to be kept.")
        loop = asyncio.get_running_loop()
        group = _Group(deliveries, loop.create_future())
        self._waiting.append(group)
        if not self._writing:
            self._write(loop)
        late = loop.call_later(self._wait_s, _fail, [group], "The store did not answer in time.")
        try:
            return await group.kept
        finally:
            late.cancel()

    def _at_once(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...] | None:
        begun = monotonic()
        if self._claim_now is None or begun < self._rests_until:
            return None
        claims = self._claim_now(deliveries)
        ended = monotonic()
        if ended - begun > SLOW_S:
            self._rests_until = ended + REST * (ended - begun)
        return claims

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a transaction for what waits."""
        size = taken = 0
        while taken < len(self._waiting) and size < MOST_AT_ONCE:
            size += len(self._waiting[taken].deliveries)
            taken += 1
        batch, self._waiting = self._waiting[:taken], self._waiting[taken:]
        deliveries = [delivery for group in batch for delivery in group.deliveries]
        self._writing = True
        written = self._writer.submit(self._store.claim, deliveries)
        written.add_done_callback(lambda done: loop.call_soon_threadsafe(self._written, loop, batch, done))

    def _written(self, loop: asyncio.AbstractEventLoop, batch: list[_Group], done: Future[tuple[Claim, ...]]) -> None:
        """Begin the next transaction, then answer everyone in this one."""
        self._writing = False
        if self._waiting:
            self._write(loop)
        if (error := done.exception()) is not None:
            _log.error("%d requests could not be kept: %s", len(batch), type(error).__name__, exc_info=error)
            _fail(batch, "The store did not keep it.")
            return
        claims, at = done.result(), 0
        for group in batch:
            mine, at = claims[at : at + len(group.deliveries)], at + len(group.deliveries)
            if not group.kept.done():
                group.kept.set_result(mine)
            self._tell_soon(loop, group.deliveries, mine)

    def _tell_soon(self, loop: asyncio.AbstractEventLoop, deliveries: Sequence[Delivery], claims: Sequence[Claim]) -> None:
        """Offer to the queue, off the answer's path: the first at once, almost, those that follow several at a time. What is
        dropped waits in the store for the reaper.
        """
        guids = [each.guid for each, claim in zip(deliveries, claims, strict=True) if claim != "known"]
        if guids and not self._untold:
            loop.call_later(max(TELL_S, self._told_at + TELL_EACH_S - monotonic()), self._tell)
        if len(self._untold) < self._most_waiting:
            self._untold += guids

    def _tell(self) -> None:
        guids, self._untold = self._untold, []
        self._told_at = monotonic()
        if guids:
            self._teller.submit(self._offer, guids).add_done_callback(_report)

    def _offer(self, guids: list[str]) -> None:
        tasks = [Task(kind="delivery", id=guid) for guid in guids]
        try:
            if isinstance(self._queue, OffersMany):
                self._queue.offer_all(tasks)
                return
            for task in tasks:
                self._queue.offer(task)
        except RepriseError as error:
            _log.warning("The queue is away, the reaper will offer what came in: %s", error)

    def close(self) -> None:
        """Let go of the threads once what was accepted is written and offered. Nothing may be put any more."""
        self._writer.shutdown(wait=True)
        self._tell()
        self._teller.shutdown(wait=True)


def _fail(batch: list[_Group], reason: str) -> None:
    for group in batch:
        if not group.kept.done():
            group.kept.set_exception(Full(reason))


def _report(done: Future[None]) -> None:
    if (error := done.exception()) is not None:
        _log.error("Offering to the queue failed", exc_info=error)
