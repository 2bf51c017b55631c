"""What was seen of a training in JAX, as records: model, optimizer, losses, data and steps."""

import os
import sys

from . import numbers, program, reading, source, still_terms
from .core import STATE, is_sampled
from .jax_graph import some_rows
from .jax_marks import MARKS, OPTIMIZERS, jax, path_of
from .records import WRITER
from .row_labels import RowLabels, keys_of

IS_DEBUGGED = os.environ.get("REPRISE_TRAINING") == "debug"
_MODEL, _OPTIMIZER = "model-0", "optimizer-0"
_WAITING, _MOST_LAYERS, _MOST_BATCHES, _MOST_ROWS = 32, 200, 20, 4096
_CANONICAL = {
    "softmax_cross_entropy_with_integer_labels": "cross_entropy",
    "softmax_cross_entropy": "cross_entropy",
    "sigmoid_binary_cross_entropy": "bce_logits",
    "squared_error": "mse", "l2_loss": "mse", "huber_loss": "huber", "log_cosh": "logcosh",
    "hinge_loss": "hinge", "kl_divergence": "kld", "poisson_nll_loss": "poisson",
}  # fmt: skip
LOSSES = tuple(_CANONICAL)
_ROLES = {
    "kernel": "kernel", "weight": "kernel", "w": "kernel", "bias": "bias", "b": "bias",
    "scale": "scale", "embedding": "embedding",
}  # fmt: skip


class Glimpse:
    """The values of one look by kind and key, as arrays of numpy; and the layers."""

    def __init__(self, values, look):
        self.values, self.layers = values, look.layers
        self.fed, self.is_picked = look.fed, look.is_picked
        self.is_swapped, self.has_sums = look.is_swapped, look.has_sums
        self.outer, self.outer_line = look.outer, look.outer_line

    def of(self, kind):
        """The values of a kind, by key."""
        return {key: value for (one, key), value in self.values.items() if one == kind}


class JaxTraining:
    """The training so far."""

    def __init__(self):
        self.looks = 0
        self.waiting = []
        self.is_described = False
        self.loops = []
        self.rows, self.targets, self.shape = [], [], ()
        self.prints = set()
        self.batches = 0
        self.losses = {}
        self.places = {}
        self.parameters = self.initial = None
        self.outer, self.outer_line = (), 0
        self.root = None
        self.judging, self.pairs = [], RowLabels()
        self.unchanged = self.compared = self.updated = 0
        self.uses, self.kinds = {}, {}
        self.is_picked = False
        self.line = 0


RUN = JaxTraining()


def step(loss, glimpse):
    """A compiled step has ended."""
    _note_place()
    fields = _fields(loss)
    if glimpse is not None:
        RUN.looks += 1
        if fields["loss"] is None:
            fields["loss"] = _first_loss(glimpse)
        _describe(glimpse)
        fields["weights"] = _weights(glimpse)
        fields["activations"] = _activations(glimpse)
        _note_data(glimpse)
        _compare_parameters(glimpse)
        _note_uses(glimpse)
    _write(fields)


def _note_place():
    if not RUN.line:
        RUN.line, _ = program.line_and_loops()
        RUN.loops = program.around()


def _fields(loss):
    return {
        "optimizer": _OPTIMIZER, "step": STATE.steps, "epoch": _epoch(), "loss": loss,
        "rate": _rate(STATE.steps),
    }  # fmt: skip


def _first_loss(glimpse):
    losses = list(glimpse.of("loss").values())
    return float(losses[0].reshape(-1)[0]) if losses else None


def scanned(count, losses, glimpse):
    """The steps of a loop that is compiled as one."""
    _note_place()
    if glimpse is not None:
        RUN.looks += 1
        _describe(_round(glimpse, 0))
        rows = [one for one in glimpse.of("loss").values() if one.ndim]
        losses = rows[0] if rows else losses
    values = None
    if losses is not None and getattr(losses, "size", 0) >= count:
        values = sys.modules["numpy"].asarray(losses).reshape(-1)
    for at in range(count):
        fields = _fields(float(values[at]) if values is not None else None)
        if glimpse is not None and at in (0, count // 2, count - 1):
            row = _round(glimpse, at)
            fields["weights"], fields["activations"] = _weights(row), _activations(row)
            _note_data(row)
        _write(fields)


def _round(glimpse, at):
    """What was seen in one round of a loop."""
    return Glimpse(
        {key: one[at] if one.ndim else one for key, one in glimpse.values.items()}, glimpse
    )


def _write(fields):
    """Losses are fetched some steps later, so that the program waits for none of them."""
    RUN.waiting.append(fields)
    STATE.steps += 1
    if len(RUN.waiting) >= _WAITING or STATE.steps <= 2:
        _flush()


def _flush():
    waiting, RUN.waiting = RUN.waiting, []
    for fields in waiting:
        loss = fields["loss"]
        fields["loss"] = float(loss) if loss is not None and getattr(loss, "size", 1) == 1 else None
        if is_sampled(fields["step"]) or fields.get("weights"):
            WRITER.put("step", **fields)


def _rate(at):
    """The rate of the first optimizer of the program; of a schedule only now and then."""
    optimizer = OPTIMIZERS[0] if OPTIMIZERS else None
    if optimizer is None:
        return None
    if optimizer.schedule is not None and at > 20 and at % 25:
        return None
    try:
        return optimizer.rate_at(at)
    except Exception:  # a schedule of the program that takes something else
        return None


def _epoch():
    """The epoch of a step in two loops of known length, None where that is not known."""
    lengths = [one for one in RUN.loops if one]
    if len(RUN.loops) < 2 or RUN.loops[-1] is None or not lengths:
        return None
    return STATE.steps // max(1, RUN.loops[-1])


# The model by its parameters, and its optimizer.


def _describe(glimpse):
    if RUN.is_described:
        return
    RUN.is_described = True
    parameters = {key: one for key, one in glimpse.of("parameter").items() if one.dtype.kind == "f"}
    layers = [_layer(at, one, parameters, glimpse) for at, one in enumerate(glimpse.layers)]
    layer_paths = {path for one in glimpse.layers for path in (one.kernel, one.bias) if path}
    others = [path for path in parameters if path not in layer_paths]
    for path in others[:_MOST_LAYERS]:
        RUN.places[path] = (-1, _role(path, parameters[path]))
    WRITER.put(
        "model", id=_MODEL, framework="jax", layers=layers, line=RUN.line, compiled=True,
        residual=glimpse.has_sums,
    )  # fmt: skip
    WRITER.put("optimizer", **_optimizer())
    WRITER.put("plan", **_plan())


def _layer(at, layer, parameters, glimpse):
    kernel = parameters.get(layer.kernel)
    weights = []
    for path in (layer.kernel, layer.bias):
        if path is None or path not in parameters:
            continue
        role = (
            "embedding" if layer.kind == "Embed" else "kernel" if path == layer.kernel else "bias"
        )
        RUN.places[path] = (at, role)
        RUN.kinds[path] = layer.kind
        fans = layer.fans if path == layer.kernel else (None, None)
        weights.append({
            "name": path, "role": role, "trainable": True, "initial": _summary(parameters[path]),
            "fan_in": fans[0], "fan_out": fans[1],
        })  # fmt: skip
    output = glimpse.of("output").get(str(at))
    return {
        "index": at,
        "name": layer.kernel.rpartition("/")[0] or layer.kernel,
        "type": layer.kind,
        "activation": layer.activation,
        "functional": bool(layer.activation),
        "inputs": list(layer.inputs),
        "units": layer.fans[1] if layer.kind == "Dense" else _last(kernel),
        "settings": {"kernel_size": [float(one) for one in kernel.shape[:-2]]}
        if layer.kind == "Conv" and kernel is not None
        else {},
        "weights": weights,
        "output": _summary(output) if output is not None else None,
    }


def _last(array):
    return int(array.shape[-1]) if array is not None and array.ndim else None


def _role(path, array):
    name = path.rpartition("/")[2]
    return _ROLES.get(name, "other")


def _summary(array):
    numpy = sys.modules["numpy"]
    flat = array.reshape(-1)
    flat = flat[:: numbers.stride(array.shape, 1 << 14)].astype("float64")
    return numbers.summary(numpy, flat, array.shape, array.dtype)


def _optimizer():
    optimizer = OPTIMIZERS[0] if OPTIMIZERS else None
    if optimizer is None:
        return {"id": _OPTIMIZER, "model": _MODEL, "name": "", "rates": []}
    rate = optimizer.rate if optimizer.schedule is None else _rate(0)
    settings = optimizer.settings
    return {
        "id": _OPTIMIZER,
        "model": _MODEL,
        "name": optimizer.name,
        "rates": [] if rate is None else [rate],
        "momentum": settings.get("momentum", 0.9 if "adam" in optimizer.name else 0.0),
        "weight_decay": settings.get("weight_decay", 0.0),
        "decoupled": optimizer.name == "adamw",
        "scheduled": optimizer.schedule is not None,
        "settings": settings,
        "line": optimizer.line,
    }


def _plan():
    loops = RUN.loops
    fields = {"model": _MODEL, "batch_size": int(RUN.shape[0]) if RUN.shape else None}
    if len(loops) > 1:
        fields.update(epochs=loops[-2], steps_per_epoch=loops[-1])
        if loops[-1] and fields["batch_size"]:
            fields["samples"] = loops[-1] * fields["batch_size"]
    elif loops and len(RUN.prints) == 1 and RUN.batches > 2:
        fields.update(epochs=loops[-1], steps_per_epoch=1, samples=fields["batch_size"])
    return fields


# Each sampled step: gradients, updates and outputs of layers.


def _weights(glimpse):
    numpy = sys.modules["numpy"]
    gradients, updates = glimpse.of("gradient"), glimpse.of("update")
    parameters = glimpse.of("parameter")
    rows = []
    for path, parameter in parameters.items():
        if parameter.dtype.kind != "f":
            continue
        gradient = gradients.get(path)
        if gradient is None or len(gradient) != 3:
            continue
        layer, role = RUN.places.get(path, (-1, "other"))
        norm, mean_abs, zero = (float(one) for one in gradient)
        size = float(numpy.linalg.norm(parameter.astype("float64")))
        row = {
            "layer": layer, "role": role, "norm": norm, "mean_abs": mean_abs,
            "gradient_zero": zero, "weight_norm": size,
        }  # fmt: skip
        update = updates.get(path)
        if update is not None and size > 0:
            row["update_ratio"] = float(update[0]) / size
        rows.append(row)
    return rows[:_MOST_LAYERS]


def _activations(glimpse):
    numpy = sys.modules["numpy"]
    rows = []
    for key, output in glimpse.of("output").items():
        layer = glimpse.layers[int(key)]
        values = output.astype("float64")
        finite = numpy.isfinite(values)
        finite_values = values[finite]
        row = {
            "layer": int(key),
            "mean": float(finite_values.mean()) if finite_values.size else None,
            "std": float(finite_values.std()) if finite_values.size else None,
            "finite": float(finite.mean()) if values.size else 1.0,
        }
        if layer.activation in ("relu", "relu6") and values.ndim > 1:
            table = values.reshape(-1, values.shape[-1])
            row["dead"] = float((table == 0).all(0).mean())
        if layer.activation == "tanh":
            row["saturated"] = float((abs(values) > 0.99).mean())
        if layer.activation == "sigmoid":
            row["saturated"] = float(((values < 0.01) | (values > 0.99)).mean())
        rows.append(row)
    return rows


def _compare_parameters(glimpse):
    """Whether the parameters are those of the last look, although updates were optimizer since."""
    parameters = {key: one.copy() for key, one in glimpse.of("parameter").items()}
    RUN.initial = RUN.initial or parameters
    before, RUN.parameters = RUN.parameters, parameters
    if before is None or before.keys() != parameters.keys():
        return
    numpy = sys.modules["numpy"]
    RUN.compared += 1
    RUN.unchanged += all(numpy.array_equal(one, before[key]) for key, one in parameters.items())


def _note_uses(glimpse):
    """Which parameters get gradients, and what was seen on the way to the loss."""
    if glimpse.outer and not RUN.outer:
        RUN.outer, RUN.outer_line = glimpse.outer, glimpse.outer_line
    for line, value in glimpse.of("root").items():
        low = float(value.min())
        if RUN.root is None or low < RUN.root[0]:
            RUN.root = (low, int(line))
    RUN.updated += any(float(one[0]) > 0 for one in glimpse.of("update").values())
    for path, gradient in glimpse.of("gradient").items():
        use = RUN.uses.setdefault(path, {"looked": 0, "fed": 0})
        use["looked"] += 1
        use["fed"] += bool(gradient[0] > 0)


def _parameter_uses():
    parameters = RUN.parameters or {}
    kinds = {path: kind for path, (_, kind) in RUN.places.items()}
    return [
        {
            "name": path.replace("/", "."), "module": RUN.kinds.get(path, ""),
            "size": int(parameters[path].size), "optimizers": 1, "looked": use["looked"],
            "fed": use["fed"], "in_graph": use["fed"] > 0, "ran": path in RUN.kinds,
            "changed": RUN.unchanged < RUN.compared and use["fed"] > 0,
        }
        for path, use in RUN.uses.items()
        if path in parameters and path in kinds
    ][:_MOST_LAYERS]  # fmt: skip


# Losses and data.


def _note_data(glimpse):
    numpy = sys.modules["numpy"]
    predictions, targets = glimpse.of("prediction"), glimpse.of("target")
    RUN.is_picked = RUN.is_picked or (glimpse.is_picked and bool(predictions))
    inputs = list(glimpse.of("input").values())
    for key, values in predictions.items():
        _note_loss(int(key), values, targets.get(key), glimpse)
    if not inputs or RUN.batches >= _MOST_BATCHES:
        return
    batch = inputs[0]
    RUN.batches += 1
    RUN.prints.add((batch.shape, batch.reshape(-1)[:256].tobytes()))
    RUN.shape = RUN.shape or batch.shape
    table = numbers.thin(batch) if batch.ndim > 1 else batch.reshape(-1, 1)
    RUN.rows.append(table.astype("float64")[:_MOST_ROWS])
    keys = keys_of(batch)
    RUN.pairs.add_batch(keys)
    target = targets.get(next(iter(predictions), ""))
    if target is not None and target.ndim and len(target) == len(batch):
        RUN.targets.append((table.astype("float64"), _table(target)))
        if len(inputs) == 1 and target.ndim == 1 and target.dtype.kind in "iu":
            RUN.pairs.add_labels(keys, target.tolist())
    if RUN.batches == 1:
        _write_data(numpy, batch)


def _table(array):
    return array.reshape(-1, 1) if array.ndim == 1 else array.reshape(-1, array.shape[-1])


def _target_table(targets, predictions):
    """A row for each target: numbers of classes stand one for each row of predictions."""
    are_classes = targets.dtype.kind in "iu" and targets.ndim == predictions.ndim - 1
    return targets.reshape(-1, 1) if are_classes else _table(targets)


def _write_data(numpy, batch=None):
    if not RUN.rows:
        return
    rows = numpy.concatenate([one for one in RUN.rows if one.shape[1] == RUN.rows[0].shape[1]])
    fields = {"model": _MODEL, "ids": False}
    flat = rows.reshape(-1)[: 1 << 16]
    fields["inputs"] = numbers.summary(numpy, flat, RUN.shape, "float32")
    fields["ids"] = bool(batch is not None and batch.dtype.kind in "iu")
    if not fields["ids"]:
        fields.update(numbers.columns(numpy, rows))
    if RUN.targets:
        pairs = [x for x in RUN.targets if x[0].shape[1] == RUN.targets[0][0].shape[1]]
        samples = numpy.concatenate([one for one, _ in pairs])
        targets = numpy.concatenate([one for _, one in pairs]).astype("float64")
        fields["targets"] = numbers.summary(
            numpy, targets.reshape(-1), targets.shape, pairs[0][1].dtype
        )
        if not RUN.is_picked:
            fields["agreement"] = numbers.agreement(numpy, samples, targets)
    WRITER.put("data", **fields)


def _note_loss(number, predictions, targets, glimpse):
    """Write a loss once, and once more at the end with all the targets that were seen."""
    numpy = sys.modules["numpy"]
    call = MARKS.calls[number]
    use = RUN.losses.setdefault(number, {"targets": []})
    if targets is not None:
        use["targets"].append(_target_table(targets, predictions).astype("float64"))
        del use["targets"][_MOST_BATCHES:]
    if "fields" in use:
        return
    use["is_mean"] = _is_mean(number, glimpse)
    use["scale"] = 0.5 if call["name"] == "l2_loss" else 1.0
    table = _table(predictions).astype("float64")
    name = _CANONICAL.get(call["name"], call["name"])
    layer = glimpse.layers[glimpse.fed] if glimpse.fed is not None else None
    activation = layer.activation if layer is not None else ""
    use["fields"] = {
        "model": _MODEL, "name": name,
        "from_logits": True if name in ("cross_entropy", "bce_logits") else None,
        "activation": activation or numbers.activation(numpy, table) or "linear",
        "predictions": _summary(predictions),
        "rows_sum_to_one": numbers.rows_sum_to_one(table),
        "columns_sum_to_one": numbers.columns_sum_to_one(numpy, table),
        "line": call["line"], "call": call["line"],
    }  # fmt: skip
    if glimpse.is_swapped:
        use["fields"]["settings"] = {"swapped": True}
    if targets is not None:
        target_table = _target_table(targets, predictions).astype("float64")
        use["fields"]["targets"] = _summary(targets)
        use["fields"]["one_hot"] = numbers.is_one_hot(target_table)
        use["fields"]["integer_targets"] = numbers.is_integral(target_table.reshape(-1))
    _write_loss(use)


def _is_mean(number, glimpse):
    """Whether what is differentiated is the mean of what a loss function returns."""
    values, losses = glimpse.of("values").get(str(number)), list(glimpse.of("loss").values())
    if values is None or not losses:
        return False
    mean, whole = float(values.reshape(-1)[0]), float(losses[0].reshape(-1)[0])
    return abs(whole - mean) <= 1e-3 * abs(mean) + 1e-6


def _write_loss(use):
    numpy = sys.modules["numpy"]
    fields = dict(use["fields"])
    if use["targets"] and "targets" in fields:
        width = use["targets"][0].shape[1]
        table = numpy.concatenate([one for one in use["targets"] if one.shape[1] == width])
        integral = numbers.is_integral(table.reshape(-1))
        fields["class_shares"] = numbers.shares(table, integral)
        if use["is_mean"]:
            constant = numbers.trivial(fields["name"], table, fields["class_shares"])
            fields["trivial"] = constant if constant is None else constant * use["scale"]
            fields["floor"] = numbers.floor(fields["name"], table)
    fields.setdefault("targets", {"shape": [], "dtype": ""})
    WRITER.put("loss", **fields)
    if not use["is_mean"]:  # what is differentiated is made of this and of more
        parts = {key: fields[key] for key in ("model", "predictions", "line", "call")}
        nothing = {"shape": [], "dtype": ""}
        WRITER.put("loss", name="expression", targets=nothing, **parts)


# Steps outside any graph.


def eager_step(params, updates):
    """A step whose updates are arrays."""
    util = jax().tree_util
    _note_place()
    fields = _fields(None)
    numpy = sys.modules["numpy"]
    if STATE.steps < 20 or STATE.steps % 25 == 0:
        before = {path_of(key): one for key, one in util.tree_flatten_with_path(params)[0]}
        rows = []
        for key, update in util.tree_flatten_with_path(updates)[0]:
            parameter = before.get(path_of(key))
            if parameter is None or not hasattr(parameter, "dtype"):
                continue
            size = float(numpy.linalg.norm(numpy.asarray(parameter, dtype="float64")))
            change = float(numpy.linalg.norm(numpy.asarray(update, dtype="float64")))
            role = _role(path_of(key), parameter)
            row = {"layer": -1, "role": role, "weight_norm": size}
            rows.append({**row, "update_ratio": change / size} if size else row)
        fields["weights"] = rows[:_MOST_LAYERS]
    if not RUN.is_described:
        RUN.is_described = True
        WRITER.put("optimizer", **_optimizer())
        STATE.cannot_see("layers and losses of steps of JAX that are not compiled")
    _write(fields)


def finish():
    """Tell what is known at the end."""
    if not STATE.steps or not RUN.is_described:
        return
    _flush()
    for use in RUN.losses.values():
        _write_loss(use)
    if RUN.batches > 1:
        _write_data(sys.modules["numpy"])
    if RUN.rows:
        WRITER.put("plan", **_plan())
    WRITER.put(
        "code",
        totals={"step": STATE.steps, "backward": STATE.steps},
        calls=[
            {"name": name, "line": RUN.line, "calls": STATE.steps, "last": STATE.steps}
            for name in ("backward", "step")
        ],
        parameters=_parameter_uses(),
        mentions=source.mentions(),
        facts={
            "jax_compared": RUN.compared,
            "jax_unchanged": RUN.unchanged,
            "jax_updated": RUN.updated,
            "picked_values": int(RUN.is_picked),
            "distinct_batches": len(RUN.prints),
            **RUN.pairs.facts(),
            **_outer_facts(),
            **_judged_facts(),
            **reading.facts(),
            **still_terms.facts(),
            **STATE.facts,
        },
    )


def _outer_facts():
    """What was seen on the way to the loss."""
    fields = source.roots()
    if RUN.outer:
        fields.update(outer_shapes="%s and %s" % RUN.outer, outer_line=RUN.outer_line)
    if RUN.root is not None:
        fields["root_low"] = RUN.root[0]
        if RUN.root[1] and RUN.root[0] == 0:
            fields["roots"] = [float(RUN.root[1])]
    return fields


# Functions that are compiled and do not train: what a model is judged by.

_LATE, _LEAST_SIZE, _MOST_JUDGING, _MOST_JUDGED = 20, 16, 50, 5


class Judging:
    """A compiled function that was called after training had begun: the arrays that it holds fast,
    those that it was given, and when.
    """

    def __init__(self, line, constants):
        self.line, self.constants = line, constants
        self.given, self.last, self.due = [], 0, _LATE

    def note(self):
        """Note a call; whether its arguments are to be looked at, as those of a few late ones."""
        self.last = STATE.steps
        return STATE.steps >= self.due and len(self.given) < _MOST_JUDGED

    def look(self, leaves):
        """Keep some rows of the arguments of a call."""
        self.due = 2 * STATE.steps
        self.given.append([_few(one) for one in leaves if _is_weight(one)])


def judge(line, constants):
    """Follow a compiled function that does not train, by the line where it is written."""
    if len(RUN.judging) >= _MOST_JUDGING:
        return None
    RUN.judging.append(Judging(line, [one for one in constants if _is_weight(one)]))
    return RUN.judging[-1]


def _is_weight(array):
    is_array = getattr(array, "ndim", 0) >= 2 and hasattr(array, "dtype")
    return is_array and array.size >= _LEAST_SIZE and array.dtype.kind == "f"


def _few(array):
    """The rows of an array that are kept of a parameter."""
    return sys.modules["numpy"].asarray(some_rows(array))


def _judged_facts():
    """The line of a function that goes on with the parameters which training began with."""
    for one in RUN.judging:
        if one.last < max(1, STATE.steps // 2):
            continue
        constants = _is_initial([_few(array) for array in one.constants])
        if constants or (one.given and all(map(_is_initial, one.given))):
            return {"judged_initial": one.line}
    return {}


def _is_initial(arrays):
    """Whether some arrays are parameters as they were at the beginning and are no longer."""
    numpy = sys.modules["numpy"]
    for path, old in (RUN.initial or {}).items():
        new = (RUN.parameters or {}).get(path)
        if not _is_weight(old) or new is None or numpy.array_equal(old, new):
            continue
        alike = [array for array in arrays if array.shape == old.shape]
        if any(numpy.array_equal(array, new) for array in alike):
            return False
        if any(numpy.array_equal(array, old) for array in alike):
            return True
    return False
