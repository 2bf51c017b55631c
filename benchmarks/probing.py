"""What the training probe costs and changes: the same program with and without it, in turns."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from statistics import median

from bot.kernel import launch, training_trace as trace
from bot.kernel.errors import UserError
from bot.kernel.training_types import TrainingTrace
from bot.training.diagnosis.rules import diagnose
from sandbox.port import Device

PROGRAMS = Path(__file__).parent / "idioms"
_SECONDS = 600
# A GPU adds in an order of its own, unless told otherwise.
_REPEATABLE = {
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "XLA_FLAGS": "--xla_gpu_deterministic_ops=true",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: how it ended, what it printed, its CPU seconds with its children's, its trace, and
    the seconds from its start to the end of its diagnosis (to its own end without the probe).
    """

    exit_code: int
    output: bytes
    errors: str
    cpu_s: float
    trace: TrainingTrace
    wall_s: float


@dataclass(slots=True)
class Comparison:
    """A program without the probe and with it, as often as each ran."""

    name: str
    without: list[Run] = field(default_factory=list)
    with_probe: list[Run] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether it fails by itself, which says nothing of the probe."""
        return any(run.exit_code for run in self.without)

    @property
    def crashed(self) -> bool:
        """Whether it ends otherwise with the probe."""
        return {run.exit_code for run in self.with_probe} != {run.exit_code for run in self.without}

    @property
    def identical(self) -> bool:
        """Whether all runs printed the same, losses to the last digit."""
        return len({run.output for run in (*self.without, *self.with_probe)}) == 1

    @property
    def overhead(self) -> float:
        """Share of CPU time that the probe adds, by the medians."""
        before, after = self._medians("cpu_s")
        return after / before - 1

    @property
    def delay_s(self) -> float:
        """Seconds from the end of the program alone to the end of its diagnosis, by the medians."""
        before, after = self._medians("wall_s")
        return after - before

    def _medians(self, name: str) -> tuple[float, float]:
        before, after = (
            median(getattr(run, name) for run in runs) for runs in (self.without, self.with_probe)
        )
        return before, after


def programs(names: tuple[str, ...], device: Device = "cpu") -> tuple[Path, ...]:
    """The idioms of these names, or files; when none is named, all idioms, those of GPUs only
    where the device is one. Raises UserError for an unknown name.
    """
    known = {path.stem: path for path in sorted(PROGRAMS.rglob("*.py"))}
    if unknown := [name for name in names if not name.endswith(".py") and name not in known]:
        raise UserError(f"There is no idiom {unknown[0]}.", f"Known are {', '.join(known)}.")
    found = [Path(name) if name.endswith(".py") else known[name] for name in names]
    return tuple(found or (p for p in known.values() if device == "gpu" or p.parent == PROGRAMS))


def compare(program: Path, python: str, turns: int, device: Device = "cpu") -> Comparison:
    """Run a program without and with the probe in turns."""
    found = Comparison(program.stem)
    for _ in range(turns):
        found.without.append(run(program, python, probe=False, device=device))
        found.with_probe.append(run(program, python, probe=True, device=device))
    return found


def compared(
    paths: tuple[Path, ...], python: str, turns: int, device: Device = "cpu"
) -> Iterator[Comparison]:
    """Each program, one after the other."""
    for path in paths:
        yield compare(path, python, turns, device)


def run(program: Path, python: str, *, probe: bool, device: Device = "cpu") -> Run:
    """One run under a fixed seed, started as in the sandbox."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(program, folder / "repro.py")
        probes = folder / ".reprise"
        probes.mkdir()
        for one in launch.PROBES:
            (probes / one).write_bytes(launch.probe(one))
        training = Path(str(resources.files("sandbox"))) / "probe" / "training"
        shutil.copytree(training, probes / "_reprise_training")
        began, started = time.monotonic(), os.times()
        done = subprocess.run(
            [shutil.which(python) or python, "repro.py"],
            cwd=folder,
            env=environment(probe, device),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        ended = os.times()
        spent = (ended.children_user + ended.children_system) - (
            started.children_user + started.children_system
        )
        left = {str(path): path.read_bytes() for path in probes.glob("training-*.jsonl")}
        errors, seen = done.stderr.decode("utf-8", "replace"), trace.read_trace(left)
        if probe:
            diagnose(seen)
        wall = time.monotonic() - began
        return Run(done.returncode, done.stdout, errors, spent, seen, wall)


def environment(probe: bool, device: Device) -> dict[str, str]:
    """The whole environment of a run with the probe or without it."""
    fixed = {
        "PATH": os.defpath,
        "HOME": tempfile.gettempdir(),
        "PYTHONPATH": ".reprise",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "REPRISE_TRACE": ".reprise",
        "REPRISE_SEED": "0",
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "HF_HUB_OFFLINE": "1",
    }
    fixed |= _REPEATABLE if device == "gpu" else {"CUDA_VISIBLE_DEVICES": ""}
    if "EPOCHS" in os.environ:  # of mlp and cnn, whose overhead is measured over a minute
        fixed["EPOCHS"] = os.environ["EPOCHS"]
    return {**fixed, "REPRISE_TRAINING": "debug"} if probe else fixed


def row(found: Comparison) -> dict[str, object]:
    """A comparison as the benchmark prints it."""
    seen = found.with_probe[-1].trace
    return {
        "name": found.name,
        "failed": found.failed,
        "crashed": found.crashed,
        "identical": found.identical,
        "cpu_s": round(median(run.cpu_s for run in found.without), 2),
        "overhead": round(found.overhead, 4),
        "wall_s": round(median(run.wall_s for run in found.without), 2),
        "delay_s": round(found.delay_s, 2),
        "steps": len(seen.steps),
        "models": len(seen.models),
        "losses": len(seen.losses),
        "optimizers": len(seen.optimizers),
        "failures": seen.end.failures if seen.end is not None else None,
        "dropped": seen.dropped,
        "unseen": list(seen.end.unseen) if seen.end is not None else [],
    }
