"""One sandbox of each kind, and programs written twice: as Python for the real ones, as steps
for the fake.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sandbox.bwrap import BwrapSandbox
from sandbox.docker import DockerSandbox
from sandbox.port import (
    Limits,
    Mount,
    OnOutput,
    RunResult,
    RunSpec,
    Sandbox,
    Workspace,
    WorkspaceSpec,
)
from sandbox.process import ProcessSandbox
from tests.support.sandbox import FakeSandbox, Step

REAL = (
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bwrap", marks=pytest.mark.bwrap),
    "process",
)
KINDS: dict[str, Callable[[], Sandbox]] = {
    "docker": DockerSandbox,
    "bwrap": BwrapSandbox,
    "process": ProcessSandbox,
}
SKIPPED = shutil.ignore_patterns(
    "site-packages",
    "test",
    "tests",
    "idlelib",
    "ensurepip",
    "tkinter",
    "*.opt-?.pyc",
    "config-*",
    "*.a",
)


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Path]:
    """A small copy of the interpreter we run on, where every user may read it: an environment as
    the sandboxes see one.
    """
    home = Path(tempfile.mkdtemp(prefix="reprise-python-"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix)
    (home / "bin").mkdir()
    shutil.copy2(base / "bin" / version, home / "bin" / "python")
    shutil.copytree(base / "lib" / version, home / "lib" / version, ignore=SKIPPED, symlinks=False)
    for library in base.glob(f"lib/lib{version}*.so*"):
        shutil.copy2(library, home / "lib" / library.name)
    subprocess.run(["chmod", "-R", "a+rX", str(home)], check=True)
    yield home
    shutil.rmtree(home)


@dataclass
class Bench:
    """A sandbox and how to run a piece of Python in it."""

    sandbox: Sandbox
    home: Path
    kind: str

    def spec(self, source: str, steps: Sequence[Step] = (), **fields: object) -> RunSpec:
        """The program as this kind of sandbox runs it."""
        if isinstance(self.sandbox, FakeSandbox):
            self.sandbox.program = lambda _: list(steps)
            return RunSpec(("python", "program.py"), **fields)  # type: ignore[arg-type]
        mounts = (Mount(self.home), *fields.pop("mounts", ()))  # type: ignore[misc]
        files = {"program.py": source.encode(), **fields.pop("files", {})}  # type: ignore[dict-item]
        env = {"LD_LIBRARY_PATH": str(self.home / "lib"), **fields.pop("env", {})}  # type: ignore[dict-item]
        return RunSpec(
            (str(self.home / "bin" / "python"), "program.py"),
            files=files,
            env=env,
            mounts=mounts,
            **fields,
        )  # type: ignore[arg-type]

    def run(
        self,
        source: str,
        steps: Sequence[Step] = (),
        *,
        cancel: Event | None = None,
        on_output: OnOutput | None = None,
        **fields: object,
    ) -> RunResult:
        """Run it, in ten seconds and 512 MiB unless told otherwise."""
        fields.setdefault("limits", Limits(wall_s=20, memory_mb=512, scratch_mb=64, file_mb=32))
        return self.sandbox.run(
            self.spec(source, steps, **fields), cancel=cancel, on_output=on_output
        )

    def open(self, **fields: Any) -> Workspace:
        """A workspace of this kind, in 512 MiB unless told otherwise."""
        fields.setdefault("limits", Limits(wall_s=20, memory_mb=512, scratch_mb=64, file_mb=32))
        if self.kind != "fake":
            fields["mounts"] = (Mount(self.home), *fields.pop("mounts", ()))
            fields["env"] = {"LD_LIBRARY_PATH": f"{self.home}/lib", **fields.pop("env", {})}
        return self.sandbox.open(WorkspaceSpec(**fields))

    def exec(
        self, space: Workspace, source: str, steps: Sequence[Step] = (), **options: Any
    ) -> RunResult:
        """Run a piece of Python in it."""
        if isinstance(self.sandbox, FakeSandbox):
            self.sandbox.program = lambda _: list(steps)
        return space.exec((f"{self.home}/bin/python", "-c", source), **options)


def bench_of(kind: str, home: Path) -> Bench:
    """A bench for this kind."""
    return Bench(KINDS[kind]() if kind in KINDS else FakeSandbox(lambda _: []), home, kind)


@pytest.fixture(scope="module", params=[*REAL, "fake"])
def bench(request: pytest.FixtureRequest, interpreter: Path) -> Bench:
    """Every kind."""
    return bench_of(request.param, interpreter)


@pytest.fixture(scope="module", params=REAL)
def real(request: pytest.FixtureRequest, interpreter: Path) -> Bench:
    """Every kind that runs something."""
    return bench_of(request.param, interpreter)


@pytest.fixture(scope="module", params=REAL[:2])
def walled(request: pytest.FixtureRequest, interpreter: Path) -> Bench:
    """Every kind with walls."""
    return bench_of(request.param, interpreter)


@pytest.fixture
def host_secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """A variable of the host's environment."""
    monkeypatch.setitem(os.environ, "REPRISE_TEST_SECRET", "sesame-of-the-host")
    return "sesame-of-the-host"
