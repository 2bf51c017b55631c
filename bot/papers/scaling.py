"""Inputs that a program scales by its own arithmetic, found in its text: `(x - mean) / std`,
`(x - low) / (high - low)` and `x / 255`.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from bot.kernel.source.syntax import name_of

_NO_INPUTS = re.compile(
    r"^y(?:_|$)|target|label|adv|reward|return|logit|output|pred|loss|score|error", re.IGNORECASE
)
_INPUTS = re.compile(r"(?:^|_)xs?(?:_|$)|input|image|img|pixel|data|feature|sample", re.IGNORECASE)
_SCALERS = re.compile(
    r"normali[sz]e|standardi[sz]|scale|whiten|preprocess|transform", re.IGNORECASE
)
_RANGES = (16.0, 255.0, 256.0)
"""The largest value of pixels that are stored as whole numbers."""

_NAMES = {
    "mean": "mean", "nanmean": "mean", "std": "std", "nanstd": "std", "min": "min", "max": "max",
}  # fmt: skip


class Scaling(NamedTuple):
    """How an array is scaled, and in which line; `is_applied` is False where what it takes is
    computed and never used.
    """

    value: str
    line: int
    is_applied: bool = True


def scalings(module: ast.Module) -> Iterator[Scaling]:
    """Every scaling of an array that may be an input, by arithmetic."""
    statistics = {name: (kind, line) for name, kind, line in _statistics(module)}
    kinds = {name: kind for name, (kind, _) in statistics.items()}
    for node in ast.walk(module):
        match node:
            case ast.BinOp(op=ast.Div(), left=left, right=right) if value := _kind(
                left, right, kinds
            ):
                yield Scaling(value, node.lineno)
            case ast.AugAssign(op=ast.Div(), target=target, value=right):
                is_centred = _is_input(target) and "mean" in kinds.values()
                if is_centred and _statistic(right, kinds) == "std":
                    yield Scaling("standardised", node.lineno)
                elif value := _kind(target, right, kinds):
                    yield Scaling(value, node.lineno)
    yield from _unused(module, statistics)


def _statistics(module: ast.Module) -> Iterator[tuple[str, str, int]]:
    """The names that stand for a statistic of an array, which one, and the line of each."""
    for node in ast.walk(module):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name, kind in _pairs(target, node.value):
                    yield name, kind, node.lineno


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    match target, value:
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for one, other in zip(names, values, strict=True):
                yield from _pairs(one, other)
        case ast.Name(id=name), _ if kind := _statistic(value, {}):
            yield name, kind


def _statistic(node: ast.expr, kinds: dict[str, str]) -> str:
    """The statistic that an expression is, a small number beside it left out; "" for none."""
    match _without_addend(node):
        case ast.Call(func=func, args=arguments):
            owner = func.value if isinstance(func, ast.Attribute) else None
            arrays = [one for one in (*arguments[:1], owner) if one is not None]
            is_of_others = any(_NO_INPUTS.search(_array(one)) for one in arrays)
            return "" if is_of_others else _NAMES.get(name_of(func), "")
        case ast.Name(id=name):
            return kinds.get(name, "")
    return ""


def _without_addend(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        if not isinstance(node.right, ast.Constant):
            break
        node = node.left
    return node


def _kind(left: ast.expr, right: ast.expr, kinds: dict[str, str]) -> str:
    """How a quotient scales, "" for no scaling of an input."""
    divisor = _statistic(right, kinds)
    match left:
        case ast.BinOp(op=ast.Sub(), left=array, right=centre) if _is_input(array):
            by = _statistic(centre, kinds)
            if (by, divisor) == ("mean", "std"):
                return "standardised"
            return "min-max" if by == "min" and _is_range(right, kinds) else ""
    is_pixels = isinstance(right, ast.Constant) and right.value in _RANGES
    return "min-max" if _INPUTS.search(_array(left)) and (is_pixels or divisor == "max") else ""


def _is_range(node: ast.expr, kinds: dict[str, str]) -> bool:
    match _without_addend(node):
        case ast.BinOp(op=ast.Sub(), left=high, right=low):
            return (_statistic(high, kinds), _statistic(low, kinds)) == ("max", "min")
    return False


def _array(node: ast.expr) -> str:
    """The name of an array that rows may be taken of, "" for another expression."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return name_of(node)


def _is_input(node: ast.expr) -> bool:
    name = _array(node)
    return bool(name) and not _NO_INPUTS.search(name)


def _unused(module: ast.Module, statistics: dict[str, tuple[str, int]]) -> Iterator[Scaling]:
    """A mean and a deviation that are computed and never read, where nothing else may scale."""
    calls = (name_of(node.func) for node in ast.walk(module) if isinstance(node, ast.Call))
    if any(_SCALERS.search(name) for name in calls):
        return
    uses = {
        node.id
        for node in ast.walk(module)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    left = dict(row for name, row in statistics.items() if name not in uses)
    if {"mean", "std"} <= left.keys():
        yield Scaling("standardised", left["std"], is_applied=False)
