"""Room on the disk: what is free, and what caches and runs take of their caps."""

import shutil
from pathlib import Path

from bot.cli.doctor.checks import CheckResult
from bot.settings import Settings
from sandbox import caps, footprint
from sandbox.cache import Cache

_MIN_FREE_GB = 5


def disk(settings: Settings) -> tuple[CheckResult, ...]:
    """Free space for environments, how many are cached, and how far each cap is reached."""
    cache = settings.cache_dir
    place = next((path for path in (cache, *cache.parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(place).free / 1e9
    count = sum(1 for _ in cache.glob("envs/*/.complete"))
    enough = free >= _MIN_FREE_GB
    fix = f"Free some space, or point REPRISE_CACHE_DIR at a disk with {_MIN_FREE_GB} GB."
    room = CheckResult(
        area="disk",
        name="cache",
        ok=enough,
        detail=f"{cache}: {free:.1f} GB free, {count} environments cached",
        fix="" if enough else fix,
        needed=True,
    )
    areas = (
        _share(area.name, area.used(Cache(cache)), settings.caps[area.name]) for area in caps.AREAS
    )
    runs = sum(map(footprint.taken, settings.runs_dir.glob("*/")))
    return (room, *areas, _share("runs", runs, int(settings.runs_gb * 1e9)))


def _share(name: str, used: int, most: int) -> CheckResult:
    """How much of a cap is in use. What exceeds it goes before the next run."""
    detail = f"{used / 1e9:.1f} of at most {most / 1e9:g} GB (REPRISE_{name.upper()}_GB)"
    return CheckResult(area="disk", name=name, ok=True, detail=detail)
