"""The webhook route: size, signature, filter, atomic claim in the store, and only then an
answer.
"""

import asyncio
import hashlib
import hmac
import logging
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from bot.app.ports import AppStore, Claim, Queue, Task
from bot.app.telemetry import Telemetry, work_ids
from bot.kernel.errors import RepriseError
from bot.kernel.run import Delivery
from handlers.events import AppIdentity, IgnoredDelivery, InvalidPayload, parse_event

# Stores deliveries in a thread; those that arrive during one transaction share the next.
#
# SQLite has one writer, and each commit waits for the disk. One commit per delivery falls behind
# at 300 a second on a busy machine; one commit for all waiting deliveries does not.

MAX_BATCH = 500
_Waiting = tuple[Sequence[Delivery], "asyncio.Future[tuple[Claim, ...]]"]


class BatchWriter:
    """The writer of one event loop."""

    def __init__(self, store: AppStore) -> None:
        self._store = store
        self._waiting: list[_Waiting] = []
        self._is_writing = False
        self._thread = ThreadPoolExecutor(1, "deliveries")

    async def claim(self, deliveries: Sequence[Delivery]) -> tuple[Claim, ...]:
        """Claim deliveries in the store, all in one transaction. Raises what the store raises."""
        loop = asyncio.get_running_loop()
        claims: asyncio.Future[tuple[Claim, ...]] = loop.create_future()
        self._waiting.append((deliveries, claims))
        if not self._is_writing:
            self._write(loop)
        return await claims

    def close(self) -> None:
        """Wait until the current transaction is committed."""
        self._thread.shutdown(wait=True)

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        """Write what waits, without requests that gave up waiting; then what has come meanwhile."""
        waiting, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        self._is_writing = bool(waiting)
        if not waiting:
            return
        batch = [(group, claims) for group, claims in waiting if not claims.done()]
        deliveries = [delivery for group, _ in batch for delivery in group]

        writing = self._thread.submit(self._store.claim, deliveries)

        def answer() -> None:
            _answer(batch, writing)
            self._write(loop)

        writing.add_done_callback(lambda _: loop.call_soon_threadsafe(answer))


def _answer(batch: list[_Waiting], future: Future[tuple[Claim, ...]]) -> None:
    error = future.exception()
    results = iter(()) if error is not None else iter(future.result())
    for group, claims in batch:
        if claims.done():
            continue
        if error is not None:
            claims.set_exception(error)
        else:
            claims.set_result(tuple(islice(results, len(group))))


# The webhook route: size, signature, filter, atomic claim in the store, and only then an answer.
#
# The body is verified as raw bytes before anything parses it. The store writes in a thread. A
# second thread tells the queue, which no answer waits for.

MAX_BYTES = 25 * 1024 * 1024  # GitHub's own limit for a payload
MAX_BUFFERED = 2 * MAX_BYTES  # of all long bodies together, before their signatures are verified
SHORT_BYTES = 256 * 1024  # nearly every delivery; these have an allowance that long ones leave
MAX_BUFFERED_SHORT = 48 * 1024 * 1024
READ_S = 10.0
STALL_S = 5.0  # between two pieces of a body
LEAST_RATE = 65_536  # bytes a second, on average beyond the first STALL_S
WAIT_S = 8.0  # GitHub gives up after ten
LONG_BYTES = 32 * 1024  # parsed outside the event loop
RETRY_AFTER_S = 5

_GUID = re.compile(r"[0-9A-Za-z-]{8,64}", re.ASCII)
_EVENT = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_IN_SETTINGS = " in the App's settings on GitHub."
_log = logging.getLogger("reprise.webhook")
_SCHEME = "sha256="
_CLOSE = {"Connection": "close"}  # the rest of the body may never come


class Webhook:
    """The endpoint for GitHub's deliveries.

    Answers 202 for a stored delivery, 200 for one that needs nothing, 4xx for a request that
    GitHub would not send, and 503 when the delivery cannot be stored in time.
    """

    def __init__(
        self,
        secret: str,
        app: AppIdentity,
        store: AppStore,
        queue: Queue,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._telemetry = telemetry or Telemetry()
        self._secret = secret
        self._app = app
        self._writer = BatchWriter(store)
        self._queue = queue
        self._offers = ThreadPoolExecutor(1, "offers")
        self._buffered = {True: 0, False: 0}  # bytes of short bodies, and of long ones

    async def receive(self, request: Request) -> Response:
        """Answer one delivery."""
        try:
            event, guid = _check_headers(request.headers)
            with work_ids(delivery=guid):
                return await self._accept(event, guid, await self._body(request))
        except HTTPException as error:
            content = {"status": "refused", "reason": error.detail}
            return JSONResponse(content, error.status_code, error.headers)
        except ClientDisconnect:
            return JSONResponse({}, 400)

    def close(self) -> None:
        """Wait until accepted deliveries are stored and offered."""
        self._writer.close()
        self._offers.shutdown(wait=True)

    async def _accept(self, event: str, guid: str, body: bytes) -> Response:
        began_ns = time.time_ns()
        arguments = (event, guid, body, datetime.now(UTC), self._app)
        long = len(body) > LONG_BYTES
        deliveries = (
            await asyncio.to_thread(parse_event, *arguments) if long else parse_event(*arguments)
        )
        if isinstance(deliveries, InvalidPayload):
            raise HTTPException(400, f"This is not a payload of {event}: {deliveries.reason}.")
        if isinstance(deliveries, IgnoredDelivery):
            return JSONResponse({"status": "ignored", "reason": deliveries.reason})
        new = await self._store(deliveries)
        if not new:
            return JSONResponse({"status": "known"})
        self._offers.submit(self._offer, new)
        self._telemetry.received(guid, event, began_ns)
        return JSONResponse({"status": "accepted"}, 202)

    async def _store(self, deliveries: Sequence[Delivery]) -> list[str]:
        """The ids of those that were not known before; all of them are durable now."""
        try:
            async with asyncio.timeout(WAIT_S):  # wait_for would make a task of it
                claims = await self._writer.claim(deliveries)
        except TimeoutError:
            raise _retry_later("The database did not answer in time.") from None
        except RepriseError as error:
            _log.error("A delivery could not be stored: %s", error)
            raise _retry_later("The delivery could not be stored.") from None
        deliveries_and_claims = zip(deliveries, claims, strict=True)
        return [delivery.guid for delivery, claim in deliveries_and_claims if claim != "known"]

    def _offer(self, guids: list[str]) -> None:
        """Tell the queue. While the queue is away, deliveries wait in the store for the reaper."""
        try:
            for guid in guids:
                self._queue.offer(Task(kind="delivery", id=guid))
        except RepriseError as error:
            _log.warning(
                "The queue is unavailable; the reaper will offer new deliveries: %s", error
            )

    async def _body(self, request: Request) -> bytes:
        """The raw body, once its signature is checked."""
        body = await self._received(request)
        if not verify(self._secret, body, request.headers.get("x-hub-signature-256")):
            raise HTTPException(
                401, "The signature does not match: the webhook secret or the body differs."
            )
        return body

    async def _received(self, request: Request) -> bytes:
        """The raw body. Its size and its pace are checked while it arrives."""
        chunks: list[bytes] = []
        size, short = 0, 0 < int(request.headers.get("content-length", "0")) <= SHORT_BYTES
        most = MAX_BUFFERED_SHORT if short else MAX_BUFFERED
        try:
            async for chunk in _paced(request.stream()):
                size += len(chunk)
                self._buffered[short] += len(chunk)
                chunks.append(chunk)
                if size > MAX_BYTES:
                    raise _too_large()
                if self._buffered[short] > most:
                    raise _retry_later("Too many requests are being received.")
        except TimeoutError:
            raise HTTPException(408, "The body did not arrive in time.", _CLOSE) from None
        finally:
            self._buffered[short] -= size
        return b"".join(chunks)


async def _paced(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a body. Raises TimeoutError when it stalls, or is too slow or late."""
    clock, size = asyncio.get_running_loop().time, 0
    began = clock()
    while True:
        pause = min(STALL_S, began + READ_S - clock())
        try:
            async with asyncio.timeout(pause):
                chunk = await anext(stream)
        except StopAsyncIteration:
            return
        size += len(chunk)
        yield chunk
        if size < (clock() - began - STALL_S) * LEAST_RATE:
            raise TimeoutError


def _check_headers(headers: Mapping[str, str]) -> tuple[str, str]:
    """The event and the delivery's id. Refuses what the headers alone show to be wrong."""
    length, kind = headers.get("content-length", "0"), headers.get("content-type", "")
    event, guid = headers.get("x-github-event", ""), headers.get("x-github-delivery", "")
    number = length.isascii() and length.isdigit()
    if number and (len(length) > 12 or int(length) > MAX_BYTES):
        raise _too_large()
    unsigned = headers.get("x-hub-signature-256") is None
    no_json = kind.partition(";")[0].strip().lower() != "application/json"
    wrong = (
        (not number, 400, "Content-Length is not a number."),
        (unsigned, 401, "X-Hub-Signature-256 is missing: set the webhook secret" + _IN_SETTINGS),
        (no_json, 415, "Set the webhook's content type to application/json" + _IN_SETTINGS),
        (not _EVENT.fullmatch(event), 400, "X-GitHub-Event is missing or malformed."),
        (not _GUID.fullmatch(guid), 400, "X-GitHub-Delivery is missing or malformed."),
    )
    for applies, status, reason in wrong:
        if applies:
            raise HTTPException(status, reason)
    return event, guid


def _too_large() -> HTTPException:
    return HTTPException(413, f"A payload may have at most {MAX_BYTES} bytes.", _CLOSE)


def _retry_later(reason: str) -> HTTPException:
    return HTTPException(503, reason, _CLOSE | {"Retry-After": str(RETRY_AFTER_S)})


def sign(secret: str, body: bytes) -> str:
    """The header that GitHub would send with this body."""
    return (
        _SCHEME
        + hmac.new(secret.encode("utf-8", "surrogatepass"), body, hashlib.sha256).hexdigest()
    )


def verify(secret: str, body: bytes, header: str | None) -> bool:
    """True only for a body that was signed with a secret that is not empty. Never raises,
    whatever the header holds.
    """
    if not secret or header is None or not header.isascii():
        return False
    return hmac.compare_digest(sign(secret, body), header)
