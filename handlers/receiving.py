"""A POST of GitHub, from its headers to the answer: measured, verified, read, filtered, kept, and only then accepted."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

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
    it cannot be kept now. An ASGI application: what a framework does for a request takes as long as all of this.
    """

    def __init__(self, secret: str, us: Us, inbox: Inbox) -> None:
        self._secret = secret
        self._us = us
        self._inbox = inbox
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one delivery."""
        more: Mapping[str, str] = {}
        try:
            status, answer = await self._answer(_headers(scope), receive)
        except HTTPException as refused:
            status, answer = refused.status_code, {"status": "refused", "reason": refused.detail}
            more = refused.headers or {}
        except ClientDisconnect:
            status, answer = 400, {}
        body = json.dumps(answer, separators=(",", ":")).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in more.items()]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, headers: Mapping[str, str], receive: Receive) -> tuple[int, dict[str, str]]:
        event, guid = _checked(headers)
        body = await self._signed_body(headers, receive)
        now = datetime.now(UTC)
        if len(body) > LONG_BYTES:
            what = await asyncio.to_thread(read, event, guid, body, now, self._us)
        else:
            what = read(event, guid, body, now, self._us)
        if isinstance(what, Malformed):
            raise HTTPException(400, f"This is not a payload of {event}: {what.reason}.")
        if isinstance(what, Ignored):
            return 200, {"status": "ignored", "reason": what.reason}
        try:
            claims = await self._inbox.put(what)
        except Full as full:
            raise _later(str(full)) from None
        if set(claims) == {"known"}:
            return 200, {"status": "known"}
        return 202, {"status": "accepted"}

    async def _signed_body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The raw body, once its signature is right."""
        try:
            async with asyncio.timeout(READ_S):
                body = await self._body(receive)
        except TimeoutError:
            raise HTTPException(408, "The body did not arrive in time.") from None
        if not verify(self._secret, body, headers.get("x-hub-signature-256")):
            raise HTTPException(401, "The signature is not ours: the webhook secret differs, or the body was changed.")
        return body

    async def _body(self, receive: Receive) -> bytes:
        """The raw body, measured while it comes in."""
        chunks: list[bytes] = []
        size = 0
        try:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunk, more = message.get("body", b""), message.get("more_body", False)
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


def _headers(scope: Scope) -> dict[str, str]:
    """By name in small letters; of several the first."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def _checked(headers: Mapping[str, str]) -> tuple[str, str]:
    """The event and the delivery's id. Refuses by the headers alone what need not be read."""
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
