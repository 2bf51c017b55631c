"""Variables that are assigned again and again, as `x` on its way through a model: what is assigned, where it is read next."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.reduce.edits import Edit, Piece
from bot.rules.reduce.splice import Function, Source
from bot.rules.reduce.statements import node_of

_PARTS = ("body", "orelse", "finalbody")
_LATER = (Function, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_WIDE = 110


def edits(sources: list[Source]) -> Iterator[Edit]:
    """Every value that is read once before its name gets another one, in the place where it is read."""
    for source in sources:
        often = _often(source.tree)
        for node in ast.walk(source.tree):
            for part in _PARTS:
                block = getattr(node, part, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    label = "" if isinstance(node, ast.Module) else f"{getattr(node, 'lineno', 0)}.{part}"
                    yield from _in_block(source, block, label, often)


def _often(tree: ast.Module) -> set[str]:
    """The names that are set in more than one place."""
    seen, often = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            (often if node.id in seen else seen).add(node.id)
    return often


def _in_block(source: Source, block: list[ast.stmt], label: str, often: set[str]) -> Iterator[Edit]:
    for at, holder in enumerate(block):
        target = holder.targets[0] if isinstance(holder, ast.Assign) and len(holder.targets) == 1 else None
        if not isinstance(holder, ast.Assign) or not isinstance(target, ast.Name) or target.id not in often:
            continue
        reads, anew = _reads(block[at + 1 :], target.id)
        if len(reads) != 1:
            continue
        place, read = reads[0]
        value, line = source.text.of(holder.value), source.text.source.splitlines()[read.lineno - 1]
        if "\n" in value or len(line) + len(value) - len(target.id) > _WIDE or not _readable(source, read, block):
            continue
        gone = node_of(source.path, source.text, holder, label, len(block)).edit.pieces[0]
        piece = Piece(source.path, *source.text.span(read), source.as_read(read, value))
        yield Edit(f"{target.id} where it is read", (piece, gone), bold=place > 0 or not anew)


def _reads(after: list[ast.stmt], name: str) -> tuple[list[tuple[int, ast.Name]], bool]:
    """Where a name is read before a statement sets it anew, with the numbers of the statements, and whether one does; nothing
    where that hangs on more than the order of the statements.
    """
    found = list[tuple[int, ast.Name]]()
    for place, statement in enumerate(after):
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == name]
        found += [(place, node) for node in names if isinstance(node.ctx, ast.Load)]
        if any(not isinstance(node.ctx, ast.Load) for node in names):
            plain = isinstance(statement, ast.Assign) and all(
                isinstance(each, ast.Name | ast.Tuple) for each in statement.targets
            )
            return (found, True) if plain else ([], False)
    return found, False


def _readable(source: Source, read: ast.Name, block: list[ast.stmt]) -> bool:
    """Whether another text may stand there: not within an f-string, whose positions are not to be relied on, nor in what runs
    later.
    """
    for each in source.above(read):
        if isinstance(each, (ast.JoinedStr, *_LATER)):
            return False
        if each in block:
            break
    return True
