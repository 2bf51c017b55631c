"""Reductions as values: text replacements that combine into a smaller program which still
compiles.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import CodeType

from bot.rules.script_fixes.edits import lines

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A span of a file and its new text.

    One that removes a statement names the statement's `block` and how many statements that block
    has: a block that loses all of them gets the `filler`, a `pass`.
    """

    path: str
    start: int
    end: int
    new: str = ""
    block: str = ""
    size: int = 0
    filler: str = ""


@dataclass(frozen=True, slots=True)
class Reduction:
    """Replacements that belong together, and files to drop. Positions refer to the text that the
    reduction was made from.

    One that `alters_values` computes other values than the program did; it is not tried where the
    failure is itself a value.
    """

    what: str
    replacements: tuple[Replacement, ...] = ()
    drops: tuple[str, ...] = ()
    alters_values: bool = False


@dataclass(frozen=True, slots=True)
class ReductionNode:
    """A reduction, and the smaller ones within its span to try when it is rejected."""

    reduction: Reduction
    children: tuple[tuple[ReductionNode, ...], ...] = ()


def applied(files: Files, reductions: Iterable[Reduction]) -> dict[str, str] | None:
    """The files with the reductions made; of overlapping replacements the outer one is used.
    None when the result does not compile or nothing changed.
    """
    chosen = list(reductions)
    drops = {path for reduction in chosen for path in reduction.drops}
    wanted: dict[str, set[Replacement]] = {}
    for reduction in chosen:
        for replacement in reduction.replacements:
            wanted.setdefault(replacement.path, set()).add(replacement)
    result = {path: text for path, text in files.items() if path not in drops}
    for path in wanted.keys() - drops:
        result[path] = _replaced(files[path], wanted[path])
        if result[path] != files[path] and not valid(path, result[path]):
            return None
    return None if result == files else result


def _replaced(text: str, replacements: set[Replacement]) -> str:
    outer, limit = list[Replacement](), -1
    for replacement in sorted(replacements, key=lambda one: (one.start, -one.end, one.new)):
        if replacement.start >= limit:
            outer.append(replacement)
            limit = replacement.end
    removed = Counter(replacement.block for replacement in outer if replacement.block)
    result, at = list[str](), 0
    for replacement in outer:
        emptied = replacement.block and removed[replacement.block] == replacement.size
        result += [text[at : replacement.start], replacement.filler if emptied else replacement.new]
        if emptied:
            removed[replacement.block] = 0  # one `pass` is enough
        at = replacement.end
    return "".join([*result, text[at:]])


def valid(path: str, text: str) -> bool:
    """Whether a file is Python that compiles (a file that is not Python always is valid)."""
    return not path.endswith(".py") or _compiled(text, 0) is not None


def parsed(text: str) -> ast.Module | None:
    """The tree of a file, None when it does not parse."""
    tree = _compiled(text, ast.PyCF_ONLY_AST)
    return tree if isinstance(tree, ast.Module) else None


def _compiled(text: str, flags: int) -> ast.AST | CodeType | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code: ast.AST | CodeType = compile(text, "<program>", "exec", flags, dont_inherit=True)
            return code
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def size(files: Files) -> tuple[int, int]:
    """How large a program is: lines that are not blank, then characters."""
    found = [line.strip() for text in files.values() for line in lines(text) if line.strip()]
    return len(found), sum(map(len, found))
