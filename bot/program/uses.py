"""What a number or a word comes to where it is used: as it is written there, or as a run of the
program told it. A change is made at the use, which is always right.
"""

from __future__ import annotations

import math

import libcst as cst

from bot.program.parsed import ProgramTree
from bot.program.rewriting import Rewriting
from bot.program.text import (
    argument,
    dotted,
    parse_number,
    read_number,
    spell,
    with_argument,
)

_DEEPEST = 5


def number_used(
    program: ProgramTree, node: cst.BaseExpression | None, recorded: float | None = None
) -> float | None:
    """The number at a use: as it is written, as a run told it, or the one that a name was assigned
    once. None where it is not known, or nothing is used. What a trace has `seen` there overrules.
    """
    if node is None:
        return None
    literal = read_number(node)
    if literal is None:
        observation = program.observe(node)
        literal = (
            parse_number(observation)
            if observation
            else read_number(resolved(program, _converted(node)))
        )
    alike = (
        literal is not None
        and recorded is not None
        and math.isclose(literal, recorded, rel_tol=1e-4)
    )
    return literal if alike or recorded is None else recorded


def _converted(node: cst.BaseExpression) -> cst.BaseExpression:
    """What `int(epochs)` converts."""
    converts = isinstance(node, cst.Call) and dotted(node.func) in ("int", "float")
    return node.args[0].value if isinstance(node, cst.Call) and converts and node.args else node


def supplied(
    program: ProgramTree, call: cst.Call, name: str, position: int = -1
) -> cst.BaseExpression | None:
    """What a call is given for a parameter, also by `**settings` where a run told that they have
    it; None where it is not.
    """
    own = argument(call, name, position)
    if own is not None:
        return own
    spread = [arg.value for arg in call.args if arg.star == "**"]
    return next((x for mapping in spread if (x := program.entry(mapping, name))), None)


def resolved(program: ProgramTree, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What a name was assigned once, or a word that a run told; otherwise the expression itself."""
    for _ in range(_DEEPEST):
        values = _assigned(program, node) if node is not None and spell(node) else None
        node = values or node
    return node


def _assigned(program: ProgramTree, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The only value of a lookup: in the functions around it, as their argument, or anywhere."""
    values = program.values.get(spell(node), [])
    function = program.function(node) if isinstance(node, cst.Name) else None
    if isinstance(node, cst.Name) and function is not None:
        own = [x for x in values if program.function(x) is function]
        values = [*own, *_passed(program, function, node.value)] or values
    return values[0] if len(values) == 1 else None


def _passed(program: ProgramTree, function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
    """What the calls of a function give for a parameter; its default where they do not."""
    parameters = [*function.params.params, *function.params.kwonly_params]
    names = [x.name.value for x in parameters]
    if name not in names:
        return []
    position = names.index(name) - (names[0] in ("self", "cls"))
    holder = program.around(function, cst.ClassDef, cst.FunctionDef)
    makes = function.name.value == "__init__" and isinstance(holder, cst.ClassDef)
    called = (
        holder.name.value if makes and isinstance(holder, cst.ClassDef) else function.name.value
    )
    calls = program.called_as(called)
    arguments = [argument(call, name, position) for call in calls]
    default = parameters[names.index(name)].default
    passed = [x or default for x in arguments or [None]]
    return [x for x in passed if x is not None]


def write_argument(
    rewriting: Rewriting, call: cst.Call, name: str, text: str, position: int = -1
) -> None:
    """Writes the value of a parameter where the call has it, or adds it to the call."""
    own = supplied(rewriting.program, call, name, position)
    if own is None:
        rewriting.change(call, with_argument(name, text, position))
    else:
        rewriting.replace(own, text)


def worded(program: ProgramTree, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What `resolved` gives, or the word that a run told instead of a lookup."""
    value = resolved(program, node)
    if node is None or value is None or not spell(value):
        return value
    observation = program.observe(node)
    word = cst.SimpleString(f'"{observation}"')
    return program.stand_in(node, "", word) if observation.isidentifier() else value
