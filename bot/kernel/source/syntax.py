"""Syntax trees of sources that may be damaged or hostile: bounded, and never an error but a
SyntaxError.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeVar

# The one door to Python's parser for text from outside: bounded in size and depth, and never an
# error but a SyntaxError.

if TYPE_CHECKING:
    from libcst import Module

LONGEST = 1_500_000
DEEPEST = 150
"""Levels of a tree. Code that people write has 60 at most; what walks a tree by recursion takes
several calls a level.
"""
MAX_TOKENS = 150_000
"""Names, numbers, operators and strings. A statement of one name takes 1.7 kB of a tree, so this
many take 260 MB and a second; of 40,000 installed files, three have more.
"""
MAX_CONCRETE_TOKENS = 30_000
"""A concrete tree takes five times as much."""
NOT_CODE = (
    r"""\\\n|\#[^\n]*+"""
    r'''|"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:"""|\Z)'''
    r"""|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+(?:'''|\Z)"""
    r"""|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?"""
)
"""A joined line, a comment or a string, in a pattern with DOTALL."""
_LONGEST_CACHED = 300_000
_TOKEN = re.compile(rf"{NOT_CODE}|\w+|[^\w\s]", re.DOTALL)
_PARSING = Lock()
_MOST_MEETINGS = 5


class Unreadable(SyntaxError):
    """Text that no parser should be asked to read, or that this one cannot."""


def parse(text: str, longest: int = LONGEST, tokens: int = MAX_TOKENS) -> ast.Module:
    """The tree of a program. Raises SyntaxError, its subclass Unreadable where the text is too
    long, nested too deeply or no text.
    """
    if len(text) > longest:
        raise Unreadable(f"it has more than {longest} characters")
    if len(text) > tokens and sum(1 for _ in _TOKEN.finditer(text)) > tokens:
        raise Unreadable(f"it has more than {tokens} tokens")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = _parsed(text)
        except (ValueError, MemoryError, RecursionError) as error:
            raise Unreadable(str(error) or "it is nested too deeply") from None
    if _is_deep(tree):
        raise Unreadable("it is nested too deeply")
    return tree


def _parsed(text: str) -> ast.Module:
    """The tree, by one thread at a time: CPython 3.11 to 3.13 count the depth of all trees that are
    being built in one place, and raise SystemError where the counts of two threads meet.
    """
    for _ in range(_MOST_MEETINGS):
        with _PARSING, suppress(SystemError):  # not all who parse come through here
            return ast.parse(text)
    raise Unreadable("the parser was disturbed by other threads")


def tree_of(text: str) -> ast.Module | None:
    """The tree as `parse` gives it; None for what does not parse or no parser should be asked to
    read. Those of large files, hundreds of megabytes, are not kept.
    """
    return _cached(text) if len(text) <= _LONGEST_CACHED else _tree(text)


def _tree(text: str) -> ast.Module | None:
    try:
        return parse(text)
    except SyntaxError:
        return None


_cached = lru_cache(maxsize=64)(_tree)


def parse_concrete(text: str, longest: int = LONGEST) -> Module:
    """The tree of a program with comments and formatting. Raises SyntaxError as `parse` does."""
    # Its import takes 0.2 s, and most commands have no use for it.
    import libcst as cst

    parse(text, longest, MAX_CONCRETE_TOKENS)
    try:
        return cst.parse_module(text)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, UnicodeError) as error:
        raise Unreadable(str(error)) from None


def _is_deep(tree: ast.AST) -> bool:
    level, depth = [tree], 0
    while level and depth <= DEEPEST:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return bool(level)


# Syntax trees of sources that may be damaged or hostile: bounded, and None instead of an error.

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Node = TypeVar("_Node", bound=ast.AST)
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_DOCSTRING = re.compile(
    r"""(?s)(?:\A|:[ \t]*(?:\#[^\n]*)?\n)\s*[rRuU]?(?P<quote>\"{3}|'{3})"""
    r"""(?P<text>.*?)(?:(?P=quote)|\Z)"""
)


def source_lines(text: str) -> list[str]:
    """The lines of a program as Python numbers them: a form feed ends none."""
    return re.split(r"\r\n|\r|\n", text.removesuffix("\n"))


def tree_of_lines(text: str) -> ast.Module | None:
    """The tree of some lines of a module: dedented, and with a body where only the head is
    shown.
    """
    plain = textwrap.dedent(text)
    tree = tree_of(plain)
    if tree is None and plain.rstrip().endswith(":"):
        tree = tree_of(f"{plain.rstrip()}\n    pass\n")
    return tree


def nodes(tree: ast.AST, kind: type[_Node]) -> list[_Node]:
    """The nodes of one kind in a tree, outer ones before those within."""
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of a tree, outer ones before those within. Far fewer than the nodes."""
    level = [tree]
    while level:
        yield from level
        level = [
            child
            for node in level
            for block in _BLOCKS
            for child in getattr(node, block, None) or ()
        ]


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text; "" for anything that is no plain chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < 20:
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join([node.id, *reversed(parts)])
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
        and parts
    ):
        return ".".join(["super", *reversed(parts)])
    return ""


def calls(tree: ast.AST) -> Iterator[str]:
    """Dotted names of what is called, in the order of the source, with repeats."""
    for node in sorted(nodes(tree, ast.Call), key=lambda call: (call.lineno, call.col_offset)):
        name = dotted(node.func)
        if name:
            yield name
        elif isinstance(node.func, ast.Attribute):
            yield f"?.{node.func.attr}"


def docstrings(text: str) -> frozenset[int]:
    """The offsets of the lines of docstrings, but for the first line with words. Found by their
    place, so that lines cut out of a definition need not parse.
    """
    lines = set[int]()
    for literal in _DOCSTRING.finditer(text):
        blank = len(literal["text"]) - len(literal["text"].lstrip())
        first = text.count("\n", 0, literal.start("text") + blank)
        lines |= set(range(first + 1, text.count("\n", 0, literal.end()) + 1))
    return frozenset(lines)


# Whether a text is a Python program, and how sure its statements make us.

Evidence = Literal["none", "weak", "strong"]

LONGEST_PASTED = 120_000
_REPR = re.compile(
    r"^(?:tensor|array|Array|DeviceArray|Parameter|TensorShape|KerasTensor|ShapeDtypeStruct|Size|dtype|device|OrderedDict"
    r"|defaultdict)$"
)
_MARKS = re.compile(
    r"^[^\S\n]*+(?:>>> |import [a-zA-Z_]|from [\w.]+ import |def \w+\(|class \w+[(:]|@\w|async def "
    r"|with .+:|for .{1,200}? in .+:"
    r"|[\w.\[\], ]+ ?[-+*/@|&]?= ?\S|"
    r"[\w.]+\(.*|assert |try:|if .+:)",
    re.M,
)
_FAMILIAR = frozenset({"print", "model", "main", "run", "test", "f", "exec", "len", "type"})
_COMPUTED_NODES = (ast.Call, ast.Attribute, ast.Subscript, ast.Lambda, ast.BinOp, ast.ListComp)
_ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_LITERALS = (
    *(ast.Constant, ast.List, ast.Tuple, ast.Dict),
    *(ast.UnaryOp, ast.BinOp, ast.Attribute),
)


def pasted_tree(text: str) -> ast.Module | None:
    """The syntax tree of a text, or None when it is not Python."""
    tree = attempt(text)
    return tree if isinstance(tree, ast.Module) else None


def module_of(text: str) -> ast.Module:
    """The syntax tree of a program; an empty one when it does not parse."""
    try:
        tree = pasted_tree(text) if len(text) <= LONGEST_PASTED else parse(text)
    except SyntaxError:
        tree = None
    return tree or ast.Module(body=[], type_ignores=[])


def name_of(node: ast.AST) -> str:
    """The last part of a name: `f` for both `f` and `a.f`; "" for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def root_name(node: ast.AST) -> str:
    """The first name of a dotted one, "" for any other expression."""
    return dotted(node).partition(".")[0]


def loaded_names(node: ast.AST) -> list[str]:
    """The names that code reads, in no order."""
    return [row.id for row in nodes(node, ast.Name) if isinstance(row.ctx, ast.Load)]


def is_test_method(node: ast.AST) -> bool:
    """Whether a function is a test that takes nothing but the case that it is a method of."""
    if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test"):
        return False
    return [argument.arg for argument in node.args.args] == ["self"]


def is_call_of(node: ast.AST, *functions: str) -> bool:
    """Whether an expression calls one of these functions by its bare name."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in functions


@lru_cache(maxsize=64)
def attempt(text: str) -> ast.Module | SyntaxError | None:
    """The tree, or the complaint of the parser; None for what no parser should be asked to read."""
    try:
        return parse(text, LONGEST_PASTED)
    except Unreadable:
        return None
    except SyntaxError as error:
        return error.with_traceback(None)


def looks_like(text: str) -> bool:
    """Whether any line could be Python; a cheap test."""
    return bool(_MARKS.search(text))


def evidence(tree: ast.Module) -> Evidence:
    """How strongly the statements indicate a program, not words or output that happen to parse."""
    strengths = {_statement(statement) for statement in tree.body}
    return "strong" if "strong" in strengths else "weak" if "weak" in strengths else "none"


def _statement(node: ast.stmt) -> Evidence:
    if isinstance(node, ast.Expr):
        return _expression(node.value)
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return "none"
    weak = isinstance(node, ast.Pass | ast.Delete | ast.Return | ast.Global)
    plain = not isinstance(getattr(node, "value", None), _COMPUTED_NODES)
    return "weak" if weak or (isinstance(node, _ASSIGNMENTS) and plain) else "strong"


def _expression(node: ast.expr) -> Evidence:
    if isinstance(node, ast.Await):
        return "strong"
    if not isinstance(node, ast.Call) or is_repr(node):
        return "none"
    familiar = not isinstance(node.func, ast.Name) or node.func.id in _FAMILIAR
    return "strong" if familiar else "weak"


def is_repr(node: ast.expr) -> bool:
    """Whether a call is what printing an object shows, such as `tensor([1.])` or `Size([2, 3])`, or
    one that holds such objects: programs write `torch.tensor`.
    """
    if not isinstance(node, ast.Call):
        return False
    name, bare = name_of(node.func), isinstance(node.func, ast.Name)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    inner = [part for part in arguments if isinstance(part, ast.Call)]
    if inner and all(isinstance(part.func, ast.Name) and is_repr(part) for part in inner):
        return all(_is_literal(part) for part in arguments if part not in inner)
    return bool(_REPR.match(name) or (bare and name[:1].isupper())) and all(
        map(_is_literal, arguments)
    )


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in {"nan", "inf", "NaN", "Infinity"}
    children = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    return isinstance(node, _LITERALS) and all(
        isinstance(child, (*_LITERALS, ast.Name)) for child in children[:50]
    )


def bound_names(tree: ast.Module) -> frozenset[str]:
    """Every name that a program binds anywhere."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
    return frozenset(names)
