"""The options of a command: key=value words → Choices. Each mistake is answered with a sentence
and the closest valid word.
"""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from packaging.utils import canonicalize_name

from bot.cli.option_parsing import REF
from bot.models.config import PYTHON
from bot.models.delivery import Choices
from bot.rules.verbs import CHOICES, HABITS, PREFIX, Option, Word

_VERSION = re.compile(
    r"(\d{1,4}(?:\.\d{1,6}){0,3}(?:\.\*|(?:\.?(?:a|b|rc|post|dev)\d{1,9}){0,2}))(?:\+[a-z0-9.]{1,20})?",
    re.ASCII,
)
_NUMBER = re.compile(r"(\d{1,12})([sm]?)", re.ASCII)
_PATTERNS = {
    "python": re.compile(rf"{PYTHON.removesuffix('$')}(?:\.\d{{1,3}})?", re.ASCII),
    "device": re.compile("cpu|gpu", re.ASCII | re.IGNORECASE),
    "package": re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?", re.ASCII | re.IGNORECASE),
    "ref": REF,
}
_NORMAL: dict[str, Callable[[str], str]] = {"device": str.lower, "package": canonicalize_name}
_SHOWN = 40


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
        chosen = _value(option, value.removeprefix("="))  # torch==2.1.0 is how pip has it
        if chosen is None:
            problems.append(
                f"{shown(word)} is not understood: `{option.key}=` takes {option.values}."
            )
        elif option.package:
            pins.append(f"{option.package}=={chosen}")
        else:
            values["timeout_s" if option.key == "timeout" else option.key] = chosen
    return Choices(pins=tuple(pins), **values), problems


def _unusable(word: str, key: str, option: Option | None, of: Word) -> str:
    """Why a word is no option of this command, "" when it is one."""
    if option is None:
        usual = (known for known in CHOICES.values() if known.available)
        near = closest(key, (known.key for known in usual if known.only in {"", of.verb}))
        kind = "is not an option" if "=" in word else "is neither a command nor an option"
        hint = f"; the closest one is `{near}=`." if near else "."
        return f"{shown(key if '=' in word else word)} {kind}{hint}"
    if option.only not in {"", of.verb}:
        return f"`{option.key}=` works only with `{PREFIX} {option.only}`."
    if not option.available:
        return f"`{option.key}=` is not available in this version."
    return "" if "=" in word else f"{shown(word)} needs a value: write it as `{option.example}`."


def _value(option: Option, text: str) -> str | int | None:
    """The value of an option, None when the text is not one."""
    if option.high:
        return _number(option, text)
    match = (_VERSION if option.package else _PATTERNS[option.key]).fullmatch(text)
    if match is None:
        return None
    # The local part of a version, such as +cu118, names a build that other machines lack.
    return match[1] if option.package else _NORMAL.get(option.key, str)(text)


def _number(option: Option, text: str) -> int | None:
    """A number within its bounds; only a time limit has a unit."""
    match = _NUMBER.fullmatch(text)
    if match is None or (match[2] and option.key != "timeout"):
        return None
    number = int(match[1]) * (60 if match[2] == "m" else 1)
    return number if option.low <= number <= option.high else None
