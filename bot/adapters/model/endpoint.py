"""One call of an OpenAI-compatible endpoint through the openai SDK: phrased as the endpoint accepts
it, and retried where a retry costs nothing.
"""

import asyncio
import random
import ssl
from collections.abc import Coroutine
from concurrent import futures
from functools import cache, cached_property
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from bot.adapters.model import counting, failures
from bot.adapters.model.answer_buffer import AnswerBuffer
from bot.adapters.model.dialect import Dialect, Structured, first
from bot.adapters.model.failures import (
    AnswerLost,
    CallFailed,
    Deadline,
    ModelRefused,
    RequestRejected,
)
from bot.adapters.model.json_extract import with_schema
from bot.models.dialogue import Question

_POLL_S = 0.1
_CONNECT_S = 10.0
_MOST_RETRIES = 7
_LONGEST_PAUSE_S = 30.0
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {"host", "connection", "accept", "accept-encoding", "content-type", "content-length"}
_HEADERS |= {"x-stainless-raw-response"}  # the SDK reads it back from its own request


class Endpoint:
    """`url` is the base address, such as https://host/v1. `stall_s` is how long a stream may bring
    nothing; `backoff_s` the first pause before a retry, doubled each time.
    """

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        stall_s: float = 120.0,
        structured: Structured = "auto",
        backoff_s: float = 0.5,
    ) -> None:
        self._url, self._key = url, failures.usable(key)
        self._stall_s, self._backoff_s = stall_s, backoff_s
        self._first = first(structured)
        self._dialects: dict[str, Dialect] = {}

    def complete(self, model: str, question: Question, deadline: Deadline) -> AnswerBuffer:
        """One answer as text. Raises CallFailed with what it used, Stopped, and UserError when
        the endpoint refuses the key.
        """
        retries = 0
        while True:
            dialect = self._dialects.get(model, self._first)
            try:
                return self._once(model, question, dialect, deadline)
            except RequestRejected as error:
                lower = dialect.lowered(error.status, error.message)
                if lower is not None:
                    self._dialects[model] = lower
                    continue
                error.raise_if_final((self._key,))
                reason, pause = error.sentence((self._key,)), error.retry_after
            retries += 1
            pause = self._pause(retries) if pause is None else pause
            if retries > _MOST_RETRIES or pause >= deadline.left:
                raise ModelRefused(reason)
            deadline.sleep(pause)

    def _pause(self, retries: int) -> float:
        longest = min(self._backoff_s * 2.0 ** (retries - 1), _LONGEST_PAUSE_S)
        return longest * random.uniform(0.75, 1.0)  # noqa: S311 - spreads workers that were refused together

    def _once(
        self, model: str, question: Question, dialect: Dialect, deadline: Deadline
    ) -> AnswerBuffer:
        deadline.check()
        if dialect.in_words:
            question = with_schema(question)
        buffer = AnswerBuffer(counting.said(question.messages))
        try:
            _wait(self._receive(dialect.body(model, question), buffer), deadline)
        except CallFailed as error:
            # An answer that ended properly is whole, even when its connection did not.
            if not buffer.finish:
                error.usage = buffer.usage()
                raise
        return buffer

    async def _receive(self, body: dict[str, Any], buffer: AnswerBuffer) -> None:
        try:
            await self._read(body, buffer)
        except TimeoutError:
            raise AnswerLost(f"nothing arrived for {self._stall_s:g} s") from None
        except openai.APIStatusError as error:
            raise failures.rejected(error) from None
        except (openai.APIConnectionError, httpx2.HTTPError, ValueError) as error:
            if isinstance(error, openai.APIConnectionError) and not buffer.opened:
                raise failures.unreached(error) from None
            raise AnswerLost(f"the answer ended early ({type(error).__name__})") from None
        except openai.APIError as error:
            buffer.fail(error.body)

    async def _read(self, body: dict[str, Any], buffer: AnswerBuffer) -> None:
        """Read the answer. Raises TimeoutError when a stream brings nothing for too long."""
        clock, streamed = asyncio.get_running_loop().time, "stream" in body
        async with (
            self._client() as client,
            asyncio.timeout(self._stall_s if streamed else None) as stall,
            client.chat.completions.with_streaming_response.create(**body) as response,
        ):
            buffer.opened = True
            if not streamed or "json" in response.headers.get("content-type", ""):
                stall.reschedule(None)
                buffer.add_whole(await response.read())
                return
            async for chunk in await response.parse(to=openai.AsyncStream[object]):
                stall.reschedule(clock() + self._stall_s)
                if isinstance(chunk, dict):
                    buffer.add(chunk)
        buffer.end()
        if not buffer.finish:
            raise AnswerLost("the answer ended early")

    def _client(self) -> openai.AsyncOpenAI:
        """A client for one call. It does not retry: that would multiply its timeout."""
        # A proxy must not see what is meant for this machine.
        remote = urlsplit(self._url).hostname not in _LOCAL
        transport = openai.DefaultAsyncHttpxClient(
            verify=self._context,
            follow_redirects=False,
            trust_env=remote,
            event_hooks={"request": [self._minimal_headers]},
        )
        return openai.AsyncOpenAI(
            base_url=self._url,
            api_key=self._key or "none",
            max_retries=0,
            timeout=openai.Timeout(None, connect=_CONNECT_S),
            http_client=transport,
        )

    async def _minimal_headers(self, request: httpx2.Request) -> None:
        """Send the key and nothing else of ours: the SDK would add what OPENAI_* variables name
        (an organisation, another key) and a description of this machine.
        """
        for name in set(request.headers.keys()) - _HEADERS:
            del request.headers[name]
        request.headers["User-Agent"] = "reprise"
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """Made once: reading the certificates takes longer than connecting. Without TLS an empty
        context will do.
        """
        if self._url.startswith("https:"):
            return httpx2.create_ssl_context()
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """One loop in a thread for all calls, so that a caller can leave a call at any moment: name
    resolution cannot be interrupted.
    """
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="model-calls", daemon=True).start()
    return loop


def _wait(work: Coroutine[Any, Any, None], deadline: Deadline) -> None:
    """Wait for a call; cancel it when the deadline passes or the caller is cancelled."""
    future = asyncio.run_coroutine_threadsafe(work, event_loop())
    try:
        while not futures.wait((future,), _POLL_S).done:
            deadline.check()
    finally:
        future.cancel()
    future.result()
