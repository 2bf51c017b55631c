"""A program and its own modules as one text, so that what one file gives another is found, and the
text in its files again.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from bot.kernel.source import syntax

LONGEST = 150_000
"""Characters of a program that is parsed."""
_MOST, _TOGETHER = 20, 100_000
"""Modules that are joined, and the characters of all: a tree of more is too large."""
_MARK = "__reprise_module_{}__\n"
_MODULE_MARK = re.compile(r"(?m)^__reprise_module_\d+__\n")


class ProgramFile(NamedTuple):
    """A file beside a program: its path from the program's folder, and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class JoinedText:
    """`text` has the modules in their order, then the program; `starts` is the first line of each,
    `names` their files, "" for the program.
    """

    text: str
    names: tuple[str, ...]
    starts: tuple[int, ...]
    bare: frozenset[str]

    def located(self, line: int) -> tuple[str, int]:
        """The file of a line, and which it is there, both 1-based."""
        at = bisect_right(self.starts, line) - 1
        return (self.names[at], line - self.starts[at] + 1) if at >= 0 else ("", line)

    def parted(self, text: str) -> dict[str, str]:
        """The files of a changed text by their names."""
        texts = _MODULE_MARK.split(text)
        return {
            name: part.removesuffix("\n") if name in self.bare else part
            for name, part in zip(self.names, texts, strict=True)
        }


def join(source: str, modules: Sequence[ProgramFile]) -> JoinedText:
    """A program behind its modules; alone where a text has our marks."""
    files = [*modules, ProgramFile("", source)]
    if any(_MODULE_MARK.search(file.text) for file in files):
        files = files[-1:]
    text, starts, bare = "", [], set[str]()
    for number, (name, own) in enumerate(files):
        text += _MARK.format(number) if number else ""
        starts.append(text.count("\n") + 1)
        if own and not own.endswith("\n") and len(files) > 1:
            bare.add(name)
        text += f"{own}\n" if name in bare else own
    return JoinedText(text, tuple(file.name for file in files), tuple(starts), frozenset(bare))


def own_modules(files: Mapping[str, bytes], entry: str) -> tuple[ProgramFile, ...]:
    """The files beside a program that it imports, directly or through others, what is imported
    before what imports it; the nearest where they are many.
    """
    files_by_module: dict[str, str] = {}
    waiting, files_entered = [(entry, False)], set[str]()
    while waiting:
        name, is_complete = waiting.pop()
        if is_complete:
            files_by_module[name] = _text(files[name]) or ""
            continue
        text = (
            _text(files[name])
            if name not in files_entered and len(files_entered) <= _MOST
            else None
        )
        files_entered.add(name)
        if text and (tree := syntax.tree_of(text)):
            imported_files = _imported_files(tree, name, files)
            waiting += [
                (name, True),
                *((other, False) for other in imported_files if other not in files_entered),
            ]
    files_by_module.pop(entry, None)
    characters_left, near = _TOGETHER - len(files[entry]), list[ProgramFile]()
    for name, text in reversed(files_by_module.items()):
        characters_left -= len(text)
        near += [ProgramFile(name, text)] if characters_left >= 0 else []
    return tuple(reversed(near))


def _text(data: bytes) -> str | None:
    try:
        text = data.decode() if len(data) <= LONGEST else ""
    except UnicodeDecodeError:
        return None
    # A mark of the byte order and bare carriage returns do not survive between other texts.
    return None if text[:1] == "\ufeff" or "\r" in text.replace("\r\n", "") else text or None


def _imported_files(tree: ast.Module, name: str, files: Mapping[str, bytes]) -> list[str]:
    module_paths = dict.fromkeys(path for node in ast.walk(tree) for path in _paths(node, name))
    paths = (file for path in module_paths for file in (f"{path}.py", f"{path}/__init__.py"))
    return [file for file in paths if file in files]


def _paths(node: ast.AST, name: str) -> Iterator[str]:
    """What an import may be of, as paths without a suffix."""
    if isinstance(node, ast.Import):
        yield from (alias.name.replace(".", "/") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = _base(node, name)
        yield from [module] if module else []
        yield from ("/".join(filter(None, (module, alias.name))) for alias in node.names)


def _base(node: ast.ImportFrom, file: str) -> str:
    """The path of the module that a `from` import names."""
    parents = [*PurePosixPath(file).parent.parts]
    base = parents[: len(parents) - node.level + 1] if node.level else []
    return "/".join([*base, *(node.module or "").split(".")]).strip("/")
