"""What a program does to tensors beside its model: views that take the sizes of other axes,
predictions along the first axis, and what is compared with one half.
"""

import functools
import math

from . import program, records
from .core import STATE, quiet

_MOST, _ALL_STEPS, _MOST_LOOKS = 20, 20, 400
_HALF = 0.5


class Uses:
    """The uses by kind and line."""

    def __init__(self):
        self.rows = {}
        self.looks = 0


USES = Uses()


def install(torch):
    """Follow a few methods of tensors; each is the same function with the same result."""
    for name in ("view", "reshape"):
        _wrap(torch, torch.Tensor, name, _note_view)
    for name in ("argmax", "max"):
        _wrap(torch, torch.Tensor, name, _note_along)
        _wrap(torch, torch, name, _note_along)
    for owner in (torch, torch.Tensor, torch.nn.functional):
        _wrap(torch, owner, "softmax", _note_softmax)
    for name in ("__gt__", "__ge__"):
        _wrap(torch, torch.Tensor, name, _note_compared)


def _wrap(torch, owner, name, note):
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(*args, **kwargs):
        result = original(*args, **kwargs)
        if len(args) > 1 or kwargs or name == "argmax":
            note(torch, name, result, args, kwargs)
        return result

    setattr(owner, name, method)


def _note_view(torch, name, result, args, _kwargs):
    if STATE.steps >= _ALL_STEPS or STATE.busy or torch.compiler.is_compiling():
        return
    before, after = args[0].shape, result.shape
    if len(before) > 2 and before[0] != 0 and _is_mixed(before, after):
        _note(name, tuple(before), tuple(after), None)


def _is_mixed(before, after):
    """Whether a tensor gets the sizes of one with other axes, its second axis for the first, or
    rows of its second axis' length, as classes that stand before the places of an image.
    """
    if 1 in before:
        return False
    if len(before) == len(after):
        return before != after and sorted(before) == sorted(after)
    if len(after) == 2 and after[1] == before[1]:
        ends = (math.prod(before[at:]) for at in range(1, len(before)))
        return after[1] not in ends  # of axes that end it a row keeps what belongs together
    turned = before[0] != before[1] == after[0]
    return turned and len(after) == 2 and before[0] * before[2] == after[1]


def _note_along(torch, name, result, args, kwargs):
    along = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else None))
    is_flat = name == "argmax" and along is None
    if not (is_flat or type(along) is int) or STATE.busy or torch.compiler.is_compiling():
        return
    if not args or getattr(args[0], "ndim", 0) != 2:
        return
    shape = tuple(args[0].shape)
    if is_flat:
        if min(shape) > 1:
            _note("argmax of all", shape, (), None)
    elif along == 0 or (shape[along] == 1 and shape[0] > 1):
        _note(name, shape, (), None)


def _note_softmax(torch, _name, _result, args, kwargs):
    """Softmax over the first axis of what has places beside samples and entries."""
    along = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if along != 0 or STATE.steps >= _ALL_STEPS or STATE.busy or torch.compiler.is_compiling():
        return
    if args and getattr(args[0], "ndim", 0) > 2 and torch.is_grad_enabled():
        _note("softmax", tuple(args[0].shape), (), None)


def _note_compared(torch, name, result, args, _kwargs):
    if type(args[1]) is not float or args[1] != _HALF or STATE.busy:
        return
    if not torch.compiler.is_compiling() and torch.is_tensor(args[0]):
        _note("half", tuple(args[0].shape), (), args[0])


@quiet("uses of tensors")
def _note(name, before, after, values):
    line = program.line()
    row = USES.rows.get((name, line))
    if row is None:
        if len(USES.rows) >= _MOST:
            return
        row = USES.rows[(name, line)] = {
            "name": name, "line": line, "before": list(before)[:8], "after": list(after)[:8],
            "calls": 0, "first": STATE.steps,
        }  # fmt: skip
    row["calls"] += 1
    if values is not None and USES.looks < _MOST_LOOKS and row["calls"] <= _MOST:
        USES.looks += 1
        if values.is_floating_point() and values.numel():
            low, high = records.fetch([values.detach().min(), values.detach().max()])
            row["low"] = min(low, row.get("low", low))
            row["high"] = max(high, row.get("high", high))


def fields():
    """What is written down of the uses."""
    return {"uses": list(USES.rows.values())}
