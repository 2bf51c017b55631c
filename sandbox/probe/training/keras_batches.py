"""The batches that `fit` is fed, where they do not lie there as arrays: one of them is kept, and
none is drawn that the program would not have drawn.
"""

import types

_DRAWING = (
    "FlatMap",
    "Interleave",
    "Generator",
    "RandomDataset",
    "SampleFrom",
    "Cache",
    "Snapshot",
)


def watched(x, run):
    """The same source of batches; a generator tells the run of its first batch in passing."""
    if isinstance(x, types.GeneratorType):
        return _passing(x, run)
    if _is_indexed(x):
        _watch_items(type(x), run)
    return x


def _passing(generator, run):
    for batch in generator:
        run.offer(batch)
        yield batch


def _is_indexed(x):
    kinds = [kind.__name__ for kind in type(x).__mro__]
    return "PyDataset" in kinds or ("Sequence" in kinds and hasattr(type(x), "__getitem__"))


def _watch_items(kind, run):
    original = kind.__getitem__
    if getattr(original, "_passes", False):
        return

    def __getitem__(self, index):
        batch = original(self, index)
        run.offer(batch)
        return batch

    __getitem__._passes = True
    kind.__getitem__ = __getitem__


def from_dataset(x):
    """The first batch of a tf.data pipeline as it was before any shuffling, so that no order that
    the program draws changes; None where that cannot be had without side effects.
    """
    size, node, seen = None, x, []
    while node is not None and len(seen) < 50:
        seen.append(type(node).__name__)
        if _calls_python(node):
            return None
        if "BatchDataset" in seen[-1] and size is None:
            size = int(node._batch_size)
        if "Shuffle" in seen[-1]:
            start = node._input_dataset
        node = getattr(node, "_input_dataset", None)
    names = " ".join(seen)
    if size is None or any(word in names for word in _DRAWING):
        return None
    if "Shuffle" not in names:
        return next(iter(x.take(1)))
    after = names[: names.rindex("Shuffle")]  # what the shuffled rows still go through
    if "Batch" not in after or "Map" in after or "Filter" in after:
        return None
    return next(iter(start.batch(max(size, 32)).take(1)))


def _calls_python(node):
    """Whether a pipeline runs the program's own Python, which may draw, count or print."""
    function = getattr(node, "_map_func", None)
    graph = getattr(getattr(function, "function", None), "graph", None)
    return graph is not None and any("PyFunc" in one.type for one in graph.get_operations())
