"""Watches the steps of optimisers: rates, losses, and on sampled steps gradients and updates;
scaling, schedulers and the plan.
"""

import sys
import weakref

from . import (
    numbers,
    program,
    records,
    torch_calls,
    torch_code,
    torch_data,
    torch_forward,
    torch_layers,
    torch_loops,
)
from .core import (
    NO_MODEL,
    STATE,
    follow,
    last_kept,
    next_kept,
    next_sampled,
    patch,
    quiet,
    sampled,
)
from .records import WRITER
from .torch_forward import FORWARD
from .torch_loops import LOOPS
from .torch_losses import LOSSES, finish as finish_losses, settle, take
from .vocabulary import RECTIFIERS

# Gradient scaling, schedulers and compilation in PyTorch.

# How a PyTorch program meant to train, as far as it shows.


def begin(optimizer_state):
    """Tell the plan at the first step, for a program that is killed."""
    if optimizer_state.model is not None:
        WRITER.put("plan", **{**_plan(optimizer_state), "epochs": _planned_epochs(optimizer_state)})


def finish_plan(optimizer_state):
    """Tell the plan at the end, with what was counted."""
    if optimizer_state.model is not None:
        torch_data.finish(optimizer_state.model.id)
        torch_data.finish_evaluation(optimizer_state.model.id)
        WRITER.put("plan", **_plan(optimizer_state))


def _planned_epochs(optimizer_state):
    """The length of the loop around the loop over batches, None where that is not known."""
    return optimizer_state.loops[-2] if len(optimizer_state.loops) > 1 else None


def _plan(optimizer_state):
    model = optimizer_state.model.id
    fields = {"model": model, "batch_size": torch_data.batch_size(model)}
    loader = max(LOOPS.loaders.values(), key=lambda one: one.steps, default=None)
    if loader is not None and loader.steps:
        fields.update(_by_loader(optimizer_state, loader))
    else:
        fields.update(_by_loops(optimizer_state, fields["batch_size"]))
    return fields


def _by_loader(optimizer_state, loader):
    return {
        "batch_size": loader.batch_size or torch_data.batch_size(optimizer_state.model.id),
        "samples": loader.samples,
        "shuffle": loader.shuffle,
        "epochs": max(loader.trained, _planned_epochs(optimizer_state) or 0),
        "steps_per_epoch": loader.length,
    }


def _by_loops(optimizer_state, batch_size):
    """Without a loader: the two inner loops are epochs and batches; one loop over the same data is
    epochs of one step.
    """
    loops = optimizer_state.loops
    if torch_data.is_whole(optimizer_state.model.id):
        epochs = (loops[-1] if loops else None) or optimizer_state.steps
        return {"epochs": epochs, "steps_per_epoch": 1, "samples": batch_size}
    if len(loops) < 2:
        return {}
    epochs, steps = loops[-2], loops[-1]
    if epochs and not steps and optimizer_state.steps > epochs:
        steps = round(optimizer_state.steps / epochs)
    samples = steps * batch_size if steps and batch_size else None
    return {"epochs": epochs, "steps_per_epoch": steps, "samples": samples}


_MOST_TENSORS = 200
_MOST_ELEMENTS = 1 << 16
_RESTING = 100


class OptimizerState:
    """An optimiser as far as it was followed."""

    def __init__(self, number, key, first):
        self.id = "optimizer-%d" % number
        self.key, self.first = key, first
        self.steps = self.due = 0
        self.last = STATE.steps
        self.model = self.use = None
        self.initial = {}
        self.before, self.gradients = {}, {}
        self.sampled = False
        self.loops, self.told = [], False


OPTIMIZERS = weakref.WeakKeyDictionary()
CREATED, SCHEDULED, INNER = weakref.WeakSet(), weakref.WeakSet(), weakref.WeakSet()
RECORDS = {}
"""The records of followed optimisers by their ids, while no tensor is looked at: a new one ends
that.
"""
ACTIVE = []
ALL = []
"""All that were followed, also those that the program has dropped."""


def _parameters(optimizer):
    return [one for group in optimizer.param_groups for one in group["params"]]


def before(optimizer, _args, _kwargs):
    if not LOSSES.wanted and id(optimizer) in RECORDS:
        return
    if optimizer not in INNER:
        _before(optimizer)


def after(optimizer, _args, _kwargs):
    optimizer_state = None if LOSSES.wanted else RECORDS.get(id(optimizer))
    if optimizer_state is None:
        if optimizer not in INNER:
            _after(optimizer)
    elif LOSSES.idle:
        try:
            count_step(optimizer_state)
        except Exception:  # no hook raises
            LOSSES.idle = False
    else:
        _note(optimizer, optimizer_state)


@quiet("steps")
def _note(optimizer, optimizer_state):
    """A step of which no tensor is looked at: its loss and its rate are all that it leaves."""
    if not records.torch().compiler.is_compiling():
        step(optimizer, optimizer_state, False)


def count_step(optimizer_state):
    """A step of which nothing is written down; the next one may be."""
    torch_calls.count("step")
    torch_loops.epoch()
    optimizer_state.steps += 1
    STATE.steps += 1
    optimizer_state.last = STATE.steps
    if optimizer_state.use is not None:
        optimizer_state.use.steps += 1
    if torch_data.EVALUATIONS.handle is not None:
        torch_data.step_ended(optimizer_state.model)
    if optimizer_state.steps >= optimizer_state.due:
        _next(optimizer_state.model)


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
    optimizer_state = OPTIMIZERS.get(optimizer)
    if optimizer_state is None:
        optimizer_state = OPTIMIZERS[optimizer] = track(optimizer)
    optimizer_state.sampled = sampled(optimizer_state.steps)
    if optimizer_state.sampled:
        with records.torch().no_grad():
            _remember(optimizer_state, _parameters(optimizer))


def _forget_failed():
    """A step that raised never ended: no other `step` is on the stack."""
    here = sys._getframe(4)  # that of PyTorch around `step`
    frame = here.f_back
    while frame is not None and frame.f_code is not here.f_code:
        frame = frame.f_back
    if frame is None:
        ACTIVE.clear()


def track(optimizer):
    """The record of an optimiser; one made anew at each step goes on with the last one's."""
    parameters = _parameters(optimizer)
    rates = [group.get("lr") for group in optimizer.param_groups]
    key = (type(optimizer), len(parameters), rates)
    last = ALL[-1] if ALL else None
    if last is not None and last.key == key and last.first() is parameters[0]:
        return last
    ALL.append(OptimizerState(len(ALL), key, weakref.ref(parameters[0])))
    return ALL[-1]


def _remember(optimizer_state, parameters):
    if optimizer_state.model is None and not optimizer_state.initial:
        optimizer_state.initial = {id(one): records.summary(one) for one in parameters}
    few = parameters[:_MOST_TENSORS]
    optimizer_state.before = {id(one): some(records.local(one.detach())).clone() for one in few}


def some(tensor):
    """The elements by which updates are measured."""
    return tensor.reshape(-1)[:: numbers.stride(tensor.shape, _MOST_ELEMENTS)]


@quiet("steps")
def _after(optimizer):
    if records.torch().compiler.is_compiling() or optimizer not in ACTIVE:
        return
    del ACTIVE[ACTIVE.index(optimizer) :]
    with records.torch().no_grad():
        step(optimizer, OPTIMIZERS[optimizer], False)


def step(optimizer, optimizer_state, skipped):
    """One step of an optimiser has ended."""
    loss = take()
    if optimizer_state.sampled and (optimizer_state.model is None or optimizer_state.steps < 2):
        _describe(optimizer, optimizer_state)
    fields = {
        "optimizer": optimizer_state.id,
        "step": optimizer_state.steps,
        "epoch": torch_loops.epoch(),
        "loss": loss,
        "rate": _rate(optimizer.param_groups[0]),
    }
    if LOSSES.penalty is not None:
        fields["penalty"] = LOSSES.penalty
    if LOSSES.added is not None:
        fields["added"] = LOSSES.added
    if skipped:
        fields["skipped"] = True
    torch_code.end_step(optimizer, optimizer_state)
    if optimizer_state.sampled:
        fields["weights"] = [] if skipped else _weights(optimizer_state, _parameters(optimizer))
        fields["activations"] = _activations(optimizer_state)
        torch_data.batch(optimizer_state)
    LOSSES.compared.clear()
    WRITER.step(optimizer_state.steps, fields)
    optimizer_state.steps += 1
    STATE.steps += 1
    optimizer_state.last = STATE.steps
    optimizer_state.before, optimizer_state.sampled = {}, False
    torch_data.step_ended(optimizer_state.model)
    _next(optimizer_state.model)


def _rate(group):
    """The learning rate of a group, None for what a program updates itself."""
    return float(group["lr"] or 0.0) if "lr" in group else None


def _next(model):
    """Arm the forward hooks where some optimiser's next step is sampled or its first."""
    LOSSES.pending.clear()
    if STATE.steps < LOSSES.quiet_until:
        return
    FORWARD.forget(model)
    unstepped = STATE.steps < STATE.made + 20 and any(
        one not in OPTIMIZERS and one not in INNER for one in CREATED
    )
    running = [one for one in OPTIMIZERS.values() if STATE.steps - one.last < _RESTING]
    is_sampled = unstepped or any(sampled(one.steps) for one in running)
    LOSSES.wanted = torch_calls.CALLS.looking = is_sampled
    FORWARD.arm(is_sampled, unstepped or any(one.steps < 2 for one in running))
    for one in OPTIMIZERS.values():
        one.due = min(next_kept(one.steps), next_sampled(one.steps))
    LOSSES.idle = not is_sampled and all(one.steps < one.due for one in running)
    LOSSES.quiet_until = 0 if LOSSES.idle or unstepped else STATE.steps + _near(running)
    RECORDS.clear()
    if not is_sampled:
        RECORDS.update((id(one), state) for one, state in OPTIMIZERS.items())


def _near(running):
    """In how many steps one is sampled, or one is only counted, at the earliest."""
    far = min(next_sampled(one.steps) - one.steps for one in running)
    dense = max(last_kept(one.steps) - one.steps for one in running)
    return min(far, dense + 1)


def _describe(optimizer, optimizer_state):
    model_tree = torch_layers.model_of(_parameters(optimizer), optimizer_state.initial)
    optimizer_state.model = model_tree or optimizer_state.model
    optimizer_state.initial = {}
    model = optimizer_state.model.id if optimizer_state.model else ""
    settle(model)
    if not optimizer_state.told and (model or optimizer_state.steps):
        optimizer_state.told = True
        optimizer_state.loops = program.around()
        WRITER.put("optimizer", **describe(optimizer, optimizer_state, model))
        begin(optimizer_state)


def describe(optimizer, optimizer_state, model):
    defaults = dict(optimizer.defaults)
    group = optimizer.param_groups[0]
    betas = group.get("betas") or (group.get("momentum") or 0.0,)
    scheduled = optimizer in SCHEDULED or any("initial_lr" in one for one in optimizer.param_groups)
    name = type(optimizer).__name__.lower()
    return {
        "id": optimizer_state.id,
        "model": model,
        "name": name,
        "rates": [_rate(one) for one in optimizer.param_groups if "lr" in one],
        "momentum": float(betas[0]),
        "weight_decay": float(group.get("weight_decay") or 0.0),
        "decoupled": name == "adamw" or bool(group.get("decoupled_weight_decay")),
        "scheduled": scheduled,
        "settings": {key: value for key, value in defaults.items() if _is_setting(value)},
        "line": program.line_of(optimizer),
    }


def _is_setting(value):
    if isinstance(value, tuple):
        return all(isinstance(part, (int, float)) for part in value)
    return value is None or isinstance(value, (str, int, float, bool))


def _weights(optimizer_state, parameters):
    """Norms of gradients and updates, all computed before any is fetched."""
    rows, scalars = [], []
    for parameter in parameters[:_MOST_TENSORS]:
        old = optimizer_state.before.get(id(parameter))
        gradient = optimizer_state.gradients.get(id(parameter), parameter.grad)
        if gradient is None or old is None:
            continue
        place, role = _place(optimizer_state, parameter)
        rows.append({"layer": place, "role": role})
        if id(parameter) in (LOSSES.penalised or ()):
            rows[-1]["penalised"] = True
        scalars += _measure(parameter, gradient, old)
    values = iter(records.fetch(scalars))
    for row in rows:
        names = ("norm", "mean_abs", "gradient_zero", "weight_norm", "update_ratio")
        row.update(zip(names, values))
    return rows


def _measure(parameter, gradient, old):
    torch = records.torch()
    gradient, parameter = (records.local(one.detach()) for one in (gradient, parameter))
    if gradient.layout != torch.strided:
        gradient = gradient.coalesce().values()
    few = some(gradient)
    new = some(parameter)
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


def _place(optimizer_state, parameter):
    if optimizer_state.model is None:
        return -1, "other"
    return optimizer_state.model.roles.get(id(parameter), (-1, "other"))


def finish():
    """Tell the plans of all models, at the end."""
    if LOSSES.any and not STATE.steps:
        STATE.cannot_see("updates made by the program itself, without an optimizer")
    finish_losses()
    for optimizer_state in ALL:
        if optimizer_state.model is None and optimizer_state.steps:
            STATE.cannot_see(NO_MODEL)
        finish_plan(optimizer_state)
    torch_code.finish()


_BOUNDED_FUNCTIONS = ("tanh", "sigmoid")
_NUMBERS = 8


def _activations(optimizer_state):
    if optimizer_state.model is None:
        return []
    places = optimizer_state.model.places
    calls = [(places[key], call) for key, call in FORWARD.calls.items() if key in places]
    calls = [(place, call) for place, call in calls if call.numbers][:_MOST_TENSORS]
    values = records.fetch([scalar for _, call in calls for scalar in call.numbers])
    rows = []
    for number, (place, _call) in enumerate(calls):
        numbers = values[_NUMBERS * number : _NUMBERS * (number + 1)]
        mean, variance, finite, dead, *bounds = numbers
        own, later = optimizer_state.model.activations[place]
        row = {"layer": place, "mean": mean, "std": _root(variance), "finite": finite}
        if own in RECTIFIERS or later in RECTIFIERS:
            row["dead"] = dead
        if later in _BOUNDED_FUNCTIONS:
            row["saturated"] = bounds[2 + _BOUNDED_FUNCTIONS.index(later)]
        elif own in _BOUNDED_FUNCTIONS:
            row["saturated"] = bounds[_BOUNDED_FUNCTIONS.index(own)]
        rows.append(row)
    return rows


def _root(variance):
    return variance**0.5 if variance is not None and variance >= 0 else variance


def install(torch):
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
    scaler = scaler or torch.cuda.amp.GradScaler
    follow(scaler, "scale", _note_scale)
    patch(scaler, "step", _step)
    follow(torch.optim.lr_scheduler.ReduceLROnPlateau, "__init__", _scheduled)
    patch(torch, "compile", _compile)
    patch(torch.nn.Module, "compile", _compile)


@quiet("gradient scaling")
def _note_scale(result, _, outputs):
    if LOSSES.idle:
        return
    if records.is_tensor(outputs) and records.is_tensor(result) and result is not outputs:
        LOSSES.scaled[id(result)] = outputs.detach()


def _step(original):
    def step(self, optimizer, *args, **kwargs):
        optimizer_state = OPTIMIZERS.get(optimizer)
        steps = optimizer_state.steps if optimizer_state is not None else 0
        result = original(self, optimizer, *args, **kwargs)
        _stepped(optimizer, steps)
        return result

    return step


@quiet("gradient scaling")
def _stepped(optimizer, steps):
    optimizer_state = OPTIMIZERS.get(optimizer)
    if optimizer_state is not None and optimizer_state.steps == steps:
        with records.torch().no_grad():
            optimizer_state.sampled = False
            step(optimizer, optimizer_state, True)


@quiet("schedulers")
def _scheduled(_, _scheduler, optimizer, *_args, **_kwargs):
    SCHEDULED.add(optimizer)


def _compile(original):
    def compile(*args, **kwargs):  # noqa: A001  the name that it replaces
        _note_compiled(args[0] if args else kwargs.get("model"))
        return original(*args, **kwargs)

    return compile


@quiet("compilation")
def _note_compiled(model):
    torch_forward.FORWARD.compiled.append(model)
    torch_forward.FORWARD.arm(False, False)
    STATE.cannot_see("layer outputs inside torch.compile")
