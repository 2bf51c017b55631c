"""The JSON object in a model's answer: asked for in words, found among prose, reasoning and fences,
validated, and corrected once.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from bot.kernel.dialogue import Message, Question
from bot.kernel.outside_text import clean, clip
from prompts import load
from prompts.catalog import fence

_THOUGHTS, _END = "<think>", "</think>"
_MOST_STARTS = 200
_MOST_ERROR = 1_000
_MOST_SHOWN = 40_000  # characters of an answer that did not fit
CORRECTION_TOKENS = 1_000  # more than the words around what is shown


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why an answer is unusable: a sentence for people, and the full error for the model."""

    sentence: str
    error: str = ""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(load("mend").fragment("not_json", name=name))


_DECODER = json.JSONDecoder(
    strict=False, parse_constant=_no_constant
)  # models leave line ends inside strings as they are


def fit(text: str, schema: dict[str, Any], *, cut_at: int = 0) -> dict[str, Any] | Misfit:
    """The first valid object in the text, or why there is none. `cut_at` is the limit in tokens
    at which the answer was cut off, 0 when it was not.
    """
    validator, misfit = Draft202012Validator(schema), None
    for candidate in objects(text):
        try:
            error = best_match(validator.iter_errors(candidate))
        except RecursionError:
            continue
        if error is None:
            return candidate
        misfit = misfit or _invalid(error)
    return _misfit(text, misfit, cut_at)


def _invalid(error: ValidationError) -> Misfit:
    prompt = load("mend")
    path = clip(error.json_path, 200)
    message = prompt.fragment("misfit_where", path=path, error=error.message)
    return Misfit(prompt.fragment("misfit_schema"), clip(message, _MOST_ERROR))


def _misfit(text: str, invalid: Misfit | None, cut_at: int) -> Misfit:
    prompt = load("mend")
    if cut_at:
        return Misfit(prompt.fragment("misfit_cut"), prompt.fragment("truncated", tokens=cut_at))
    if invalid is None and not _after_thoughts(text):
        return Misfit(prompt.fragment("misfit_empty"))
    return invalid or Misfit(prompt.fragment("misfit_no_object"), _why(_after_thoughts(text)))


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects after the reasoning. If there are none, those of the whole text:
    an answer may itself contain the mark that ends the reasoning.
    """
    answer = _after_thoughts(text)
    candidates = list(_outermost(answer))
    yield from candidates or ([] if text.lstrip().startswith(_THOUGHTS) else _outermost(text))


def _outermost(text: str) -> Iterator[dict[str, Any]]:
    end = 0
    for match in islice(re.finditer(r"\{", text), _MOST_STARTS):
        start = match.start()
        if start < end:  # inside one that was found already
            continue
        try:
            candidate, end_of_it = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(candidate, dict):
            end = end_of_it
            yield _whole(candidate)


def _after_thoughts(text: str) -> str:
    """The text after the reasoning; some templates leave out the mark where it begins."""
    text = text.strip()
    tail = text.partition(_END)[2].strip()
    if text.startswith(_THOUGHTS):
        return tail
    return tail if "{" in tail and not text.startswith(("{", "```")) else text


def _why(text: str) -> str:
    start = text.find("{")
    try:
        _DECODER.raw_decode(text, max(start, 0))
    except json.JSONDecodeError as error:
        return load("mend").fragment(
            "syntax_error", error=error.msg, line=error.lineno, column=error.colno
        )
    except (ValueError, RecursionError) as error:
        return clip(str(error), _MOST_ERROR)
    return ""


def _whole(candidate: dict[str, Any]) -> dict[str, Any]:
    """The object without lone surrogates, which could be neither stored nor shown."""
    normalized: dict[str, Any] = json.loads(
        json.dumps(candidate, ensure_ascii=False).encode("utf-8", "replace")
    )
    return normalized


_FRAME = {"$schema", "$defs", "title", "type", "properties", "required", "additionalProperties"}
_PARTS = {"items", "anyOf", "enum", "const", "$ref"}
_NOTES = (
    *("description", "pattern", "minLength", "maxLength", "minimum", "maximum"),
    *("minItems", "maxItems"),
)


def in_words(schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> str:
    """A schema as an outline of the answer, half as long: keys with what belongs behind each. A
    part that says more than an outline can stays as it is.
    """
    names: dict[str, Any] = schema.get("$defs", definitions or {})
    keys, required = set(schema.get("properties", ())), set(schema.get("required", ()))
    is_open = schema.get("type") == "object" and schema.get("additionalProperties", True)
    if is_open or keys - required or set(schema) - _FRAME - _PARTS - set(_NOTES):
        return json.dumps(schema)
    notes = ", ".join(f"{name} {schema[name]}" for name in _NOTES if name in schema)
    return _outline(schema, names) + (f" ({notes})" if notes else "")


def _outline(schema: dict[str, Any], names: dict[str, Any]) -> str:
    match schema:
        case {"$ref": str(path)}:
            return in_words(names[path.rpartition("/")[2]], names)
        case {"anyOf": list(parts)}:
            return " | ".join(in_words(part, names) for part in parts)
        case {"enum": list(values)}:
            return " | ".join(map(json.dumps, values))
        case {"const": value}:
            return json.dumps(value)
        case {"properties": dict(parts)}:
            rows = (f'"{key}": {in_words(part, names)}' for key, part in parts.items())
            return "{" + ", ".join(rows) + "}"
        case {"items": dict(part)}:
            return f"[{in_words(part, names)}, ...]"
        case {"type": list(kinds)}:
            return " | ".join(kinds)
    return str(schema.get("type", "any"))


def with_schema(question: Question) -> Question:
    """The question with its schema as text, for endpoints that take no schema."""
    system, _ = load("shape").render(schema=in_words(question.answer_schema))
    return _with(question, system)


def correction(question: Question, text: str, misfit: Misfit) -> Question:
    """The question with the answer that did not fit, and what was wrong with it."""
    prompt = load("mend")
    system, user = prompt.render(
        problem=f"{misfit.sentence}.",
        error=fence("error", clean(misfit.error)) if misfit.error else prompt.fragment("no_error"),
        schema=in_words(question.answer_schema),
        tokens=str(question.most_tokens),
    )
    content = text[:_MOST_SHOWN] or prompt.fragment("nothing_answered")
    answer = Message(role="assistant", content=content)
    return _with(question, system, answer, Message(role="user", content=user))


def _with(question: Question, system: str, *more: Message) -> Question:
    """The question with a longer system message and more turns."""
    head, *rest = question.messages
    if head.role == "system":
        head = head.model_copy(update={"content": f"{head.content}\n\n{system}"})
    else:
        head, rest = Message(role="system", content=system), list(question.messages)
    return question.model_copy(update={"messages": (head, *rest, *more)})
