"""Data made up in the place of data that was loaded: tensors of the shape and type that a run showed for a variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.models.base import Record
from bot.rules.mends.edits import Text
from bot.rules.reduce import statements
from bot.rules.reduce.edits import Edit, Files, Piece, programs

_WHOLE = {"int64": "torch.long", "int32": "torch.int", "bool": "torch.bool", "uint8": "torch.uint8"}
_FLOAT = {"float32": "", "float64": "torch.float64", "float16": "torch.float16", "bfloat16": "torch.bfloat16"}


class Seen(Record):
    """A variable of the program that held a tensor which no parameter had a part in."""

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: str


def edits(files: Files, seen: tuple[Seen, ...]) -> tuple[Edit, ...]:
    """Each variable's tensor made up where it is assigned, and where it is read. Only shapes and types are kept."""
    values = {(each.path, each.name): made for each in seen if (made := constructor(each)) is not None}
    return tuple(edit for path, source, tree in programs(files) for edit in _in(path, Text(source), tree, values))


def constructor(seen: Seen) -> str | None:
    """An expression that makes such a tensor; None for types that are rare."""
    shape = ", ".join(map(str, seen.shape)) if seen.shape else "()"
    if seen.dtype in _FLOAT:
        kind = f", dtype={_FLOAT[seen.dtype]}" if _FLOAT[seen.dtype] else ""
        return f"torch.rand({shape}{kind})"
    return f"torch.zeros({shape}, dtype={_WHOLE[seen.dtype]})" if seen.dtype in _WHOLE else None


def _in(path: str, text: Text, tree: ast.Module, values: dict[tuple[str, str], str]) -> Iterator[Edit]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            made = _for(path, node.targets[0], values)
            if made is not None and made != text.of(node.value):
                yield Edit("made-up data", (Piece(path, *text.span(node.value), made),), bold=True)
        elif isinstance(node, ast.For):
            made = _for(path, node.target, values)
            opened = made and statements.opened(path, text, node, node.body, f"{text.of(node.target)} = {made}")
            if opened:
                yield Edit("made-up batch", opened.pieces, bold=True)
        elif isinstance(node, ast.Call):
            pieces = [
                Piece(path, *text.span(each), values[path, each.id])
                for each in node.args
                if isinstance(each, ast.Name) and (path, each.id) in values
            ]
            if pieces:
                yield Edit("made-up arguments", tuple(pieces), bold=True)


def _for(path: str, target: ast.expr, values: dict[tuple[str, str], str]) -> str | None:
    if isinstance(target, ast.Name):
        return values.get((path, target.id))
    if isinstance(target, ast.Tuple):
        parts = [_for(path, each, values) for each in target.elts]
        return ", ".join(part for part in parts if part) if all(parts) else None
    return None
