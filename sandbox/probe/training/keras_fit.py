"""Watches training in Keras 3: `Model.fit` through a callback of its own, `train_on_batch`, and
loops that call an optimiser themselves.
"""

import inspect
import sys
import weakref

from . import keras_data, keras_expressions, keras_layers, keras_probe, keras_run, program
from .core import STATE, follow, patch, quiet

# Loops that call a Keras optimiser themselves, one step for each `apply` that runs.

MODELS = []
_MOST_MADE = 200


class LoopsSeen:
    """The last loss, and what the model was last given."""

    def __init__(self):
        self.loss = self.object = self.targets = self.result = None
        self.pairs, self.written = (), None
        self.losses = {}
        self.sources, self.has_others = set(), False
        self.passed = {}
        self.runs, self.known = weakref.WeakKeyDictionary(), weakref.WeakSet()


SEEN_LOOPS, TRACED_LOOPS = LoopsSeen(), LoopsSeen()
"""What ran eagerly, and what was traced into a graph."""
RECORDER = keras_expressions.ComparisonRecorder()


def install_loops(keras):
    patch(keras.Optimizer, "apply", _apply(keras))
    follow(keras.losses.Loss, "__call__", _judged)
    watch_functions(keras.losses)
    if keras.backend.backend() == "tensorflow":
        tensorflow = sys.modules["tensorflow"]
        patch(tensorflow.GradientTape, "gradient", _gradient)
        keras_expressions.watch_tensorflow(tensorflow.nn, _note_call)
    layer, on_tensorflow = keras.layers.Layer, keras.backend.backend() == "tensorflow"

    def __call__(self, *args, **kwargs):
        result = layer.__call__(self, *args, **kwargs)
        if args and not keras_run.ACTIVE and self not in SEEN_LOOPS.known:
            if len(SEEN_LOOPS.passed) > _MOST_MADE:
                SEEN_LOOPS.passed.clear()
            SEEN_LOOPS.passed[id(self)] = (args[0], result)
            if on_tensorflow:
                RECORDER.begin()
        return result

    keras.Model.__call__ = __call__


def watch_functions(losses):
    """Watch the loss functions of a module, `keras.losses` or that of `tf.keras`."""
    keras_expressions.watch(losses, _note_call)


def _note_call(function, targets, result, predictions=None):
    if not keras_run.ACTIVE:
        _note_loss(function, targets, result)
        _note_order(function, targets, predictions)


@quiet("arguments of Keras losses")
def _note_order(function, targets, predictions):
    """A loss whose first argument is what a model returns, and whose second is not."""
    results = [result for _, result in SEEN_LOOPS.passed.values()]
    if any(one is targets for one in results) and not any(one is predictions for one in results):
        name = keras_data.name_of(function)[0]
        keras_run.tell_code(swapped_loss=name, swapped_line=program.line())


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
    SEEN_LOOPS.pairs = RECORDER.take()
    if isinstance(sources, (list, tuple)):
        SEEN_LOOPS.sources.update(map(_key, sources))
    else:
        SEEN_LOOPS.has_others = True
    if getattr(loss, "shape", None) == ():
        loops = SEEN_LOOPS if _has_values(loss) else TRACED_LOOPS
        loops.loss = loss
        if isinstance(sources, (list, tuple)):
            loops.losses.update((id(one), loss) for one in sources)


def _key(variable):
    """What is the same of a variable of Keras and of the one behind it."""
    return id(getattr(variable, "_value", variable))


def _note_target(variables):
    """A step that changes variables of which no gradient was ever asked."""
    keys, loops = set(map(_key, variables)), SEEN_LOOPS
    if keys and loops.sources and not loops.has_others and not keys & loops.sources:
        keras_run.tell_code(applied_to_others=program.line())


def _judged(result, loss, y_true, y_pred=None, *_args, **_kwargs):
    _note_call(loss, y_true, result, y_pred)


@quiet("Keras losses")
def _note_loss(loss, targets, result):
    SEEN_LOOPS.object = loss
    if _has_values(result):
        SEEN_LOOPS.loss, SEEN_LOOPS.targets = result, targets
    elif keras_probe.is_traced(result):
        TRACED_LOOPS.object, TRACED_LOOPS.targets, TRACED_LOOPS.result = loss, targets, result


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
                run.one_step(_loss_of(SEEN_LOOPS, trainable_variables))
            return result

        return apply

    return make


def _loss_of(loops, variables):
    """The loss that was differentiated by these variables, the last one where that is not known."""
    is_list = isinstance(variables, (list, tuple)) and variables
    return loops.losses.get(id(variables[0]), loops.loss) if is_list else loops.loss


@quiet("Keras loops")
def _before_step(keras, optimizer, gradients, variables):
    variables = list(variables or optimizer._trainable_variables)
    _note_target(variables)
    if any(keras_probe.is_traced(one) for one in gradients) and keras_probe.are_seen():
        return _trace_gradients(keras, optimizer, gradients, variables)
    if not all(one is None or _has_values(one) for one in gradients):
        STATE.cannot_see("steps in a compiled function of the program")
        return None
    if keras.backend.backend() == "torch":
        _take_torch()
    return _begins(keras, optimizer, gradients, variables)


def _begins(keras, optimizer, gradients, variables, line=None):
    run = SEEN_LOOPS.runs.get(optimizer)
    if run is None:
        run = _new(keras, optimizer, variables, line or program.line())
    if run.look is not None and run.look.taken:
        run.look.given(gradients, variables)
    return run


def _trace_gradients(keras, optimizer, gradients, variables):
    """A step that is traced into a graph: what it hands over is looked at as an eager one."""
    model, line = _model(variables), program.line()
    if model is None:
        return None
    step = keras_probe.TracedStep([*variables, *keras_probe.preserve_batch_state(keras, model)])
    step_object = TRACED_LOOPS.object if step.belongs(TRACED_LOOPS.result) else None
    model_input, result_tensor = SEEN_LOOPS.passed.get(id(model), (None, None))
    loss = _loss_of(TRACED_LOOPS, variables)
    expression, targets = None, TRACED_LOOPS.targets
    if step_object is None:
        expression = keras_expressions.ComparedValues(None, None)
        if keras_probe.is_traced(loss) and keras_probe.is_traced(result_tensor):
            expression = keras_expressions.trace_loss(loss, result_tensor)
        targets = expression.targets

    def begin(gradients, model_input, targets):
        if optimizer not in SEEN_LOOPS.runs:
            SEEN_LOOPS.passed[id(model)] = (model_input, None)
            SEEN_LOOPS.object, SEEN_LOOPS.targets, SEEN_LOOPS.written = (
                step_object,
                targets,
                expression,
            )
        return _begins(keras, optimizer, gradients, variables, line)

    step.begins(begin, (loss, gradients, model_input, targets))
    return step


def _take_torch():
    from .torch_losses import LOSSES

    if LOSSES.backward:
        SEEN_LOOPS.loss = LOSSES.backward[-1]
        LOSSES.backward, LOSSES.values = [], []


def _new(keras, optimizer, variables, line):
    model = _model(variables)
    if model is None:
        SEEN_LOOPS.runs[optimizer] = run = keras_run.BareRun(optimizer, line)
        return run
    model_input, result_tensor = SEEN_LOOPS.passed.pop(id(model), (None, None))
    SEEN_LOOPS.known.add(model)
    if SEEN_LOOPS.object is None and result_tensor is not None and _has_values(result_tensor):
        SEEN_LOOPS.written = _expression_of(model, result_tensor, _loss_of(SEEN_LOOPS, variables))
        SEEN_LOOPS.targets = SEEN_LOOPS.written.targets
    run = keras_run.KerasRun(keras, model, {"x": model_input, "y": SEEN_LOOPS.targets}, line)
    run.fitted, run.loss, run.optimizer = False, SEEN_LOOPS.object, optimizer
    if SEEN_LOOPS.written is not None:
        run.loss, run.written = SEEN_LOOPS.written.loss, SEEN_LOOPS.written
        if SEEN_LOOPS.targets is None:
            STATE.cannot_see("predictions and targets of a loss written out in a Keras loop")
    run.start()
    SEEN_LOOPS.runs[optimizer] = run
    SEEN_LOOPS.object, SEEN_LOOPS.targets, SEEN_LOOPS.written, SEEN_LOOPS.pairs = (
        None,
        None,
        None,
        (),
    )
    return run


def _expression_of(model, result_tensor, loss):
    """The loss that a loop writes out, as far as values tell what it compares."""
    try:
        penalty = sum(float(keras_layers.array(one).sum()) for one in model.losses)
        return keras_expressions.read_expression(SEEN_LOOPS.pairs, result_tensor, loss, penalty)
    except Exception:  # values of a kind that is not known
        return keras_expressions.ComparedValues(None, None)


def _model(variables):
    """The smallest model that holds all variables."""
    variable_ids = {id(one) for one in variables}
    del MODELS[:-_MOST_MADE]
    models = [one() for one in MODELS]
    built_models = [one for one in models if getattr(one, "built", False)]
    candidates = [
        one for one in built_models if variable_ids <= {id(variable) for variable in one.variables}
    ]
    return min(candidates, key=lambda one: len(one.variables), default=None)


def install(keras):
    if not hasattr(keras, "ops"):
        return  # Keras before 3
    patch(keras.Model, "fit", _fit(keras, _watcher(keras.callbacks.Callback)))
    patch(keras.Model, "train_on_batch", _train_on_batch(keras))
    original = keras.Model.__new__

    def __new__(cls, *args, **kwargs):
        model = original(cls, *args, **kwargs)
        _remember_model(model)
        return model

    keras.Model.__new__ = staticmethod(__new__)
    install_loops(keras)
    keras_run.install(keras)


@quiet("lines")
def _remember_model(model):
    program.remember(model, skip_init=True)
    MODELS.append(weakref.ref(model))


def _fit(keras, watcher):
    def make(original):
        signature = inspect.signature(original)

        def fit(self, *args, **kwargs):
            bound_arguments = _before_fit(keras, signature, self, args, kwargs, watcher)
            keras_run.ACTIVE.append(self)
            try:
                if bound_arguments is None:
                    return original(self, *args, **kwargs)
                return original(*bound_arguments.args, **bound_arguments.kwargs)
            finally:
                keras_run.ACTIVE.pop()

        return fit

    return make


@quiet("Model.fit")
def _before_fit(keras, signature, model, args, kwargs, watcher):
    """The arguments with our callback among the others; the program's own list stays as it is."""
    bound_arguments = signature.bind(model, *args, **kwargs)
    bound_arguments.apply_defaults()
    arguments = bound_arguments.arguments
    run = keras_run.KerasRun(keras, model, dict(arguments), program.line())
    arguments["x"] = keras_data.watch_batches(arguments.get("x"), run)
    ours, callbacks = watcher(run), arguments.get("callbacks")
    if isinstance(callbacks, keras.callbacks.CallbackList):
        ours.set_model(model)
        callbacks.append(ours)
        return bound_arguments
    if callbacks is None:
        callbacks = []
    elif not isinstance(callbacks, (list, tuple)):
        callbacks = [callbacks]
    arguments["callbacks"] = [*callbacks, ours]
    return bound_arguments


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
        arguments = {"x": x, "y": y, "batch_size": getattr(x, "shape", (None,))[0]}
        run = runs[id(model)] = keras_run.KerasRun(keras, model, arguments, program.line())
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
