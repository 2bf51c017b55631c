"""Edits of whole lines that a model proposes: where they stand, how they are made, and which are
refused. A model's words are hostile text: an edit may change how a program learns, and nothing by
which it is judged.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from bot.kernel import plain_text
from bot.kernel.outside_text import one_line
from bot.kernel.source import syntax
from bot.kernel.source.syntax import dotted, name_of, root_name
from bot.kernel.training_types import Edit, Fault, Metric
from bot.program.measured import (
    Function,
    Measured,
    Slicer,
    Statement,
    is_output,
    judging_arguments,
)

MOST_CHANGED = 12
"""Lines that an edit may add, and that it may take away."""
_MOST_LINES, _MOST_STATEMENTS = 5_000, 3_000
"""Of a file, and of a program: what they cost to search and to follow grows with their square, and
whoever reports a bug can write them.
"""


class EditRefused(Exception):
    """An edit is not tried; the message says why, as a clause without a subject."""


# Where an edit stands, and how it is made.

_NUMBERED = re.compile(r"^ *\d+ ?\| ?", re.MULTILINE)
_FENCE = re.compile(r"\A\s*```\w*\n|\n?```\s*\Z")


def make_edit(
    files: Mapping[str, str], file: str, before: str, after: str, fault: Fault, line: int = 0
) -> Edit:
    """The edit of a file of the program ("" for the program itself). `before` must stand there as
    whole lines; the number of blanks before all of them may differ. Where it stands several times,
    `line` tells which place is meant. The edit has as many lines around what differs as tell its
    place from any other. Raises EditRefused.
    """
    text = files.get(file)
    if text is None:
        raise EditRefused(f"the program has no file {file[:80]}")
    if plain_text.readable(after) != after.replace("\r\n", "\n"):
        raise EditRefused("it has invisible characters")
    lines, old, new = text.split("\n"), _block(before), _block(after)
    if len(lines) > _MOST_LINES:
        raise EditRefused(f"its file has more than {_MOST_LINES:,} lines")
    start = _start(lines, old, line)
    own = lines[start : start + len(old)]
    shifted = _without_remarks(_shifted(new, _indent(own) - _indent(old)), own)
    if own == shifted:
        raise EditRefused("it changes nothing")
    pairs = enumerate(zip(own, shifted, strict=False))
    first = next((at for at, (x, y) in pairs if x != y), min(len(own), len(shifted)))
    at = start + min(first, len(own) - 1) + 1
    own, shifted = _with_context(lines, start, own, shifted)
    return Edit(
        parameter=f"lines({fault}):{file}:{at}", kind="lines", before="\n".join(own),
        after="\n".join(shifted), line=at, file=file,
    )  # fmt: skip


_NEAR = 2  # lines by which a model may miscount


def _start(lines: list[str], block: list[str], line: int) -> int:
    """Where a block stands that is meant by about this line."""
    if not any(row.strip() for row in block):
        raise EditRefused("it names no line of the program")
    starts = _starts(lines, block)
    if not starts:
        raise EditRefused("its lines are not in the program")
    near = [x for x in starts if x - _NEAR < line <= x + len(block) + _NEAR]
    matches = near if len(starts) > 1 else starts
    if len(matches) != 1:
        raise EditRefused(f"its lines occur in the program {len(starts)} times")
    return matches[0]


def _with_context(
    lines: list[str], start: int, own: list[str], new: list[str]
) -> tuple[list[str], list[str]]:
    """An edit with the fewest lines around what differs that stand in the file once."""
    end = start + len(own)
    while own and new and own[-1] == new[-1] and len(own) > 1:
        own, new, end = own[:-1], new[:-1], end - 1
    while own and new and own[0] == new[0] and len(own) > 1:
        own, new, start = own[1:], new[1:], start + 1
    while len(_starts_exactly(lines, own)) > 1:
        if start > 0:
            start -= 1
            own, new = [lines[start], *own], [lines[start], *new]
        if end < len(lines):
            own, new, end = [*own, lines[end]], [*new, lines[end]], end + 1
    return own, new


def _block(text: str) -> list[str]:
    """The lines of a block without the fence and the line numbers that a model may copy along."""
    text = _FENCE.sub("", text.replace("\r\n", "\n"))
    rows = text.split("\n")
    if all(_NUMBERED.match(row) for row in rows if row.strip()):
        rows = [_NUMBERED.sub("", row) for row in rows]
    while rows and not rows[0].strip():
        rows = rows[1:]
    while rows and not rows[-1].strip():
        rows = rows[:-1]
    return [row.rstrip() for row in rows]


def _starts(lines: list[str], block: list[str]) -> list[int]:
    """Where a block stands, exactly or under another indentation."""
    return _starts_exactly(lines, block) or _starts_exactly(lines, block, _plain)


def _starts_exactly(
    lines: list[str], block: list[str], form: Callable[[list[str]], list[str]] = list
) -> list[int]:
    sought = [row.rstrip() for row in form(block)]
    places = range(len(lines) - len(block) + 1)
    return [
        at for at in places if [x.rstrip() for x in form(lines[at : at + len(block)])] == sought
    ]


def _plain(rows: list[str]) -> list[str]:
    return textwrap.dedent("\n".join(rows)).split("\n")


def _without_remarks(rows: list[str], own: list[str]) -> list[str]:
    """New lines without the comments that a model added: what it says to people is its reason."""
    remarks = dict[int, int]()
    with suppress(tokenize.TokenError, SyntaxError):
        text = io.StringIO("\n".join(_plain(rows)))
        cut = _indent(rows)
        for token in tokenize.generate_tokens(text.readline):
            if token.type == tokenize.COMMENT:
                remarks[token.start[0] - 1] = token.start[1] + cut
    plain = [
        row if row in own or at not in remarks else row[: remarks[at]].rstrip()
        for at, row in enumerate(rows)
    ]
    return [row for at, row in enumerate(plain) if row or not rows[at].strip()]


def _indent(rows: list[str]) -> int:
    return min((len(x) - len(x.lstrip()) for x in rows if x.strip()), default=0)


def _shifted(rows: list[str], by: int) -> list[str]:
    if by >= 0:
        return [" " * by + row if row.strip() else row for row in rows]
    return [row[min(-by, len(row) - len(row.lstrip())) :] for row in rows]


def smaller_edits(edit: Edit) -> list[Edit]:
    """The edit without each of its changes, where lines between them stay; none where it is one."""
    if edit.kind != "lines":
        return []
    old, new = edit.before.split("\n"), edit.after.split("\n")
    rows = SequenceMatcher(None, old, new, False).get_opcodes()
    changes = [at for at, row in enumerate(rows) if row[0] != "equal"]
    return [
        edit.model_copy(update={"after": "\n".join(
            line for at, (_, start, end, first, last) in enumerate(rows)
            for line in (old[start:end] if at == left_out else new[first:last])
        )})
        for left_out in changes if len(changes) > 1
    ]  # fmt: skip


def apply_edit(text: str, edit: Edit) -> str:
    """A file with an edit. Raises EditRefused where its lines do not stand there once."""
    lines, old = text.split("\n"), edit.before.split("\n")
    starts = [at for at in range(len(lines)) if lines[at : at + len(old)] == old]
    if len(starts) != 1:
        raise EditRefused(
            "its lines have changed already" if not starts else "its lines occur more than once"
        )
    start = starts[0]
    new = edit.after.split("\n") if edit.after else []
    return "\n".join([*lines[:start], *new, *lines[start + len(old) :]])


# Which edits are refused.

_PURE = frozenset(("math", "copy", "itertools", "functools", "collections", "__future__"))
_ACCESS = frozenset((
    "open", "exec", "eval", "compile", "__import__", "input", "globals", "locals", "vars",
    "getattr", "setattr", "delattr", "breakpoint", "exit", "quit", "_exit", "abort", "os", "sys",
    "subprocess", "socket", "shutil", "pathlib", "Path", "requests", "urllib", "http", "ctypes",
    "multiprocessing", "threading", "signal", "importlib", "builtins", "inspect", "gc", "pickle",
    "tempfile", "io", "hub", "cpp_extension", "load_inline", "ctypeslib", "f2py", "save", "savez",
    "savez_compressed", "savetxt", "savefig", "save_weights", "tofile", "fromfile", "loadtxt",
    "genfromtxt", "memmap", "dump", "dumps", "loads", "to_csv", "to_pickle", "get_file",
    "urlopen", "urlretrieve", "system", "popen", "Popen", "check_output", "from_pretrained",
    "load_dataset", "py_function", "pure_callback", "io_callback", "settrace", "setprofile",
    "atexit", "register_module_forward_hook",
))  # fmt: skip
_METHODS = frozenset(("eval", "compile", "input"))
"""Of a model: harmless, unlike the builtins of these names."""
_LOADS = frozenset(("torch", "np", "numpy", "jnp", "jax", "joblib", "json", "tf", "tensorflow"))
_DUNDERS = frozenset((
    "__init__", "__call__", "__len__", "__getitem__", "__iter__", "__next__", "__name__",
))  # fmt: skip
_SEEDS = frozenset((
    "manual_seed", "manual_seed_all", "seed", "set_random_seed", "set_seed", "seed_everything",
    "default_rng", "RandomState", "PRNGKey", "key", "Generator", "Rngs", "initial_seed",
))  # fmt: skip
_SEED_WORDS = frozenset(("seed", "random_state", "rng", "generator"))
_AMOUNT = re.compile(r"(?i)(^|_)(n_?)?(epochs?|steps?|iters?|iterations?|updates)($|_)")
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class EditedFile:
    """A file of the program before and after an edit, and the lines that differ."""

    before: ast.Module
    after: ast.Module
    removed: frozenset[int]
    added: frozenset[int]


def check_edit(
    files: Mapping[str, str], edit: Edit, metric: Metric, *, is_loss: bool = False
) -> None:
    """Raise EditRefused where an edit could prove nothing: it is too large, reaches outside the
    training, or touches what the metric is computed from. `files` are the modules of the program
    under their names, the program itself under "".
    """
    why = _refusal(tuple(sorted(files.items())), edit, metric, is_loss)
    if why:
        raise EditRefused(one_line(why))


@lru_cache(maxsize=64)
def _refusal(files: tuple[tuple[str, str], ...], edit: Edit, metric: Metric, is_loss: bool) -> str:
    texts = dict(files)
    try:
        changed = apply_edit(texts[edit.file], edit)
        edited = _edited(texts[edit.file], changed)
        trees = {name: syntax.parse(text) for name, text in texts.items() if name != edit.file}
    except EditRefused as error:
        return str(error)
    except KeyError:
        return "the program has no such file"
    except SyntaxError:
        return "the result is no valid Python"
    own = {name.removesuffix(".py").partition("/")[0] for name in texts}
    checks = (
        _too_large(edited),
        _imports_more(edited, trees.values(), own),
        _reaches_out(edited),
        _prints_differently(edited),
        _renames(edited),
        _draws_otherwise(edited),
        _trains_more(edited),
    )
    if why := next(filter(None, checks), ""):
        return why
    return _judges_differently(edited, trees, edit.file, metric, is_loss=is_loss)


def _edited(before: str, after: str) -> EditedFile:
    old, new = before.split("\n"), after.split("\n")
    head = _shared(old, new)  # two long texts that differ in a few lines
    tail = _shared(old[head:][::-1], new[head:][::-1])
    differing = (old[head : len(old) - tail], new[head : len(new) - tail])
    removed, added = set[int](), set[int]()
    for tag, start, end, first, last in SequenceMatcher(None, *differing, False).get_opcodes():
        if tag != "equal":
            removed |= set(range(head + start + 1, head + end + 1))
            added |= set(range(head + first + 1, head + last + 1))
    return EditedFile(
        syntax.parse(before), syntax.parse(after), frozenset(removed), frozenset(added)
    )


def _shared(one: list[str], other: list[str]) -> int:
    """How many lines two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (x, y) in enumerate(pairs) if x != y), min(len(one), len(other)))


def _too_large(edited: EditedFile) -> str:
    most = max(len(edited.removed), len(edited.added))
    return f"it changes more than {MOST_CHANGED} lines" if most > MOST_CHANGED else ""


def _more(edited: EditedFile, items: Callable[[ast.AST], Iterable[str]]) -> list[str]:
    """What the file has more of after the edit."""
    before, after = (Counter(items(tree)) for tree in (edited.before, edited.after))
    return sorted(after - before)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def _imports_more(edited: EditedFile, others: Iterable[ast.Module], own: set[str]) -> str:
    present = {x.partition(".")[0] for tree in (edited.before, *others) for x in _imported(tree)}
    for name in _more(edited, _imported):
        parts = name.split(".")
        if parts[0] not in present | own | _PURE or _ACCESS & set(parts):
            return f"it imports {name[:60]}"
    return ""


def _accesses(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        name = name_of(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if isinstance(node, Function):
            name = node.name
        is_method = isinstance(node, ast.Attribute) and name in _METHODS
        is_access = (name in _ACCESS and not is_method) or name.startswith("read_")
        is_load = name == "load" and root_name(node) in _LOADS
        if is_access or is_load or (name.startswith("__") and name not in _DUNDERS):
            yield name
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__" in node.value:
            yield node.value
        if isinstance(node, ast.Global | ast.Nonlocal | ast.ClassDef | ast.Raise | ast.Delete):
            yield type(node).__name__.lower()


def _reaches_out(edited: EditedFile) -> str:
    names = [name.replace("`", "'") for name in _more(edited, _accesses)]
    return f"it uses `{names[0][:40]}`" if names else ""


def _outputs(tree: ast.AST) -> list[str]:
    return [ast.dump(node) for node in ast.walk(tree) if is_output(node)]


def _prints_differently(edited: EditedFile) -> str:
    same = _outputs(edited.before) == _outputs(edited.after)
    return "" if same else "it changes what the program prints"


def _renamed(tree: ast.AST) -> Iterator[str]:
    imported = {x.asname or x.name.partition(".")[0]
                for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
                for x in node.names}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            root = root_name(node)
            yield from [dotted(node)] if root in imported else []
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield from [node.id] if node.id in imported | _BUILTINS else []
        elif isinstance(node, Function | ast.ClassDef):
            yield from [node.name] if node.name in imported | _BUILTINS else []
        elif isinstance(node, ast.alias) and (node.asname or node.name) in _BUILTINS:
            yield node.asname or node.name


def _renames(edited: EditedFile) -> str:
    names = _more(edited, _renamed)
    return f"it gives `{names[0][:40]}` another meaning" if names else ""


def _seeds(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and name_of(node.func) in _SEEDS
        if is_call or (isinstance(node, ast.keyword) and node.arg in _SEED_WORDS):
            yield ast.dump(node)


def _global_seeds(tree: ast.Module) -> list[str]:
    rows = (
        x for x in tree.body if not isinstance(x, Function | ast.ClassDef | ast.For | ast.While)
    )
    return [text for row in rows for text in _seeds(row)]


def _draws_otherwise(edited: EditedFile) -> str:
    """A seed may go from a function or a loop; none may come or change."""
    is_changed = _global_seeds(edited.before) != _global_seeds(edited.after)
    return "it changes a seed" if is_changed or _more(edited, _seeds) else ""


def _amounts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=over) | ast.AsyncFor(iter=over):
                calls = (x for x in ast.walk(over) if isinstance(x, ast.Call))
                yield from (ast.dump(x) for x in calls if name_of(x.func) in ("range", "repeat"))
            case ast.While(test=test):
                yield ast.dump(test)
            case ast.keyword(arg=str(name)) if _AMOUNT.search(name):
                yield ast.dump(node)
            case ast.Assign(targets=targets, value=ast.Constant()):
                if any(_AMOUNT.search(name_of(x)) for x in targets):
                    yield ast.dump(node)


def _trains_more(edited: EditedFile) -> str:
    before, after = (Counter(_amounts(tree)) for tree in (edited.before, edited.after))
    if before != after:
        return "it changes how long the program trains"
    fits = _more(edited, lambda tree: (
        name_of(x.func) for x in ast.walk(tree)
        if isinstance(x, ast.Call) and name_of(x.func) in ("fit", "train_on_batch")
    ))  # fmt: skip
    return "it trains once more" if fits else ""


# What the metric is computed from.


def _judges_differently(
    edited: EditedFile,
    others: Mapping[str, ast.Module],
    file: str,
    metric: Metric,
    *,
    is_loss: bool,
) -> str:
    judging = [judging_arguments(x, is_loss=is_loss) for x in (edited.before, edited.after)]
    if judging[0] != judging[1]:
        return f"it changes what {metric.name} is computed from"
    before = Slicer({**others, file: edited.before})
    if len(before.statements) > _MOST_STATEMENTS:
        return f"the program has more than {_MOST_STATEMENTS:,} statements"
    after = Slicer({**others, file: edited.after}, before)
    slices = [x.measured(metric.name, metric.source, is_loss=is_loss) for x in (before, after)]
    for part, lines in zip(slices, (edited.removed, edited.added), strict=True):
        if line := part.line(file, lines):
            return f"line {line} computes what {metric.name} is computed from"
    values = _values_of(before, file, edited.removed)
    apart = slices[0].keys - before.training.keys
    for one in after.statements:
        is_added = one.file == file and edited.added.intersection(one.lines)
        if is_added and (value := _measured_value(after, slices[1], one, values, apart)):
            return f"it uses `{value}`, which {metric.name} is computed from"
    return ""


def _values_of(slicer: Slicer, file: str, lines: frozenset[int]) -> set[str]:
    rows = (x for x in slicer.statements if x.file == file and lines.intersection(x.lines))
    return {value for one in rows for value in one.values}


def _measured_value(
    slicer: Slicer,
    measured: Measured,
    one: Statement,
    values: set[str],
    apart: set[tuple[str, str]],
) -> str:
    """A value that the metric is computed from, and that an added statement uses anew: a name, or
    an entry of one; also one that is made of what is kept `apart` for evaluations.
    """
    for value in sorted(one.values - values):
        name = value.partition("[")[0]
        if slicer.is_trained(name, one.function):
            continue
        rows = [
            x for x in slicer.definitions(one, name)
            if not isinstance(x.node, Function | ast.ClassDef | ast.Import | ast.ImportFrom)
            and x.reads - _BUILTINS  # constants tell nothing
        ]  # fmt: skip
        if any((name, x) in measured.definitions for x in rows):
            return value
        if rows and slicer.values_behind(one, name).keys & apart:
            return value
    return ""
