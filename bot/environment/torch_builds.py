"""Which build of torch to take: one for the processor unless a GPU is asked for; the usual one
draws gigabytes.
"""

import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import Tag, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from bot.environment import versions
from bot.kernel.environment import EnvironmentSpec

NONE_TO_BE_HAD = (
    "No CPU build of torch is available: PyTorch's index does not answer, and no folder of wheels "
    "contains one. Put one into a folder listed in PIP_FIND_LINKS, or use --device gpu."
)


@dataclass(frozen=True, slots=True)
class Torch:
    """The decision. `backend` names the index of CPU builds, `pin` and `minor` a local wheel and
    the Python it fits.
    """

    backend: str = ""
    pin: str = ""
    minor: str = ""
    anything: bool = False

    @property
    def possible(self) -> bool:
        """Whether torch can be installed at all."""
        return bool(self.backend or self.pin or self.anything)


def choose(
    spec: EnvironmentSpec,
    folders: Iterable[Path],
    minors: tuple[str, ...],
    reachable: Callable[[], bool],
) -> Torch:
    """The usual build for a GPU or off x86, else the CPU index when it answers, else the nearest
    local CPU wheel.
    """
    if spec.device == "gpu" or platform.machine() != "x86_64":
        return Torch(anything=True)
    if reachable():
        return Torch(backend="cpu")
    builds = list(local_builds(folders, minors))
    if not builds:
        return Torch()
    specifier = next(
        (requirement.specifier for requirement in spec.requirements if requirement.name == "torch"),
        "",
    )
    numbers = {str(version) for version, _ in builds}
    exact = versions.exact_version(specifier)
    order = (
        versions.neighbours(exact, numbers) if exact else sorted(numbers, key=Version, reverse=True)
    )
    best = exact if exact in numbers else order[0]
    if exact and f"{exact}+cpu" in numbers:
        best = f"{exact}+cpu"
    fitting = tuple(minor for version, minor in builds if str(version) == best)
    return Torch(pin=f"torch=={best}", minor=versions.by_distance(spec.python, fitting)[0])


def local_builds(folders: Iterable[Path], minors: tuple[str, ...]) -> Iterable[tuple[Version, str]]:
    """CPU builds in folders of wheels, each with a Python that is present and fits."""
    for folder in folders:
        for path in sorted(folder.glob("torch-*.whl")):
            try:
                _, version, _, tags = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            if version.local == "cpu":
                yield from ((version, minor) for minor in minors if tags & _supported_tags(minor))


def _supported_tags(minor: str) -> frozenset[Tag]:
    return frozenset(cpython_tags(python_version=versions.order(minor)))
