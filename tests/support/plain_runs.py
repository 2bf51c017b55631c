"""Runs of training programs with frameworks that train nothing: what they write on their standard
error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bot.kernel.training_types import TrainingProgram

STUBS = Path(__file__).parent / "stub_frameworks"


def run_plainly(programs: Sequence[TrainingProgram]) -> list[str]:
    """The standard error of each program."""
    return [_run(program) for program in programs]


def _run(program: TrainingProgram) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in program.files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return subprocess.run(
            [sys.executable, program.entry, *program.arguments],
            cwd=folder, capture_output=True, text=True, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": str(STUBS), "PYTHONDONTWRITEBYTECODE": "1"},
        ).stderr  # fmt: skip
