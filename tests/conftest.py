"""Leaves out the tests whose service is missing on this machine, and says so; with CI=true
nothing is left out.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import hypothesis
import pytest

NODE = Path(__file__).parent / "node"
INITDB = str(
    max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default="initdb")
)  # Debian keeps it off the search path
BUSY = [hypothesis.HealthCheck.too_slow]  # a busy machine is no failure
hypothesis.settings.register_profile("reprise", deadline=None, suppress_health_check=BUSY)
hypothesis.settings.load_profile("reprise")

SHARING = "test_training_probe.py"
"""Its servers import PyTorch and TensorFlow. At the end of a test run workers take tests from each
other, and each would start servers of its own.
"""

PYTHONS = "import os, sys; from sandbox.interpreters import discover; sys.exit(len(discover(os.environ)) < 2)"
PROBES = {
    "docker": (("docker", "info"), "no Docker daemon answers"),
    "bwrap": (
        ("bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"),
        "bubblewrap does not work here",
    ),
    "node": (
        ("test", "-d", str(NODE / "node_modules" / "kubernetes-models")),
        "tests/node is not installed: npm ci --prefix tests/node",
    ),
    "redis": (("redis-server", "--version"), "redis-server does not start"),
    "postgres": ((INITDB, "--version"), "PostgreSQL's initdb does not start"),
    "browser": (("chromium", "--version"), "chromium does not start"),
    "pythons": ((sys.executable, "-c", PYTHONS), "there is no second Python"),
    "index": (
        ("uv", "pip", "install", "--dry-run", "--python", sys.executable, "--reinstall", "six"),
        "no package index answers",
    ),
}


@cache
def why_missing(marker: str) -> str:
    """Why the service behind a marker is not there, or ""."""
    argv, reason = PROBES[marker]
    program = shutil.which(argv[0])
    if program is None:
        return f"{argv[0]} is not installed"
    try:
        done = subprocess.run((program, *argv[1:]), capture_output=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return reason
    return "" if done.returncode == 0 else reason


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what cannot run here, unless this is CI, where everything must run. What shares much
    comes first.
    """
    items.sort(key=lambda item: item.path.name != SHARING)
    if os.environ.get("CI") == "true":
        return
    kept, left_out = [], []
    for item in items:
        missing = [
            marker for marker in PROBES if item.get_closest_marker(marker) and why_missing(marker)
        ]
        (left_out if missing else kept).append(item)
    if left_out:
        items[:] = kept
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not look at it again in every test."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name each missing service under the results."""
    if os.environ.get("CI") == "true":
        return
    for marker in PROBES:
        left_out = [
            item
            for item in terminalreporter.stats.get("deselected", ())
            if item.get_closest_marker(marker)
        ]
        if left_out and (reason := why_missing(marker)):
            terminalreporter.write_line(
                f"LEFT OUT: {len(left_out)} {marker} tests, because {reason} (CI runs them)"
            )
