"""Smaller data: numbers towards 1, shorter texts, loops of two rounds, lists of one element; and
tensors of the shape and type that a run showed for a variable, in the place of loaded data.
"""

import ast
from collections.abc import Iterator, Mapping

from bot.models.attempt import ObservedTensor
from bot.rules.intake.python import name_of
from bot.rules.reduce.edits import Files, ParsedFile, Reduction, Replacement, parsed_files
from bot.rules.reduce.statements import unwrapped

_FEW = 2
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


def constants(files: Files) -> tuple[Reduction, ...]:
    """Numbers made smaller, equal ones together (shapes must agree) and alone; shorter texts."""
    numbers: dict[int, list[Replacement]] = {}
    found = list[Reduction]()
    for file in parsed_files(files):
        for node in ast.walk(file.tree):
            if not isinstance(node, ast.Constant) or node in file.in_f_strings:
                continue
            if type(node.value) is int and node.value > 0:
                numbers.setdefault(node.value, []).append(file.replace(node, ""))
            elif shorter := _shorter(node.value, file.of(node)):
                what = "shorter constant"
                found.append(Reduction(what, (file.replace(node, shorter),), alters_values=True))
    for value, places in sorted(numbers.items(), reverse=True):
        groups = [places, *([place] for place in places)] if len(places) > 1 else [places]
        found += [_set(group, value, new) for group in groups for new in smaller(value)]
    return tuple(found)


def smaller(value: int) -> tuple[int, ...]:
    """The smaller numbers to try, the smallest first: by halves, one by one near the end."""
    return tuple(sorted({1, value // 2} if value > _FEW else range(value)))


def _set(places: list[Replacement], value: int, new: int) -> Reduction:
    made = tuple(Replacement(place.path, place.start, place.end, str(new)) for place in places)
    return Reduction(f"{value} → {new}", made, alters_values=new == 0)


def _shorter(value: object, written: str) -> str:
    if isinstance(value, str | bytes) and value:
        return "b''" if isinstance(value, bytes) else '""'
    return "1.0" if isinstance(value, float) and len(written) > len("1.0") else ""


def loops(files: Files) -> tuple[Reduction, ...]:
    """Every loop and comprehension whose data are not read within it. Two rounds: much fails in
    the second one only.
    """
    nodes = ((file, node) for file in parsed_files(files) for node in ast.walk(file.tree))
    return tuple(reduction for file, node in nodes for reduction in _without_data(file, node))


def _without_data(file: ParsedFile, node: ast.AST) -> Iterator[Reduction]:
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


def synthetic(files: Files, tensors: tuple[ObservedTensor, ...]) -> tuple[Reduction, ...]:
    """Replaces each variable's tensor by a synthetic one where it is assigned and where it is read.
    Only its shape and type stay.
    """
    found = [(tensor.path, tensor.name, constructor(tensor)) for tensor in tensors]
    return tuple(
        reduction
        for file in parsed_files(files)
        for reduction in _made_up(
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


def _made_up(file: ParsedFile, values: _Values) -> Iterator[Reduction]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            made = _value_for(node.targets[0], values)
            if made is not None and made != file.of(node.value):
                data = (file.replace(node.value, made),)
                yield Reduction("synthetic data", data, alters_values=True)
        elif isinstance(node, ast.For) and (made := _value_for(node.target, values)):
            head = f"{file.of(node.target)} = {made}"
            for batch in unwrapped(file, node, node.body, head):
                yield Reduction("synthetic batch", batch.replacements, alters_values=True)
        elif isinstance(node, ast.Call):
            names = [one for one in node.args if isinstance(one, ast.Name) and one.id in values]
            made_up = tuple(file.replace(name, values[name.id]) for name in names)
            if made_up:
                yield Reduction("synthetic arguments", made_up, alters_values=True)


def _value_for(target: ast.expr, values: _Values) -> str | None:
    if isinstance(target, ast.Name):
        return values.get(target.id)
    if isinstance(target, ast.Tuple):
        parts = [_value_for(element, values) for element in target.elts]
        return ", ".join(part for part in parts if part) if all(parts) else None
    return None
