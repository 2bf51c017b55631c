"""What asking uses: tokens counted by the provider or estimated, dollars by the host's own price table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import ceil

from bot.models.base import Record
from bot.models.dialogue import Message, Question, Usage

_CHARACTERS = 4
_CAREFUL_BYTES = 3
_A_MESSAGE = 8  # what chat templates put around one


class Price(Record):
    """USD for a million tokens."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Dollars for so many tokens."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


Prices = Mapping[str, Price]


def estimated(text: str) -> int:
    """About how many tokens a text has: what is counted when the provider does not say."""
    return ceil(len(text) / _CHARACTERS)


def said(messages: tuple[Message, ...]) -> str:
    """All the words of a conversation."""
    return "".join(message.content for message in messages)


def careful(question: Question) -> int:
    """More tokens than tokenizers make of a question in English and code, its schema included: for budgets."""
    return _careful(said(question.messages)) + careful_schema(question) + _A_MESSAGE * len(question.messages)


def careful_schema(question: Question) -> int:
    """The part of it that is the schema."""
    return _careful(json.dumps(question.answer_schema))


def _careful(text: str) -> int:
    return ceil(len(text.encode("utf-8", "replace")) / _CAREFUL_BYTES)


def priced(usage: Usage, price: Price | None) -> Usage:
    """The usage with its dollars; with no price known they stay 0 and the usage is marked as estimated."""
    if price is None:
        return usage.model_copy(update={"estimated": True})
    return usage.model_copy(update={"usd": price.of(usage.input_tokens, usage.output_tokens)})
