"""The programs of a report that live in a repository: its commands, in the tree of a commit."""

import ast
import json
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import PurePosixPath

from bot.kernel.attempt import BESIDE, Script
from bot.kernel.bug import BugReport, Frame, Issue, Quote, ScriptFix, ShellCommand, Traceback
from bot.kernel.commands import (
    NOTEBOOK,
    PYTEST,
    STATEMENT,
    UNITTEST,
    goes_home,
    in_script,
    is_test_file,
    read_command,
)
from bot.kernel.environment import Chunk, DataMount
from bot.kernel.source.syntax import module_of
from bot.kernel.trees import Tree
from bot.kernel.usage_errors import (
    EXCEPTION,
    refused_arguments,
    refused_options,
    refusing_program,
)

GUESSED = "the bug report names it but gives no command for it"
"""Why a program was started in a way of ours: that it does not fail so says nothing."""
BY_PYTEST = "it runs the same tests and lets their exceptions be seen"
_MOST = 3
_MOST_GUESSES = 2
_MOST_NAMED = 8
_MOST_QUOTED = 40
_MOST_MODULES = 200
_MOST_LISTED, _MOST_FOLDERS = 48, 12
_BINARY = 4_096
_TEXTS = {".py", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".sh", ".ipynb", ".txt", ".md"}
_STARTED = (".py", ".sh", ".ipynb")
_CELLS = "reprise_notebook.py"
_IMPORT = "reprise_import.py"
_MOST_IMPORTERS = 60
_SHORTEST_QUOTATION = 12
_MAIN_BLOCK = re.compile(rb"^if __name__ == ['\"]__main__['\"]", re.MULTILINE)
_STARTER = re.compile(r"(?:train|main|run|demo)", re.IGNORECASE)
_MOST_STARTERS = 12
_RANKS = {"--local-rank", "--local_rank"}
_WITH_RANK = {"torch.distributed.launch", "deepspeed"}
"""The launchers that pass the number of the process as an option."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PLAIN = {"Dockerfile", "Makefile", "Pipfile"}


def commands(bug: BugReport) -> tuple[ShellCommand, ...]:
    """The commands of a report, then one for each file in which a traceback of it starts, at last
    the programs that it names in words.
    """
    starts = (
        ShellCommand(argv=(path,), source="frame", quote=Quote(text=path, line=row.line))
        for row, _, path in _outermost(bug)
        if path.endswith(".py") and path.isprintable()
    )
    notebooks = (
        ShellCommand(argv=(*NOTEBOOK, name), quote=Quote(text=name)) for name in bug.notebooks
    )
    own = [_as_launched(command, bug) for command in map(_as_tested, bug.commands)]
    others = (*starts, *notebooks, *_refusing(bug), *bug.named_programs)
    # The environment is there: installing is a program of the report only where there is no other.
    programs = [command for command in own if not _installs(command)]
    return (*(programs if programs or others else own), *others)


def _refusing(bug: BugReport) -> Iterator[ShellCommand]:
    """The programs whose usage errors the report quotes, with the arguments that they refuse."""
    for row in bug.tracebacks:
        if row.exception == EXCEPTION and (path := refusing_program(row.message)):
            argv = (path, *refused_arguments(row.message))
            quote = Quote(text=row.message, line=row.line)
            yield ShellCommand(argv=argv, source="named", quote=quote)


def _as_tested(command: ShellCommand) -> ShellCommand:
    """`setup.py test`, which today's setuptools no longer has, as the tests that it ran."""
    is_test = _setup_step(command) in {"test", "pytest"}
    return command.model_copy(update={"argv": PYTEST}) if is_test else command


def _installs(command: ShellCommand) -> bool:
    return _setup_step(command) in {"install", "develop", "build"}


def _setup_step(command: ShellCommand) -> str:
    """What `setup.py` is asked to do, "" where a command starts another program."""
    is_of_setup = PurePosixPath(command.argv[0]).name == "setup.py"
    return next(iter(command.argv[1:2]), "") if is_of_setup else ""


def _as_launched(command: ShellCommand, bug: BugReport) -> ShellCommand:
    """A command with the option that its launcher passes, where the report says that the program
    refuses it.
    """
    messages = (row.message for row in bug.tracebacks)
    refused = {option for message in messages for option in refused_options(message)}
    option = next(iter(sorted(refused & _RANKS)), "")
    words = re.findall(r"[\w.]+", command.quote.text)
    is_passed = any(word.partition("=")[0] == option for word in command.argv)
    if not option or is_passed or _WITH_RANK.isdisjoint(words):
        return command
    argv = (command.argv[0], f"{option}=0", *command.argv[1:])
    return command.model_copy(update={"argv": argv})


def propose(
    commands: Sequence[ShellCommand], tree: Tree, tracebacks: Sequence[Traceback] = ()
) -> tuple[Script, ...]:
    """At most five programs of the tree, the likeliest first: those of the report's own commands
    or, where none is in it, of the files in which its tracebacks start; then those that it names
    in words. Of several files of one name it is that which has the lines of the tracebacks.
    """
    rows = [
        (command.source, script)
        for command in (_in_quoted_folder(one, tree, tracebacks) for one in commands)
        for one in _expanded(command, tree)
        if (script := _of_command(_as_starter(one, tree), tree)) is not None
    ]
    own = [script for source, script in rows if not source or _is_named_test(source, script)]
    started = [script for source, script in rows if source == "frame"]
    # A shell script that the report names starts the file of its traceback with arguments.
    fuller = [
        script
        for source, script in rows
        if source == "named"
        and len(script.command) > 1
        and any(one.entry == script.entry and one.command[1:] == () for one in started)
    ]
    own = own or [*fuller, *started]
    distinct = {script.digest: script for script in own}
    scripts = tuple(distinct.values())[:_MOST]
    entries = {script.entry for script in scripts}
    others = [
        *(script for script in started if script.entry not in entries),
        *(
            script
            for source, script in rows
            if source == "named" and not _is_named_test(source, script)
        ),
    ]
    guesses = {script.digest: script for script in others if script.entry not in entries}
    return (*scripts, *list(guesses.values())[:_MOST_GUESSES])


def _in_quoted_folder(
    command: ShellCommand, tree: Tree, tracebacks: Sequence[Traceback]
) -> ShellCommand:
    """A command with the folder of its file, where several have one of its name and one alone has
    most of the lines that the tracebacks quote of it.
    """
    name = PurePosixPath(command.argv[0].replace("\\", "/")).as_posix()
    places = [path for path in tree if path.endswith(f"/{name}")]
    if not name.endswith(".py") or posixpath.join(command.folder, name) in tree or len(places) < 2:
        return command
    frames = [frame for row in tracebacks for frame in row.frames if frame.path.endswith(name)]
    counts = {path: _lines_held(frames[-_MOST_QUOTED:], tree[path]) for path in places}
    best = max(counts.values())
    fitting = [path for path, count in counts.items() if count == best > 0]
    if len(fitting) != 1:
        return command
    return command.model_copy(update={"folder": fitting[0].removesuffix(f"/{name}")})


def _lines_held(frames: Sequence[Frame], data: bytes) -> int:
    """How many frames quote the line that a file has at their place."""
    lines = data.decode("utf-8", "replace").splitlines()
    rows = ((frame.code.strip(), (frame.line or 0) - 1) for frame in frames)
    return sum(
        bool(code) and 0 <= at < len(lines) and lines[at].strip() == code for code, at in rows
    )


def _is_named_test(source: str, script: Script) -> bool:
    """Whether a program is the very tests that a report names, and no guess."""
    return source == "named" and script.command[:2] == PYTEST and not script.fixes


def starts_in(bug: BugReport, scripts: tuple[Script, ...], snippet: Script, tree: Tree) -> bool:
    """Whether the report's traceback starts in one of the programs, so that it is the failing one
    whatever else the report quotes. A function of a file that the snippet imports starts nothing:
    that traceback was cut.
    """
    texts = {path: text.encode("utf-8", "replace") for path, text in snippet.files.items()}
    imported = set(reachable([snippet.entry], {**tree, **texts})) - {snippet.entry}
    return any(
        f"/{path}".endswith(f"/{one.entry}")
        for _, frame, path in _outermost(bug)
        for one in scripts
        if frame.function in {"", "<module>"} or one.entry not in imported
    )


def is_quotation(script: Script, tree: Tree) -> bool:
    """Whether every line of a snippet, its imports and comments aside, stands in one file of the
    tree.
    """
    rows = {" ".join(row.split()) for row in script.source.splitlines()}
    rows = {row for row in rows if row and not row.startswith(("#", "import ", "from "))}
    if sum(map(len, rows)) < _SHORTEST_QUOTATION:
        return False
    texts = (text.decode("utf-8", "replace") for path, text in tree.items() if path.endswith(".py"))
    return any(
        rows <= {" ".join(row.split()) for row in text.splitlines()}
        for text in texts
        if all(row.split()[0] in text for row in rows)
    )


def of_command(text: str, tree: Tree) -> Script | None:
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
        files={BESIDE: source},
        entry=BESIDE,
        command=(BESIDE,),
        edited=(BESIDE,),
        origin=origin,
        author="model",
    )


def list_files(issue: Issue, tree: Tree, data: Iterable[DataMount] = ()) -> str:
    """The files of a tree by their folders, those that the report names and those nearest to the
    root first, texts with the number of their lines; of the others how many a folder has; and the
    data that its programs can read.
    """
    text = f"{issue.title}\n{issue.body}".lower()

    def rank(path: PurePosixPath) -> tuple[bool, bool, int, str]:
        is_code = path.suffix in _TEXTS or path.name in _PLAIN
        return path.name.lower() not in text, not is_code, len(path.parts), str(path)

    def row(path: PurePosixPath) -> str:
        lines = len(tree[str(path)].splitlines())
        return f"{path.name} ({lines})" if path.suffix in _TEXTS else path.name

    ordered = sorted(map(PurePosixPath, tree), key=rank)
    listed_paths = ordered[:_MOST_LISTED]
    rest = Counter(path.parent for path in ordered[_MOST_LISTED:])
    rows_by_folder = {
        folder: [row(path) for path in sorted(listed_paths) if path.parent == folder]
        for folder in sorted({path.parent for path in listed_paths} | set([*rest][:_MOST_FOLDERS]))
    }
    folders = [
        f"{folder}/: {', '.join([*rows, *([f'{rest[folder]} more'] if rest[folder] else [])])}"
        for folder, rows in rows_by_folder.items()
    ]
    return "\n".join([*folders, *(f"{one.path} (data, not in git)" for one in data)])


def provides(distribution: str, tree: Tree) -> bool:
    """Whether a name is that of a module or package at the root of a tree, or below `src`."""
    name = distribution.replace("-", "_").lower()
    roots = ("", "src/")
    return any(
        path.lower() == f"{root}{name}.py" or path.lower().startswith(f"{root}{name}/")
        for root in roots
        for path in tree
    )


def read_lines(path: str, start: int, end: int, tree: Tree) -> Chunk | None:
    """Lines of any text file of a tree; None where there is none."""
    data = tree.get(path.removeprefix("./"))
    if data is None or b"\0" in data[:_BINARY]:
        return None
    lines = data.decode("utf-8", "replace").splitlines()[start - 1 : end]
    text = "\n".join(lines)
    return Chunk(path=path, start=start, end=start + len(lines) - 1, text=text, origin="clone")


def _expanded(command: ShellCommand, tree: Tree) -> tuple[ShellCommand, ...]:
    """A command, or those of the shell script of the tree that it starts."""
    if not command.argv[0].endswith(".sh"):
        return (command,)
    folder = command.folder if _has_folder(command.folder, tree) else ""
    path = _file(command.argv[0], folder, tree, is_vague=bool(command.source))
    text = tree[path].decode("utf-8", "replace") if path else ""
    folder = folder or _folder_of(command, path)  # started where it lies
    if goes_home(text):
        folder = PurePosixPath(path).parent.as_posix().removeprefix(".")
    rows = in_script(text, command.argv[1:], folder)
    return tuple(row.model_copy(update={"source": command.source}) for row in rows)


def _of_notebook(path: str, tree: Tree) -> Script | None:
    """The code cells of a notebook as a program beside it, without what only IPython reads."""
    try:
        cells = json.loads(tree[path])["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    texts = ["".join(source) if isinstance(source, list) else str(source) for source in sources]
    lines = [line for text in texts for line in (*text.splitlines(), "")]
    plain = [f"# {line}" if line.lstrip().startswith(("%", "!")) else line for line in lines]
    folder = PurePosixPath(path).parent.as_posix().removeprefix(".")
    entry = f"{folder}/{_CELLS}".lstrip("/")
    fix = ScriptFix(what=f"the code cells of `{path}` as a program", why="a notebook is not run")
    return Script(
        files={entry: "\n".join(plain)},
        entry=entry,
        command=(_CELLS,),
        edited=(entry,),
        folder=folder,
        origin=f"the notebook `{path}`",
        fixes=(fix,),
    )


def _of_command(command: ShellCommand, tree: Tree) -> Script | None:
    argv = command.argv
    folder = command.folder if _has_folder(command.folder, tree) else ""
    is_vague = bool(command.source)
    if argv[:-1] == NOTEBOOK or argv[0].endswith(".ipynb"):
        path = _file(argv[-1], folder, tree, is_vague=True)
        return _of_notebook(path, tree) if path else None
    if argv[0] == STATEMENT:
        return _of_statement(command, tree)
    if argv[:2] == UNITTEST:
        return _of_unittest(command, tree)
    if command.source == "named" and argv[:2] == PYTEST:
        return _of_tests(command, tree)
    entry = _entry(argv, folder, tree, is_vague=is_vague)
    if not entry:
        return None
    if argv[0] != "-m" and posixpath.normpath(f"{folder or '.'}/{argv[0]}") != entry:
        folder = _folder_of(command, entry)
        argv = argv if folder else (entry, *argv[1:])
    source = tree[entry].decode("utf-8", "replace")
    if is_vague and argv == (entry,):
        argv = _as_tests(entry, source) or _as_module(entry, source, tree) or argv
    return Script(
        files={entry: source},
        entry=entry,
        command=argv,
        folder=folder,
        variables=_harmless(command.variables),
        origin=_origin(command, entry, argv)[:200],
        fixes=_guess(command, argv),
    )


def _as_starter(command: ShellCommand, tree: Tree) -> ShellCommand:
    """A guessed command with the program that uses its file, where that only defines things: one
    in its folder or above it, the likeliest name first.
    """
    path = _file(command.argv[0], "", tree, is_vague=True) if command.source else ""
    if not path.endswith(".py") or is_test_file(path) or _is_started(tree[path]):
        return command
    folders = {parent.as_posix() for parent in PurePosixPath(path).parents}
    near = (one for one in tree if one.endswith(".py") and _MAIN_BLOCK.search(tree[one]))
    starters = [one for one in near if PurePosixPath(one).parent.as_posix() in folders]
    starters.sort(
        key=lambda one: (-one.count("/"), not _STARTER.match(PurePosixPath(one).name), one)
    )
    uses = (one for one in starters[:_MOST_STARTERS] if path in reachable([one], tree))
    starter = next(uses, "")
    return command.model_copy(update={"argv": (starter,)}) if starter else command


def _is_started(data: bytes) -> bool:
    """Whether a file does anything but define things when it is started."""
    inert = (ast.Import, ast.ImportFrom, ast.ClassDef, *_FUNCTIONS, ast.Assign, ast.AnnAssign)
    body = module_of(data.decode("utf-8", "replace")).body
    texts = (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)
    rows = zip(body, texts, strict=True)
    return not body or any(not (isinstance(node, inert) or is_text) for node, is_text in rows)


def _folder_of(command: ShellCommand, entry: str) -> str:
    """The folder below the root in which a command finds a file by the path that it gives; "" for a
    path of the report's words, or of another machine.
    """
    name = PurePosixPath(command.argv[0].replace("\\", "/")).as_posix()
    is_relative = command.source != "named" and name[:1] != "/" and name[1:2] != ":"
    is_below = is_relative and entry.endswith(f"/{name}")
    return entry.removesuffix(f"/{name}") if is_below else ""


def _of_statement(command: ShellCommand, tree: Tree) -> Script | None:
    """The file of the tree that has an import statement, the one that the report names first; else
    the statement alone, beside that one.
    """
    _, statement, *names = command.argv
    named_files = [path for name in names if (path := _file(name, "", tree, is_vague=True))]
    importers = _importers(statement, tree)
    for path in [*(path for path in named_files if path in importers), *importers]:
        start = command.model_copy(update={"argv": (path,)})
        return _of_command(start, tree)
    folder = _folder_of_import(statement, named_files, tree)
    if folder is None:
        return None
    entry = f"{folder}/{_IMPORT}".lstrip("/")
    return Script(
        files={entry: f"{statement}\n"},
        entry=entry,
        command=(_IMPORT,),
        edited=(entry,),
        folder=folder,
        origin=f"the import that the report names: `{statement}`"[:200],
        fixes=(ScriptFix(what=f"ran `{statement}` alone"[:200], why=GUESSED),),
    )


def _folder_of_import(statement: str, named_files: Sequence[str], tree: Tree) -> str | None:
    """The folder in which a statement of no file is run: beside the file that the report names,
    else where the only module of that name lies; None where neither is known.
    """
    (node,) = module_of(statement).body
    if isinstance(node, ast.ImportFrom) and node.level:
        return None
    if named_files:
        return PurePosixPath(named_files[0]).parent.as_posix().removeprefix(".")
    module = (min(_imported(node))[0]).replace(".", "/")
    ends = (f"/{module}.py", f"/{module}/__init__.py")
    paths = [f"/{path}" for path in tree]
    roots = {path.removesuffix(end) for path in paths for end in ends if path.endswith(end)}
    return roots.pop().lstrip("/") if len(roots) == 1 else None


def _importers(statement: str, tree: Tree) -> list[str]:
    """The files that have an import statement, those nearest to the root first."""
    (node,) = module_of(statement).body
    imports_of_statement = _imported(node)
    module = (
        node.module if isinstance(node, ast.ImportFrom) else next(iter(imports_of_statement))[0]
    )
    last = (module or "").rpartition(".")[2].encode()
    texts = ((path, data) for path, data in tree.items() if path.endswith(".py") and last in data)
    likely = sorted(texts, key=lambda row: (row[0].count("/"), row[0]))[:_MOST_IMPORTERS]
    return [
        path
        for path, data in likely
        for nodes in [ast.walk(module_of(data.decode("utf-8", "replace")))]
        if any(imports_of_statement <= _imported(other) for other in nodes)
    ]


def _imported(node: ast.AST) -> set[tuple[str, str]]:
    """What an import statement asks for: modules, each with a name in it."""
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return {(module, row.name) for row in node.names}
    return {(row.name, "") for row in node.names} if isinstance(node, ast.Import) else set()


def _origin(command: ShellCommand, entry: str, argv: tuple[str, ...]) -> str:
    if command.source == "frame":
        return f"`{entry}`, which the report's traceback starts in"
    if command.source == "named":
        return f"`{entry}`, which the report names"
    return f"the report's command `python {' '.join(argv)}`"


def _guess(command: ShellCommand, argv: tuple[str, ...]) -> tuple[ScriptFix, ...]:
    """What is ours of a program that the report does not start itself."""
    if not command.source:
        return ()
    return (ScriptFix(what=f"started as `python {' '.join(argv)}`"[:200], why=GUESSED),)


def _as_tests(entry: str, source: str) -> tuple[str, ...]:
    """How a file of tests is started; () for any other."""
    nodes = ast.walk(module_of(source)) if is_test_file(entry) else ()
    has_tests = any(isinstance(node, _FUNCTIONS) and node.name.startswith("test") for node in nodes)
    return (*PYTEST, entry) if has_tests else ()


def _of_unittest(command: ShellCommand, tree: Tree) -> Script | None:
    """The tests that `python -m unittest` names, by pytest, which runs them as well and lets the
    exception that a test raises be seen.
    """
    names = [word for word in command.argv[2:] if not word.startswith("-") and word != "discover"]
    prefix = f"{command.folder}/" if _has_folder(command.folder, tree) else ""
    ids = [row for name in names[:_MOST_NAMED] if (row := _test_id(name, prefix, tree))]
    script = (
        _of_command(command.model_copy(update={"argv": (*PYTEST, *ids)}), tree) if ids else None
    )
    if script is None:
        return None
    fix = ScriptFix(what=f"`python {' '.join(command.argv)}` is run by pytest"[:200], why=BY_PYTEST)
    return script.model_copy(update={"fixes": (*script.fixes, fix)})


def _test_id(name: str, prefix: str, tree: Tree) -> str:
    """What pytest calls a test that unittest knows by `package.module.Class.test`; "" without such
    a module. A class that the report leaves out is looked up.
    """
    parts = name.removesuffix(".py").replace("/", ".").split(".")
    for at in range(len(parts), 0, -1):
        path = "/".join(parts[:at]) + ".py"
        if f"{prefix}{path}" in tree:
            rest = parts[at:]
            if len(rest) == 1:
                test_ids = _test_ids(f"{prefix}{path}", rest, tree)
                return next(test_ids, "::".join((path, *rest))).removeprefix(prefix)
            return "::".join((path, *rest))
    return ""


def _of_tests(command: ShellCommand, tree: Tree) -> Script | None:
    """The tests of the tree that have the names of a report, in the file that it names or, where
    that has none of them, in any; a name may be that of a whole file.
    """
    words = (word.partition("::")[0] for word in command.argv[2:] if "::" in word)
    named_files = [path for word in words if (path := _file(word, "", tree, is_vague=True))]
    every = sorted((path for path in tree if is_test_file(path)), key=lambda path: path.count("/"))
    names = command.tests
    files = [path for path in every if PurePosixPath(path).stem in names]
    tests_of = partial(_test_ids, names=names, tree=tree)
    for ids in (
        list(chain.from_iterable(map(tests_of, dict.fromkeys(named_files)))),
        list(chain.from_iterable(map(tests_of, every[:_MOST_MODULES]))) or files,
    ):
        if ids:
            entry = ids[0].partition("::")[0]
            return Script(
                files={entry: tree[entry].decode("utf-8", "replace")},
                entry=entry,
                command=(*PYTEST, *ids[:_MOST_IMPORTERS]),
                origin=f"the tests that the report names: {', '.join(ids)}"[:200],
            )
    return None


def _test_ids(path: str, names: Sequence[str], tree: Tree) -> Iterator[str]:
    """The ids by which pytest knows the tests of a file that have one of the names."""
    if not any(name.encode() in tree[path] for name in names):
        return
    for node in module_of(tree[path].decode("utf-8", "replace")).body:
        if isinstance(node, _FUNCTIONS) and node.name in names:
            yield f"{path}::{node.name}"
        if isinstance(node, ast.ClassDef):
            methods = (row for row in node.body if isinstance(row, _FUNCTIONS))
            yield from (f"{path}::{node.name}::{row.name}" for row in methods if row.name in names)


def _as_module(entry: str, source: str, tree: Tree) -> tuple[str, ...]:
    """How a file of a package is started that imports what lies beside it by dots; () for any
    other.
    """
    body = module_of(source).body
    is_relative = any(isinstance(node, ast.ImportFrom) and node.level for node in body)
    path = PurePosixPath(entry)
    if not is_relative or (path.parent / "__init__.py").as_posix() not in tree:
        return ()
    parts = path.with_suffix("").parts
    return ("-m", ".".join(parts)) if all(part.isidentifier() for part in parts) else ()


def _harmless(variables: Mapping[str, str]) -> dict[str, str]:
    """What a command may set: nothing that changes how Python or the sandbox starts a program."""
    refused = ("PYTHON", "LD_", "REPRISE", "PATH", "HOME", "TMP", "GIT_", "CUDA_VISIBLE_DEVICES")
    return {
        name: value
        for name, value in variables.items()
        if not name.startswith(refused) and "$" not in value
    }


def _has_folder(folder: str, tree: Tree) -> bool:
    return bool(folder) and any(path.startswith(f"{folder}/") for path in tree)


def _entry(argv: tuple[str, ...], folder: str, tree: Tree, *, is_vague: bool) -> str:
    """The file of the tree that a command starts, "" for none of it."""
    if argv[0] == "-m" and argv[1] == "pytest":
        names = [word.partition("::")[0] for word in argv[2:] if not word.startswith("-")]
        return next(filter(None, (_file(name, folder, tree) for name in names)), "")
    if argv[0] == "-m":
        module = argv[1].replace(".", "/")
        names = [f"{root}{module}{end}" for root in ("", "src/") for end in (".py", "/__main__.py")]
        return next(filter(None, (_file(name, folder, tree) for name in names)), "")
    return _file(argv[0], folder, tree, is_vague=is_vague)


def _file(name: str, folder: str, tree: Tree, *, is_vague: bool = False) -> str:
    """A file by its path below the folder or the root, the longest end of a path of another
    machine, else the only file that ends so. A path that is `is_vague` may begin with folders that
    the tree has not, such as its own name.
    """
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if ".." in parts:
        path = posixpath.normpath(f"{folder or '.'}/{'/'.join(parts)}")
        if path in tree and path.endswith(_STARTED):
            return path
        parts = parts[-1:]
    plain = PurePosixPath(*parts).as_posix().lstrip("/")
    is_elsewhere = is_vague or name[:1] in {"/", "~"} or name[1:2] == ":"
    ends_of_path = ["/".join(parts[at:]) for at in range(1, len(parts) * is_elsewhere)]
    for path in ((PurePosixPath(folder) / plain).as_posix(), plain, *ends_of_path):
        if path in tree and path.endswith(_STARTED):
            return path
    for end in (plain, *(ends_of_path if is_vague else ())):
        ends = [path for path in tree if path.endswith(f"/{end}") and path.endswith(_STARTED)]
        if len(ends) == 1:
            return ends[0]
    return ""


def _outermost(bug: BugReport) -> Iterator[tuple[Traceback, Frame, str]]:
    for row in bug.tracebacks:
        own = [frame for frame in row.frames if not frame.package and frame.path]
        yield from ((row, frame, frame.path.replace("\\", "/")) for frame in own[:1])


def imports(scripts: tuple[Script, ...], tree: Tree, *, optional: bool = True) -> str:
    """Import statements for what the programs, and the modules of the tree that they import, need
    from elsewhere. What is imported only in a function, a condition or an attempt is `optional`.
    """
    own = {PurePosixPath(path).parts[0].removesuffix(".py") for path in tree}
    own |= {PurePosixPath(path).stem for path in tree if path.endswith(".py")}
    for folder in {PurePosixPath(one.entry).parent for one in scripts} - {PurePosixPath()}:
        beside = (path for path in map(PurePosixPath, tree) if path.is_relative_to(folder))
        own |= {path.relative_to(folder).parts[0] for path in beside if path.suffix == ".py"}
    own_texts = {path: text for one in scripts for path, text in one.files.items()}
    files = {**tree, **{path: text.encode("utf-8", "replace") for path, text in own_texts.items()}}
    texts = (files[path] for path in reachable(list(own_texts), files))
    modules = (module_of(text.decode("utf-8", "replace")) for text in texts)
    names = (
        name
        for module in modules
        for name in _modules(ast.walk(module) if optional else module.body)
    )
    tops = dict.fromkeys(name.partition(".")[0] for name in names)
    needed = (top for top in tops if top not in own and top not in sys.stdlib_module_names)
    return "\n".join(f"import {name}" for name in needed if name.isidentifier())


def reachable(entries: Sequence[str], tree: Tree) -> tuple[str, ...]:
    """The files of the tree that programs import, directly or through others, the programs' own
    first.
    """
    waiting, paths = list(entries), dict[str, None]()
    while waiting and len(paths) < _MOST_MODULES:
        path = waiting.pop(0)
        paths[path] = None
        module = module_of(tree[path].decode("utf-8", "replace"))
        for name in _modules(ast.walk(module)):
            files = (file for file in _files_of(name, path, tree) if file not in paths)
            waiting += [file for file in files if file not in waiting]
    return tuple(paths)


def _modules(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The modules that statements import; one that begins with dots is beside the program."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ([module] if node.module else [])
            end = "." if node.module else ""
            yield from (f"{module}{end}{alias.name}" for alias in node.names)


def _files_of(module: str, importer: str, tree: Tree) -> Iterator[str]:
    folder, name = PurePosixPath(importer).parent, module.lstrip(".")
    level = len(module) - len(name)
    above = [folder, *folder.parents][level - 1 : level]
    roots = above if level else [folder, PurePosixPath(), PurePosixPath("src")]
    for root in dict.fromkeys(roots):
        for end in (".py", "/__init__.py"):
            path = (root / f"{name.replace('.', '/')}{end}").as_posix()
            if path in tree:
                yield path
