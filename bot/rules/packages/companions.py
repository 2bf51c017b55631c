"""Other packages that a distribution needs although its own metadata does not say so, or says so
too late; each rule with its source.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

TORCH_FAMILY: Final = ("torch", "torchvision", "torchaudio", "torchtext")
"""Exempt from the date cut-off: one modern torch serves most old libraries, and old CPU builds
are seldom to be had.
"""

CUDA_ONLY: Final = ("torchvision", "torchaudio", "torchtext", "torchcodec")
"""The compiled parts of these in the index's builds load only beside its CUDA build of torch;
torchvision alone can be imported without them.
"""

FITTED_VISION: Final = "torchvision>=0.4"
"""The releases of torchvision that require one release of torch each."""

TENSORFLOW: Final = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-gpu",
    "tensorflow-intel",
    "tf-nightly",
)
"""The same import package under several names; two of them in one environment overwrite each
other.
"""

SHARED_VERSIONS: Final = (
    ("lightning", "pytorch-lightning"),
    ("tensorflow", "tensorflow-cpu"),
    ("jax", "jaxlib"),
)
"""Released together under one number: a version claimed for one holds for the other when nothing
else is said.
"""

BACKENDS: Final[dict[str, tuple[str, ...]]] = {
    "accelerate": ("torch",),
    "diffusers": ("torch",),
    "segmentation-models-pytorch": ("torch",),
    "skorch": ("torch",),
    "tensorflow-addons": ("tensorflow",),
    "tensorflow-datasets": ("tensorflow",),
    "tensorflow-hub": ("tensorflow",),
    "tensorflow-probability": ("tensorflow", "jax"),
    "tf-keras": ("tensorflow",),
    "torch-geometric": ("torch",),
    "torch-geometric-temporal": ("torch",),
    "transformers": ("torch", "tensorflow", "jax"),
}
"""Frameworks that a distribution imports but leaves to its user to install; the first one when
the program names none. Source: the `install_requires` of each, where the framework is an extra
or absent.
"""

UNDECLARED: Final[dict[str, tuple[str, ...]]] = {"torch": ("numpy",)}
"""Drawn by no metadata and presumed by everyone: torch warns at import without NumPy, and half
of its API needs it.
"""

KERAS_3: Final = datetime(2023, 11, 28, tzinfo=UTC)
"""Release of Keras 3.0, from when on Keras no longer brings or presumes TensorFlow
(keras.io/keras_3).
"""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on a dependency. It holds for environments whose oldest pinned release is older
    than `until`.
    """

    name: str
    specifier: str
    until: datetime | None
    why: str


BOUNDS: Final = (
    Bound(
        "setuptools",
        "<81",
        None,
        "packages from before 2026 import pkg_resources, which setuptools 82 no longer has "
        "(setuptools.pypa.io/history)",
    ),
    Bound(
        "numpy",
        "<2",
        datetime(2024, 6, 16, tzinfo=UTC),
        "wheels built before NumPy 2.0 do not work with it (numpy.org/doc/2.0-migration)",
    ),
    Bound(
        "protobuf",
        "<3.21",
        datetime(2022, 5, 25, tzinfo=UTC),
        "code generated before protobuf 4 does not work with it (protobuf.dev/news/2022-05-06)",
    ),
)

EXTRAS: Final[dict[str, tuple[str, ...]]] = {"jax": ("cpu",)}
"""Extras to ask for with a pinned release: until 0.4 jax named its jaxlib only there."""

TENSORFLOW_CPU: Final = datetime(2019, 9, 30, tzinfo=UTC)
"""From when on TensorFlow publishes a CPU build under a name of its own (release 2.0 and the
later 1.15).
"""

_FOREIGN: Final = (
    "nvidia-",
    "cuda-",
    "pywin",
    "appnope",
    "conda",
    "mkl",
    "intel-",
    "triton",
    "xformers",
    "jax-cuda",
    "xla",
)


def installed_as(name: str, at: datetime | None = None) -> str:
    """The distribution to install for another: the CPU build where there is one."""
    return (
        "tensorflow-cpu" if name == "tensorflow" and (at is None or at >= TENSORFLOW_CPU) else name
    )


def foreign(name: str) -> bool:
    """Whether a package belongs to another machine: drivers, other systems, other package
    managers.
    """
    return name.startswith(_FOREIGN) or name in {"pip", "wheel", "setuptools"}
