"""Steps of a Keras optimiser inside a `tf.function`: calls in its graph hand them to the probe."""

import sys
import threading

from .core import quiet

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
    found = []
    while graph is not None:
        found.append(graph)
        graph = getattr(graph, "outer_graph", None)
    return found


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
        def call(*given):
            known = dict(zip(places, given))
            found = [known.get(at, one) for at, one in enumerate(flat)]
            self.loss, *rest = nest.pack_sequence_as(values, found, expand_composites=True)
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
