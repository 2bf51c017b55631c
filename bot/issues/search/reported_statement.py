"""The statement at which a report's error arises, run alone: what a program does before it often
needs data, weights or hours that nobody has here, and an error about names does not depend on them.
Of the program's own work, only what it makes of its command line is real.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import NamedTuple

from bot.environment import imports
from bot.issues.search import module_calls
from bot.issues.search.name_errors import (
    ANY,
    DEFINITIONS,
    NO_ATTRIBUTE,
    NameFailure,
    files_defining,
    folder_of,
    home_of,
    may_be_there,
    read_name_failure,
)
from bot.issues.search.parsed_arguments import (
    MODULE as ARGUMENTS,
    ParsedArguments,
    read_parsed_arguments,
)
from bot.issues.search.statement_file import SourceFile, StatementFile
from bot.kernel.attempt import Script
from bot.kernel.bug import AnySignature, BugReport, CrashSignature, Issue, ScriptFix, members_of
from bot.kernel.source import index as source_index
from bot.kernel.source.syntax import loaded_names, module_of, name_of, nodes, source_lines
from bot.kernel.trees import Tree, tree_files

ALONE = "what comes before it cannot run here, and the reported error does not depend on that"
"""Why a statement was run alone. What passes so says nothing."""
LOOKED_UP = "whether a module has a name does not depend on the program"
_PROGRAM = "reprise_statement.py"
_AT_LINE = re.compile(
    r"\bline[\s`*]{0,3}(?P<line>\d{1,5})[\s`*]{0,3}(?:of|in)[\s`*]{0,3}(?:the )?(?:file )?"
    r"[`*]{0,3}(?P<path>[\w./\\-]{1,200}\.py)\b"
    r"|(?P<file>[\w./\\-]{1,200}\.py)[`*]{0,3}[\s,:(]{1,3}(?:at |on |in )?"
    r"line[\s`*]{0,3}(?P<at>\d{1,5})\b",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(?<!`)`([^`\n]{4,300})`(?!`)")
_MOST_PLACES, _MOST_TEXT, _MOST_SPANS, _MOST_FILES = 20, 60_000, 40, 20
_MOST_TRIES, _MOST_STATEMENTS = 100, 20


class _Place(NamedTuple):
    """A line of a file of the tree that the report points at, with the code that it quotes."""

    path: str
    line: int
    code: str = ""


def run_alone(
    bug: BugReport, issue: Issue, signature: AnySignature, tree: Tree, program: Script | None
) -> Script | None:
    """The reported statement of a file of the tree, with the imports and definitions that it needs:
    in the file that the `program` starts, or beside it; a call that the report quotes where it
    points at no line. None where the error may depend on what runs before.
    """
    error = next(filter(None, map(read_name_failure, members_of(signature))), None)
    error = _at_home(error, tree, program) if error is not None else None
    if error is None:
        return None
    places = _places(bug, issue, tree, program)
    searched = _searched(error, tree) if not _shows_frames(bug) else ()
    for place in islice(chain(places, searched), _MOST_TRIES):
        source = _source(place.path, tree, program)
        alone = _Alone.find(source, place, error)
        if alone is not None:
            return _script(alone, place.path, tree, program, error.parsed)
    return _quoted_call(bug, issue, error, tree)


def _at_home(error: NameFailure, tree: Tree, program: Script | None) -> NameFailure | None:
    """The error with what the tree has of it: the parsed command line, or the class; None where
    what runs before may decide it.
    """
    if error.kind in {"argument", "unbound", "folder"}:
        parsed = read_parsed_arguments(program, tree) if program is not None else None
        if program is None or parsed is None:
            return None
        if error.kind == "argument" and parsed.is_changed(error.name):
            return None
        if error.kind == "folder" and may_be_there(error.name, program, parsed, tree):
            return None
        return replace(error, parsed=parsed)
    if error.kind == "member":
        home = home_of(error, tree, program)
        return replace(error, home=home) if home is not None else None
    if error.kind == "arguments" and error.function == module_calls.FORWARD:
        return module_calls.of_module(error, tree, program) or error
    return error


def run_snippet_alone(bug: BugReport, signature: AnySignature, program: Script) -> Script | None:
    """The reported statement of a report's own program, with the imports and definitions that it
    needs and with stand-ins for every other value: the line that the traceback quotes, also where
    the program has it otherwise, else a line that the error may mean. None where the error may
    depend on what runs before.
    """
    error = next(filter(None, map(read_name_failure, members_of(signature))), None)
    if error is None or error.kind not in _NAMES or program.command:
        return None
    frames = [frame for row in bug.tracebacks for frame in row.frames if not frame.package]
    quoted = [frame.code.strip() for frame in frames if module_of(frame.code.strip()).body]
    source = program.source
    texts = [source, *(f"{source.rstrip()}\n{code}\n" for code in quoted if code not in source)]
    for text in [*reversed(texts)][:_MOST_TRIES]:
        places = [_Place(program.entry, 0, code) for code in quoted if code in text]
        places += [_Place(program.entry, line) for line in _lines_meant(error, text)]
        for place in places[:_MOST_TRIES]:
            alone = _Alone.find(text, place, error)
            if alone is not None:
                lacking = imports.undefined(alone.text)
                head = "".join(f"{name} = {ANY}\n" for name in lacking)
                short_text = re.sub(r"\n{3,}", "\n\n", head + alone.text)
                files = {**program.files, program.entry: short_text}
                what = f"ran line {alone.line} alone, with the imports that it needs"
                fixes = (*program.fixes, ScriptFix(what=what, why=ALONE))
                return program.model_copy(update={"files": files, "fixes": fixes})
    return None


def look_up(signature: AnySignature) -> Script | None:
    """The mere look-up of what a module is said to lack; None for any other error."""
    members = members_of(signature)
    messages = [row.message for row in members if isinstance(row, CrashSignature)]
    match = next(filter(None, map(NO_ATTRIBUTE.match, messages)), None)
    if match is None or len(members) > 1:
        return None
    module, name = match["module"], match["name"]
    source = f"import {module}\n\nprint({module}.{name})\n"
    what = f"looked up `{module}.{name}`, without the program"
    fix = ScriptFix(what=what[:200], why=LOOKED_UP)
    return Script(files={"repro.py": source}, origin=f"the name `{module}.{name}`", fixes=(fix,))


def _lines_meant(error: NameFailure, text: str) -> list[int]:
    """The lines of a program that an error may be about: for arguments, calls of the function that
    it names, or of a class.
    """
    module, name = module_of(text), error.function
    if error.kind != "arguments":
        return sorted({row.lineno for row in nodes(module, ast.stmt)})
    calls = [(row.lineno, _called(row)) for row in nodes(module, ast.Call)]
    is_class = not name or name.startswith("__")
    return sorted({at for at, own in calls if (own[:1].isupper() if is_class else own == name)})


def points_at_names(bug: BugReport, issue: Issue, signature: AnySignature) -> bool:
    """Whether a report is about such an error and shows, links or quotes a statement."""
    errors = filter(None, map(read_name_failure, members_of(signature)))
    if not any(error.kind in _NAMES for error in errors):
        return False
    text = f"{issue.title}\n{issue.body}"[:_MOST_TEXT]
    links = (row for row in source_index.links(text) if row.start)
    points = any(links) or _AT_LINE.search(text) or _SPAN.search(text)
    return bool(points or _shows_frames(bug) or bug.named_programs)


def takes_every_name(script: Script, module: str) -> bool:
    """Whether a statement that is run alone takes all names of a module, by a star import."""
    if all(fix.why != ALONE for fix in script.fixes):
        return False
    pattern = re.compile(rf"^\s*from {re.escape(module)}(?:\.\w+)* import \*", re.MULTILINE)
    return any(pattern.search(script.files[path]) for path in script.edited)


def _places(bug: BugReport, issue: Issue, tree: Tree, program: Script | None) -> Iterator[_Place]:
    """The lines of the tree that the report shows, the innermost first."""
    frames = (frame for row in bug.tracebacks for frame in reversed(row.frames))
    for frame in [one for one in frames if not one.package and one.path][:_MOST_PLACES]:
        near = f"{program.folder}/{frame.path}".lstrip("/") if program is not None else ""
        paths = [near] if near in tree else tree_files(frame, tree)
        if paths and (frame.code.strip() or frame.line):
            yield _Place(max(paths, key=len), frame.line or 0, frame.code)
    text = f"{issue.title}\n{issue.body}"[:_MOST_TEXT]
    words = (
        (row["path"] or row["file"], row["line"] or row["at"]) for row in _AT_LINE.finditer(text)
    )
    linked = ((row.path, str(row.start)) for row in source_index.links(text) if row.start)
    for name, line in [*linked, *words][:_MOST_PLACES]:
        path = source_index.installed_file(name, list(tree))
        if path is not None and path.endswith(".py"):
            yield _Place(path, int(line))


def _shows_frames(bug: BugReport) -> bool:
    return any(not frame.package for row in bug.tracebacks for frame in row.frames)


_NAMES = frozenset(("undefined", "arguments", "attribute"))
"""The errors that a statement shows without any program."""
_SEARCHED: dict[str, type[ast.expr]] = {
    "undefined": ast.Name,
    "arguments": ast.Call,
    "argument": ast.Attribute,
    "folder": ast.Call,
    "forward": ast.Call,
}


def _searched(error: NameFailure, tree: Tree) -> Iterator[_Place]:
    """The lines on which an undefined name is used, a function called by the name that the error
    gives it, or the parsed command line asked for what it lacks: in the files nearest to the root
    first, of the last in those that the program reads.
    """
    word = error.function if error.kind in {"arguments", "forward"} else error.name
    word = "save" if error.kind == "folder" else word
    kind = _SEARCHED.get(error.kind)
    if kind is None or not word or word.startswith("__"):
        return
    words = error.objects or {word}
    mark = re.compile(rb"\b(?:" + "|".join(map(re.escape, words)).encode() + rb")\b")
    rows = [path for path, text in tree.items() if path.endswith(".py") and mark.search(text)]
    rows.sort(key=lambda path: (path.count("/"), path))
    if error.parsed is not None:
        rows = [path for path in error.parsed.files if path in rows]
    for path in rows[:_MOST_FILES]:
        module = module_of(tree[path].decode("utf-8", "replace"))
        parts = [row for row in nodes(module, kind) if words & {name_of(row), _called(row)}]
        if error.kind == "folder":
            parts.sort(key=lambda row: -_likeness(row, error.name))
        yield from (_Place(path, row.lineno) for row in parts)


def _likeness(node: ast.AST, name: str) -> int:
    """How much of a file's name an expression spells out."""
    texts = (str(row.value) for row in nodes(node, ast.Constant))
    return sum(len(text) for text in texts if text in name)


def _called(node: ast.AST) -> str:
    return name_of(node.func) if isinstance(node, ast.Call) else ""


def _source(path: str, tree: Tree, program: Script | None) -> str:
    own = program.files.get(path) if program is not None else None
    return own if own is not None else tree[path].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Alone:
    """A statement of a file, the definitions around it, and the file's text without all else: each
    line that stays is where it was.
    """

    line: int
    text: str

    @classmethod
    def find(cls, source: str, place: _Place, error: NameFailure) -> "_Alone | None":
        """The statement at a place, where the error arises there by itself; else None."""
        module, lines = module_of(source), source_lines(source)
        for owners, statement in _statements(module, lines, place):
            functions = [node for node in owners if isinstance(node, DEFINITIONS)]
            shape = "".join("c" if isinstance(one, ast.ClassDef) else "f" for one in functions)
            core = _core_of(statement)
            if core is None or shape not in {"", "f", "cf"}:
                continue
            file = SourceFile(place.path, module, lines)
            writing = StatementFile(file, functions, owners, statement, core, error)
            if error.concerns(core, writing.certain(), writing.unsure(error)) and not (
                writing.gives(error.missing)
            ):
                return cls(statement.lineno, writing.text())
        return None


def _statements(
    module: ast.Module, lines: Sequence[str], place: _Place
) -> list[tuple[list[ast.AST], ast.stmt]]:
    """The statements with the quoted code or, for want of any, on the line, the nearest first, each
    with what it lies in.
    """
    code, rows = " ".join(place.code.split()), list[tuple[list[ast.AST], ast.stmt]]()
    waiting: list[tuple[list[ast.AST], ast.AST]] = [([], module)]
    while waiting:
        owners, node = waiting.pop()
        if isinstance(node, ast.stmt):
            last = _header_end(node)
            texts = (" ".join(line.split()) for line in lines[node.lineno - 1 : last])
            if code in texts if code else node.lineno <= place.line <= last:
                rows.append((owners, node))
        inner = [*owners, node] if isinstance(node, ast.stmt) else owners
        parts = (one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr))
        waiting += [(inner, one) for one in parts]
    return sorted(rows, key=lambda row: abs(row[1].lineno - place.line))[:_MOST_STATEMENTS]


def _header_end(node: ast.stmt) -> int:
    """The last line of a statement, of one with a body the line before that."""
    body = getattr(node, "body", None)
    end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
    return max(node.lineno, end or node.lineno)


def _core_of(statement: ast.stmt) -> ast.stmt | ast.expr | None:
    """What is run of a statement: of a block the expression of its head."""
    match statement:
        case ast.If() | ast.While():
            return statement.test
        case ast.For() | ast.AsyncFor():
            return statement.iter
        case ast.With() | ast.AsyncWith():
            return statement.items[0].context_expr
        case ast.Try() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return None
    waits = (ast.Await, ast.Yield, ast.YieldFrom)
    return None if any(nodes(statement, kind) for kind in waits) else statement


def _script(
    alone: _Alone, path: str, tree: Tree, program: Script | None, parsed: ParsedArguments | None
) -> Script | None:
    script = _beside(alone, path, tree, program)
    if script is None or parsed is None or program is None:
        return script
    folder = PurePosixPath(script.entry).parent.as_posix()
    folder = script.folder if script.command[:1] == ("-m",) else folder.removeprefix(".")
    place = f"{folder}/{ARGUMENTS}.py".lstrip("/")
    start = 2 if program.command[:1] == ("-m",) else 1
    is_own = script.command == program.command
    return script.model_copy(
        update={
            "files": {**script.files, place: parsed.text},
            "edited": (*script.edited, place),
            "command": script.command if is_own else (_PROGRAM, *program.command[start:]),
        }
    )


def _beside(alone: _Alone, path: str, tree: Tree, program: Script | None) -> Script | None:
    what = (
        f"ran line {alone.line} of `{path}` alone, with the imports and definitions that it needs"
    )
    fix = ScriptFix(what=what[:200], why=ALONE)
    if program is not None and program.entry == path:
        return program.model_copy(
            update={
                "files": {**program.files, path: alone.text},
                "edited": (*program.edited, path),
                "fixes": (*program.fixes, fix),
            }
        )
    folder = folder_of(path, tree, program)
    module = PurePosixPath(path).relative_to(folder or ".").with_suffix("").parts
    if not all(part.isidentifier() for part in module):
        return None
    entry = f"{folder}/{_PROGRAM}".lstrip("/")
    base = program or Script(files={}, entry=entry)
    return base.model_copy(
        update={
            "files": {**base.files, entry: f"import {'.'.join(module)}\n", path: alone.text},
            "entry": entry,
            "command": (_PROGRAM,),
            "steps": (),
            "folder": folder,
            "edited": (*base.edited, entry, path),
            "origin": f"line {alone.line} of `{path}`"[:200],
            "fixes": (*base.fixes, fix),
        }
    )


def _quoted_call(bug: BugReport, issue: Issue, error: NameFailure, tree: Tree) -> Script | None:
    """The first call that the report quotes in its sentences of a function or class that only one
    file of the tree defines, where the error is about its arguments.
    """
    if error.kind != "arguments" or bug.programs:
        return None
    for span in _SPAN.findall(f"{issue.title}\n{issue.body}"[:_MOST_TEXT])[:_MOST_SPANS]:
        body = module_of(span.strip()).body
        if len(body) != 1 or not isinstance(body[0], ast.Expr | ast.Assign):
            continue
        calls = [row for row in nodes(body[0], ast.Call) if isinstance(row.func, ast.Name)]
        names = {name_of(row.func) for row in calls}
        for name in sorted(names):
            paths = files_defining(name, tree)
            if len(paths) == 1 and error.concerns(body[0], {name}, set()):
                return _script_of_call(span.strip(), name, body[0], paths[0], tree)
    return None


def _script_of_call(span: str, name: str, node: ast.stmt, path: str, tree: Tree) -> Script | None:
    folder = folder_of(path, tree, None)
    module = PurePosixPath(path).relative_to(folder or ".").with_suffix("").parts
    if not all(part.isidentifier() for part in module):
        return None
    lacking = sorted({*loaded_names(node)} - {name} - {*dir(builtins)})
    lines = [
        f"from {'.'.join(module)} import {name}",
        *(f"{row} = {ANY}" for row in lacking),
        span,
    ]
    entry = f"{folder}/{_PROGRAM}".lstrip("/")
    fix = ScriptFix(what=f"ran `{span}` alone"[:200], why=ALONE)
    return Script(
        files={entry: "\n".join(lines) + "\n"},
        entry=entry,
        command=(_PROGRAM,),
        folder=folder,
        edited=(entry,),
        origin=f"the call that the report quotes: `{span}`"[:200],
        fixes=(fix,),
    )
