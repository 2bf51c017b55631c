"""Loops that call a Keras optimiser themselves, one step for each `apply` that runs."""

import inspect
import sys
import weakref

from . import keras_data, keras_expressions, keras_layers, keras_probe, keras_run, program
from .core import STATE, follow, patch, quiet

MADE = []
_MOST_MADE = 200


class LoopsSeen:
    """The last loss, and what the model was last given."""

    def __init__(self):
        self.loss = self.object = self.targets = self.result = None
        self.pairs, self.written = (), None
        self.losses = {}
        self.passed = {}
        self.runs, self.known = weakref.WeakKeyDictionary(), weakref.WeakSet()


SEEN, TRACED = LoopsSeen(), LoopsSeen()
"""What ran eagerly, and what was traced into a graph."""
RECORDER = keras_expressions.ComparisonRecorder()


def install_loops(keras):
    patch(keras.Optimizer, "apply", _apply(keras))
    follow(keras.losses.Loss, "__call__", _judged)
    watch_functions(keras.losses)
    if keras.backend.backend() == "tensorflow":
        tensorflow = sys.modules["tensorflow"]
        patch(tensorflow.GradientTape, "gradient", _gradient)
        keras_expressions.watch_tensorflow(tensorflow.nn, _called)
    layer, on_tensorflow = keras.layers.Layer, keras.backend.backend() == "tensorflow"

    def __call__(self, *args, **kwargs):
        result = layer.__call__(self, *args, **kwargs)
        if args and not keras_run.ACTIVE and self not in SEEN.known:
            if len(SEEN.passed) > _MOST_MADE:
                SEEN.passed.clear()
            SEEN.passed[id(self)] = (args[0], result)
            if on_tensorflow:
                RECORDER.begin()
        return result

    keras.Model.__call__ = __call__


def watch_functions(losses):
    """Watch the loss functions of a module, `keras.losses` or that of `tf.keras`."""
    keras_expressions.watch(losses, _called)


def _called(function, targets, result):
    if not keras_run.ACTIVE:
        _noted(function, targets, result)


def _gradient(original):
    def gradient(self, target, sources, *args, **kwargs):
        if not keras_run.ACTIVE:
            _differentiated(target, sources)
        return original(self, target, sources, *args, **kwargs)

    return gradient


@quiet("gradients of Keras loops")
def _differentiated(loss, sources):
    """The loss of a loop that may have written it out itself."""
    RECORDER.end()
    SEEN.pairs = RECORDER.take()
    if getattr(loss, "shape", None) == ():
        seen = SEEN if _has_values(loss) else TRACED
        seen.loss = loss
        if isinstance(sources, (list, tuple)):
            seen.losses.update((id(one), loss) for one in sources)


def _judged(result, loss, y_true, *_args, **_kwargs):
    if not keras_run.ACTIVE:
        _noted(loss, y_true, result)


@quiet("Keras losses")
def _noted(loss, targets, result):
    SEEN.object = loss
    if _has_values(result):
        SEEN.loss, SEEN.targets = result, targets
    elif keras_probe.is_traced(result):
        TRACED.object, TRACED.targets, TRACED.result = loss, targets, result


def _has_values(tensor):
    """Whether a tensor is computed: not symbolic, traced or without a value."""
    name = type(tensor).__name__
    return "Symbolic" not in name and "Tracer" not in name and name != "KerasTensor"


def _apply(keras):
    def make(original):
        def apply(self, grads, trainable_variables=None):
            run = None
            if not keras_run.ACTIVE:
                run = _before_step(keras, self, list(grads), trainable_variables)
            result = original(self, grads, trainable_variables)
            if run is not None:
                run.one_step(_loss_of(SEEN, trainable_variables))
            return result

        return apply

    return make


def _loss_of(seen, variables):
    """The loss that was differentiated by these variables, the last one where that is not known."""
    is_list = isinstance(variables, (list, tuple)) and variables
    return seen.losses.get(id(variables[0]), seen.loss) if is_list else seen.loss


@quiet("Keras loops")
def _before_step(keras, optimizer, gradients, variables):
    variables = list(variables or optimizer._trainable_variables)
    if any(keras_probe.is_traced(one) for one in gradients) and keras_probe.are_seen():
        return _traced(keras, optimizer, gradients, variables)
    if not all(one is None or _has_values(one) for one in gradients):
        STATE.cannot_see("steps in a compiled function of the program")
        return None
    if keras.backend.backend() == "torch":
        _take_torch()
    return _begins(keras, optimizer, gradients, variables)


def _begins(keras, optimizer, gradients, variables, line=None):
    run = SEEN.runs.get(optimizer)
    if run is None:
        run = _new(keras, optimizer, variables, line or program.line())
    if run.look is not None and run.look.taken:
        run.look.given(gradients, variables)
    return run


def _traced(keras, optimizer, gradients, variables):
    """A step that is traced into a graph: what it hands over is looked at as an eager one."""
    model, line = _model(variables), program.line()
    if model is None:
        return None
    step = keras_probe.TracedStep([*variables, *keras_probe.moved(keras, model)])
    known = TRACED.object if step.belongs(TRACED.result) else None
    taken, returned = SEEN.passed.get(id(model), (None, None))
    loss = _loss_of(TRACED, variables)
    written, targets = None, TRACED.targets
    if known is None:
        written = keras_expressions.ComparedValues(None, None)
        if keras_probe.is_traced(loss) and keras_probe.is_traced(returned):
            written = keras_expressions.traced(loss, returned)
        targets = written.targets

    def begin(gradients, taken, targets):
        if optimizer not in SEEN.runs:
            SEEN.passed[id(model)] = (taken, None)
            SEEN.object, SEEN.targets, SEEN.written = known, targets, written
        return _begins(keras, optimizer, gradients, variables, line)

    step.begins(begin, (loss, gradients, taken, targets))
    return step


def _take_torch():
    from .torch_losses import LOSSES

    if LOSSES.backward:
        SEEN.loss = LOSSES.backward[-1]
        LOSSES.backward, LOSSES.values = [], []


def _new(keras, optimizer, variables, line):
    model = _model(variables)
    if model is None:
        SEEN.runs[optimizer] = run = keras_run.BareRun(optimizer, line)
        return run
    taken, returned = SEEN.passed.pop(id(model), (None, None))
    SEEN.known.add(model)
    if SEEN.object is None and returned is not None and _has_values(returned):
        SEEN.written = _written(model, returned, _loss_of(SEEN, variables))
        SEEN.targets = SEEN.written.targets
    run = keras_run.KerasRun(keras, model, {"x": taken, "y": SEEN.targets}, line)
    run.fitted, run.loss, run.optimizer = False, SEEN.object, optimizer
    if SEEN.written is not None:
        run.loss, run.broadcast = SEEN.written.loss, SEEN.written.broadcast
        if SEEN.targets is None:
            STATE.cannot_see("predictions and targets of a loss written out in a Keras loop")
    run.start()
    SEEN.runs[optimizer] = run
    SEEN.object, SEEN.targets, SEEN.written, SEEN.pairs = None, None, None, ()
    return run


def _written(model, returned, loss):
    """The loss that a loop writes out, as far as values tell what it compares."""
    try:
        penalty = sum(float(keras_layers.array(one).sum()) for one in model.losses)
        return keras_expressions.read(SEEN.pairs, returned, loss, penalty)
    except Exception:  # values of a kind that is not known
        return keras_expressions.ComparedValues(None, None)


def _model(variables):
    """The smallest model that holds all variables."""
    wanted = {id(one) for one in variables}
    del MADE[:-_MOST_MADE]
    made = [one() for one in MADE]
    built = [one for one in made if getattr(one, "built", False)]
    found = [one for one in built if wanted <= {id(variable) for variable in one.variables}]
    return min(found, key=lambda one: len(one.variables), default=None)


# Watches training in Keras 3: `Model.fit` through a callback of its own, `train_on_batch`, and
# loops that call an optimiser themselves.


def install(keras):
    if not hasattr(keras, "ops"):
        return  # Keras before 3
    patch(keras.Model, "fit", _fit(keras, _watcher(keras.callbacks.Callback)))
    patch(keras.Model, "train_on_batch", _train_on_batch(keras))
    original = keras.Model.__new__

    def __new__(cls, *args, **kwargs):
        made = original(cls, *args, **kwargs)
        _made(made)
        return made

    keras.Model.__new__ = staticmethod(__new__)
    install_loops(keras)
    keras_run.install(keras)


@quiet("lines")
def _made(model):
    program.remember(model, skip_init=True)
    MADE.append(weakref.ref(model))


def _fit(keras, watcher):
    def make(original):
        signature = inspect.signature(original)

        def fit(self, *args, **kwargs):
            bound = _before_fit(keras, signature, self, args, kwargs, watcher)
            keras_run.ACTIVE.append(self)
            try:
                if bound is None:
                    return original(self, *args, **kwargs)
                return original(*bound.args, **bound.kwargs)
            finally:
                keras_run.ACTIVE.pop()

        return fit

    return make


@quiet("Model.fit")
def _before_fit(keras, signature, model, args, kwargs, watcher):
    """The arguments with our callback among the others; the program's own list stays as it is."""
    bound = signature.bind(model, *args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    run = keras_run.KerasRun(keras, model, dict(given), program.line())
    given["x"] = keras_data.watched(given.get("x"), run)
    ours, callbacks = watcher(run), given.get("callbacks")
    if isinstance(callbacks, keras.callbacks.CallbackList):
        ours.set_model(model)
        callbacks.append(ours)
        return bound
    if callbacks is None:
        callbacks = []
    elif not isinstance(callbacks, (list, tuple)):
        callbacks = [callbacks]
    given["callbacks"] = [*callbacks, ours]
    return bound


def _train_on_batch(keras):
    runs = {}

    def make(original):
        def train_on_batch(self, x, y=None, *args, **kwargs):
            run = _batch_begins(keras, runs, self, x, y)
            keras_run.ACTIVE.append(self)
            try:
                result = original(self, x, y, *args, **kwargs)
            finally:
                keras_run.ACTIVE.pop()
            if run is not None:
                run.one_step(result)
            return result

        return train_on_batch

    return make


@quiet("train_on_batch")
def _batch_begins(keras, runs, model, x, y):
    run = runs.get(id(model))
    if run is None or run.model is not model:
        given = {"x": x, "y": y, "batch_size": getattr(x, "shape", (None,))[0]}
        run = runs[id(model)] = keras_run.KerasRun(keras, model, given, program.line())
        run.fitted = False
        if model.built:
            run.start()
    return run


def _watcher(base):
    class Watcher(base):
        """Tells a `KerasRun` what happens."""

        def __init__(self, run):
            super().__init__()
            self._run = run

        def on_train_begin(self, logs=None):
            self._run.begin()

        def on_train_batch_end(self, batch, logs=None):
            self._run.step(batch, logs)

        def on_epoch_begin(self, epoch, logs=None):
            self._run.epoch_begins(epoch)

        def on_epoch_end(self, epoch, logs=None):
            self._run.epoch_ends(epoch, logs)

        def on_train_end(self, logs=None):
            self._run.end()

    return Watcher
