"""How often a traced run does the operation: a changed program does it no less often than the failing one up to its failure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.models.base import Record
from bot.models.bug import Frame
from bot.rules.patches import loops, shape
from bot.rules.patches.operation import Operation, places, said


class Reached(Record):
    """What a traced run of a program reached: how often each line of its main file ran, (line, file, function, times) of what
    it called there, the lines on which an exception arrived, and (line, name) of what was empty when the line was about to run.
    """

    lines: dict[int, int] = {}
    called: tuple[tuple[int, str, str, int], ...] = ()
    raised: frozenset[int] = frozenset()
    empty: frozenset[tuple[int, str]] = frozenset()


def objection(
    before: ast.Module, after: ast.Module, operation: Operation, failing: Reached | None, seen: Reached, entered: Frame | None
) -> str:
    """Why a run of a changed program does not show that the operation was done as in the failing one, "" when it does.
    `failing` is None where nothing is known of that; `entered` is the function in which the failing program left its own file.
    """
    old, new = places(operation, before), places(operation, after)
    if not new or len(old) != len(new):
        return "It could not be seen what the program reaches."
    known = failing if failing is not None and any(_times(each, failing) for each in old) else None
    pairs = list(zip(old, new, strict=True))
    for was, now in pairs:
        if why := _less(before, was, now, known, seen) or _evaded(was, now, known, seen, valued=operation.valued):
            return why
    if entered is not None and (why := _entered(pairs, known, seen, entered)):
        return why
    if known is not None and operation.valued:
        shown = zip(said(before), said(after), strict=False)
        return next((_SHOWN.format(now.lineno) for was, now in shown if _times(now, seen) < _times(was, known)), "")
    return ""


_SHOWN = "What the program prints or checks on line {} is not reached as often as in the failing program."


def _less(before: ast.Module, was: ast.stmt, now: ast.stmt, failing: Reached | None, seen: Reached) -> str:
    """Why a statement is not done as often as it was."""
    done = _times(now, seen)
    if failing is None and not loops.straight(before, was):
        return f"It cannot be seen how often the failing program does the operation on line {was.lineno}."
    wanted = _times(was, failing) if failing is not None else 1
    if wanted and not done:
        return f"The operation on line {now.lineno} is not reached."
    return _FEWER.format(f"The operation on line {now.lineno} is done", done, wanted) if done < wanted else ""


_FEWER = "{} less often ({}) than in the failing program up to its end ({})."


def _evaded(was: ast.stmt, now: ast.stmt, failing: Reached | None, seen: Reached, *, valued: bool) -> str:
    """What shows that a statement was done to no effect."""
    here, there = set(shape.lines(now)), set(shape.lines(was))
    before = failing or Reached()
    if here & seen.raised and not (valued and there & before.raised):
        return f"An exception arises in the operation on line {now.lineno} and is held back."
    empty = {name for line, name in seen.empty if line in here} - {name for line, name in before.empty if line in there}
    if failing is not None and empty:
        return f"`{min(empty)}` is empty on line {now.lineno}, which leaves the operation nothing to do."
    return ""


def _entered(pairs: list[tuple[ast.stmt, ast.stmt]], failing: Reached | None, seen: Reached, entered: Frame) -> str:
    """Why the function in which the program failed is not entered as often."""
    told = f"The operation does not enter `{entered.function}`, in which the program failed."
    if not any(_entries(now, seen, entered) for _, now in pairs):
        return told
    rows = ((_entries(now, seen, entered), _entries(was, failing, entered) if failing is not None else 0) for was, now in pairs)
    fewer = next((row for row in rows if row[0] < row[1]), None)
    return _FEWER.format(f"The operation enters `{entered.function}`", *fewer) if fewer is not None else ""


def _times(statement: ast.stmt, seen: Reached) -> int:
    return max((seen.lines.get(line, 0) for line in shape.lines(statement)), default=0)


def _entries(statement: ast.stmt, seen: Reached, entered: Frame) -> int:
    """How often a function is entered from a statement; older Pythons name no class."""
    rows: Iterator[int] = (
        times
        for line, path, function, times in seen.called
        if line in shape.lines(statement)
        and function.rsplit(".", 1)[-1] == entered.function.rsplit(".", 1)[-1]
        and path.endswith(entered.module_path or entered.path)
    )
    return sum(rows)
