"""Watches the steps of optimisers: rates, losses, and on sampled steps gradients and updates."""

import sys
import weakref

from . import (
    numbers,
    program,
    program_loops,
    torch_arrays as arrays,
    torch_data,
    torch_evaluation,
    torch_layers,
    torch_loops,
    torch_plan,
)
from .core import NO_MODEL, STATE, kept, quiet, sampled
from .torch_forward import FORWARD
from .torch_losses import LOSSES, finish as finish_losses, settle, take
from .vocabulary import RECTIFIERS
from .writer import WRITER

_MOST_TENSORS = 200
_MOST_ELEMENTS = 1 << 16


class Tracked:
    """An optimiser as far as it was followed."""

    def __init__(self, number, key, first):
        self.id = "optimizer-%d" % number
        self.key, self.first = key, first
        self.steps = self.due = 0
        self.model = None
        self.initial = {}
        self.before = {}
        self.sampled = False
        self.loops, self.told = [], False


OPTIMIZERS = weakref.WeakKeyDictionary()
MADE, SCHEDULED, INNER = weakref.WeakSet(), weakref.WeakSet(), weakref.WeakSet()
ACTIVE = []
ALL = []
"""All that were followed, also those that the program has dropped."""


def _parameters(optimizer):
    return [one for group in optimizer.param_groups for one in group["params"]]


def before(optimizer, _args, _kwargs):
    if optimizer not in INNER and not (LOSSES.idle and optimizer in OPTIMIZERS):
        _before(optimizer)


def after(optimizer, _args, _kwargs):
    if optimizer in INNER:
        return
    tracked = OPTIMIZERS.get(optimizer) if LOSSES.idle else None
    if tracked is None:
        _after(optimizer)
    else:
        _counted(tracked)


@quiet("steps")
def _counted(tracked):
    """A step of which nothing is written down; the next one may be."""
    torch_loops.epoch()
    tracked.steps += 1
    STATE.steps += 1
    torch_evaluation.step_ended(tracked.model)
    if tracked.steps >= tracked.due:
        _next(tracked.model)


@quiet("steps")
def _before(optimizer):
    if arrays.torch().compiler.is_compiling():
        return
    if optimizer in ACTIVE:
        del ACTIVE[ACTIVE.index(optimizer) :]
    if ACTIVE:
        _forget_failed()
    if ACTIVE:  # one optimiser wraps another: the outer one is the program's
        INNER.add(optimizer)
        return
    ACTIVE.append(optimizer)
    tracked = OPTIMIZERS.get(optimizer)
    if tracked is None:
        tracked = OPTIMIZERS[optimizer] = _known(optimizer)
    tracked.sampled = sampled(tracked.steps)
    if tracked.sampled:
        with arrays.torch().no_grad():
            _remember(tracked, _parameters(optimizer))


def _forget_failed():
    """A step that raised never ended: no other `step` is on the stack."""
    here = sys._getframe(4)  # that of PyTorch around `step`
    frame = here.f_back
    while frame is not None and frame.f_code is not here.f_code:
        frame = frame.f_back
    if frame is None:
        ACTIVE.clear()


def _known(optimizer):
    """The record of an optimiser; one made anew at each step goes on with the last one's."""
    parameters = _parameters(optimizer)
    rates = [group.get("lr") for group in optimizer.param_groups]
    key = (type(optimizer), len(parameters), rates)
    last = ALL[-1] if ALL else None
    if last is not None and last.key == key and last.first() is parameters[0]:
        return last
    ALL.append(Tracked(len(ALL), key, weakref.ref(parameters[0])))
    return ALL[-1]


def _remember(tracked, parameters):
    if tracked.model is None and not tracked.initial:
        tracked.initial = {id(one): arrays.summary(one) for one in parameters}
    some = parameters[:_MOST_TENSORS]
    tracked.before = {id(one): _some(arrays.local(one.detach())).clone() for one in some}


def _some(tensor):
    return tensor.reshape(-1)[:: numbers.stride(tensor.shape, _MOST_ELEMENTS)]


@quiet("steps")
def _after(optimizer):
    if arrays.torch().compiler.is_compiling() or optimizer not in ACTIVE:
        return
    del ACTIVE[ACTIVE.index(optimizer) :]
    with arrays.torch().no_grad():
        step(optimizer, OPTIMIZERS[optimizer], False)


def step(optimizer, tracked, skipped):
    """One step of an optimiser has ended."""
    loss = take()
    if tracked.sampled and (tracked.model is None or tracked.steps < 2):
        _describe(optimizer, tracked)
    fields = {
        "optimizer": tracked.id,
        "step": tracked.steps,
        "epoch": torch_loops.epoch(),
        "loss": loss,
        "rate": float(optimizer.param_groups[0].get("lr") or 0.0),
    }
    if LOSSES.penalty is not None:
        fields["penalty"] = LOSSES.penalty
    if skipped:
        fields["skipped"] = True
    if tracked.sampled:
        fields["weights"] = [] if skipped else _weights(tracked, _parameters(optimizer))
        fields["activations"] = _activations(tracked)
        torch_data.batch(tracked)
    WRITER.step(tracked.steps, fields)
    tracked.steps += 1
    STATE.steps += 1
    tracked.before = {}
    torch_evaluation.step_ended(tracked.model)
    _next(tracked.model)


def _next(model):
    """Arm the forward hooks where some optimiser's next step is sampled or its first."""
    FORWARD.forget(model)
    LOSSES.pending.clear()
    unstepped = STATE.steps < STATE.made + 20 and any(
        one not in OPTIMIZERS and one not in INNER for one in MADE
    )
    wanted = unstepped or any(sampled(one.steps) for one in OPTIMIZERS.values())
    LOSSES.wanted = wanted
    early = any(one.steps < 2 for one in OPTIMIZERS.values())
    FORWARD.arm(wanted, unstepped or early)
    for one in OPTIMIZERS.values():
        one.due = _due(one.steps)
    LOSSES.idle = not wanted and all(one.steps < one.due for one in OPTIMIZERS.values())


def _due(step):
    """The next step of which something is written down."""
    while not (kept(step) or sampled(step)):
        step += 1
    return step


def _describe(optimizer, tracked):
    found = torch_layers.model_of(_parameters(optimizer), tracked.initial)
    tracked.model = found or tracked.model
    tracked.initial = {}
    model = tracked.model.id if tracked.model else ""
    settle(model)
    if not tracked.told and (model or tracked.steps):
        tracked.told = True
        tracked.loops = program_loops.around()
        WRITER.put("optimizer", **describe(optimizer, tracked, model))
        torch_plan.begin(tracked)


def describe(optimizer, tracked, model):
    defaults = dict(optimizer.defaults)
    group = optimizer.param_groups[0]
    betas = group.get("betas") or (group.get("momentum") or 0.0,)
    scheduled = optimizer in SCHEDULED or any("initial_lr" in one for one in optimizer.param_groups)
    name = type(optimizer).__name__.lower()
    return {
        "id": tracked.id,
        "model": model,
        "name": name,
        "rates": [float(one.get("lr") or 0.0) for one in optimizer.param_groups],
        "momentum": float(betas[0]),
        "weight_decay": float(group.get("weight_decay") or 0.0),
        "decoupled": name == "adamw" or bool(group.get("decoupled_weight_decay")),
        "scheduled": scheduled,
        "settings": {key: value for key, value in defaults.items() if _is_setting(value)},
        "line": program.made(optimizer),
    }


def _is_setting(value):
    if isinstance(value, tuple):
        return all(isinstance(part, (int, float)) for part in value)
    return value is None or isinstance(value, (str, int, float, bool))


def _weights(tracked, parameters):
    """Norms of gradients and updates, all computed before any is fetched."""
    told, scalars = [], []
    for parameter in parameters[:_MOST_TENSORS]:
        old = tracked.before.get(id(parameter))
        if parameter.grad is None or old is None:
            continue
        place, role = _place(tracked, parameter)
        told.append({"layer": place, "role": role})
        if id(parameter) in (LOSSES.penalised or ()):
            told[-1]["penalised"] = True
        scalars += _measure(parameter, old)
    values = iter(arrays.fetch(scalars))
    for row in told:
        names = ("norm", "mean_abs", "gradient_zero", "weight_norm", "update_ratio")
        row.update(zip(names, values))
    return told


def _measure(parameter, old):
    torch = arrays.torch()
    gradient, parameter = (arrays.local(one.detach()) for one in (parameter.grad, parameter))
    if gradient.layout != torch.strided:
        gradient = gradient.coalesce().values()
    few = _some(gradient)
    new = _some(parameter)
    size = torch.linalg.vector_norm(old.float())
    change = torch.linalg.vector_norm((new - old).float())
    # A tensor that starts at zero has no ratio; what it became is the nearest that there is.
    basis = torch.where(size > 0, size, torch.linalg.vector_norm(new.float()).clamp_min(1e-12))
    scale = (parameter.numel() / max(1, old.numel())) ** 0.5
    return [
        torch.linalg.vector_norm(gradient.float()),
        few.float().abs().mean(),
        (few == 0).float().mean(),
        size * scale,
        change / basis,
    ]


def _place(tracked, parameter):
    if tracked.model is None:
        return -1, "other"
    return tracked.model.roles.get(id(parameter), (-1, "other"))


def finish():
    """Tell the plans of all models, at the end."""
    if LOSSES.any and not STATE.steps:
        STATE.cannot_see("updates made by the program itself, without an optimizer")
    finish_losses()
    for tracked in ALL:
        if tracked.model is None and tracked.steps:
            STATE.cannot_see(NO_MODEL)
        torch_plan.finish(tracked)


_BOUNDED = ("tanh", "sigmoid")
_NUMBERS = 8


def _activations(tracked):
    if tracked.model is None:
        return []
    places = tracked.model.places
    calls = [(places[key], call) for key, call in FORWARD.calls.items() if key in places]
    calls = [(place, call) for place, call in calls if call.numbers][:_MOST_TENSORS]
    values = arrays.fetch([scalar for _, call in calls for scalar in call.numbers])
    told = []
    for number, (place, _call) in enumerate(calls):
        numbers = values[_NUMBERS * number : _NUMBERS * (number + 1)]
        mean, variance, finite, dead, *bounds = numbers
        own, later = tracked.model.activations[place]
        row = {"layer": place, "mean": mean, "std": _root(variance), "finite": finite}
        if own in RECTIFIERS or later in RECTIFIERS:
            row["dead"] = dead
        if later in _BOUNDED:
            row["saturated"] = bounds[2 + _BOUNDED.index(later)]
        elif own in _BOUNDED:
            row["saturated"] = bounds[_BOUNDED.index(own)]
        told.append(row)
    return told


def _root(variance):
    return variance**0.5 if variance is not None and variance >= 0 else variance
