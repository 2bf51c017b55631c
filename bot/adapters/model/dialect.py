"""What one model's endpoint accepts: begun at the best, lowered by what it refuses, remembered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from bot.models.dialogue import Question

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
            named = {"name": "answer", "schema": schema, "strict": closed(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
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
        counted = self.streamed and self.counted and "stream_options" in message
        streamed = self.streamed and "stream" in message
        form = not self.fixed and self.format in _WEAKER and mentions(_ABOUT_FORMAT)
        changes: tuple[tuple[bool, dict[str, Any]], ...] = (
            (limit, {"limit": "max_completion_tokens"}),
            (counted, {"counted": False}),
            (streamed, {"streamed": False}),
            (form, {"format": _WEAKER.get(self.format)}),
        )
        refused = (change for applies, change in changes if applies and status in _DENIALS)
        return next((replace(self, **change) for change in refused), None)


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
        required, named = set(schema.get("required") or ()), set(schema.get("properties") or ())
        if schema.get("additionalProperties") is not False or required != named:
            return False
    return all(closed(part) for part in schema.values())
