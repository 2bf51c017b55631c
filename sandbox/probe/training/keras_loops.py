"""Loops that call a Keras optimiser themselves, one step for each `apply` that runs eagerly."""

import weakref

from . import keras_run, program
from .core import STATE, patch, quiet

MADE = []
_MOST_MADE = 200


class LoopsSeen:
    """The last loss that ran eagerly, and what the model was last given."""

    def __init__(self):
        self.loss = self.object = self.targets = None
        self.inputs = {}
        self.runs = weakref.WeakKeyDictionary()


SEEN = LoopsSeen()


def install(keras):
    patch(keras.Optimizer, "apply", _apply(keras))
    patch(keras.losses.Loss, "__call__", _loss)
    layer = keras.layers.Layer

    def __call__(self, *args, **kwargs):
        if args and not keras_run.ACTIVE:
            SEEN.inputs[id(self)] = args[0]
            if len(SEEN.inputs) > _MOST_MADE:
                SEEN.inputs.clear()
        return layer.__call__(self, *args, **kwargs)

    keras.Model.__call__ = __call__


def _loss(original):
    def __call__(self, y_true, y_pred, *args, **kwargs):
        result = original(self, y_true, y_pred, *args, **kwargs)
        if not keras_run.ACTIVE:
            _noted(self, y_true, result)
        return result

    return __call__


@quiet("Keras losses")
def _noted(loss, targets, result):
    SEEN.object = loss
    if _has_values(result):
        SEEN.loss, SEEN.targets = result, targets


def _has_values(tensor):
    """Whether a tensor is computed: not symbolic, traced or without a value."""
    name = type(tensor).__name__
    return "Symbolic" not in name and "Tracer" not in name and name != "KerasTensor"


def _apply(keras):
    def make(original):
        def apply(self, grads, trainable_variables=None):
            run = None
            if not keras_run.ACTIVE:
                run = _before(keras, self, list(grads), trainable_variables)
            result = original(self, grads, trainable_variables)
            if run is not None:
                run.one_step(SEEN.loss)
            return result

        return apply

    return make


@quiet("Keras loops")
def _before(keras, optimizer, gradients, variables):
    if not all(one is None or _has_values(one) for one in gradients):
        STATE.cannot_see("steps inside a compiled function that the program wrote itself")
        return None
    run = SEEN.runs.get(optimizer)
    if run is None:
        run = _new(keras, optimizer, list(variables or optimizer._trainable_variables))
    return run


def _new(keras, optimizer, variables):
    model = _model(variables)
    if model is None:
        return None
    given = {"x": SEEN.inputs.get(id(model)), "y": SEEN.targets}
    run = keras_run.KerasRun(keras, model, given, program.line())
    run.fitted, run.loss, run.optimizer = False, SEEN.object, optimizer
    run.start()
    SEEN.runs[optimizer] = run
    return run


def _model(variables):
    """The smallest model that holds all variables."""
    wanted = {id(one) for one in variables}
    del MADE[:-_MOST_MADE]
    made = [one() for one in MADE]
    built = [one for one in made if getattr(one, "built", False)]
    found = [one for one in built if wanted <= {id(variable) for variable in one.variables}]
    return min(found, key=lambda one: len(one.variables), default=None)
