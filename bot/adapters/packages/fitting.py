"""The release of a distribution whose files have the lines that a traceback quotes; looked for
near the installed one, in wheels read in pieces.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bot.adapters.packages import archives
from bot.adapters.packages.index import IndexRelease, PackageIndex
from bot.errors import IndexUnreachable
from bot.models.bug import Frame
from bot.rules.packages import frame_fit

_SECONDS = 60.0
_MOST_FILE = 2 * 1024 * 1024


def release(
    index: PackageIndex,
    site: Path,
    name: str,
    installed: str,
    frames: Sequence[Frame],
    before: datetime | None,
) -> str:
    """The version that fits better than the installed one, "" when none near it does."""
    best, found = frame_fit.count(frames, lambda path: _text(site / path)), ""
    if best == len(frames):
        return ""
    end = time.monotonic() + _SECONDS
    try:
        offered = {
            str(each.version): each
            for each in index.releases(name)
            if not (each.yanked or (before and each.uploaded and each.uploaded > before))
        }
        for version in frame_fit.neighbours(installed, list(offered)):
            fitting = 0 if time.monotonic() > end else _fitting(index, offered[version], frames)
            if fitting > best:
                best, found = fitting, version
            if best == len(frames):
                break
    except IndexUnreachable:
        return ""
    return found


def _fitting(index: PackageIndex, release: IndexRelease, frames: Sequence[Frame]) -> int:
    """How many frames fit a release, 0 where its wheel cannot be read."""
    wheel = next((file for file in release.files if file.name.endswith(".whl")), None)
    if wheel is None:
        return 0
    try:
        with archives.wheel(index.opened(wheel)) as archive:
            return frame_fit.count(frames, lambda path: archives.member(archive, path))
    except archives.UNREADABLE:
        return 0


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_FILE).decode("utf-8", "replace")
    except OSError:
        return ""
