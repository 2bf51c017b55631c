"""The object in a model's words: found among prose, thoughts and fences, and held to the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from bot.render.sanitize import clip

_FENCED = re.compile(r"```(?:json)?[ \t]*\n[ \t]*(?=\{)")
_THOUGHTS, _END = "<think>", "</think>"
_MOST_STARTS = 200
_MOST_ERROR = 1_000


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why an answer cannot be used: a sentence for people, and the error in full for the model."""

    sentence: str
    error: str = ""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_constant)  # models leave line ends inside strings as they are


def fitted(text: str, schema: dict[str, Any], *, cut_at: int = 0) -> dict[str, Any] | Misfit:
    """The first object in the text that fits, or why there is none. `cut_at` is the limit in tokens at which the answer was cut
    off, 0 when it was not.
    """
    validator = Draft202012Validator(schema)
    misfit: Misfit | None = None
    for found in objects(text):
        try:
            error = best_match(validator.iter_errors(found))
        except RecursionError:
            continue
        if error is None:
            return found
        where = clip(error.json_path, 200)
        misfit = misfit or Misfit("it does not fit the schema", clip(f"at {where}: {error.message}", _MOST_ERROR))
    if cut_at:
        return Misfit("it was cut off", f"It did not end within {cut_at} tokens. Be shorter.")
    if misfit is None and not _spoken(text):
        return Misfit("it is empty")
    return misfit or Misfit("it holds no JSON object", _why(_spoken(text)))


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects in the words after the thoughts. When those hold none, of all the words: an answer may itself
    hold the mark that ends thoughts.
    """
    spoken = _spoken(text)
    found = list(_outermost(spoken))
    yield from found or ([] if text.lstrip().startswith(_THOUGHTS) else _outermost(text))


def _outermost(text: str) -> Iterator[dict[str, Any]]:
    """The whole text first, then what begins after a fence, then any."""
    text = text.strip()
    starts = [0, *(match.end() for match in _FENCED.finditer(text)), *(match.start() for match in re.finditer(r"\{", text))]
    end = 0
    for start in list(dict.fromkeys(starts))[:_MOST_STARTS]:
        if start and start < end:  # inside one that was found already
            continue
        try:
            found, end_of_it = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            end = max(end, end_of_it)
            yield _whole(found)


def _spoken(text: str) -> str:
    """The words after the thoughts; some templates leave out the mark where thoughts begin."""
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
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        return clip(str(error), _MOST_ERROR)
    return ""


def _whole(found: dict[str, Any]) -> dict[str, Any]:
    """JSON can name half a character, which could be neither stored nor shown."""
    made: dict[str, Any] = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return made
