"""Literals that may decide a value, and runs that show which does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import libcst as cst

from bot.environment.imports import Edit, apply
from bot.program.text import NotApplicable, expression, read_number

# Where the files of a program spell a value: the literals that may decide it.

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
    literals = [one for file, text in files.items() for one in _in(file, text, value)]
    near = _plain(name)

    def far(one: Literal) -> bool:
        text = files[one.file]
        start = max(text.rfind("\n", 0, one.start) + 1, one.start - _NEAR)
        return near not in _plain(text[start : one.end])

    return sorted(literals, key=far)[:_MOST]


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
            return repr(read_number(expression(text)))
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


# What a run tells of the values that a program's text does not show: each use is put into a call
# that writes the value down (`sandbox/probe/values.py`).

Observation = Mapping[str, tuple[str, ...]]
"""By the key of each use the values that it had, in the order of the run."""
MODULE = "_reprise_values"
_MOST_VALUES = 3
_LINE = re.compile(r"(?m)^\x1ereprise value (\d{1,6}[A-Z]\w{1,30}(?::[\w-]{1,60})?) (\S{1,60})$")


def watcher(key: str) -> Callable[[cst.CSTNode], Any]:
    """A change: an expression is put into the call that tells its value."""

    def change(node: cst.CSTNode) -> cst.BaseExpression:
        text = cst.Module([]).code_for_node(node)
        return expression(f'__import__("{MODULE}").see("{key}", ({text}))')

    return change


def expecting(recorder: str, base: Observation) -> str:
    """The text of the recorder whose run ends when it has seen each use of an earlier run."""
    keys = sorted({key.partition(":")[0] for key in base})
    return f"{recorder}\n\nEXPECTED.update({keys!r})\n" if keys else recorder


def read_observation(output: str) -> Observation:
    """What a run told on its standard error, of each use the first few values."""
    values: dict[str, list[str]] = {}
    for key, text in _LINE.findall(output):
        own = values.setdefault(key, [])
        if text not in own and len(own) < _MOST_VALUES:
            own.append(text)
    return {key: tuple(own) for key, own in values.items()}


def changed(base: Observation, after: Observation, targets: Mapping[str, str]) -> set[str]:
    """The uses that a run shows at their targets; none where any other use has changed."""
    moved: set[str] = set()
    for key, values in base.items():
        now = after.get(key, ())
        if key in targets and now[:1] == (targets[key],) and len(now) == len(values) == 1:
            moved.add(key)
        elif not now or now != values[: len(now)]:
            return set()
    return moved


def told_as(texts: Iterable[str]) -> Iterable[str]:
    """Numbers and words as a run tells them; "" for other expressions."""
    for text in texts:
        try:
            yield repr(float(text))
        except ValueError:
            word = text[1:-1] if text[:1] in "\"'" else ""
            yield word if word.isidentifier() else ""
