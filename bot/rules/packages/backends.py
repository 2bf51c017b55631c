"""The framework behind a library that leaves it to its user: which one the program means, and
the variable that says so.
"""

import re
from collections.abc import Callable
from datetime import datetime

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from bot.models.environment import PinSource, Requirement
from bot.rules.code import module_names
from bot.rules.packages import companions
from bot.rules.packages.versions import pinned

_CHOSEN = re.compile(r"KERAS_BACKEND\W{1,12}(tensorflow|jax|torch|numpy)\b")
Pin = Callable[[str, str], Requirement]


def add(
    wanted: dict[str, Requirement], source: str, at: datetime | None, pin: Pin
) -> dict[str, str]:
    """Add the frameworks that the wanted distributions need; returns the variables that choose
    between them.
    """
    for name in list(wanted):
        needs = companions.BACKENDS.get(name, ())
        built = [companions.installed_as(need, at) for need in needs]
        if built and not any(each in wanted for each in built):
            wanted[built[0]] = pin(built[0], f"{name} needs it and does not install it")
    if "keras" not in wanted:
        return {}
    return _keras(wanted, source, at, pin)


def _keras(
    wanted: dict[str, Requirement], source: str, at: datetime | None, pin: Pin
) -> dict[str, str]:
    tensorflow = companions.installed_as("tensorflow", at)
    three = keras_3(wanted["keras"].specifier, at)
    backend = _backend(source, tensorflow in wanted) if three else "tensorflow"
    name = tensorflow if backend == "tensorflow" else backend
    chosen = " that the program chooses" if _CHOSEN.search(source) else ""
    if name not in wanted and name != "numpy":
        wanted[name] = pin(name, f"the backend of Keras{chosen}")
    _same_line(wanted, tensorflow, three)
    return {"KERAS_BACKEND": backend} if three else {}


def _same_line(wanted: dict[str, Requirement], tensorflow: str, three: bool) -> None:
    """Keras 2.4 to 2.15 came out together with TensorFlow of the same minor version."""
    keras, beside = wanted["keras"], wanted.get(tensorflow)
    found = re.fullmatch(r"==2\.(\d+)(?:\.[\w*]+)*", keras.specifier)
    if not three and found and beside is not None and not beside.specifier and int(found[1]) >= 4:
        reason = f"Keras 2.{found[1]} was released with TensorFlow 2.{found[1]}"
        wanted[tensorflow] = Requirement(
            name=tensorflow, specifier=f"==2.{found[1]}.*", rung=PinSource.ISSUE, reason=reason
        )


def _backend(source: str, has_tensorflow: bool) -> str:
    if chosen := _CHOSEN.search(source):
        return chosen[1]
    used = () if has_tensorflow else module_names.top_level(source)
    return next((name for name in ("torch", "jax") if name in used), "tensorflow")


def keras_3(specifier: str, at: datetime | None) -> bool:
    """Whether a Keras requirement means version 3, by its number, else by the day."""
    if exact := pinned(specifier):
        return Version(exact).major >= 3
    if specifier:
        allowed = SpecifierSet(specifier)
        threes = map(allowed.contains, ("3.0.0", "3.5.0", "3.10.0", "3.15.0"))
        return any(threes) and not specifier.startswith("==2")
    return at is None or at >= companions.KERAS_3
