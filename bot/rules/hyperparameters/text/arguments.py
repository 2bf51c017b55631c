"""The arguments of a call: found by name or position, set, added, dropped."""

from __future__ import annotations

from collections.abc import Callable, Container

import libcst as cst

from bot.rules.hyperparameters.text.expressions import expression

_TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
_SPACED = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def argument(call: cst.Call, name: str, position: int = -1) -> cst.BaseExpression | None:
    """What is given for a parameter, by its name or else at its position; None where it is not."""
    found = _index(call, name, position)
    return call.args[found].value if found >= 0 else None


def keywords(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """What is given by name."""
    return {arg.keyword.value: arg.value for arg in call.args if arg.keyword}


def positional(call: cst.Call) -> list[cst.BaseExpression]:
    """What is given by position, up to the first star."""
    found: list[cst.BaseExpression] = []
    for arg in call.args:
        if arg.star or arg.keyword:
            break
        found.append(arg.value)
    return found


def starred(call: cst.Call) -> bool:
    """Whether the call has arguments that are not written out."""
    return any(arg.star for arg in call.args)


def with_argument(name: str, text: str, position: int = -1) -> Callable[[cst.Call], cst.Call]:
    """A change: the parameter has this value, as a keyword where it was not given."""

    def change(call: cst.Call) -> cst.Call:
        found = _index(call, name, position)
        args = list(call.args)
        if found >= 0:
            args[found] = args[found].with_changes(value=expression(text))
            return call.with_changes(args=args)
        return call.with_changes(args=_added(args, name, text))

    return change


def without(names: Container[str], most: int | None = None) -> Callable[[cst.Call], cst.Call]:
    """A change: no keyword of these names, and at most so many arguments by position."""

    def change(call: cst.Call) -> cst.Call:
        kept: list[cst.Arg] = []
        place = 0
        for arg in call.args:
            by_place = not arg.keyword and not arg.star
            place += by_place
            beyond = by_place and most is not None and place > most
            if not beyond and not (arg.keyword and arg.keyword.value in names):
                kept.append(arg)
        return call if len(kept) == len(call.args) else _closed(call, kept)

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


def _added(args: list[cst.Arg], name: str, text: str) -> list[cst.Arg]:
    """One more argument, laid out as those before it."""
    new = cst.Arg(expression(text), keyword=cst.Name(name), equal=_TIGHT)
    if not args:
        return [new]
    last = args[-1]
    between = args[-2].comma if len(args) > 1 else _SPACED
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
