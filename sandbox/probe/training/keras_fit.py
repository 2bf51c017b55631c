"""Watches training in Keras 3: `Model.fit` through a callback of its own, `train_on_batch`, and
loops that call an optimiser themselves.
"""

import inspect
import weakref

from . import keras_batches, keras_evaluation, keras_loops, keras_run, program
from .core import patch, quiet


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
    keras_loops.install(keras)
    keras_evaluation.install(keras)


@quiet("lines")
def _made(model):
    program.remember(model, skip_init=True)
    keras_loops.MADE.append(weakref.ref(model))


def _fit(keras, watcher):
    def make(original):
        signature = inspect.signature(original)

        def fit(self, *args, **kwargs):
            bound = _before(keras, signature, self, args, kwargs, watcher)
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
def _before(keras, signature, model, args, kwargs, watcher):
    """The arguments with our callback among the others; the program's own list stays as it is."""
    bound = signature.bind(model, *args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    run = keras_run.KerasRun(keras, model, dict(given), program.line())
    given["x"] = keras_batches.watched(given.get("x"), run)
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
