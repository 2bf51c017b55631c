"""How what is added to a program is laid out: as that which stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from bot.rules import parsing
from bot.rules.hyperparameters.text.expressions import expression

_SPACED = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def surrounded(updated: Any, texts: Sequence[tuple[bool, str]]) -> Any:
    """A statement with others before and after it."""
    before = [x for after, text in texts if not after for x in _statements(text)]
    after = [x for after, text in texts if after for x in _statements(text)]
    kept = [updated] if isinstance(updated, cst.CSTNode) else []
    if before and kept:
        # Comments and blank lines above a statement stay above all that is put before it.
        before[0] = before[0].with_changes(leading_lines=updated.leading_lines)
        kept = [updated.with_changes(leading_lines=())]
    return cst.FlattenSentinel([*before, *kept, *after])


def relisted(updated: Any, changes: Sequence[tuple[int, str | None]]) -> Any:
    """A call or list with more elements after some of its own, each laid out as the one before it,
    and without those that have None.
    """
    field = "args" if isinstance(updated, cst.Call) else "elements"
    elements = list(getattr(updated, field))
    end = elements[-1]
    gone = {index for index, text in changes if text is None}
    for index, text in sorted(((n, x) for n, x in changes if x), key=lambda x: -x[0]):
        _insert(updated, elements, index, text)
    for index in sorted(gone, reverse=True):
        more = sum(n < index and x is not None for n, x in changes)
        del elements[index + more]
    if elements and gone and elements[-1] is not end:
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
        return cst.Comma(whitespace_after=after) if after else _SPACED
    return _SPACED


def _opening(holder: Any) -> cst.BaseParenthesizableWhitespace:
    if isinstance(holder, cst.Call):
        space = holder.whitespace_before_args
    else:
        bracket = holder.lbracket if isinstance(holder, cst.List) else holder.lpar[0]
        space = bracket.whitespace_after
    return space if isinstance(space, cst.ParenthesizedWhitespace) else cst.SimpleWhitespace(" ")


def _statements(text: str) -> list[Any]:
    return list(parsing.parse_concrete(f"{text}\n").body)


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
