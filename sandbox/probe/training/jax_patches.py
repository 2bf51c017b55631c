"""Puts the probe into JAX, optax and equinox, as soon as they have been imported."""

import functools
import sys

from . import jax_marks, jax_records, jax_steps
from .core import STATE, follow, patch
from .jax_marks import MARKS, is_clean

_OPTIMIZERS = (
    "adam", "adamw", "sgd", "rmsprop", "adagrad", "adadelta", "lamb", "lion", "nadam", "nadamw",
    "radam", "adamax", "adamaxw", "adabelief", "yogi", "novograd", "lars", "adafactor", "noisy_sgd",
    "amsgrad", "sm3", "fromage", "rprop", "adan",
)  # fmt: skip


def install(jax):
    for name in ("grad", "value_and_grad"):
        patch(jax, name, jax_marks.differentiating)
    original = jax.jit
    followed = jax_steps.following(original)
    jax.jit = functools.wraps(original)(followed)
    patch(jax, "pmap", _unseen("pmap"))


def _unseen(name):
    def make(original):
        def mapping(*args, **kwargs):
            return _noting(name, original(*args, **kwargs))

        return mapping

    return make


def _noting(name, mapped):
    @functools.wraps(mapped)
    def noted(*args, **kwargs):
        if MARKS.depth == 0 and is_clean():
            STATE.cannot_see("steps inside jax.%s" % name)
        return mapped(*args, **kwargs)

    return noted


def install_optax(optax):
    _updates(optax)
    for name in _OPTIMIZERS:
        patch(optax, name, jax_marks.making(name))
    if hasattr(optax, "MultiSteps"):
        follow(optax.MultiSteps, "__init__", _accumulating)
    for name in jax_records.LOSSES:
        patch(optax, name, jax_marks.comparing(name))
        losses = sys.modules.get("optax.losses")
        if losses is not None and hasattr(losses, name):
            setattr(losses, name, getattr(optax, name))


def _accumulating(_, _optimizer, *args, **kwargs):
    every = kwargs.get("every_k_schedule", args[1] if len(args) > 1 else None)
    jax_marks.note_accumulation(every)


def install_equinox(equinox):
    _updates(equinox)


def _updates(module):
    patch(module, "apply_updates", jax_marks.updating)
    patch(module, "apply_updates", jax_steps.eager_updates)
