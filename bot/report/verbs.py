"""The commands of a comment and their options: a row for each, from which they are read, explained
and, where somebody mistypes one, suggested.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from annotated_types import Ge, Le
from packaging.utils import canonicalize_name

from bot.kernel.config import PYTHON, REF, Defaults
from bot.kernel.run import Verb

PREFIX = "/reproduce"
_VERSION = re.compile(
    r"(\d{1,4}(?:\.\d{1,6}){0,3}(?:\.\*|(?:\.?(?:a|b|rc|post|dev)\d{1,9}){0,2}))(?:\+[a-z0-9.]{1,20})?",
    re.ASCII,
)
_TIME, _DAY = re.compile(r"(\d{1,4})([mh])", re.ASCII), 24 * 60
_NUMBER = re.compile(r"(\d{1,12})([sm]?)", re.ASCII)
Value = str | int | None


@dataclass(frozen=True, slots=True)
class Word:
    """A verb. `arguments` shows their syntax, `does` describes it in one line. `options`: whether
    key=value may follow; `always`: whether a kill switch leaves it to do; `instead` is what to do
    where no runs are kept, "" where it works without; `aliases` are words that people use for it
    and that spelling cannot find.
    """

    verb: Verb
    arguments: str
    does: str
    options: bool = False
    always: bool = False
    instead: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """An option. `read` makes a value of what is written, None where it is none; `values` says in
    words what that may be. `package` is the distribution that a version of it pins, `only` the one
    verb that it means something to, "" for all that take options, `field` its name in `Choices`
    where that is another; `aliases` as for a verb.
    """

    key: str
    values: str
    does: str
    example: str
    read: Callable[[str], Value | float]
    package: str = ""
    only: Verb | Literal[""] = ""
    field: str = ""
    aliases: tuple[str, ...] = ()


_OPTIONS = "[key=value …]"

VERBS: tuple[Word, ...] = (
    Word(
        "reproduce",
        _OPTIONS,
        "Reproduces this issue and posts the verdict.",
        options=True,
        aliases=("run",),
    ),
    Word(
        "control",
        _OPTIONS,
        "Reproduces this issue, then looks for a version in which the program passes.",
        options=True,
    ),
    Word(
        "bisect",
        f"[package=NAME] {_OPTIONS}",
        "Reproduces this issue, then looks for the release that introduced the failure.",
        options=True,
        aliases=("regression",),
    ),
    Word(
        "minimize",
        _OPTIONS,
        "Reproduces this issue, then makes a minimal script.",
        options=True,
        aliases=("minimise", "shrink", "reduce"),
    ),
    Word(
        "diagnose",
        f"[budget=3x] {_OPTIONS}",
        "Reproduces this issue, then says why its program trains badly.",
        options=True,
    ),
    Word(
        "repair",
        f"[metric=NAME] [budget=10x] {_OPTIONS}",
        "Diagnoses its program, then looks for the smallest hyperparameter patch proven to help.",
        options=True,
        aliases=("fix",),
    ),
    Word(
        "paper",
        f"[claim=TEXT] [budget=2h] {_OPTIONS}",
        "Compares a number of this repository's paper with runs of the repository.",
        options=True,
    ),
    Word(
        "status",
        "",
        "Lists the runs of this issue, and links all of this repository.",
        always=True,
        instead="The runs are listed in the Actions tab of this repository.",
    ),
    Word(
        "cancel",
        "",
        "Cancels the runs of this issue.",
        always=True,
        instead="Cancel the workflow run in the Actions tab of this repository.",
        aliases=("stop", "abort"),
    ),
    Word(
        "approve",
        "<hash>",
        "Approves the waiting plan with this hash, copied whole; needs write permission.",
        instead="No plans are kept here: someone with write permission comments `/reproduce`.",
    ),
    Word(
        "config",
        "",
        "Shows the configuration of this repository.",
        always=True,
        aliases=("settings",),
    ),
    Word("help", "", "Shows this list.", always=True, aliases=("commands",)),
    Word(
        "pr",
        "",
        "Opens a draft pull request with a regression test, a proven patch or both; needs write "
        "permission.",
        instead="Download the artifact of the workflow run, and use `reprise pr` on a checkout.",
    ),
)


def _matching(pattern: str, normal: Callable[[str], str] = str) -> Callable[[str], Value]:
    whole = re.compile(pattern, re.ASCII | re.IGNORECASE)
    return lambda text: normal(text) if whole.fullmatch(text) else None


def _release(text: str) -> Value:
    """A version without its local part: +cu118 names a build that other machines lack."""
    match = _VERSION.fullmatch(text)
    return match[1] if match else None


def _program(text: str) -> Value:
    """A command in quotes or without them, if it starts a Python program."""
    from bot.kernel.commands import read_command  # the web process is light

    command = text.strip("\"'")
    return command if read_command(command) is not None else None


def _words(text: str) -> Value:
    """The words that choose a number, with quotation marks or without."""
    words = text.strip("\"'“”` ")
    return words if words.isprintable() and any(map(str.isalnum, words)) else None


def _time(text: str) -> float | None:
    """A time in minutes, from one minute to a day."""
    match = _TIME.fullmatch(text)
    minutes = int(match[1]) * (60 if match[2] == "h" else 1) if match else 0
    return float(minutes) if 1 <= minutes <= _DAY else None


def _version(key: str, example: str, other: str, *aliases: str) -> Option:
    which = f"a version such as {example} or {other}"
    does, sample = f"Version of {key}.", f"{key}={example}"
    return Option(key, which, does, sample, _release, package=key, aliases=aliases)


def _whole(low: int, high: int, text: str, *, minutes: bool = False) -> Value:
    """A number within its bounds; only a time limit has a unit."""
    match = _NUMBER.fullmatch(text)
    if match is None or (match[2] and not minutes):
        return None
    number = int(match[1]) * (60 if match[2] == "m" else 1)
    return number if low <= number <= high else None


def _bounds(key: str) -> tuple[int, int]:
    """The bounds of the same setting in the configuration."""
    marks = Defaults.model_fields[key].metadata
    low = next(mark.ge for mark in marks if isinstance(mark, Ge))
    high = next(mark.le for mark in marks if isinstance(mark, Le))
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high


_RUNS, _TIMEOUT, _SEED = _bounds("runs"), _bounds("timeout"), (0, 2**32 - 1)

OPTIONS: tuple[Option, ...] = (
    Option(
        "python",
        "a version from 3.6 to 3.15 such as 3.11 or 3.11.4",
        "Version of Python.",
        "python=3.11",
        _matching(rf"{PYTHON.removesuffix('$')}(?:\.\d{{1,3}})?"),
        aliases=("py",),
    ),
    _version("torch", "2.1.0", "2.1.*", "pytorch"),
    _version("keras", "3.3.3", "3.3.*"),
    _version("tensorflow", "2.16.1", "2.16.*", "tf"),
    _version("jax", "0.4.30", "0.4.*"),
    _version("numpy", "1.26.4", "1.26.*", "np"),
    _version("transformers", "4.41.2", "4.41.*", "hf"),
    _version("lightning", "2.3.0", "2.3.*", "pl", "pytorch-lightning", "pytorch_lightning"),
    Option(
        "device",
        "cpu or gpu",
        "The device to run on.",
        "device=gpu",
        _matching("cpu|gpu", str.lower),
    ),
    Option(
        "runs",
        "a whole number from {} to {}".format(*_RUNS),
        "Maximum number of confirming runs.",
        "runs=20",
        partial(_whole, *_RUNS),
        aliases=("repeat", "times"),
    ),
    Option(
        "seed",
        "a whole number from {} to {}".format(*_SEED),
        "Seed of the first run.",
        "seed=1",
        partial(_whole, *_SEED),
    ),
    Option(
        "ref",
        "a branch, a tag or a commit of this repository (no pull request)",
        "Branch, tag or commit of this repository to install.",
        "ref=v1.2.0",
        # Anyone can open a pull request: what it holds is no ref of this repository.
        _matching(rf"(?-i:(?!(?:refs/)?(?:remotes/[^/]+/)?pull/){REF.pattern})"),
        aliases=("commit", "branch", "tag"),
    ),
    Option(
        "timeout",
        "seconds from {} to {}".format(*_TIMEOUT),
        "Seconds that one run of the program may take.",
        "timeout=300",
        partial(_whole, *_TIMEOUT, minutes=True),
        field="timeout_s",
    ),
    Option(
        "package",
        "the name of a distribution, such as torch",
        "The package to bisect instead of the one under test.",
        "package=torch",
        _matching("[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?", canonicalize_name),
        only="bisect",
        aliases=("pkg", "dist"),
    ),
    Option(
        "command",
        "a command that starts a Python program of this repository, at the end of the line",
        "What to run in this repository; the rest of the line belongs to it.",
        "command=python train.py --epochs 1",
        _program,
    ),
    Option(
        "metric",
        "the name of a metric that the program prints, such as accuracy",
        "The metric to improve, by default the one that the program prints last; "
        "write `NAME:min` where lower is better and the name does not say so.",
        "metric=accuracy",
        _matching("[a-z][a-z0-9_]{0,39}(?::(?:min|max))?", str.lower),
        only="repair",
    ),
    Option(
        "budget",
        "a multiple from 1x to 100x",
        "How long a repair may search, as a multiple of the program's own run time.",
        "budget=20x",
        _matching(r"(?-i:(?:[1-9]\d?|100)x?)", lambda text: text.removesuffix("x")),
        only="repair",
    ),
    Option(
        "budget",
        "a multiple from 0x to 100x",
        "Time for trainings that confirm the findings, as a multiple of the program's own run "
        "time; 0x for none.",
        "budget=5x",
        _matching(r"(?-i:(?:\d{1,2}|100)x?)", lambda text: text.removesuffix("x")),
        only="diagnose",
    ),
    Option(
        "claim",
        "the words of a number's place in the paper, such as Table 2, ours, digits",
        "Which number of the paper, by the words of its place or its value; "
        "by default the one that the issue means, or the main result.",
        "claim=Table 2, ours, digits",
        _words,
        only="paper",
    ),
    Option(
        "budget",
        "a time such as 90m or 2h",
        "Time for all runs of the paper's command.",
        "budget=2h",
        _time,
        only="paper",
        field="minutes",
    ),
)

WORDS: dict[str, Word] = {word.verb: word for word in VERBS}


def option_for(key: str, word: Word) -> Option | None:
    """The option with this key of a command, or the one that it has of another."""
    rows = [option for option in OPTIONS if option.key == key]
    return next((row for row in rows if row.only == word.verb), next(iter(rows), None))


HABITS: dict[str, str] = {alias: word.verb for word in VERBS for alias in word.aliases} | {
    alias: option.key for option in OPTIONS for alias in option.aliases
}
"""Words people use, and the command or option they mean."""


def usage(word: Word) -> str:
    """The syntax of a verb."""
    verb = "" if word.verb == "reproduce" else word.verb
    return " ".join(part for part in (PREFIX, verb, word.arguments) if part)


def help_rows(*, keeps_runs: bool = True) -> tuple[tuple[str, str], ...]:
    """The syntax and description of each verb that works where runs are kept, or are not."""
    return tuple((usage(word), word.does) for word in VERBS if keeps_runs or not word.instead)
