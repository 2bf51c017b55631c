"""What a change may not bring into a program, because it would hide a failure or go round it instead of taking its cause away.

New conditions, handlers, loops and early ends; new ways into the interpreter; names that come to mean another thing; and, where
a value is the failure, anything done to that value afterwards or to what is printed.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterator

from bot.rules.patches import shape
from bot.rules.patches.operation import Operation, bare, results

_COUNTED: tuple[type[ast.AST], ...] = (
    ast.Try, ast.TryStar, ast.Raise, ast.Return, ast.Break, ast.Continue, ast.BoolOp, ast.Lambda, ast.For, ast.AsyncFor,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match, ast.Delete, ast.Global, ast.Nonlocal, ast.Yield,
    ast.YieldFrom, ast.Await, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_TESTED: tuple[type[ast.AST], ...] = (ast.If, ast.IfExp, ast.While, ast.Assert)
_WORDS: dict[str, str] = {
    "Try": "an exception handler", "TryStar": "an exception handler", "Return": "an early end", "Break": "an early end",
    "Continue": "an early end", "If": "a condition", "IfExp": "a condition", "BoolOp": "a condition", "While": "a condition",
    "Match": "a condition", "Assert": "a check", "With": "a context of the standard library", "comprehension": "a condition",
}  # fmt: skip
_HIDES = frozenset(
    {"exec", "eval", "compile", "__import__", "open", "input", "exit", "quit", "breakpoint", "globals", "locals", "vars"}
    | {"setattr", "delattr", "getattr", "suppress", "raises", "warns", "skip", "skipif", "xfail", "importorskip"}
    | {"filterwarnings", "simplefilter", "catch_warnings", "showwarning", "seterr", "errstate", "set_printoptions"}
    | {"nan_to_num", "isnan", "isinf", "isfinite", "is_nan", "is_finite", "is_inf", "fillna", "dropna"}
    | {"set_warn_always", "set_verbosity", "set_verbosity_error", "disable_warnings"}
)
_HARMLESS = frozenset({"math", "copy", "random", "functools", "itertools", "collections", "typing", "decimal", "fractions"})
_PRINTERS = frozenset({"print", "write", "writelines"})


def objections(before: ast.Module, after: ast.Module, operation: Operation) -> tuple[str, ...]:
    """What is wrong with a change, as sentences for whoever proposed it; empty when it may be run."""
    return tuple(
        dict.fromkeys((*_ways_round(before, after), *_meanings(before, after), *_afterwards(before, after, operation)))
    )


def _ways_round(before: ast.Module, after: ast.Module) -> Iterator[str]:
    for kind, _ in _shapes(after) - _shapes(before):
        yield f"It adds or changes {_WORDS.get(kind, f'a `{kind}`')}: nothing may decide anew whether the operation is done."
    held = shape.imported(before)
    known = {dotted.split(".")[0] for dotted in held.values()} | _HARMLESS
    for dotted in dict.fromkeys(shape.imported(after).values()):
        if dotted.split(".")[0] not in known or dotted.endswith(".*"):
            yield f"It imports `{dotted}`, which the program does not use."
    for name in _names(after) - _names(before):
        if name in _HIDES or name.startswith("__"):
            yield f"It uses `{name}`, which can hide a failure."
        elif shape.standard(held.get(name, "builtins")) and name in held and held[name].split(".")[0] not in _HARMLESS:
            yield f"It uses `{name}` of the standard library, which the operation does not need."


def _meanings(before: ast.Module, after: ast.Module) -> Iterator[str]:
    """Names of imports, definitions and built-ins must go on standing for what they stood for."""
    old, new = shape.imported(before), shape.imported(after)
    for name, dotted in old.items():
        if new.get(name, dotted) != dotted:
            yield f"It makes `{name}` stand for another thing."
    fixed = set(old) | _defined(before) | set(dir(builtins))
    for name in _set(after) - _set(before):
        if name in fixed:
            yield f"It makes `{name}` stand for another thing."
    for text in _attributes(after, set(old)) - _attributes(before, set(old)):
        yield f"It replaces `{text}`, a part of a library or of the program's own definitions."


def _afterwards(before: ast.Module, after: ast.Module, operation: Operation) -> Iterator[str]:
    """Where a value is the failure: prints and checks stay, and nothing new works on what the operation gave."""
    if not operation.valued:
        return
    if _said(before, operation) != _said(after, operation):
        yield "It changes what the program prints or checks."
    held = results(operation, before) | results(operation, after)
    known = Counter(bare(each, operation.calls) for each in shape.statements(before))
    for each in shape.statements(after):
        text = bare(each, operation.calls)
        if known[text] > 0:
            known[text] -= 1
            continue
        used = {node.id for part in shape.expressions(each) for node in ast.walk(part) if isinstance(node, ast.Name)}
        if used & held:
            yield f"It works on what the operation gave: `{text.splitlines()[0][:100]}`."


def _said(tree: ast.Module, operation: Operation) -> list[str]:
    """What a program prints and checks, in order of its text, without what is handed to the operation."""
    rows = [
        each
        for each in shape.statements(tree)
        if isinstance(each, ast.Assert) or any(_last(call.func) in _PRINTERS for call in shape.calls(each))
    ]
    return [bare(each, operation.free) for each in sorted(rows, key=lambda each: each.lineno)]


def _shapes(tree: ast.Module) -> Counter[tuple[str, str]]:
    """All that decides what is run, each with its test."""
    imported, found = shape.imported(tree), Counter[tuple[str, str]]()
    for node in ast.walk(tree):
        kind = type(node).__name__
        if isinstance(node, _TESTED):
            found[kind, ast.unparse(getattr(node, "test"))] += 1  # noqa: B009 - each of these has one
        elif isinstance(node, _COUNTED):
            found[kind, ""] += 1
        elif isinstance(node, ast.comprehension):
            found[kind, " ".join(map(ast.unparse, node.ifs))] += 1
        elif isinstance(node, ast.withitem):
            # A context of a package, such as one that turns gradients off, is a setting like any other.
            dotted = imported.get(shape.root(node.context_expr), "builtins")
            if shape.standard(dotted):
                found["With", ast.unparse(node.context_expr)] += 1
    return found


def _names(tree: ast.Module) -> Counter[str]:
    """Every name that is read, and every attribute."""
    loads = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return Counter(loads) + Counter(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def _set(tree: ast.Module) -> Counter[str]:
    return Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _defined(tree: ast.Module) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def _attributes(tree: ast.Module, imports: set[str]) -> Counter[str]:
    """Attributes and items of modules and definitions that are set."""
    fixed = imports | _defined(tree)
    places = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Subscript))
    return Counter(ast.unparse(node) for node in places if not isinstance(node.ctx, ast.Load) and shape.root(node) in fixed)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
