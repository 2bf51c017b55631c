"""Training loops by their idioms, read off the syntax: explicit loops, fit, the trainers, gradient tapes and JAX updates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from bot.rules.code import syntax

Idiom = Literal["explicit", "fit", "transformers", "lightning", "tape", "jax"]

CANDIDATES: tuple[tuple[str, ...], ...] = (
    ("backward", "step", "zero_grad"),
    ("training_step", "configure_optimizers"),
    ("gradienttape", "apply_gradients"),
    ("apply_updates", "grad"),
    ("value_and_grad", "update"),
    ("backward", "step"),
    ("training_step",),
    ("trainer", "train", "args"),
    ("trainer", "fit"),
    ("compile", "fit", "optimizer"),
    ("fit", "epochs"),
)
"""Words that a piece holding a training loop contains, the most telling first; each is then judged by its syntax."""

_PREPARES = re.compile(r"(?i)scal|encod|token|vector|pca|imput|transform|normal|binar|label|cluster|kmeans|bpe|curve|poly")
_GRADS = {"grad", "value_and_grad", "filter_grad", "filter_value_and_grad"}
_Loops = (ast.For, ast.While, ast.AsyncFor)


class Loop(NamedTuple):
    """A training loop: where it stands (1-based lines of the text) and how complete its idiom is, from 0 to 1."""

    idiom: Idiom
    start: int
    end: int
    score: float


def loops(tree: ast.AST) -> tuple[Loop, ...]:
    """The training loops of a program, the most complete first; of two on the same lines the better one."""
    found = [loop for rule in (_explicit, _tape, _jax, _lightning, _transformers, _fit) for loop in rule(tree)]
    best: dict[tuple[int, int], Loop] = {}
    for loop in sorted(found, key=lambda each: (-each.score, each.end - each.start, each.start)):
        best.setdefault((loop.start, loop.end), loop)
    return tuple(best.values())


def _explicit(tree: ast.AST) -> Iterator[Loop]:
    """A loop that calls backward and an optimizer's step; clearing gradients makes it whole."""
    for node in _innermost(tree, {"backward", "step"}):
        called = _called(node)
        whole = "zero_grad" in called or _clears(node)
        yield Loop("explicit", node.lineno, _end(node), 1.0 if whole else 0.8)


def _tape(tree: ast.AST) -> Iterator[Loop]:
    """A gradient tape whose gradients an optimizer applies."""
    for function in _scopes(tree):
        called = _called(function)
        tapes = [node for node in ast.walk(function) if isinstance(node, ast.With) and _opens_tape(node)]
        if tapes and "gradient" in called and called & {"apply_gradients", "assign_sub"}:
            yield Loop("tape", function.lineno, _end(function), 1.0 if "apply_gradients" in called else 0.8)


def _jax(tree: ast.AST) -> Iterator[Loop]:
    """A function that takes gradients and makes new parameters of them: by optax, or by subtracting."""
    for function in _scopes(tree):
        called = _called(function)
        takes = bool(called & _GRADS) or _uses_outer_grad(tree, function)
        if not takes:
            continue
        if "apply_updates" in called or ("apply_gradients" in called and "gradient" not in called):
            yield Loop("jax", function.lineno, _end(function), 1.0)
        elif called & {"tree_map", "map"} and any(isinstance(node, ast.Sub) for node in ast.walk(function)):
            yield Loop("jax", function.lineno, _end(function), 0.8)


def _lightning(tree: ast.AST) -> Iterator[Loop]:
    """A module with a training step, or a Trainer that is told to fit."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = {each.name for each in node.body if isinstance(each, syntax.Function)}
            if "training_step" in methods:
                yield Loop("lightning", node.lineno, _end(node), 1.0 if "configure_optimizers" in methods else 0.7)
    yield from _told(tree, "fit", "lightning", {"Trainer"})


def _transformers(tree: ast.AST) -> Iterator[Loop]:
    """A Trainer that is told to train."""
    made = {name for name in _constructed(tree) if name.endswith("Trainer")}
    yield from _told(tree, "train", "transformers", made)


def _fit(tree: ast.AST) -> Iterator[Loop]:
    """`fit` on a model: compiled, with epochs, or at least not on something that only prepares data."""
    trainers = {name for name, maker in _made(tree).items() if maker.endswith("Trainer")}
    compiled = {syntax.dotted(call.func).rpartition(".")[0] for call in _calls_of(tree, "compile")}
    for call in _calls_of(tree, "fit"):
        receiver = syntax.dotted(call.func).rpartition(".")[0]
        maker = _maker(call.func, tree)
        if receiver in trainers or maker.endswith("Trainer") or _PREPARES.search(receiver) or _PREPARES.search(maker):
            continue
        named = {keyword.arg for keyword in call.keywords}
        if named & {"epochs", "batch_size", "validation_data"} or receiver in compiled:
            yield Loop("fit", call.lineno, _end(call), 0.9)
        elif len(call.args) >= 2 or named & {"X", "x", "y"}:
            yield Loop("fit", call.lineno, _end(call), 0.5)


def _told(tree: ast.AST, verb: str, idiom: Idiom, makers: set[str]) -> Iterator[Loop]:
    for call in _calls_of(tree, verb):
        maker = _maker(call.func, tree).rpartition(".")[2]
        if maker in makers:
            yield Loop(idiom, call.lineno, _end(call), 0.9)


def _maker(func: ast.expr, tree: ast.AST) -> str:
    """The class that made the receiver of a method call: `Trainer(...).fit`, or `t = Trainer(...); t.fit`."""
    receiver = func.value if isinstance(func, ast.Attribute) else func
    if isinstance(receiver, ast.Call):
        return syntax.dotted(receiver.func)
    return _made(tree).get(syntax.dotted(receiver), "")


def _made(tree: ast.AST) -> dict[str, str]:
    made: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for target in node.targets:
                made[syntax.dotted(target)] = syntax.dotted(node.value.func)
    made.pop("", None)
    return made


def _constructed(tree: ast.AST) -> set[str]:
    return {syntax.dotted(node.func).rpartition(".")[2] for node in ast.walk(tree) if isinstance(node, ast.Call)}


def _calls_of(tree: ast.AST, method: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            yield node


def _called(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                names.add(node.func.attr)
            elif isinstance(node.func, ast.Name):
                names.add(node.func.id)
    return names


def _innermost(tree: ast.AST, wanted: set[str]) -> Iterator[ast.stmt]:
    """The innermost loops in which all these are called."""
    for node in ast.walk(tree):
        if isinstance(node, _Loops) and wanted <= _called(node):
            inner = (each for each in ast.walk(node) if isinstance(each, _Loops) and each is not node)
            if not any(wanted <= _called(each) for each in inner):
                yield node


def _scopes(tree: ast.AST) -> Iterator[ast.stmt]:
    """The innermost functions; of a plain script its loops."""
    functions = [node for node in ast.walk(tree) if isinstance(node, syntax.Function)]
    yield from functions
    inside = {id(node) for function in functions for node in ast.walk(function)}
    yield from (node for node in ast.walk(tree) if isinstance(node, _Loops) and id(node) not in inside)


def _opens_tape(node: ast.With) -> bool:
    made = (item.context_expr for item in node.items)
    return any(isinstance(each, ast.Call) and syntax.dotted(each.func).endswith("GradientTape") for each in made)


def _clears(node: ast.AST) -> bool:
    """`parameter.grad = None` clears gradients as zero_grad does."""
    targets = (target for each in ast.walk(node) if isinstance(each, ast.Assign) for target in each.targets)
    return any(isinstance(target, ast.Attribute) and target.attr == "grad" for target in targets)


def _uses_outer_grad(tree: ast.AST, function: ast.stmt) -> bool:
    """`grad_fn = jax.grad(loss)` outside, `grad_fn(params)` inside."""
    takers = {name for name, maker in _made(tree).items() if maker.rpartition(".")[2] in _GRADS}
    return bool(takers & _called(function))


def _end(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno
