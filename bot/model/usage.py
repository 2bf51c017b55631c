"""What a call to a model uses (tokens counted by the provider or estimated, dollars by the host's
own price table), how it fails, and the deadline that all it does shares.
"""

import json
from collections.abc import Mapping
from math import ceil
from threading import Event
from time import monotonic

from bot.kernel.dialogue import Message, Question, Usage
from bot.kernel.errors import Stopped
from bot.kernel.values import Record

_CHARACTERS = 4
_CAREFUL_BYTES = 3
_A_MESSAGE = 8  # what chat templates put around one


class Price(Record):
    """USD for a million tokens."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """The price of a call in USD."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


Prices = Mapping[str, Price]


def estimated(text: str) -> int:
    """Roughly how many tokens a text has: for providers that do not count."""
    return ceil(len(text) / _CHARACTERS)


def join_messages(messages: tuple[Message, ...]) -> str:
    """The text of a conversation."""
    return "".join(message.content for message in messages)


def careful(question: Question) -> int:
    """An upper estimate for budgets of the tokens of a question in English and code, its schema
    included.
    """
    return (
        _careful(join_messages(question.messages))
        + careful_schema(question)
        + _A_MESSAGE * len(question.messages)
    )


def careful_schema(question: Question) -> int:
    """The same for the schema alone."""
    return _careful(json.dumps(question.answer_schema))


def _careful(text: str) -> int:
    return ceil(len(text.encode("utf-8", "replace")) / _CAREFUL_BYTES)


def priced(usage: Usage, price: Price | None) -> Usage:
    """The usage with its dollars. Without a price they stay 0 and the usage counts as estimated."""
    if price is None or not usage.calls:
        return usage.model_copy(update={"estimated": usage.calls > 0})
    return usage.model_copy(update={"usd": price.of(usage.input_tokens, usage.output_tokens)})


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
