"""Synthetic data in the place of loaded data: tensors of the shape and type that a run showed for
a variable.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from bot.models.base import Record
from bot.rules.reduce.edits import Files, Reduction
from bot.rules.reduce.parsed_file import ParsedFile, parsed_files
from bot.rules.reduce.statements import unwrapped

_INTEGERS = {
    "int64": "torch.long",
    "int32": "torch.int",
    "bool": "torch.bool",
    "uint8": "torch.uint8",
}
_FLOATS = {
    "float32": "",
    "float64": ", dtype=torch.float64",
    "float16": ", dtype=torch.float16",
    "bfloat16": ", dtype=torch.bfloat16",
}
_Values = Mapping[str, str]


class ObservedTensor(Record):
    """A variable of the program that held a tensor in whose computation no parameter took part."""

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: str


def edits(files: Files, tensors: tuple[ObservedTensor, ...]) -> tuple[Reduction, ...]:
    """Each variable's tensor made up where it is assigned and where it is read. Only its shape
    and type stay.
    """
    found = [(tensor.path, tensor.name, constructor(tensor)) for tensor in tensors]
    return tuple(
        reduction
        for file in parsed_files(files)
        for reduction in _in(
            file, {name: made for path, name, made in found if path == file.path and made}
        )
    )


def constructor(tensor: ObservedTensor) -> str | None:
    """An expression that makes such a tensor; None for rare types."""
    shape = ", ".join(map(str, tensor.shape)) if tensor.shape else "()"
    if tensor.dtype in _FLOATS:
        return f"torch.rand({shape}{_FLOATS[tensor.dtype]})"
    integer = _INTEGERS.get(tensor.dtype)
    return f"torch.zeros({shape}, dtype={integer})" if integer else None


def _in(file: ParsedFile, values: _Values) -> Iterator[Reduction]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            made = _for(node.targets[0], values)
            if made is not None and made != file.of(node.value):
                data = (file.replace(node.value, made),)
                yield Reduction("synthetic data", data, alters_values=True)
        elif isinstance(node, ast.For) and (made := _for(node.target, values)):
            head = f"{file.of(node.target)} = {made}"
            for batch in unwrapped(file, node, node.body, head):
                yield Reduction("synthetic batch", batch.replacements, alters_values=True)
        elif isinstance(node, ast.Call):
            names = [one for one in node.args if isinstance(one, ast.Name) and one.id in values]
            made_up = tuple(file.replace(name, values[name.id]) for name in names)
            if made_up:
                yield Reduction("synthetic arguments", made_up, alters_values=True)


def _for(target: ast.expr, values: _Values) -> str | None:
    if isinstance(target, ast.Name):
        return values.get(target.id)
    if isinstance(target, ast.Tuple):
        parts = [_for(element, values) for element in target.elts]
        return ", ".join(part for part in parts if part) if all(parts) else None
    return None
