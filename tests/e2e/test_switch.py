"""`reprise switch`: what the host stops, says why, and starts again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from bot.cli.app import main; main()", "switch"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def switch(tmp_path: Path):
    """The command over a database of its own."""
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "REPRISE_DATABASE_URL": f"sqlite:///{tmp_path / 'reprise.db'}",
    }
    return lambda *argv: subprocess.run(
        [*COMMAND, *argv], capture_output=True, text=True, cwd=tmp_path, env=env, check=False
    )


def test_a_repository_is_switched_off_and_on_again(switch):
    assert (
        switch("acme/lib", "--reason", "The lab is closed.").stdout
        == "acme/lib: paused (The lab is closed.)\n"
    )
    assert switch().stdout == "acme/lib: paused (The lab is closed.)\n"
    assert switch("acme/lib", "--back").stdout == "Nothing is paused.\n"


def test_what_cannot_be_switched_off_is_said(switch):
    done = switch("a b")
    assert (done.returncode, done.stdout) == (2, "")
    assert "owner/name" in done.stderr
