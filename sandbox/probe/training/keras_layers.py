"""The layers and the optimiser of a Keras model as records."""

from . import numbers, program
from .vocabulary import KERAS_ACTIVATIONS

# The layers of a Keras model as records.

_LAYER_SETTINGS = (
    "units", "filters", "kernel_size", "strides", "padding", "dilation_rate", "groups", "rate",
    "use_bias", "pool_size", "input_dim", "output_dim", "return_sequences", "negative_slope",
    "alpha", "axis", "momentum", "epsilon", "num_heads", "key_dim", "dropout", "recurrent_dropout",
    "data_format", "stddev", "mask_zero",
)  # fmt: skip
_GATED = ("LSTM", "GRU", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "MultiHeadAttention")
_MOST_LAYERS, _MOST_WEIGHTS = 400, 40
_INITIALIZERS = ("kernel_initializer", "embeddings_initializer", "depthwise_initializer")
_REGULARIZERS = (
    "kernel_regularizer", "embeddings_regularizer", "bias_regularizer", "activity_regularizer",
)  # fmt: skip


def layers(model):
    """The layers as a user of `model.layers` counts them, without the input."""
    return [one for one in model.layers if type(one).__name__ != "InputLayer"][:_MOST_LAYERS]


def describe_layers(run):
    rows = [_layer(run, place, layer) for place, layer in enumerate(run.layers)]
    for row in rows:
        inputs, activation = _inputs(run, row["index"])
        row["inputs"] = inputs
        for place in inputs if activation else ():
            if activation in _ACTIVATIONS.values() or rows[place]["activation"] in ("", "linear"):
                rows[place].update(activation=activation, functional=True)
    sums = ("Add", "Average", "Maximum")
    return {
        "id": run.known.id,
        "framework": "keras",
        "layers": rows,
        "residual": any(row["type"] in sums and len(row["inputs"]) > 1 for row in rows),
        "compiled": False,
        "line": program.line_of(run.model),
    }


def _layer(run, place, layer):
    layer_input, layer_output = run.look.seen.get(id(layer), (None, None))
    own = _inner(layer)
    return {
        "index": place,
        "name": layer.name,
        "type": type(layer).__name__,
        "activation": activation(layer),
        "functional": False,
        "units": _units(own),
        "bias_initializer": _first(own, ("bias_initializer",)),
        "regularizer": _first(own, _REGULARIZERS),
        "settings": _settings(own),
        "weights": [_weight(layer, one) for one in layer.weights[:_MOST_WEIGHTS]],
        "input": summary(layer_input),
        "output": summary(layer_output),
    }


def _inner(layer):
    """The layer that a wrapper repeats: in both directions, or for each place."""
    kind = type(layer).__name__
    name = {"Bidirectional": "forward_layer", "TimeDistributed": "layer"}.get(kind, "")
    return getattr(layer, name, layer)


def activation(layer):
    """What the layer itself applies last, "" for nothing."""
    layer = _inner(layer)
    kind = type(layer).__name__
    if kind in ("Sequential", "Functional"):
        return _last_activation(layer)
    if kind in KERAS_ACTIVATIONS:
        return KERAS_ACTIVATIONS[kind]
    function = None if kind in _GATED else getattr(layer, "activation", None)
    name = _name(function)
    return "" if name == "linear" else name


def _last_activation(model):
    """What a model that is a layer of another applies last, before pooling and the like."""
    for layer in reversed(layers(model)):
        name = activation(layer)
        if name or layer.weights:
            return name
    return ""


def _name(function):
    if function is None:
        return ""
    name = getattr(function, "__name__", None) or type(function).__name__
    name = name[:-3] if name.endswith("_v2") else name  # as tf.nn.softmax is called
    return KERAS_ACTIVATIONS.get(name, name)


def _units(layer):
    for key in ("units", "filters", "output_dim"):
        value = getattr(layer, key, None)
        if isinstance(value, int):
            return value
    return None


def _first(layer, keys):
    for key in keys:
        value = getattr(layer, key, None)
        if value is not None:
            return type(value).__name__
    return ""


def _settings(layer):
    settings = {}
    for key in _LAYER_SETTINGS:
        value = getattr(layer, key, None)
        if isinstance(value, (list, tuple)) and all(isinstance(part, int) for part in value):
            settings[key] = list(value)
        elif isinstance(value, (str, int, float)):
            settings[key] = value
    if type(layer).__name__ in _GATED:
        for key in ("activation", "recurrent_activation"):
            settings[key] = _name(getattr(layer, key, None))
    for key in (*_INITIALIZERS, "bias_initializer", *_REGULARIZERS):
        settings.update(_numbers(key, getattr(layer, key, None)))
    return settings


def _numbers(key, part):
    """The numbers of an initialiser or regulariser: `kernel_regularizer.l2`."""
    numbers_by_name = {}
    for name in ("l1", "l2", "stddev", "value", "mean", "minval", "maxval", "scale", "factor"):
        value = getattr(part, name, None)
        if value is not None and not callable(value):
            try:
                numbers_by_name["%s.%s" % (key, name)] = float(value)
            except (TypeError, ValueError):
                continue
    return numbers_by_name


def is_evaluating(norm):
    """Whether a batch normalization that learned has only run in evaluation mode: one step in
    training would have moved its averages from where they begin.
    """
    averages = array(norm.moving_mean), array(norm.moving_variance)
    if norm.momentum >= 1 or averages[0].any() or (averages[1] != 1).any():
        return False
    scale, offset = norm.gamma, norm.beta
    is_scaled = scale is not None and bool((array(scale) != 1).any())
    return is_scaled or (offset is not None and bool(array(offset).any()))


def role(layer, variable):
    name = variable.name
    if "bias" in name:
        return "bias"
    if "recurrent" in name:
        return "recurrent"
    if "embedding" in name:
        return "embedding"
    if name in ("gamma", "beta", "scale"):
        return "scale" if name != "beta" else "bias"
    return "kernel" if "kernel" in name else "other"


def _weight(layer, variable):
    kind = role(layer, variable)
    shape = [int(size) for size in variable.shape]
    field = 1
    for size in shape[:-2]:
        field *= size
    wide = len(shape) > 1 and kind in ("kernel", "recurrent")
    return {
        "name": variable.name,
        "role": kind,
        "trainable": bool(variable.trainable),
        "initial": summary(variable),
        "fan_in": shape[-2] * field if wide else None,
        "fan_out": shape[-1] * field if wide else None,
    }


def array(value):
    """A tensor of any backend as a numpy array, None when it is not one."""
    import keras

    if isinstance(value, (list, tuple)):
        value = value[0] if value else None
    if value is None:
        return None
    return keras.ops.convert_to_numpy(value)


def parts(values):
    """The parts of several inputs, outputs or targets with their names, "" for a single one."""
    if isinstance(values, dict):
        return [(str(name), one) for name, one in values.items()]
    if isinstance(values, (list, tuple)):
        return [(str(place), one) for place, one in enumerate(values)]
    return [("", values)]


def flat(values, most=16384):
    import numpy

    if values.dtype.kind not in "biuf" and str(values.dtype) != "bfloat16":
        return numpy.zeros(0)
    return values.reshape(-1)[:: numbers.stride(values.shape, most)].astype("float64")


def summary(value, most=16384):
    import numpy

    values = array(value)
    if values is None:
        return None
    return numbers.summary(numpy, flat(values, most), values.shape, values.dtype)


def _inputs(run, place):
    """The indices of the layers that feed a layer, and the activation that is called on the way."""
    depths = getattr(run.model, "_nodes_by_depth", None)
    if not depths:
        return ([place - 1] if place and hasattr(run.model, "pop") else []), ""
    places = {id(layer): at for at, layer in enumerate(run.layers)}
    inputs, passed, visited = set(), "", set()
    for node in run.layers[place]._inbound_nodes:
        if any(node is one for nodes in depths.values() for one in nodes):
            for parent in node.parent_nodes:
                passed = _walk(parent, places, inputs, visited) or passed
    return sorted(inputs), passed


_ACTIVATIONS = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Softmax": "softmax", "Gelu": "gelu",
    "LeakyRelu": "leaky_relu", "Elu": "elu", "Selu": "selu", "Silu": "silu", "Softplus": "softplus",
    "LogSoftmax": "log_softmax",
}  # fmt: skip
# No activation has these names, but two layers with one of them between are no linear map.
_FUNCTIONS = {
    **_ACTIVATIONS,
    "Absolute": "abs", "Square": "power", "Power": "power",
    "Sqrt": "root", "Log": "log", "Multiply": "product", "Maximum": "maximum",
    "Minimum": "minimum",
}  # fmt: skip


def _walk(node, places, inputs, visited):
    operation = node.operation
    if id(operation) in places:
        inputs.add(places[id(operation)])
        return ""
    if id(node) in visited or len(visited) > _MOST_LAYERS:
        return ""
    visited.add(id(node))
    passed = _FUNCTIONS.get(type(operation).__name__, "")
    for parent in node.parent_nodes:
        before = _walk(parent, places, inputs, visited)
        passed = passed or before
    return passed


# A Keras optimiser as records.

_OPTIMIZER_SETTINGS = (
    "beta_1", "beta_2", "epsilon", "rho", "nesterov", "amsgrad", "clipnorm", "clipvalue",
    "global_clipnorm", "use_ema",
)  # fmt: skip
_SCHEDULERS = ("LearningRateScheduler", "ReduceLROnPlateau")


def inner(run):
    """The optimiser below a wrapper that scales the loss."""
    optimizer = run.optimizer or run.model.optimizer
    return getattr(optimizer, "inner_optimizer", None) or optimizer


def rate(run):
    """The rate of the last step."""
    try:
        return float(inner(run).learning_rate)
    except (TypeError, ValueError):
        return None


def describe_optimizer(run):
    optimizer = inner(run)
    callbacks = run.given.get("callbacks") or []
    callbacks = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
    schedule = getattr(optimizer, "_learning_rate", None)
    scheduled = any(type(one).__name__ in _SCHEDULERS for one in callbacks)
    return {
        "id": run.known.optimizer,
        "model": run.known.id,
        "name": type(optimizer).__name__.lower(),
        "rates": [rate(run) or 0.0],
        "momentum": _momentum(optimizer),
        "weight_decay": _float(getattr(optimizer, "weight_decay", None)),
        "decoupled": bool(getattr(optimizer, "weight_decay", None)),
        "scheduled": scheduled or "Schedule" in _bases(schedule),
        "settings": {key: _setting(getattr(optimizer, key, None)) for key in _OPTIMIZER_SETTINGS},
        "line": run.line,
    }


def _bases(thing):
    return " ".join(kind.__name__ for kind in type(thing).__mro__)


def _momentum(optimizer):
    return _float(getattr(optimizer, "momentum", None) or getattr(optimizer, "beta_1", None))


def _float(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def _setting(value):
    return value if value is None or isinstance(value, (str, int, float, bool)) else None
