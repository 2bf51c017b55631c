"""What no program needs: comments, docstrings, unused imports, blank lines; and the layout of the
result.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from contextlib import suppress

from pyflakes import checker, messages

from bot.rules.parsing import tree_of
from bot.rules.reduce.edits import (
    Files,
    ParsedFile,
    Reduction,
    Replacement,
    first_line,
    parsed_files,
)
from bot.rules.reduce.statements import DEFINITIONS, inside_strings

_IMPORTS = (ast.Import, ast.ImportFrom)
_DOCUMENTED = (ast.Module, *DEFINITIONS)


def comments(files: Files) -> tuple[Reduction, ...]:
    """All comments and docstrings at once."""
    found = [one for file in parsed_files(files) for one in (*_comments(file), *_docstrings(file))]
    return (Reduction("drop comments", tuple(found)),) if found else ()


def _comments(file: ParsedFile) -> Iterator[Replacement]:
    tokens = list[tokenize.TokenInfo]()
    with suppress(tokenize.TokenError, IndentationError):
        tokens = list(tokenize.generate_tokens(io.StringIO(file.source).readline))
    for token in tokens:
        if token.type == tokenize.COMMENT:
            line, column = file.offset(token.start[0], 0), token.start[1]
            code = file.source[line : line + column].rstrip()
            end = line + column + len(token.string)
            yield file.cut(line + len(code), end if code else min(end + 1, len(file.source)))


def _docstrings(file: ParsedFile) -> Iterator[Replacement]:
    for node in ast.walk(file.tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node):
            first = node.body[0]
            if file.source[file.offset(first.lineno, 0) :][: first.col_offset].strip() == "":
                yield file.remove(first)


def unused(files: Files) -> tuple[Reduction, ...]:
    """The imports that pyflakes finds unused."""
    return tuple(reduction for file in parsed_files(files) for reduction in _unused(file))


def _unused(file: ParsedFile) -> Iterator[Reduction]:
    found = checker.Checker(file.tree, filename=file.path).messages
    idle = [message for message in found if isinstance(message, messages.UnusedImport)]
    for node in file.tree.body:
        names = {str(message.message_args[0]) for message in idle if message.lineno == node.lineno}
        if isinstance(node, _IMPORTS) and names:
            used = [alias for alias in node.names if not _is_reported(node, alias, names)]
            rest = ast.unparse(importing(node, used)) + "\n" if used else ""
            yield Reduction("drop unused import", (file.replace_lines(node, rest),))


def importing(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    """The statement with other names."""
    if isinstance(node, ast.Import):
        return ast.Import(names=names)
    return ast.ImportFrom(module=node.module, names=names, level=node.level)


def _is_reported(node: ast.Import | ast.ImportFrom, alias: ast.alias, names: set[str]) -> bool:
    whole = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
    return bool({whole, f"{whole} as {alias.asname}"} & names)


def formatted(files: Files) -> dict[str, str]:
    """The files with conventional blank lines: two around the definitions of a module, one within
    a class, one after the imports. Nothing that Python reads changes.
    """
    return {path: _formatted(path, text) for path, text in files.items()}


def _formatted(path: str, source: str) -> str:
    tree = tree_of(source) if path.endswith(".py") else None
    if tree is None:
        return source
    strings, gaps, result = inside_strings(tree.body), dict(_gaps(tree.body, 2)), list[str]()
    for number, line in enumerate(source.splitlines(), 1):
        if line.strip() or number in strings:
            result += [""] * gaps.get(number, 0)
            result.append(line if number + 1 in strings else line.rstrip())
    new = "\n".join(result) + "\n"
    again = tree_of(new)
    return new if again is not None and ast.dump(again) == ast.dump(tree) else source


def _gaps(body: list[ast.stmt], blank: int) -> Iterator[tuple[int, int]]:
    """How many blank lines belong before the line on which a statement begins."""
    for before, node in zip([None, *body], body, strict=False):
        if before is not None and isinstance(before, DEFINITIONS) | isinstance(node, DEFINITIONS):
            yield first_line(node), blank
        elif isinstance(before, _IMPORTS) and not isinstance(node, _IMPORTS):
            yield first_line(node), 1
        if isinstance(node, ast.ClassDef):
            yield from _gaps(node.body, 1)
