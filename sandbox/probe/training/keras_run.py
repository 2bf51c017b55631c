"""One call of `Model.fit`: its steps, what a fixed batch shows, and what the model is given by
`evaluate` and `predict` afterwards.
"""

import itertools
import weakref

from . import keras_data, keras_layers, keras_probe, numbers, program, reading, source, watched
from .core import NO_MODEL, STATE, contained, patch, quiet, sampled
from .records import WRITER
from .row_labels import RowLabels, keys_of

# One call of `Model.fit`: its steps, and on sampled ones what a fixed batch shows.


class KnownModel:
    """What is known of a model over all calls of `fit`."""

    def __init__(self, number):
        self.id = "model-%d" % number
        self.optimizer = "optimizer-%d" % number
        self.steps = self.epochs = 0
        self.described = self.fed = self.has_modes = False
        self.rows = None
        self.metrics = ()


_SOME_STEPS = 20
CODE = {"modes": [], "facts": STATE.facts}
"""What is known of the code around a training."""


def tell_code(modes=(), **facts):
    """Write down all that is known of the code once more, with what is new."""
    CODE["modes"] += modes
    CODE["facts"].update(facts)
    WRITER.put("code", **CODE)


def finish():
    """Tell what is known of the code at the end."""
    fields = {**source.roots(), **reading.facts()} if STATE.steps else {}
    if fields or STATE.facts:
        tell_code(**fields)


MODELS, _NUMBERS = weakref.WeakKeyDictionary(), itertools.count()
ACTIVE = []
"""The models that Keras itself trains right now."""


class BareRun:
    """The training of variables that no model holds: its losses and rates alone."""

    look = None

    def __init__(self, optimizer, line):
        self.optimizer, self.line, self.given = optimizer, line, {}
        self.known = KnownModel(next(_NUMBERS))
        self.known.id = ""
        STATE.cannot_see(NO_MODEL)
        WRITER.put("optimizer", **keras_layers.describe_optimizer(self))

    @quiet("steps without a model")
    def one_step(self, result):
        """A step, with its loss where that is known."""
        number, rate = self.known.steps, keras_layers.rate(self)
        fields = {"optimizer": self.known.optimizer, "step": number, "epoch": None, "rate": rate}
        WRITER.step(number, {**fields, "loss": _number(result)})
        self.known.steps += 1
        STATE.steps += 1


class KerasRun:
    """The state of one `fit`."""

    def __init__(self, keras, model, arguments, line):
        self.keras, self.model, self.given, self.line = keras, model, arguments, line
        self.known = MODELS.get(model) or KnownModel(next(_NUMBERS))
        MODELS[model] = self.known
        self.batch, self.epoch = -1, 0
        self.total = self.count = 0.0
        self.data = self.look = None
        self.layers = []
        self.fitted, self.offered = True, None
        self.loss = self.optimizer = None
        self.written = None
        self.own_step = type(model).train_step is not keras.Model.train_step

    @quiet("the start of fit")
    def begin(self):
        self.start()

    def start(self):
        """Describe the model before its first step."""
        self._stop_torch()
        self.data = keras_data.FitData(self.keras, self.given, self.model)
        self.layers = keras_layers.layers(self.model)
        self.look = keras_probe.Look(self)
        description = keras_data.RunDescription(self)
        if not self.known.described:
            self.known.described = True
            self.look.take()
            WRITER.put("model", **keras_layers.describe_layers(self))
            WRITER.put("optimizer", **keras_layers.describe_optimizer(self))
        if self.data.probe is not None and not self.known.fed:
            self._feed(description)
        description.plan()
        self._look_for_frozen()
        watched.look_at_callbacks(self.given.get("callbacks") or ())
        self._prepare()

    def _feed(self, description):
        self.known.fed = True
        description.data_and_loss()
        self._look_at_rows()
        shapes, line = self.look.outer or ((), 0)
        if shapes:
            tell_code(outer_shapes="%s and %s" % tuple(shapes), outer_line=line)

    @contained("rows of Keras data")
    def _look_at_rows(self):
        """Which rows come with several labels, and the first rows with their labels."""
        data, pairs = self.data, RowLabels()
        if data.x is None or data.y is None or data.x.dtype.kind != "f" or not data.alone:
            return
        rows, labels = data.rows(data.x), _labels_of(data.rows(data.y))
        pairs.add_labels(keys_of(rows), labels)
        tell_code(**pairs.facts(), **source.roots())
        if data.samples:
            few = slice(_MOST_ALIKE)
            self.known.rows = data.x[few].copy(), data.y[few].copy()

    @quiet("batches")
    def offer(self, batch):
        """The first batch of a source that gives them one by one."""
        if self.offered is None and isinstance(batch, (list, tuple)) and len(batch) > 1:
            self.offered = tuple(batch[:2])

    def _take_offered(self):
        if self.offered and self.data.probe is None:
            self.data.use(*self.offered)
            if self.data.probe is not None and not self.known.fed:
                self.look.take()
                self._feed(keras_data.RunDescription(self))

    @quiet("train_on_batch")
    def one_step(self, result):
        """A step by `train_on_batch`, whose loss is told for the batch alone."""
        if self.look is None:
            self.start()
        self._step(1, _number(loss_of(result)))
        if self.known.steps in (1, 20):
            keras_data.RunDescription(self).plan()

    def _stop_torch(self):
        if self.keras.backend.backend() == "torch":
            from .torch_forward import FORWARD
            from .torch_losses import LOSSES

            FORWARD.compiled.append(self.model)
            FORWARD.arm(False, False)
            LOSSES.wanted = False
            LOSSES.pending.clear()

    def _prepare(self):
        """Before a sampled step: the gradients, outputs and weights that it starts from."""
        if sampled(self.known.steps) and self.look is not None:
            self.look.take()

    @quiet("steps of fit")
    def step(self, batch, logs):
        batches = max(1, batch - self.batch)
        self.batch = batch
        loss = self._loss(batch, batches, logs or {})
        self._step(batches, loss)

    def _step(self, batches, loss):
        self.known.steps += batches - 1
        number = self.known.steps
        fields = {
            "optimizer": self.known.optimizer,
            "step": number,
            "epoch": self.epoch if self.fitted else None,
            "loss": loss,
            "rate": keras_layers.rate(self),
        }
        if self.look is not None and self.look.taken:
            fields.update(self.look.told())
        WRITER.step(number, fields)
        self.known.steps += 1
        STATE.steps += batches
        if self.known.steps >= _SOME_STEPS and not self.known.has_modes:
            self.known.has_modes = True
            self._look_at_modes()
        self._take_offered()
        self._prepare()

    @contained("modes of Keras layers")
    def _look_at_modes(self):
        norms = [x for x in self.layers if type(x).__name__ == "BatchNormalization" and x.trainable]
        if norms and all(keras_layers.is_evaluating(one) for one in norms):
            mode = {"layers": ["BatchNorm"], "evaluating": self.known.steps}
            tell_code(modes=[mode])

    @contained("frozen Keras models")
    def _look_for_frozen(self):
        """A model of which nothing can change, although it is trained."""
        if self.model.weights and not self.model.trainable_weights:
            tell_code(frozen_model=True, frozen_line=source.line_of_frozen())

    @contained("metrics of Keras")
    def _look_at_metrics(self):
        """A metric that takes what is above a threshold for a class."""
        flat = getattr(getattr(self.model, "_compile_metrics", None), "metrics", None) or ()
        limits = [getattr(one, "threshold", None) for one in flat]
        limits = [float(one) for one in limits if isinstance(one, (int, float))]
        if limits:
            line = source.line_of_keyword("compile", "metrics") or self.line
            tell_code(threshold=max(limits), threshold_line=line)

    def _loss(self, batch, steps, logs):
        """The loss of these steps alone: Keras tells the mean over the epoch so far, a `train_step`
        of the program's own what it likes.
        """
        mean = _number(logs.get("loss", _only(logs) if self.own_step else None))
        if mean is None or (self.own_step and not self._is_mean(mean)):
            return mean
        size = steps * (self.data.batch_size or 1)
        if self.data.samples and not self.given.get("steps_per_epoch"):
            size = min(size, self.data.samples - self.count) or size
        before, self.total = self.total, mean * (self.count + size)
        self.count += size
        return (self.total - before) / size

    def _is_mean(self, value):
        means = [one for one in self.model.metrics if type(one).__name__ == "Mean"]
        return any(abs(_number(one.result()) - value) <= 1e-6 * abs(value) for one in means)

    @quiet("epochs of fit")
    def epoch_begins(self, epoch):
        self.batch, self.epoch = -1, epoch
        self.total = self.count = 0.0

    @quiet("epochs of fit")
    def epoch_ends(self, epoch, logs):
        self.known.epochs += 1
        values = {key: _number(value) for key, value in (logs or {}).items()}
        self.known.metrics = [key for key in values if not key.startswith("val_")]
        WRITER.put("epoch", model=self.known.id, epoch=epoch, step=self.known.steps, values=values)

    @quiet("the end of fit")
    def end(self):
        self._look_at_metrics()
        keras_data.RunDescription(self).plan()
        WRITER.flush()


def loss_of(result):
    """The loss in what Keras returns of a batch or an evaluation."""
    if isinstance(result, dict):
        return result.get("loss")
    return result[0] if isinstance(result, (list, tuple)) else result


def _only(logs):
    """What a `train_step` of the program's own calls its loss, when it tells nothing else."""
    return next(iter(logs.values())) if len(logs) == 1 else None


def _number(value):
    """A loss or metric as a number; the mean of several, None where there is none."""
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        values = keras_layers.array(value)
        return float(values.mean()) if values.dtype.kind in "biuf" else None


# What a Keras model is given by `evaluate` and `predict` after it was trained.

_MOST_CALLS, _MOST_ROWS, _MOST_PLACES, _FEW_ROWS = 8, 256, 1 << 14, 16
_MOST_STAGES = 30
EVALUATIONS = {}
_MOST_ALIKE, _LEAST_ALIKE, _LEAST_CHANGES = 512, 24, 10


def _labels_of(targets):
    """The class of each row; none where targets are no classes."""
    if targets.ndim == 2 and numbers.is_one_hot(targets):
        return targets.argmax(1).tolist()
    flat = targets.reshape(-1)
    are_classes = len(flat) == len(targets) and numbers.is_integral(flat.astype("float64"))
    return flat.tolist() if are_classes else []


def install(keras):
    for name in ("evaluate", "predict"):
        patch(keras.Model, name, _watch(keras, name))


def _watch(keras, name):
    def make(original):
        def watched(self, *args, **kwargs):
            if ACTIVE:
                return original(self, *args, **kwargs)
            arguments = {**dict(zip(("x", "y"), args)), **kwargs}
            if name == "predict":
                _look_at_order(self, arguments.get("x"))
            _look(keras, self, arguments.get("x"), arguments.get("y"))
            if name == "evaluate":
                _look_at_labels(self, arguments.get("x"), arguments.get("y"))
            result = original(self, *args, **kwargs)
            if name == "evaluate":
                _judge(self, result)
            return result

        return watched

    return make


@quiet("labels of evaluations")
def _look_at_labels(model, x, y):
    """Labels of the training data, given with other inputs."""
    entry = MODELS.get(model)
    if entry is None or entry.rows is None or not hasattr(x, "shape") or not hasattr(y, "shape"):
        return
    import numpy

    rows, labels = entry.rows
    size = min(len(labels), len(y))
    own, inputs = keras_data.array(y)[:size], keras_data.array(x)[:size]
    is_same = own.shape == labels[:size].shape and numpy.array_equal(own, labels[:size])
    flat = labels[:size].reshape(size, -1)
    changes = int((flat[1:] != flat[:-1]).any(1).sum())
    if size < _LEAST_ALIKE or not is_same or changes < _LEAST_CHANGES:
        return
    if inputs.shape == rows[:size].shape and not numpy.array_equal(inputs, rows[:size]):
        tell_code(labels_of_training=program.line())


@quiet("order of evaluations")
def _look_at_order(model, x):
    """Predictions of a set of data with labels that comes in another order each time."""
    entry, spec = MODELS.get(model), getattr(x, "element_spec", None)
    line = program.line()
    if entry is not None and entry.steps and getattr(x, "shuffle", None) is True:
        place = source.line_of_read_labels(line)
        if place and hasattr(x, "__getitem__"):
            tell_code(predicted_shuffled=True, predicted_line=place)
    if entry is None or not entry.steps or not isinstance(spec, tuple) or len(spec) < 2:
        return
    if _is_reshuffled(x):
        tell_code(predicted_shuffled=True, predicted_line=source.line_of_shuffle(program.line()))


def _is_reshuffled(dataset):
    """Whether a `tf.data` pipeline has a step that shuffles anew in each pass."""
    waiting = [dataset]
    for _ in range(_MOST_STAGES):
        if not waiting:
            return False
        stage = waiting.pop()
        if type(stage).__name__ == "_ShuffleDataset":
            return getattr(stage, "_reshuffle_each_iteration", None) is not False
        waiting += [one for one in stage._inputs() if hasattr(one, "_inputs")]
    return False


@quiet("evaluations")
def _judge(model, result):
    """Tell the loss that an evaluation came to: the program may print it under another name."""
    model_run = MODELS.get(model)
    if model_run is None or not model_run.steps:
        return
    WRITER.put("evaluation", losses=[float(loss_of(result))])


@quiet("evaluations")
def _look(keras, model, x, y):
    entry = MODELS.get(model)
    if entry is None or not entry.steps or not keras_data.is_table(keras.tree.flatten(x)[0]):
        return
    values = keras_data.array(keras.tree.flatten(x)[0])
    evaluations = EVALUATIONS.setdefault(entry.id, {})
    if (
        values.dtype.kind not in "biuf"
        or len(values) < _FEW_ROWS
        or len(evaluations) >= _MOST_CALLS
    ):
        return
    import numpy

    rows = values[:: max(1, len(values) // _MOST_ROWS)][:_MOST_ROWS]
    key = (values.shape, str(rows.reshape(-1)[:32]))
    if key not in evaluations:
        evaluations[key] = keras_data.as_table(rows, _MOST_PLACES)
        tables = [one for one in evaluations.values() if one.shape[1] == evaluations[key].shape[1]]
        table = numpy.concatenate(tables)
        summary = numbers.summary(
            numpy, keras_layers.flat(table, 1 << 16), values.shape, values.dtype
        )
        has_targets = y is not None and not isinstance(
            y, int
        )  # of `predict`, the size of its batches
        targets = keras_layers.summary(keras.tree.flatten(y)[0]) if has_targets else None
        WRITER.put(
            "data", model=entry.id, part="evaluation", inputs=summary, ids=False, targets=targets,
            **numbers.columns(numpy, table),
        )  # fmt: skip
