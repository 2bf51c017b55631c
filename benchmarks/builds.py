"""Measures what an environment costs to build, compared with plain uv on the same pins."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from uv import find_uv_bin

from bot.kernel.errors import UserError
from bot.kernel.values import Record
from sandbox import indexes, interpreters
from sandbox.cache import Cache
from sandbox.environment import Installer, Wishes
from sandbox.port import SandboxError


class BuildBench(Record):
    """Median seconds of each kind of build, and their ratio to plain uv's."""

    rounds: int
    median_s: dict[str, float]
    ratio: dict[str, float]


PLAIN, FIRST, AGAIN = "plain uv", "first build", "packages seen before"


def measure(packages: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Seconds of each kind, in turns so that load falls on all alike. Everything is downloaded and
    unpacked before. Plain uv compiles byte code too. Raises UserError when the packages cannot be
    resolved.
    """
    found = max(interpreters.discover(dict(os.environ)), key=lambda each: each.minor)
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        installer = Installer(cache, indexes.read_indexes(dict(os.environ), Path.home()))
        wishes = Wishes(requirements=tuple(packages))
        try:
            python = installer.python(found)
            pins = installer.resolve(wishes, python)
            installer.install(pins, wishes, python)
        except SandboxError as error:
            raise UserError(f"{', '.join(packages)} cannot be installed: {error}") from error

        def ours() -> None:
            installer.install(pins, wishes, python)

        kinds: dict[str, tuple[tuple[str, ...], Callable[[], None]]] = {
            PLAIN: (("plain",), lambda: plain(Path(folder), pins, python.executable)),
            FIRST: (("envs", "bytecode"), ours),
            AGAIN: (("envs",), ours),
        }
        seconds: dict[str, list[float]] = {name: [] for name in kinds}
        plain(Path(folder), pins, python.executable)
        for _ in range(rounds):
            for name, (forgotten, act) in kinds.items():
                for each in forgotten:
                    shutil.rmtree(Path(folder) / each, ignore_errors=True)
                began = time.perf_counter()
                act()
                seconds[name].append(time.perf_counter() - began)
    return seconds


def plain(folder: Path, pins: Sequence[str], python: Path) -> None:
    """The same environment by uv alone, out of the same download cache."""
    env = {**os.environ, "UV_CACHE_DIR": str(folder / "uv")}
    uv, place = find_uv_bin(), str(folder / "plain")
    install = [uv, "pip", "install", "-q", "--no-deps", "--compile-bytecode"]
    for argv in (
        [uv, "venv", "-q", "--no-project", "--python", str(python), place],
        [*install, "--python", f"{place}/bin/python", *pins],
    ):
        subprocess.run(argv, env=env, check=True)


def summary(seconds: dict[str, list[float]]) -> BuildBench:
    """Median seconds, and the ratio of each kind to plain uv."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return BuildBench(
        rounds=len(seconds[PLAIN]),
        median_s={name: round(value, 3) for name, value in medians.items()},
        ratio={name: round(value / medians[PLAIN], 2) for name, value in medians.items()},
    )
