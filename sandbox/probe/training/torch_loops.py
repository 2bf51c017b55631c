"""Which pass over the data a step belongs to: the loader that gave the last batch, and how often
it was begun. A loader without steps (validation) counts no epochs.
"""

from . import program
from .core import follow, patch, quiet


class Loader:
    """A DataLoader: how often it was begun, and in how many of those passes something trained."""

    def __init__(self):
        self.begun = 0
        self.trained = 0
        self.credited = 0
        self.batch_size = self.length = self.samples = None
        self.line = 0
        self.shuffle = None
        self.steps = 0


class Loops:
    def __init__(self):
        self.loaders, self.iterators = {}, {}
        self.feeding = None


LOOPS = Loops()


def install(data):
    loader = data.dataloader
    follow(data.DataLoader, "__init__", _note_loader)
    follow(data.DataLoader, "__iter__", _note_start)
    patch(loader._BaseDataLoaderIter, "__next__", _next)


def _next(original):
    def __next__(self):
        LOOPS.feeding = LOOPS.iterators.get(id(self))
        return original(self)

    return __next__


@quiet("loaders")
def _note_loader(_result, loader, *_args, **_kwargs):
    program.remember(loader)


@quiet("loaders")
def _note_start(iterator, loader):
    # A program may make a new loader for each epoch: its data and the size of its batches stay.
    key = (id(getattr(loader, "dataset", None)), getattr(loader, "batch_size", None))
    loader_record = LOOPS.loaders.setdefault(key, Loader())
    if loader_record.begun == 0:
        loader_record.batch_size = getattr(loader, "batch_size", None)
        loader_record.line = program.line_of(loader)
        loader_record.shuffle = _shuffles(loader)
        loader_record.samples = _length(getattr(loader, "dataset", None))
        loader_record.length = _length(loader)
    loader_record.begun += 1
    if len(LOOPS.iterators) > 1000:
        LOOPS.iterators.clear()
    LOOPS.iterators[id(iterator)] = loader_record


def _shuffles(loader):
    """Whether a loader draws an order; None where its sampler is the program's own. accelerate
    hides the sampler in that of the batches.
    """
    batches = getattr(loader, "batch_sampler", None)
    samplers = [getattr(loader, "sampler", None)]
    while batches is not None and len(samplers) < 5:
        samplers.append(getattr(batches, "sampler", None))
        batches = getattr(batches, "batch_sampler", None)
    names = [kind.__name__ for one in samplers for kind in type(one).__mro__]
    if any("Random" in name for name in names):
        return True
    return False if "SequentialSampler" in names else None


def _length(sized):
    try:
        return len(sized)
    except Exception:  # a dataset that is a stream; what it raises is its own
        return None


def epoch():
    """The epoch of the step that has just ended, None without a loader."""
    loader = LOOPS.feeding
    if loader is None:
        return None
    loader.steps += 1
    if loader.credited != loader.begun:
        loader.credited = loader.begun
        loader.trained += 1
    return loader.trained - 1
