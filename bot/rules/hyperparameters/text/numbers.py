"""Numbers as programs and edits write them."""

from __future__ import annotations

import math
from collections.abc import Callable

import libcst as cst


def canonical(value: float) -> str:
    """A number in its shortest usual form: "0.001", "1e-05", "32"."""
    if isinstance(value, int) or (abs(value) < 10**9 and value == int(value)):
        return str(int(value))
    return f"{value:.10g}"


def number(node: cst.CSTNode | None) -> float | None:
    """The value of a written number, or of a power or product of numbers; None for all else."""
    if isinstance(node, cst.Integer | cst.Float):
        return _bounded(_literal(node.value))
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = number(node.expression)
        return None if inner is None else -inner
    if isinstance(node, cst.BinaryOperation):
        left, right = number(node.left), number(node.right)
        if left is not None and right is not None:
            return _bounded(_computed(node.operator, left, right))
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and len(node.args) == 1:
        return number(node.args[0].value) if node.func.value in ("int", "float") else None
    return None


def parsed(text: str) -> float | None:
    """The finite number that an edit's text is; None where it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def same(one: str, other: str) -> bool:
    """Whether two values are the same, as numbers where they are."""
    first, second = parsed(one), parsed(other)
    if first is None or second is None:
        return one == other
    return math.isclose(first, second, rel_tol=1e-9, abs_tol=0.0)


def _literal(text: str) -> float | None:
    try:
        return (
            float(int(text, 0))
            if not set(text) & set(".eE") or text[:2] in ("0x", "0X")
            else float(text)
        )
    except (ValueError, OverflowError):
        return None


def _bounded(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and abs(value) < 10**15 else None


_OPERATIONS: dict[type[cst.BaseBinaryOp], Callable[[float, float], float]] = {
    cst.Add: lambda a, b: a + b,
    cst.Subtract: lambda a, b: a - b,
    cst.Multiply: lambda a, b: a * b,
    cst.Divide: lambda a, b: a / b,
    cst.FloorDivide: lambda a, b: a // b,
    cst.Power: lambda a, b: a**b,
}


def _computed(operator: cst.BaseBinaryOp, left: float, right: float) -> float | None:
    try:
        value = _OPERATIONS[type(operator)](left, right)
    except (KeyError, ArithmeticError, ValueError):
        return None
    return value if isinstance(value, float) else None
