"""Values that a training is steered by, and in which direction they count as better: callbacks of
Keras that stop, save or slow down, and PyTorch's scheduler for plateaus.
"""

import weakref

from . import program, source
from .core import STATE, contained

_KINDS = ("EarlyStopping", "ModelCheckpoint", "ReduceLROnPlateau")
_LARGER = ("acc", "auc", "precision", "recall", "f1", "iou", "dice", "r2")
_SMALLER = ("loss", "mse", "mae", "error")
_LEAST_VALUES, _MOST_VALUES = 6, 200


@contained("callbacks of Keras")
def look_at_callbacks(callbacks):
    """Note a callback that takes worse values for better ones."""
    rows = callbacks if isinstance(callbacks, (list, tuple)) else (callbacks,)
    for one in rows:
        name, monitor = type(one).__name__, getattr(one, "monitor", None)
        if name not in _KINDS or not isinstance(monitor, str):
            continue
        better = _better(one)
        direction = _direction(monitor)
        if better and direction and better != direction:
            line = source.line_of_keyword(name, "mode") or program.line()
            _tell(monitor, name, better, line)


def _better(callback):
    """Which of two values a callback takes for the better one."""
    operation = getattr(callback, "monitor_op", None)
    name = getattr(operation, "__name__", "")
    if name in ("less", "greater"):
        return {"less": "min", "greater": "max"}[name]
    mode = getattr(callback, "mode", "")
    return mode if mode in ("min", "max") else ""


def _direction(name):
    """In which direction a value of this name is better, "" where that is not plain."""
    plain = name.lower()
    if any(word in plain for word in _SMALLER):
        return "min"
    return "max" if any(word in plain for word in _LARGER) else ""


class Plateau:
    """The values that a scheduler for plateaus was given, under a name."""

    def __init__(self, line, name):
        self.line, self.name, self.values = line, name, []


PLATEAUS = weakref.WeakKeyDictionary()


def note_value(scheduler, arguments):
    """Keep what a scheduler was given, and write down where it waits for worse values."""
    if not arguments or getattr(scheduler, "mode", "") not in ("min", "max"):
        return
    row = PLATEAUS.get(scheduler)
    if row is None:
        line = program.line()
        row = PLATEAUS[scheduler] = Plateau(line, source.name_of_argument("step", line))
    direction = _direction(row.name)
    if len(row.values) >= _MOST_VALUES or not direction or direction == scheduler.mode:
        return
    row.values.append(float(arguments[0]))
    rise = row.values[-1] - row.values[0]
    if len(row.values) >= _LEAST_VALUES and (rise > 0) is (direction == "max"):
        _tell(row.name, type(scheduler).__name__, scheduler.mode, row.line)


def _tell(name, by, mode, line):
    STATE.facts.update(watched=name, watched_by=by, watched_as=mode, watched_line=line)
