"""Loss functions that a loop of the program's own calls: those of Keras and of `tf.nn`."""

from .core import patch

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


def watch(losses, called):
    """Patch the functions of a module, and those that its `get` returns; `called(function, targets,
    result)` learns of each use.
    """

    def make(original):
        def loss_function(y_true, y_pred, *args, **kwargs):
            result = original(y_true, y_pred, *args, **kwargs)
            called(Mean(original, original.__name__, args, kwargs), y_true, result)
            return result

        return loss_function

    def make_get(original):
        def get(identifier):
            found = original(identifier)
            name = getattr(found, "__name__", "")
            own = getattr(losses, name, None) if name in _KERAS else None
            return own if getattr(own, "__wrapped__", None) is found else found

        return get

    for name in _KERAS:
        patch(losses, name, make)
    patch(losses, "get", make_get)


def watch_tensorflow(nn, called):
    """Patch the functions of `tf.nn` that take logits; `axis` and `name` keep their defaults when
    the probe calls them again.
    """

    def make(name):
        def of(original):
            def ordered(y_true, y_pred, **_kwargs):
                return original(labels=y_true, logits=y_pred)

            def loss_function(labels=None, logits=None, *args, **kwargs):
                result = original(labels, logits, *args, **kwargs)
                called(Mean(ordered, name, (), {"from_logits": True}), labels, result)
                return result

            return loss_function

        return of

    for name, canonical in _TENSORFLOW.items():
        patch(nn, name, make(canonical))
