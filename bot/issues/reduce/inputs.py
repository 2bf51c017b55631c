"""What a program reads from outside becomes values in it: its arguments, its configuration files;
and the lines of its data files.
"""

import ast
import json
import math
from collections.abc import Iterator
from contextlib import suppress

import yaml

from bot.issues.reduce.edits import (
    Files,
    ParsedFile,
    Reduction,
    ReductionNode,
    Replacement,
    parsed_files,
)
from bot.kernel.source.syntax import name_of, nodes

# Arguments: what `parse_args` would return, as a namespace of the values that are read. The words
# come from the `sys.argv = [...]` of the program, defaults and types from its `add_argument` calls.

_FLAGS = {"store_true": ("True", "False"), "store_false": ("False", "True")}
_PARSERS = {"parse_args", "parse_known_args"}
_PLAIN = {"int", "float"}
_MANY = {"+", "*"}


def input_edits(files: Files) -> Iterator[Reduction]:
    """Every parsing of arguments, and every reading of a configuration file, by its value."""
    parsed = parsed_files(files)
    yield from _arguments(parsed)
    yield from _fields(parsed)
    yield from _configurations(files, parsed)


def _arguments(files: list[ParsedFile]) -> Iterator[Reduction]:
    words = next((words for file in files if (words := _argv(file)) is not None), None)
    calls = [(file, call) for file in files for call in nodes(file.tree, ast.Call)]
    parses = [(file, call) for file, call in calls if name_of(call.func) in _PARSERS]
    options = [(file, call) for file, call in calls if name_of(call.func) == "add_argument"]
    if words is None or len(parses) != 1 or not options:
        return
    values = _values(words, options)
    names_read = {node.attr for file in files for node in nodes(file.tree, ast.Attribute)}
    if any(name_of(call.func) == "vars" for _, call in calls):
        names_read |= values.keys()
    file, call = parses[0]
    pairs = ", ".join(f"{name}={value}" for name, value in values.items() if name in names_read)
    space, imports = _namespace(file)
    removals = [
        owner.remove(holder)
        for owner, option in options
        if isinstance(holder := owner.parents[option], ast.Expr)
    ]
    value = f"{space}({pairs})"
    is_whole = name_of(call.func) == "parse_args"
    new = file.replace(call, value if is_whole else f"({value}, [])")
    yield Reduction("arguments by their values", (new, *imports, *removals))
    yield Reduction("arguments by their values", (new, *imports))


def _fields(files: list[ParsedFile]) -> Iterator[Reduction]:
    """A field of a namespace that is written in the same place, by its value."""
    for file in files:
        for node in nodes(file.tree, ast.Attribute):
            match node.value:
                case ast.Call(keywords=words) if name_of(node.value.func).endswith("Namespace"):
                    value = next((one.value for one in words if one.arg == node.attr), None)
                    if value is not None:
                        new = file.substitute(node, file.of(value))
                        yield Reduction(f"{node.attr} by its value", (new,))


def _argv(file: ParsedFile) -> list[str] | None:
    """The words after the program's name, where it sets them."""
    for node in file.tree.body:
        match node:
            case ast.Assign([ast.Attribute(ast.Name("sys"), "argv")], ast.List(items)):
                words = [item.value for item in items if isinstance(item, ast.Constant)]
                return [str(word) for word in words[1:]]
    return None


def _namespace(file: ParsedFile) -> tuple[str, tuple[Replacement, ...]]:
    """How a namespace is written in a file, and what must be imported for that."""
    for node in file.tree.body:
        match node:
            case ast.Import(names) if any(ast.unparse(one) == "argparse" for one in names):
                return "argparse.Namespace", ()
            case ast.ImportFrom("argparse", names, 0):
                every = [*names, ast.alias("Namespace")]
                text = ast.unparse(ast.ImportFrom("argparse", every, 0))
                return "Namespace", (file.replace(node, text),)
    return "__import__('argparse').Namespace", ()


def _values(words: list[str], options: list[tuple[ParsedFile, ast.Call]]) -> dict[str, str]:
    """The value of each option as an expression."""
    values, rest = dict[str, str](), list(words)
    for file, call in sorted(options, key=lambda row: not _flags(row[1])):
        keywords = {word.arg: word.value for word in call.keywords if word.arg}
        flags, action = _flags(call), _constant(keywords.get("action"))
        name = str(_constant(keywords.get("dest")) or _dest(call, flags))
        at = next((at for at, word in enumerate(rest) if word.partition("=")[0] in flags), None)
        if action in _FLAGS:
            present, absent = _FLAGS[str(action)]
            values[name] = present if at is not None else absent
            if at is not None:
                del rest[at]
            continue
        is_given = at is not None or (not flags and bool(rest))
        default = file.of(keywords["default"]) if "default" in keywords else "None"
        values[name] = _take(rest, at, flags, file, keywords) if is_given else default
    return values


def _take(
    rest: list[str],
    at: int | None,
    flags: list[str],
    file: ParsedFile,
    keywords: dict[str, ast.expr],
) -> str:
    """The words of one option, taken off the rest, as an expression."""
    count = _constant(keywords.get("nargs"))
    start = 0 if at is None else at
    if at is not None and "=" in rest[at]:
        words, length = [rest[at].partition("=")[2]], 1
    else:
        first = start + bool(flags)
        end = first + (count if isinstance(count, int) else 1)
        while count in _MANY and end < len(rest) and not rest[end].startswith("--"):
            end += 1
        words, length = rest[first:end], end - start
    del rest[start : start + length]
    kind = file.of(keywords["type"]) if "type" in keywords else "str"
    items = [_typed(word, kind) for word in words]
    return f"[{', '.join(items)}]" if count is not None and count != "?" else "".join(items[:1])


def _typed(word: str, kind: str) -> str:
    if kind in _PLAIN:
        with suppress(ValueError):
            number = int(word) if kind == "int" else float(word)
            return repr(number) if math.isfinite(number) else f"float({word!r})"
    return repr(word) if kind == "str" else f"{kind}({word!r})"


def _flags(call: ast.Call) -> list[str]:
    names = [str(one.value) for one in call.args if isinstance(one, ast.Constant)]
    return [name for name in names if name.startswith("-")]


def _dest(call: ast.Call, flags: list[str]) -> str:
    first = next((str(one.value) for one in call.args if isinstance(one, ast.Constant)), "")
    name = next((flag for flag in flags if flag.startswith("--")), first)
    return name.lstrip("-").replace("-", "_")


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


# Files: what reads a small configuration becomes its value, what opens a short text a buffer.

_LOADERS = {"load", "safe_load", "full_load", "loads"}
_MAX_FILE, _MAX_VALUE = 20_000, 1_500
_NOTHING = "__import__('contextlib').nullcontext()"


def _configurations(files: Files, parsed: list[ParsedFile]) -> Iterator[Reduction]:
    for path, text in files.items():
        if path.endswith(".py"):
            continue
        value = _value(path, text)
        for file in parsed:
            for call in nodes(file.tree, ast.Call):
                if value is not None and name_of(call.func) in _LOADERS and len(call.args) >= 1:
                    new = file.substitute(call, value)
                    around = (file.replace(one, _NOTHING) for one in _opened_around(file, call))
                    yield Reduction(f"{path} by its value", (new, *around), drops=(path,))
                    yield Reduction(f"{path} by its value", (new,))
                elif name_of(call.func) == "open" and len(text) <= _MAX_VALUE:
                    new = file.replace(call, f"__import__('io').StringIO({text!r})")
                    yield Reduction(f"{path} as text", (new,), drops=(path,))


def _opened_around(file: ParsedFile, call: ast.Call) -> Iterator[ast.expr]:
    """What the `with` statements around a call open."""
    for node in file.above(call):
        if isinstance(node, ast.With):
            opened = (item.context_expr for item in node.items)
            yield from (one for one in opened if _opens(one))


def _opens(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) == "open"


def _value(path: str, text: str) -> str | None:
    """A small configuration as a literal; None for anything else. YAML without anchors: a few of
    those may stand for gigabytes.
    """
    if len(text) > _MAX_FILE:
        return None
    value: object = None
    with suppress(ValueError, RecursionError, yaml.YAMLError):
        if path.endswith(".json"):
            value = json.loads(text)
        elif path.endswith((".yaml", ".yml")) and "&" not in text:
            value = yaml.safe_load(text)
    literal = repr(value)
    with suppress(ValueError, SyntaxError):
        ast.literal_eval(literal)  # dates and not-a-number are no literals
        return literal if value is not None and len(literal) <= _MAX_VALUE else None
    return None


def data_lines(files: Files) -> tuple[tuple[ReductionNode, ...], ...]:
    """The lines of the files that are no Python, each as one that can go."""
    groups = []
    for path, text in sorted(files.items()):
        if path.endswith(".py") or len(text) > 10 * _MAX_FILE:
            continue
        at, rows = 0, list[ReductionNode]()
        for line in text.splitlines(keepends=True):
            cut = Replacement(path, at, at + len(line))
            rows.append(ReductionNode(Reduction(f"drop a line of {path}", (cut,))))
            at += len(line)
        groups.append(tuple(rows))
    return tuple(groups)
