"""Questions to a model and its answers: typed, counted, and recorded so that a run can be replayed
without a model.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from bot.models.base import Record

Role = Literal["reader", "writer"]
"""Which model: the reader (cheap) fills the gaps of a report, the writer (strong) plans and writes
programs.
"""


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Usage(Record):
    """Calls, tokens as the provider counts them (estimated when it does not), and dollars when the
    price is known.
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
    """One request. `prompt` is id@version#sha of the prompt file; `answer_schema` a JSON Schema
    that the answer must fit; `most_tokens` the longest answer.
    """

    role: Role
    prompt: str
    messages: tuple[Message, ...]
    answer_schema: dict[str, Any]
    most_tokens: int = 4_096

    @property
    def digest(self) -> str:
        """SHA-256 of the question with the id of its prompt: equal questions may share a recorded
        answer.
        """
        content = {
            "prompt": self.prompt,
            "messages": [message.model_dump() for message in self.messages],
            "schema": self.answer_schema,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class ModelAnswer(Record):
    """A model's answer as an object that is valid for the question's schema. `mended` when the
    first answer was invalid and the model corrected it once.
    """

    data: dict[str, Any]
    text: str
    model: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    mended: bool = False


class Exchange(Record):
    """A question with its answer, or with the error and what it `used`: the unit of recording and
    replay.
    """

    number: int
    question: Question
    answer: ModelAnswer | None = None
    error: str = ""
    used: Usage = Usage()
