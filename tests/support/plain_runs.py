"""Runs without a sandbox: of training programs with frameworks that train nothing, and of a report's
programs with the probe and a small library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.kernel import launch
from bot.kernel.training_types import TrainingProgram
from sandbox.port import RunResult, RunSpec

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


def run_with_probe(
    folder: Path, libraries: Mapping[str, str], source: str, variables: Mapping[str, str]
) -> RunResult:
    """A run of a program with the probe and with libraries of one file each, as in a sandbox."""
    probe, packages = folder / ".reprise", folder / "site-packages"
    for name, text in libraries.items():
        (packages / name).mkdir(parents=True, exist_ok=True)
        (packages / name / "__init__.py").write_text(text)
    probe.mkdir(exist_ok=True)
    for old in probe.glob("trace-*"):
        old.unlink()
    for name in launch.PROBES:
        (probe / name).write_bytes(launch.probe(name))
    (folder / "repro.py").write_text(source)
    path = os.pathsep.join(map(str, (probe, packages)))
    inherited = {name: value for name, value in os.environ.items() if name != "REPRISE_MAIN"}
    done = subprocess.run(
        [sys.executable, "repro.py"],
        cwd=folder,
        env={**inherited, **variables, "PYTHONPATH": path, "REPRISE_TRACE": str(probe)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return RunResult(
        exit_code=done.returncode,
        stdout=done.stdout,
        stderr=done.stderr,
        seconds=0.1,
        artifacts={f".reprise/{file.name}": file.read_bytes() for file in probe.glob("trace-*")},
    )


def run_spec(spec: RunSpec) -> RunResult:
    """A run of its files and words in a folder of its own, with what it leaves behind."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, data in spec.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        variables = {"PATH": os.environ["PATH"], "HOME": folder, **spec.env}
        done = subprocess.run(
            spec.argv, cwd=root / spec.cwd, env=variables, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        paths = [path for pattern in spec.artifacts for path in root.glob(pattern)]
        artifacts = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    return RunResult(
        exit_code=done.returncode,
        stdout=done.stdout,
        stderr=done.stderr,
        seconds=1.0,
        artifacts=artifacts,
    )
