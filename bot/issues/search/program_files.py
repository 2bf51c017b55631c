"""What a reader of a repository's program looks at first: how its file ends, the small files that
it reads, and the test that the report names.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.bug import BugReport, Issue
from bot.kernel.environment import Chunk, Context
from bot.kernel.source.outline import beyond, cut, size
from bot.kernel.source.syntax import module_of, nodes
from bot.kernel.trees import Tree
from prompts import shared

_MOST_LINES = 30
"""Of all pieces together."""
_MOST_END, _MOST_TEST = 14, 24
_SMALL = {".json", ".yaml", ".yml", ".toml", ".ini", ".cfg"}
_SETTINGS = re.compile(r"(?:.*_)?(?:cfg|config|configs|settings|options|opts|args|hparams)")
_TEST = re.compile(r"\btest_\w{1,80}")
_ENTRY_TEST = ("-m", "pytest")


def program_pieces(issue: Issue, bug: BugReport, tree: Tree) -> tuple[Chunk, ...]:
    """Pieces of the program that the report starts, in at most 30 lines."""
    pieces: list[Chunk] = []
    for script in tree_programs.propose(tree_programs.commands(bug), tree, bug.tracebacks)[:1]:
        for piece in (
            *_named_tests(script, issue, tree),
            *_end(script, tree),
            *_settings(script, tree),
        ):
            if size([*pieces, piece]) <= _MOST_LINES:
                pieces.append(piece)
    return tuple(pieces)


def with_program(context_list: Sequence[Context], pieces: Sequence[Chunk]) -> tuple[Context, ...]:
    """The contexts and behind them what of the pieces they do not show."""
    new_pieces = beyond(pieces, [piece for context in context_list for piece in context.chunks])
    if not new_pieces:
        return tuple(context_list)
    title = f"{new_pieces[0].path}: {new_pieces[0].why[0]}"
    own = Context(rank=len(context_list) + 1, title=title, module="", chunks=new_pieces)
    return (*context_list, own)


def _named_tests(script: Script, issue: Issue, tree: Tree) -> Iterator[Chunk]:
    """The functions of a test file that the report names."""
    text = f"{issue.title}\n{issue.body}\n{' '.join(script.command)}"
    names = set(_TEST.findall(text)) - {PurePosixPath(script.entry).stem}
    for node in nodes(module_of(script.source), ast.FunctionDef):
        if node.name in names:
            why = shared("why_file", name=f"`{node.name}`")
            yield from _piece(script.entry, node, why, _MOST_TEST, tree)


def _end(script: Script, tree: Tree) -> Iterator[Chunk]:
    """What a file does once it is started."""
    last = next(reversed(module_of(script.source).body), None)
    if last is None or script.command[:2] == _ENTRY_TEST:
        return
    if isinstance(last, ast.If | ast.Expr | ast.For | ast.With):
        why = shared("why_file", name=PurePosixPath(script.entry).name)
        yield from _piece(script.entry, last, why, _MOST_END, tree)


def _piece(path: str, node: ast.stmt, why: str, most: int, tree: Tree) -> Iterator[Chunk]:
    chunk = tree_programs.read_lines(path, node.lineno, node.end_lineno or node.lineno, tree)
    if chunk is not None:
        yield from cut(chunk.model_copy(update={"why": (why,)}), most)


def _settings(script: Script, tree: Tree) -> Iterator[Chunk]:
    """The files of settings that a program names or imports, the shortest first."""
    module = module_of(script.source)
    words = [*script.command, *(str(one.value) for one in nodes(module, ast.Constant))]
    imported = [alias.name for one in nodes(module, ast.Import) for alias in one.names]
    imported += [one.module for one in nodes(module, ast.ImportFrom) if one.module]
    modules = {
        f"{name.replace('.', '/')}.py"
        for name in imported
        if _SETTINGS.fullmatch(name.rpartition(".")[2])
    }
    names = {
        word.removeprefix("./") for word in words if PurePosixPath(word[:200]).suffix in _SMALL
    }
    folder = PurePosixPath(script.entry).parent
    paths = {str(folder / name) for name in (*names, *modules)} | names | modules
    own_paths = sorted(paths & tree.keys(), key=lambda path: (len(tree[path]), path))
    for path in own_paths:
        chunk = tree_programs.read_lines(path, 1, _MOST_LINES, tree)
        why = shared("why_named", name=PurePosixPath(path).name, where=script.entry)
        if chunk is not None:
            yield chunk.model_copy(update={"why": (why,)})
