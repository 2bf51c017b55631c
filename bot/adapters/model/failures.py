"""Why a call brought no answer, and what to do next: retry, ask the next model, or stop in time."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Event
from time import monotonic

import httpx2
from openai import APIConnectionError, APIStatusError

from bot.errors import Stopped, UserError
from bot.models.dialogue import Usage
from bot.text.sanitize import clip, one_line, redact

_TRANSIENT = frozenset({0, 408, 409, 425, 429})
_QUOTA = ("insufficient_quota", "insufficient quota", "exceeded your current quota", "billing")
_KEY = "Check REPRISE_MODEL_KEY (or OPENAI_API_KEY, when the address comes from OPENAI_BASE_URL)."
_URL = (
    "Check REPRISE_MODEL_URL (or OPENAI_BASE_URL): it is the base address, such as https://host/v1."
)


class CallFailed(Exception):
    """Root of the failures of one model; `usage` is what was used until then."""

    def __init__(self, reason: str, usage: Usage | None = None) -> None:
        super().__init__(reason)
        self.usage = usage or Usage()


class AnswerLost(CallFailed):
    """The answer broke off or stalled: it may have been paid for. Another call may work."""


class ModelRefused(CallFailed):
    """This model will not answer, whatever is tried."""


class DeadlineExceeded(CallFailed):
    """The time for this model is used up."""


class Deadline:
    """One deadline for everything one model does: calls, retries and waits share it. Seconds."""

    def __init__(self, seconds: float, cancel: Event) -> None:
        self._seconds = seconds
        self._end = monotonic() + seconds
        self._cancel = cancel

    @property
    def left(self) -> float:
        """Seconds left, 0 after the deadline."""
        return max(0.0, self._end - monotonic())

    def check(self) -> None:
        """Raises Stopped after a cancel, DeadlineExceeded after the deadline."""
        if self._cancel.is_set():
            raise Stopped("The question to the model was cancelled.")
        if not self.left:
            raise DeadlineExceeded(f"no answer within {round(self._seconds, 1):g} s")

    def sleep(self, seconds: float) -> None:
        """Wait, but return early with an error after a cancel."""
        self._cancel.wait(min(seconds, self.left))
        self.check()


class RequestRejected(Exception):
    """An error before the first word: nothing was paid for. `status` is 0 without a connection;
    `retry_after` is the wait the endpoint asks for, in seconds.
    """

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after

    def sentence(self, secrets: Iterable[str]) -> str:
        """One line that can be shown: what the endpoint answered, without secrets."""
        answered = (
            f"the endpoint answered with status {self.status}" if self.status else "no connection"
        )
        text = f"{answered}: {self.message}" if self.message else answered
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
