"""Marks the values of a training in JAX while a function is traced, so that they are found again in
its graph: a mark is the primitive `name`, which compiles to nothing.
"""

import functools
import sys

from . import program
from .core import STATE, contained

PREFIX = "reprise"
_MOST_CALLS = 200


class Marks:
    """What was marked since it was last asked, and the calls that marks refer to by number."""

    def __init__(self):
        self.depth = 0
        self.calls, self.numbers = [], {}
        self.counts = {}
        self.eager = None


MARKS = Marks()


def jax():
    return sys.modules["jax"]


def is_clean():
    """Whether no transformation runs around the caller."""
    core = sys.modules.get("jax._src.core")
    return core is not None and core.trace_state_clean()


def is_staged(value):
    """Whether a value is one of a graph that is being traced; batches and derivatives are looked
    through.
    """
    for _ in range(20):
        inner = getattr(value, "primal", None)
        inner = getattr(value, "val", None) if inner is None else inner
        if inner is None or not hasattr(inner, "dtype"):
            break
        value = inner
    return "DynamicJaxpr" in type(value).__name__


def number_of(kind, line, **settings):
    """The number by which marks refer to a call."""
    key = (kind, line)
    if key not in MARKS.numbers and len(MARKS.calls) < _MOST_CALLS:
        MARKS.numbers[key] = len(MARKS.calls)
        MARKS.calls.append({"name": kind, "line": line, "settings": settings})
    return MARKS.numbers.get(key, 0)


def put(kind, key, value):
    """The value with a mark where it is part of a graph, otherwise itself."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return value
    MARKS.counts[kind] = MARKS.counts.get(kind, 0) + 1
    if not is_staged(value):
        return value
    name = "%s|%s|%s" % (PREFIX, kind, key)
    from jax.ad_checkpoint import checkpoint_name

    return checkpoint_name(value, name)


def put_all(kind, tree):
    """Mark each leaf with its path."""
    util = jax().tree_util
    leaves, shape = util.tree_flatten_with_path(tree)
    return util.tree_unflatten(shape, [put(kind, path_of(path), leaf) for path, leaf in leaves])


def path_of(path):
    """("params", "Dense_0", "kernel") as "params/Dense_0/kernel"."""
    names = [
        str(getattr(one, "key", getattr(one, "name", getattr(one, "idx", "")))) for one in path
    ]
    return "/".join(name for name in names if name not in ("", "value"))


def mark_of(equation):
    """The kind and the key of an equation that is a mark; None for any other."""
    if equation.primitive.name != "name":
        return None
    parts = str(equation.params.get("name", "")).split("|", 2)
    return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == PREFIX else None


# Patches of what a program calls. Each returns what the original returns.


def differentiating(original):
    """`jax.grad` and `jax.value_and_grad`: marks the parameters, the loss and the gradients."""

    def transform(fun, argnums=0, has_aux=False, *args, **kwargs):
        if MARKS.depth or not callable(fun):
            return original(fun, argnums, has_aux, *args, **kwargs)
        inner = original(_with_loss(fun, has_aux), argnums, has_aux, *args, **kwargs)
        returns_value = original.__name__ == "value_and_grad"

        @functools.wraps(inner)
        def differentiated(*call_args, **call_kwargs):
            if MARKS.depth:
                return inner(*call_args, **call_kwargs)
            MARKS.depth += 1
            try:
                _mark_parameters(argnums, call_args)
                result = inner(*call_args, **call_kwargs)
            finally:
                MARKS.depth -= 1
            return _with_gradients(result, returns_value, has_aux)

        return differentiated

    return transform


def _with_loss(fun, has_aux):
    @functools.wraps(fun)
    def marked(*args, **kwargs):
        result = fun(*args, **kwargs)
        return _with_marked_loss(result, has_aux)

    return marked


def _with_marked_loss(result, has_aux):
    if has_aux and isinstance(result, tuple) and len(result) == 2:
        return _mark_loss(result[0]), result[1]
    return _mark_loss(result)


@contained("losses of JAX")
def _try_mark(kind, key, value):
    return (put(kind, key, value),)


def _mark_loss(value):
    marked = _try_mark("loss", number_of("loss", program.line()), value)
    return marked[0] if marked else value


@contained("parameters of JAX")
def _mark_parameters(argnums, args):
    at = argnums if isinstance(argnums, int) else argnums[0]
    if -len(args) <= at < len(args):
        put_all("parameter", args[at])


def _with_gradients(result, returns_value, has_aux):
    gradients = result[1] if returns_value else (result[0] if has_aux else result)
    marked = _marked_gradients(gradients)
    if marked is None:
        return result
    if returns_value:
        return (result[0], marked[0])
    return (marked[0], *result[1:]) if has_aux else marked[0]


@contained("gradients of JAX")
def _marked_gradients(gradients):
    return (put_all("gradient", gradients),)


def updating(original):
    """`optax.apply_updates` and that of equinox."""

    def apply_updates(params, updates, *args, **kwargs):
        marked = _marked_updates(updates)
        return original(params, marked[0] if marked else updates, *args, **kwargs)

    return apply_updates


@contained("updates of JAX")
def _marked_updates(updates):
    return (put_all("update", updates),)


def comparing(name):
    """A loss function of optax: marks what it compares."""

    def make(original):
        def loss_function(*args, **kwargs):
            marked = _marked_arguments(name, args, kwargs)
            if marked is not None:
                args, kwargs = marked
            result = original(*args, **kwargs)
            marked = _try_mark("values", number_of(name, program.line()), result)
            return marked[0] if marked else result

        return loss_function

    return make


_PLACES = ("prediction", "target")
_KEYWORDS = {
    "predictions": "prediction", "logits": "prediction", "log_predictions": "prediction",
    "predictor_outputs": "prediction", "targets": "target", "labels": "target",
}  # fmt: skip


@contained("loss functions of JAX")
def _marked_arguments(name, args, kwargs):
    number = number_of(name, program.line())
    places = dict(enumerate(_PLACES))
    args = tuple(put(places[at], number, one) if at in places else one
                 for at, one in enumerate(args))  # fmt: skip
    kwargs = {
        key: put(_KEYWORDS[key], number, one) if key in _KEYWORDS else one
        for key, one in kwargs.items()
    }
    return args, kwargs


# The optimizers that a program makes.


class MadeOptimizer:
    """What an optimizer of optax was made with."""

    def __init__(self, name, rate, settings):
        self.name, self.line = name, program.line()
        self.schedule = rate if callable(rate) else None
        self.rate = _number(rate)
        self.settings = settings
        self.every = 1

    def rate_at(self, step):
        """The rate of a step; a schedule counts those that change the parameters."""
        return self.rate if self.schedule is None else float(self.schedule(step // self.every))


OPTIMIZERS = []


def _number(value):
    if isinstance(value, bool) or callable(value):
        return None
    try:
        return float(value)
    except Exception:  # a traced value has no number
        return None


def making(name):
    """A function of optax that makes an optimizer."""

    def make(original):
        def optimizer(*args, **kwargs):
            result = original(*args, **kwargs)
            _note_optimizer(name, args, kwargs)
            return result

        return optimizer

    return make


@contained("optimizers of JAX")
def note_accumulation(every):
    """The optimizer made last takes a step for several batches."""
    if OPTIMIZERS and isinstance(every, int) and every > 0:
        OPTIMIZERS[-1].every = every


@contained("optimizers of JAX")
def _note_optimizer(name, args, kwargs):
    rate = kwargs.get("learning_rate", args[0] if args else None)
    settings = {key: _number(value) for key, value in kwargs.items() if key != "learning_rate"}
    settings = {key: value for key, value in settings.items() if value is not None}
    if len(OPTIMIZERS) < 50 and not STATE.busy:
        OPTIMIZERS.append(MadeOptimizer(name, rate, settings))
