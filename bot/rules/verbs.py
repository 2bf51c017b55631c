"""What can be asked for in a comment: one table of verbs and one of options; the parser and the help are made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from annotated_types import Ge, Le

from bot.models.command import Verb
from bot.models.config import Defaults

PREFIX = "/reproduce"


@dataclass(frozen=True, slots=True)
class Word:
    """A verb. `arguments` is how they are written, `does` what it does in one line; `available` False: known, but this
    version's engine cannot do it. `options`: whether key=value may follow.
    """

    verb: Verb
    arguments: str
    does: str
    available: bool = True
    options: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """An option. `values` is what may be written, as words; `package` the distribution that a version of it pins; `low` and
    `high` the bounds of a number; `only` the one verb that it means something to, "" for all that take options.
    """

    key: str
    values: str
    does: str
    example: str
    package: str = ""
    low: int = 0
    high: int = 0
    only: Verb | Literal[""] = ""
    available: bool = True


_OPTIONS = "[key=value …]"

VERBS: tuple[Word, ...] = (
    Word("reproduce", _OPTIONS, "Runs the report of this issue and posts the verdict.", options=True),
    Word("control", _OPTIONS, "Runs the report, then what should not fail beside what does.", options=True),
    Word("bisect", f"[package=NAME] {_OPTIONS}", "Runs the report, then finds the release that broke it.", options=True),
    Word("minimize", _OPTIONS, "Runs the report, then makes its program smaller.", options=True),
    Word("status", "", "Says what is running or waiting here."),
    Word("cancel", "", "Stops what is running or waiting here."),
    Word("approve", "<hash>", "Lets a waiting plan run; needs write permission."),
    Word("config", "", "Shows the configuration that holds here."),
    Word("help", "", "Shows this list."),
    Word("diagnose", "", "Looks for what is wrong with the training.", available=False, options=True),
    Word("repair", "", "Tries changes of hyperparameters.", available=False, options=True),
    Word("pr", "", "Opens a draft pull request with a regression test.", available=False, options=True),
    Word("paper", "<arXiv id or URL>", "Reads a paper for the settings it states.", available=False),
)


def _version(key: str, example: str, other: str) -> Option:
    package = "" if key == "python" else key
    name = key.capitalize() if key == "python" else key
    which = "a version from 3.6 to 3.15" if key == "python" else "a version"
    return Option(key, f"{which} such as {example} or {other}", f"Version of {name}.", f"{key}={example}", package)


def _number(key: str, unit: str, does: str, example: int, bounds: tuple[int, int]) -> Option:
    return Option(key, f"{unit} from {bounds[0]} to {bounds[1]}", does, f"{key}={example}", low=bounds[0], high=bounds[1])


def _bounds(key: str) -> tuple[int, int]:
    """What the configuration allows for the same thing."""
    marks = Defaults.model_fields[key].metadata
    low = next(mark.ge for mark in marks if isinstance(mark, Ge))
    high = next(mark.le for mark in marks if isinstance(mark, Le))
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high


OPTIONS: tuple[Option, ...] = (
    _version("python", "3.11", "3.11.4"),
    _version("torch", "2.1.0", "2.1.*"),
    _version("keras", "3.3.3", "3.3.*"),
    _version("tensorflow", "2.16.1", "2.16.*"),
    _version("jax", "0.4.30", "0.4.*"),
    _version("numpy", "1.26.4", "1.26.*"),
    _version("transformers", "4.41.2", "4.41.*"),
    _version("lightning", "2.3.0", "2.3.*"),
    Option("device", "cpu or gpu", "What the code runs on.", "device=gpu"),
    _number("runs", "a whole number", "Most confirming runs.", 20, _bounds("runs")),
    _number("seed", "a whole number", "Seed of the first run.", 1, (0, 2**32 - 1)),
    Option("ref", "a branch, a tag or a commit of this repository", "Installs the repository from there.", "ref=v1.2.0"),
    _number("timeout", "seconds", "How long one run of the program may take.", 300, _bounds("timeout")),
    Option(
        "package",
        "the name of a distribution, such as torch",
        "What is bisected, instead of the package under test.",
        "package=torch",
        only="bisect",
    ),
    Option("model", "the name of a model", "Which model reads the report.", "model=NAME", available=False),
)

WORDS: dict[str, Word] = {word.verb: word for word in VERBS}
CHOICES: dict[str, Option] = {option.key: option for option in OPTIONS}

HABITS: dict[str, str] = {
    "pytorch": "torch", "tf": "tensorflow", "np": "numpy", "py": "python", "hf": "transformers", "pl": "lightning",
    "pytorch-lightning": "lightning", "pytorch_lightning": "lightning", "commit": "ref", "branch": "ref", "tag": "ref",
    "repeat": "runs", "times": "runs", "stop": "cancel", "abort": "cancel", "run": "reproduce", "settings": "config",
    "minimise": "minimize", "shrink": "minimize", "reduce": "minimize", "regression": "bisect", "pkg": "package",
    "dist": "package", "fix": "repair", "commands": "help",
}  # fmt: skip
"""What people write, and what it is called here: nothing that letters alone would find."""


def usage(word: Word) -> str:
    """How a verb is written on a line of its own."""
    verb = "" if word.verb == "reproduce" else word.verb
    return " ".join(part for part in (PREFIX, verb, word.arguments) if part)


def help_rows() -> tuple[tuple[str, str], ...]:
    """How each verb that works here is written, and what it does."""
    return tuple((usage(word), word.does) for word in VERBS if word.available)


def option_rows() -> tuple[tuple[str, str], ...]:
    """An example of each option that works here, and what it sets."""
    return tuple((option.example, option.does) for option in OPTIONS if option.available)


def not_yet() -> tuple[str, ...]:
    """The verbs that are known and cannot be done by this version."""
    return tuple(word.verb for word in VERBS if not word.available)
