"""A POST of GitHub, from its headers to the answer: measured, verified, read, filtered, kept, and only then accepted."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from handlers.events import Ignored, Malformed, read
from handlers.inbox import Full, Inbox
from handlers.policy import Us
from handlers.signature import verify

MOST_BYTES = 25 * 1024 * 1024  # GitHub's own cap on a payload
MOST_HELD = 2 * MOST_BYTES  # of all requests together, before a signature is known to be right
READ_S = 10.0
LONG_BYTES = 32 * 1024  # read beside the event loop
RETRY_AFTER_S = 5

_GUID = re.compile(r"[0-9A-Za-z-]{8,64}", re.ASCII)
_EVENT = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_FORM = "Set the webhook's content type to application/json in the App's settings on GitHub."


class Webhook:
    """The endpoint. Answers 202 for what is kept, 200 for what needs nothing, 4xx for what GitHub would not send, and 503 when
    it cannot be kept now.
    """

    def __init__(self, secret: str, us: Us, inbox: Inbox) -> None:
        self._secret = secret
        self._us = us
        self._inbox = inbox
        self._held = 0

    async def receive(self, request: Request) -> Response:
        """Answer one delivery."""
        try:
            return await self._receive(request)
        except HTTPException as refused:
            answer = {"status": "refused", "reason": refused.detail}
            return JSONResponse(answer, refused.status_code, dict(refused.headers or {}))
        except ClientDisconnect:
            return Response(status_code=400)

    async def _receive(self, request: Request) -> Response:
        event, guid = _checked(request)
        body = await self._signed_body(request)
        now = datetime.now(UTC)
        if len(body) > LONG_BYTES:
            what = await asyncio.to_thread(read, event, guid, body, now, self._us)
        else:
            what = read(event, guid, body, now, self._us)
        if isinstance(what, Malformed):
            raise HTTPException(400, f"This is not a payload of {event}: {what.reason}.")
        if isinstance(what, Ignored):
            return JSONResponse({"status": "ignored", "reason": what.reason})
        try:
            claims = await self._inbox.put(what)
        except Full as full:
            raise _later(str(full)) from None
        if set(claims) == {"known"}:
            return JSONResponse({"status": "known"})
        return JSONResponse({"status": "accepted"}, 202)

    async def _signed_body(self, request: Request) -> bytes:
        """The raw body, once its signature is right."""
        try:
            async with asyncio.timeout(READ_S):
                body = await self._body(request)
        except TimeoutError:
            raise HTTPException(408, "The body did not arrive in time.") from None
        if not verify(self._secret, body, request.headers.get("x-hub-signature-256")):
            raise HTTPException(401, "The signature is not ours: the webhook secret differs, or the body was changed.")
        return body

    async def _body(self, request: Request) -> bytes:
        """The raw body, measured while it comes in."""
        chunks: list[bytes] = []
        size = 0
        try:
            async for chunk in request.stream():
                size += len(chunk)
                self._held += len(chunk)
                chunks.append(chunk)
                if size > MOST_BYTES:
                    raise _too_large()
                if self._held > MOST_HELD:
                    raise _later("Too much is being received.")
            return b"".join(chunks)
        finally:
            self._held -= size


def _checked(request: Request) -> tuple[str, str]:
    """The event and the delivery's id. Refuses by the headers alone what need not be read."""
    headers = request.headers
    length = headers.get("content-length")
    if length is not None and not (length.isascii() and length.isdigit()):
        raise HTTPException(400, "Content-Length is not a number.")
    if length is not None and (len(length) > 12 or int(length) > MOST_BYTES):
        raise _too_large()
    if headers.get("x-hub-signature-256") is None:
        raise HTTPException(401, "X-Hub-Signature-256 is missing: set the webhook secret in the App's settings on GitHub.")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, _FORM)
    event, guid = headers.get("x-github-event", ""), headers.get("x-github-delivery", "")
    if not _EVENT.fullmatch(event):
        raise HTTPException(400, "X-GitHub-Event is missing or no event's name.")
    if not _GUID.fullmatch(guid):
        raise HTTPException(400, "X-GitHub-Delivery is missing or no delivery's id.")
    return event, guid


def _too_large() -> HTTPException:
    return HTTPException(413, f"A payload may hold {MOST_BYTES} bytes.")


def _later(reason: str) -> HTTPException:
    return HTTPException(503, reason, {"Retry-After": str(RETRY_AFTER_S)})
