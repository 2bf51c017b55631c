"""The programs of a report that live in a repository: its commands, in the tree of a commit."""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from bot.issues.reading.commands import read_command
from bot.kernel.attempt import BESIDE, Script
from bot.kernel.bug import BugReport, Issue, ShellCommand
from bot.kernel.environment import Chunk, DataMount
from bot.kernel.source.syntax import module_of

_MOST = 3
_MOST_MODULES = 200
_MOST_LISTED, _MOST_FOLDERS = 60, 20
_BINARY = 4_096
_TEXTS = {".py", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".sh", ".ipynb", ".txt", ".md"}
_PLAIN = {"Dockerfile", "Makefile", "Pipfile"}


def propose(bug: BugReport, tree: Mapping[str, bytes]) -> tuple[Script, ...]:
    """At most three programs, the likeliest first: the report's commands whose file is in the
    tree, else the file that the outermost frame of its traceback names.
    """
    scripts = [script for one in bug.commands if (script := _of_command(one, tree)) is not None]
    if not scripts:
        scripts = [script for path in _outermost(bug) if (script := _of_file(path, tree))]
    distinct = {script.digest: script for script in scripts}
    return tuple(distinct.values())[:_MOST]


def starts_in(bug: BugReport, scripts: tuple[Script, ...]) -> bool:
    """Whether the report's traceback starts in one of the programs, so that it is the failing one
    whatever else the report quotes.
    """
    return any(f"/{path}".endswith(f"/{one.entry}") for path in _outermost(bug) for one in scripts)


def of_command(text: str, tree: Mapping[str, bytes]) -> Script | None:
    """A program of the tree by a command line; None where that starts none of it."""
    command = read_command(text)
    script = _of_command(command, tree) if command is not None else None
    if command is None or script is None:
        return None
    origin = f"the repository's own program, started by a model: {' '.join(command.argv)}"
    return script.model_copy(update={"origin": origin[:200], "author": "model"})


def beside(source: str, origin: str) -> Script:
    """A program of a model's at the root of a tree."""
    return Script(
        files={BESIDE: source}, entry=BESIDE, command=(BESIDE,), origin=origin, author="model"
    )


def list_files(issue: Issue, tree: Mapping[str, bytes], data: Iterable[DataMount] = ()) -> str:
    """The files of a tree, those that the report names and those nearest to the root first; of
    the others how many a folder has; and the data that its programs can read.
    """
    text = f"{issue.title}\n{issue.body}".lower()

    def rank(path: str) -> tuple[bool, bool, int, str]:
        pure = PurePosixPath(path)
        is_code = pure.suffix in _TEXTS or pure.name in _PLAIN
        return pure.name.lower() not in text, not is_code, len(pure.parts), path

    ordered = sorted(tree, key=rank)
    rest = Counter(PurePosixPath(path).parent.as_posix() for path in ordered[_MOST_LISTED:])
    folders = [f"{folder}/ ({count} more)" for folder, count in sorted(rest.items())]
    rows = [
        f"{path} ({len(tree[path].splitlines())} lines)"
        if PurePosixPath(path).suffix in _TEXTS
        else path
        for path in sorted(ordered[:_MOST_LISTED])
    ]
    mounts = [f"{one.path} (data, not in git)" for one in data]
    return "\n".join([*rows, *folders[:_MOST_FOLDERS], *mounts])


def provides(distribution: str, tree: Mapping[str, bytes]) -> bool:
    """Whether a name is that of a module or package at the root of a tree, or below `src`."""
    name = distribution.replace("-", "_").lower()
    roots = ("", "src/")
    return any(
        path.lower() == f"{root}{name}.py" or path.lower().startswith(f"{root}{name}/")
        for root in roots
        for path in tree
    )


def read_lines(path: str, start: int, end: int, tree: Mapping[str, bytes]) -> Chunk | None:
    """Lines of any text file of a tree; None where there is none."""
    data = tree.get(path.removeprefix("./"))
    if data is None or b"\0" in data[:_BINARY]:
        return None
    lines = data.decode("utf-8", "replace").splitlines()[start - 1 : end]
    text = "\n".join(lines)
    return Chunk(path=path, start=start, end=start + len(lines) - 1, text=text, origin="clone")


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


def imports(scripts: tuple[Script, ...], tree: Mapping[str, bytes]) -> str:
    """Import statements for what the programs, and the modules of the tree that they import, need
    from elsewhere.
    """
    own = {PurePosixPath(path).parts[0].removesuffix(".py") for path in tree}
    own |= {PurePosixPath(path).stem for path in tree if path.endswith(".py")}
    waiting, paths_read, names = [script.entry for script in scripts], set[str](), dict[str, None]()
    while waiting and len(paths_read) < _MOST_MODULES:
        path = waiting.pop()
        paths_read.add(path)
        for name in _modules(tree[path].decode("utf-8", "replace")):
            top = name.partition(".")[0]
            inside = [file for file in _files_of(name, path, tree) if file not in paths_read]
            waiting += [file for file in inside if file not in waiting]
            if top not in own and top not in sys.stdlib_module_names:
                names[top] = None
    return "\n".join(f"import {name}" for name in names if name.isidentifier())


def _modules(text: str) -> Iterator[str]:
    for node in ast.walk(module_of(text)):
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
