"""What no program needs: comments, docstrings, unused imports and names, blank lines; and the layout of the result."""

from __future__ import annotations

import ast
import io
import tokenize

from pyflakes import checker, messages

from bot.rules.mends.edits import Text
from bot.rules.reduce.edits import Edit, Files, Piece, parsed, programs
from bot.rules.reduce.statements import inside_strings, whole_lines

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)


def comments(files: Files) -> tuple[Edit, ...]:
    """All comments and docstrings at once."""
    pieces = list[Piece]()
    for path, source, tree in programs(files):
        text = Text(source)
        pieces.extend(_comments(path, text))
        pieces.extend(_docstrings(path, text, tree))
    return (Edit("drop comments", tuple(pieces)),) if pieces else ()


def _comments(path: str, text: Text) -> list[Piece]:
    found = list[Piece]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.source).readline):
            if token.type == tokenize.COMMENT:
                start = text.offset(token.start[0], 0) + token.start[1]
                line_start, end = text.offset(token.start[0], 0), start + len(token.string)
                before = text.source[line_start:start]
                whole = not before.strip()
                begin = line_start if whole else line_start + len(before.rstrip())
                found.append(Piece(path, begin, min(end + 1, len(text.source)) if whole else end))
    except (tokenize.TokenError, IndentationError):
        return []
    return found


def _docstrings(path: str, text: Text, tree: ast.Module) -> list[Piece]:
    found = list[Piece]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            alone = len(node.body) == 1 and not isinstance(node, ast.Module)
            new = " " * first.col_offset + "pass\n" if alone else ""
            if text.source[text.offset(first.lineno, 0) :][: first.col_offset].strip() == "":
                found.append(Piece(path, *whole_lines(text, first), new))
    return found


def unused(files: Files) -> tuple[Edit, ...]:
    """Imports and local names that nothing uses, as pyflakes finds them; those of a file that others import stay."""
    found = list[Edit]()
    for path, source, tree in programs(files):
        told = checker.Checker(tree, filename=path).messages
        idle = {message.lineno for message in told if isinstance(message, messages.UnusedImport)}
        text = Text(source)
        for node in tree.body:
            if isinstance(node, _IMPORTS) and node.lineno in idle:
                names = {str(row.message_args[0]) for row in told if row.lineno == node.lineno}
                kept = [alias for alias in node.names if not _named(node, alias, names)]
                new = ast.unparse(importing(node, kept)) + "\n" if kept else ""
                found.append(Edit("drop unused import", (Piece(path, *whole_lines(text, node), new),)))
    return tuple(found)


def importing(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    """The statement with other names."""
    if isinstance(node, ast.Import):
        return ast.Import(names=names)
    return ast.ImportFrom(module=node.module, names=names, level=node.level)


def _named(node: ast.Import | ast.ImportFrom, alias: ast.alias, names: set[str]) -> bool:
    whole = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
    return bool({whole, f"{whole} as {alias.asname}"} & names)


def formatted(files: Files) -> dict[str, str]:
    """The files with blank lines where people expect them: two around definitions of a module, one within a class, one
    after the imports. Nothing that Python reads changes.
    """
    return {path: _laid_out(text) if path.endswith(".py") else text for path, text in files.items()}


def _laid_out(source: str) -> str:
    tree = parsed(source)
    if tree is None:
        return source
    held = inside_strings(tree.body)
    wanted = _gaps(tree)
    result = list[str]()
    for number, line in enumerate(source.splitlines(), 1):
        if not line.strip() and number not in held:
            continue
        if result and number in wanted:
            result.extend([""] * wanted[number])
        result.append(line if number + 1 in held else line.rstrip())
    new = "\n".join(result) + "\n"
    again = parsed(new)
    return new if again is not None and ast.dump(again) == ast.dump(tree) else source


def _gaps(tree: ast.Module) -> dict[int, int]:
    """How many blank lines stand before the line with which a statement begins."""
    gaps: dict[int, int] = {}

    def note(body: list[ast.stmt], blank: int) -> None:
        for before, node in zip([None, *body], body, strict=False):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            apart = isinstance(node, _DEFINES) or isinstance(before, _DEFINES)
            if before is not None and (apart or (isinstance(before, _IMPORTS) and not isinstance(node, _IMPORTS))):
                gaps[first] = blank if apart else 1
            if isinstance(node, ast.ClassDef):
                note(node.body, 1)

    note(tree.body, 2)
    return gaps
