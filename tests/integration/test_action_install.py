"""How the Action installs Reprise on a runner: nothing but what the lock has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path("deploy/action/install.sh")

pytestmark = [pytest.mark.index, pytest.mark.slow]


def install(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        ["bash", str(source / SCRIPT)],
        env=environ | {"RUNNER_TEMP": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_locked_versions_are_installed(tmp_path: Path) -> None:
    done = install(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    program = tmp_path / "reprise" / "environment" / "bin" / "reprise"
    said = subprocess.run([program, "action", "--help"], capture_output=True, text=True, check=True)
    assert "--dry-run" in said.stdout
    assert not list((tmp_path / "reprise").rglob("pytest")), "no tools of developers"


def test_a_package_that_is_not_the_locked_one_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / SCRIPT).parent.mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, source / SCRIPT)
    lock = (ROOT / "uv.lock").read_text()
    (source / "uv.lock").write_text(re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", lock))
    done = install(source, tmp_path)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "reprise" / "environment").exists()
