"""The programs of a report that live in a repository: its commands, in the tree of a commit."""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from bot.kernel.attempt import Script
from bot.kernel.bug import BugReport, ShellCommand
from bot.kernel.source.syntax import module_of

_MOST = 3
_MOST_MODULES = 200


def propose(bug: BugReport, tree: Mapping[str, bytes]) -> tuple[Script, ...]:
    """At most three programs, the likeliest first: the report's commands whose file is in the
    tree, else the file that the outermost frame of its traceback names.
    """
    scripts = [script for one in bug.commands if (script := _of_command(one, tree)) is not None]
    if not scripts:
        scripts = [script for path in _outermost(bug) if (script := _of_file(path, tree))]
    distinct = {script.digest: script for script in scripts}
    return tuple(distinct.values())[:_MOST]


def _of_command(command: ShellCommand, tree: Mapping[str, bytes]) -> Script | None:
    argv = command.argv
    folder = command.folder if _has_folder(command.folder, tree) else ""
    entry = _entry(argv, folder, tree)
    if not entry:
        return None
    if argv[0] != "-m" and (PurePosixPath(folder) / argv[0]).as_posix() != entry:
        # The report's words name it from another folder: it is started from the root.
        folder, argv = "", (entry, *argv[1:])
    text = f"the report's command `python {' '.join(argv)}`"
    return Script(
        files={entry: tree[entry].decode("utf-8", "replace")},
        entry=entry,
        command=argv,
        folder=folder,
        variables=_harmless(command.variables),
        origin=text[:200],
    )


def _harmless(variables: Mapping[str, str]) -> dict[str, str]:
    """What a command may set: nothing that changes how Python or the sandbox starts a program."""
    refused = ("PYTHON", "LD_", "REPRISE", "PATH", "HOME", "TMP", "GIT_", "CUDA_VISIBLE_DEVICES")
    return {
        name: value
        for name, value in variables.items()
        if not name.startswith(refused) and "$" not in value
    }


def _has_folder(folder: str, tree: Mapping[str, bytes]) -> bool:
    return bool(folder) and any(path.startswith(f"{folder}/") for path in tree)


def _entry(argv: tuple[str, ...], folder: str, tree: Mapping[str, bytes]) -> str:
    """The file of the tree that a command starts, "" for none of it."""
    if argv[0] == "-m" and argv[1] == "pytest":
        names = [word.partition("::")[0] for word in argv[2:] if not word.startswith("-")]
        return next(filter(None, (_file(name, folder, tree) for name in names)), "")
    if argv[0] == "-m":
        module = argv[1].replace(".", "/")
        names = [f"{root}{module}{end}" for root in ("", "src/") for end in (".py", "/__main__.py")]
        return next(filter(None, (_file(name, folder, tree) for name in names)), "")
    return _file(argv[0], folder, tree)


def _file(name: str, folder: str, tree: Mapping[str, bytes]) -> str:
    """A file by its path below the folder or the root, else the only one that ends so."""
    if ".." in PurePosixPath(name).parts:
        name = PurePosixPath(name).name
    plain = PurePosixPath(name.lstrip("/")).as_posix()
    for path in ((PurePosixPath(folder) / plain).as_posix(), plain):
        if path in tree and path.endswith(".py"):
            return path
    ends = [path for path in tree if path.endswith(f"/{plain}") and path.endswith(".py")]
    return ends[0] if len(ends) == 1 else ""


def _outermost(bug: BugReport) -> Iterator[str]:
    for row in bug.tracebacks:
        own = (frame.path for frame in row.frames if not frame.package and frame.path)
        yield from list(own)[:1]


def _of_file(path: str, tree: Mapping[str, bytes]) -> Script | None:
    """The file that a path of another machine ends in, the longest way first."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    ends = ("/".join(parts[at:]) for at in range(len(parts)))
    entry = next((end for end in ends if end in tree and end.endswith(".py")), "")
    if not entry:
        return None
    text = tree[entry].decode("utf-8", "replace")
    origin = f"`{entry}`, which the report's traceback starts in"
    return Script(files={entry: text}, entry=entry, command=(entry,), origin=origin)


def imports(
    scripts: tuple[Script, ...], tree: Mapping[str, bytes], *, optional: bool = True
) -> str:
    """Import statements for what the programs, and the modules of the tree that they import, need
    from elsewhere. What is imported only in a function, a condition or an attempt is `optional`.
    """
    own = {PurePosixPath(path).parts[0].removesuffix(".py") for path in tree}
    own |= {PurePosixPath(path).stem for path in tree if path.endswith(".py")}
    waiting, paths_read, names = [script.entry for script in scripts], set[str](), dict[str, None]()
    while waiting and len(paths_read) < _MOST_MODULES:
        path = waiting.pop()
        paths_read.add(path)
        module = module_of(tree[path].decode("utf-8", "replace"))
        needed = set(_modules(ast.walk(module) if optional else module.body))
        for name in _modules(ast.walk(module)):
            top = name.partition(".")[0]
            inside = [file for file in _files_of(name, path, tree) if file not in paths_read]
            waiting += [file for file in inside if file not in waiting]
            if name in needed and top not in own and top not in sys.stdlib_module_names:
                names[top] = None
    return "\n".join(f"import {name}" for name in names if name.isidentifier())


def _modules(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files_of(module: str, importer: str, tree: Mapping[str, bytes]) -> Iterator[str]:
    place = module.replace(".", "/")
    for root in (PurePosixPath(importer).parent.as_posix(), "", "src"):
        for end in (".py", "/__init__.py"):
            path = (PurePosixPath(root) / f"{place}{end}").as_posix()
            if path in tree:
                yield path
