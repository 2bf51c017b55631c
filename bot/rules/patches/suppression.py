"""What a change may not bring into a program, because it would hide a failure or go round it instead of taking its cause away.

New conditions, handlers, loops and early ends; new ways into the interpreter; other random numbers; names that come to mean
another thing; other loops round the operation; and, where a value is the failure, anything done to that value afterwards or to
what is printed.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator

from bot.rules.patches import loops, meanings, shape
from bot.rules.patches.operation import MAKES, Operation, bare, results, said

_COUNTED: tuple[type[ast.AST], ...] = (
    ast.Try, ast.TryStar, ast.Raise, ast.Return, ast.Break, ast.Continue, ast.BoolOp, ast.Lambda, ast.For, ast.AsyncFor,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match, ast.Delete, ast.Global, ast.Nonlocal, ast.Yield,
    ast.YieldFrom, ast.Await, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_Tested = ast.If | ast.IfExp | ast.While | ast.Assert
_WORDS: dict[str, str] = {
    "Try": "an exception handler", "TryStar": "an exception handler", "Return": "an early end", "Break": "an early end",
    "Continue": "an early end", "If": "a condition", "IfExp": "a condition", "BoolOp": "a condition", "While": "a condition",
    "Match": "a condition", "decorator": "a decorator",
    "FunctionDef": "a function or its parameters", "ClassDef": "a class or its bases",
    "Assert": "a check", "With": "a context of the standard library", "comprehension": "a condition",
}  # fmt: skip
_HIDES = frozenset(
    {"exec", "eval", "compile", "__import__", "open", "input", "exit", "quit", "breakpoint", "globals", "locals", "vars"}
    | {"setattr", "delattr", "getattr", "suppress", "raises", "warns", "skip", "skipif", "xfail", "importorskip"}
    | {"filterwarnings", "simplefilter", "catch_warnings", "showwarning", "seterr", "errstate", "set_printoptions"}
    | {"nan_to_num", "isnan", "isinf", "isfinite", "is_nan", "is_finite", "is_inf", "fillna", "dropna"}
    | {"set_warn_always", "set_verbosity", "set_verbosity_error", "disable_warnings"}
)
# Parts of names of the same kind in any library, such as `assert_raises`, `suppress_warnings` or `ignore_errors=`, and flags
# that keep a library silent.
_HIDING = re.compile(
    r"raises|suppress|swallow|silence|xfail|expected_?failure|retry|monkeypatch|mock|_hook$|excepthook|add_module|set_submodule|"
    r"register_|(ignore|skip|allow|catch|mute|disable|drop)_?(all_?)?(err|exc|warn|fail|invalid|nan|inf|check|valid|bad)|"
    r"assert_?(warn|not|no)|(^|_)(warn|warnings|quiet|silent|verbose|verbosity|log_?level)($|_)",
    re.IGNORECASE,
)
_SWALLOWS = frozenset({"ignore", "coerce", "skip", "omit", "suppress", "drop"})
_SEEDS = re.compile(r"seed|PRNGKey|default_rng|RandomState|random_state|Generator$")
_HARMLESS = frozenset({"math", "copy", "random", "functools", "itertools", "collections", "typing", "decimal", "fractions"})
_COLLECTS = frozenset({"list", "tuple", "dict", "set", "frozenset", "str", "bytes", "Tensor"})
_COUNTS = frozenset({"range", "arange", "head", "eye", "repeat", "Tensor"})
_SIZED = frozenset({"zeros", "ones", "empty", "rand", "randn"})


def objections(before: ast.Module, after: ast.Module, operation: Operation) -> tuple[str, ...]:
    """What is wrong with a change, as sentences for whoever proposed it; empty when it may be run."""
    return tuple(
        dict.fromkeys(
            (
                *_ways_round(before, after),
                *_names_used(before, after),
                *_given(before, after),
                *meanings.objections(before, after, operation),
                *loops.objections(before, after, operation),
                *_afterwards(before, after, operation),
            )
        )
    )


def _ways_round(before: ast.Module, after: ast.Module) -> Iterator[str]:
    for kind, _ in _shapes(after) - _shapes(before):
        yield f"It adds or changes {_WORDS.get(kind, f'a `{kind}`')}: nothing may decide anew whether the operation is done."
    known = {dotted.split(".")[0] for dotted in shape.imported(before).values()} | _HARMLESS
    for dotted in dict.fromkeys(dotted for _, dotted in shape.imports(after)):
        if dotted.split(".")[0] not in known or dotted.endswith(".*"):
            yield f"It imports `{dotted}`, which the program does not use."


def _names_used(before: ast.Module, after: ast.Module) -> Iterator[str]:
    """New names that can hide a failure, and more or other uses of the standard library."""
    held = shape.imported(before)
    for name in _names(after) - _names(before):
        if name in _HIDES or name.startswith("__") or _HIDING.search(name):
            yield f"It uses `{name}`, which can hide a failure."
        elif name.startswith("_") and name != "_":
            yield f"It uses `{name}`, which is private."
    outside = {name for name, dotted in held.items() if shape.standard(dotted) and dotted.split(".")[0] not in _HARMLESS}
    for text in _dotted(after, outside) - _dotted(before, outside):
        yield f"It uses `{text}` of the standard library, which the operation does not need."


def _given(before: ast.Module, after: ast.Module) -> Iterator[str]:
    """What is handed to calls that decide whether a failure shows, and what leaves an operation nothing to do."""
    for text in _calls_of(after, _HIDES.__contains__) - _calls_of(before, _HIDES.__contains__):
        yield f"It changes `{text[:100]}`, which can hide a failure."
    for text in _seeds(after) - _seeds(before):
        yield f"It changes a seed (`{text[:100]}`): which numbers are drawn is not the cause."
    for word in sorted(_words(after) - _words(before)):
        yield f"It hands over `{word!r}`, which has a failure ignored."
    for text in _empty(after) - _empty(before):
        yield f"It makes something empty (`{text[:100]}`), which leaves the operation nothing to do."


def _afterwards(before: ast.Module, after: ast.Module, operation: Operation) -> Iterator[str]:
    """Where a value is the failure: prints and checks stay, and nothing new works on what the operation gave."""
    if not operation.valued:
        return
    shown = [[bare(each, operation.free) for each in said(tree)] for tree in (before, after)]
    if shown[0] != shown[1]:
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


def _shapes(tree: ast.Module) -> Counter[tuple[str, str]]:
    """All that decides what is run, each with its test."""
    imported, found = shape.imported(tree), Counter[tuple[str, str]]()
    for node in ast.walk(tree):
        kind = type(node).__name__
        if isinstance(node, _Tested):
            found[kind, ast.unparse(node.test)] += 1
        elif isinstance(node, _COUNTED):
            found[kind, _head(node)] += 1
            for each in getattr(node, "decorator_list", ()):
                found["decorator", ast.unparse(each)] += 1
        elif isinstance(node, ast.comprehension):
            found[kind, " ".join(map(ast.unparse, node.ifs))] += 1
        elif isinstance(node, ast.withitem):
            # A context of a package, such as one that turns gradients off, is a setting like any other.
            dotted = imported.get(shape.root(node.context_expr), "builtins")
            if shape.standard(dotted):
                found["With", ast.unparse(node.context_expr)] += 1
    return found


def _head(node: ast.AST) -> str:
    """What of a definition has to stay: its name and its parameters or bases; the defaults may change."""
    match node:
        case ast.FunctionDef(name=name, args=args) | ast.AsyncFunctionDef(name=name, args=args):
            several = (*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg)))
            return f"{name}({', '.join(each.arg for each in several)})"
        case ast.ClassDef(name=name, bases=bases, keywords=keywords):
            return f"{name}({', '.join(map(ast.unparse, (*bases, *(each.value for each in keywords))))})"
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return ", ".join(names)
        case _:
            return ""


def _names(tree: ast.Module) -> Counter[str]:
    """Every name that is read, every attribute, and every argument that is named."""
    nodes = list(ast.walk(tree))
    loads = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    named = Counter(node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg)
    return loads + named + Counter(node.attr for node in nodes if isinstance(node, ast.Attribute))


def _dotted(tree: ast.Module, names: set[str]) -> Counter[str]:
    """Each use of one of these names, with the attributes that are taken of it."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    chains = (node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner)
    return Counter(ast.unparse(node) for node in chains if shape.root(node) in names)


def _calls_of(tree: ast.Module, wanted: Callable[[str], bool]) -> Counter[str]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return Counter(ast.unparse(call) for call in calls if wanted(shape.last(call.func)))


def _seeds(tree: ast.Module) -> Counter[str]:
    named = (node for node in ast.walk(tree) if isinstance(node, ast.keyword) and _SEEDS.search(node.arg or ""))
    return _calls_of(tree, lambda name: bool(_SEEDS.search(name))) + Counter(map(ast.unparse, named))


def _words(tree: ast.Module) -> set[str]:
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {text for text in texts if text.lower() in _SWALLOWS}


def _empty(tree: ast.Module) -> Counter[str]:
    """What is empty by its looks: a collection or text without anything, a size of zero, the part up to the first item."""
    return Counter(ast.unparse(node) for node in ast.walk(tree) if _hollow(node))


def _hollow(node: ast.AST) -> bool:
    match node:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]) | ast.Constant(value="" | b""):
            return True
        case ast.Slice(upper=ast.Constant(value=0)):
            return True
        case ast.Call(func=func, args=[], keywords=[]):
            return shape.last(func) in _COLLECTS
        case ast.Call(func=func, args=[ast.Constant(value=0)]) if shape.last(func) in _COUNTS:
            return True
        case ast.Call(func=func, args=args, keywords=keywords) if shape.last(func) in MAKES:
            sized = [*args, *(each.value for each in keywords if each.arg in {"size", "shape"})]
            sizes = [each for part in sized if isinstance(part, ast.Tuple | ast.List) for each in part.elts]
            return any(map(_zero, sizes)) or (shape.last(func) in _SIZED and any(map(_zero, sized)))
        case _:
            return False


def _zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0
