"""Predictions and targets made to fit another loss."""

from __future__ import annotations

from typing import Literal

import libcst as cst

from bot.models.training import Loss
from bot.rules.hyperparameters.losses.torch_names import OF_VALUES
from bot.rules.hyperparameters.network.functions import of_function
from bot.rules.hyperparameters.text.expressions import NotApplicable, filled
from bot.rules.hyperparameters.text.program import ProgramTree
from sandbox.probe.training.vocabulary import OF_CLASSES

Form = Literal["indices", "column", "same", "flat", "tall", "other"]
_CASTS = ("float", "double", "long", "type", "to", "int")
_REDUCTIONS = ("mean", "max", "sum", "amax", "argmax", "values")
_LOGITS = {"cross_entropy": ("softmax", "log_softmax"), "bce_logits": ("sigmoid",)}
_VALUES = ("mse", "mae", "smooth_l1", "huber")


class Adapter:
    """Knows what a loss is fed: by a trace, otherwise by what the loss before it takes."""

    def __init__(
        self, program: ProgramTree, name: str, known: Loss | None, node: cst.CSTNode
    ) -> None:
        self._program = program
        self._known = known
        self._one_hot = _spread(program, node) or bool(known and known.one_hot)
        self._reduced = _reduces(node)
        self._form = _form(name, known)
        shape = known.predictions.shape if known else ()
        self._classes = (shape[1] if len(shape) > 1 else (*shape, 1)[0]) if shape else 0
        if known and len(shape) == 1 and known.targets.shape:
            self._classes = 1

    def choices(self) -> tuple[str, ...]:
        """The losses that can be fed here."""
        known, form = self._known, self._form
        if self._reduced and (known is None or known.integer_targets):
            return ("cross_entropy",)
        if form in ("indices", "column") and self._classes != 1:
            logs = known is not None and known.activation == "log_softmax"
            return OF_CLASSES if logs or known is None else ("cross_entropy",)
        if known is None:
            return OF_VALUES
        many = ("cross_entropy",) if self._one_hot and self._classes > 1 else ()
        return (*many, *(OF_VALUES if _unit(known) else _VALUES))

    def check(self, value: str) -> None:
        """Raises NotApplicable for a loss that cannot be fed here."""
        of_classes = value in OF_CLASSES and not self._reduced
        if of_classes and self._classes == 1:
            raise NotApplicable("Cross-entropy over classes needs one output per class.")
        if of_classes and self._form == "same" and not self._one_hot:
            raise NotApplicable("Cross-entropy over classes needs class targets.")
        if value in OF_VALUES and self._form in ("indices", "column") and self._classes < 2:
            raise NotApplicable("The program does not show how many classes there are.")

    def spreads(self, value: str) -> bool:
        """Whether indices of classes must become one-hot."""
        return value in OF_VALUES and self._form in ("indices", "column")

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

    def targets(self, node: cst.BaseExpression, value: str, one_hot: str) -> cst.BaseExpression:
        """In the form and the type that the loss takes."""
        if value in OF_CLASSES:
            return self._indices(node)
        real = self._known is None or self._known.targets.dtype.startswith(("float", "bfloat"))
        if self.spreads(value):
            flat = "fed_t.view(-1)" if self._form == "column" else "fed_t"
            return filled(f"{one_hot}({flat}, {self._classes}).float()", fed_t=node)
        cast = "" if real else ".float()"
        shape = {"flat": ".view(-1, 1)", "tall": ".view(-1)"}.get(self._form, "")
        return filled(f"fed_t{cast}{shape}", fed_t=node) if cast or shape else node

    def _indices(self, node: cst.BaseExpression) -> cst.BaseExpression:
        inner, cast = self._uncast(node)
        index = self._one_hot_of(inner)
        if index is not None:
            return index
        if self._form == "same" and self._one_hot:
            return filled("fed_t.argmax(dim=1)", fed_t=node)
        flat = ".view(-1)" if self._form == "column" else ""
        known = self._known
        whole = known is None or known.targets.dtype.startswith("int64")
        return filled(f"fed_t{flat}{'.long()' if cast or not whole else ''}", fed_t=inner)

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


def _form(name: str, known: Loss | None) -> Form:
    if known is None or not known.predictions.shape:
        return "indices" if name in OF_CLASSES else "same"
    fed, shape = known.predictions.shape, known.targets.shape
    if fed == shape:
        return "same"
    if len(shape) == len(fed) - 1:
        return "flat" if fed[-1] == 1 and len(fed) == 2 else "indices"
    if len(shape) == len(fed) == 2 and shape[-1] == 1:
        return "column"
    return "tall" if len(fed) == 1 and shape[1:] == (1,) else "other"


def _spread(program: ProgramTree, node: cst.CSTNode) -> bool:
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


def _unit(known: Loss) -> bool:
    """Whether all targets lie from zero to one."""
    low, high = known.targets.minimum, known.targets.maximum
    return low is not None and high is not None and low >= 0 and high <= 1
