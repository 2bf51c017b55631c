"""The configuration in force as a reply: every value with where it came from, and what is wrong with the files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from bot.models.loaded import Loaded, Origin, Problem
from bot.render.sanitize import bullets, clip, code_span, fence, one_line, redact

_SHOWN = 10
_WIDE = 400


def configuration(loaded: Loaded) -> str:
    """The answer to `/reproduce config`."""
    came = ", ".join(code_span(file) for file in loaded.source)
    head = (
        f"The configuration in force here, from {came}:"
        if came
        else "No configuration file applies here; these are the defaults:"
    )
    said = [problems(loaded.problems)] if loaded.problems else []
    return "\n\n".join([head, fence("\n".join(_lines(loaded.config, loaded.origins)), "yaml"), *said])


def problems(found: Iterable[Problem]) -> str:
    """What is wrong and what follows from it, for one reply."""
    each = list(found)
    files = list(dict.fromkeys(problem.file for problem in each))
    lines = bullets(map(_sentence, each[:_SHOWN]), limit=500)
    lines += [f"- and {len(each) - _SHOWN} more"] if len(each) > _SHOWN else []
    named = ", ".join(code_span(file) for file in files)
    return "\n".join([f"Reprise cannot use all of {named}. A file with a mistake is left out as a whole:", "", *lines])


def _sentence(problem: Problem) -> str:
    where = f"`{problem.file}`" + (f", line {problem.line}" if problem.line else "")
    what = f"`{clip(redact(one_line(problem.key)).replace('`', ''), 120)}` " if problem.key else "the file "
    return f"{where}: {what}{problem.reason}"


def _lines(values: BaseModel, origins: dict[str, Origin], before: str = "", indent: str = "") -> Iterator[str]:
    for name in type(values).model_fields:
        value, key = getattr(values, name), f"{before}{name}"
        if isinstance(value, BaseModel):
            yield f"{indent}{name}:"
            yield from _lines(value, origins, f"{key}.", indent + "  ")
        else:
            yield f"{indent}{name}: {_value(value)}  # {_origin(origins.get(key))}"


def _value(value: object) -> str:
    return clip(redact(one_line(json.dumps(value, ensure_ascii=False))), _WIDE)


def _origin(origin: Origin | None) -> str:
    return "default" if origin is None else f"{origin.kind}: {clip(one_line(origin.file), 120)}"
