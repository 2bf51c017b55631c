"""The options of a command line → Options, each mistake answered with one sentence and the next step."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from bot.errors import UserError
from bot.models.job import PARTS, Part

_PYTHON = re.compile(r"^3\.(\d{1,2})(\.\d{1,3})?$", re.ASCII)
_REF = re.compile(r"^\w[\w./@+~^-]{0,200}$", re.ASCII)
_URL = re.compile(r"^(?:https?|ssh|file)://[^\s]+$|^[\w.-]+@[\w.-]+:[\w./~-]+$", re.ASCII)


def python(value: str | None, here: Callable[[], Sequence[str]]) -> str | None:
    """A version such as 3.11 or 3.11.4, of a Python that is here (`here` names the minor versions)."""
    if value is None:
        return None
    match = _PYTHON.match(value)
    if match is None:
        raise UserError(f"--python {value} is not a version of Python 3.", "Give one such as --python 3.11.")
    minors = here()
    if f"3.{match.group(1)}" not in minors:
        known = ", ".join(minors) or "none"
        raise UserError(f"Python {value} is not on this machine ({known}).", f"Install it with: uv python install {value}")
    return value


def pins(values: Sequence[str]) -> tuple[str, ...]:
    """Requirements such as torch==2.1.0; no addresses, no markers."""
    for value in values:
        try:
            parsed = Requirement(value)
        except InvalidRequirement:
            raise UserError(f"--with {value} is not a requirement.", "Write it as --with 'torch==2.1.0'.") from None
        if parsed.url or parsed.marker:
            what = "an address" if parsed.url else "a condition"
            raise UserError(f"--with {value} holds {what}.", "Give a name and a version; --repo takes a clone.")
    return tuple(values)


def repo(value: str | None) -> str | None:
    """A folder that exists, made absolute, or the address of a clone."""
    if value is None or _URL.match(value):
        return value
    path = Path(value).expanduser()
    if not path.is_dir():
        raise UserError(
            f"--repo {value} is neither a folder nor an address.", "Give a clone's folder or https://host/owner/name."
        )
    return str(path.resolve())


def ref(value: str | None, repo: str | None = None, option: str = "--ref") -> str | None:
    """A branch, a tag or a commit of the clone that is given with it."""
    if value is not None and (not _REF.match(value) or ".." in value):
        raise UserError(f"{option} {value} is not a branch, a tag or a commit.", f"Give one such as {option} v1.2.0.")
    if value is not None and repo is None:
        raise UserError(
            f"--ref {value} names a place in a clone, and no clone was given.", "Add --repo with a folder or an address."
        )
    return value


def parts(*texts: str) -> tuple[Part, ...]:
    """Parts to leave out, with commas between, in one text or several."""
    named = tuple(each.strip() for text in texts for each in text.split(",") if each.strip())
    known: dict[str, Part] = {part: part for part in PARTS}
    if unknown := [each for each in named if each not in known]:
        raise UserError(f"--without {unknown[0]} is no part of a run.", f"Choose from {', '.join(PARTS)}.")
    return tuple(known[each] for each in dict.fromkeys(named))
