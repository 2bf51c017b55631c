"""Where a number really stands: at its use, in a constant, a default of a parameter, of a command
line's option or of a field, or in a dictionary of settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from bot.rules.hyperparameters.text.arguments import argument, keywords, positional, with_argument
from bot.rules.hyperparameters.text.expressions import expression
from bot.rules.hyperparameters.text.numbers import number
from bot.rules.hyperparameters.text.program import ProgramTree, Statement, dotted
from bot.rules.hyperparameters.text.rewriting import Change, Rewriting

_DEEPEST = 5
_DRAWING = re.compile(r"rand|normal|uniform|linspace|arange|make_")


@dataclass(frozen=True)
class NumberOrigin:
    """`node` is the number that an edit replaces. `value` is None where it is not known."""

    node: cst.CSTNode
    value: float | None


def origin(program: ProgramTree, node: cst.BaseExpression, depth: int = 0) -> NumberOrigin:
    """The one place that decides the value of an expression; its use where that cannot be told."""
    value = number(node)
    if value is not None:
        return NumberOrigin(node, value)
    if depth < _DEEPEST:
        shifted = _shifted(program, node, depth)
        if shifted:
            return shifted
        places = _unique(_candidates(program, node))
        if len(places) == 1:
            found = origin(program, places[0], depth + 1)
            if found.value is not None:
                return NumberOrigin(node, found.value) if _is_shared(program, node) else found
    return NumberOrigin(node, None)


def _is_shared(program: ProgramTree, node: cst.BaseExpression) -> bool:
    """Whether a constant also decides what is measured or which data there are: something is
    divided by it, or so many rows are drawn. An edit of it would change more than the training.
    """
    others = (x for x in program.of(cst.Name) if x is not node)
    name = node.value if isinstance(node, cst.Name) else ""
    return bool(name) and any(_decides(program, x) for x in others if x.value == name)


def _decides(program: ProgramTree, node: cst.CSTNode) -> bool:
    for part in program.above(node):
        outer = program.parents.get(part)
        if _is_divisor(part, outer):
            return True
        if isinstance(part, cst.Call) and dotted(part.func) not in ("int", "float"):
            return bool(_DRAWING.match(dotted(part.func).rpartition(".")[2]))
        if isinstance(part, Statement | cst.Lambda):
            return False
    return False


def _is_divisor(node: cst.CSTNode, outer: cst.CSTNode | None) -> bool:
    divided = isinstance(outer, cst.BinaryOperation) and isinstance(outer.operator, cst.Divide)
    return isinstance(outer, cst.BinaryOperation) and divided and outer.right is node


def _shifted(program: ProgramTree, node: cst.BaseExpression, depth: int) -> NumberOrigin | None:
    """`EPOCHS + 1`, as the end of a range from one is written, and `int(args.epochs)`."""
    if isinstance(node, cst.Call) and dotted(node.func) in ("int", "float") and len(node.args) == 1:
        return origin(program, node.args[0].value, depth + 1)
    return None


def _candidates(program: ProgramTree, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.Name):
        return _named(program, node)
    if isinstance(node, cst.Attribute):
        return _attribute(program, node)
    if isinstance(node, cst.Subscript):
        return _entry(program, node)
    return []


def _named(program: ProgramTree, node: cst.Name) -> list[cst.BaseExpression]:
    function = program.function(node)
    while function is not None:
        for parameter in (*function.params.params, *function.params.kwonly_params):
            if parameter.name.value == node.value:
                return _passed(program, function, parameter)
        function = program.function(function)
    return program.values.get(node.value, [])


def _passed(
    program: ProgramTree, function: cst.FunctionDef, parameter: cst.Param
) -> list[cst.BaseExpression]:
    """What the calls of a function give for a parameter, and its default where one does not."""
    name = parameter.name.value
    names = [x.name.value for x in function.params.params]
    method = names[:1] in (["self"], ["cls"])
    called = function.name.value
    holder = program.around(function, cst.ClassDef)
    if called == "__init__" and isinstance(holder, cst.ClassDef):
        called = holder.name.value
    position = names.index(name) - method if name in names else -1
    found: list[cst.BaseExpression] = []
    for call in program.calls:
        if dotted(call.func).rpartition(".")[2] == called:
            given = argument(call, name, position) or parameter.default
            found += [given] if given else []
    return found or ([parameter.default] if parameter.default else [])


def _attribute(program: ProgramTree, node: cst.Attribute) -> list[cst.BaseExpression]:
    """`self.lr`, `config.lr`, `args.lr`."""
    name = node.attr.value
    own = program.values.get(dotted(node), [])
    if own:
        return own
    fields = [
        value
        for value in program.values.get(name, [])
        if isinstance(program.around(value, cst.ClassDef, cst.FunctionDef), cst.ClassDef)
    ]
    return [*_options(program, name), *_given(program, name, fields)] or (
        program.values.get(f"self.{name}", [])
    )


def _given(
    program: ProgramTree, name: str, fields: list[cst.BaseExpression]
) -> list[cst.BaseExpression]:
    """The default of a class's field, or what the one call of the class gives instead."""
    for default in fields:
        holder = program.around(default, cst.ClassDef)
        if isinstance(holder, cst.ClassDef):
            calls = (x for x in program.calls if dotted(x.func) == holder.name.value)
            found = [value for x in calls if (value := keywords(x).get(name))]
            return found or fields
    return fields


def _options(program: ProgramTree, name: str) -> Iterator[cst.BaseExpression]:
    for call in program.method("add_argument"):
        flags = [x.evaluated_value for x in positional(call) if isinstance(x, cst.SimpleString)]
        names = {x.lstrip("-").replace("-", "_") for x in flags if isinstance(x, str)}
        default = argument(call, "default")
        if name in names and default:
            yield default


def _entry(program: ProgramTree, node: cst.Subscript) -> list[cst.BaseExpression]:
    """`config["lr"]`."""
    key = _key(node)
    if key is None:
        return []
    found: list[cst.BaseExpression] = []
    for value in program.values.get(dotted(node.value), []):
        if isinstance(value, cst.Dict):
            found += [
                x.value
                for x in value.elements
                if isinstance(x, cst.DictElement)
                and isinstance(x.key, cst.SimpleString)
                and x.key.evaluated_value == key
            ]
        elif isinstance(value, cst.Call) and dotted(value.func) == "dict":
            found += [x for name, x in keywords(value).items() if name == key]
    return found


def _key(node: cst.Subscript) -> object:
    index = node.slice[0].slice if len(node.slice) == 1 else None
    if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
        return index.value.evaluated_value
    return None


def _unique(nodes: list[cst.BaseExpression]) -> list[cst.BaseExpression]:
    return list({id(node): node for node in nodes}.values())


def resolved(program: ProgramTree, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What a name was assigned once, anywhere; otherwise the expression itself."""
    for _ in range(_DEEPEST):
        if not isinstance(node, cst.Name | cst.Attribute):
            break
        known = _unique(_candidates(program, node))
        if len(known) != 1:
            break
        node = known[0]
    return node


def write_number(
    rewriting: Rewriting, call: cst.Call, name: str, text: str, position: int = -1
) -> None:
    """Writes the number of a parameter where it stands, or adds it to the call."""
    given = argument(call, name, position)
    found = origin(rewriting.program, given) if given else None
    if found is None or found.node is given:
        rewriting.change(call, with_argument(name, text, position))
        return
    rewriting.change(found.node, _constant(text))


def _constant(text: str) -> Change:
    return lambda _: expression(text)
