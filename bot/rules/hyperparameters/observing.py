"""What a run tells of the values that a program's text does not show: each use is put into a call
that writes the value down (`sandbox/probe/values.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import libcst as cst

from bot.rules.hyperparameters.text.expressions import expression

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


def read(output: str) -> Observation:
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
