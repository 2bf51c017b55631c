"""The calls that make a training loop of PyTorch: in which order and from which lines they come,
and whose gradients a backward pass finds and a step is left with.
"""

import statistics
import sys
import weakref

from . import numbers, program, records, watched
from .core import STATE, contained, follow, patch, quiet

_ALL_CALLS, _MOST_SITES = 300, 200
_MOST_TENSORS, _MOST_ELEMENTS = 6, 1 << 12
_MOST_LOOKS, _MOST_GRAPHS, _MOST_NODES = 400, 3, 20000
_MOST_LOADED = 100000


class CallLine:
    """Calls of one kind from one line."""

    def __init__(self, loops):
        self.loops = loops
        self.calls = 0
        self.first = self.last = STATE.steps


class FollowedOptimizer:
    """What happens between the steps of one optimizer; it does not keep it alive."""

    def __init__(self, optimizer):
        self.name = type(optimizer).__name__.lower()
        self.line = program.line()
        self.id = ""
        self.steps = self.looked = self.stale = self.erased = self.empty = self.backwards = 0
        self.growths = []
        self.held, self.reached = 0, 0
        self.begin()

    def begin(self):
        """A new interval between steps."""
        self.pending, self.clean, self.fed = 0, False, False
        self.old = None


class Clip:
    """Gradient clipping at one line."""

    def __init__(self, kind):
        self.kind, self.limit = kind, 0.0
        self.norms, self.calls = [], 0


class Calls:
    """All calls so far."""

    def __init__(self):
        self.sites, self.totals = {}, {}
        self.optimizers = weakref.WeakKeyDictionary()
        self.uses = []
        self.schedulers, self.schedules = weakref.WeakKeyDictionary(), []
        self.clips = {}
        self.graphs, self.graph_sizes = 0, {}
        self.in_graph = {}
        self.followed, self.loaded = set(), set()
        self.kept_graphs = self.divided = 0
        self.restored_line = 0
        self.gaps = {}
        self.looks = 0
        self.looking = True


CALLS = Calls()


def count(name):
    """Count a call of which nothing else is written down."""
    CALLS.totals[name] = CALLS.totals.get(name, 0) + 1


def are_lines_told(name):
    """Whether few calls were made or the next step is sampled."""
    return CALLS.looking or CALLS.totals.get(name, 0) < _ALL_CALLS


def note(name, *, always=False):
    """Count a call, with its line while lines are told."""
    is_line_told = always or are_lines_told(name)
    count(name)
    if not is_line_told:
        return
    line, loops = program.line_and_loops()
    key = (name, line, loops)
    site = CALLS.sites.get(key)
    if site is None:
        if len(CALLS.sites) >= _MOST_SITES:
            return
        site = CALLS.sites[key] = CallLine(loops)
    site.calls += 1
    site.last = STATE.steps


def install(torch):
    optimizer = sys.modules["torch.optim.optimizer"].Optimizer
    patch(optimizer, "zero_grad", _resets)
    patch(torch.nn.Module, "zero_grad", _resets)
    follow(torch.nn.Module, "load_state_dict", _note_load)
    scheduling = torch.optim.lr_scheduler
    base = getattr(scheduling, "LRScheduler", None) or scheduling._LRScheduler
    kinds = [base, scheduling.ReduceLROnPlateau]
    kinds += [kind for kind in vars(scheduling).values() if _overrides_step(kind, base)]
    for kind in dict.fromkeys(kinds):
        follow(kind, "step", _note_schedule)
        follow(kind, "__init__", _note_scheduler)
    clipping = torch.nn.utils.clip_grad
    for kind in ("norm", "value"):
        name = "clip_grad_%s_" % kind
        patch(clipping, name, _clips(kind))
        setattr(torch.nn.utils, name, getattr(clipping, name))


def _overrides_step(kind, base):
    is_scheduler = isinstance(kind, type) and issubclass(kind, base) and kind is not base
    return is_scheduler and "step" in vars(kind)


def _resets(original):
    def zero_grad(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        if are_lines_told("zero_grad"):
            _note_reset()
        elif not STATE.busy:
            count("zero_grad")
        return result

    return zero_grad


@quiet("calls")
def _note_reset():
    note("zero_grad")


@quiet("calls")
def _note_load(result, module, state=None, *_args, **_kwargs):
    """Parameters that are loaded before they are trained are no random ones; a best state that is
    put back afterwards says nothing of their start.
    """
    note("load", always=True)
    if getattr(result, "missing_keys", None) and state:
        _note_gaps(frozenset(result.missing_keys), module, state)
    if STATE.steps and not CALLS.restored_line and _is_its_own(module, state):
        CALLS.restored_line = program.line() or -1
    parameters = {id(one) for one in module.parameters()} - CALLS.followed
    if len(CALLS.loaded) < _MOST_LOADED:
        CALLS.loaded.update(parameters)


def _is_its_own(module, state):
    """Whether a module is given the very tensors that it has, as `state_dict` returns them."""
    own = [(name, one) for name, one in module.named_parameters() if one.numel()]
    if not own or not hasattr(state, "get"):
        return False
    return all(
        records.is_tensor(state.get(name)) and state[name].data_ptr() == one.data_ptr()
        for name, one in own
    )


_AVERAGES = ("running_mean", "running_var")


def _note_gaps(missing, module, state):
    """What a state that is loaded lacks: everything, or the averages of layers whose weights it
    has.
    """
    own = [name for name, _ in module.named_parameters()]
    layers = {name.rpartition(".")[0] for name in missing if name.endswith(_AVERAGES)}
    if own and missing.issuperset(own) and not any(name in state for name in own):
        CALLS.gaps.setdefault("all", (program.line(), STATE.steps))
    elif any(name.rpartition(".")[0] in layers for name in own if name in state):
        CALLS.gaps["averages"] = (program.line(), STATE.steps)


def restored():
    """What is written down of a state that was never a copy, or that lacks something."""
    fields = {"gap_%s" % kind: [float(x) for x in place] for kind, place in CALLS.gaps.items()}
    if CALLS.restored_line:
        fields["restored_line"] = max(0, CALLS.restored_line)
    return fields


def follow_optimizer(optimizer):
    """Follow an optimizer from its making on; one made anew for the same parameters goes on."""
    if optimizer not in CALLS.optimizers and len(CALLS.uses) < 200:
        CALLS.optimizers[optimizer] = FollowedOptimizer(optimizer)
        CALLS.uses.append(CALLS.optimizers[optimizer])


# The gradients that a backward pass finds and leaves.


def _sample(optimizer):
    """A few parameters of an optimizer, from its first to its last."""
    parameters = [one for group in optimizer.param_groups for one in group["params"]]
    return parameters[:: max(1, -(-len(parameters) // _MOST_TENSORS))]


def _gradients(optimizer):
    """Some elements of the gradients of a few parameters; None for what has none."""
    return [
        None if one.grad is None or one.grad.layout != records.torch().strided else _some(one.grad)
        for one in _sample(optimizer)
    ]


def _some(tensor):
    tensor = records.local(tensor.detach()).reshape(-1)
    return tensor[:: numbers.stride(tensor.shape, _MOST_ELEMENTS)]


def _norm(tensors):
    torch = records.torch()
    squares = [one.double().square().sum() for one in tensors if one is not None and one.numel()]
    return float(torch.stack([one.cpu() for one in squares]).sum().sqrt()) if squares else 0.0


@quiet("gradients before backward")
def begin_backward(tensors, retained):
    """A backward pass is about to run."""
    note("backward")
    CALLS.kept_graphs += bool(retained)
    if not CALLS.looking or CALLS.looks >= _MOST_LOOKS:
        return
    CALLS.looks += 1
    CALLS.divided += _is_divided(tensors)
    with records.torch().no_grad():
        for optimizer, use in list(CALLS.optimizers.items()):
            use.pending += 1
            before = _gradients(optimizer)
            use.old = [None if one is None else one.clone() for one in before]
            if not _norm(before):
                use.clean = True
    _look_at_graph(tensors)


def _is_divided(tensors):
    """Whether what is differentiated is a quotient or a product with a number, as a part of a batch
    is whose gradients are added up.
    """
    tensor = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
    kind = type(getattr(tensor, "grad_fn", None)).__name__
    return kind.startswith(("DivBackward", "MulBackward"))


def _look_at_graph(tensors):
    """Which variables the graph of a loss leads back to, and how large it is."""
    step = STATE.steps
    if CALLS.graphs >= _MOST_GRAPHS and step not in (10, 11, 18, 19):
        return
    tensors = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    waiting = [one.grad_fn for one in tensors if getattr(one, "grad_fn", None) is not None]
    visited = set(waiting)
    while waiting and len(visited) < _MOST_NODES:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            CALLS.in_graph[id(variable)] = weakref.ref(variable)
        for parent, _ in node.next_functions:
            if parent is not None and parent not in visited:
                visited.add(parent)
                waiting.append(parent)
    CALLS.graphs += 1
    CALLS.graph_sizes.setdefault(step, len(visited))


@quiet("gradients after backward")
def end_backward():
    """A backward pass has run, in a step that is looked at."""
    with records.torch().no_grad():
        for optimizer, use in list(CALLS.optimizers.items()):
            if use.old is None:
                continue
            old, new = use.old, _gradients(optimizer)
            use.old = None
            fresh = _norm([_less(one, before) for one, before in zip(new, old)])
            whole = _norm(new)
            if fresh > 0:
                use.fed = True
                if not use.clean and _norm(old):
                    use.growths.append(whole / fresh)
                    del use.growths[:-200]


def _less(new, old):
    if new is None or old is None or new.shape != old.shape:
        return new
    return new.double() - old.double()


@contained("calls")
def end_step(optimizer, key, *, is_sampled):
    """A step of an optimizer has ended; its gradients are still those that it used. What follows
    the optimizer, None for nothing.
    """
    use = CALLS.optimizers.get(optimizer)
    if use is None:
        return None
    use.id = key
    use.steps += 1
    note("step")
    if is_sampled and CALLS.looks < _MOST_LOOKS:
        _judge_interval(optimizer, use)
    use.begin()
    return use


def _judge_interval(optimizer, use):
    left = _norm(_gradients(optimizer))
    use.looked += 1
    use.backwards += use.pending
    if not use.pending:
        use.empty += 1
    elif use.fed and not left:
        use.erased += 1
    elif use.fed and not use.clean and use.steps > 1:
        use.stale += 1


# Schedulers and clipping.


class ScheduleUse:
    """A scheduler of learning rates."""

    def __init__(self, scheduler):
        self.name = type(scheduler).__name__
        self.line = program.line()
        self.steps = self.early = 0
        self.settings = {}
        self.optimizer = CALLS.optimizers.get(getattr(scheduler, "optimizer", None))


_SETTINGS = (
    "T_max", "step_size", "total_steps", "gamma", "milestones", "T_0", "T_mult", "total_iters",
    "start_factor", "end_factor", "eta_min", "step_size_up", "mode", "patience", "factor",
)  # fmt: skip


@quiet("schedulers")
def _note_scheduler(_result, scheduler, *_args, **_kwargs):
    if scheduler in CALLS.schedulers or len(CALLS.schedules) >= 50:
        return
    use = CALLS.schedulers[scheduler] = ScheduleUse(scheduler)
    CALLS.schedules.append(use)
    for name in _SETTINGS:
        value = getattr(scheduler, name, None)
        if name == "milestones" and value is not None:
            value = tuple(float(one) for one in list(value)[:8])
        if isinstance(value, (int, float, str, tuple)):
            use.settings[name] = value


@quiet("schedulers")
def _note_schedule(_result, scheduler, *arguments, **_kwargs):
    use = CALLS.schedulers.get(scheduler)
    if use is None:  # its own constructor
        return
    use.steps += 1
    use.early += STATE.steps == 0
    note("schedule")
    watched.note_value(scheduler, arguments)


def _clips(kind):
    def make(original):
        def clip(parameters, *args, **kwargs):
            if kind == "norm":
                result = original(parameters, *args, **kwargs)
                _note_clip(kind, args, kwargs, result)
                return result
            _note_clip(kind, args, kwargs, None)
            return original(parameters, *args, **kwargs)

        return clip

    return make


@quiet("clipping")
def _note_clip(kind, args, kwargs, norm):
    note("clip")
    limit = kwargs.get("max_norm" if kind == "norm" else "clip_value", args[0] if args else None)
    line = program.line()
    clip = CALLS.clips.get((kind, line))
    if clip is None:
        if len(CALLS.clips) >= 50:
            return
        clip = CALLS.clips[(kind, line)] = Clip(kind)
    clip.limit = float(limit)
    clip.calls += 1
    if CALLS.looking and records.is_tensor(norm) and len(clip.norms) < 200:
        clip.norms.append(float(norm))


# All of it as fields of a record.


def line_of(name):
    """The line that most calls of a kind come from, 0 for none."""
    lines = {line: site.calls for (kind, line, _), site in CALLS.sites.items() if kind == name}
    return max(lines, key=lines.get, default=0)


def fields():
    """What is written down of the calls."""
    return {
        "calls": [
            {
                "name": name, "line": line, "calls": site.calls, "first": site.first,
                "last": site.last, "loops": list(loops),
            }
            for (name, line, loops), site in CALLS.sites.items()
        ],
        "totals": CALLS.totals,
        "optimizers": [_use_fields(use) for use in CALLS.uses[:50]],
        "schedules": [
            {
                "name": one.name, "steps": one.steps, "early": one.early,
                "settings": one.settings, "line": one.line,
                "optimizer_steps": one.optimizer.steps if one.optimizer else None,
            }
            for one in CALLS.schedules
        ],
        "clippings": [
            {
                "kind": kind, "limit": clip.limit, "calls": clip.calls, "line": line,
                "median": statistics.median(clip.norms) if clip.norms else None,
            }
            for (kind, line), clip in CALLS.clips.items()
        ],
    }  # fmt: skip


def _use_fields(use):
    return {
        "optimizer": use.id, "name": use.name, "line": use.line, "steps": use.steps,
        "looked": use.looked, "stale": use.stale, "erased": use.erased, "empty": use.empty,
        "backwards": use.backwards, "held": use.held, "reached": use.reached,
        "growth": statistics.median(use.growths) if use.growths else None,
    }  # fmt: skip
