"""A layer of a model as the text makes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from bot.models.training import Framework, Layer

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

    def at(self, index: int, seen: Layer | None = None) -> WrittenLayer:
        """The layer with its place in the model."""
        return replace(self, index=index, seen=seen)
