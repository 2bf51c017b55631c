"""Build a wheel from source inside a sandbox without a network: the only place of the prepare
phase where foreign code runs.
"""

import json
import os
import re
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from threading import Event
from typing import Any

from sandbox.environment import Installation
from sandbox.interpreters import Snapshot
from sandbox.port import Limits, Mount, RunResult, RunSpec, Sandbox, SandboxError

_DRIVER = resources.files("sandbox").joinpath("probe", "build_wheel.py")
_LIMITS = Limits(
    wall_s=900.0,
    memory_mb=8192,
    cpus=4.0,
    pids=1024,
    file_mb=1024,
    artifact_mb=1024,
    scratch_mb=6144,
    output_bytes=400_000,
)
_TOOLS = "/usr/local/bin:/usr/bin:/bin"
_MOST_SETTINGS_MB = 1
_ERROR = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception): \S")
_COMPILER = re.compile(r"\b(?:fatal )?error: (?!Failed to build|command)|command not found")
_OFFLINE = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|nodename nor servname|Could not resolve host"
)


class BuildFailed(SandboxError):
    """The source cannot be built here; the message is the first cause."""


@dataclass(frozen=True, slots=True)
class BuildSource:
    """A source distribution, or the folder of a clone, which the sandbox copies. `version` is what
    version-control plug-ins are told, as there is no history.
    """

    archive: bytes | Path
    name: str = "source.tar.gz"
    version: str = ""

    @property
    def files(self) -> dict[str, bytes]:
        """What the run is given."""
        return {self.name: self.archive} if isinstance(self.archive, bytes) else {}

    @property
    def mounts(self) -> tuple[Path, ...]:
        """What the run sees."""
        return (self.archive,) if isinstance(self.archive, Path) else ()

    @property
    def path(self) -> str:
        """Where the run has it."""
        return str(self.archive) if isinstance(self.archive, Path) else self.name


@dataclass(frozen=True, slots=True)
class Backend:
    """What a project is built with: requirements, the object with the hooks, and where in the
    project it lies. Without settings it is what PEP 517 presumes.
    """

    requires: tuple[str, ...] = ("setuptools>=40.8.0", "wheel")
    name: str = "setuptools.build_meta:__legacy__"
    path: tuple[str, ...] = ()

    def requiring(self, more: tuple[str, ...]) -> "Backend":
        """The back end with what it asked for in addition."""
        return replace(self, requires=(*self.requires, *more))


class MoreRequired(BuildFailed):
    """The back end asks for more than the project's settings name."""

    def __init__(self, requires: tuple[str, ...]) -> None:
        super().__init__(f"the build keeps requesting more packages: {', '.join(requires)[:200]}")
        self.requires = requires


def backend(
    source: BuildSource, python: Snapshot, sandbox: Sandbox, cancel: Event | None = None
) -> Backend:
    """What a source is built with, told by its pyproject.toml, which is unpacked in the sandbox."""
    spec = _spec(source, {}, python, (python.root,), python.executable)
    limits = replace(_LIMITS, wall_s=120.0, artifact_mb=_MOST_SETTINGS_MB)
    result = sandbox.run(replace(spec, limits=limits), cancel=cancel)
    if result.exit_code != 0:
        raise BuildFailed(f"the source archive cannot be unpacked: {cause(result)}")
    data = result.artifacts.get("out/pyproject.toml", b"")
    try:
        return _backend(tomllib.loads(data.decode("utf-8")))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BuildFailed(f"its pyproject.toml cannot be read: {error}") from None


def _backend(settings: dict[str, Any]) -> Backend:
    table = settings.get("build-system")
    if table is None:
        return Backend()
    return Backend(
        _texts(table.get("requires", [])),
        str(table.get("build-backend", Backend().name)),
        _texts(table.get("backend-path", [])),
    )


def _texts(values: list[Any]) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("a list of strings is expected in [build-system]")
    return tuple(values)


def wheel(
    source: BuildSource,
    backend: Backend,
    tools: Installation,
    sandbox: Sandbox,
    into: Path,
    cancel: Event | None = None,
) -> Path:
    """Build one wheel with the environment of its build requirements, and keep it in `into`. The
    build sees no network and no secret. Raises MoreRequired when the back end asks for more.
    """
    job = {"backend": backend.name, "path": backend.path, "known": backend.requires}
    mounts = (tools.python.root, tools.root)
    spec = _spec(source, job, tools.python, mounts, tools.interpreter)
    result = sandbox.run(spec, cancel=cancel)
    if more := result.artifacts.get("out/requires.json"):
        raise MoreRequired(_requirements_in(more))
    wheels = [(name, data) for name, data in result.artifacts.items() if name.endswith(".whl")]
    if result.exit_code != 0 or not wheels:
        raise BuildFailed(cause(result))
    name = Path(wheels[0][0]).name
    if not re.fullmatch(r"[\w.+!]+(?:-[\w.+!]+){4,5}\.whl", name):
        raise BuildFailed("the build made a wheel with a name that no installer accepts")
    return _keep(wheels[0][1], into, name)


def _requirements_in(data: bytes) -> tuple[str, ...]:
    try:
        return _texts(json.loads(data[: _MOST_SETTINGS_MB << 20]))
    except (ValueError, RecursionError):
        raise BuildFailed("the build lists its requirements in an unknown format") from None


def _spec(
    source: BuildSource,
    job: Mapping[str, object],
    python: Snapshot,
    mounts: tuple[Path, ...],
    interpreter: Path,
) -> RunSpec:
    return RunSpec(
        argv=(str(interpreter), "-B", "build_wheel.py"),
        files={
            **source.files,
            "build_wheel.py": _DRIVER.read_bytes(),
            "job.json": json.dumps({**job, "source": source.path}).encode(),
        },
        env=_environment(source, python, interpreter.parent),
        mounts=tuple(map(Mount, (*mounts, *source.mounts))),
        limits=_LIMITS,
        artifacts=("out/*.whl", "out/*.json", "out/*.toml"),
        label="build",
    )


def _environment(source: BuildSource, python: Snapshot, scripts: Path) -> dict[str, str]:
    version_variables = dict.fromkeys(
        ("SETUPTOOLS_SCM_PRETEND_VERSION", "PBR_VERSION"), source.version
    )
    return {
        "PATH": f"{scripts}:{python.root}/bin:{_TOOLS}",
        "HOME": "/tmp",  # noqa: S108
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "MAX_JOBS": "2",
        **(version_variables if source.version else {}),
        **python.variables,
    }


def _keep(data: bytes, into: Path, name: str) -> Path:
    into.mkdir(mode=0o755, parents=True, exist_ok=True)
    into.chmod(0o755)
    part = into / f".{name}.{os.getpid()}.{time.monotonic_ns()}"  # other builders may be at it too
    part.write_bytes(data)
    part.chmod(0o644)
    return part.replace(into / name)


def cause(result: RunResult) -> str:
    """The line of a failed build that says why."""
    if result.timed_out:
        return "the build took too long"
    text = f"{result.stdout}\n{result.stderr}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if offline_lines := [line for line in lines if _OFFLINE.search(line)]:
        return f"the build tries to download something, but has no network: {offline_lines[-1]}"[
            :300
        ]
    error_lines = [line for line in lines if _ERROR.match(line)]
    compiler = [line for line in lines if _COMPILER.search(line)]
    return (compiler or error_lines or lines or ["the build ended without output"])[-1][:300]
