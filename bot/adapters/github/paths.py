"""Outside text as part of an address: a name can never become another path, a query or a
fragment.
"""

import re
from urllib.parse import quote

from bot.service.ports import Gone, Target

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}", re.ASCII)
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:\[bot\])?", re.ASCII)


def names(target: Target) -> tuple[str, str]:
    """Owner and name of a repository. Raises Gone when no repository can be called so."""
    owner, _, name = target.repository.partition("/")
    if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name):
        raise Gone("No repository has such a name.")
    return owner, name


def repository(target: Target) -> str:
    """/repos/OWNER/NAME. Raises Gone when no repository can be called so."""
    owner, name = names(target)
    return f"/repos/{owner}/{name}"


def login(text: str) -> str | None:
    """A login as a part of a path; None when nobody can be called so."""
    return quote(text, safe="") if _LOGIN.fullmatch(text) else None


def segment(text: str) -> str | None:
    """Text as one part of a path; None where a server would take it for none, or for a way up."""
    return None if text.strip() in {"", ".", ".."} else quote(text, safe="", errors="replace")


def file(path: str) -> str | None:
    """The path of a file inside a repository; None when it names none."""
    parts = [segment(part) for part in path.split("/")]
    known = [part for part in parts if part is not None]
    return "/".join(known) if len(known) == len(parts) and "\0" not in path else None
