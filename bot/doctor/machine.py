"""The machine itself: interpreters, devices, disk, git and uv."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from uv import find_uv_bin

from bot.doctor.finding import Finding
from sandbox.interpreters import discover

_ROOM_GB = 5
_PATIENCE_S = 15


def pythons(environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """The versions that environments can be built with."""
    minors = [each.minor for each in discover(environ)]
    fix = "" if len(minors) > 2 else "More versions fit more reports: uv python install 3.9 3.10 3.12"
    detail = ", ".join(minors) or "no interpreter that can be copied into a sandbox"
    return (Finding(area="python", name="versions", ok=bool(minors), detail=detail, fix=fix, needed=True),)


def devices() -> tuple[Finding, ...]:
    """NVIDIA GPUs, which only --device gpu needs."""
    said = run(("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"))
    if said is None:
        detail = "no NVIDIA GPU answers; reports that need one end as needs_hardware"
        return (Finding(area="device", name="gpu", ok=None, detail=detail),)
    return tuple(Finding(area="device", name="gpu", ok=True, detail=line.strip()) for line in said.splitlines() if line.strip())


def disk(cache: Path) -> tuple[Finding, ...]:
    """Room for environments, and what is kept already."""
    place = next((path for path in (cache, *cache.parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(place).free / 1e9
    kept = sum(1 for _ in cache.glob("envs/*/.complete"))
    fix = "" if free >= _ROOM_GB else f"Free some space, or point REPRISE_CACHE_DIR at a disk with {_ROOM_GB} GB."
    detail = f"{cache}: {free:.1f} GB free, {kept} environments kept"
    return (Finding(area="disk", name="cache", ok=free >= _ROOM_GB, detail=detail, fix=fix, needed=True),)


def tools() -> tuple[Finding, ...]:
    """The programs that Reprise starts."""
    try:
        uv = run((find_uv_bin(), "--version"))
    except FileNotFoundError:
        uv = None
    git = run(("git", "--version"))
    return (
        Finding(
            area="tool",
            name="uv",
            ok=uv is not None,
            detail=(uv or "does not run").strip(),
            fix="" if uv else "Install Reprise again; uv comes with it.",
            needed=True,
        ),
        Finding(
            area="tool",
            name="git",
            ok=git is not None,
            detail=(git or "not found").strip(),
            fix="" if git else "Install git; reports about unreleased versions and --repo need it.",
        ),
    )


def run(argv: Sequence[str]) -> str | None:
    """What a program prints, or None when it is missing, fails or takes too long."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
