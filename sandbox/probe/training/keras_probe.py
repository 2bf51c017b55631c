"""Looks at a Keras model through one fixed batch: outputs of its layers, gradients, weights.

The batch runs in inference mode, so that neither a generator nor a moving average changes.
"""

from . import keras_gradients, keras_layers, keras_random, keras_traced
from .core import STATE
from .vocabulary import RECTIFIERS

_MOST_TENSORS = 200
_MOST_ELEMENTS = 1 << 16


class Look:
    """The last look at a model: what its layers took and gave, gradients, weights."""

    def __init__(self, run):
        self.keras, self.model, self.layers, self.data = run.keras, run.model, run.layers, run.data
        self.loss = run.loss
        self.seen, self.outputs, self.gradients = {}, [], []
        self.weights, self.penalty = [], None
        self.taken = self.blind = False

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
            seen = Capture(self.keras, self.layers)
            with keras_random.kept(self.keras, self.model), seen as capture:
                self.gradients, predictions, self.penalty = keras_gradients.look(self)
            self.seen = capture.seen
            self.outputs = self._outputs(predictions)
        except keras_traced.CompiledError:
            self.blind = True
            STATE.cannot_see("layers called in a compiled function of the program")

    def _outputs(self, predictions):
        """What the model returns: for each output its name, its layer and its values."""
        captured = ((at, self.seen.get(id(one))) for at, one in enumerate(self.layers))
        places = {id(taken_given[1]): at for at, taken_given in captured if taken_given}
        named = keras_layers.parts(predictions)
        known = getattr(self.model, "output_names", None) or ()
        if not isinstance(predictions, dict) and len(known) == len(named):
            named = [(name, value) for name, (_, value) in zip(known, named)]
        return [(name, places.get(id(one)), keras_layers.array(one)) for name, one in named]

    def given(self, gradients, variables):
        """Take the gradients of a loop of the program's own where no batch gave any."""
        if not self.gradients:
            known = {id(one): gradient for one, gradient in zip(variables, gradients)}
            found = [known.get(id(one)) for one in self.variables]
            self.gradients = [None if one is None else keras_layers.array(one) for one in found]

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
        told = {
            "penalty": self.penalty,
            "weights": [self._weight(at) for at in range(len(self.variables))],
            "activations": [
                self._activation(place, layer)
                for place, layer in enumerate(self.layers)
                if id(layer) in self.seen
            ][:_MOST_TENSORS],
        }
        self.seen, self.gradients, self.weights, self.variables = {}, [], [], []
        return told

    def _weight(self, at):
        import numpy

        variable, old = self.variables[at], self.weights[at]
        place, layer = self._place(variable)
        new = self._values(variable)
        size = float(numpy.linalg.norm(old))
        basis = size or max(float(numpy.linalg.norm(new)), 1e-12)
        told = {
            "layer": place,
            "role": keras_layers.role(layer, variable),
            "weight_norm": size,
            "update_ratio": float(numpy.linalg.norm(new - old)) / basis,
        }
        gradient = self.gradients[at] if at < len(self.gradients) else None
        if gradient is not None:
            told["norm"] = float(numpy.linalg.norm(gradient))
            told["mean_abs"] = float(numpy.abs(gradient).mean())
            told["gradient_zero"] = float((gradient == 0).mean())
        return told

    def _activation(self, place, layer):
        import numpy

        values = self._output(layer)
        finite = numpy.isfinite(values)
        told = {"layer": place, "finite": float(finite.mean())}
        if finite.any():
            told["mean"], told["std"] = float(values[finite].mean()), float(values[finite].std())
        kind = keras_layers.activation(layer)
        if kind in RECTIFIERS:
            table = values.reshape(-1, values.shape[-1])
            told["dead"] = float((table.max(0) <= 0).mean())
        if kind == "sigmoid":
            told["saturated"] = float(((values <= 0.0067) | (values >= 0.9933)).mean())
        elif kind == "tanh":
            told["saturated"] = float((abs(values) >= 0.995).mean())
        return told

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
