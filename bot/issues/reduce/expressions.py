"""Simpler expressions and smaller data."""

import ast
from collections.abc import Iterator, Mapping

from bot.issues.reduce.edits import Files, ParsedFile, Reduction, Replacement, parsed_files
from bot.issues.reduce.statements import importing, unwrap
from bot.kernel.attempt import ObservedTensor
from bot.kernel.source.syntax import Function, name_of, nodes

# Smaller data: numbers towards 1, shorter texts, loops of two rounds, lists of one element; and
# tensors of the shape and type that a run showed for a variable, in the place of loaded data.

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
    reductions = list[Reduction]()
    for file in parsed_files(files):
        for node in ast.walk(file.tree):
            if not isinstance(node, ast.Constant) or node in file.in_f_strings:
                continue
            if type(node.value) is int and node.value > 0:
                numbers.setdefault(node.value, []).append(file.replace(node, ""))
            elif shorter := _shorter(node.value, file.of(node)):
                what = "shorter constant"
                reductions.append(
                    Reduction(what, (file.replace(node, shorter),), alters_values=True)
                )
    for value, places in sorted(numbers.items(), reverse=True):
        groups = [places, *([place] for place in places)] if len(places) > 1 else [places]
        reductions += [_set(group, value, new) for group in groups for new in smaller(value)]
    return tuple(reductions)


def smaller(value: int) -> tuple[int, ...]:
    """The smaller numbers to try, the smallest first: by halves, one by one near the end."""
    return tuple(sorted({1, value // 2} if value > _FEW else range(value)))


def _set(places: list[Replacement], value: int, new: int) -> Reduction:
    replacements = tuple(
        Replacement(place.path, place.start, place.end, str(new)) for place in places
    )
    return Reduction(f"{value} → {new}", replacements, alters_values=new == 0)


def _shorter(value: object, literal_text: str) -> str:
    if isinstance(value, str | bytes) and value:
        return "b''" if isinstance(value, bytes) else '""'
    return "1.0" if isinstance(value, float) and len(literal_text) > len("1.0") else ""


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
        is_dependent = _reads(node.elt, *(generator.target for generator in node.generators))
        one = file.replace(node, f"[{file.of(node.elt)}]")
        yield from () if is_dependent else (Reduction("one element", (one,), alters_values=True),)


def _two_rounds(file: ParsedFile, node: ast.For) -> Iterator[Reduction]:
    if isinstance(node.iter, ast.Call) and name_of(node.iter.func) == "range":
        return
    is_dependent = any(_reads(statement, node.target) for statement in node.body)
    if not is_dependent or isinstance(node.target, ast.Name):
        head = f"{file.of(node.target) if is_dependent else '_'} in range(2)"
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
    constructors = [(tensor.path, tensor.name, constructor(tensor)) for tensor in tensors]
    return tuple(
        reduction
        for file in parsed_files(files)
        for reduction in _made_up(
            file, {name: text for path, name, text in constructors if path == file.path and text}
        )
    )


def constructor(tensor: ObservedTensor) -> str | None:
    """An expression that makes such a value; None for rare types."""
    if tensor.text:
        return tensor.text if _is_literal(tensor.text) else None
    if tensor.dtype.startswith("numpy."):
        return f"np.ones({tensor.shape}, {tensor.dtype.removeprefix('numpy.')!r})"
    shape = ", ".join(map(str, tensor.shape)) if tensor.shape else "()"
    if tensor.dtype in _FLOATS:
        return f"torch.rand({shape}{_FLOATS[tensor.dtype]})"
    integer = _INTEGERS.get(tensor.dtype)
    return f"torch.zeros({shape}, dtype={integer})" if integer else None


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return "\n" not in text


def _made_up(file: ParsedFile, values: _Values) -> Iterator[Reduction]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            text = _value_for(node.targets[0], values)
            if text is not None and text != file.of(node.value):
                data = (file.replace(node.value, text),)
                yield Reduction("synthetic data", data, alters_values=True)
        elif isinstance(node, ast.For) and (text := _value_for(node.target, values)):
            head = f"{file.of(node.target)} = {text}"
            for batch in unwrap(file, node, node.body, head):
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


# Simpler expressions: fewer arguments and elements, a part in the place of the whole.

MAX_WIDTH = 110
_GENERATORS = frozenset(
    {"Random", "RandomState", "default_rng", "Generator", "SeedSequence", "PCG64"}
)
"""Without their argument they draw from the system, and what failed under every seed fails now
and then.
"""
_NEED_PARENTHESES = (
    ast.Tuple, ast.GeneratorExp, ast.BinOp, ast.BoolOp, ast.IfExp, ast.Lambda,
)  # fmt: skip
_Span = tuple[int, int]


def edits(files: Files) -> tuple[Reduction, ...]:
    """Every simplification of every expression, the outermost first."""
    reductions = list[Reduction]()
    for file in parsed_files(files):
        aliases = [alias for node in nodes(file.tree, ast.Import) for alias in node.names]
        modules = {(alias.asname or alias.name).split(".")[0] for alias in aliases}
        for node in _outermost(file.tree):
            reductions.extend(_of(file, node, modules))
    return tuple(dict.fromkeys(reductions))


def _outermost(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes, parents before children, without the insides of f-strings."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.JoinedStr):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _of(file: ParsedFile, node: ast.AST, modules: set[str]) -> Iterator[Reduction]:
    match node:
        case ast.Call():
            yield from _call(file, node, modules)
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _definition(file, node)
        case ast.List() | ast.Tuple() | ast.Set() if _is_read(node):
            yield from _elements(file, node)
        case ast.Dict():
            yield from _entries(file, node)
        case ast.Import(names=names) | ast.ImportFrom(names=names) if len(names) > 1:
            for alias in names:
                rest = ast.unparse(importing(node, [one for one in names if one is not alias]))
                yield Reduction("drop import", (file.replace(node, rest),))
        case ast.stmt():
            yield from _statement(file, node)
        case ast.expr():
            yield from (_part(file, node, part) for part in _parts(node))
            if (item := _literal_item(node)) is not None:
                yield _part(file, node, item, alters_values=False)


def _is_read(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _part(
    file: ParsedFile, node: ast.expr, part: ast.expr, *, alters_values: bool = True
) -> Reduction:
    new = file.of(part)
    if isinstance(part, _NEED_PARENTHESES) and new[:1] != "(":
        new = f"({new})"
    what = f"{type(node).__name__.lower()} → part"
    return Reduction(what, (file.replace(node, new),), alters_values=alters_values)


def _parts(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.BoolOp(values=values):
            return values
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.UnaryOp(operand=operand) if not isinstance(operand, ast.Constant):
            return [operand]
        case ast.Subscript() | ast.Await() | ast.Starred() if _is_read(node):
            return [node.value]
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() if len(node.generators) == 1:
            return [node.generators[0].iter]
    return []


def _literal_item(node: ast.expr) -> ast.expr | None:
    """The item that a subscript takes from a list, a tuple or a dictionary literal."""
    match node:
        case ast.Subscript(
            ast.Tuple(items) | ast.List(items), ast.Constant(int(at)), ast.Load()
        ) if type(at) is int and 0 <= at < len(items):
            return None if any(isinstance(item, ast.Starred) for item in items) else items[at]
        case ast.Subscript(ast.Dict(keys, values), ast.Constant(at), ast.Load()):
            pairs = zip(keys, values, strict=True)
            same = (
                item for key, item in pairs if isinstance(key, ast.Constant) and key.value == at
            )
            return next(same, None)
    return None


def _call(file: ParsedFile, node: ast.Call, modules: set[str]) -> Iterator[Reduction]:
    method = node.func if isinstance(node.func, ast.Attribute) else None
    if method is not None and file.of(method.value).split(".")[0] not in modules:
        yield _part(file, node, method.value)
    values = [*node.args, *(word.value for word in node.keywords)]
    yield from (_part(file, node, value) for value in values if type(value) is not ast.Starred)
    if name_of(node.func) in _GENERATORS:
        return
    if len(values) > 1:
        everything = file.cut(file.span(node.func)[1], file.span(node)[1], "()")
        yield Reduction("drop all arguments", (everything,), alters_values=method is None)
    spans = [*map(file.span, node.args), *map(file.span, node.keywords)]
    yield from _each_dropped(file, "argument", spans)


def _each_dropped(
    file: ParsedFile, what: str, spans: list[_Span], *, alters_values: bool = False
) -> Iterator[Reduction]:
    for place in range(len(spans)):
        drop = file.cut(*with_comma(file, spans, place))
        yield Reduction(f"drop {what}", (drop,), alters_values=alters_values)


def with_comma(file: ParsedFile, spans: list[_Span], place: int) -> _Span:
    """The span of one of several things with commas between, with the comma that goes with it."""
    start, end = spans[place]
    if place + 1 < len(spans):
        return start, spans[place + 1][0]
    if place:
        return spans[place - 1][1], end
    rest = file.source[end:]
    return start, end + rest.index(",") + 1 if rest.lstrip().startswith(",") else end


def _elements(file: ParsedFile, node: ast.List | ast.Tuple | ast.Set) -> Iterator[Reduction]:
    if isinstance(node, ast.List) and len(node.elts) > 1:
        yield Reduction("empty list", (file.replace(node, "[]"),), alters_values=True)
    if len(node.elts) > 1 or isinstance(node, ast.List):
        spans = [*map(file.span, node.elts)]
        yield from _each_dropped(file, "element", spans, alters_values=True)
    parts = (element for element in node.elts if not isinstance(element, ast.Starred))
    yield from (_part(file, node, part) for part in parts)


def _entries(file: ParsedFile, node: ast.Dict) -> Iterator[Reduction]:
    keys = [key for key in node.keys if key is not None]
    if len(keys) < len(node.keys):
        return
    if len(keys) > 1:
        yield Reduction("empty dict", (file.replace(node, "{}"),))
    pairs = zip(keys, node.values, strict=True)
    spans = [(file.span(key)[0], file.span(value)[1]) for key, value in pairs]
    yield from _each_dropped(file, "entry", spans)


def _definition(file: ParsedFile, node: ast.ClassDef | Function) -> Iterator[Reduction]:
    for decorator in node.decorator_list:
        last = decorator.end_lineno or decorator.lineno
        lines = file.cut(file.offset(decorator.lineno, 0), file.offset(last + 1, 0))
        yield Reduction("drop decorator", (lines,))
    if isinstance(node, ast.ClassDef):
        yield from _bases(file, node)
        return
    notes = [note for note in nodes(node.args, ast.arg) if note.annotation]
    cuts = [file.cut(file.span(note)[0] + len(note.arg), file.span(note)[1]) for note in notes]
    if node.returns is not None:
        end = file.span(node.returns)[1]
        arrow = file.source.rindex("->", 0, end)
        cuts.append(file.cut(len(file.source[:arrow].rstrip()), end))
    if cuts:
        yield Reduction("drop annotations", tuple(cuts))


def _bases(file: ParsedFile, node: ast.ClassDef) -> Iterator[Reduction]:
    if len(node.bases) != 1 or node.keywords:
        yield from _each_dropped(file, "base", [*map(file.span, node.bases)])
        return
    start, end = file.span(node.bases[0])
    start, end = file.source.rindex("(", 0, start), file.source.index(")", end) + 1
    yield Reduction("drop base", (file.cut(start, end),))


def _statement(file: ParsedFile, node: ast.stmt) -> Iterator[Reduction]:
    if isinstance(node, ast.If | ast.While):
        yield Reduction("condition alone", (file.replace(node.test, "True"),), alters_values=True)
    value = getattr(node, "value", None)
    if not isinstance(value, ast.expr):
        return
    if not isinstance(node, ast.Expr):
        yield Reduction("value alone", (file.replace(node, file.of(value)),))
    if isinstance(node, ast.AnnAssign):
        plain = f"{file.of(node.target)} = {file.of(value)}"
        yield Reduction("drop annotation", (file.replace(node, plain),))
    if isinstance(node, ast.Return):
        yield Reduction("return nothing", (file.replace(node, "return"),), alters_values=True)
    if isinstance(node, ast.Assign):
        yield from _assigned_pairs(file, node)
    flat, now = ast.unparse(node), file.of(node)
    if len(flat) < len(now) if node.end_lineno == node.lineno else len(flat) <= MAX_WIDTH:
        yield Reduction("written plainly", (file.replace(node, flat),))


def _assigned_pairs(file: ParsedFile, node: ast.Assign) -> Iterator[Reduction]:
    """An assignment of several values to as many names, without one of them."""
    pairs = assignment_pairs(node)
    has_stars = any(isinstance(part, ast.Starred) for pair in pairs for part in pair)
    for dropped_pair in pairs if len(pairs) > 1 and not has_stars else ():
        rest = [pair for pair in pairs if pair is not dropped_pair]
        new = " = ".join(", ".join(file.of(pair[side]) for pair in rest) for side in (0, 1))
        yield Reduction("drop pair", (file.replace(node, new),))


def assignment_pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment with their values; [] when they do not correspond."""
    match node:
        case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
            return list(zip(targets, values, strict=True))
        case ast.Assign([target]) if not isinstance(target, ast.Tuple):
            return [(target, node.value)]
    return []
