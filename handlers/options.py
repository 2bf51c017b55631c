"""The options of a command: key=value words → Choices. Each mistake is answered with a sentence
and the closest valid word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from packaging.utils import InvalidName, canonicalize_name

from bot.cli.option_parsing import ref as checked_ref
from bot.errors import UserError
from bot.models.command import Choices
from bot.models.config import PYTHON
from bot.rules.verbs import CHOICES, HABITS, PREFIX, Option, Word

_PYTHON = re.compile(rf"{PYTHON.removesuffix('$')}(?:\.\d{{1,3}})?", re.ASCII)
_VERSION = re.compile(
    r"(\d{1,4}(?:\.\d{1,6}){0,3}(?:\.\*|(?:\.?(?:a|b|rc|post|dev)\d{1,9}){0,2}))(?:\+[a-z0-9.]{1,20})?",
    re.ASCII,
)
_SECONDS = re.compile(r"(\d{1,6})\s*(s|m)?", re.ASCII)
_SHOWN = 40
_MOST_NAME = 100


def shown(word: str) -> str:
    """A word of a stranger, as a sentence of ours quotes it: short, and unable to end the
    quotation.
    """
    word = word.replace("`", "'")
    return "`" + (word if len(word) <= _SHOWN else word[: _SHOWN - 1] + "…") + "`"


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that someone may have meant, "" when none is near."""
    names = list(known)
    habit = HABITS.get(word.lower())
    if habit in names:
        return habit
    return next(iter(get_close_matches(word.lower()[:_SHOWN], names, n=1, cutoff=0.6)), "")


def read(words: Iterable[str], of: Word) -> tuple[Choices, list[str]]:
    """The choices that the words after a verb make, and a sentence for each that is not
    understood.
    """
    values: dict[str, Any] = {}
    pins: list[str] = []
    problems: list[str] = []
    given: set[str] = set()
    for word in words:
        key, _, value = word.partition("=")
        option = CHOICES.get(key.lower())
        problem = _unusable(word, key, option, of) or (
            f"`{key.lower()}=` is given twice." if key.lower() in given else ""
        )
        given.add(key.lower())
        if option is None or problem:
            problems.append(problem)
            continue
        name, chosen = _value(option, value.removeprefix("="))  # torch==2.1.0 is how pip has it
        if chosen is None:
            problems.append(
                f"{shown(word)} is not understood: `{option.key}=` takes {option.values}."
            )
        elif option.package:
            pins.append(f"{option.package}=={chosen}")
        else:
            values[name] = chosen
    return Choices(pins=tuple(pins), **values), problems


def _unusable(word: str, key: str, option: Option | None, of: Word) -> str:
    if option is not None and option.only not in {"", of.verb}:
        return f"`{option.key}=` works only with `{PREFIX} {option.only}`."
    if option is not None and option.available:
        return (
            "" if "=" in word else f"{shown(word)} needs a value: write it as `{option.example}`."
        )
    if option is not None:
        return f"`{option.key}=` is not available in this version."
    near = closest(
        key,
        (
            name
            for name, known in CHOICES.items()
            if known.available and known.only in {"", of.verb}
        ),
    )
    kind = "is not an option" if "=" in word else "is neither a command nor an option"
    return f"{shown(key if '=' in word else word)} {kind}" + (
        f"; the closest one is `{near}=`." if near else "."
    )


def _value(option: Option, text: str) -> tuple[str, object]:
    """The field of Choices and its value, None when the text is not one."""
    if option.package:
        return "pins", _version(text)
    if option.key == "timeout":
        return "timeout_s", _seconds(option, text)
    if option.high:
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else -1
        return option.key, number if option.low <= number <= option.high else None
    return option.key, _PARSERS.get(option.key, _ref)(text)


def _version(text: str) -> str | None:
    """A version without its local part: one such as +cu118 names a build that other machines
    lack.
    """
    match = _VERSION.fullmatch(text)
    return match.group(1) if match else None


def _seconds(option: Option, text: str) -> float | None:
    match = _SECONDS.fullmatch(text)
    seconds = int(match.group(1)) * (60 if match.group(2) == "m" else 1) if match else -1
    return float(seconds) if option.low <= seconds <= option.high else None


def _device(text: str) -> str | None:
    return text.lower() if text.lower() in {"cpu", "gpu"} else None


def _python(text: str) -> str | None:
    return text if _PYTHON.fullmatch(text) else None


def _distribution(text: str) -> str | None:
    """A name as PEP 508 has it, in its normal form."""
    try:
        return (
            canonicalize_name(text, validate=True)
            if text.isascii() and len(text) <= _MOST_NAME
            else None
        )
    except InvalidName:
        return None


def _ref(text: str) -> str | None:
    try:
        return checked_ref(text, "here")
    except UserError:
        return None


_PARSERS: dict[str, Callable[[str], str | None]] = {
    "device": _device,
    "python": _python,
    "package": _distribution,
}
