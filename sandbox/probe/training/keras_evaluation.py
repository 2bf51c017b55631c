"""What a Keras model is given by `evaluate` and `predict` after it was trained."""

from . import keras_layers, keras_run, keras_told, numbers
from .core import patch, quiet
from .writer import WRITER

_MOST_CALLS, _MOST_ROWS, _MOST_PLACES, _FEW_ROWS = 8, 256, 1 << 14, 16
GIVEN = {}


def install(keras):
    for name in ("evaluate", "predict"):
        patch(keras.Model, name, _watched(keras, name))


def _watched(keras, name):
    def make(original):
        def watched(self, *args, **kwargs):
            if keras_run.ACTIVE:
                return original(self, *args, **kwargs)
            given = {**dict(zip(("x", "y"), args)), **kwargs}
            _look(keras, self, given.get("x"), given.get("y"))
            result = original(self, *args, **kwargs)
            if name == "evaluate":
                _judged(self, result)
            return result

        return watched

    return make


@quiet("evaluations")
def _judged(model, result):
    """Tell the loss that an evaluation came to: the program may print it under another name."""
    known = keras_run.MODELS.get(model)
    if known is None or not known.steps:
        return
    WRITER.put("evaluation", losses=[float(keras_run.loss_of(result))])


@quiet("evaluations")
def _look(keras, model, x, y):
    known = keras_run.MODELS.get(model)
    if known is None or not known.steps or not keras_told.is_table(keras.tree.flatten(x)[0]):
        return
    values = keras_told.array(keras.tree.flatten(x)[0])
    given = GIVEN.setdefault(known.id, {})
    if values.dtype.kind not in "biuf" or len(values) < _FEW_ROWS or len(given) >= _MOST_CALLS:
        return
    import numpy

    rows = values[:: max(1, len(values) // _MOST_ROWS)][:_MOST_ROWS]
    key = (values.shape, str(rows.reshape(-1)[:32]))
    if key not in given:
        given[key] = keras_told.as_table(rows, _MOST_PLACES)
        tables = [one for one in given.values() if one.shape[1] == given[key].shape[1]]
        table = numpy.concatenate(tables)
        told = numbers.summary(numpy, keras_layers.flat(table, 1 << 16), values.shape, values.dtype)
        judged = y is not None and not isinstance(y, int)  # of `predict`, the size of its batches
        targets = keras_layers.summary(keras.tree.flatten(y)[0]) if judged else None
        WRITER.put(
            "data", model=known.id, part="evaluation", inputs=told, ids=False, targets=targets,
            **numbers.columns(numpy, table),
        )  # fmt: skip
