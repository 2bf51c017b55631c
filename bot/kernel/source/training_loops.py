"""Training loops recognised by their idioms in the syntax tree: explicit loops, fit, the trainers,
gradient tapes and JAX updates.
"""

import ast
import re
from collections.abc import Iterator

from bot.kernel.source import syntax

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
"""Words that a segment with a training loop contains, the most specific first; its syntax then
decides.
"""

_PREPROCESSING = re.compile(
    r"(?i)scal|encod|token|vector|pca|imput|transform|normal|binar|label|cluster|kmeans|bpe|curve|poly"
)
_GRADS = {"grad", "value_and_grad", "filter_grad", "filter_value_and_grad"}
_FIT_ARGUMENTS = {"epochs", "batch_size", "validation_data"}
_Loop = ast.For | ast.While | ast.AsyncFor


def training_score(tree: ast.AST) -> float:
    """How complete the most complete training loop of a program is, from 0 (it has none) to 1."""
    rules = (_explicit, _scoped, _lightning, _calls)
    return max((score for rule in rules for score in rule(tree)), default=0.0)


def _explicit(tree: ast.AST) -> Iterator[float]:
    """The innermost loops that call backward and an optimizer's step; one that also clears the
    gradients is complete.
    """
    call_names = {"backward", "step"}
    training = [
        node for node in ast.walk(tree) if isinstance(node, _Loop) and call_names <= _calls_in(node)
    ]
    for loop in training:
        if not any(inner in training for inner in ast.walk(loop) if inner is not loop):
            clears = "zero_grad" in _calls_in(loop) or _clears_gradients(loop)
            yield 1.0 if clears else 0.8
    # A step of its own that a loop elsewhere calls.
    in_loops = set[str]().union(
        *(_calls_in(node) for node in ast.walk(tree) if isinstance(node, _Loop))
    )
    for function in syntax.nodes(tree, ast.FunctionDef):
        if function.name in in_loops and call_names | {"zero_grad"} <= _calls_in(function):
            yield 0.9


def _scoped(tree: ast.AST) -> Iterator[float]:
    """Functions, and loops outside them, that apply the gradients of a tape, or update parameters
    with JAX gradients.
    """
    makers = _makers(tree)
    outer_grads = {name for name, maker in makers.items() if maker.rpartition(".")[2] in _GRADS}
    for scope in _scopes(tree):
        calls = _calls_in(scope)
        applies = "gradient" in calls and calls & {"apply_gradients", "assign_sub"}
        if applies and any(map(_opens_tape, syntax.nodes(scope, ast.With))):
            yield 1.0 if "apply_gradients" in calls else 0.8
        if calls & (_GRADS | outer_grads):
            if "apply_updates" in calls or calls & {"apply_gradients", "gradient"} == {
                "apply_gradients"
            }:
                yield 1.0
            elif calls & {"tree_map", "map"} and syntax.nodes(scope, ast.Sub):
                yield 0.8


def _lightning(tree: ast.AST) -> Iterator[float]:
    """Classes with a training step."""
    for node in syntax.nodes(tree, ast.ClassDef):
        methods = {item.name for item in node.body if isinstance(item, syntax.Function)}
        if "training_step" in methods:
            yield 1.0 if "configure_optimizers" in methods else 0.7


def _calls(tree: ast.AST) -> Iterator[float]:
    """Calls of `Trainer.train`, `Trainer.fit`, and `fit` of a model."""
    makers = _makers(tree)
    methods = [
        (node, node.func.attr, node.func.value)
        for node in syntax.nodes(tree, ast.Call)
        if isinstance(node.func, ast.Attribute)
    ]
    receivers = {syntax.dotted(receiver) for _, name, receiver in methods if name == "compile"}
    for call, method, receiver in methods:
        name = syntax.dotted(receiver)
        direct = syntax.dotted(receiver.func) if isinstance(receiver, ast.Call) else ""
        maker = (direct or makers.get(name, "")).rpartition(".")[2]
        trains = method == "train" and maker.endswith("Trainer")
        if trains or (method, maker) == ("fit", "Trainer"):
            yield 0.9
        elif method == "fit" and not maker.endswith("Trainer"):
            yield _fit_score(call, f"{name} {maker}", is_compiled=name in receivers)


def _fit_score(call: ast.Call, receiver: str, *, is_compiled: bool) -> float:
    """How certain a call of `fit` trains a model: compiled, with epochs, or at least with data and
    not on a preprocessor.
    """
    keywords = {keyword.arg for keyword in call.keywords}
    if _PREPROCESSING.search(receiver):
        return 0.0
    if keywords & _FIT_ARGUMENTS or is_compiled:
        return 0.9
    return 0.5 if len(call.args) >= 2 or keywords & {"X", "x", "y"} else 0.0


def _makers(tree: ast.AST) -> dict[str, str]:
    """What each variable was made by: `t = pl.Trainer()` gives t → pl.Trainer."""
    return {
        syntax.dotted(target): syntax.dotted(node.value.func)
        for node in syntax.nodes(tree, ast.Assign)
        if isinstance(node.value, ast.Call)
        for target in node.targets
        if syntax.dotted(target)
    }


def _calls_in(tree: ast.AST) -> set[str]:
    """Simple names of what is called anywhere in a tree."""
    functions = [node.func for node in syntax.nodes(tree, ast.Call)]
    return {func.attr for func in functions if isinstance(func, ast.Attribute)} | {
        func.id for func in functions if isinstance(func, ast.Name)
    }


def _scopes(tree: ast.AST) -> Iterator[ast.stmt]:
    """The functions; of a plain script its loops."""
    functions = [node for node in ast.walk(tree) if isinstance(node, syntax.Function)]
    yield from functions
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, _Loop) and id(node) not in inside:
            yield node


def _opens_tape(node: ast.With) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call)
        and syntax.dotted(item.context_expr.func).endswith("GradientTape")
        for item in node.items
    )


def _clears_gradients(tree: ast.AST) -> bool:
    """`parameter.grad = None` clears gradients as zero_grad does."""
    targets = (target for node in syntax.nodes(tree, ast.Assign) for target in node.targets)
    return any(isinstance(target, ast.Attribute) and target.attr == "grad" for target in targets)
