"""Losses of a TensorFlow loop: those that it writes out itself, and the functions of Keras and
`tf.nn` that it calls.
"""

import collections
import math
import sys

from . import keras_layers, program
from .core import patch, quiet
from .vocabulary import KERAS_LOSSES

# Losses that a loop of TensorFlow writes out itself: values say what they compare, and how.

# Loss functions that a loop of the program's own calls: those of Keras and of `tf.nn`.

_KERAS = (
    "binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy",
    "mean_squared_error", "mean_absolute_error", "huber", "kl_divergence", "poisson", "hinge",
    "mean_squared_logarithmic_error", "mean_absolute_percentage_error", "log_cosh",
    "squared_hinge", "categorical_hinge",
)  # fmt: skip
_TENSORFLOW = {
    "sigmoid_cross_entropy_with_logits": "binary_crossentropy",
    "softmax_cross_entropy_with_logits": "categorical_crossentropy",
    "sparse_softmax_cross_entropy_with_logits": "sparse_categorical_crossentropy",
}


class Mean:
    """A loss function as a `Loss` is called: its mean over a batch."""

    def __init__(self, function, name, args, kwargs):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.__name__ = name
        self._fn_kwargs = kwargs

    def __call__(self, y_true, y_pred):
        import keras

        return keras.ops.mean(self.function(y_true, y_pred, *self.args, **self.kwargs))


def watch(losses, on_call):
    """Patch the functions of a module, and those that its `get` returns; `on_call(function,
    targets, result, predictions)` learns of each use.
    """

    def make(original):
        def loss_function(y_true, y_pred, *args, **kwargs):
            result = original(y_true, y_pred, *args, **kwargs)
            on_call(Mean(original, original.__name__, args, kwargs), y_true, result, y_pred)
            return result

        return loss_function

    def make_get(original):
        def get(identifier):
            function = original(identifier)
            name = getattr(function, "__name__", "")
            own = getattr(losses, name, None) if name in _KERAS else None
            return own if getattr(own, "__wrapped__", None) is function else function

        return get

    for name in _KERAS:
        patch(losses, name, make)
    patch(losses, "get", make_get)


def watch_tensorflow(nn, on_call):
    """Patch the functions of `tf.nn` that take logits; `axis` and `name` keep their defaults when
    the probe calls them again.
    """

    def make(name):
        def of(original):
            def ordered(y_true, y_pred, **_kwargs):
                return original(labels=y_true, logits=y_pred)

            def loss_function(labels=None, logits=None, *args, **kwargs):
                result = original(labels, logits, *args, **kwargs)
                on_call(Mean(ordered, name, (), {"from_logits": True}), labels, result, logits)
                return result

            return loss_function

        return of

    for name, canonical in _TENSORFLOW.items():
        patch(nn, name, make(canonical))


_COMPARING = ("Sub", "SquaredDifference", "Mul")
_WEIGHTS, _INPUT_KINDS = (
    {"ReadVariableOp", "ResourceGather"},
    {"Placeholder", "IteratorGetNext", "Const"},
)
_MOST_PAIRS, _MOST_OPERATIONS, _MOST_VALUES = 32, 300, 1 << 22
_LEAST = 1e-7
"""The least probability of a logarithm, as Keras clips it."""


class ComparedValues:
    """A loss that was written out: an object that is called as a `Loss` is, None where its name is
    not known; what it is compared with; whether each value is compared with all others, and the
    line that does so, 0 where it is not known.
    """

    def __init__(self, loss, targets, broadcast=False, line=0):
        self.loss, self.targets, self.broadcast, self.line = loss, targets, broadcast, line


class ComparisonRecorder:
    """Keeps what eager operations compare, from a model's call under a tape until the gradient."""

    def __init__(self):
        self.pairs = collections.deque(maxlen=_MOST_PAIRS)
        self.active = False

    @quiet("losses written out in Keras loops")
    def begin(self):
        from tensorflow.python import pywrap_tfe

        self.pairs.clear()
        eager = sys.modules["tensorflow"].executing_eagerly()
        if eager and not self.active and not pywrap_tfe.TFE_Py_TapeSetIsEmpty():
            _callbacks().add_op_callback(self._seen)
            self.active = True

    def end(self):
        if self.active:
            self.active = False
            _callbacks().remove_op_callback(self._seen)

    def take(self):
        """The pairs, the last one first."""
        pairs, self.pairs = reversed(self.pairs), collections.deque(maxlen=_MOST_PAIRS)
        return pairs

    def _seen(self, kind, inputs, _attributes, _outputs, op_name=None, graph=None):
        if graph is None and kind in _COMPARING:
            self.pairs.append(tuple(inputs))


_OF_EACH = frozenset((
    "Sub", "SquaredDifference", "Mul", "Add", "AddV2", "RealDiv", "DivNoNan", "Maximum", "Minimum",
    "LogicalAnd", "LogicalOr", "Equal", "NotEqual", "Greater", "Less", "GreaterEqual", "LessEqual",
))  # fmt: skip


class OuterRecorder:
    """Looks, while a loss is computed, for operations of tensors of different rank whose result has
    the axis of the samples once more than either.
    """

    def __init__(self, rows):
        self.rows, self.shapes, self.line = rows, (), 0

    def __enter__(self):
        _callbacks().add_op_callback(self._seen)
        return self

    def __exit__(self, *_):
        _callbacks().remove_op_callback(self._seen)

    def _seen(self, kind, inputs, _attributes, outputs, op_name=None, graph=None):
        if graph is not None or kind not in _OF_EACH or self.shapes or len(inputs) != 2:
            return
        shapes = [tuple(one.shape) for one in inputs]
        most = max(shape.count(self.rows) for shape in shapes)
        if len(set(map(len, shapes))) == 2 and min(map(len, shapes)):
            if most and tuple(outputs[0].shape).count(self.rows) > most:
                self.shapes, self.line = shapes, program.line()


def _callbacks():
    from tensorflow.python.framework import op_callbacks

    return op_callbacks


def trace_loss(loss, result_tensor):
    """The expression behind a loss in a graph, from its operations alone: to take what the model
    returns out of a graph would change how TensorFlow fuses it, and so the last digits.
    """
    waiting, visited = [(loss.op, ())], set()
    while waiting and len(visited) < _MOST_OPERATIONS:
        operation, path = waiting.pop(0)
        if operation in visited:
            continue
        visited.add(operation)
        if operation.type in _COMPARING:
            operands = _operands(operation, result_tensor.op)
            if operands is not None and _broadcasts(*(one.shape for one in operands)):
                line = _line_of(operation)
                return ComparedValues(None, operands[1], broadcast=True, line=line)
            if operands is not None:
                return _by_operations(operation.type, path, operands[1])
        path = (*path, operation.type)
        waiting += [(one.op, path) for one in operation.inputs]
    return ComparedValues(None, None)


def _operands(operation, output):
    """What is the model's output, and what it is compared with; None where an operation does not
    compare the output itself, without weights between, with something that is given.
    """
    above = [_above(one.op, output) for one in operation.inputs]
    from_model = ["" in one for one in above]
    if from_model.count(True) != 1 or len(from_model) != 2:
        return None
    place = from_model.index(True)
    if any(one & _WEIGHTS for one in above) or not above[1 - place] & _INPUT_KINDS:
        return None
    predictions, targets = operation.inputs[place], operation.inputs[1 - place]
    if targets.shape.rank == 0 or (operation.type == "Mul" and "Log" not in above[place]):
        return None
    return predictions, targets


def _above(operation, output):
    """The kinds of operations that one follows from, "" among them for the model's output."""
    kinds, waiting, visited = set(), [operation], set()
    while waiting and len(visited) < _MOST_OPERATIONS:
        operation = waiting.pop()
        if operation is output:
            kinds.add("")
        elif operation not in visited:
            visited.add(operation)
            kinds.add(operation.type)
            waiting += [one.op for one in operation.inputs]
    return kinds


def _line_of(operation):
    """The innermost line of the program's main file that made an operation; 0 for none."""
    main = program.main_file()
    lines = [frame.lineno for frame in operation.traceback if frame.filename == main]
    return lines[-1] if lines else 0


def _by_operations(kind, path, targets):
    """The loss by the operations between a comparison and the loss; one that is scaled or summed
    over the batch has no name.
    """
    path = {*path, kind}
    name = None
    if "Mean" not in path or "RealDiv" in path or (kind != "Mul" and path & {"Mul", "Sum"}):
        pass
    elif kind == "Mul":
        name = "categorical_crossentropy" if "Sum" in path else "binary_crossentropy"
    elif path & {"Square", "SquaredDifference", "Pow"}:
        name = "rmse" if "Sqrt" in path else "mse"
    elif "Abs" in path:
        name = "mae"
    return ComparedValues(name and _name_of_call(name), targets)


def read_expression(pairs, result_tensor, loss, penalty=0.0):
    """The expression behind a loss, from the pairs of tensors that were compared and what the model
    returned. `penalty` is what regularisers may add to the loss.
    """
    if not 1 < math.prod(getattr(result_tensor, "shape", None) or ()) <= _MOST_VALUES:
        return ComparedValues(None, None)
    outputs = _values(result_tensor)
    wholes = [float(loss), float(loss) - penalty]
    unnamed = ComparedValues(None, None)
    for pair in pairs:
        first, other = map(_values, pair)
        for candidate, other_side, targets in ((first, other, pair[1]), (other, first, pair[0])):
            if candidate.size != outputs.size or 1 in (other_side.size, candidate.size):
                continue
            comparison = _compare(outputs, candidate, other_side)
            if comparison is None:
                continue
            if _broadcasts(candidate.shape, other_side.shape):
                return ComparedValues(None, targets, broadcast=True)
            for name, value in comparison.items():
                if any(abs(value - one) <= 1e-3 * abs(one) for one in wholes):
                    return ComparedValues(_name_of_call(name), targets)
            if unnamed.targets is None:
                unnamed = ComparedValues(None, targets)
    return unnamed


def _values(tensor):
    return keras_layers.array(tensor).astype("float64")


def _compare(outputs, candidate, other_side):
    """The losses that would compare these values, by name; None where they are not the outputs."""
    import numpy

    flat, expected = candidate.reshape(-1), outputs.reshape(-1)
    if _same(flat, expected):
        distances = abs(candidate - other_side)
        squares = (distances**2).mean()
        return {"mse": squares, "mae": distances.mean(), "rmse": numpy.sqrt(squares)}
    clipped = outputs.clip(_LEAST, 1 - _LEAST)
    if candidate.shape != other_side.shape or not _same(flat, numpy.log(clipped).reshape(-1)):
        return None
    clipped = clipped.reshape(other_side.shape)
    likely = other_side * numpy.log(clipped)
    unlikely = (1 - other_side) * numpy.log(1 - clipped)
    return {
        "categorical_crossentropy": -likely.sum(-1).mean(),
        "binary_crossentropy": -(likely + unlikely).mean(),
    }


def _broadcasts(some, others):
    """Whether the shapes are (n,) and (n, 1), so that each value meets all others."""
    flat, column = sorted((list(some), list(others)), key=len)
    return len(flat) == 1 and len(column) == 2 and column[1] == 1 and flat[0] != 1


def _same(some, others):
    return bool((abs(some - others) <= 1e-4 * abs(others) + 1e-5).all())


def _rooted(y_true, y_pred):
    import keras

    return keras.ops.sqrt(keras.ops.mean(keras.losses.mean_squared_error(y_true, y_pred)))


def _name_of_call(name):
    losses = sys.modules["keras"].losses
    function = _rooted if name == "rmse" else getattr(losses, KERAS_LOSSES.get(name, name))
    return Mean(function, name, (), {})
