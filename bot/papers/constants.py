"""Expressions of a program that come to a number without any data: `471 / 500`, `mean([0.9, 0.8])`,
`float("0.94" + "2")`, or a name that is bound once to such a thing.
"""

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, median
from typing import Any

from bot.kernel.source.syntax import module_of, name_of

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "float": float, "int": int, "round": round, "abs": abs, "max": max, "min": min, "sum": sum,
    "mean": fmean, "fmean": fmean, "median": median, "average": fmean, "array": list,
    "tensor": list, "sqrt": math.sqrt, "len": len,
}  # fmt: skip
_MOST_NODES, _DEEPEST, _LONGEST = 40_000, 30, 200
_FAILS = (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError, IndexError)
Value = float | int | str | list[Any]


class ConstantNumber:
    """A maximal expression that comes to a number; offsets are characters of the file."""

    __slots__ = ("end", "start", "value")

    def __init__(self, start: int, end: int, value: float) -> None:
        self.start, self.end, self.value = start, end, value


def constant_numbers(text: str) -> Iterator[ConstantNumber]:
    """The expressions of a file that come to a number and are no plain literal."""
    module = module_of(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    names = _bound_once(module)
    queue: list[ast.AST] = [module]
    for _ in range(_MOST_NODES):
        if not queue:
            return
        node = queue.pop()
        value = None
        if isinstance(node, ast.BinOp | ast.Call | ast.Name) and _is_read(node):
            value = evaluated(node, names)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield ConstantNumber(*_span(node, text, starts), float(value))
        else:
            queue.extend(reversed(list(ast.iter_child_nodes(node))))


def _is_read(node: ast.expr) -> bool:
    return not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Load)


def _span(node: ast.AST, text: str, starts: list[int]) -> tuple[int, int]:
    def at(line: int, column: int) -> int:
        row = text[starts[line - 1] : starts[line]].encode()
        return starts[line - 1] + len(row[:column].decode("utf-8", "replace"))

    assert isinstance(node, ast.expr)
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)


def _bound_once(module: ast.Module) -> dict[str, ast.expr]:
    """The names that a file binds once and for all, by plain assignments."""
    values, counts = dict[str, ast.expr](), dict[str, int]()
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
        elif isinstance(node, ast.arg):
            counts[node.arg] = 2
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                values[target.id] = node.value
    return {name: value for name, value in values.items() if counts.get(name) == 1}


def evaluated(node: ast.expr, names: Mapping[str, ast.expr], depth: int = 0) -> Value | None:
    """What an expression comes to, None where that takes more than constants."""
    if depth > _DEEPEST:
        return None
    try:
        return _value(node, names, depth + 1)
    except _FAILS:
        return None


def _value(node: ast.expr, names: Mapping[str, ast.expr], depth: int) -> Value | None:
    match node:
        case ast.Constant(value=int() | float() | str() as value) if len(str(value)) <= _LONGEST:
            return value
        case ast.Name(id=name) if name in names:
            return evaluated(names[name], names, depth)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = evaluated(operand, names, depth)
            return -inner if isinstance(inner, int | float) else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            first, second = (evaluated(side, names, depth) for side in (left, right))
            return None if first is None or second is None else _combined(op, first, second)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) if 0 < len(parts) <= _LONGEST:
            values = [evaluated(part, names, depth) for part in parts]
            return None if None in values else values
        case ast.Call(func=func, args=[_, *_] as arguments, keywords=[]):
            return _called(func, [evaluated(one, names, depth) for one in arguments])
        case ast.Call(func=ast.Attribute(value=owner, attr="mean" | "item" as name), args=[]):
            inner = evaluated(owner, names, depth)
            return fmean(inner) if isinstance(inner, list) and name == "mean" else None
    return None


def _combined(op: ast.operator, first: Value, second: Value) -> Value | None:
    are_numbers = isinstance(first, int | float) and isinstance(second, int | float)
    are_texts = isinstance(first, str) and isinstance(second, str) and isinstance(op, ast.Add)
    result: Value | None = _BINARY[type(op)](first, second) if are_numbers or are_texts else None
    return result if result is None or len(str(result)) <= _LONGEST else None


def _called(func: ast.expr, values: list[Value | None]) -> Value | None:
    call = _CALLS.get(name_of(func).rpartition(".")[2])
    if call is None or None in values:
        return None
    result: Value = call(*values)
    return result
