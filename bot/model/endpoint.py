"""One call of an OpenAI-compatible endpoint through the openai SDK: what it accepts, its
answer as it arrives, its cost, why it failed.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import Coroutine, Iterable
from concurrent import futures
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from threading import Thread
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
import openai
from openai import APIConnectionError, APIStatusError

from bot.kernel.dialogue import Question, Usage
from bot.kernel.errors import UserError
from bot.kernel.outside_text import clip, one_line
from bot.kernel.redaction import redact
from bot.model.json_answer import with_schema
from bot.model.usage import AnswerLost, CallFailed, Deadline, ModelRefused, estimated, join_messages

# Why a call brought no answer, and what to do next: retry, ask the next model, or stop in time.

_TRANSIENT = frozenset({0, 408, 409, 425, 429})
_QUOTA = ("insufficient_quota", "insufficient quota", "exceeded your current quota", "billing")
_KEY = "Check REPRISE_MODEL_KEY (or OPENAI_API_KEY, when the address comes from OPENAI_BASE_URL)."
_URL = (
    "Check REPRISE_MODEL_URL (or OPENAI_BASE_URL): it is the base address, such as https://host/v1."
)


class RequestRejected(Exception):
    """An error before the first word: nothing was paid for. `status` is 0 without a connection;
    `retry_after` is the wait the endpoint asks for, in seconds.
    """

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after

    def sentence(self, secrets: Iterable[str]) -> str:
        """One line that can be shown: what the endpoint answered, without secrets."""
        message = (
            f"the endpoint answered with status {self.status}" if self.status else "no connection"
        )
        text = f"{message}: {self.message}" if self.message else message
        return clip(one_line(redact(text, secrets)), 300).rstrip(".")

    def raise_if_final(self, secrets: Iterable[str]) -> None:
        """Raises UserError or ModelRefused when another try would change nothing."""
        status = self.status
        if status in {401, 403}:
            raise UserError(f"The model's endpoint refuses the key ({status}).", _KEY)
        if 300 <= status < 400:
            raise UserError(
                f"The model's endpoint redirects ({status}); redirects are not followed.", _URL
            )
        if status == 200:
            raise ModelRefused("this is not an OpenAI-compatible endpoint; check REPRISE_MODEL_URL")
        out_of_quota = status == 429 and any(word in self.message.lower() for word in _QUOTA)
        if out_of_quota or status == 501 or (status < 500 and status not in _TRANSIENT):
            raise ModelRefused(self.sentence(secrets))


def rejected(error: APIStatusError) -> RequestRejected:
    """The SDK's error as a rejection with its message; the page of a proxy has none."""
    body = error.body
    if isinstance(body, dict):
        parts = [str(body[name]) for name in ("message", "code", "param") if body.get(name)]
        body = " ".join(parts) or body.get("detail") or body
    text = body if isinstance(body, str) else json.dumps(body)
    message = "" if text.startswith("<") else clip(text, 2_000)
    retry_after = _seconds(error.response.headers.get("retry-after", ""))
    return RequestRejected(error.status_code, message, retry_after)


def unreached(error: APIConnectionError) -> RequestRejected:
    """No connection, or one that ended before an answer. The text of errors other than
    ConnectError can quote the request.
    """
    cause = error.__cause__
    text = str(cause) if isinstance(cause, httpx2.ConnectError) else type(cause).__name__
    return RequestRejected(0, text)


def usable(key: str) -> str:
    """The key, when a header can carry it. Raises UserError."""
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UserError("The model's key contains invalid characters.", _KEY)
    return key


def _seconds(text: str) -> float | None:
    """Seconds that Retry-After asks for, as a number or a date."""
    try:
        return seconds if (seconds := float(text)) >= 0 else None
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    wait = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)
    return max(0.0, wait.total_seconds())


# The answer of one call as it arrives: its words, why it ended, and the tokens counted.

_MOST_CHARACTERS = 8_000_000
_MOST_TOKENS = 100_000_000


class AnswerBuffer:
    """Collects the objects of a stream, or one whole answer. `prompt` is the text of the
    question; `opened` is whether the endpoint took it, `begun` whether any part of an answer came,
    `finish` why the answer ended.
    """

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._words: list[str] = []
        self._size = 0
        self._reasoning = 0
        self._counted: Usage | None = None
        self.opened = self.begun = False
        self.finish = ""

    @property
    def text(self) -> str:
        """The words so far, without the model's reasoning."""
        return "".join(self._words).encode("utf-8", "replace").decode()

    def usage(self) -> Usage:
        """One call, with the provider's figures where they are plausible."""
        return self._counted or Usage(
            calls=1,
            input_tokens=estimated(self._prompt),
            output_tokens=estimated(self.text) + self._reasoning // 4,
            estimated=True,
        )

    def add(self, part: dict[str, Any]) -> None:
        """One chunk of a stream. Raises AnswerLost when the answer is too long, RequestRejected
        when the part is an error.
        """
        choices = part.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._choice(choices[0])
        elif part.get("error"):
            self.fail(part["error"])
        self._count(part.get("usage"))

    def add_whole(self, content: bytes) -> None:
        """An answer that was not streamed. Raises AnswerLost when it is cut, RequestRejected when
        it is no chat completion.
        """
        text = content.decode("utf-8", "replace").strip()
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            if text.startswith('{"'):
                raise AnswerLost("the answer is incomplete") from None
            data = None
        if isinstance(data, dict):
            self.add(data)
        self.end()
        self.finish = self.finish or "stop"

    def end(self) -> None:
        """Nothing follows. Raises RequestRejected when nothing was a chat completion."""
        if not self.begun:
            raise RequestRejected(200, "not a chat completion")

    def fail(self, error: object) -> None:
        """An error inside the answer. Raises AnswerLost after the first word, RequestRejected
        before it.
        """
        if self.begun:
            raise AnswerLost("the server ended the answer with an error")
        details = error if isinstance(error, dict) else {"message": error}
        code = details.get("code")
        status = code if type(code) is int and 400 <= code < 600 else 500
        raise RequestRejected(status, str(details.get("message") or ""))

    def _choice(self, choice: dict[str, Any]) -> None:
        message = choice.get("delta") or choice.get("message")
        if isinstance(message, dict):
            content = message.get("content")
            if isinstance(content, list):  # some servers answer in parts
                parts = (part for part in content if isinstance(part, dict))
                content = "".join(str(part.get("text") or "") for part in parts)
            if isinstance(content, str):
                self._words.append(content)
                self._size += len(content)
            self._reasoning += sum(
                len(str(message.get(name) or "")) for name in ("reasoning_content", "reasoning")
            )
            self.begun = True
        if self._size > _MOST_CHARACTERS:
            raise AnswerLost(f"the answer exceeds {_MOST_CHARACTERS // 1_000_000} MB")
        self.finish = str(choice.get("finish_reason") or self.finish)

    def _count(self, usage: object) -> None:
        figures = usage if isinstance(usage, dict) else {}
        input_tokens, output_tokens = figures.get("prompt_tokens"), figures.get("completion_tokens")
        if all(
            type(count) is int and 0 <= count < _MOST_TOKENS
            for count in (input_tokens, output_tokens)
        ):
            self._counted = Usage(calls=1, input_tokens=input_tokens, output_tokens=output_tokens)


# What one model's endpoint accepts: begun at the best, lowered by what it refuses, remembered.

Structured = Literal["auto", "json_schema", "json_object", "plain"]
AnswerFormat = Literal["json_schema", "json_object", "plain"]

_WEAKER: dict[AnswerFormat, AnswerFormat] = {"json_schema": "json_object", "json_object": "plain"}
_DENIALS = frozenset({400, 404, 415, 422, 501})
_ABOUT_FORMAT = (
    "response_format",
    "response format",
    "json_schema",
    "json_object",
    "structured",
    "schema",
    "grammar",
    "guided",
)
_UNKNOWN = (
    "unsupported",
    "not supported",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "max_completion_tokens",
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a question is phrased. `format` is how the form of the answer is requested, `fixed`
    whether the host decided that.
    """

    format: AnswerFormat = "json_schema"
    fixed: bool = False
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    streamed: bool = True
    counted: bool = True

    @property
    def in_words(self) -> bool:
        """Whether the messages must contain the schema."""
        return self.format in {"json_object", "plain"}

    def body(self, model: str, question: Question) -> dict[str, Any]:
        """The arguments of the SDK's call."""
        schema = question.answer_schema
        messages = [message.model_dump() for message in question.messages]
        body = {"model": model, "messages": messages, self.limit: question.most_tokens}
        if self.format == "json_schema":
            response_schema = {"name": "answer", "schema": schema, "strict": closed(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": response_schema}
        elif self.format == "json_object":
            body["response_format"] = {"type": "json_object"}
        if self.streamed:
            body["stream"] = True
        if self.streamed and self.counted:
            body["stream_options"] = {"include_usage": True}
        return body

    def lowered(self, status: int, message: str) -> Dialect | None:
        """A dialect without what the endpoint refused; None when it refused something else."""
        message = message.lower()

        def mentions(words: tuple[str, ...]) -> bool:
            return any(word in message for word in words)

        limit = self.limit == "max_tokens" and "max_tokens" in message and mentions(_UNKNOWN)
        without_counts = self.streamed and self.counted and "stream_options" in message
        without_stream = self.streamed and "stream" in message
        form = not self.fixed and self.format in _WEAKER and mentions(_ABOUT_FORMAT)
        changes: tuple[tuple[bool, dict[str, Any]], ...] = (
            (limit, {"limit": "max_completion_tokens"}),
            (without_counts, {"counted": False}),
            (without_stream, {"streamed": False}),
            (form, {"format": _WEAKER.get(self.format)}),
        )
        changes_that_apply = (
            change for applies, change in changes if applies and status in _DENIALS
        )
        return next((replace(self, **change) for change in changes_that_apply), None)


def first(structured: Structured) -> Dialect:
    """Where to begin; a format that the host sets is kept."""
    return Dialect() if structured == "auto" else Dialect(structured, fixed=True)


def closed(schema: object) -> bool:
    """Whether strict endpoints accept a schema: every object requires all its properties."""
    if isinstance(schema, list):
        return all(closed(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        required, properties = (
            set(schema.get("required") or ()),
            set(schema.get("properties") or ()),
        )
        if schema.get("additionalProperties") is not False or required != properties:
            return False
    return all(closed(part) for part in schema.values())


# One call of an OpenAI-compatible endpoint through the openai SDK: phrased as the endpoint
# accepts it, and retried where a retry costs nothing.

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
        self._url, self._key = url, usable(key)
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
        buffer = AnswerBuffer(join_messages(question.messages))
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
            raise rejected(error) from None
        except (openai.APIConnectionError, httpx2.HTTPError, ValueError) as error:
            if isinstance(error, openai.APIConnectionError) and not buffer.opened:
                raise unreached(error) from None
            raise AnswerLost(f"the answer ended early ({type(error).__name__})") from None
        except openai.APIError as error:
            buffer.fail(error.body)

    async def _read(self, body: dict[str, Any], buffer: AnswerBuffer) -> None:
        """Read the answer. Raises TimeoutError when a stream brings nothing for too long."""
        clock, is_streaming = asyncio.get_running_loop().time, "stream" in body
        async with (
            self._client() as client,
            asyncio.timeout(self._stall_s if is_streaming else None) as stall,
            client.chat.completions.with_streaming_response.create(**body) as response,
        ):
            buffer.opened = True
            if not is_streaming or "json" in response.headers.get("content-type", ""):
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
    future = asyncio.run_coroutine_threadsafe(_without_frames(work), event_loop())
    try:
        while not futures.wait((future,), _POLL_S).done:
            deadline.check()
    finally:
        future.cancel()
    future.result()


async def _without_frames(work: Coroutine[Any, Any, None]) -> None:
    """The same, but its error brings no frames of the call: the SDK's half-read stream would be
    freed with them in the caller's thread, beside the loop that is closing it.
    """
    try:
        await work
    except (CallFailed, RequestRejected) as error:
        error.__context__ = None
        raise error.with_traceback(None) from None
