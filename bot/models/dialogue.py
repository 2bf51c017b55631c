"""What is said to a model and what comes back: typed, counted, and kept so that a run can be replayed without one."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from bot.models.base import Record

Role = Literal["reader", "writer"]
"""Who is asked: the reader (cheap) fills what a report leaves open, the writer (strong) plans and writes programs."""


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Usage(Record):
    """What was used: calls, tokens as the provider counts them (estimated when it does not say), dollars when the price is
    known.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
            estimated=self.estimated or other.estimated,
        )


class Question(Record):
    """One request. `prompt` is id@version#sha of the prompt file; `answer_schema` a JSON Schema that the answer must fit;
    `most_tokens` the longest answer.
    """

    role: Role
    prompt: str
    messages: tuple[Message, ...]
    answer_schema: dict[str, Any]
    most_tokens: int = 4_096

    @property
    def digest(self) -> str:
        """SHA-256 over what was asked, the prompt's id and version included: equal questions may share a recorded answer."""
        said = {"prompt": self.prompt, "messages": [each.model_dump() for each in self.messages], "schema": self.answer_schema}
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Answer(Record):
    """What a model said, already an object that fits the question's schema. `mended` when a first answer did not fit and the
    error was shown to the model once.
    """

    data: dict[str, Any]
    text: str
    model: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    mended: bool = False


class Exchange(Record):
    """A question with its answer, or with why there is none and what that `used`: the unit of recording and replay."""

    number: int
    question: Question
    answer: Answer | None = None
    error: str = ""
    used: Usage = Usage()
