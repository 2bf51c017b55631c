"""Arguments and options that several commands share, validated: each mistake gets one
sentence and the next step.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from packaging.requirements import InvalidRequirement, Requirement
from pydantic import ValidationError

from bot.kernel.config import REF
from bot.kernel.errors import UserError
from bot.kernel.job import PARTS, EnvironmentOptions, ModelLimits, Part
from bot.kernel.settings import host

SandboxName = Literal["auto", "docker", "bwrap", "process"]

Run = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="Folder of a run whose verdict is reproduced."),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Run folder. Default: reprise-runs/<issue>-<time>.", metavar="DIR"),
]
Sandbox = Annotated[
    SandboxName,
    typer.Option(
        help="Where the code runs. auto picks the strongest one that works, but never process."
    ),
]
Minutes = Annotated[float, typer.Option(help="Time limit in minutes.", min=0.1, metavar="M")]
Python = Annotated[str | None, typer.Option(help="Python version, such as 3.11.", metavar="V")]
Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--with", help="Package to install, such as 'torch==2.1.0'. Repeatable.", metavar="REQ"
    ),
]
Device = Annotated[Literal["cpu", "gpu"], typer.Option(help="Device to run on.")]
MaxCost = Annotated[float, typer.Option(help="Model budget in US dollars.", min=0, metavar="USD")]
MaxTokens = Annotated[int, typer.Option(help="Model budget in tokens.", min=1_000, metavar="N")]
Json = Annotated[
    bool, typer.Option("--json", help="Print only the JSON report on standard output.")
]

DEFAULT_PROOF_MINUTES = 30.0


# Validate command-line options. Each mistake gets one sentence and the next step.

_PYTHON = re.compile(r"^3\.(\d{1,2})(\.\d{1,3})?$", re.ASCII)
_URL = re.compile(r"^(?:https?|ssh|file)://[^\s]+$|^[\w.-]+@[\w.-]+:[\w./~-]+$", re.ASCII)


def python(value: str | None) -> str | None:
    """A version such as 3.11 or 3.11.4, with an interpreter on this machine."""
    if value is None:
        return None
    if (match := _PYTHON.match(value)) is None:
        raise UserError(
            f"--python {value} is not a Python 3 version.", "Write it as --python 3.11."
        )
    from sandbox.interpreters import discover

    minors = [interpreter.minor for interpreter in discover(host())]
    if f"3.{match.group(1)}" not in minors:
        raise UserError(
            f"Python {value} is not installed here (available: {', '.join(minors) or 'none'}).",
            f"Install it with: uv python install {value}",
        )
    return value


def pins(values: Sequence[str]) -> tuple[str, ...]:
    """Requirements such as torch==2.1.0; no addresses, no markers."""
    for value in values:
        try:
            requirement = Requirement(value)
        except InvalidRequirement:
            raise UserError(
                f"--with {value} is not a requirement.", "Write it as --with 'torch==2.1.0'."
            ) from None
        if requirement.url or requirement.marker:
            what = "a URL" if requirement.url else "an environment marker"
            raise UserError(
                f"--with {value} contains {what}.",
                "Use a name and a version, or --repo for a clone.",
            )
    return tuple(values)


def times(value: str, *, or_none: bool = False) -> float:
    """A multiple such as 10x; 0 where it may also be none."""
    match = re.fullmatch(r"(\d{1,4}(?:\.\d{1,2})?)x?", value, re.ASCII)
    number = float(match[1]) if match else -1.0
    if number >= 1 or (or_none and number == 0):
        return number
    least = "at least 1, or 0" if or_none else "at least 1"
    raise UserError(f"--budget {value} is not a multiple of {least}.", "Write it as 10x.")


def duration(value: str) -> float:
    """Minutes, of a time such as 90m, 2h or 45 (minutes)."""
    match = re.fullmatch(r"(\d{1,4}(?:\.\d{1,2})?)\s*(s|m|min|h)?", value.strip(), re.ASCII)
    factor = {"s": 1 / 60, "h": 60.0}.get(match[2] or "m", 1.0) if match else 0.0
    minutes = float(match[1]) * factor if match else 0.0
    if not 0.1 <= minutes <= 7 * 24 * 60:
        raise UserError(f"--budget {value} is not a time.", "Write it as 90m or 2h.")
    return minutes


def paper_source(value: str) -> str:
    """A path as an absolute one, so that a run can be gone on with from elsewhere; anything else
    as it is.
    """
    path = Path(value).expanduser()
    return str(path.resolve()) if value and path.exists() else value


def repo(value: str | None) -> str | None:
    """The absolute path of an existing folder, or the URL of a clone."""
    if value is None or _URL.match(value):
        return value
    path = Path(value).expanduser()
    if not path.is_dir():
        raise UserError(
            f"--repo {value} is neither a folder nor a URL.",
            "Pass the folder of a clone, or https://host/owner/name.",
        )
    return str(path.resolve())


def check_no_repo(repo: str | None, command: str | None, *, no_repo: bool) -> None:
    """Raises UserError for a repository or a command where there is no code."""
    if no_repo and (repo or command):
        option = "--repo" if repo else "--command"
        raise UserError(
            f"--no-repo and {option} exclude each other.",
            "Leave out --no-repo to run the paper's own code.",
        )


def cited_works(values: Sequence[str]) -> dict[str, str]:
    """Repositories of cited works by the keys of their references."""
    repositories = dict[str, str]()
    for value in values:
        key, equals, place = value.partition("=")
        address = repo(place) if equals and key.strip() and place else None
        if address is None:
            raise UserError(
                f"--cited {value} is no reference.", "Write it as --cited smith2020=clone/."
            )
        repositories[key.strip()] = address
    return repositories


def paper_model(
    name: str | None, max_cost: float, max_tokens: int | None, minutes: float, *, writes_code: bool
) -> ModelLimits:
    """What a model may cost; one that writes code is asked more often, for as long as the budget
    lasts.
    """
    if not writes_code:
        return ModelLimits(name=name, max_cost=max_cost, max_tokens=max_tokens or READING_TOKENS)
    return ModelLimits(
        name=name,
        max_cost=max_cost,
        max_tokens=max_tokens or WRITING_TOKENS,
        max_calls=WRITING_CALLS,
        minutes=minutes,
    )


READING_TOKENS, WRITING_TOKENS, WRITING_CALLS = 200_000, 2_000_000, 80


def data(values: Sequence[str], repo: str | None, *, needs_clone: bool = True) -> dict[str, str]:
    """Paths in the clone given by `repo`, each with a folder, file or archive of this machine."""
    by_path: dict[str, str] = {}
    for value in values:
        path, equals, source = value.partition("=")
        place = Path(source).expanduser()
        if not equals or not source or not place.exists():
            raise UserError(
                f"--data {value} names no folder or archive of this machine.",
                "Write it as --data data/mnist=/srv/mnist.",
            )
        by_path[path] = str(place.resolve())
    if by_path and repo is None and needs_clone:
        raise UserError("--data needs a clone.", "Add --repo with a folder or a URL.")
    try:
        return EnvironmentOptions(data=by_path).data
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UserError(f"--data: {reason}.", "Write it as --data data/mnist=/srv/mnist.") from None


def command(value: str | None, repo: str | None) -> str:
    """A command that starts a Python program of the clone given by `repo`."""
    from bot.kernel.commands import read_command

    if value is None:
        return ""
    if repo is None:
        raise UserError("--command needs a clone.", "Add --repo with a folder or a URL.")
    if read_command(value) is None:
        raise UserError(
            f"--command {value!r} starts no Python program of the clone.",
            "Write it as --command 'python train.py --x 1'.",
        )
    return value


def ref(value: str | None, repo: str | None = None, option: str = "--ref") -> str | None:
    """A branch, tag or commit of the clone given by `repo`."""
    if value is None:
        return None
    if not REF.fullmatch(value):
        raise UserError(
            f"{option} {value} is not a branch, tag or commit.",
            f"Write it as {option} v1.2.0.",
        )
    if repo is None:
        raise UserError(
            f"--ref {value} needs a clone.",
            "Add --repo with a folder or a URL.",
        )
    return value


def parts(*texts: str, choices: Sequence[Part] = PARTS) -> tuple[Part, ...]:
    """The parts to skip, from one or several comma-separated texts."""
    split = (name.strip() for text in texts for name in text.split(","))
    names = tuple(name for name in split if name)
    able: dict[str, Part] = {part: part for part in choices}
    if unknown := [name for name in names if name not in able]:
        raise UserError(
            f"--without {unknown[0]} is not a part of a run.", f"Choose from {', '.join(able)}."
        )
    return tuple(able[name] for name in dict.fromkeys(names))
