"""What a PyTorch model is given between its steps in `eval` mode or without gradients: rows that it
is judged by.
"""

from . import numbers, torch_arrays as arrays, torch_data
from .core import STATE, patch, quiet
from .torch_forward import FORWARD
from .writer import WRITER

_MOST_BATCHES, _MOST_ROWS, _MOST_PLACES = 40, 256, 1 << 12


class Evaluations:
    """The hook of the evaluation that runs, and what each model was given so far."""

    def __init__(self):
        self.handle = None
        self.models, self.given = {}, {}


EVALUATIONS = Evaluations()


def install(torch):
    patch(torch.nn.Module, "eval", _begins)
    patch(torch.no_grad, "__enter__", _begins)
    patch(torch.inference_mode, "__enter__", _begins)


def _begins(original):
    def begins(self, *args):
        if EVALUATIONS.models and EVALUATIONS.handle is None and not STATE.busy:
            _arm()
        return original(self, *args)

    return begins


@quiet("evaluations")
def _arm():
    if not FORWARD.compiled:
        register = arrays.torch().nn.modules.module.register_module_forward_pre_hook
        EVALUATIONS.handle = register(_hook)


def step_ended(model):
    """Forget the hook until the next evaluation; from the first step on the model is known."""
    if EVALUATIONS.handle is not None:
        EVALUATIONS.handle.remove()
        EVALUATIONS.handle = None
    if model is not None and model.id not in EVALUATIONS.given:
        EVALUATIONS.given[model.id] = torch_data.BatchData()
        EVALUATIONS.models.update((id(root), model) for root in model.roots)


def _hook(module, taken):
    model = EVALUATIONS.models.get(id(module))
    if model is not None and any(root is module for root in model.roots):
        _look(module, taken, EVALUATIONS.given[model.id])


@quiet("evaluations")
def _look(module, taken, given):
    torch = arrays.torch()
    if torch.compiler.is_compiling() or (module.training and torch.is_grad_enabled()):
        return
    tensor = arrays.first_tensor(taken)
    if tensor is None or tensor.dim() < 2 or not tensor.is_floating_point():
        return
    place = (tuple(tensor.shape), str(tensor.detach().reshape(-1)[:32].tolist()))
    if given.looks >= _MOST_BATCHES or place in given.places:
        return
    given.looks += 1
    given.places.add(place)
    given.shape, given.dtype = given.shape or tensor.shape, given.dtype or tensor.dtype
    apart = -(-len(tensor) // _MOST_ROWS)  # the first rows of sorted data are not like the rest
    axis = torch_data.axis(tensor)
    given.rows.append(arrays.rows(tensor[::apart], axis, _MOST_PLACES * tensor.shape[axis]))


def finish(model):
    """Tell what a model was given for evaluation, at the end."""
    given = EVALUATIONS.given.get(model)
    if given is None or not given.rows:
        return
    torch = arrays.torch()
    rows = torch.cat([one for one in given.rows if one.shape[1] == given.rows[0].shape[1]])
    told = numbers.summary(torch, arrays.flat(rows, 1 << 16), given.shape, given.dtype)
    columns = numbers.columns(torch, rows)
    WRITER.put("data", model=model, part="evaluation", inputs=told, ids=False, **columns)
