"""A file of a program with its tree: where its nodes are, what is around them, and the replacements
that change or remove them.
"""

import ast
from collections.abc import Iterator
from functools import cached_property, lru_cache

from bot.rules.reduce.edits import Files, Replacement, parsed
from bot.rules.script_fixes.edits import Positioned, Text

BLOCKS = ("body", "orelse", "finalbody")
_ATOMS = (
    ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set,
    ast.ListComp, ast.DictComp, ast.SetComp, ast.JoinedStr,
)  # fmt: skip


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
        found = (node for node in ast.walk(self.tree) if isinstance(node, ast.JoinedStr))
        return frozenset(part for node in found for part in ast.walk(node))

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

    def substitute(self, read: ast.expr, value: str) -> Replacement:
        """Replace an expression by a value, in parentheses where it may need them."""
        above = self.parents[read]
        bare = isinstance(above, ast.stmt) and not isinstance(above, ast.For)
        return self.replace(read, value if bare else parenthesised(value))

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


def own_blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements that a node itself holds."""
    found = (getattr(node, name, None) for name in BLOCKS)
    return [body for body in found if isinstance(body, list) and body]


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
    tree = ast.parse(f"({text}\n)", mode="eval").body
    return text if isinstance(tree, _ATOMS) and "\n" not in text else f"({text})"


def parsed_files(files: Files) -> list[ParsedFile]:
    """The Python files that parse, in order of their paths."""
    found = (_parsed_file(path, files[path]) for path in sorted(files) if path.endswith(".py"))
    return [file for file in found if file is not None]


@lru_cache(maxsize=16)
def _parsed_file(path: str, source: str) -> ParsedFile | None:
    tree = parsed(source)
    return ParsedFile(path, source, tree) if tree is not None else None
