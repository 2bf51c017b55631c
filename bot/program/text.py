"""How things are written in a program: numbers, expressions, names, arguments, imports, layout."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from bot.kernel.source import syntax

# Numbers as programs and edits write them.


def canonical_number(value: float) -> str:
    """A number in its shortest usual form: "0.001", "1e-05", "32"."""
    if isinstance(value, int) or (abs(value) < 10**9 and value == int(value)):
        return str(int(value))
    return f"{value:.10g}"


def read_number(node: cst.CSTNode | None) -> float | None:
    """The value of a written number, or of a power or product of numbers; None for all else."""
    if isinstance(node, cst.Integer | cst.Float):
        return _bound(_literal(node.value))
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = read_number(node.expression)
        return None if inner is None else -inner
    if isinstance(node, cst.BinaryOperation):
        left, right = read_number(node.left), read_number(node.right)
        if left is not None and right is not None:
            return _bound(_compute(node.operator, left, right))
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and len(node.args) == 1:
        return read_number(node.args[0].value) if node.func.value in ("int", "float") else None
    return None


def parse_number(text: str) -> float | None:
    """The finite number that an edit's text is; None where it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def same(one: str, other: str) -> bool:
    """Whether two values are the same, as numbers where they are."""
    first, second = parse_number(one), parse_number(other)
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


def _bound(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and abs(value) < 10**15 else None


_OPERATIONS: dict[type[cst.BaseBinaryOp], Callable[[float, float], float]] = {
    cst.Add: lambda a, b: a + b,
    cst.Subtract: lambda a, b: a - b,
    cst.Multiply: lambda a, b: a * b,
    cst.Divide: lambda a, b: a / b,
    cst.FloorDivide: lambda a, b: a // b,
    cst.Power: lambda a, b: a**b,
}


def _compute(operator: cst.BaseBinaryOp, left: float, right: float) -> float | None:
    try:
        value = _OPERATIONS[type(operator)](left, right)
    except (KeyError, ArithmeticError, ValueError):
        return None
    return value if isinstance(value, float) else None


# Expressions that are written anew, or filled into others.


class NotApplicable(ValueError):
    """An edit that cannot be written into the program, in a plain sentence."""


def expression(text: str) -> cst.BaseExpression:
    """Raises NotApplicable for text that is none."""
    try:
        return cst.parse_expression(text)
    except cst.ParserSyntaxError as error:
        raise NotApplicable(f"{text!r} is not an expression.") from error


class _Filler(cst.CSTTransformer):
    def __init__(self, parts: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._parts = parts

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        name = original_node.value if isinstance(original_node, cst.Name) else ""
        return self._parts.get(name, updated_node)


def fill(template: str, **parts: cst.BaseExpression) -> cst.BaseExpression:
    """An expression with other ones in the place of some of its names."""
    result = expression(template).visit(_Filler(parts))
    assert isinstance(result, cst.BaseExpression)
    return result


# How names, lookups and entries are written.


def dotted(node: cst.CSTNode) -> str:
    """A name or a chain of attributes of one as it is written; "" for any other expression."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    return ".".join((node.value, *reversed(parts))) if isinstance(node, cst.Name) else ""


def spell(node: cst.CSTNode) -> str:
    """A lookup with double quotes: a name, attributes and entries of it, also by `get`; "" for any
    other expression.
    """
    ends: list[str] = []
    while not isinstance(node, cst.Name):
        if isinstance(node, cst.Attribute):
            ends.append(f".{node.attr.value}")
            node = node.value
        elif isinstance(node, cst.Subscript | cst.Call) and (key := entry_key(node)):
            ends.append(f'["{key}"]')
            node = node.value if isinstance(node, cst.Subscript) else _owner(node)
        else:
            return ""
    return "".join((node.value, *reversed(ends)))


def _owner(call: cst.Call) -> cst.BaseExpression:
    return call.func.value if isinstance(call.func, cst.Attribute) else call.func


def entry_key(node: cst.CSTNode) -> str:
    """The key of `settings["lr"]` and of `settings.get("lr")`; "" where there is none."""
    key: object = None
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        key = index.value if isinstance(index, cst.Index) else None
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
        key = node.args[0].value if node.func.attr.value == "get" else None
    text = key.evaluated_value if isinstance(key, cst.SimpleString) else None
    return text if isinstance(text, str) else ""


SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake(name: str) -> str:
    """A class's name as the function's: "GlorotUniform" is "glorot_uniform"."""
    return SNAKE.sub("_", name).lower()


# How what is added to a program is laid out: as that which stands beside it.

_COMMA_AND_SPACE = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def surrounded(updated: Any, texts: Sequence[tuple[bool, str]]) -> Any:
    """A statement with others before and after it."""
    before = [x for after, text in texts if not after for x in _statements(text)]
    after = [x for after, text in texts if after for x in _statements(text)]
    statements = [updated] if isinstance(updated, cst.CSTNode) else []
    if before and statements:
        # Comments and blank lines above a statement stay above all that is put before it.
        before[0] = before[0].with_changes(leading_lines=updated.leading_lines)
        statements = [updated.with_changes(leading_lines=())]
    return cst.FlattenSentinel([*before, *statements, *after])


def relisted(updated: Any, changes: Sequence[tuple[int, str | None]]) -> Any:
    """A call or list with more elements after some of its own, each laid out as the one before it,
    and without those that have None.
    """
    field = "args" if isinstance(updated, cst.Call) else "elements"
    elements = list(getattr(updated, field))
    end = elements[-1]
    removals = {index for index, text in changes if text is None}
    for index, text in sorted(((n, x) for n, x in changes if x), key=lambda x: -x[0]):
        _insert(updated, elements, index, text)
    for index in sorted(removals, reverse=True):
        more = sum(n < index and x is not None for n, x in changes)
        del elements[index + more]
    if elements and removals and elements[-1] is not end:
        elements[-1] = elements[-1].with_changes(**_ending(end))
    return updated.with_changes(**{field: elements})


def _ending(element: Any) -> dict[str, Any]:
    fields = {"comma": element.comma}
    if isinstance(element, cst.Arg):
        fields["whitespace_after_arg"] = element.whitespace_after_arg
    return fields


def _insert(holder: Any, elements: list[Any], index: int, text: str) -> None:
    before = elements[index]
    between = elements[index - 1].comma if index else _between(holder, before)
    new = before.with_changes(value=expression(text))
    tight: dict[str, Any] = {}
    if isinstance(new, cst.Arg):
        new = new.with_changes(keyword=None, star="")
        tight = {"whitespace_after_arg": cst.SimpleWhitespace("")}
    elements[index] = before.with_changes(comma=between, **tight)
    elements.insert(index + 1, new)


def _between(holder: Any, element: Any) -> cst.Comma:
    """What stands between elements: a new line where the first of them has one of its own."""
    if isinstance(element.comma, cst.Comma):
        after = element.comma.whitespace_after
        if isinstance(after, cst.ParenthesizedWhitespace) and not after.last_line.value:
            return cst.Comma(whitespace_after=_opening(holder))
        return cst.Comma(whitespace_after=after) if after else _COMMA_AND_SPACE
    return _COMMA_AND_SPACE


def _opening(holder: Any) -> cst.BaseParenthesizableWhitespace:
    if isinstance(holder, cst.Call):
        space = holder.whitespace_before_args
    else:
        bracket = holder.lbracket if isinstance(holder, cst.List) else holder.lpar[0]
        space = bracket.whitespace_after
    return space if isinstance(space, cst.ParenthesizedWhitespace) else cst.SimpleWhitespace(" ")


def _statements(text: str) -> list[Any]:
    return list(syntax.parse_concrete(f"{text}\n").body)


def passing(updated: Any) -> Any:
    """The only statement of a block, gone."""
    return cst.SimpleStatementLine([cst.Pass()], leading_lines=updated.leading_lines)


def led(updated: Any, lines: Sequence[cst.EmptyLine]) -> Any:
    """A statement below the comments of one that is gone."""
    return updated.with_changes(leading_lines=(*lines, *updated.leading_lines))


def with_name(updated: cst.ImportFrom, name: str, instead: str) -> cst.ImportFrom:
    """An import of one more name, or of one instead of another."""
    names = list(updated.names) if isinstance(updated.names, list | tuple) else []
    for number, alias in enumerate(names):
        if instead and not alias.asname and alias.evaluated_name == instead:
            names[number] = alias.with_changes(name=cst.Name(name))
            return updated.with_changes(names=names)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    trailing = names[-1].comma
    names[-1] = names[-1].with_changes(comma=names[-2].comma if len(names) > 1 else comma)
    names.append(cst.ImportAlias(cst.Name(name), comma=trailing))
    return updated.with_changes(names=names)


# The arguments of a call: found by name or position, set, added, dropped.

_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def argument(call: cst.Call, name: str, position: int = -1) -> cst.BaseExpression | None:
    """What is given for a parameter, by its name or else at its position; None where it is not."""
    index = _index(call, name, position)
    return call.args[index].value if index >= 0 else None


def keywords(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """What is given by name."""
    return {arg.keyword.value: arg.value for arg in call.args if arg.keyword}


def positional(call: cst.Call) -> list[cst.BaseExpression]:
    """What is given by position, up to the first star."""
    values: list[cst.BaseExpression] = []
    for arg in call.args:
        if arg.star or arg.keyword:
            break
        values.append(arg.value)
    return values


def has_stars(call: cst.Call) -> bool:
    """Whether the call has arguments that are not written out."""
    return any(arg.star for arg in call.args)


def with_argument(name: str, text: str, position: int = -1) -> Callable[[cst.Call], cst.Call]:
    """A change: the parameter has this value, as a keyword where it was not given."""

    def change(call: cst.Call) -> cst.Call:
        index = _index(call, name, position)
        args = list(call.args)
        if index >= 0:
            args[index] = args[index].with_changes(value=expression(text))
            return call.with_changes(args=args)
        return call.with_changes(args=_with_new_argument(args, name, text))

    return change


def without(names: Container[str], most: int | None = None) -> Callable[[cst.Call], cst.Call]:
    """A change: no keyword of these names, and at most so many arguments by position."""

    def change(call: cst.Call) -> cst.Call:
        args: list[cst.Arg] = []
        place = 0
        for arg in call.args:
            by_place = not arg.keyword and not arg.star
            place += by_place
            beyond = by_place and most is not None and place > most
            if not beyond and not (arg.keyword and arg.keyword.value in names):
                args.append(arg)
        return call if len(args) == len(call.args) else _closed(call, args)

    return change


def with_function(text: str) -> Callable[[cst.Call], cst.Call]:
    """A change: another function is called, with the same arguments."""
    return lambda call: call.with_changes(func=expression(text))


def _index(call: cst.Call, name: str, position: int) -> int:
    for number, arg in enumerate(call.args):
        if arg.keyword and arg.keyword.value == name:
            return number
    before = call.args[: position + 1]
    plain = len(before) == position + 1 and not any(arg.keyword or arg.star for arg in before)
    return position if position >= 0 and plain else -1


def _with_new_argument(args: list[cst.Arg], name: str, text: str) -> list[cst.Arg]:
    """One more argument, laid out as those before it."""
    new = cst.Arg(expression(text), keyword=cst.Name(name), equal=_TIGHT)
    if not args:
        return [new]
    last = args[-1]
    between = args[-2].comma if len(args) > 1 else _COMMA_AND_SPACE
    if isinstance(last.comma, cst.Comma):
        new = new.with_changes(comma=last.comma)
    new = new.with_changes(whitespace_after_arg=last.whitespace_after_arg)
    tight = cst.SimpleWhitespace("")
    return [*args[:-1], last.with_changes(comma=between, whitespace_after_arg=tight), new]


def _closed(call: cst.Call, args: list[cst.Arg]) -> cst.Call:
    """The last argument that is left ends the call as the last one did."""
    if args and call.args and args[-1] is not call.args[-1]:
        end = call.args[-1]
        args[-1] = args[-1].with_changes(
            comma=end.comma, whitespace_after_arg=end.whitespace_after_arg
        )
    return call.with_changes(args=args)


# What the names of a program stand for, and how a new one is imported.

_SAME = (
    ("tensorflow.keras", "keras"),
    ("tensorflow.python.keras", "keras"),
    ("keras.api", "keras"),
    ("keras.src", "keras"),
    ("keras.optimizers.legacy", "keras.optimizers"),
)


@dataclass(frozen=True)
class Imports:
    """`names` are the program's own with what they stand for; `stars` the modules whose every name
    is imported; `froms` the `from` imports by module.
    """

    names: dict[str, str]
    stars: tuple[str, ...]
    froms: dict[str, cst.ImportFrom]

    def full(self, name: str) -> str:
        """The canonical full name of a dotted one."""
        head, _, rest = name.partition(".")
        full_name = self.names.get(head)
        if full_name is None and name and not rest and self.stars:
            full_name = self._starred(head)
        return canonical_name(f"{full_name}.{rest}" if full_name and rest else full_name or name)

    def _starred(self, head: str) -> str | None:
        """A class that the program can only have from the one module that it imports whole."""
        return f"{self.stars[0]}.{head}" if head[:1].isupper() and len(self.stars) == 1 else None

    def spelled(self, full: str) -> str:
        """How the program can name something with what it has imported; "" where it cannot."""
        for name, full_name in self.names.items():
            if canonical_name(full_name) == full:
                return name
        module, _, last = full.rpartition(".")
        parent = self.spelled(module) if module else ""
        return f"{parent}.{last}" if parent else ""


def canonical_name(name: str) -> str:
    """One name for all that the packages give to one thing."""
    for prefix, short in _SAME:
        if name == prefix or name.startswith(f"{prefix}."):
            return short + name[len(prefix) :]
    return name


def imports_of(nodes: Iterable[cst.CSTNode]) -> Imports:
    """The imports anywhere in a program."""
    names: dict[str, str] = {}
    stars: list[str] = []
    froms: dict[str, cst.ImportFrom] = {}
    for node in nodes:
        if isinstance(node, cst.Import):
            for alias in node.names:
                own, full = _alias(alias)
                names[own if alias.asname else full.partition(".")[0]] = (
                    full if alias.asname else full.partition(".")[0]
                )
        elif isinstance(node, cst.ImportFrom) and node.module and not node.relative:
            module = _dotted_name(node.module)
            if isinstance(node.names, cst.ImportStar):
                stars.append(module)
                continue
            froms.setdefault(canonical_name(module), node)
            for alias in node.names:
                own, full = _alias(alias)
                names[own] = f"{module}.{full}"
    return Imports(names, tuple(stars), froms)


def _alias(alias: cst.ImportAlias) -> tuple[str, str]:
    full = _dotted_name(alias.name)
    own = alias.asname.name if alias.asname else None
    return (own.value if isinstance(own, cst.Name) else full), full


def _dotted_name(node: cst.CSTNode) -> str:
    return (
        f"{_dotted_name(node.value)}.{node.attr.value}"
        if isinstance(node, cst.Attribute)
        else (node.value if isinstance(node, cst.Name) else "")
    )
