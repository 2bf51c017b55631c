"""Whether a program prints a number that is written in its repository instead of computing it.

Only runs decide: each place where the number stands is changed, and the program runs again. A
number that follows the change was not computed.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import fmean, median
from typing import Any, NamedTuple

from bot.environment.imports import apply
from bot.kernel.attempt import Script
from bot.kernel.bug import ScriptFix
from bot.kernel.metrics import direction_of
from bot.kernel.paper import NumberClaim
from bot.kernel.source.syntax import module_of, name_of
from bot.kernel.trees import Tree
from bot.papers.numbers import is_share

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


_ENDS = (".py", ".json", ".yaml", ".yml", ".csv", ".tsv", ".txt", ".log", ".toml", ".cfg", ".ini")
_NUMBER = re.compile(
    r"(?<![\w.])(?:\d{1,9}(?:\.\d{1,17})?|\.\d{1,17})(?:[eE][-+]?\d{1,3})?(?![\w.])"
)
_LARGEST, _MOST_PLACES, _MOST_FILES = 200_000, 60, 40
_CLOSE, _EXACT, _MOST_TRIED = 0.02, 1e-4, 4


class WrittenNumber(NamedTuple):
    """A place where the number of a run, or of the paper, is written, or put together of
    constants.
    """

    file: str
    line: int
    start: int
    end: int
    value: float


def written_numbers(
    tree: Tree, claim: NumberClaim, values: Iterable[float]
) -> tuple[WrittenNumber, ...]:
    """Where the files of a tree that a program may read spell the paper's number or one that it
    printed, as a share or a percentage.
    """
    targets = [(claim.value, claim.rounding), *((value, claim.rounding / 50) for value in values)]
    if is_share(claim.metric):
        other = 0.01 if claim.is_percent else 100.0
        targets += [(value * other, slack * other) for value, slack in targets]
    places = (place for path in sorted(tree) for place in _in_file(path, tree[path], targets))
    return tuple(place for _, place in zip(range(_MOST_PLACES), places, strict=False))


def _in_file(path: str, data: bytes, targets: list[tuple[float, float]]) -> Iterator[WrittenNumber]:
    is_readme = path.lower().rpartition("/")[2].startswith(("readme", "requirements", "license"))
    if is_readme or not path.endswith(_ENDS) or len(data) > _LARGEST:
        return
    text = data.decode("utf-8", "replace")
    spans = [(match.start(), match.end(), float(match[0])) for match in _NUMBER.finditer(text)]
    if path.endswith(".py"):
        spans += [(row.start, row.end, row.value) for row in constant_numbers(text)]
    places_so_far = list[tuple[int, int]]()
    for start, end, value in spans:
        is_close = any(abs(value - target) <= slack * 0.999 for target, slack in targets)
        if (
            value
            and is_close
            and not any(start < last and first < end for first, last in places_so_far)
        ):
            places_so_far.append((start, end))
            line = text.count("\n", 0, start) + 1
            yield WrittenNumber(path, line, start, end, value)


def follows(
    script: Script,
    tree: Tree,
    places: tuple[WrittenNumber, ...],
    claim: NumberClaim,
    printed: float,
    run: Callable[[Script], float | None],
) -> WrittenNumber | None:
    """The first place whose number the output follows, None where it follows none. `run` gives the
    number that a changed program prints.

    A program that stops training once it reaches a number follows it down, but not up, where it is
    never reached; one that prints the better of two follows it in that direction alone, exactly.
    """

    def distance(some: tuple[WrittenNumber, ...], factor: float) -> float:
        value = run(changed(script, tree, some, factor))
        return math.inf if value is None else abs(value - printed * factor) / abs(printed or 1.0)

    beyond, short = (1.5, 0.5) if direction_of(claim.metric) == "max" else (0.5, 1.5)
    first = distance(places, beyond)
    if first > _CLOSE or (first > _EXACT and distance(places, short) > _CLOSE):
        return None
    alone = (place for place in places[:_MOST_TRIED] if distance((place,), beyond) <= _CLOSE)
    return places[0] if len(places) == 1 else next(alone, places[0])


def changed(script: Script, tree: Tree, places: tuple[WrittenNumber, ...], factor: float) -> Script:
    """The program with the numbers at these places multiplied."""
    files = dict(script.files)
    for path in list(dict.fromkeys(place.file for place in places))[:_MOST_FILES]:
        text = files.get(path) or tree[path].decode("utf-8", "replace")
        rows = [
            (place.start, place.end, f"{place.value * factor:.10g}")
            for place in places
            if place.file == path
        ]
        files[path] = apply(text, rows)
    what = f"each {places[0].value:g} multiplied by {factor:g}"
    fix = ScriptFix(what=what, why="to see whether the number is computed")
    edited = tuple(dict.fromkeys((*script.edited, *(place.file for place in places))))
    return script.model_copy(
        update={"files": files, "edited": edited, "fixes": (*script.fixes, fix)}
    )
