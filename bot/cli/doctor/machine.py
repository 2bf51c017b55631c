"""The machine itself: sandboxes, interpreters, devices, disk, git and uv."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from uv import find_uv_bin

from bot.cli.doctor.finding import Finding
from bot.settings import host
from sandbox.interpreters import discover
from sandbox.select import kinds

_MIN_FREE_GB = 5
_TIMEOUT_S = 15


def sandboxes() -> tuple[Finding, ...]:
    """Try each sandbox, and tell what it contains. Any one that isolates is enough."""
    checked = ((sandbox.name, sandbox.check()) for sandbox in kinds())
    return tuple(
        Finding(
            area="sandbox",
            name=name,
            ok=health.works,
            detail=health.detail,
            fix="" if health.works else health.fix,
            protects=health.protects if health.works else (),
            exposes=health.exposes if health.works else (),
        )
        for name, health in checked
    )


def pythons() -> tuple[Finding, ...]:
    """The Python versions that environments can use."""
    minors = [interpreter.minor for interpreter in discover(host())]
    fix = "For more reports, install more versions: uv python install 3.9 3.10 3.12"
    detail = ", ".join(minors) or "no interpreter that can be copied into a sandbox"
    return (
        Finding(
            area="python",
            name="versions",
            ok=bool(minors),
            detail=detail,
            fix="" if len(minors) > 2 else fix,
            needed=True,
        ),
    )


def devices() -> tuple[Finding, ...]:
    """NVIDIA GPUs. Only --device gpu needs one."""
    query = "--query-gpu=name,memory.total,driver_version"
    listed = run(("nvidia-smi", query, "--format=csv,noheader"))
    if listed is None:
        detail = "no NVIDIA GPU found; reports that need one end in needs_hardware"
        return (Finding(area="device", name="gpu", ok=None, detail=detail),)
    lines = (line.strip() for line in listed.splitlines())
    return tuple(Finding(area="device", name="gpu", ok=True, detail=line) for line in lines if line)


def disk(cache: Path) -> tuple[Finding, ...]:
    """Free space for environments, and how many are cached."""
    place = next((path for path in (cache, *cache.parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(place).free / 1e9
    count = sum(1 for _ in cache.glob("envs/*/.complete"))
    enough = free >= _MIN_FREE_GB
    fix = f"Free some space, or point REPRISE_CACHE_DIR at a disk with {_MIN_FREE_GB} GB."
    return (
        Finding(
            area="disk",
            name="cache",
            ok=enough,
            detail=f"{cache}: {free:.1f} GB free, {count} environments cached",
            fix="" if enough else fix,
            needed=True,
        ),
    )


def tools() -> tuple[Finding, ...]:
    """The programs that Reprise starts."""
    try:
        uv = run((find_uv_bin(), "--version"))
    except FileNotFoundError:
        uv = None
    git = run(("git", "--version"))
    return (
        _tool("uv", uv, "Reinstall Reprise; uv comes with it.", needed=True),
        _tool("git", git, "Install git; unreleased versions and --repo need it.", needed=False),
    )


def _tool(name: str, version: str | None, fix: str, *, needed: bool) -> Finding:
    return Finding(
        area="tool",
        name=name,
        ok=version is not None,
        detail=(version or "not found").strip(),
        fix="" if version else fix,
        needed=needed,
    )


def run(argv: Sequence[str]) -> str | None:
    """A program's output, or None if it is missing, fails or takes too long."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
