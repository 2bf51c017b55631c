"""What a PyTorch model is given: the inputs of its first sampled batches, and the rows that it
is judged by.
"""

from . import numbers, records, torch_losses, torch_modes, torch_rows
from .core import STATE, patch, quiet
from .records import WRITER
from .torch_forward import FORWARD
from .torch_losses import LOSSES

_MOST_ROWS, _MOST_BATCHES = 4096, 20


class BatchData:
    """The first batches of a model."""

    def __init__(self):
        self.rows, self.targets, self.samples = [], [], []
        self.shape, self.dtype, self.ids = (), "", False
        self.labels = None
        self.count = self.looks = self.tries = 0
        self.places = set()


BATCH_DATA = {}


def batch(optimizer_state):
    """Take the inputs that the model's first module had in this step, while they are wanted."""
    model = optimizer_state.model
    if model is None:
        return
    data = BATCH_DATA.setdefault(model.id, BatchData())
    tensor, alone = _input(model)
    targets = LOSSES.targets[0] if LOSSES.targets is not None else None
    torch_rows.look(tensor, targets, LOSSES.compared, is_alone=alone)
    if tensor is None or data.looks >= _MOST_BATCHES or data.count >= _MOST_ROWS:
        return
    data.looks += 1
    data.places.add((tuple(tensor.shape), str(tensor.detach().reshape(-1)[:32].tolist())))
    if not data.shape:
        data.shape, data.dtype = tensor.shape, tensor.dtype
        data.ids = _is_ids(tensor)
    wide = tensor.reshape(1, -1) if tensor.dim() == 1 else tensor
    rows = records.rows(wide, batch_axis(tensor), _MOST_ROWS * wide.shape[batch_axis(tensor)])
    data.rows.append(rows)
    data.count += len(rows)
    if LOSSES.targets is not None:
        data.labels = LOSSES.targets[0].shape, LOSSES.targets[0].dtype
        data.targets.append(LOSSES.targets[1])
        if alone and len(tensor) == len(LOSSES.targets[1]):
            thin = numbers.thin(tensor.detach()).cpu().double()
            data.samples.append((thin, LOSSES.targets[1]))
    if data.looks in (1, _MOST_BATCHES) or data.count >= _MOST_ROWS:
        write(model.id, data)


def finish(model):
    """Tell what has come since the first batch, at the end of a short run."""
    data = BATCH_DATA.get(model)
    if data is not None and 1 < data.looks < _MOST_BATCHES and data.count < _MOST_ROWS:
        write(model, data)


def batch_size(model):
    """The first dimension of a batch; 1 for a single vector, None when unknown."""
    data = BATCH_DATA.get(model)
    if data is None or not data.shape:
        return None
    return int(data.shape[0]) if len(data.shape) > 1 or data.ids else 1


def is_whole(model):
    """Whether every batch that was looked at is the same tensor: the whole data each time."""
    data = BATCH_DATA.get(model)
    return data is not None and data.looks > 2 and len(data.places) == 1


def _input(model):
    for root in model.roots:
        entry = FORWARD.modules.get(id(root))
        if entry is not None and entry[1] is not None:
            return entry[1], entry[4]
    return None, False


def _is_ids(tensor):
    return not tensor.is_floating_point() and tensor.dtype != records.torch().bool


def batch_axis(tensor):
    """Channels of images, otherwise the last axis."""
    return 1 if tensor.dim() >= 4 else -1


def _agreement(data):
    torch = records.torch()
    shapes = [(one.shape[1], targets.shape[1]) for one, targets in data.samples]
    if data.ids or len(set(shapes)) != 1:
        return None
    parts = zip(*data.samples)
    return numbers.agreement(torch, *(torch.cat(part).double() for part in parts))


def write(model, data):
    torch = records.torch()
    rows = torch.cat([one for one in data.rows if one.shape[1] == data.rows[0].shape[1]])
    input_summary = numbers.summary(torch, records.flat(rows, 1 << 16), data.shape, data.dtype)
    fields = {"model": model, "inputs": input_summary, "ids": data.ids}
    if data.targets:
        wide = [one for one in data.targets if one.shape[1] == data.targets[0].shape[1]]
        targets = torch.cat(wide)
        fields["targets"] = numbers.summary(torch, records.flat(targets, 1 << 16), *data.labels)
        torch_losses.with_targets(model, targets)
        fields["agreement"] = _agreement(data)
    if not data.ids:
        fields.update(numbers.columns(torch, rows[:_MOST_ROWS]))
    WRITER.put("data", **fields)


# What a PyTorch model is given between its steps in `eval` mode or without gradients: rows that
# it is judged by.

_MOST_JUDGED_BATCHES, _MOST_JUDGED_ROWS, _MOST_PLACES = 40, 256, 1 << 12
_MOST_TRIES = 400  # the same rows come back in each epoch


class Evaluations:
    """The hook of the evaluation that runs, and what each model was given so far."""

    def __init__(self):
        self.handle = None
        self.due = 0  # no evaluation before this step is looked at
        self.models, self.given = {}, {}


EVALUATIONS = Evaluations()


def install(torch):
    patch(torch.nn.Module, "eval", _begins)
    patch(torch.no_grad, "__enter__", _begins)
    patch(torch.inference_mode, "__enter__", _begins)


def _begins(original):
    def begins(self, *args):
        if EVALUATIONS.models and EVALUATIONS.handle is None and not STATE.busy:
            if STATE.steps >= EVALUATIONS.due:
                _arm()
        return original(self, *args)

    return begins


@quiet("evaluations")
def _arm():
    if not FORWARD.compiled:
        register = records.torch().nn.modules.module.register_module_forward_pre_hook
        EVALUATIONS.handle = register(_hook)


def step_ended(model):
    """Forget the hook until the next evaluation; from the first step on the model is known."""
    if EVALUATIONS.handle is not None:
        EVALUATIONS.handle.remove()
        EVALUATIONS.handle = None
    if model is not None and model.id not in EVALUATIONS.given:
        EVALUATIONS.given[model.id] = BatchData()
        EVALUATIONS.models.update((id(root), model) for root in model.roots)


def _hook(module, arguments):
    model = EVALUATIONS.models.get(id(module))
    if model is not None and any(root is module for root in model.roots):
        _look(module, arguments, EVALUATIONS.given[model.id])


@quiet("evaluations")
def _look(module, arguments, data):
    torch = records.torch()
    if torch.compiler.is_compiling() or (module.training and torch.is_grad_enabled()):
        return
    torch_modes.judge(module, with_gradients=torch.is_grad_enabled())
    data.tries += 1
    if data.tries > _MOST_TRIES:  # one look at some evaluations, at all in training mode
        EVALUATIONS.due = STATE.steps + 1 + (0 if module.training else STATE.steps // 10)
        EVALUATIONS.handle.remove()
        EVALUATIONS.handle = None
        return
    if data.looks >= _MOST_JUDGED_BATCHES:
        return
    tensor = records.first_tensor(arguments)
    if tensor is None or tensor.dim() < 2 or not tensor.is_floating_point():
        return
    place = (tuple(tensor.shape), str(tensor.detach().reshape(-1)[:32].tolist()))
    if place in data.places:
        return
    torch_rows.judge(tensor)
    data.looks += 1
    data.places.add(place)
    data.shape, data.dtype = data.shape or tensor.shape, data.dtype or tensor.dtype
    apart = -(
        -len(tensor) // _MOST_JUDGED_ROWS
    )  # the first rows of sorted data are not like the rest
    axis = batch_axis(tensor)
    data.rows.append(records.rows(tensor[::apart], axis, _MOST_PLACES * tensor.shape[axis]))


def finish_evaluation(model):
    """Tell what a model was given for evaluation, at the end."""
    data = EVALUATIONS.given.get(model)
    if data is None or not data.rows:
        return
    torch = records.torch()
    rows = torch.cat([one for one in data.rows if one.shape[1] == data.rows[0].shape[1]])
    input_summary = numbers.summary(torch, records.flat(rows, 1 << 16), data.shape, data.dtype)
    columns = numbers.columns(torch, rows)
    WRITER.put("data", model=model, part="evaluation", inputs=input_summary, ids=False, **columns)
