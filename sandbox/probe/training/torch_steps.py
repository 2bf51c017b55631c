"""Gradient scaling, schedulers and compilation in PyTorch."""

import sys
import weakref

from . import numbers, program, records, torch_data, torch_forward, torch_layers, torch_loops
from .core import NO_MODEL, STATE, follow, kept, patch, quiet, sampled
from .records import WRITER
from .torch_forward import FORWARD
from .torch_loops import LOOPS
from .torch_losses import LOSSES, finish as finish_losses, settle, take
from .vocabulary import RECTIFIERS

# How a PyTorch program meant to train, as far as it shows.


def begin(tracked):
    """Tell the plan at the first step, for a program that is killed."""
    if tracked.model is not None:
        WRITER.put("plan", **{**_plan(tracked), "epochs": _asked(tracked)})


def finish_plan(tracked):
    """Tell the plan at the end, with what was counted."""
    if tracked.model is not None:
        torch_data.finish(tracked.model.id)
        torch_data.finish_evaluation(tracked.model.id)
        WRITER.put("plan", **_plan(tracked))


def _asked(tracked):
    """The length of the loop around the loop over batches, None where that is not known."""
    return tracked.loops[-2] if len(tracked.loops) > 1 else None


def _plan(tracked):
    model = tracked.model.id
    told = {"model": model, "batch_size": torch_data.batch_size(model)}
    loader = max(LOOPS.loaders.values(), key=lambda one: one.steps, default=None)
    if loader is not None and loader.steps:
        told.update(_by_loader(tracked, loader))
    else:
        told.update(_by_loops(tracked, told["batch_size"]))
    return told


def _by_loader(tracked, loader):
    return {
        "batch_size": loader.batch_size or torch_data.batch_size(tracked.model.id),
        "samples": loader.samples,
        "shuffle": loader.shuffle,
        "epochs": max(loader.trained, _asked(tracked) or 0),
        "steps_per_epoch": loader.length,
    }


def _by_loops(tracked, batch_size):
    """Without a loader: the two inner loops are epochs and batches; one loop over the same data is
    epochs of one step.
    """
    loops = tracked.loops
    if torch_data.is_whole(tracked.model.id):
        epochs = (loops[-1] if loops else None) or tracked.steps
        return {"epochs": epochs, "steps_per_epoch": 1, "samples": batch_size}
    if len(loops) < 2:
        return {}
    epochs, steps = loops[-2], loops[-1]
    if epochs and not steps and tracked.steps > epochs:
        steps = round(tracked.steps / epochs)
    samples = steps * batch_size if steps and batch_size else None
    return {"epochs": epochs, "steps_per_epoch": steps, "samples": samples}


# Watches the steps of optimisers: rates, losses, and on sampled steps gradients and updates.

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
    torch_data.step_ended(tracked.model)
    if tracked.steps >= tracked.due:
        _next(tracked.model)


@quiet("steps")
def _before(optimizer):
    if records.torch().compiler.is_compiling():
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
        with records.torch().no_grad():
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
        tracked.initial = {id(one): records.summary(one) for one in parameters}
    some = parameters[:_MOST_TENSORS]
    tracked.before = {id(one): _some(records.local(one.detach())).clone() for one in some}


def _some(tensor):
    return tensor.reshape(-1)[:: numbers.stride(tensor.shape, _MOST_ELEMENTS)]


@quiet("steps")
def _after(optimizer):
    if records.torch().compiler.is_compiling() or optimizer not in ACTIVE:
        return
    del ACTIVE[ACTIVE.index(optimizer) :]
    with records.torch().no_grad():
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
    torch_data.step_ended(tracked.model)
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
        tracked.loops = program.around()
        WRITER.put("optimizer", **describe(optimizer, tracked, model))
        begin(tracked)


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
    values = iter(records.fetch(scalars))
    for row in told:
        names = ("norm", "mean_abs", "gradient_zero", "weight_norm", "update_ratio")
        row.update(zip(names, values))
    return told


def _measure(parameter, old):
    torch = records.torch()
    gradient, parameter = (records.local(one.detach()) for one in (parameter.grad, parameter))
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
        finish_plan(tracked)


_BOUNDED = ("tanh", "sigmoid")
_NUMBERS = 8


def _activations(tracked):
    if tracked.model is None:
        return []
    places = tracked.model.places
    calls = [(places[key], call) for key, call in FORWARD.calls.items() if key in places]
    calls = [(place, call) for place, call in calls if call.numbers][:_MOST_TENSORS]
    values = records.fetch([scalar for _, call in calls for scalar in call.numbers])
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


def install(torch):
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    scaler = scaler or torch.cuda.amp.GradScaler
    follow(scaler, "scale", _scaled)
    patch(scaler, "step", _step)
    follow(torch.optim.lr_scheduler.ReduceLROnPlateau, "__init__", _scheduled)
    patch(torch, "compile", _compile)
    patch(torch.nn.Module, "compile", _compile)


@quiet("gradient scaling")
def _scaled(result, _, outputs):
    if LOSSES.idle:
        return
    if records.is_tensor(outputs) and records.is_tensor(result) and result is not outputs:
        LOSSES.scaled[id(result)] = outputs.detach()


def _step(original):
    def step(self, optimizer, *args, **kwargs):
        tracked = OPTIMIZERS.get(optimizer)
        steps = tracked.steps if tracked is not None else 0
        result = original(self, optimizer, *args, **kwargs)
        _stepped(optimizer, steps)
        return result

    return step


@quiet("gradient scaling")
def _stepped(optimizer, steps):
    tracked = OPTIMIZERS.get(optimizer)
    if tracked is not None and tracked.steps == steps:
        with records.torch().no_grad():
            tracked.sampled = False
            step(optimizer, tracked, True)


@quiet("schedulers")
def _scheduled(_, _scheduler, optimizer, *_args, **_kwargs):
    SCHEDULED.add(optimizer)


def _compile(original):
    def compile(*args, **kwargs):  # noqa: A001  the name that it replaces
        _compiled(args[0] if args else kwargs.get("model"))
        return original(*args, **kwargs)

    return compile


@quiet("compilation")
def _compiled(model):
    torch_forward.FORWARD.compiled.append(model)
    torch_forward.FORWARD.arm(False, False)
    STATE.cannot_see("layer outputs inside torch.compile")
