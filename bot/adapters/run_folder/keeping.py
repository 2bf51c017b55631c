"""Keeps the folder of run folders below its cap: the oldest finished runs go first."""

import fcntl
import shutil
from contextlib import suppress
from pathlib import Path

from bot.adapters.run_folder.folder import MARK, REPORT
from sandbox import footprint


def keep_runs(runs: Path, most: int) -> None:
    """Remove finished runs, the oldest first, until the folder takes at most so many bytes. What
    somebody works on stays, and so does what is not finished or is no run.
    """
    found = [(each.stat().st_mtime, each.parent) for each in runs.glob(f"*/{REPORT}")]
    sizes = {folder: footprint.remembered(folder, folder / REPORT) for _, folder in found}
    left = sum(sizes.values())
    for _, folder in sorted(found):
        if left <= most:
            return
        if _removed(folder):
            left -= sizes[folder]


def _removed(folder: Path) -> bool:
    with suppress(OSError), (folder / MARK).open("r+") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
        return True
    return False
