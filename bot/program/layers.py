"""A layer of a model as the text makes it, and what activations are called."""

from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from bot.kernel.training_types import Framework, Layer
from bot.program.text import snake
from sandbox.probe.training.vocabulary import KERAS_ACTIVATIONS, TORCH_ACTIVATIONS

# The activation functions: what Keras and PyTorch call them.

CHOICES = (
    "linear", "relu", "leaky_relu", "elu", "selu", "gelu", "silu", "tanh", "sigmoid", "softmax",
    "log_softmax", "softplus", "softsign", "hard_sigmoid",
)  # fmt: skip

MODULES = {
    name: f"{kind}(dim={{dim}})" if "softmax" in name else f"{kind}()"
    for kind, name in TORCH_ACTIVATIONS.items()
    if name in CHOICES
}
"""The PyTorch modules, as they are constructed."""

FUNCTIONS = {name: name for name in CHOICES if name != "linear"} | {"hard_sigmoid": "hardsigmoid"}
"""The functions of `torch.nn.functional`."""
_BARE = ("relu", "tanh", "sigmoid", "softmax", "log_softmax", "selu")
_NAMES = {function: name for name, function in FUNCTIONS.items()} | {
    "relu_": "relu", "sigmoid_": "sigmoid", "tanh_": "tanh", "relu6": "relu6", "mish": "mish",
    "hardtanh": "hardtanh", "logsigmoid": "log_sigmoid",
}  # fmt: skip
_METHODS = ("relu", "sigmoid", "tanh", "softmax", "log_softmax", "relu_", "sigmoid_", "tanh_")

_ALIASES = {"swish": "silu", "none": "linear", "identity": "linear", "leakyrelu": "leaky_relu"}


def of_module(name: str) -> str:
    """The canonical name of a PyTorch activation module, "" for another module."""
    return TORCH_ACTIVATIONS.get(name, "")


def of_keras_layer(name: str) -> str:
    """The canonical name of a Keras layer that is an activation, "" for another."""
    return KERAS_ACTIVATIONS.get(name, "")


def of_function(full: str) -> str:
    """The canonical name of a PyTorch function by its full name, or of a tensor's method, ".relu";
    "" for any other.
    """
    package, _, name = full.rpartition(".")
    if package in ("torch", "torch.nn.functional", "torch.special"):
        return _NAMES.get(name, "")
    return _NAMES.get(name, "") if full.startswith(".") and name in _METHODS else ""


def canonical(name: str) -> str:
    """The canonical name of what a Keras program writes."""
    short = snake(name) if not name.islower() else name
    return _ALIASES.get(short, short) or "linear"


def functions_named(name: str) -> list[str]:
    """The full names under which PyTorch has a function, the shortest first."""
    own = FUNCTIONS[name]
    return [*([f"torch.{own}"] if own in _BARE else []), f"torch.nn.functional.{own}"]


PASSING = (
    "dropout", "batchnorm", "batchnormalization", "layernorm", "layernormalization", "groupnorm",
    "maxpool", "avgpool", "averagepool", "adaptive", "globalmax", "globalaverage", "flatten",
    "unflatten", "reshape", "identity", "spatialdropout", "alphadropout", "gaussian", "upsampl",
    "zeropad", "cropping", "permute", "instancenorm", "rescaling",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class WrittenLayer:
    """`call` constructs it. `index` is as in a trace. `path` is the name of a PyTorch module within
    its class. `holder` is what lists it: a call of `Sequential`, a class, a function, the module.
    `seen` is what a trace says of it.
    """

    framework: Framework
    type: str
    call: cst.Call
    index: int = 0
    path: str = ""
    holder: cst.CSTNode | None = None
    seen: Layer | None = None

    @property
    def passing(self) -> bool:
        """Whether it has neither weights to speak of nor a function: an activation may follow it
        as it may follow what is before it.
        """
        return self.type.lower().startswith(PASSING)

    def at(self, index: int, recorded: Layer | None = None) -> WrittenLayer:
        """The layer with its place in the model."""
        return replace(self, index=index, seen=recorded)
