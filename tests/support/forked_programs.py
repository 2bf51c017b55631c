"""Runs programs as forks of one Python that has imported their framework, with the recorder of
trainings or without: an import of PyTorch or TensorFlow takes longer than what most tests train.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from benchmarks.probing import Comparison, Run, environment
from bot.kernel import launch, training_trace as trace

_SERVER = """
import os, sys
for name in sys.argv[1:]:
    __import__(name)
import batch_child, sitecustomize
recorder, end = sys.modules.get("_reprise_training.imports"), sitecustomize._AT_EXIT
if recorder is not None:  # a fork forgets what its server wanted to do at its end, but for this
    sitecustomize._AT_EXIT = lambda: (end(), recorder._end())
for line in sys.stdin:
    folder = os.environ["REPRISE_TRACE"] = line.strip()
    child = os.fork()
    if child == 0:
        job = dict(fork=True, seed=0, seeded=None, watch="", cover="", entry="repro.py")
        os.mkdir(os.path.join(folder, ".trace"))
        batch_child.become(job, folder)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class ForkedPrograms:
    """Programs of one interpreter, whose frameworks are imported once with the recorder and once
    without it.
    """

    def __init__(self, python: str, frameworks: tuple[str, ...]) -> None:
        self.python, self.frameworks = python, frameworks
        self._folder = tempfile.TemporaryDirectory(prefix="reprise-forked-")
        self._servers: dict[bool, subprocess.Popen[str]] = {}

    def _server(self, probe: bool) -> subprocess.Popen[str]:
        if probe not in self._servers:
            probes = Path(self._folder.name) / f"probes-{probe}"
            probes.mkdir()
            for name in (*launch.PROBES, "batch_child.py"):
                (probes / name).write_bytes(launch.probe(name))
            training = Path(str(resources.files("sandbox"))) / "probe" / "training"
            shutil.copytree(training, probes / "_reprise_training")
            self._servers[probe] = subprocess.Popen(
                [self.python, "-c", _SERVER, *self.frameworks],
                cwd=self._folder.name,
                env=environment(probe, "cpu") | {"PYTHONPATH": str(probes)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._servers[probe]

    def run(self, program: Path, *, probe: bool = True) -> Run:
        """One run under a fixed seed."""
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        shutil.copy(program, folder / "repro.py")
        server = self._server(probe)
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{folder}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        output, errors = ((folder / name).read_bytes() for name in (".stdout", ".stderr"))
        left = {str(path): path.read_bytes() for path in folder.glob("training-*.jsonl")}
        return Run(
            code, output, errors.decode("utf-8", "replace"), 0.0, trace.read_trace(left), 0.0
        )

    def compare(self, program: Path) -> Comparison:
        """A run without the recorder, and one with it."""
        runs = [[self.run(program, probe=probe)] for probe in (False, True)]
        return Comparison(program.stem, *runs)

    def close(self) -> None:
        """End the servers."""
        for server in self._servers.values():
            server.communicate()
        self._folder.cleanup()
