"""Puts the probe into PyTorch: global hooks of optimisers, loss functions, backward, and what
changes how a step is to be read.
"""

import sys

from . import program, torch_calls, torch_code, torch_data, torch_losses, torch_own, torch_steps
from .core import STATE, follow, patch, quiet
from .torch_forward import FORWARD


def install(torch):
    optimizer = sys.modules["torch.optim.optimizer"]
    if not hasattr(optimizer, "register_optimizer_step_pre_hook"):
        STATE.cannot_see("optimizers: PyTorch before 2.0 has no global optimizer hooks")
        return
    optimizer.register_optimizer_step_pre_hook(torch_steps.before)
    optimizer.register_optimizer_step_post_hook(torch_steps.after)
    for name in torch_losses.NAMES:
        patch(torch.nn.functional, name, torch_losses.watch(name))
    patch(torch.autograd, "backward", torch_losses.backward)
    follow(torch.nn.Module, "__init__", _note_module)
    follow(optimizer.Optimizer, "__init__", _made_optimizer)
    STATE.capturing = _capturing(torch.cuda, torch.jit.is_tracing)
    torch_steps.install(torch)
    torch_data.install(torch)
    torch_code.install(torch)
    torch_own.install(torch)
    FORWARD.arm(True, True)


def _capturing(cuda, tracing):
    """Whether a trace is made of what runs, which ours must not be in; or CUDA records a graph: a
    copy would be replayed with it, a wait would spoil it.
    """

    def capturing():
        if tracing():
            return True
        # The second question alone would start CUDA.
        if not (cuda.is_initialized() and cuda.is_current_stream_capturing()):
            return False
        STATE.cannot_see("steps that CUDA replays as a graph")
        return True

    return capturing


@quiet("lines")
def _note_module(_, module, *_args, **_kwargs):
    program.remember(module, skip_init=True)


@quiet("lines")
def _made_optimizer(_, optimizer, *_args, **_kwargs):
    program.remember(optimizer)
    torch_steps.CREATED.add(optimizer)
    torch_calls.follow_optimizer(optimizer)
    STATE.made = STATE.steps
    torch_losses.LOSSES.idle, torch_losses.LOSSES.quiet_until = False, 0
    torch_losses.LOSSES.wanted = torch_calls.CALLS.looking = True
    torch_steps.RECORDS.clear()
    FORWARD.arm(True, True)
