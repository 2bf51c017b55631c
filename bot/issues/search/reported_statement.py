"""The statement at which a report's error arises, run alone: what a program does before it often
needs data, weights or hours that nobody has here, and an error about names does not depend on them.
Of the program's own work, only what it makes of its command line is real.
"""

import ast
import builtins
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import NamedTuple

from bot.issues.missing_inputs import WRITES
from bot.issues.search.parsed_arguments import (
    MODULE as ARGUMENTS,
    VALUE as PARSED,
    ParsedArguments,
    read_parsed_arguments,
)
from bot.kernel.attempt import Script
from bot.kernel.bug import AnySignature, BugReport, CrashSignature, Issue, ScriptFix, members_of
from bot.kernel.source import index as source_index
from bot.kernel.source.syntax import bound_names, dotted, module_of, name_of, nodes, source_lines
from bot.kernel.trees import Tree, tree_files

ALONE = "what comes before it cannot run here, and the reported error does not depend on that"
"""Why a statement was run alone. What passes so says nothing."""
_PROGRAM = "reprise_statement.py"
_ANY = '__import__("unittest.mock").mock.MagicMock()'
"""A value that takes part in everything: none of them decides whether a name is there."""
_UNDEFINED = re.compile(r"^name '(?P<name>\w{1,100})' is not defined")
_BINDING = re.compile(
    r"^(?:(?:[\w<>]{1,100}\.){0,8}(?P<function>\w{1,100})\(\) )?"
    r"(?:got an unexpected keyword argument '(?P<name>\w{1,100})'"
    r"|got multiple values for|missing \d{1,2} required|takes )"
)
_NO_ATTRIBUTE = re.compile(r"^module '[\w.]{1,200}' has no attribute '(?P<name>\w{1,100})'")
_NO_ARGUMENT = re.compile(r"^'Namespace' object has no attribute '(?P<name>\w{1,100})'")
_NO_FILE = re.compile(
    r"^\[Errno 2\] No such file or directory: b?'(?P<name>[\w.-][^':\n]{0,200}/[^'/\n]{1,200})'"
)
_NO_FOLDER = re.compile(r"^Parent directory (?P<name>[\w.-]\S{0,200}) does not exist")
_MAKES_FOLDERS = re.compile(r"\b(?:makedirs?|mkdir\w*|ensure_dir\w*|copytree)\b")
_NO_MEMBER = re.compile(
    r"^'(?P<function>[A-Za-z_]\w{0,100})' object has no attribute '(?P<name>\w{1,100})'"
)
_FILLS_ITSELF = re.compile(rb"__(?:get|set)attr(?:ibute)?__|\bsetattr\(|__dict__|\b__slots__\b")
_UNBOUND = re.compile(
    r"^(?:cannot access )?local variable '(?P<name>\w{1,100})'"
    r" (?:referenced before assignment|where it is not associated with a value)"
)
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
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_LOOPS = (ast.While, ast.For, ast.AsyncFor)
_BLOCKS = (ast.If, *_LOOPS, ast.With, ast.AsyncWith, ast.Try)


class _Place(NamedTuple):
    """A line of a file of the tree that the report points at, with the code that it quotes."""

    path: str
    line: int
    code: str = ""


class _File(NamedTuple):
    """A file of the tree, parsed and by its lines."""

    path: str
    module: ast.Module
    lines: Sequence[str]


class _Home(NamedTuple):
    """The file of a class, and the module that it is for a program."""

    path: str
    module: str


@dataclass(frozen=True, slots=True)
class _Error:
    """An error that only tells of names: one that nothing defines, one that a module lacks, or
    the parsed command line, or an object of a class at `home`, one to which that line lets a
    function give no value, or arguments that a function does not take; or of a folder in which
    nothing can be saved, since it is not there.
    """

    kind: str
    name: str = ""
    function: str = ""
    parsed: ParsedArguments | None = None
    home: _Home | None = None

    def concerns(self, node: ast.AST, certain: set[str], unsure: set[str]) -> bool:
        """Whether a statement is one that raises it, whatever the values of its names are: what it
        calls or looks into is `certain`, and nothing `unsure`.
        """
        if self.kind in {"undefined", "unbound"}:
            names = {row.id for row in nodes(node, ast.Name)}
            return self.name in names and self.name not in unsure
        if self.kind in {"argument", "member"}:
            return any(_root(owner) not in {"", *unsure} for owner in self._owners(node))
        if self.kind == "folder":
            return any(_saves(row) for row in nodes(node, ast.Call))
        if self.kind == "attribute":
            owners = (row.value for row in nodes(node, ast.Attribute) if row.attr == self.name)
            return any(_root(owner) in certain - unsure for owner in owners)
        calls = [row for row in nodes(node, ast.Call) if _root(row.func) in certain - unsure]
        if self.name:
            return any(word.arg == self.name for row in calls for word in row.keywords)
        return bool(calls) and not any(map(_is_open, calls))

    def values_at(self, node: ast.AST, path: str) -> dict[str, str]:
        """The values of names by which a statement of a file gets at the parsed command line, or at
        an object of the class that was not filled.
        """
        if self.parsed is not None and self.kind in {"unbound", "folder"}:
            return {self.parsed.name: PARSED}
        value = PARSED
        if self.home is not None:
            module = f'__import__("importlib").import_module("{self.home.module}")'
            target = self.function if path == self.home.path else f"{module}.{self.function}"
            value = f"(lambda one: one.__new__(one))({target})"
        return {
            name: f"{_ANY[:-1]}**{{{rest!r}: {value}}})" if rest else value
            for name, _, rest in (dotted(one).partition(".") for one in self._owners(node))
            if name
        }

    def _owners(self, node: ast.AST) -> list[ast.expr]:
        """What a statement asks for the name, where what it asks is a value of ours."""
        rows = nodes(node, ast.Attribute) if self.kind in {"argument", "member"} else []
        return [row.value for row in rows if row.attr == self.name]


def _root(node: ast.AST) -> str:
    """The first name of a dotted one, "" for any other expression."""
    return dotted(node).partition(".")[0]


def _is_open(call: ast.Call) -> bool:
    """Whether a call takes arguments that are not written there."""
    starred = any(isinstance(row, ast.Starred) for row in call.args)
    return starred or any(word.arg is None for word in call.keywords)


def run_alone(
    bug: BugReport, issue: Issue, signature: AnySignature, tree: Tree, program: Script | None
) -> Script | None:
    """The reported statement of a file of the tree, with the imports and definitions that it needs:
    in the file that the `program` starts, or beside it; a call that the report quotes where it
    points at no line. None where the error may depend on what runs before.
    """
    error = next(filter(None, map(_error, members_of(signature))), None)
    if error is None:
        return None
    if error.kind in {"argument", "unbound", "folder"}:
        parsed = read_parsed_arguments(program, tree) if program is not None else None
        if program is None or parsed is None:
            return None
        if error.kind == "argument" and parsed.is_changed(error.name):
            return None
        if error.kind == "folder" and _may_be_there(error.name, program, parsed, tree):
            return None
        error = replace(error, parsed=parsed)
    if error.kind == "member":
        home = _home(error, tree, program)
        if home is None:
            return None
        error = replace(error, home=home)
    places = _places(bug, issue, tree, program)
    searched = _searched(error, tree) if not _shows_frames(bug) else ()
    for place in islice(chain(places, searched), _MOST_TRIES):
        source = _source(place.path, tree, program)
        alone = _Alone.find(source, place, error)
        if alone is not None:
            return _script(alone, place.path, tree, program, error.parsed)
    return _quoted_call(bug, issue, error, tree)


def _home(error: _Error, tree: Tree, program: Script | None) -> _Home | None:
    """Where the only class of a name lies; None where code of the tree may give its objects what
    the error says they lack.
    """
    paths = _defining(error.function, tree)
    if len(paths) != 1 or _FILLS_ITSELF.search(tree[paths[0]]):
        return None
    name = error.name.encode()
    texts = (text for path, text in tree.items() if path.endswith(".py") and name in text)
    if any(_gives(module_of(text.decode("utf-8", "replace")), error.name) for text in texts):
        return None
    folder = _folder(paths[0], tree, program)
    module = PurePosixPath(paths[0]).relative_to(folder or ".").with_suffix("").parts
    is_module = all(part.isidentifier() for part in module)
    return _Home(paths[0], ".".join(module)) if is_module else None


def _gives(module: ast.Module, name: str) -> bool:
    """Whether code defines a member, gives an object one, or spells out its name."""
    stores = (row for row in nodes(module, ast.Attribute) if isinstance(row.ctx, ast.Store))
    constants = (row.value for row in nodes(module, ast.Constant))
    members = (row for one in nodes(module, ast.ClassDef) for row in one.body)
    return (
        any(row.attr == name for row in stores)
        or name in constants
        or any(name in _bound(row) for row in members)
    )


def _saves(call: ast.Call) -> bool:
    """Whether a call saves a file, after it has made sure of its folder."""
    return name_of(call.func) == "save" and bool(WRITES.search(ast.unparse(call)))


def _may_be_there(name: str, program: Script, parsed: ParsedArguments, tree: Tree) -> bool:
    """Whether a folder is in the tree, or the program may make it."""
    folder = posixpath.normpath(posixpath.join(program.folder, posixpath.dirname(name)))
    is_inside = folder.startswith("..") or any(path.startswith(f"{folder}/") for path in tree)
    return is_inside or any(_MAKES_FOLDERS.search(text) for text in parsed.files.values())


def points_at_names(bug: BugReport, issue: Issue, signature: AnySignature) -> bool:
    """Whether a report is about such an error and shows, links or quotes a statement."""
    errors = filter(None, map(_error, members_of(signature)))
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


def _error(member: object) -> _Error | None:
    if not isinstance(member, CrashSignature):
        return None
    name, message = member.exception.rpartition(".")[2], member.message.strip()
    for exception, kind, pattern in (
        ("NameError", "undefined", _UNDEFINED),
        ("TypeError", "arguments", _BINDING),
        ("AttributeError", "attribute", _NO_ATTRIBUTE),
        ("AttributeError", "argument", _NO_ARGUMENT),
        ("AttributeError", "member", _NO_MEMBER),
        ("UnboundLocalError", "unbound", _UNBOUND),
        ("FileNotFoundError", "folder", _NO_FILE),
        ("RuntimeError", "folder", _NO_FOLDER),
    ):
        match = pattern.match(message) if name == exception else None
        if match is not None:
            groups = match.groupdict(default="")
            if kind == "folder" and name == "RuntimeError":
                groups["name"] += "/file"
            return _Error(kind, groups.get("name", ""), groups.get("function", ""))
    return None


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
}


def _searched(error: _Error, tree: Tree) -> Iterator[_Place]:
    """The lines on which an undefined name is used, a function called by the name that the error
    gives it, or the parsed command line asked for what it lacks: in the files nearest to the root
    first, of the last in those that the program reads.
    """
    word = error.function if error.kind == "arguments" else error.name
    word = "save" if error.kind == "folder" else word
    kind = _SEARCHED.get(error.kind)
    if kind is None or not word or word.startswith("__"):
        return
    mark = re.compile(rb"\b" + re.escape(word).encode() + rb"\b")
    rows = [path for path, text in tree.items() if path.endswith(".py") and mark.search(text)]
    rows.sort(key=lambda path: (path.count("/"), path))
    if error.parsed is not None:
        rows = [path for path in error.parsed.files if path in rows]
    for path in rows[:_MOST_FILES]:
        module = module_of(tree[path].decode("utf-8", "replace"))
        parts = [row for row in nodes(module, kind) if word in {name_of(row), _called(row)}]
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
    def find(cls, source: str, place: _Place, error: _Error) -> "_Alone | None":
        """The statement at a place, where the error arises there by itself; else None."""
        module, lines = module_of(source), source_lines(source)
        for owners, statement in _statements(module, lines, place):
            functions = [node for node in owners if isinstance(node, _DEFINITIONS)]
            shape = "".join("c" if isinstance(one, ast.ClassDef) else "f" for one in functions)
            core = _core_of(statement)
            if core is None or shape not in {"", "f", "cf"}:
                continue
            file = _File(place.path, module, lines)
            writing = _Writing(file, functions, owners, statement, core, error)
            if error.concerns(core, writing.certain(), writing.unsure(error)):
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


class _Writing:
    """Writes a file with one statement of it and what that needs."""

    def __init__(
        self,
        file: _File,
        definitions: Sequence[ast.AST],
        owners: Sequence[ast.AST],
        statement: ast.stmt,
        core: ast.stmt | ast.expr,
        error: _Error,
    ) -> None:
        self.path, self.module, self.lines = file
        self.statement, self.core = statement, core
        self.function = next((one for one in definitions if isinstance(one, _FUNCTIONS)), None)
        self.owner = next((one for one in definitions if isinstance(one, ast.ClassDef)), None)
        self.owners = owners
        body = self.module.body
        outer = [node for node in body if node not in owners and node is not statement]
        is_inside = self.function is not None
        self.outer = [one for one in outer if is_inside or one.lineno < statement.lineno]
        self.real = [node for node in self.outer if _is_definition(node)]
        self.bindings, values = dict[int, str](), error.values_at(core, self.path)
        if error.kind == "unbound" and error.parsed is not None and self.function is not None:
            bindings = error.parsed.bindings(self.function, error.name, statement.lineno)
            is_in_loop = any(isinstance(one, _LOOPS) for one in owners)
            self.bindings = {} if bindings is None or is_in_loop else bindings
        imported = self.certain()
        self.name = error.name
        self.values = {name: text for name, text in values.items() if name not in imported}
        is_at_home = error.home is not None and error.home.path == self.path
        self.home = error.function if is_at_home else ""

    def certain(self) -> set[str]:
        """The names that imports and definitions of the file bind: at its top or, of imports, in
        the function.
        """
        local = [row for row in self._before() if isinstance(row, _IMPORTS)]
        names = set().union(*(_bound(node) for node in (*self.real, *local)))
        if self.function is not None and self.owner is None:
            names.add(self.function.name)
        if any(row.name == "*" for node in self.real for row in getattr(node, "names", ())):
            # What no line binds comes from there.
            names |= {row.id for row in nodes(self.core, ast.Name)} - bound_names(self.module)
        return names

    def unsure(self, error: _Error) -> set[str]:
        """The names that have a value of ours, or whose binding may have been left out."""
        if error.kind == "argument" and error.parsed is not None:
            # What another name is bound to, or that name in another file, may be other arguments.
            bound = {name for row in (*self._local(), *self.outer) for name in _bound(row)}
            return bound - ({error.parsed.name} if self.path == error.parsed.entry else set())
        if error.kind == "member":
            is_other = self.owner is not None and self.owner.name != error.function
            return {*self.certain(), *(["self"] if is_other else [])}
        if error.kind == "unbound":
            return set() if self.bindings else {error.name}
        if error.kind == "undefined":
            arguments = {row.arg for row in nodes(self.module, ast.arg)}
            return {*bound_names(self.module), *arguments}
        imports = {
            name for row in self._before() if isinstance(row, _IMPORTS) for name in _bound(row)
        }
        local = {name for row in self._local() for name in _bound(row)} - imports
        real = set().union(*map(_bound, self.real))
        dropped = set().union(*(_bound(one) for one in self.outer if one not in self.real))
        return local | self._parameters() | (dropped - real)

    def text(self) -> str:
        """The file's text: the other lines are blank."""
        text = [""] * (len(self.lines) + 1)
        needed = {*_loaded(self.core), *(self.values if self.bindings else ())}
        bases = self._bases()
        needed |= {name for base in bases for name in _loaded(base)}
        needed |= {self.home} - {"", self.owner.name if self.owner is not None else ""}
        self._write_outer(text, needed - self._parameters() - self._local_names(needed))
        depth = 0
        if self.owner is not None:
            arguments = ", ".join(ast.unparse(base) for base in bases)
            text[self.owner.lineno - 1] = f"class {self.owner.name}({arguments}):"
            depth = 1
        if self.function is not None:
            text[self.function.lineno - 1] = (
                f"{'    ' * depth}def {self.function.name}({self._heads()}):"
            )
            depth += 1
            self._write_local(text, needed, "    " * depth)
            owner = f"{self.owner.name}." if self.owner is not None else ""
            text.append(f"{owner}{self.function.name}({self._arguments()})")
        elif self.owners:
            self._write_local(text, needed, "")
        self._write_statement(text, "    " * depth)
        return "\n".join(text).rstrip() + "\n"

    def _bases(self) -> list[ast.expr]:
        """The bases of the class around a statement, where the error is about its objects."""
        is_own = self.owner is not None and self.owner.name == self.home
        return list(self.owner.bases) if self.owner is not None and is_own else []

    def _write_statement(self, text: list[str], indent: str) -> None:
        node = self.core
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        rows = list(self.lines[first:last])
        if isinstance(node, ast.expr):
            source = ast.get_source_segment("\n".join(self.lines), node) or ast.unparse(node)
            rows = (
                source.split("\n") if len(source.split("\n")) == len(rows) else [ast.unparse(node)]
            )
            rows[0] = f"({rows[0]}" if len(rows) > 1 else rows[0]
            rows[-1] = f"{rows[-1]})" if len(rows) > 1 else rows[-1]
        own = len(rows[0]) - len(rows[0].lstrip())
        for at, row in enumerate(rows):
            plain = row[own:] if not row[:own].strip() else row.lstrip()
            text[first + at] = indent + plain if row.strip() else row

    def _write_outer(self, text: list[str], needed: set[str]) -> None:
        """The file's own imports and definitions that a statement needs, through others as well."""
        selection, waiting = dict[int, ast.stmt](), list(needed)
        always = [node for node in self.outer if _is_always(node)]
        for node in always:
            selection[node.lineno] = node
            waiting += _loaded(node)
        nodes_by_name = defaultdict[str, list[ast.stmt]](list)
        for node in self.outer:
            for name in _bound(node):
                nodes_by_name[name].append(node)
        real, names_met = {id(node) for node in self.real}, set[str]()
        while waiting:
            name = waiting.pop()
            if name in names_met:
                continue
            names_met.add(name)
            for node in nodes_by_name[name]:
                if node.lineno not in selection:
                    selection[node.lineno] = node
                    waiting += _loaded(node) if id(node) in real else []
        for node in selection.values():
            first = min([node.lineno, *(row.lineno for row in getattr(node, "decorator_list", ()))])
            if node in self.real or node in always:
                text[first - 1 : node.end_lineno] = self.lines[first - 1 : node.end_lineno]
            else:
                names = sorted(_bound(node) & names_met)
                text[node.lineno - 1] = self._bindings(names)

    def _write_local(self, text: list[str], needed: set[str], indent: str) -> None:
        for node in self._before():
            is_needed = isinstance(node, _IMPORTS) and _bound(node) & needed
            if is_needed or isinstance(node, ast.Global):
                rows = self.lines[node.lineno - 1 : node.end_lineno]
                text[node.lineno - 1 : node.end_lineno] = [indent + row.strip() for row in rows]
        for node in self._local():
            names = sorted(_bound(node) & needed - ({self.name} if self.bindings else set()))
            if condition := self.bindings.get(node.lineno):
                text[node.lineno - 1] = f"{indent}if {condition}: {self.name} = {_ANY}"
            elif names and not isinstance(node, _IMPORTS) and not text[node.lineno - 1]:
                text[node.lineno - 1] = indent + self._bindings(names)
                needed = needed - {*names}

    def _bindings(self, names: Sequence[str]) -> str:
        """What gives names their values, on one line."""
        rest = [name for name in names if name not in self.values]
        rows = [f"{name} = {self.values[name]}" for name in names if name in self.values]
        return "; ".join([*rows, *([" = ".join([*rest, _ANY])] if rest else [])])

    def _before(self) -> list[ast.stmt]:
        """The statements around and before the reported one, in its function or, outside of one,
        in the block that it lies in.
        """
        scope = self.function or next(iter(self.owners), None)
        rows = nodes(scope, ast.stmt) if scope is not None else []
        return [row for row in rows if row.lineno < self.statement.lineno and row is not scope]

    def _local(self) -> list[ast.stmt]:
        """Those, with the block itself where it stands in no function."""
        block = (
            []
            if self.function is not None
            else [one for one in self.owners if isinstance(one, ast.stmt)]
        )
        return [*block, *self._before()]

    def _local_names(self, needed: set[str]) -> set[str]:
        return {name for node in self._local() for name in _bound(node)} & needed

    def _parameters(self) -> set[str]:
        return {row.arg for row in nodes(self.function.args, ast.arg)} if self.function else set()

    def _heads(self) -> str:
        """The parameters of the function, without defaults and annotations."""
        assert self.function is not None
        rows = self.function.args
        parts = [row.arg for row in (*rows.posonlyargs, *rows.args)]
        parts += [f"*{rows.vararg.arg}"] if rows.vararg else ["*"] * bool(rows.kwonlyargs)
        parts += [row.arg for row in rows.kwonlyargs]
        return ", ".join([*parts, *([f"**{rows.kwarg.arg}"] if rows.kwarg else [])])

    def _arguments(self) -> str:
        assert self.function is not None
        rows = self.function.args
        plain = [self.values.get(row.arg, _ANY) for row in (*rows.posonlyargs, *rows.args)]
        keywords = (f"{row.arg}={self.values.get(row.arg, _ANY)}" for row in rows.kwonlyargs)
        return ", ".join([*plain, *keywords])


def _is_definition(node: ast.stmt) -> bool:
    """Whether a statement only imports, defines or names a constant."""
    if isinstance(node, (ast.If, ast.Try)):
        parts = chain(node.body, node.orelse, *(row.body for row in getattr(node, "handlers", ())))
        return "__main__" not in ast.unparse(node)[:80] and all(map(_is_definition, parts))
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not nodes(node, ast.Call)
    return isinstance(node, (*_IMPORTS, *_DEFINITIONS, ast.Pass))


def _is_always(node: ast.stmt) -> bool:
    """Whether a statement may decide what others import: star imports and what changes the path."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or any(row.name == "*" for row in node.names)
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func).startswith("sys.path.")


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement binds where it stands."""
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    if isinstance(node, _BLOCKS):
        head = {
            row.id
            for part in ast.iter_child_nodes(node)
            for row in nodes(part, ast.Name)
            if isinstance(row.ctx, ast.Store)
        }
        inner = (row for row in ast.iter_child_nodes(node) if isinstance(row, ast.stmt))
        return head.union(*(_bound(row) for row in inner))
    return {*bound_names(ast.Module([node], []))} if isinstance(node, ast.stmt) else set()


def _loaded(node: ast.AST) -> list[str]:
    return [row.id for row in nodes(node, ast.Name) if isinstance(row.ctx, ast.Load)]


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
    folder = _folder(path, tree, program)
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


def _folder(path: str, tree: Tree, program: Script | None) -> str:
    """The folder below which a file is imported: that of the program, else the one in which the
    outermost package of the file lies.
    """
    own = PurePosixPath(program.entry).parent.as_posix() if program is not None else ""
    if program is not None and (own == "." or path.startswith(f"{own}/")):
        return own.removeprefix(".")
    folder = PurePosixPath(path).parent
    while folder != PurePosixPath() and (folder / "__init__.py").as_posix() in tree:
        folder = folder.parent
    return folder.as_posix().removeprefix(".")


def _quoted_call(bug: BugReport, issue: Issue, error: _Error, tree: Tree) -> Script | None:
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
            paths = _defining(name, tree)
            if len(paths) == 1 and error.concerns(body[0], {name}, set()):
                return _script_of_call(span.strip(), name, body[0], paths[0], tree)
    return None


def _defining(name: str, tree: Tree) -> list[str]:
    """The files of a tree that define a function or a class at their top."""
    mark = re.compile(rb"^(?:class|def) " + re.escape(name).encode() + rb"\b", re.MULTILINE)
    return [path for path, text in tree.items() if path.endswith(".py") and mark.search(text)]


def _script_of_call(span: str, name: str, node: ast.stmt, path: str, tree: Tree) -> Script | None:
    folder = _folder(path, tree, None)
    module = PurePosixPath(path).relative_to(folder or ".").with_suffix("").parts
    if not all(part.isidentifier() for part in module):
        return None
    lacking = sorted({*_loaded(node)} - {name} - {*dir(builtins)})
    lines = [
        f"from {'.'.join(module)} import {name}",
        *(f"{row} = {_ANY}" for row in lacking),
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
