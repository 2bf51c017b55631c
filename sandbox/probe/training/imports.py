"""Arms the probe for each framework as soon as the program has imported it."""

import atexit
import os
import sys
import time

from .core import STATE, quiet
from .records import WRITER


def _torch(module):
    from . import torch_patches

    torch_patches.install(module)


def _torch_data(module):
    from . import torch_loops

    torch_loops.install(module)


def _keras(module):
    from . import keras_fit

    keras_fit.install(module)


def _keras_losses(module):
    if "keras" in sys.modules and hasattr(sys.modules["keras"], "ops"):
        from . import keras_fit

        keras_fit.watch_functions(module)


def _jax(module):
    from . import jax_patches

    jax_patches.install(module)


def _optax(module):
    from . import jax_patches

    jax_patches.install_optax(module)


def _equinox(module):
    from . import jax_patches

    jax_patches.install_equinox(module)


def _seeds(*names):
    def begin(module):
        from . import seeds

        seeds.watch(module, *names)

    return begin


_ARMS = {
    "jax": _jax,
    "optax": _optax,
    "equinox": _equinox,
    "torch": _torch,
    "torch.utils.data": _torch_data,
    "keras": _keras,
    "keras._tf_keras.keras.losses": _keras_losses,
    "numpy.random": _seeds("seed", "default_rng"),
    "torch.random": _seeds("manual_seed"),
    "keras.utils": _seeds("set_random_seed"),
    "jax.random": _seeds("PRNGKey", "key"),
}


def arm(after_import):
    """`after_import(name, hook)` calls a hook with a module that has been imported."""
    for name, begin in _ARMS.items():
        after_import(name, quiet("import of " + name)(begin))
    atexit.register(_end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)


def _in_child():
    """A child of a process that has not trained may train itself; any other writes nothing.
    multiprocessing ends its children without `atexit`, and forgets what was to be done instead.
    """
    if not WRITER.begun:
        STATE.pid = os.getpid()
    WRITER.__init__()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(WRITER, lambda _: util.Finalize(None, _end, exitpriority=-100))


def _unfollowed():
    """Say what kept a program that trains from being followed, as far as its imports tell."""
    if any(name in sys.modules for name in ("optax", "flax", "equinox", "haiku")):
        STATE.cannot_see("steps of JAX: jax.jit compiles them whole and shows no values between")


@quiet("the end")
def _end():
    if os.getpid() != STATE.pid:
        return
    jax_steps = sys.modules.get(__package__ + ".jax_steps")
    if jax_steps is not None:
        jax_steps.finish()
    if not STATE.steps:
        _unfollowed()
    torch_steps = sys.modules.get(__package__ + ".torch_steps")
    has_backward = torch_steps is not None and torch_steps.LOSSES.any
    if not WRITER.begun and not STATE.unseen and not has_backward:
        return
    keras_run = sys.modules.get(__package__ + ".keras_run")
    if keras_run is not None:
        keras_run.finish()
    if torch_steps is not None:
        torch_steps.finish()
    WRITER.put(
        "end",
        steps=STATE.steps,
        seconds=time.time() - STATE.began,
        raised=getattr(sys, "last_value", None) is not None,
        failures=STATE.failures,
        unseen=STATE.unseen[:20],
    )
