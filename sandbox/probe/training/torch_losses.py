"""Watches loss functions: what they are fed, and the loss of each step."""

import sys

from . import (
    numbers,
    program,
    torch_arrays as arrays,
    torch_expressions as expressions,
    torch_forward,
    torch_graph as graph,
)
from .core import STATE, quiet
from .trivial import floor, trivial
from .vocabulary import OF_CLASSES, TORCH_LOSSES
from .writer import WRITER

NAMES = {function: (name, logits) for name, (function, _, logits) in TORCH_LOSSES.items()}
NAMES.update({
    "gaussian_nll_loss": ("gaussian_nll", None),
    "cosine_embedding_loss": ("cosine_embedding", None),
    "margin_ranking_loss": ("margin_ranking", None),
    "triplet_margin_loss": ("triplet_margin", None),
    "ctc_loss": ("ctc", None),
})  # fmt: skip
_SETTINGS = ("reduction", "label_smoothing", "ignore_index", "log_input", "full", "delta", "beta")
_WEIGHTS, _MOST_WEIGHTS = (
    {"cross_entropy": "weight", "nll": "weight", "bce_logits": "pos_weight"},
    64,
)
_LOOKS, _MOST_USES = 3, 100


class LossUse:
    """One use of a loss function in the program, for a model that may be dropped."""

    def __init__(self, model):
        self.model = model
        self.looks = 0
        self.fields = self.wanted = None
        self.models = set()


class Losses:
    """The losses since the last step, and each use of a loss function."""

    def __init__(self):
        self.backward = []
        self.scaled = {}
        self.last = None
        self.values = []
        self.node = self.penalty = None
        self.penalised = None
        self.uses = {}
        self.pending = []
        self.wanted, self.idle = True, False
        self.targets = None
        self.any = False
        self.told = {}


LOSSES = Losses()


class Judged:
    """What loss functions returned without gradients since the last step, left on the device."""

    def __init__(self):
        self.begin(0)

    def begin(self, steps):
        self.steps = steps
        self.calls = self.rows = 0
        self.last = self.total = self.weighted = 0.0


JUDGED = Judged()


def watch(name):
    """A patch of a loss function in `torch.nn.functional`."""

    def make(original):
        def loss_function(*args, **kwargs):
            result = original(*args, **kwargs)
            if not _compiling():
                if not LOSSES.idle:
                    _called(name, args, kwargs, result)
                if not getattr(result, "requires_grad", True):
                    _judged(args, kwargs, result)
            return result

        loss_function.__prepare_scriptable__ = lambda: original
        return loss_function

    return make


def _compiling():
    return sys.modules["torch"].compiler.is_compiling()


@quiet("loss functions")
def _called(name, args, kwargs, result):
    if not arrays.is_tensor(result) or not result.requires_grad:
        return
    if result.dim() == 0:
        LOSSES.node = result.grad_fn
        LOSSES.values.append(result.detach())
        del LOSSES.values[:-256]
    given = list(args) + [kwargs[key] for key in ("input", "target") if key in kwargs]
    if len(given) > 1 and LOSSES.wanted:
        _look(name, given[0], given[1], kwargs, result)


@quiet("losses of evaluations")
def _judged(args, kwargs, result):
    if not arrays.is_tensor(result) or result.dim() or not STATE.steps:
        return
    if JUDGED.steps != STATE.steps:
        JUDGED.begin(STATE.steps)
    target = args[1] if len(args) > 1 else kwargs.get("target")
    rows = len(target) if arrays.is_tensor(target) and target.dim() else 1
    JUDGED.calls, JUDGED.rows = JUDGED.calls + 1, JUDGED.rows + rows
    JUDGED.last = result.detach()
    JUDGED.total = JUDGED.last + JUDGED.total
    JUDGED.weighted = JUDGED.last * rows + JUDGED.weighted


def finish():
    """Tell what the last evaluation came to, as a program may sum it up."""
    if not JUDGED.calls:
        return
    last, total, weighted = arrays.fetch([JUDGED.last, JUDGED.total, JUDGED.weighted])
    mean, by_rows = total / JUDGED.calls, weighted / JUDGED.rows
    WRITER.put("evaluation", losses=[last, total, mean, by_rows, total / JUDGED.rows])


def _look(name, predictions, targets, kwargs, result):
    if not (arrays.is_tensor(predictions) and arrays.is_tensor(targets)):
        return
    where, made = _place()
    use = _use(name, made or where)
    torch_forward.close(predictions)
    canonical, logits = NAMES[name]
    LOSSES.targets = (targets.detach(), _targets(canonical, predictions, targets))
    if use.looks < _LOOKS:
        use.looks += 1
        known = torch_forward.FORWARD.known
        applied = graph.last_activation(predictions.grad_fn, known) if predictions.grad_fn else ""
        use.fields, use.wanted = describe(canonical, predictions, targets, applied)
        use.fields.update(
            from_logits=logits, settings=_settings(canonical, kwargs), line=made or where
        )
    LOSSES.pending.append(use)
    del LOSSES.pending[:-16]


def _use(name, line):
    """The use of a loss in one line for one model; another may live where one was dropped."""
    model = torch_forward.FORWARD.last
    key = (name, line, id(model and model()))
    found = LOSSES.uses.get(key)
    if found is None or (found.model is not None and found.model() is None):
        found = LOSSES.uses[key] = LossUse(model)
    while len(LOSSES.uses) > _MOST_USES:
        del LOSSES.uses[next(iter(LOSSES.uses))]
    return found


def _place():
    """The line of the call and, for a loss module, that where it was made."""
    frame, made = sys._getframe(5), 0
    for _ in range(12):
        if frame is None:
            break
        module = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if type(module).__module__ == "torch.nn.modules.loss":
            made = program.made(module)
            break
        frame = frame.f_back
    return program.line(), made


def _settings(name, given):
    kinds = (str, int, float, bool)
    told = {key: given[key] for key in _SETTINGS if isinstance(given.get(key), kinds)}
    weights = given.get(_WEIGHTS.get(name))
    if arrays.is_tensor(weights) and 0 < weights.numel() <= _MOST_WEIGHTS:
        told["weights"] = weights.detach().reshape(-1).tolist()
    return told


def _axis(name, predictions):
    return min(1, predictions.dim() - 1) if name in OF_CLASSES else -1


def _targets(name, predictions, targets):
    """A table of targets: a column of labels, or a row for each place."""
    if targets.dim() and targets.shape == predictions.shape:
        return arrays.rows(targets, _axis(name, predictions), 1 << 16)
    return arrays.rows(targets.reshape(-1), most=1 << 16)


def describe(name, predictions, targets, applied):
    """The fields of a loss, and a table of its targets."""
    table = arrays.rows(predictions, _axis(name, predictions))
    fields = {
        "name": name,
        "activation": applied or numbers.activation(arrays.torch(), table),
        "predictions": arrays.summary(predictions),
        "targets": {"shape": [], "dtype": ""},
        "rows_sum_to_one": numbers.rows_sum_to_one(table),
        "columns_sum_to_one": numbers.columns_sum_to_one(arrays.torch(), table),
    }
    if targets is None:
        return fields, ()
    wide = targets.dim() > 0 and targets.shape == predictions.shape
    wanted = _targets(name, predictions, targets)
    fields["targets"] = arrays.summary(targets)
    fields["one_hot"] = wide and numbers.is_one_hot(wanted)
    fields["integer_targets"] = numbers.is_integral(wanted.reshape(-1))
    return fields, wanted


def targets_told(canonical, wanted, integral, weights=()):
    """What the targets alone say: the shares of the classes and the loss of the best constant."""
    shares = numbers.shares(wanted, integral)
    if canonical in OF_CLASSES:  # the mean is over the weights of the samples
        whole = sum(share * weight for share, weight in zip(shares, weights))
        weights = [weight / whole for weight in weights] if whole else ()
    return {
        "class_shares": shares,
        "trivial": trivial(canonical, wanted, shares, weights),
        "floor": floor(canonical, wanted),
    }


def settle(model):
    """At a step of a model's optimiser: write down the losses that it was trained with."""
    for use in LOSSES.pending:
        if use.fields is not None and model not in use.models:
            use.models.add(model)
            LOSSES.told[model] = use.fields
            if len(use.wanted):
                with_targets(model, use.wanted)
            else:
                WRITER.put("loss", model=model, **use.fields)
    LOSSES.pending.clear()


def with_targets(model, wanted):
    """Write a model's loss again once more of its targets were seen."""
    fields = LOSSES.told.get(model)
    if fields is not None and len(wanted):
        integral = numbers.is_integral(wanted.reshape(-1))
        weights = fields.get("settings", {}).get("weights", ())
        told = targets_told(fields["name"], wanted, integral, weights)
        WRITER.put("loss", model=model, **fields, **told)


def backward(original):
    """A patch of `torch.autograd.backward`, which `Tensor.backward` calls too."""

    def backward(tensors, *args, **kwargs):
        if not LOSSES.idle and not _compiling():
            _backward(tensors)
            _look_back(tensors)
        return original(tensors, *args, **kwargs)

    return backward


@quiet("backward")
def _backward(tensors):
    for tensor in _scalars(tensors):
        scaled = LOSSES.scaled.pop(id(tensor), None)
        LOSSES.backward.append(_value(tensor if scaled is None else scaled))
        LOSSES.any = True
    del LOSSES.backward[:-256]


def _scalars(tensors):
    given = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
    return [one for one in given if arrays.is_tensor(one) and one.numel() == 1]


@quiet("losses written out")
def _look_back(tensors):
    """What the program itself adds to a loss function, or computes in the place of one."""
    for tensor in _scalars(tensors) if LOSSES.wanted else ():
        if LOSSES.pending:
            LOSSES.penalised = expressions.penalised(tensor.grad_fn, LOSSES.node)
        elif tensor.grad_fn is not None:
            LOSSES.penalised = None
            _written_out(tensor)


def _written_out(tensor):
    line, LOSSES.targets = program.line(), None
    use = _use("", line)
    torch_forward.close(tensor)
    found = expressions.read(tensor)
    if found is None:
        return
    if found.targets is not None:
        wanted = _targets(found.name, found.predictions, found.targets)
        LOSSES.targets = (found.targets, wanted)
    if use.looks < _LOOKS:
        use.looks += 1
        parts = (found.name, found.predictions, found.targets, found.applied)
        use.fields, use.wanted = describe(*parts)
        use.fields.update(settings=found.settings, line=line)
    LOSSES.pending.append(use)


def _value(tensor):
    tensor = tensor.detach().reshape(())
    return tensor.item() if tensor.device.type == "cpu" else tensor


def take():
    """The loss of this step: the mean over its backward passes, or, when there was none, what the
    loss function last returned. `LOSSES.penalty` is what the program added to that.
    """
    LOSSES.penalty = None
    if LOSSES.penalised is not None and len(LOSSES.backward) == len(LOSSES.values) == 1:
        LOSSES.penalty = LOSSES.backward[0] - _value(LOSSES.values[0])
    if LOSSES.backward:
        LOSSES.last = _mean(LOSSES.backward, LOSSES.values)
    elif LOSSES.values:
        LOSSES.last = _value(LOSSES.values[-1])
    LOSSES.backward, LOSSES.values, LOSSES.node = [], [], None
    LOSSES.scaled.clear()
    return LOSSES.last


def _mean(losses, values):
    mean = sum(losses) / len(losses) if len(losses) > 1 else losses[0]
    if len(losses) == 1 or len(values) != len(losses):
        return mean
    # Accumulated gradients: a loss that the program has divided by their number is told whole.
    raw = sum(_value(value) for value in values) / len(values)
    near = abs(mean * len(losses) - raw) <= 1e-3 * abs(raw)
    return raw if near else mean
