"""One call of an OpenAI-compatible endpoint: put as its dialect wants it, tried again where that costs nothing."""

from __future__ import annotations

import json
import random
import ssl
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from time import monotonic
from typing import Any

import httpx

from bot.adapters.model import counting, refusals
from bot.adapters.model.dialect import Dialect, Structured, first
from bot.adapters.model.halts import Halted, Lost, Refused, Rejected, Unreached
from bot.adapters.model.hearing import Heard
from bot.adapters.model.mending import with_schema
from bot.adapters.model.watch import Watch
from bot.adapters.model.wire import Call, End, Head
from bot.models.dialogue import Message, Usage

_POLL_S = 0.1
_MOST_RETRIES = 7
_LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What one call asks."""

    model: str
    messages: tuple[Message, ...]
    schema: dict[str, Any]
    most_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What one call brought; `cut` when it ran into its limit of tokens. The usage is not priced yet."""

    text: str
    cut: bool
    usage: Usage


class Endpoint:
    """`url` is the base, such as https://host/v1. `stall_s` is how long a stream may bring no word; `backoff_s` the first pause
    before trying again, doubled each time.
    """

    def __init__(
        self, url: str, key: str = "", *, stall_s: float = 120.0, structured: Structured = "auto", backoff_s: float = 0.5
    ) -> None:
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._key = key
        self._stall_s = stall_s
        self._backoff_s = backoff_s
        self._first = first(structured)
        self._dialects: dict[str, Dialect] = {}
        self._headers = {"Accept": "application/json, text/event-stream", "Accept-Encoding": "identity"}
        self._headers |= {"Content-Type": "application/json", "User-Agent": "reprise"}
        self._headers |= {"Authorization": f"Bearer {refusals.usable(key)}"} if key else {}

    def complete(self, asked: Asked, watch: Watch) -> Reply:
        """One answer in words. Raises Halted with what it used, Stopped, and UserError when the key is refused."""
        tried = 0
        for _ in count():
            dialect = self._dialects.get(asked.model, self._first)
            try:
                return self._once(asked, dialect, watch)
            except Rejected as error:
                if lower := dialect.lowered(error.status, error.said):
                    self._dialects[asked.model] = lower
                    continue
                refusals.final(error, (self._key,))
                pause = error.after
                reason = refusals.worded(error, (self._key,))
            except Unreached as error:
                pause, reason = None, refusals.shown(f"no connection ({error})", (self._key,))
            tried += 1
            pause = self._pause(tried) if pause is None else pause
            if tried > _MOST_RETRIES or pause >= watch.left:
                raise Refused(reason)
            watch.sleep(pause)
        raise AssertionError

    def _pause(self, tried: int) -> float:
        longest: float = min(self._backoff_s * 2 ** (tried - 1), _LONGEST_PAUSE_S)
        return longest * random.uniform(0.75, 1.0)  # noqa: S311 - workers that were refused together should not come back together

    def _once(self, asked: Asked, dialect: Dialect, watch: Watch) -> Reply:
        messages = with_schema(asked.messages, asked.schema) if dialect.in_words else asked.messages
        body = json.dumps(
            dialect.body(asked.model, [each.model_dump() for each in messages], asked.schema, asked.most_tokens)
        ).encode()
        with closing(Call(self._url, self._headers, body, seconds=watch.left, context=self._context)) as call:
            heard = Heard(counting.said(messages), streamed=False)
            try:
                head = self._head(call, watch, self._stall_s if dialect.streamed else None)
                streamed = "text/event-stream" in head.headers.get("content-type", "")
                if not 200 <= head.status < 300:
                    raise refusals.rejected(head, self._rest(call, watch))
                heard = Heard(counting.said(messages), streamed=streamed)
                self._listen(call, heard, watch)
            except Halted as error:
                error.usage = heard.usage()
                raise
        return Reply(heard.text, heard.finish == "length", heard.usage())

    def _head(self, call: Call, watch: Watch, patience: float | None) -> Head:
        asked = monotonic()
        while True:
            watch.check()
            piece = call.next(_POLL_S)
            if isinstance(piece, Head):
                return piece
            if isinstance(piece, End):
                raise Unreached(piece.error)
            if patience is not None and monotonic() - asked > patience:
                raise Lost(f"nothing came for {patience:g} s")

    def _listen(self, call: Call, heard: Heard, watch: Watch) -> None:
        """Until the answer is whole. An answer that ended as it should is one, even when its connection did not."""
        while not heard.done:
            stalled = heard.streamed and monotonic() - heard.alive > self._stall_s
            if heard.finish and (stalled or not watch.left):
                return
            if stalled:
                raise Lost(f"no word came for {self._stall_s:g} s")
            watch.check()
            piece = call.next(_POLL_S)
            if isinstance(piece, bytes):
                heard.take(piece)
            elif isinstance(piece, End):
                if piece.error and not heard.finish:
                    raise Lost(f"the answer broke off ({piece.error})")
                heard.close()
                return

    def _rest(self, call: Call, watch: Watch) -> bytes:
        """The words of a refusal; what takes long is left unread."""
        until, held = monotonic() + 5.0, b""
        while len(held) < refusals.MOST_BYTES and monotonic() < until:
            watch.check()
            piece = call.next(_POLL_S)
            if isinstance(piece, End):
                break
            held += piece if isinstance(piece, bytes) else b""
        return held

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Made once: reading the certificates takes longer than connecting. Without TLS one that trusts nobody will do."""
        return httpx.create_ssl_context() if self._url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
