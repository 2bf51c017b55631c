"""What the App has left behind: processes, containers, control groups, mounts and files."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import Redis

from benchmarks.containers import containers_of
from benchmarks.killing import descendants
from benchmarks.whole_app import RunningApp
from sandbox import process

Seen = dict[str, Counter[str]]
Leftovers = dict[str, tuple[str, ...]]
_GRACE_S = 30.0
_TMP = Path("/tmp")


@dataclass(frozen=True)
class Places:
    """Where an App in this folder may leave something."""

    folder: Path
    sandbox: str

    @property
    def temporary(self) -> Path:
        """Its folder for temporary files."""
        return self.folder / "tmp"

    @property
    def cache(self) -> Path:
        """Its cache."""
        return self.folder / "cache"

    def seen(self, app: RunningApp | None) -> Seen:
        """All there is at this moment, by kind; of an App that is not running, None, too."""
        pids = [app.programs.pid(name) for name in app.programs.starts] if app else []
        found = {
            "processes": list(descendants(os.getpid()).values()),
            "containers": [one for pid in pids for one in containers_of(self.sandbox)(pid)],
            "control groups": process.abandoned_groups(0.0),
            "mounts": _mounts(self.folder),
            "temporary files": [*_names(self.temporary), *map(str, _TMP.glob("hostile-*"))],
            "files in the cache": _names(self.cache / "scratch"),
            "Redis keys": _keys(app.redis_url) if app else [],
        }
        return {kind: Counter(names) for kind, names in found.items()}

    def left(self, app: RunningApp | None, before: Seen) -> Leftovers:
        """What was not there `before`, once what goes by itself has had time to go."""
        return settled(lambda: more(self.seen(app), before))


def settled(look: Callable[[], Leftovers], grace_s: float = _GRACE_S) -> Leftovers:
    """What a look still finds when the grace is over, or nothing as soon as it finds nothing."""
    end = time.monotonic() + grace_s
    while (found := look()) and time.monotonic() < end:
        time.sleep(0.5)
    return found


def more(now: Seen, before: Seen) -> Leftovers:
    """What there is now and was not before."""
    found = {kind: tuple((names - before[kind]).elements()) for kind, names in now.items()}
    return {kind: names for kind, names in found.items() if names}


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _mounts(folder: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    return [line for line in lines if str(folder) in line]


def _keys(url: str) -> list[str]:
    server: Any = Redis.from_url(url)
    try:
        keys = (key.decode(errors="replace") for key in server.scan_iter())
        return [key for key in keys if not key.endswith(":health-check")]  # arq's, for an hour
    finally:
        server.close()
