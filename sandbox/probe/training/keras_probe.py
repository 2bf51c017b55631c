"""Looks at a Keras model through one fixed batch: outputs of its layers, gradients, weights;
random numbers and metrics stay as they are.
"""

import contextlib
import random
import sys
import threading

from . import keras_expressions, keras_layers
from .core import STATE, quiet
from .vocabulary import RECTIFIERS

# Keeps random numbers and metrics as they are while the probe runs a model of its own accord:
# layers that sample draw some in every call, and the loss of each output is a metric.


@contextlib.contextmanager
def preserve_state(keras, model):
    """Put back every generator and metric that a call of the model and its loss may move."""
    import numpy

    shared = _shared(keras)
    moving = _states(keras, model, shared)
    states = [(one, keras.ops.convert_to_numpy(one).copy()) for one in moving]
    plain, arrays = random.getstate(), numpy.random.get_state()
    eager = _eager(keras)
    eager_state = eager.getstate() if eager else None
    torch = sys.modules.get("torch") if keras.backend.backend() == "torch" else None
    tensors = torch.get_rng_state() if torch else None
    seed = _seed_of(eager)
    try:
        yield
    finally:
        for variable, value in states:
            variable.assign(value)
        if shared is None and _shared(keras) is not None:
            _global(keras).set_global_attribute(_SHARED, None)
        random.setstate(plain)
        numpy.random.set_state(arrays)
        if eager:
            eager.setstate(eager_state)
            _context().context()._seed = seed
        if torch:
            torch.set_rng_state(tensors)


def preserve_batch_state(keras, model):
    """The variables that a call of the model and its loss may move."""
    return _states(keras, model, _shared(keras))


def _states(keras, model, shared):
    """The states of the model's generators, metrics and stateful layers, and of the generator that
    all layers without a seed share.
    """
    variables = [
        one for one in model.variables if "seed_generator" in getattr(one, "path", one.name)
    ]
    variables += [one for metric in model.metrics for one in metric.variables]
    variable_ids = {id(one) for one in variables}
    for layer in model._flatten_layers():
        variables += [one for one in layer._non_trainable_variables if id(one) not in variable_ids]
    for layer in _stateful(model):
        variables += keras.tree.flatten(layer.states or ())  # of several cells a list for each
    return [*variables, shared.state] if shared is not None else variables


def _stateful(model):
    """The recurrent layers that begin each batch where the last one ended."""
    return [one for one in model._flatten_layers() if getattr(one, "stateful", False)]


def _shared(keras):
    where = _global(keras)
    return where and where.get_global_attribute(_SHARED)


def _global(keras):
    try:
        return keras.src.backend.common.global_state
    except AttributeError:  # another version of Keras
        return None


_SHARED = "global_seed_generator"


def _seed_of(eager):
    """A kernel keeps a counter by its seeds: ours are none that the program will have."""
    if eager is None:
        return None
    context = _context().context()
    seed, context._seed = context._seed, 0x5EED
    eager.seed(0x5EED)
    return seed


def _context():
    return sys.modules["tensorflow.python.eager.context"]


def _eager(keras):
    """The generator from which TensorFlow takes the seeds of operations outside a graph."""
    if keras.backend.backend() != "tensorflow":
        return None
    context = sys.modules.get("tensorflow.python.eager.context")
    return getattr(context.context(), "_rng", None) if context else None


# Gradients of a Keras model on one batch, by each backend's own means.


def look(look):
    """The gradients of the trainable variables, the predictions, and what regularisers add to the
    loss.
    """
    backend = look.keras.backend.backend()
    differentiate = {"tensorflow": _tensorflow, "torch": _torch, "jax": _jax}[backend]
    try:
        gradients_and_outputs = _predict(look) if _is_own(look) else differentiate(look)
    except ValueError:  # a loop may take the loss of what another model makes of this one's outputs
        look.is_foreign = True
        gradients_and_outputs = _predict(look)
    except Exception:  # a loss that takes no such labels, if only outside a compiled step
        look.is_refused = True
        gradients_and_outputs = _predict(look)
    gradients, predictions, penalty = gradients_and_outputs
    return (
        [None if one is None else keras_layers.array(one) for one in gradients],
        predictions,
        penalty,
    )


def _is_own(look):
    """Whether the loss stands in a `train_step` of the program's own alone, or its targets do."""
    if look.data.probe[1] is None or look.is_foreign or look.is_refused:
        return True
    model, usual = look.model, look.keras.Model.compute_loss
    has_loss = look.loss or getattr(model, "_compile_loss", None) or model.losses
    return not has_loss and getattr(type(model), "compute_loss", None) is usual


def _predict(look):
    predictions = look.model(look.data.probe[0], training=False)
    return [None] * len(look.variables), predictions, None


def _forward(look):
    x, y = look.data.probe
    predictions = look.model(x, training=False)
    penalty = sum(float(keras_layers.array(one).sum()) for one in look.model.losses)
    if look.loss is not None:
        loss = look.loss(y, predictions)
    elif look.outer is None and look.keras.backend.backend() == "tensorflow":
        rows = look.keras.tree.flatten(predictions)[0].shape[0]
        with keras_expressions.OuterRecorder(rows) as recorder:
            loss = look.model._compute_loss(x, y, predictions, None, training=False)
        look.outer = recorder.shapes, recorder.line
    else:
        loss = look.model._compute_loss(x, y, predictions, None, training=False)
    return loss, predictions, penalty


def _tensorflow(look):
    import tensorflow

    with tensorflow.GradientTape() as tape:
        loss, predictions, penalty = _forward(look)
    return tape.gradient(loss, [one.value for one in look.variables]), predictions, penalty


def _torch(look):
    import torch

    with torch.enable_grad():
        loss, predictions, penalty = _forward(look)
        values = [one.value for one in look.variables]
        gradients = torch.autograd.grad(loss, values, allow_unused=True)
    return gradients, predictions, penalty


def _jax(look):
    import jax

    model, (x, y) = look.model, look.data.probe
    trainable = [one.value for one in model.trainable_variables]
    fixed = [one.value for one in model.non_trainable_variables]

    def loss_of(values):
        predictions, _, losses = model.stateless_call(
            values, fixed, x, return_losses=True, training=False
        )
        loss = (look.loss or model._compile_loss)(y, predictions) + sum(losses)
        return loss, (predictions, sum(losses))

    (_, (predictions, penalty)), gradients = jax.value_and_grad(loss_of, has_aux=True)(trainable)
    predictions = model(x, training=False)
    return gradients[: len(look.variables)], predictions, float(penalty)


# Steps of a Keras optimiser inside a `tf.function`: calls in its graph hand them to the probe.

_LAST = []
"""The last call that was put into a graph."""


def is_traced(tensor):
    """Whether a tensor, or the values of a sparse one, belong to a graph that is being made."""
    return "Symbolic" in type(getattr(tensor, "values", tensor)).__name__


def are_seen():
    """Whether the graph that is being made can call Python, in this process and for one device."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or tensorflow.executing_eagerly():
        return False
    saving = sys.modules.get("tensorflow.python.saved_model.save_context")
    if tensorflow.distribute.has_strategy() or (saving and saving.in_save_context()):
        return False
    graphs = _graphs(tensorflow.compat.v1.get_default_graph())
    return not any(_is_xla(one._get_control_flow_context()) for one in graphs)


def _is_xla(context):
    while context is not None:
        if context.IsXLAContext():
            return True
        context = context.outer_context
    return False


def _graphs(graph):
    """A graph and those around it, whose tensors it can use."""
    graphs = []
    while graph is not None:
        graphs.append(graph)
        graph = getattr(graph, "outer_graph", None)
    return graphs


class CompiledError(Exception):
    """What runs inside a graph's call would call a compiled function."""


class WithoutCompiled:
    """Within it, this thread calls no `tf.function`: one that waits for the thread that a graph's
    call holds would wait for ever where there is no other.
    """

    def __enter__(self):
        self.kind = sys.modules["tensorflow"].__internal__.function.Function
        self.original = original = self.kind.__call__
        thread = threading.get_ident()

        def __call__(self, *args, **kwargs):
            if threading.get_ident() == thread:
                raise CompiledError
            return original(self, *args, **kwargs)

        self.kind.__call__ = __call__

    def __exit__(self, *_):
        self.kind.__call__ = self.original


class TracedStep:
    """One `apply` in a graph: a call before it and one after it, each made once for every step.

    The calls take the handles of the variables, those of random generators too, so that TensorFlow
    itself keeps them in order with all that reads and changes weights and draws numbers.
    """

    def __init__(self, variables):
        self.tensorflow = sys.modules["tensorflow"]
        self.graphs = _graphs(self.tensorflow.compat.v1.get_default_graph())
        self.handles = [getattr(one, "_value", one).handle for one in variables]
        self.run = self.loss = None

    def belongs(self, tensor):
        """Whether a tensor was traced in this graph, around it or in a function within it."""
        return self._is_near(tensor) or self.graphs[0] in _graphs(tensor.graph)

    def _is_near(self, tensor):
        return not is_traced(tensor) or tensor.graph in self.graphs

    def begins(self, begin, values):
        """Before the step: `begin` is called with the values after the loss and returns the run."""
        nest = self.tensorflow.nest
        values = [self._reached(one) for one in values]
        flat = nest.flatten(values, expand_composites=True)
        places = [at for at, one in enumerate(flat) if self.tensorflow.is_tensor(one)]

        @quiet("Keras loops")
        def call(*arguments):
            by_place = dict(zip(places, arguments))
            arguments_of_loss = [by_place.get(at, one) for at, one in enumerate(flat)]
            self.loss, *rest = nest.pack_sequence_as(
                values, arguments_of_loss, expand_composites=True
            )
            with WithoutCompiled():
                self.run = begin(*rest)

        self._insert(call, [flat[at] for at in places])

    def _reached(self, values):
        """The values, None where one of them is out of this graph's reach."""
        flat = self.tensorflow.nest.flatten(values, expand_composites=True)
        return values if all(map(self._is_near, flat)) else None

    @quiet("Keras loops")
    def one_step(self, _):
        """After the step."""

        def call(*_):
            if self.run is not None:
                with WithoutCompiled():
                    self.run.one_step(self.loss)

        self._insert(call, [])

    def _insert(self, call, tensors):
        """Calls of the same graph run one after the other, those of several optimisers too."""
        before = [one for one in _LAST if one.graph is self.graphs[0]]
        with self.tensorflow.control_dependencies(before):
            _LAST[:] = [self.tensorflow.py_function(call, [*tensors, *self.handles], [])]


# Looks at a Keras model through one fixed batch: outputs of its layers, gradients, weights.
#
# The batch runs in inference mode, so that neither a generator nor a moving average changes.

_MOST_TENSORS = 200
_MOST_ELEMENTS = 1 << 16


class Look:
    """The last look at a model: what its layers took and gave, gradients, weights."""

    def __init__(self, run):
        self.keras, self.model, self.layers, self.data = run.keras, run.model, run.layers, run.data
        self.loss = run.loss
        self.seen, self.outputs, self.gradients = {}, [], []
        self.weights, self.penalty = [], None
        self.outer = None
        self.taken = self.blind = self.is_foreign = self.is_refused = False

    def _place(self, variable):
        """The layer of a variable; a model may be built only by its first batch."""
        for place, layer in enumerate(self.layers):
            if any(one is variable for one in layer.weights):
                return place, layer
        return -1, None

    def take(self):
        """Look before a step; what `told` says of the step starts from this."""
        self.taken = True
        self.gradients = []
        self._sync()
        self.variables = self.model.trainable_variables[:_MOST_TENSORS]
        self.weights = [self._values(one) for one in self.variables]
        if self.data.probe is not None and not self.blind:
            self._run()

    def _run(self):
        try:
            capture_context = Capture(self.keras, self.layers)
            with preserve_state(self.keras, self.model), capture_context as capture:
                self.gradients, predictions, self.penalty = look(self)
            self.seen = capture.seen
            self.outputs = self._outputs(predictions)
        except CompiledError:
            self.blind = True
            STATE.cannot_see("layers called in a compiled function of the program")

    def _outputs(self, predictions):
        """What the model returns: for each output its name, its layer and its values."""
        captured = ((at, self.seen.get(id(one))) for at, one in enumerate(self.layers))
        places = {id(taken_given[1]): at for at, taken_given in captured if taken_given}
        outputs_by_name = keras_layers.parts(predictions)
        names_of_outputs = getattr(self.model, "output_names", None) or ()
        if not isinstance(predictions, dict) and len(names_of_outputs) == len(outputs_by_name):
            outputs_by_name = [
                (name, value) for name, (_, value) in zip(names_of_outputs, outputs_by_name)
            ]
        return [
            (name, places.get(id(one)), keras_layers.array(one)) for name, one in outputs_by_name
        ]

    def given(self, gradients, variables):
        """Take the gradients of a loop of the program's own where no batch gave any."""
        if not self.gradients:
            gradients_by_variable = {
                id(one): gradient for one, gradient in zip(variables, gradients)
            }
            ordered = [gradients_by_variable.get(id(one)) for one in self.variables]
            self.gradients = [None if one is None else keras_layers.array(one) for one in ordered]

    def _sync(self):
        """Under JAX, `fit` keeps the weights elsewhere while it runs."""
        sync = getattr(self.model, "jax_state_sync", None)
        if sync is not None:
            sync()

    def _values(self, variable):
        values = self.keras.ops.convert_to_numpy(variable)
        return values.copy()

    def told(self):
        """The fields of a step that has ended."""
        self.taken = False
        self._sync()
        records = {
            "penalty": self.penalty,
            "weights": [self._weight(at) for at in range(len(self.variables))],
            "activations": [
                self._activation(place, layer)
                for place, layer in enumerate(self.layers)
                if id(layer) in self.seen
            ][:_MOST_TENSORS],
        }
        self.seen, self.gradients, self.weights, self.variables = {}, [], [], []
        return records

    def _weight(self, at):
        import numpy

        variable, old = self.variables[at], self.weights[at]
        place, layer = self._place(variable)
        new = self._values(variable)
        size = float(numpy.linalg.norm(old))
        basis = size or max(float(numpy.linalg.norm(new)), 1e-12)
        record = {
            "layer": place,
            "role": keras_layers.role(layer, variable),
            "weight_norm": size,
            "update_ratio": float(numpy.linalg.norm(new - old)) / basis,
        }
        gradient = self.gradients[at] if at < len(self.gradients) else None
        if gradient is not None:
            record["norm"] = float(numpy.linalg.norm(gradient))
            record["mean_abs"] = float(numpy.abs(gradient).mean())
            record["gradient_zero"] = float((gradient == 0).mean())
        return record

    def _activation(self, place, layer):
        import numpy

        values = self._output(layer)
        finite = numpy.isfinite(values)
        record = {"layer": place, "finite": float(finite.mean())}
        if finite.any():
            record["mean"], record["std"] = (
                float(values[finite].mean()),
                float(values[finite].std()),
            )
        kind = keras_layers.activation(layer)
        if kind in RECTIFIERS:
            table = values.reshape(-1, values.shape[-1])
            record["dead"] = float((table.max(0) <= 0).mean())
        if kind == "sigmoid":
            record["saturated"] = float(((values <= 0.0067) | (values >= 0.9933)).mean())
        elif kind == "tanh":
            record["saturated"] = float((abs(values) >= 0.995).mean())
        return record

    def _output(self, layer):
        values = keras_layers.array(self.seen[id(layer)][1])
        keep = max(8, _MOST_ELEMENTS * len(values) // max(1, values.size))
        return values[:keep].astype("float32")


class Capture:
    """Keeps what the layers take and give while the batch runs through them."""

    def __init__(self, keras, layers):
        self.kind = keras.layers.Layer
        self.wanted = {id(layer) for layer in layers}
        self.seen = {}

    def __enter__(self):
        self.original = original = self.kind.__call__
        capture = self

        def __call__(self, *args, **kwargs):
            result = original(self, *args, **kwargs)
            if id(self) in capture.wanted:
                capture.seen[id(self)] = (args[0] if args else None, result)
            return result

        self.kind.__call__ = __call__
        return self

    def __exit__(self, *_):
        self.kind.__call__ = self.original
