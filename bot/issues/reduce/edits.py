"""Reductions: replacements of text that combine into a smaller program; and the parsed files."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from bot.environment.imports import Positioned, Text, lines
from bot.kernel.source import syntax

Files = Mapping[str, str]
BLOCKS = ("body", "orelse", "finalbody")
_ATOMS = (
    ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set,
    ast.ListComp, ast.DictComp, ast.SetComp, ast.JoinedStr,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Replacement:
    """A span of a file and its new text. One that removes a statement names its `block` and how
    many statements that has: a block that loses all of them gets the `filler`, a `pass`.
    """

    path: str
    start: int
    end: int
    new: str = ""
    block: str = ""
    size: int = 0
    filler: str = ""


@dataclass(frozen=True, slots=True)
class Reduction:
    """Replacements that belong together, with positions in the text before, and files to drop. One
    that `alters_values` of the program is not tried where the failure is itself a value.
    """

    what: str
    replacements: tuple[Replacement, ...] = ()
    drops: tuple[str, ...] = ()
    alters_values: bool = False


@dataclass(frozen=True, slots=True)
class ReductionNode:
    """A reduction, and the smaller ones within its span to try when it is rejected."""

    reduction: Reduction
    children: tuple[tuple[ReductionNode, ...], ...] = ()


def apply_reductions(files: Files, reductions: Iterable[Reduction]) -> dict[str, str] | None:
    """The files with the reductions made; of overlapping replacements the outer one is used.
    None when the result does not compile or nothing changed.
    """
    selection = list(reductions)
    drops = {path for reduction in selection for path in reduction.drops}
    by_path: dict[str, set[Replacement]] = {}
    for reduction in selection:
        for replacement in reduction.replacements:
            by_path.setdefault(replacement.path, set()).add(replacement)
    result = {path: text for path, text in files.items() if path not in drops}
    for path in by_path.keys() - drops:
        result[path] = _replace(files[path], by_path[path])
        if result[path] != files[path] and not valid(path, result[path]):
            return None
    return None if result == files else result


def _replace(text: str, replacements: set[Replacement]) -> str:
    outer, limit = list[Replacement](), -1
    for replacement in sorted(replacements, key=lambda one: (one.start, -one.end, one.new)):
        if replacement.start >= limit:
            outer.append(replacement)
            limit = replacement.end
    removed_counts = Counter(replacement.block for replacement in outer if replacement.block)
    result, at = list[str](), 0
    for replacement in outer:
        emptied = replacement.block and removed_counts[replacement.block] == replacement.size
        result += [text[at : replacement.start], replacement.filler if emptied else replacement.new]
        if emptied:
            removed_counts[replacement.block] = 0  # one `pass` is enough
        at = replacement.end
    return "".join([*result, text[at:]])


def valid(path: str, text: str) -> bool:
    """Whether a file is Python that compiles (a file that is not Python always is valid)."""
    if not path.endswith(".py"):
        return True
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(syntax.parse(text), "<program>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def size(files: Files) -> tuple[int, int]:
    """How large a program is: lines that are not blank, then characters."""
    nonempty_lines = [
        line.strip() for text in files.values() for line in lines(text) if line.strip()
    ]
    return len(nonempty_lines), sum(map(len, nonempty_lines))


class ParsedFile(Text):
    """The text of a file, its tree, and the parents of the tree's nodes."""

    def __init__(self, path: str, source: str, tree: ast.Module) -> None:
        super().__init__(source)
        self.path, self.tree = path, tree

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of every node but the module."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def in_f_strings(self) -> frozenset[ast.AST]:
        """The f-strings and all nodes in them: before Python 3.12 their positions are wrong."""
        f_strings = (node for node in ast.walk(self.tree) if isinstance(node, ast.JoinedStr))
        return frozenset(part for node in f_strings for part in ast.walk(node))

    def width(self, node: ast.expr) -> int:
        """How long the line is on which an expression begins."""
        return len(self._lines[node.lineno - 1].rstrip("\r\n"))

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the innermost to the module."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def scope(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the module."""
        functions = (ast.FunctionDef, ast.Lambda)
        return next((one for one in self.above(node) if isinstance(one, functions)), self.tree)

    def cut(self, start: int, end: int, new: str = "") -> Replacement:
        """Replace a span of characters."""
        return Replacement(self.path, start, end, new)

    def replace(self, node: Positioned, new: str) -> Replacement:
        """Replace the text of a node."""
        return self.cut(*self.span(node), new)

    def substitute(self, node: ast.expr, value: str) -> Replacement:
        """Replace an expression by a value, in parentheses where it may need them."""
        above = self.parents[node]
        bare = isinstance(above, ast.stmt) and not isinstance(above, ast.For)
        return self.replace(node, value if bare else parenthesised(value))

    def replace_lines(self, statement: ast.stmt, new: str = "") -> Replacement:
        """Replace all lines of a statement."""
        return self.cut(*self.whole_lines(statement), new)

    def remove(self, statement: ast.stmt) -> Replacement:
        """Remove a statement from its block, which gets a `pass` when it is left empty."""
        above, start_end = self.parents[statement], self.whole_lines(statement)
        if above is self.tree:
            return self.cut(*start_end)
        body = next(body for body in own_blocks(above) if statement in body)
        label = f"{self.path}:{body[0].lineno}:{body[0].col_offset}"
        filler = " " * statement.col_offset + "pass\n"
        return Replacement(self.path, *start_end, "", label, len(body), filler)

    def whole_lines(self, statement: ast.stmt) -> tuple[int, int]:
        """The span of the lines of a statement with its decorators and its last line break."""
        last = statement.end_lineno or statement.lineno
        return self.offset(first_line(statement), 0), self.offset(last + 1, 0)


def module_name(path: str) -> str:
    """The name under which a file of a program is imported from its folder."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def own_blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements that a node itself holds."""
    blocks = (getattr(node, name, None) for name in BLOCKS)
    return [body for body in blocks if isinstance(body, list) and body]


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement, those of its handlers and cases included."""
    parts = [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    return [body for holder in (statement, *parts) for body in own_blocks(holder)]


def first_line(statement: ast.stmt) -> int:
    """The line on which a statement begins, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def parenthesised(text: str) -> str:
    """An expression in a form that is valid anywhere."""
    tree = syntax.tree_of(f"({text}\n)")
    value = getattr(tree.body[0], "value", None) if tree is not None else None
    return text if isinstance(value, _ATOMS) and "\n" not in text else f"({text})"


def parsed_files(files: Files) -> list[ParsedFile]:
    """The Python files that parse, in order of their paths."""
    files_or_none = (
        _parsed_file(path, files[path]) for path in sorted(files) if path.endswith(".py")
    )
    return [file for file in files_or_none if file is not None]


@lru_cache(maxsize=16)
def _parsed_file(path: str, source: str) -> ParsedFile | None:
    tree = syntax.tree_of(source)
    return ParsedFile(path, source, tree) if tree is not None else None
