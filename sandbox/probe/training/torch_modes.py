"""In which mode models run: layers that act differently in training, in training steps and in
evaluations; and functional dropout that acts in an evaluation.
"""

import sys
import weakref

from . import program, records, torch_calls
from .core import STATE, contained, patch, quiet
from .torch_calls import CALLS
from .torch_forward import FORWARD

_MOST_SITES, _MOST_FRAMES = 50, 14
_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm1d")
_RECURRENT = ("LSTM", "GRU", "RNN")


class Modes:
    """The modes so far."""

    def __init__(self):
        self.is_switching = False
        self.kinds, self.by_model = set(), weakref.WeakKeyDictionary()
        self.training = self.evaluating = self.first = 0
        self.judged = self.judged_training = self.judged_line = 0
        self.intervals = set()
        self.dropped_out = {}


MODES = Modes()


def install(torch):
    patch(torch.nn.Module, "train", _switches)
    patch(torch.nn.functional, "dropout", _drops)


def _switches(original):
    def train(self, mode=True):
        if MODES.is_switching or STATE.busy:
            return original(self, mode)
        MODES.is_switching = True
        try:
            result = original(self, mode)
        finally:
            MODES.is_switching = False
        name = "train" if mode else "eval"
        if torch_calls.are_lines_told(name):
            _note_switch(name)
        else:
            torch_calls.count(name)
        return result

    return train


@quiet("modes")
def _note_switch(name):
    torch_calls.note(name)


def depends_on_mode(module):
    """The kind of a layer that acts differently in training, "" for any other."""
    kind = type(module).__name__
    if kind in _NORMS and getattr(module, "track_running_stats", False):
        return "BatchNorm"
    if "Dropout" in kind and float(getattr(module, "p", 0.0) or 0.0) > 0:
        return "Dropout"
    if kind in _RECURRENT and float(getattr(module, "dropout", 0.0) or 0.0) > 0:
        return "Dropout"
    return ""


@contained("modes")
def look():
    """Note the mode of the step that ends."""
    calls = [(depends_on_mode(call.module), call.training) for call in FORWARD.calls.values()]
    modes = [(kind, training) for kind, training in calls if kind]
    if not modes:
        return
    MODES.kinds.update(kind for kind, _ in modes)
    if any(training for _, training in modes):
        MODES.training += 1
        return
    holders = [entry[0] for entry in FORWARD.modules.values() if not depends_on_mode(entry[0])]
    if any(one.training and _has_modes(one) for one in holders):
        return  # only these layers are kept as they are, as in fine-tuning
    if not MODES.evaluating:
        MODES.first = STATE.steps
    MODES.evaluating += 1


def _has_modes(module):
    return any(depends_on_mode(part) for part in module.modules())


@contained("modes")
def judge(module, *, with_gradients):
    """Note a forward pass in an evaluation."""
    kinds = MODES.by_model.get(module)
    if kinds is None:
        kinds = {depends_on_mode(part) for part in module.modules()} - {""}
        MODES.by_model[module] = kinds
    if not kinds:
        return
    MODES.kinds.update(kinds)
    MODES.judged += 1
    if module.training and not with_gradients:
        active = any(part.training for part in module.modules() if depends_on_mode(part))
        MODES.judged_training += active
        MODES.intervals.add(STATE.steps)
        MODES.judged_line = MODES.judged_line or program.line()


def _drops(original):
    has_gradients = records.torch().is_grad_enabled

    def dropout(input, p=0.5, training=True, inplace=False):  # noqa: A002  as PyTorch has it
        if training and p and (CALLS.looking or not has_gradients()):
            _note_dropout()
        return original(input, p, training, inplace)

    return dropout


@quiet("dropout")
def _note_dropout():
    """Dropout that acts although the module around it is in evaluation mode."""
    frame, owner, layer = sys._getframe(3), None, None
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        owner = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if owner is not None and "Dropout" not in type(owner).__name__:
            break
        layer = owner or layer
        frame, owner = frame.f_back, None
    if owner is None or getattr(owner, "training", True):
        return
    if layer is not None and any(part is layer for part in owner.modules()):
        return  # the program has switched this layer on by itself, as Monte Carlo dropout does
    line = program.line()
    MODES.dropped_out[line] = MODES.dropped_out.get(line, 0) + 1
    while len(MODES.dropped_out) > _MOST_SITES:
        MODES.dropped_out.popitem()


def fields():
    """What is written down of the modes."""
    return {
        "modes": [] if not MODES.kinds else [
            {
                "layers": sorted(MODES.kinds), "training": MODES.training,
                "evaluating": MODES.evaluating, "first": MODES.first, "judged": MODES.judged,
                "judged_training": MODES.judged_training,
                "judged_intervals": len(MODES.intervals),
                "restored": bool(CALLS.loaded), "line": MODES.judged_line,
            }
        ],
        "dropped_out": [
            {"name": "dropout", "line": line, "calls": calls}
            for line, calls in MODES.dropped_out.items()
        ],
    }  # fmt: skip
