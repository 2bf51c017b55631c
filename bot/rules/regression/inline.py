"""A program as the body of a test function, where that changes nothing about what it does."""

import ast
import builtins
from collections.abc import Iterator

from bot.rules.parsing import parse
from bot.rules.reduce.statements import inside_strings

# What depends on being a module: its names, its file, and what finds classes by their module.
_NAMES = frozenset(
    {"__name__", "__file__", "__doc__", "globals", "locals", "vars", "exec", "eval", "exit", "quit"}
)
_BY_MODULE = frozenset(
    {
        *("pickle", "dill", "cloudpickle", "multiprocessing", "concurrent", "joblib", "spawn"),
        *("save", "dump", "dumps", "deepcopy", "script", "trace", "export", "num_workers"),
        *("getsource", "inspect", "register_keras_serializable", "torchscript", "beartype"),
    }
)
_BUILTINS = frozenset(dir(builtins))
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def body(source: str, indent: str) -> str | None:
    """The program, indented; None where it would not be the same inside a function."""
    try:
        tree = parse(source)
    except SyntaxError:
        return None
    if not tree.body or _needs_a_module(tree):
        return None
    held = inside_strings(tree.body)
    lines = source.replace("\r\n", "\n").rstrip("\n").split("\n")
    text = "\n".join(
        line if number in held or not line.strip() else indent + line
        for number, line in enumerate(lines, 1)
    )
    return text if _same(tree, text, indent) else None


def rebinds(source: str, names: frozenset[str], modules: frozenset[str]) -> bool:
    """Whether a program gives one of the names another value, or makes one of the modules
    anything but that module.
    """
    tree = parse(source)
    imports = (node for node in tree.body if isinstance(node, ast.Import))
    plain = [name.name for node in imports for name in node.names if name.asname is None]
    bound = list(_bound(tree))
    odd = {name for name in modules if bound.count(name) > plain.count(name)}
    return not names.isdisjoint(bound) or bool(odd)


def _same(tree: ast.Module, text: str, indent: str) -> bool:
    """Whether the indented text is still the same program."""
    # One level of indentation a line; more of them are nested the same way.
    head = "".join(f"{' ' * 4 * level}if 1:\n" for level in range(len(indent) // 4))
    try:
        found = parse(f"{head}{text}\n")
    except SyntaxError:
        return False
    statements: list[ast.stmt] = found.body
    for _ in range(len(indent) // 4):
        first = statements[0]
        assert isinstance(first, ast.If)
        statements = first.body
    return ast.dump(ast.Module(statements, [])) == ast.dump(tree)


def _needs_a_module(tree: ast.Module) -> bool:
    nodes = list(ast.walk(tree))
    defines = any(isinstance(node, _DEFINES) for node in nodes)
    assigned = set(_bound(tree))
    return (
        any(_impossible(node) for node in nodes)
        or not _NAMES.isdisjoint(_words(nodes))
        or bool(assigned & _BUILTINS)
        or (defines and not _BY_MODULE.isdisjoint(_words(nodes)))
        or any(assigned & set(_own(node)) for node in nodes if isinstance(node, ast.ClassDef))
    )


def _impossible(node: ast.AST) -> bool:
    """What a function may not hold, or would understand otherwise."""
    star = isinstance(node, ast.ImportFrom) and any(name.name == "*" for name in node.names)
    future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return star or future or isinstance(node, ast.Global)


def _words(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                yield word
            case ast.alias(name=word):
                yield from word.split(".")
            case ast.ImportFrom(module=str(word)):
                yield from word.split(".")


def _bound(tree: ast.Module) -> Iterator[str]:
    """The names that the program's top level gives a value; defining them is one way."""
    for statement in tree.body:
        if isinstance(statement, _DEFINES):
            yield statement.name
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                yield node.id
            elif isinstance(node, ast.alias):
                yield node.asname or node.name.partition(".")[0]


def _own(node: ast.ClassDef) -> Iterator[str]:
    """The names that a class body assigns: of the same name outside it would see none."""
    for statement in node.body:
        if not isinstance(statement, _DEFINES):
            found = (each for each in ast.walk(statement) if isinstance(each, ast.Name))
            yield from (each.id for each in found if isinstance(each.ctx, ast.Store))
