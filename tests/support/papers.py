"""Papers without a network or an index: a source in memory, and a repository whose environment is
this interpreter.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

from bot.app.paper_sources import LocalPapers
from bot.kernel.environment import Environment, EnvironmentSpec
from bot.kernel.errors import PaperUnreachable, Stopped, UserError
from bot.kernel.job import EnvironmentOptions, ReproducePaper
from bot.kernel.paper import PaperFiles
from bot.kernel.ports import Journal, Ports
from bot.kernel.report import PaperReport
from bot.papers.reproduce import reproduce
from sandbox.port import RunResult, RunSpec
from tests.support.engine import FakeBuilder, FrozenClock, ListListener, MemoryJournal
from tests.support.sandbox import FakeSandbox

CORPUS = Path(__file__).parents[1] / "corpus" / "papers"


@dataclass
class FakePapers:
    """Papers by their source; `fetched` are the sources that were asked for, in order."""

    papers: Mapping[str, Mapping[str, bytes]]
    fetched: list[str] = field(default_factory=list)
    is_away: bool = False

    def fetch(self, source: str, *, cancel: Event | None = None) -> PaperFiles:
        """The paper of a source."""
        if cancel is not None and cancel.is_set():
            raise Stopped("stopped on request")
        self.fetched.append(source)
        if self.is_away:
            raise PaperUnreachable("arXiv cannot be reached: no route to host.", "Try again later.")
        if source not in self.papers:
            raise UserError(f"There is no paper {source}.", "Check the source.")
        return PaperFiles(name=source, files=dict(self.papers[source]))


def run_here(spec: RunSpec) -> RunResult:
    """A run as a plain process of this user, which the programs of these tests may be."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for path, data in spec.files.items():
            target = Path(name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        try:
            done = subprocess.run(
                spec.argv, cwd=Path(name, spec.cwd), env=dict(spec.env), capture_output=True,
                timeout=spec.limits.wall_s, check=False,
            )  # fmt: skip
            code, streams = done.returncode, (done.stdout, done.stderr)
        except subprocess.TimeoutExpired as error:
            code, streams = None, (error.stdout or b"", error.stderr or b"")
        artifacts = {
            path.relative_to(name).as_posix(): path.read_bytes()
            for pattern in spec.artifacts
            for path in Path(name).glob(pattern)
        }
    stdout, stderr = (stream.decode("utf-8", "replace") for stream in streams)
    return RunResult(
        exit_code=code, stdout=stdout, stderr=stderr, timed_out=code is None,
        seconds=time.monotonic() - started, artifacts=artifacts,
    )  # fmt: skip


def remembered() -> Callable[[RunSpec], RunResult]:
    """`run_here`, but what has run before gives the same result again: for programs without chance
    that a test starts over and over, and that leave no trace, which only its run's key opens.
    """
    results = dict[str, RunResult]()

    def run(spec: RunSpec) -> RunResult:
        files = {path: data for path, data in spec.files.items() if path != ".reprise/key"}
        key = repr((spec.argv, spec.cwd, files, spec.env, spec.artifacts, spec.limits))
        return results.get(key) or results.setdefault(key, run_here(spec))

    return run


run_once = remembered()
"""Many tests run the same program with the same seeds."""


def in_tree(folder: Path | None) -> FakeBuilder:
    """A builder whose every environment is this interpreter and the files of a folder; without one,
    those of the repository that is asked for.
    """

    def build(spec: EnvironmentSpec) -> Environment:
        own = spec.repo.path if spec.repo is not None else ""
        return Environment(
            id="here", python=spec.python, interpreter=sys.executable, commit="c" * 40,
            tree=own if folder is None else str(folder),
        )  # fmt: skip

    return FakeBuilder(on_build=build)


def paper_ports(folder: Path | None, journal: Journal | None = None, **more: Any) -> Ports:
    """The world of a paper whose repository is a folder, or one that is asked for."""
    ports = Ports(
        sandbox=FakeSandbox(run_once),
        builder=in_tree(folder),
        journal=journal or MemoryJournal(),
        clock=FrozenClock(step=0.01),
        listener=ListListener(),
        papers=LocalPapers(),
    )
    return replace(ports, **more)


def paper_job(source: Path | str, folder: Path | None, **more: Any) -> ReproducePaper:
    """A job for a paper with a repository, or without one."""
    options = EnvironmentOptions(
        repo=str(folder) if folder else None, command=more.pop("command", "")
    )
    return ReproducePaper(source=str(source), environment=options, **more)


def reproduced(
    source: Path | str, folder: Path | None, journal: Journal | None = None, **more: Any
) -> PaperReport:
    """The report of a paper whose repository is a folder, run with this interpreter."""
    ports = paper_ports(folder or Path(), journal)
    return reproduce(paper_job(source, folder, **more), ports)
