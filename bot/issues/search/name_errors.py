"""Errors that only tell of names, which no value of a run decides: what such an error is about, and
what a statement needs to raise it.
"""

import ast
import posixpath
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from bot.issues.missing_inputs import WRITES
from bot.issues.search.parsed_arguments import VALUE as PARSED, ParsedArguments
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature
from bot.kernel.source.syntax import (
    bound_names,
    dotted,
    module_of,
    name_of,
    nodes,
    root_name,
)
from bot.kernel.trees import Tree

ANY = '__import__("unittest.mock").mock.MagicMock()'
"""A value that takes part in everything: none of them decides whether a name is there."""
_MODULE = '__import__("torch").nn.Module'
_UNDEFINED = re.compile(r"^name '(?P<name>\w{1,100})' is not defined")
_BINDING = re.compile(
    r"^(?:(?:[\w<>]{1,100}\.){0,8}(?P<function>\w{1,100})\(\) )?"
    r"(?:got an unexpected keyword argument '(?P<name>\w{1,100})'"
    r"|got multiple values for|missing \d{1,2} required(?P<missing>[^\n]{0,300})|takes )"
)
_QUOTED = re.compile(r"'(\w{1,100})'")
NO_ATTRIBUTE = re.compile(
    r"^module '(?P<module>[A-Za-z_][\w.]{0,200})' has no attribute '(?P<name>\w{1,100})'"
)
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
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
LOOPS = (ast.While, ast.For, ast.AsyncFor)
BLOCKS = (ast.If, *LOOPS, ast.With, ast.AsyncWith, ast.Try)


class ClassFile(NamedTuple):
    """The file of a class, and the module that it is for a program."""

    path: str
    module: str


@dataclass(frozen=True, slots=True)
class NameFailure:
    """An error that only tells of names: one that nothing defines, one that a module lacks, or
    the parsed command line, or an object of a class at `home`, one to which that line lets a
    function give no value, or arguments that a function does not take, or `forward` of a module
    that goes by the names of `objects`; or of a folder in which nothing can be saved, since it is
    not there.
    """

    kind: str
    name: str = ""
    function: str = ""
    missing: frozenset[str] = frozenset()
    parsed: ParsedArguments | None = None
    home: ClassFile | None = None
    objects: frozenset[str] = frozenset()

    def concerns(self, node: ast.AST, certain: set[str], unsure: set[str]) -> bool:
        """Whether a statement is one that raises it, whatever the values of its names are: what it
        calls or looks into is `certain`, and nothing `unsure`.
        """
        if self.kind in {"undefined", "unbound"}:
            names = {row.id for row in nodes(node, ast.Name)}
            return self.name in names and self.name not in unsure
        if self.kind in {"argument", "member", "forward"}:
            return any(root_name(owner) not in {"", *unsure} for owner in self._owners(node))
        if self.kind == "folder":
            return any(saves(row) for row in nodes(node, ast.Call))
        if self.kind == "attribute":
            owners = (row.value for row in nodes(node, ast.Attribute) if row.attr == self.name)
            return any(root_name(owner) in certain - unsure for owner in owners)
        calls = [row for row in nodes(node, ast.Call) if root_name(row.func) in certain - unsure]
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
            if self.objects:
                value = f"(lambda one: [one, {_MODULE}.__init__(one)][0])({value})"
        return {
            name: f"{ANY[:-1]}**{{{rest!r}: {value}}})" if rest else value
            for name, _, rest in (dotted(one).partition(".") for one in self._owners(node))
            if name
        }

    def _owners(self, node: ast.AST) -> list[ast.expr]:
        """What a statement asks for the name, where what it asks is a value of ours."""
        if self.objects:
            calls = (row.func for row in nodes(node, ast.Call))
            return [row for row in calls if name_of(row) in self.objects]
        rows = nodes(node, ast.Attribute) if self.kind in {"argument", "member"} else []
        return [row.value for row in rows if row.attr == self.name]


def read_name_failure(member: object) -> NameFailure | None:
    """What an error is about, where it is one of these."""
    if not isinstance(member, CrashSignature):
        return None
    name, message = member.exception.rpartition(".")[2], member.message.strip()
    for exception, kind, pattern in (
        ("NameError", "undefined", _UNDEFINED),
        ("TypeError", "arguments", _BINDING),
        ("AttributeError", "attribute", NO_ATTRIBUTE),
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
            missing = frozenset(_QUOTED.findall(groups.get("missing", "")))
            return NameFailure(kind, groups.get("name", ""), groups.get("function", ""), missing)
    return None


def home_of(error: NameFailure, tree: Tree, program: Script | None) -> ClassFile | None:
    """Where the only class of a name lies; None where code of the tree may give its objects what
    the error says they lack.
    """
    paths = files_defining(error.function, tree)
    if len(paths) != 1 or _FILLS_ITSELF.search(tree[paths[0]]):
        return None
    name = error.name.encode()
    texts = (text for path, text in tree.items() if path.endswith(".py") and name in text)
    if any(_gives(module_of(text.decode("utf-8", "replace")), error.name) for text in texts):
        return None
    return class_file(paths[0], tree, program)


def class_file(path: str, tree: Tree, program: Script | None) -> ClassFile | None:
    """A file of a tree with the module that it is; None where it can be none."""
    folder = folder_of(path, tree, program)
    module = PurePosixPath(path).relative_to(folder or ".").with_suffix("").parts
    is_module = all(part.isidentifier() for part in module)
    return ClassFile(path, ".".join(module)) if is_module else None


def _gives(module: ast.Module, name: str) -> bool:
    """Whether code defines a member, gives an object one, or spells out its name."""
    stores = (row for row in nodes(module, ast.Attribute) if isinstance(row.ctx, ast.Store))
    constants = (row.value for row in nodes(module, ast.Constant))
    members = (row for one in nodes(module, ast.ClassDef) for row in one.body)
    return (
        any(row.attr == name for row in stores)
        or name in constants
        or any(name in bound(row) for row in members)
    )


def may_be_there(name: str, program: Script, parsed: ParsedArguments, tree: Tree) -> bool:
    """Whether a folder is in the tree or one that the command names, or the program may make it."""
    folder = posixpath.normpath(posixpath.join(program.folder, posixpath.dirname(name)))
    is_inside = folder.startswith(".") or any(path.startswith(f"{folder}/") for path in tree)
    own_name = posixpath.normpath(posixpath.dirname(name))
    is_inside |= any(own_name in word for word in program.command[1:])
    return is_inside or any(_MAKES_FOLDERS.search(text) for text in parsed.files.values())


def saves(call: ast.Call) -> bool:
    """Whether a call saves a file, after it has made sure of its folder."""
    return name_of(call.func) == "save" and bool(WRITES.search(ast.unparse(call)))


def files_defining(name: str, tree: Tree) -> list[str]:
    """The files of a tree that define a function or a class at their top."""
    mark = re.compile(rb"^(?:class|def) " + re.escape(name).encode() + rb"\b", re.MULTILINE)
    return [path for path, text in tree.items() if path.endswith(".py") and mark.search(text)]


def folder_of(path: str, tree: Tree, program: Script | None) -> str:
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


def misses(call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str] | None:
    """The arguments without a default that a call does not give to a function; None where it may
    give more than it writes.
    """
    if _is_open(call):
        return None
    rows = function.args
    plain = [row.arg for row in (*rows.posonlyargs, *rows.args)]
    required = plain[: len(plain) - len(rows.defaults)]
    required += [
        row.arg
        for row, default in zip(rows.kwonlyargs, rows.kw_defaults, strict=True)
        if default is None
    ]
    return {*required} - {*plain[: len(call.args)]} - {word.arg for word in call.keywords}


def _is_open(call: ast.Call) -> bool:
    """Whether a call takes arguments that are not written there."""
    starred = any(isinstance(row, ast.Starred) for row in call.args)
    return starred or any(word.arg is None for word in call.keywords)


def bound(node: ast.AST) -> set[str]:
    """The names that a statement binds where it stands."""
    if isinstance(node, DEFINITIONS):
        return {node.name}
    if isinstance(node, BLOCKS):
        head = {
            row.id
            for part in ast.iter_child_nodes(node)
            for row in nodes(part, ast.Name)
            if isinstance(row.ctx, ast.Store)
        }
        inner = (row for row in ast.iter_child_nodes(node) if isinstance(row, ast.stmt))
        return head.union(*(bound(row) for row in inner))
    return {*bound_names(ast.Module([node], []))} if isinstance(node, ast.stmt) else set()
