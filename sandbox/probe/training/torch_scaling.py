"""Gradient scaling, schedulers and compilation in PyTorch."""

from . import torch_arrays as arrays, torch_forward, torch_steps
from .core import STATE, follow, patch, quiet
from .torch_losses import LOSSES


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
    if arrays.is_tensor(outputs) and arrays.is_tensor(result) and result is not outputs:
        LOSSES.scaled[id(result)] = outputs.detach()


def _step(original):
    def step(self, optimizer, *args, **kwargs):
        tracked = torch_steps.OPTIMIZERS.get(optimizer)
        steps = tracked.steps if tracked is not None else 0
        result = original(self, optimizer, *args, **kwargs)
        _stepped(optimizer, steps)
        return result

    return step


@quiet("gradient scaling")
def _stepped(optimizer, steps):
    tracked = torch_steps.OPTIMIZERS.get(optimizer)
    if tracked is not None and tracked.steps == steps:
        with arrays.torch().no_grad():
            tracked.sampled = False
            torch_steps.step(optimizer, tracked, True)


@quiet("schedulers")
def _scheduled(_, _scheduler, optimizer, *_args, **_kwargs):
    torch_steps.SCHEDULED.add(optimizer)


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
