"""The loss of a training program, changed so that predictions and targets fit the new one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import libcst as cst

from bot.kernel.training_types import Loss, TrainingTrace
from bot.program.layers import of_function
from bot.program.optimizers import compilations
from bot.program.parsed import ProgramTree, function_named
from bot.program.rewriting import HyperparameterPlace, Rewriting, make_place
from bot.program.text import (
    NotApplicable,
    argument,
    dotted,
    fill,
    keywords,
    snake,
    with_argument,
)
from bot.program.uses import resolved, worded
from sandbox.probe.training.vocabulary import KERAS_LOSSES, OF_CLASSES, TORCH_LOSSES

# What PyTorch calls its losses.

CLASSES = {name: kind for name, (_, kind, _) in TORCH_LOSSES.items()}
FUNCTIONS = {name: function for name, (function, _, _) in TORCH_LOSSES.items()}
_OF_CLASS = {f"torch.nn.{text}": name for name, text in CLASSES.items()}
_OF_FUNCTION = {f"torch.nn.functional.{text}": name for name, text in FUNCTIONS.items()}

OF_VALUES = ("bce_logits", "bce", "mse", "mae", "smooth_l1", "huber")
"""Losses whose targets have the form of the predictions."""


def of_class(full: str) -> str:
    """The canonical name of a loss by the full name of its class, "" for no loss."""
    name = full.rpartition(".")[2]
    own = full.startswith("torch.nn.") and name.endswith("Loss")
    return _OF_CLASS.get(f"torch.nn.{name}", name.lower()) if own else ""


def loss_of_function(full: str) -> str:
    """The canonical name of a loss by the full name of its function, "" for no loss."""
    return _OF_FUNCTION.get(full, "")


# Where a PyTorch program computes its loss: the calls that get predictions and targets.

_DEEPEST = 4
_MOST = 50  # more gradients than a program that somebody wrote computes


@dataclass(frozen=True)
class LossSite:
    """`node` is the computation. `made` is the construction of the loss, if it is an object; `swap`
    says that predictions and targets of a written-out difference stand the other way round.
    """

    name: str
    node: cst.Call | cst.BinaryOperation
    made: cst.Call | None = None
    difference: cst.BinaryOperation | None = None
    swap: bool = False


def sites(program: ProgramTree) -> list[LossSite]:
    """Those that a gradient is computed of, each once."""
    by_node: dict[cst.CSTNode, LossSite] = {}
    for call in islice(program.method("backward"), _MOST):
        if isinstance(call.func, cst.Attribute):
            for site in _in(program, call.func.value, call, 0):
                by_node.setdefault(site.node, site)
    for site in list(by_node.values()):
        for other in _same(program, site):
            by_node.setdefault(other.node, other)
    return list(by_node.values())


def _same(program: ProgramTree, site: LossSite) -> Iterator[LossSite]:
    """The other calls of the same object, as validation makes them."""
    if site.made is None:
        return
    for call in program.calls:
        if call is not site.node and resolved(program, call.func) is site.made:
            yield LossSite(site.name, call, site.made)


def _in(
    program: ProgramTree, node: cst.BaseExpression, at: cst.CSTNode, depth: int
) -> Iterator[LossSite]:
    """The first loss in an expression, in what a name in it was assigned, or in a function of the
    program that it calls.
    """
    if depth > _DEEPEST:
        return
    if isinstance(node, cst.Name | cst.Attribute):
        value = _last(program, dotted(node), at)
        yield from _in(program, value, at, depth + 1) if value else ()
        return
    calls = [x for x in (node, *program.inside(node)) if isinstance(x, cst.Call)]
    for call in calls:
        site = _site_of_call(program, call)
        if site:
            yield site
            return
    for call in calls:
        for value in _returned_values(program, call):
            inner = list(_in(program, value, value, depth + 1))
            if inner:
                yield from inner
                return
    site_of_expression = _difference(program, node)
    if site_of_expression:
        yield site_of_expression


def _last(program: ProgramTree, name: str, at: cst.CSTNode) -> cst.BaseExpression | None:
    """What a name was assigned last before a place of the same function, else anywhere."""
    values = program.values.get(name, [])
    own = [x for x in values if program.function(x) is program.function(at)]
    before = [x for x in own if program.line(x) <= program.line(at)]
    return (*reversed(before), *own, *values)[0] if values else None


def _site_of_call(program: ProgramTree, call: cst.Call) -> LossSite | None:
    if len(call.args) < 2:
        return None
    name = loss_of_function(program.called(call))
    if name:
        return LossSite(name, call)
    construction = call.func if isinstance(call.func, cst.Call) else resolved(program, call.func)
    name = of_class(program.called(construction)) if isinstance(construction, cst.Call) else ""
    return (
        LossSite(name, call, construction) if name and isinstance(construction, cst.Call) else None
    )


def _returned_values(program: ProgramTree, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What a function or lambda of the program returns."""
    function = function_named(program, dotted(call.func).rpartition(".")[2])
    if function:
        for node in program.within(function, cst.Return):
            if node.value and program.function(node) is function:
                yield node.value
        return
    value = resolved(program, call.func)
    if isinstance(value, cst.Lambda):
        yield value.body


def _difference(program: ProgramTree, node: cst.BaseExpression) -> LossSite | None:
    """A loss that is written out around the difference of predictions and targets."""
    for part in (node, *program.inside(node)):
        if isinstance(part, cst.BinaryOperation) and isinstance(part.operator, cst.Subtract):
            left, right = (_is_predicted(program, x, 0) for x in (part.left, part.right))
            if left != right and isinstance(node, cst.Call | cst.BinaryOperation):
                return LossSite("expression", node, difference=part, swap=right)
    return None


def _is_predicted(program: ProgramTree, node: cst.BaseExpression, depth: int) -> bool:
    """Whether an expression is made of the output of a model."""
    if isinstance(node, cst.Name) and depth < _DEEPEST:
        values = [x for x in program.values.get(node.value, []) if x is not node]
        return any(_is_predicted(program, x, depth + 1) for x in values)
    return any(
        _is_model(program, x) for x in (node, *program.inside(node)) if isinstance(x, cst.Call)
    )


def _is_model(program: ProgramTree, call: cst.Call) -> bool:
    construction = resolved(program, call.func) if dotted(call.func) else None
    if not isinstance(construction, cst.Call):
        return dotted(call.func) in ("self", "self.forward", "net", "model")
    classes = {x.name.value for x in program.of(cst.ClassDef)}
    own = {
        dotted(x.func)
        for x in (construction, *program.inside(construction))
        if isinstance(x, cst.Call)
    }
    return bool(own & classes) or program.called(construction).startswith("torch.nn.")


# Predictions and targets made to fit another loss.

Form = Literal["indices", "column", "same", "flat", "tall", "other"]
_CASTS = ("float", "double", "long", "type", "to", "int")
_REDUCTIONS = ("mean", "max", "sum", "amax", "argmax", "values")
_LOGITS = {"cross_entropy": ("softmax", "log_softmax"), "bce_logits": ("sigmoid",)}
_VALUES = ("mse", "mae", "smooth_l1", "huber")


class Adapter:
    """Knows what a loss is fed: by a trace, otherwise by what the loss before it takes."""

    def __init__(
        self, program: ProgramTree, name: str, loss: Loss | None, node: cst.CSTNode
    ) -> None:
        self._program = program
        self._known = loss
        self._one_hot = _is_one_hot(program, node) or bool(loss and loss.one_hot)
        self._reduced = _reduces(node)
        self._form = _target_form(name, loss)
        shape = loss.predictions.shape if loss else ()
        self._classes = (shape[1] if len(shape) > 1 else (*shape, 1)[0]) if shape else 0
        if loss and len(shape) == 1 and loss.targets.shape:
            self._classes = 1

    def choices(self) -> tuple[str, ...]:
        """The losses that can be fed here."""
        loss, form = self._known, self._form
        if self._reduced and (loss is None or loss.integer_targets):
            return ("cross_entropy",)
        if form in ("indices", "column") and self._classes != 1:
            logs = loss is not None and loss.activation == "log_softmax"
            return OF_CLASSES if logs or loss is None else ("cross_entropy",)
        many = ("cross_entropy",) if self._one_hot and (not loss or self._classes > 1) else ()
        return (*many, *(OF_VALUES if loss is None or _unit(loss) else _VALUES))

    def predictions(self, node: cst.BaseExpression, value: str) -> cst.BaseExpression:
        """Without a function that the loss applies itself, and for classes without a mean."""
        while True:
            inner = self._inner(node, value)
            if inner is None:
                return node
            node = inner

    def _inner(self, node: cst.BaseExpression, value: str) -> cst.BaseExpression | None:
        if isinstance(node, cst.Call):
            name = of_function(self._program.called(node))
            method = self._program.called(node).startswith(".")
            if name and name in _LOGITS.get(value, ()):
                return _receiver(node) if method else node.args[0].value
        if value in OF_CLASSES and self._reduced:
            return _unreduced(node)
        return None

    def targets(self, node: cst.BaseExpression, value: str) -> cst.BaseExpression:
        """In the form and the type that the loss takes."""
        if value in OF_CLASSES:
            return self._indices(node)
        real = self._known is None or self._known.targets.dtype.startswith(("float", "bfloat"))
        cast = "" if real else ".float()"
        shape = {"flat": ".view(-1, 1)", "tall": ".view(-1)"}.get(self._form, "")
        return fill(f"fed_t{cast}{shape}", fed_t=node) if cast or shape else node

    def _indices(self, node: cst.BaseExpression) -> cst.BaseExpression:
        inner, cast = self._uncast(node)
        index = self._one_hot_of(inner)
        if index is not None:
            return index
        if self._form == "same" and self._one_hot:
            return fill("fed_t.argmax(dim=1)", fed_t=node)
        flat = ".view(-1)" if self._form == "column" else ""
        loss = self._known
        whole = loss is None or loss.targets.dtype.startswith("int64")
        return fill(f"fed_t{flat}{'.long()' if cast or not whole else ''}", fed_t=inner)

    def _uncast(self, node: cst.BaseExpression) -> tuple[cst.BaseExpression, bool]:
        cast = False
        while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value not in _CASTS or self._program.name(node.func).startswith(
                "torch"
            ):
                break
            node, cast = node.func.value, True
        return node, cast

    def _one_hot_of(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        if isinstance(node, cst.Call) and self._program.called(node).endswith(".one_hot"):
            return node.args[0].value
        return None


def _target_form(name: str, loss: Loss | None) -> Form:
    if loss is None or not loss.predictions.shape:
        return "indices" if name in OF_CLASSES else "same"
    prediction_shape, shape = loss.predictions.shape, loss.targets.shape
    if prediction_shape == shape:
        return "same"
    if len(shape) == len(prediction_shape) - 1:
        return "flat" if prediction_shape[-1] == 1 and len(prediction_shape) == 2 else "indices"
    if len(shape) == len(prediction_shape) == 2 and shape[-1] == 1:
        return "column"
    return "tall" if len(prediction_shape) == 1 and shape[1:] == (1,) else "other"


def _is_one_hot(program: ProgramTree, node: cst.CSTNode) -> bool:
    calls = (x for x in program.inside(node) if isinstance(x, cst.Call))
    return any(program.called(x).endswith(".one_hot") for x in calls)


def _reduces(node: cst.CSTNode) -> bool:
    """Whether the predictions are averaged over the classes before the loss gets them."""
    if not isinstance(node, cst.Call) or not node.args:
        return False
    return _unreduced(node.args[0].value) is not None


def _unreduced(node: cst.BaseExpression) -> cst.BaseExpression | None:
    if isinstance(node, cst.Attribute) and node.attr.value == "values":
        return node.value
    if isinstance(node, cst.Call) and node.args and isinstance(node.func, cst.Attribute):
        return node.func.value if node.func.attr.value in _REDUCTIONS else None
    return None


def _receiver(call: cst.Call) -> cst.BaseExpression | None:
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def _unit(loss: Loss) -> bool:
    """Whether all targets lie from zero to one."""
    low, high = loss.targets.minimum, loss.targets.maximum
    return low is not None and high is not None and low >= 0 and high <= 1


# The loss that a Keras model is compiled with: a name, an object or a function.

_ALIASES = {name: short for short, name in KERAS_LOSSES.items()} | {
    "kldivergence": "kld", "kullback_leibler_divergence": "kld", "logcosh": "log_cosh",
    "binary_cross_entropy": "binary_crossentropy", "bce": "binary_crossentropy",
}  # fmt: skip
_CLASSES = {
    "categorical_crossentropy": "CategoricalCrossentropy",
    "sparse_categorical_crossentropy": "SparseCategoricalCrossentropy",
    "binary_crossentropy": "BinaryCrossentropy",
}
_ELEMENTWISE = ("mse", "mae", "huber", "log_cosh", "msle", "mape", "poisson")
_ONE = ("binary_crossentropy", "hinge", "squared_hinge", *_ELEMENTWISE)
_MANY = ("categorical_crossentropy", "categorical_hinge", "kld", "binary_crossentropy")
_SPARSE = "sparse_categorical_crossentropy"


def keras_losses(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """The loss of every `compile`, with the losses that its labels have the form for."""
    visited: set[cst.CSTNode] = set()
    for call in compilations(program):
        value_node = argument(call, "loss", 1)
        loss_node = worded(program, value_node)
        if value_node is None or loss_node is None or loss_node in visited:
            continue
        visited.add(loss_node)
        loss = _recorded_loss(program, call, trace)
        value = _value(program, loss_node)
        if value:
            yield _keras_place(program, call, loss_node, value, loss)


def _recorded_loss(
    program: ProgramTree, call: cst.Call, trace: TrainingTrace | None
) -> Loss | None:
    """What the trace says of the loss: of the line, otherwise the only one."""
    losses = trace.losses if trace else ()
    at = [x for x in losses if x.line == program.traced(program.line(call))]
    return (*at, *losses)[0] if losses else None


def _value(program: ProgramTree, loss_node: cst.BaseExpression) -> str:
    if isinstance(loss_node, cst.SimpleString):
        name = str(loss_node.evaluated_value)
    elif isinstance(loss_node, cst.Call):
        name = program.called(loss_node).rpartition(".")[2]
    else:
        name = program.name(loss_node).rpartition(".")[2]
    short = snake(name) if not name.isupper() else name.lower()
    return _ALIASES.get(short, short)


def fitting_losses(loss: Loss | None) -> tuple[str, ...]:
    """The losses whose targets have the form that a trace saw; all without one."""
    if loss is None or not loss.predictions.shape:
        return tuple(dict.fromkeys((_SPARSE, *_MANY, *_ONE)))
    units, shape = loss.predictions.shape[-1], loss.targets.shape
    alike = len(shape) == len(loss.predictions.shape) and shape[-1] == units
    if units > 1 and not alike:
        return (_SPARSE,)
    return _ONE if units == 1 else (*_MANY, *_ELEMENTWISE)


def _keras_place(
    program: ProgramTree,
    call: cst.Call,
    loss_node: cst.BaseExpression,
    value: str,
    loss: Loss | None,
) -> HyperparameterPlace:
    choices = fitting_losses(loss)

    def write(rewriting: Rewriting, value: str) -> None:
        text = _text(rewriting, loss_node, value)
        if isinstance(loss_node, cst.SimpleString | cst.Call):
            rewriting.replace(loss_node, text)
        else:
            rewriting.change(call, with_argument("loss", text, 1))

    return make_place(
        "loss", value, program.line(loss_node), write,
        choices=tuple(dict.fromkeys((*choices, *([value] if value in KERAS_LOSSES else [])))),
    )  # fmt: skip


def _text(rewriting: Rewriting, loss_node: cst.BaseExpression, name: str) -> str:
    """A name in the place of a name; an object where the loss gets logits and still can."""
    logits = isinstance(loss_node, cst.Call) and "from_logits" in keywords(loss_node)
    if isinstance(loss_node, cst.Call) and logits and name in _CLASSES:
        value = rewriting.program.text(keywords(loss_node)["from_logits"])
        own = rewriting.program.text(loss_node.func).rpartition(".")[0]
        full = f"keras.losses.{_CLASSES[name]}"
        short = f"{own}.{_CLASSES[name]}" if own else rewriting.named(full)
        return f"{short}(from_logits={value})"
    quote = loss_node.quote if isinstance(loss_node, cst.SimpleString) else rewriting.quote
    return f"{quote}{KERAS_LOSSES.get(name, name)}{quote}"


# The loss of a PyTorch program, wherever it is computed.


def torch_losses(
    program: ProgramTree, trace: TrainingTrace | None
) -> Iterator[HyperparameterPlace]:
    """Each loss that a gradient is computed of. One object is one hyperparameter."""
    groups: dict[cst.CSTNode, list[LossSite]] = {}
    for site in sites(program):
        groups.setdefault(site.made or site.node, []).append(site)
    for number, group in enumerate(groups.values()):
        yield _torch_place(program, group, _recorded_loss_at(trace, number))


def _recorded_loss_at(trace: TrainingTrace | None, number: int) -> Loss | None:
    """What a trace saw of a loss: of one model there may be many records, of which the first."""
    losses = [x for x in trace.losses if x.predictions.shape] if trace else []
    models = list(dict.fromkeys(x.model for x in losses))
    if number >= len(models):
        return None
    return next(x for x in losses if x.model == models[number])


def _torch_place(
    program: ProgramTree, group: Sequence[LossSite], loss: Loss | None
) -> HyperparameterPlace:
    first = group[0]
    adapter = Adapter(program, first.name, loss, first.node)
    name = loss.name if first.name == "expression" and loss else first.name

    def write(rewriting: Rewriting, value: str) -> None:
        for site in group:
            _write(rewriting, site, adapter, value)
        if first.made is not None:
            rewriting.replace(first.made, f"{_class(rewriting, first.made, value)}()")

    choices = tuple(dict.fromkeys((*adapter.choices(), *([name] if name in CLASSES else []))))
    return make_place("loss", name, program.line(first.made or first.node), write, choices=choices)


def _write(rewriting: Rewriting, site: LossSite, adapter: Adapter, value: str) -> None:
    name = _function(rewriting, site, value) if site.made is None else ""

    def change(updated: cst.BaseExpression) -> cst.BaseExpression:
        predictions, targets = _prediction_and_target(site, updated)
        nodes = {
            "fed_p": adapter.predictions(predictions, value),
            "fed_t": adapter.targets(targets, value),
        }
        if name or not isinstance(updated, cst.Call):
            return fill(f"{name}(fed_p, fed_t)", **nodes)
        args = [updated.args[n].with_changes(value=node) for n, node in enumerate(nodes.values())]
        return updated.with_changes(args=[*args, *updated.args[2:]])

    rewriting.change(site.node, change)


def _prediction_and_target(
    site: LossSite, updated: cst.BaseExpression
) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """What the loss gets."""
    if site.difference is not None:
        operands = (site.difference.left, site.difference.right)
        return (operands[1], operands[0]) if site.swap else operands
    if not isinstance(updated, cst.Call) or len(updated.args) < 2:
        raise NotApplicable("The loss is not called with predictions and targets.")
    by_name = {x.keyword.value: x.value for x in updated.args if x.keyword}
    return (
        by_name.get("input", updated.args[0].value), by_name.get("target", updated.args[1].value)
    )  # fmt: skip


def _class(rewriting: Rewriting, construction: cst.Call, value: str) -> str:
    """The class as the program names the one before."""
    if isinstance(construction.func, cst.Attribute):
        return f"{rewriting.program.text(construction.func.value)}.{CLASSES[value]}"
    return rewriting.named(f"torch.nn.{CLASSES[value]}")


def _function(rewriting: Rewriting, site: LossSite, value: str) -> str:
    func = site.node.func if isinstance(site.node, cst.Call) else None
    if isinstance(func, cst.Attribute) and site.difference is None:
        return f"{rewriting.program.text(func.value)}.{FUNCTIONS[value]}"
    return rewriting.named(f"torch.nn.functional.{FUNCTIONS[value]}")
