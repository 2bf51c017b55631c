"""What one model's endpoint takes: begun at the best, lowered by what it refuses, and remembered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

Structured = Literal["auto", "json_schema", "json_object", "plain"]
Shape = Literal["strict", "json_schema", "json_object", "plain"]

_SHAPES: tuple[Shape, ...] = get_args(Shape)
_DENIALS = frozenset({400, 404, 415, 422, 501})
_ABOUT_SHAPE = ("response_format", "response format", "json_schema", "json_object", "structured", "schema", "grammar", "guided")
_UNKNOWN = ("unsupported", "not supported", "unknown", "unrecognized", "unexpected", "not permitted", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a question is put. `shape` is how the answer's form is asked for; `fixed` when the host decided that."""

    shape: Shape = "strict"
    fixed: bool = False
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    streamed: bool = True
    counted: bool = True

    @property
    def in_words(self) -> bool:
        """Whether the schema must be said in the messages."""
        return self.shape in {"json_object", "plain"}

    def body(self, model: str, messages: Iterable[dict[str, str]], schema: dict[str, Any], most_tokens: int) -> dict[str, Any]:
        """The request."""
        body: dict[str, Any] = {"model": model, "messages": list(messages), self.limit: most_tokens}
        if self.shape in {"strict", "json_schema"}:
            strict = self.shape == "strict" and closed(schema)
            named = {"name": "answer", "schema": schema, "strict": strict}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif self.shape == "json_object":
            body["response_format"] = {"type": "json_object"}
        if self.streamed:
            body["stream"] = True
            if self.counted:
                body["stream_options"] = {"include_usage": True}
        return body

    def lowered(self, status: int, said: str) -> Dialect | None:
        """A dialect without what the endpoint just refused; None when the refusal is about something else."""
        said = said.lower()
        if status not in _DENIALS:
            return None
        if self.limit == "max_tokens" and "max_tokens" in said and any(word in said for word in _UNKNOWN):
            return replace(self, limit="max_completion_tokens")
        if self.streamed and "stream" in said:
            return replace(self, counted=False) if self.counted and "stream_options" in said else replace(self, streamed=False)
        if not self.fixed and self.shape != "plain" and any(word in said for word in _ABOUT_SHAPE):
            return replace(self, shape=_SHAPES[_SHAPES.index(self.shape) + 1])
        return None


def first(structured: Structured) -> Dialect:
    """Where to begin; what the host sets is kept to."""
    return (
        Dialect()
        if structured == "auto"
        else Dialect(shape="strict" if structured == "json_schema" else structured, fixed=True)
    )


def closed(schema: object) -> bool:
    """Whether endpoints that are strict about schemas would take it: every object requires all that it may have."""
    if isinstance(schema, list):
        return all(closed(each) for each in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        named = set(schema.get("properties") or ())
        if schema.get("additionalProperties") is not False or set(schema.get("required") or ()) != named:
            return False
    return all(closed(each) for each in schema.values())
