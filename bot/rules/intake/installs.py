"""Install commands inside a program or a shell block: the requirements they name."""

from __future__ import annotations

import re
import shlex

from packaging.requirements import InvalidRequirement, Requirement

_PIP = re.compile(
    r"^\s*(?:[!%$>]\s?)?(?:sudo )?(?:(?:python[\d.]*|py) -m )?(?:uv )?pip[\d.]* "
    r"install\s+(?P<rest>.+?)\s*\\?$"
)
_MAGIC = re.compile(
    r"^\s*(?:%%?[a-zA-Z_]\w*(?:\s.*)?|![A-Za-z./$({~].*|(?:\$|PS>|C:\\>) ?\S.*|(?:mamba|conda) "
    r"(?:install|create"
    r"|activate)\s.*|apt(?:-get)? install\s.*)$"
)
_VALUED = frozenset(
    {
        "-i",
        "--index-url",
        "-f",
        "--find-links",
        "--extra-index-url",
        "-r",
        "--requirement",
        "-c",
        "--constraint",
        "-t",
        "--target",
        "-e",
        "--editable",
    }
)


def requirements_of(line: str) -> tuple[str, ...] | None:
    """What a `pip install` line names, validated, without links; None when the line is no such
    command.
    """
    match = _PIP.match(line) if "pip" in line else None
    if not match:
        return None
    found: list[str] = []
    skip = False
    for word in _words(match["rest"].split(" #")[0].split("&&")[0].split(" ; ")[0]):
        if skip or word.startswith("-"):
            skip = not skip and word in _VALUED
            continue
        requirement = valid(word)
        if requirement:
            found.append(requirement)
    return tuple(found)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def valid(word: str) -> str:
    """A PEP 508 requirement without a link, or ""."""
    try:
        requirement = Requirement(word.strip("'\"`,\\"))
    except InvalidRequirement:
        return ""
    return "" if requirement.url else str(requirement)


def is_magic(line: str) -> bool:
    """A line for the notebook or the shell and not for Python."""
    return len(line) < 2000 and bool(_MAGIC.match(line))
