"""Where the files of a program spell a value: the literals that may decide it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice

from bot.rules.hyperparameters.text.expressions import NotApplicable, expression
from bot.rules.hyperparameters.text.numbers import number
from bot.rules.script_fixes.edits import Edit, apply

_LONGEST, _MOST, _MOST_MATCHES, _NEAR = 150_000, 16, 5_000, 200
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d[\d_]{0,20}+(?:\.[\d_]{0,20}+)?+|\.\d{1,20}+)(?:[eE][-+]?\d{1,3})?+(?![\w.])"
)
_PRODUCT = re.compile(rf"{_NUMBER.pattern}(?: ?(?:\*\*?|//?) ?{_NUMBER.pattern}){{1,3}}+")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?![\w.])")


@dataclass(frozen=True)
class Literal:
    """Characters `start` to `end` of a file, on a 1-based line."""

    file: str
    start: int
    end: int
    line: int


def spelled(files: Mapping[str, str], value: str, name: str) -> list[Literal]:
    """The literals of a value as a run tells it, first those on a line with the name of its use."""
    found = [one for file, text in files.items() for one in _in(file, text, value)]
    near = _plain(name)

    def far(one: Literal) -> bool:
        text = files[one.file]
        start = max(text.rfind("\n", 0, one.start) + 1, one.start - _NEAR)
        return near not in _plain(text[start : one.end])

    return sorted(found, key=far)[:_MOST]


def _plain(text: str) -> str:
    return text.replace("-", "_").lower()


def _in(file: str, text: str, value: str) -> Iterator[Literal]:
    if len(text) > _LONGEST:
        return
    patterns = (_WORD,) if value.isidentifier() else (_PRODUCT, _NUMBER)
    for match in chain(*(islice(one.finditer(text), _MOST_MATCHES) for one in patterns)):
        if (match[0] if value.isidentifier() else _number(match[0])) == value:
            yield Literal(file, match.start(), match.end(), text.count("\n", 0, match.start()) + 1)


def _number(text: str) -> str:
    """A number, or a product of some, as a run tells it."""
    try:
        return repr(float(text.replace("_", "")))
    except ValueError:
        with suppress(NotApplicable):
            return repr(number(expression(text)))
    return ""


def rewritten(files: Mapping[str, str], changes: Iterable[tuple[Literal, str]]) -> dict[str, str]:
    """The files that change, with other values for some literals: all else stays."""
    edits: dict[str, list[Edit]] = {}
    for one, value in changes:
        edits.setdefault(one.file, []).append((one.start, one.end, _as_in(one.file, value)))
    return {name: apply(files[name], own) for name, own in edits.items()}


def _as_in(file: str, value: str) -> str:
    """A word stands in quotes already, if any. A reader of YAML 1.1 takes `1e-05` for a word."""
    value = value.strip("\"'")
    return value if file.endswith(".py") else re.sub(r"^(\d+)e", r"\1.0e", value)
