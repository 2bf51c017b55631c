"""Loops and comprehensions without their data: a loop of two rounds, a list of one element."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.rules.reduce.edits import Files, Reduction
from bot.rules.reduce.expressions import name_of
from bot.rules.reduce.parsed_file import ParsedFile, parsed_files


def edits(files: Files) -> tuple[Reduction, ...]:
    """Every loop and comprehension whose data are not read within it. Two rounds: much fails in
    the second one only.
    """
    return tuple(
        reduction
        for file in parsed_files(files)
        for node in ast.walk(file.tree)
        for reduction in _of(file, node)
    )


def _of(file: ParsedFile, node: ast.AST) -> Iterator[Reduction]:
    if isinstance(node, ast.For):
        yield from _two_rounds(file, node)
    elif isinstance(node, ast.ListComp | ast.GeneratorExp) and node not in file.in_f_strings:
        read = _reads(node.elt, *(generator.target for generator in node.generators))
        one = file.replace(node, f"[{file.of(node.elt)}]")
        yield from () if read else (Reduction("one element", (one,), alters_values=True),)


def _two_rounds(file: ParsedFile, node: ast.For) -> Iterator[Reduction]:
    if isinstance(node.iter, ast.Call) and name_of(node.iter.func) == "range":
        return
    read = any(_reads(statement, node.target) for statement in node.body)
    if not read or isinstance(node.target, ast.Name):
        head = f"{file.of(node.target) if read else '_'} in range(2)"
        place = file.cut(file.span(node.target)[0], file.span(node.iter)[1], head)
        yield Reduction("two rounds", (place,), alters_values=True)


def _reads(node: ast.AST, *targets: ast.expr) -> bool:
    """Whether a node reads what a loop sets."""
    parts = (part for target in targets for part in ast.walk(target))
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(node))
