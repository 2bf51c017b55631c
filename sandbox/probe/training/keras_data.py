"""What `fit` and `evaluate` are given: the data, the loss that it feeds, the batches and the
plan.
"""

import math
import types

from . import keras_layers, numbers
from .core import STATE, contained
from .numbers import floor, trivial
from .records import WRITER
from .vocabulary import KERAS_LOSSES

# The batches that `fit` is fed, where they do not lie there as arrays: one of them is kept, and
# none is drawn that the program would not have drawn.

_DRAWING = (
    "FlatMap",
    "Interleave",
    "Generator",
    "RandomDataset",
    "SampleFrom",
    "Cache",
    "Snapshot",
)


def watch_batches(x, run):
    """The same source of batches; a generator tells the run of its first batch in passing."""
    if isinstance(x, types.GeneratorType):
        return _passing(x, run)
    if _is_indexed(x):
        _watch_items(type(x), run)
    return x


def _passing(generator, run):
    for batch in generator:
        run.offer(batch)
        yield batch


def _is_indexed(x):
    kinds = [kind.__name__ for kind in type(x).__mro__]
    return "PyDataset" in kinds or ("Sequence" in kinds and hasattr(type(x), "__getitem__"))


def _watch_items(kind, run):
    original = kind.__getitem__
    if getattr(original, "_passes", False):
        return

    def __getitem__(self, index):
        batch = original(self, index)
        run.offer(batch)
        return batch

    __getitem__._passes = True
    kind.__getitem__ = __getitem__


def from_dataset(x):
    """The first batch of a tf.data pipeline as it was before any shuffling, so that no order that
    the program draws changes; None where that cannot be had without side effects.
    """
    size, node, types = None, x, []
    while node is not None and len(types) < 50:
        types.append(type(node).__name__)
        if _calls_python(node):
            return None
        if "BatchDataset" in types[-1] and size is None:
            size = int(node._batch_size)
        if "Shuffle" in types[-1]:
            start = node._input_dataset
            _note_buffer(node, start)
        node = getattr(node, "_input_dataset", None)
    names = " ".join(types)
    if size is None or any(word in names for word in _DRAWING):
        return None
    if "Shuffle" not in names:
        return next(iter(x.take(1)))
    after = names[: names.rindex("Shuffle")]  # what the shuffled rows still go through
    if "Batch" not in after or "Map" in after or "Filter" in after:
        return None
    return next(iter(start.batch(max(size, 32)).take(1)))


@contained("buffers of tf.data")
def _note_buffer(node, before):
    """How many rows a shuffle draws from, and how many there are; nothing where that is unknown."""
    size, rows = getattr(node, "_buffer_size", None), before.cardinality()
    if size is not None and int(rows) > 0:
        STATE.facts.update(shuffle_buffer=int(size), shuffled_rows=int(rows))


def _calls_python(node):
    """Whether a pipeline runs the program's own Python, which may draw, count or print."""
    function = getattr(node, "_map_func", None)
    graph = getattr(getattr(function, "function", None), "graph", None)
    return graph is not None and any("PyFunc" in one.type for one in graph.get_operations())


# What `fit` is given: the data, the loss that it feeds, and the plan.

_MOST_PLACES = 1 << 18
_MOST_ROWS, _PROBE_ROWS, _MOST_CLASSES, _MOST_LABELS = 4096, 128, 64, 1 << 20
_NAMES = {name: short for short, name in KERAS_LOSSES.items()}
_NAMES.update({"huber_loss": "huber", "kullback_leibler_divergence": "kld", "log_cosh": "logcosh"})
_LOGITS = ("binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy")


class FitData:
    """The data that a run was given, as far as it is there; `probe` is the batch that is looked at,
    `x` and `y` are its arrays: the first of several inputs or outputs; `targets` are all of them.
    """

    def __init__(self, keras, arguments, model):
        self.keras = keras
        self.fixed = _fixed_batch(model)
        self.x = self.y = self.targets = self.probe = self.samples = None
        self.alone = False
        self.batch_size, self.planned = arguments.get("batch_size"), "epochs" in arguments
        try:
            self._find(arguments.get("x"), arguments.get("y"))
        except Exception:  # a kind of data that is not known
            self.probe = None
        if self.probe is None and self.planned:
            STATE.cannot_see("batches of a %s before the first" % type(arguments.get("x")).__name__)

    def _find(self, x, y):
        if hasattr(x, "element_spec"):
            batch = from_dataset(x)
            x, y = batch[:2] if isinstance(batch, tuple) and len(batch) > 1 else (batch, None)
            self.batch_size = None if x is None else len(_leaves(self.keras, x)[0])
        elif x is not None and (y is not None or is_table(x)):
            self.samples = len(_leaves(self.keras, x)[0])
            if self.planned:  # a loop of the program's own hands over one batch
                self.batch_size = self.batch_size or 32
        self.use(x, y)

    def use(self, x, y):
        """Take arrays, or one batch of them."""
        if x is None or (y is None and not is_table(x)):
            return
        xs = self.keras.tree.map_structure(array, x)
        ys = None if y is None else self.keras.tree.map_structure(array, y)
        self.x, self.targets = _leaves(self.keras, xs)[0], ys
        self.alone = len(_leaves(self.keras, xs)) == 1
        self.y = None if y is None else keras_layers.parts(ys)[0][1]
        self.batch_size = self.batch_size or len(self.x)
        places = max(1, math.prod(self.x.shape[1:]))
        few = max(self.batch_size, _MOST_PLACES // places)  # no more than a step itself takes
        most = min(_PROBE_ROWS, max(32, self.batch_size), few)
        rows = slice(self.fixed) if self.fixed else spread_rows(len(self.x), most)

        def thin(values):
            return _tensor(self.keras, values[rows])

        self.probe = tuple(
            None if one is None else self.keras.tree.map_structure(thin, one) for one in (xs, ys)
        )

    def rows(self, values):
        return values[spread_rows(len(values), _MOST_ROWS)]


def _fixed_batch(model):
    """The only size of a batch that a model takes, as a stateful one does; None for any."""
    shape = getattr(model, "input_shape", None)  # absent before a model is built
    return shape[0] if isinstance(shape, tuple) and shape and isinstance(shape[0], int) else None


def _leaves(keras, values):
    return keras.tree.flatten(values)


def is_table(x):
    """Whether the inputs stand there all at once, and are not given one batch after another."""
    return hasattr(x, "shape") and len(x.shape) > 1


def array(value):
    """The values as an array of numpy."""
    import numpy

    if hasattr(value, "iloc"):
        value = value.to_numpy()
    if not isinstance(value, numpy.ndarray):
        value = numpy.asarray(value) if isinstance(value, list) else keras_layers.array(value)
    return value


def spread_rows(count, most):
    return slice(None, None, max(1, count // most)) if count > most else slice(None)


def _tensor(keras, values):
    if values.dtype.kind == "f":
        values = values.astype(keras.config.floatx())
    return keras.ops.convert_to_tensor(values)


def name_of(loss):
    """The canonical name of a loss, and whether it expects logits; one that the program's own
    `train_step` writes out is an "expression".
    """
    if loss is None:
        return "expression", None
    config = loss.get_config() if hasattr(loss, "get_config") else {}
    logits = config.get("from_logits", getattr(loss, "_fn_kwargs", {}).get("from_logits"))
    name = getattr(loss, "__name__", None) or getattr(loss, "name", None) or str(loss)
    name = _SHORT.get(name.lower(), name)
    name = "".join("_" + one.lower() if one.isupper() else one for one in name).lstrip("_")
    name = _NAMES.get(name, name)
    return name, bool(logits) if name in _LOGITS else None


_SHORT = {"bce": "binary_crossentropy", "mse": "mse", "mae": "mae"}


class RunDescription:
    """Writes down what a run was given."""

    def __init__(self, run):
        self.run = run

    def data_and_loss(self):
        run = self.run
        validation = run.given.get("validation_data")
        parts = self._split()
        if isinstance(validation, (list, tuple)) and len(validation) > 1:
            first = [_leaves(run.keras, one)[0] for one in validation[:2]]
            parts.append(("validation", *map(array, first)))
        is_foreign = run.look.is_foreign
        for part, x, y in parts:
            if x is not None and x.dtype.kind in "biuf":
                WRITER.put("data", **self._data(part, x, None if is_foreign else y))
        for at, output in enumerate(() if is_foreign else run.look.outputs):
            WRITER.put("loss", **self._loss(at, *output))

    def _split(self):
        """What is trained on, and the last rows that `validation_split` sets apart before any are
        shuffled.
        """
        data, share = self.run.data, self.run.given.get("validation_split") or 0
        if data.x is None or not data.samples or not 0 < share < 1:
            return [("train", data.x, data.y)]
        at = math.floor(data.samples * (1 - share))
        return [
            (part, data.x[rows], None if data.y is None else data.y[rows])
            for part, rows in (("train", slice(at)), ("validation", slice(at, None)))
        ]

    def _data(self, part, x, y):
        import numpy

        rows = self.run.data.rows(x)
        ids = rows.dtype.kind in "iu" and any(
            type(layer).__name__ == "Embedding" for layer in self.run.layers[:2]
        )
        fields = {
            "model": self.run.known.id,
            "part": part,
            "inputs": _summary(rows, x),
            "ids": ids,
            "targets": None if y is None else _summary(self.run.data.rows(y), y),
        }
        if not ids:
            fields.update(numbers.columns(numpy, as_table(rows, _MOST_ROWS)))
        if y is not None and part == "train" and not ids and self.run.data.alone:
            some = spread_rows(len(x), _MOST_ROWS // 8)
            samples, targets = numbers.thin(x[some]).astype("float64"), as_table(y[some])
            fields["agreement"] = numbers.agreement(numpy, samples, targets)
        if y is not None and y.dtype.kind in "biuf" and y.size <= _MOST_LABELS:
            fields["classes"] = numbers.classes(numpy, as_table(y))  # of all: some are rare
        return fields

    def _loss(self, at, output, place, predictions):
        """The loss of one output of the model: by its place among them, its name and its layer."""
        run = self.run
        name, logits = name_of(_part_of(run.loss or run.model.loss, at, output))
        several = len(run.look.outputs) > 1
        layer = run.layers[-1 if place is None or not several else place] if run.layers else None
        fields = {
            "model": run.known.id,
            "name": name,
            "from_logits": logits,
            **_prediction_fields(keras_layers.activation(layer) if layer else "", predictions),
            "targets": {"shape": [], "dtype": ""},
            "layer": place if several else None,
            "line": run.line,
        }
        if several:
            fields["settings"] = {"weight": _weight(run.model, at, output)}
        elif run.written is not None and run.written.broadcast:
            fields.update(settings={"broadcast": True}, call=run.written.line)
        elif run.given.get("class_weight"):
            weights = run.given["class_weight"]
            places = range(min(_MOST_CLASSES, max(weights) + 1))
            fields["settings"] = {"weights": [float(weights.get(one, 1.0)) for one in places]}
        whole = self._targets(at, output, predictions)
        return fields if whole is None else {**fields, **self._compared(name, whole)}

    def _targets(self, at, output, predictions):
        """What an output is compared with. A loss that is compiled, where `fit` is given inputs
        alone, compares outputs of their shape with the inputs: there is nothing else.
        """
        data = self.run.data
        if data.targets is not None:
            return _part_of(data.targets, at, output)
        has_loss = self.run.model.loss is not None
        return data.x if has_loss and data.x.shape[1:] == predictions.shape[1:] else None

    def _compared(self, name, whole):
        targets = self.run.data.rows(whole)
        sparse = name == "sparse_categorical_crossentropy"  # a class for each place, of any shape
        target_table = as_table(targets.reshape(-1) if sparse else targets)
        integral = numbers.is_integral(target_table.reshape(-1))
        shares = numbers.shares(target_table, integral)
        return {
            "targets": _summary(targets, whole),
            "one_hot": numbers.is_one_hot(target_table),
            "integer_targets": integral,
            "class_shares": shares,
            "trivial": self._trivial(name, target_table, shares),
            "floor": floor(name, target_table),
        }

    def _trivial(self, name, target_table, shares):
        """Keras weighs each sample by its class, and takes the mean over the samples."""
        weights = self.run.given.get("class_weight") or {}
        weight_list = [float(weights.get(place, 1.0)) for place in range(max(2, len(shares)))]
        if not weights or len(weight_list) > _MOST_CLASSES:
            return trivial(name, target_table, shares)
        if name != "binary_crossentropy":
            return trivial(name, target_table, shares, weight_list)
        baseline = (
            trivial(name, target_table, shares, (weight_list[1] / weight_list[0],))
            if weight_list[0]
            else None
        )
        return None if baseline is None else weight_list[0] * baseline

    def plan(self):
        run, arguments = self.run, self.run.given
        epochs = arguments.get("epochs")
        WRITER.put(
            "plan",
            model=run.known.id,
            batch_size=run.data.batch_size,
            samples=run.data.samples if run.fitted else None,
            epochs=max(epochs or 0, run.known.epochs) or None,
            steps_per_epoch=self._steps(),
            shuffle=bool(arguments.get("shuffle")) if run.fitted and run.data.samples else None,
            metrics=run.known.metrics or _metrics(run.model),
            line=run.line,
        )

    def _steps(self):
        data = self.run.data
        if self.run.given.get("steps_per_epoch"):
            return self.run.given["steps_per_epoch"]
        if not data.samples or not self.run.fitted:
            return None
        split = self.run.given.get("validation_split") or 0
        return math.ceil(data.samples * (1 - split) / data.batch_size)


def _metrics(model):
    try:
        return [str(one) for one in model.metrics_names][:20]
    except Exception:  # a model that was not compiled
        return []


def _part_of(values, at, output):
    """What belongs to an output: the loss, weight or targets of its name or place."""
    if isinstance(values, dict):
        return values.get(output)
    value_parts = keras_layers.parts(values)
    return value_parts[at if at < len(value_parts) else 0][1] if value_parts else None


def _weight(model, at, output):
    weights = getattr(getattr(model, "_compile_loss", None), "_user_loss_weights", None)
    weight = 1.0 if weights is None else _part_of(weights, at, output)
    return float(weight) if isinstance(weight, (int, float)) else 1.0


def _prediction_fields(last, predictions):
    """What a loss is fed."""
    import numpy

    table = as_table(predictions)
    return {
        "activation": last or numbers.activation(numpy, table) or "linear",
        "predictions": _summary(predictions, predictions),
        "rows_sum_to_one": numbers.rows_sum_to_one(table),
        "columns_sum_to_one": numbers.columns_sum_to_one(numpy, table),
    }


def _summary(rows, whole):
    import numpy

    return numbers.summary(numpy, keras_layers.flat(rows, 1 << 16), whole.shape, whole.dtype)


def as_table(values, most=None):
    """Rows by the entries of the last axis, at most about so many; one dimension is a column."""
    table = values.reshape(-1, 1) if values.ndim == 1 else values.reshape(-1, values.shape[-1])
    if most is None or len(table) <= most:
        return table.astype("float64")
    apart, inside = len(table) // most, len(table) // len(values)
    while math.gcd(apart, inside) > 1:  # else it meets one and the same place of every image
        apart += 1
    return table[::apart].astype("float64")
