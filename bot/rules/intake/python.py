"""Whether a text is a Python program, and how sure its statements make us."""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache
from typing import Literal

Evidence = Literal["none", "weak", "strong"]

LONGEST = 120_000
_REPR = re.compile(
    r"^(?:tensor|array|Array|DeviceArray|Parameter|TensorShape|KerasTensor|ShapeDtypeStruct|Size|dtype|device|OrderedDict"
    r"|defaultdict)$"
)
_MARKS = re.compile(
    r"^\s*(?:>>> |import [a-zA-Z_]|from [\w.]+ import |def \w+\(|class \w+[(:]|@\w|async def |with .+:|for .+ in .+:"
    r"|[\w.\[\], ]+ ?[-+*/@|&]?= ?\S|"
    r"[\w.]+\(.*|assert |try:|if .+:)",
    re.M,
)


def tree_of(text: str) -> ast.Module | None:
    """The syntax tree of a text, or None when it is not Python."""
    tree = attempt(text)
    return tree if isinstance(tree, ast.Module) else None


@lru_cache(maxsize=64)
def attempt(text: str) -> ast.Module | SyntaxError | None:
    """The tree, or the complaint of the parser; None for what no parser should be asked to read."""
    if len(text) > LONGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except SyntaxError as error:
            return error.with_traceback(None)
        except (ValueError, MemoryError, RecursionError):
            return None


def looks_like(text: str) -> bool:
    """A cheap look: is there a line that could be Python?"""
    return bool(_MARKS.search(text))


def evidence(tree: ast.Module) -> Evidence:
    """How much the statements of a tree speak for a program rather than for words or output that happen to parse."""
    best: Evidence = "none"
    for statement in tree.body:
        found = _statement(statement)
        if found == "strong":
            return "strong"
        if found == "weak":
            best = "weak"
    return best


def _statement(node: ast.stmt) -> Evidence:
    if isinstance(node, ast.Expr):
        return _expression(node.value)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        if node.value is None:
            return "none"
        telling = (ast.Call, ast.Attribute, ast.Subscript, ast.Lambda, ast.BinOp, ast.ListComp)
        return "strong" if isinstance(node.value, telling) else "weak"
    return "weak" if isinstance(node, ast.Pass | ast.Delete | ast.Return | ast.Global) else "strong"


def _expression(node: ast.expr) -> Evidence:
    if isinstance(node, ast.Await):
        return "strong"
    if not isinstance(node, ast.Call):
        return "none"
    if is_repr(node):
        return "none"
    plain = isinstance(node.func, ast.Name)
    named = isinstance(node.func, ast.Name) and node.func.id in {
        "print",
        "model",
        "main",
        "run",
        "test",
        "f",
        "exec",
        "len",
        "type",
    }
    return "strong" if named or not plain else "weak"


def is_repr(node: ast.expr) -> bool:
    """Whether a call is what printing an object shows: `tensor([1.])`, `Size([2, 3])`, `Data(x=[4, 2])`."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if not (_REPR.match(name) or (isinstance(node.func, ast.Name) and name[:1].isupper())):
        return False
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    return all(_literal(argument) for argument in arguments)


def _literal(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in {"nan", "inf", "NaN", "Infinity"}
    allowed = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.Name)
    children = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    return isinstance(node, allowed) and (not isinstance(node, ast.Name)) and all(isinstance(c, allowed) for c in children[:50])


def bound_names(tree: ast.Module) -> frozenset[str]:
    """Every name that a program binds anywhere."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
    return frozenset(names)
