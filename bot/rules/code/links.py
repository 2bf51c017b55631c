"""Links to source lines in a report, and paths as they are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LINK = re.compile(
    r"https?://[\w.-]{1,100}/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/(?:blob|blame|raw)/(?P<rest>[\w./@+%-]{1,400}\.py)"
    r"(?:\?[\w=&]{0,40})?(?:#L(?P<start>\d{1,6})(?:C\d{1,4})?(?:-L?(?P<end>\d{1,6}))?)?"
)
_RAW = re.compile(
    r"https?://raw\.githubusercontent\.com/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/(?P<rest>[\w./@+%-]{1,400}\.py)"
)


class Link(NamedTuple):
    """Lines of a file of a repository; `start` is 0 when the link names no line. The ref is the
    first part of the path, or more where a branch has slashes in its name.
    """

    repository: str
    ref: str
    path: str
    start: int
    end: int


def links(text: str) -> Iterator[Link]:
    """The links to Python sources, each once, in order."""
    seen = set()
    for found in sorted(
        [*_LINK.finditer(text), *_RAW.finditer(text)], key=lambda match: match.start()
    ):
        groups = found.groupdict()
        ref, _, path = groups["rest"].partition("/")
        start = int(groups.get("start") or 0)
        link = Link(groups["repository"], ref, path, start, max(int(groups.get("end") or 0), start))
        if path and link not in seen:
            seen.add(link)
            yield link


def match(path: str, files: Sequence[str]) -> str | None:
    """The installed file that a path means: the same, one that ends with it, or one that its own
    end names; None when it is not clear which.
    """
    wanted = path.replace("\\", "/").strip("/")
    if "site-packages/" in wanted:
        wanted = wanted.rpartition("site-packages/")[2]
    parts = [part for part in wanted.split("/") if part not in {"", ".", ".."}]
    for skipped in range(max(len(parts) - 1, 1)):
        ending = "/".join(parts[skipped:])
        found = [file for file in files if file == ending or file.endswith(f"/{ending}")]
        if ending in found:
            return ending
        if len(found) == 1:
            return found[0]
        if found:
            return None
    return None
