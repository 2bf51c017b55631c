"""Follows the steps of a training in JAX. A compiled step shows what it takes and returns; on
sampled steps its graph runs once more, compiled apart from the program, and gives losses,
gradients, updates and the outputs of layers. What the program computes is not touched.
"""

import functools
import sys

from . import jax_graph, jax_records, program, reading
from .core import STATE, contained, quiet
from .jax_marks import MARKS, OPTIMIZERS, is_clean, is_staged, jax

_FIRST, _EVERY, _MOST_LOOKS = frozenset((0, 1, 2, 3, 5, 8, 12, 19)), 25, 60
_MOST_KEPT = 64
_LEAST_LOOKS = 6
_STEPS = []
"""The functions that train, with their uses."""


class StepFunction:
    """A jitted function as far as it was followed: `kind` is "step" where its graph differentiates,
    "other" where it does not, "" before its first call.
    """

    def __init__(self):
        self.kind = ""
        self.compiled = {}
        self.loss_at = self.judging = None
        self.failed = self.rounds = 0
        self.keys, self.key_looks, self.same_keys = {}, 0, set()


class Followed:
    """What `jax.jit` returns: the same compiled function, with a look at its calls. All else is
    that of the function itself.
    """

    def __init__(self, function, compiled, options):
        self._function, self._compiled, self._options = function, compiled, options
        self._uses = StepFunction()
        functools.update_wrapper(self, compiled)

    def __call__(self, *args, **kwargs):
        uses = self._uses
        if uses.kind == "other" or STATE.busy or not is_clean():
            if uses.judging is not None:
                _judge(uses, args, kwargs)
            return self._compiled(*args, **kwargs)
        arguments = _before(self, args, kwargs)
        result = self._compiled(*args, **kwargs)
        if arguments is not None:
            _after(self, arguments, result)
        return result

    def __getattr__(self, name):
        return getattr(self.__dict__["_compiled"], name)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return functools.partial(self, instance)

    def __repr__(self):
        return repr(self._compiled)


def following(original):
    """A patch of `jax.jit`."""

    def jit(*args, **kwargs):
        compiled = original(*args, **kwargs)
        if not args and "fun" not in kwargs:  # a decorator with options
            return functools.partial(jit, **kwargs)
        return _followed(args, compiled, kwargs) or compiled

    return jit


@quiet("functions of jax.jit")
def _followed(args, compiled, options):
    function = args[0] if args else options.get("fun")
    if not callable(function) or not hasattr(compiled, "trace"):
        return None
    return Followed(function, compiled, options)


@quiet("evaluations in JAX")
def _judge(uses, args, kwargs):
    if STATE.steps and uses.judging.note() and is_clean():
        uses.judging.look(jax().tree_util.tree_leaves((args, kwargs)))


def _is_due(step):
    return step in _FIRST or (step and step % _EVERY == 0)


@quiet("steps of JAX")
def _before(followed, args, kwargs):
    """The arguments as they are before the call; copies of what the call may give away."""
    uses = followed._uses
    due = not uses.kind or (_is_due(STATE.steps) and jax_records.RUN.looks < _MOST_LOOKS)
    if not due or uses.failed >= 3:
        return (None, None)
    _look_at_keys(uses, jax().tree_util.tree_leaves((args, kwargs)))
    options = followed._options
    donating = ("donate_argnums", "donate_argnames", "donate")
    if any(options.get(name) not in (None, (), "none") for name in donating):
        copy = functools.partial(jax().tree_util.tree_map, _copied)
        return copy(args), copy(kwargs)
    return args, kwargs


@contained("random keys of JAX")
def _look_at_keys(uses, leaves):
    """Which random keys are the same as at every earlier look."""
    keys = {at: _bits(one) for at, one in enumerate(leaves) if _is_key(one)}
    uses.same_keys = {
        at for at, bits in keys.items()
        if uses.keys.get(at, bits) == bits and (at in uses.same_keys or not uses.key_looks)
    }  # fmt: skip
    uses.keys = keys
    uses.key_looks += 1


def _is_key(leaf):
    kind = str(getattr(leaf, "dtype", ""))
    is_plain = kind == "uint32" and getattr(leaf, "shape", ()) == (2,)
    return (is_plain or kind.startswith("key<")) and not is_staged(leaf)


def _bits(key):
    numpy = sys.modules["numpy"]
    plain = key if str(key.dtype) == "uint32" else jax().random.key_data(key)
    return numpy.asarray(plain).tobytes()


def key_facts(uses, function):
    """What is written down of a step that was given one random key each time."""
    is_same = uses.kind == "step" and uses.same_keys and uses.key_looks >= _LEAST_LOOKS
    if not is_same or any(map(reading.mentions, ("fold_in", "nnx", "Rngs"))):
        return {}
    return {"same_key_looks": uses.key_looks, "key_line": program.line_of_function(function)}


def _copied(value):
    return value.copy() if isinstance(value, jax().Array) and not is_staged(value) else value


@quiet("steps of JAX")
def _after(followed, arguments, result):
    uses, (args, kwargs) = followed._uses, arguments
    leaves = jax().tree_util.tree_leaves(result)
    if args is None:
        _count(uses, leaves, None)
        return
    traced = followed._compiled.trace(*args, **kwargs)
    closed = traced.jaxpr
    if not uses.kind:
        kinds = jax_graph.kinds_in(closed.jaxpr)
        uses.kind = "step" if "gradient" in kinds else "other"
        uses.loss_at = jax_graph.loss_output(closed.jaxpr)
        if uses.kind == "step" and len(_STEPS) < _MOST_KEPT:
            _STEPS.append((uses, followed._function))
        uses.rounds = jax_graph.rounds(closed.jaxpr)
        if uses.kind == "step" and not uses.rounds:
            uses.kind = "other"
            STATE.cannot_see("steps of JAX in a compiled loop of unknown length or a branch")
        if uses.kind == "other":
            line = program.line_of_function(followed._function)
            uses.judging = jax_records.judge(line, closed.consts)
            _judge(uses, args, kwargs)
            return
    look = None
    try:
        look = _look(uses, closed, _dynamic(followed, args, kwargs))
    except Exception:
        uses.failed += 1
        STATE.cannot_see("the inside of a step of JAX that is compiled")
        if uses.failed == 1 and jax_records.IS_DEBUGGED:
            raise
    _count(uses, leaves, look)


def _count(uses, leaves, look):
    if uses.kind != "step":
        return
    loss = leaves[uses.loss_at] if uses.loss_at is not None and uses.loss_at < len(leaves) else None
    if uses.rounds == 1:
        jax_records.step(loss, look)
    else:
        jax_records.scanned(uses.rounds, loss, look)


def _look(uses, closed, arguments):
    """The marked values of one call, as arrays of numpy, and the layers of its graph."""
    if len(arguments) != len(closed.jaxpr.invars):
        raise ValueError("arguments of another number")
    key = id(closed.jaxpr)
    if key not in uses.compiled:
        if len(uses.compiled) > 4:
            uses.compiled.clear()
        uses.compiled[key] = (closed, *_compile(closed))
    _, compiled, holder = uses.compiled[key]
    values = compiled(*arguments)
    look = holder[0]
    numpy = sys.modules["numpy"]
    pairs = zip(look.values, jax().device_get(values))
    return jax_records.Glimpse({key: numpy.asarray(one) for key, one in pairs}, look)


def _compile(closed):
    holder = []

    def looking(*arguments):
        look = jax_graph.run(closed, arguments)
        holder[:] = [look]
        return list(look.values.values())

    plain_jit = getattr(jax().jit, "__wrapped__", jax().jit)
    return plain_jit(looking), holder


def _dynamic(followed, args, kwargs):
    """The arguments that are part of the graph, as leaves in its order."""
    positions, names = _static(followed, args)
    positional = tuple(one for at, one in enumerate(args) if at not in positions)
    by_keyword = {key: value for key, value in kwargs.items() if key not in names}
    return jax().tree_util.tree_leaves((positional, by_keyword))


def _static(followed, args):
    """The places and the names of arguments that are compiled into a function, as `jax.jit` takes
    them: what is given by place is static by its name too.
    """
    import inspect

    options = followed._options
    positions, names = options.get("static_argnums"), options.get("static_argnames")
    positions = [positions] if isinstance(positions, int) else list(positions or ())
    names = [names] if isinstance(names, str) else list(names or ())
    positions = [at + len(args) if at < 0 else at for at in positions]
    try:
        parameters = list(inspect.signature(followed._function).parameters)
    except (TypeError, ValueError):
        parameters = []
    by_name = [parameters.index(name) for name in names if name in parameters]
    by_place = [parameters[at] for at in positions if at < len(parameters)]
    return {*positions, *by_name}, {*names, *by_place}


# Steps that are not compiled: gradients and updates are there.


def eager_updates(original):
    """Beside the marks: an update outside any graph is the end of a step."""

    def apply_updates(params, updates, *args, **kwargs):
        result = original(params, updates, *args, **kwargs)
        if is_clean() and not STATE.busy:
            _eager_step(params, updates)
        return result

    return apply_updates


@quiet("steps of JAX")
def _eager_step(params, updates):
    jax_records.eager_step(params, updates)


def finish():
    """Tell what is known at the end."""
    if OPTIMIZERS and not STATE.steps and MARKS.counts.get("gradient"):
        STATE.cannot_see("updates of JAX that no followed function makes")
    for uses, function in _STEPS:
        STATE.facts.update(key_facts(uses, function))
    jax_records.finish()
