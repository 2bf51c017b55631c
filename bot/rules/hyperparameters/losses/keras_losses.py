"""The loss that a Keras model is compiled with: a name, an object or a function."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from bot.models.training import Loss, TrainingTrace
from bot.rules.hyperparameters.place import HyperparameterPlace, place
from bot.rules.hyperparameters.text.arguments import argument, keywords, with_argument
from bot.rules.hyperparameters.text.expressions import NotApplicable
from bot.rules.hyperparameters.text.program import ProgramTree
from bot.rules.hyperparameters.text.rewriting import Rewriting
from bot.rules.hyperparameters.text.spelling import snake
from bot.rules.hyperparameters.text.uses import worded
from bot.rules.hyperparameters.training.optimizers import compilations
from sandbox.probe.training.vocabulary import KERAS_LOSSES

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
    seen: set[cst.CSTNode] = set()
    for call in compilations(program):
        given = argument(call, "loss", 1)
        written = worded(program, given)
        if given is None or written is None or written in seen:
            continue
        seen.add(written)
        known = _seen(program, call, trace)
        value = _value(program, written)
        if value:
            yield _place(program, call, written, value, known)


def _seen(program: ProgramTree, call: cst.Call, trace: TrainingTrace | None) -> Loss | None:
    """What the trace says of the loss: of the line, otherwise the only one."""
    losses = trace.losses if trace else ()
    at = [x for x in losses if x.line == program.traced(program.line(call))]
    return (*at, *losses)[0] if losses else None


def _value(program: ProgramTree, written: cst.BaseExpression) -> str:
    if isinstance(written, cst.SimpleString):
        name = str(written.evaluated_value)
    elif isinstance(written, cst.Call):
        name = program.called(written).rpartition(".")[2]
    else:
        name = program.name(written).rpartition(".")[2]
    short = snake(name) if not name.isupper() else name.lower()
    return _ALIASES.get(short, short)


def fitting_losses(known: Loss | None) -> tuple[str, ...]:
    """The losses whose targets have the form that a trace saw; all without one."""
    if known is None or not known.predictions.shape:
        return tuple(dict.fromkeys((_SPARSE, *_MANY, *_ONE)))
    units, shape = known.predictions.shape[-1], known.targets.shape
    alike = len(shape) == len(known.predictions.shape) and shape[-1] == units
    if units > 1 and not alike:
        return (_SPARSE,)
    return _ONE if units == 1 else (*_MANY, *_ELEMENTWISE)


def _place(
    program: ProgramTree,
    call: cst.Call,
    written: cst.BaseExpression,
    value: str,
    known: Loss | None,
) -> HyperparameterPlace:
    choices = fitting_losses(known)

    def write(rewriting: Rewriting, wanted: str) -> None:
        name = _form(wanted, choices)
        text = _text(rewriting, written, name)
        if isinstance(written, cst.SimpleString | cst.Call):
            rewriting.replace(written, text)
        else:
            rewriting.change(call, with_argument("loss", text, 1))

    return place(
        "loss", value, program.line(written), write,
        choices=tuple(dict.fromkeys((*choices, *([value] if value in KERAS_LOSSES else [])))),
    )  # fmt: skip


def _form(wanted: str, choices: tuple[str, ...]) -> str:
    """The form of a crossentropy of classes that fits the labels."""
    if wanted not in (_SPARSE, *_MANY, *_ONE):
        raise NotApplicable(f"There is no loss named {wanted!r}.")
    if wanted in (_SPARSE, "categorical_crossentropy") and wanted not in choices:
        other = _SPARSE if wanted != _SPARSE else "categorical_crossentropy"
        if other not in choices:
            raise NotApplicable("Cross-entropy over classes needs one output per class.")
        return other
    return wanted


def _text(rewriting: Rewriting, written: cst.BaseExpression, name: str) -> str:
    """A name in the place of a name; an object where the loss gets logits and still can."""
    logits = isinstance(written, cst.Call) and "from_logits" in keywords(written)
    if isinstance(written, cst.Call) and logits and name in _CLASSES:
        value = rewriting.program.text(keywords(written)["from_logits"])
        own = rewriting.program.text(written.func).rpartition(".")[0]
        full = f"keras.losses.{_CLASSES[name]}"
        short = f"{own}.{_CLASSES[name]}" if own else rewriting.named(full)
        return f"{short}(from_logits={value})"
    quote = written.quote if isinstance(written, cst.SimpleString) else rewriting.quote
    return f"{quote}{KERAS_LOSSES.get(name, name)}{quote}"
