"""Keeps random numbers and metrics as they are while the probe runs a model of its own accord:
layers that sample draw some in every call, and the loss of each output is a metric.
"""

import contextlib
import random
import sys


@contextlib.contextmanager
def kept(keras, model):
    """Put back every generator and metric that a call of the model and its loss may move."""
    import numpy

    shared = _shared(keras)
    moving = _states(keras, model, shared)
    states = [(one, keras.ops.convert_to_numpy(one).copy()) for one in moving]
    plain, arrays = random.getstate(), numpy.random.get_state()
    eager = _eager(keras)
    drawn = eager.getstate() if eager else None
    torch = sys.modules.get("torch") if keras.backend.backend() == "torch" else None
    tensors = torch.get_rng_state() if torch else None
    seed = _seeded(eager)
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
            eager.setstate(drawn)
            _context().context()._seed = seed
        if torch:
            torch.set_rng_state(tensors)


def moved(keras, model):
    """The variables that a call of the model and its loss may move."""
    return _states(keras, model, _shared(keras))


def _states(keras, model, shared):
    """The states of the model's generators, metrics and stateful layers, and of the generator that
    all layers without a seed share.
    """
    found = [one for one in model.variables if "seed_generator" in getattr(one, "path", one.name)]
    found += [one for metric in model.metrics for one in metric.variables]
    known = {id(one) for one in found}
    for layer in model._flatten_layers():
        found += [one for one in layer._non_trainable_variables if id(one) not in known]
    for layer in _stateful(model):
        found += keras.tree.flatten(layer.states or ())  # of several cells a list for each
    return [*found, shared.state] if shared is not None else found


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


def _seeded(eager):
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
