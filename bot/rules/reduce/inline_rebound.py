"""Variables that are assigned again and again, as `x` on its way through a model: each value
where it is read next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.reduce.edits import Reduction
from bot.rules.reduce.inline_aliases import substituted
from bot.rules.reduce.parsed_file import ParsedFile, own_blocks
from bot.rules.reduce.splice import Function

_LATER = (Function, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def edits(files: list[ParsedFile]) -> Iterator[Reduction]:
    """Every value that is read once before its name gets another one, in the place of the read."""
    for file in files:
        often = _assigned_often(file.tree)
        for node in ast.walk(file.tree):
            for block in own_blocks(node):
                for at, holder in enumerate(block):
                    target = holder.targets[0] if isinstance(holder, ast.Assign) else None
                    if isinstance(target, ast.Name) and target.id in often:
                        yield from _where_read(file, holder, target.id, block[at + 1 :])


def _assigned_often(tree: ast.Module) -> set[str]:
    """The names that are set in more than one place."""
    seen, often = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            (often if node.id in seen else seen).add(node.id)
    return often


def _where_read(
    file: ParsedFile, holder: ast.stmt, name: str, after: list[ast.stmt]
) -> Iterator[Reduction]:
    reads, rebound = _reads(after, name)
    if not isinstance(holder, ast.Assign) or len(holder.targets) > 1 or len(reads) != 1:
        return
    place, read = reads[0]
    value = substituted(file, read, holder.value)
    if value is not None and _is_readable(file, read, after[place]):
        made, alters = (value, file.remove(holder)), place > 0 or not rebound
        yield Reduction(f"{name} where it is read", made, alters_values=alters)


def _reads(after: list[ast.stmt], name: str) -> tuple[list[tuple[int, ast.Name]], bool]:
    """Where a name is read before a statement sets it again, with the numbers of the statements,
    and whether one does; nothing where that depends on more than the order of the statements.
    """
    found = list[tuple[int, ast.Name]]()
    for place, statement in enumerate(after):
        every = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        names = [node for node in every if node.id == name]
        found += [(place, node) for node in names if isinstance(node.ctx, ast.Load)]
        if any(not isinstance(node.ctx, ast.Load) for node in names):
            targets = statement.targets if isinstance(statement, ast.Assign) else [None]
            plain = all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
            return (found, True) if plain else ([], False)
    return found, False


def _is_readable(file: ParsedFile, read: ast.Name, statement: ast.stmt) -> bool:
    """Whether another text may stand there: not in an f-string, nor in what runs later."""
    inside = [*file.above(read)]
    within = inside[: inside.index(statement) + 1]
    return read not in file.in_f_strings and not any(isinstance(node, _LATER) for node in within)
