"""Build a wheel from source inside a sandbox: the only place of the prepare phase where foreign
code runs.
"""

import hashlib
import os
import re
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from threading import Event

from uv import find_uv_bin

from sandbox.indexes import Indexes
from sandbox.interpreters import Snapshot
from sandbox.port import Limits, Mount, RunResult, RunSpec, Sandbox, SandboxError

_LIMITS = Limits(
    wall_s=900.0,
    memory_mb=8192,
    cpus=4.0,
    pids=1024,
    file_mb=1024,
    scratch_mb=6144,
    output_bytes=400_000,
)
_TOOLS = "/usr/local/bin:/usr/bin:/bin"


class BuildFailed(SandboxError):
    """The source cannot be built here; the message is the first cause."""


@dataclass(frozen=True, slots=True)
class BuildSource:
    """A source distribution or a packed clone. `version` is what version-control plug-ins are
    told, as there is no history.
    """

    archive: bytes
    name: str = "source.tar.gz"
    version: str = ""
    exclude_newer: str = ""


def wheel(
    source: BuildSource,
    python: Snapshot,
    sandbox: Sandbox,
    indexes: Indexes,
    into: Path,
    cancel: Event | None = None,
) -> Path:
    """Build one wheel and keep it in `into`. The build sees the index and a throwaway cache, and
    holds no secret.
    """
    tools = into.parent / "tools"
    tool = _copied(Path(find_uv_bin()), tools, f"uv-{version('uv')}")
    indexes = _certified(indexes, tools)
    argv = [
        str(tool),
        "build",
        "-q",
        "--wheel",
        "--out-dir",
        "out",
        "--python",
        str(python.executable),
    ]
    argv += ["--exclude-newer", source.exclude_newer] if source.exclude_newer else []
    spec = RunSpec(
        argv=(*argv, source.name),
        files={source.name: source.archive},
        env=_environment(source, python, indexes.without_secrets()),
        mounts=tuple(Mount(path) for path in (tool, python.root, *indexes.paths)),
        limits=_LIMITS,
        artifacts=("out/*.whl",),
        network=True,
        label="build",
    )
    result = sandbox.run(spec, cancel=cancel)
    made = [(name, data) for name, data in result.artifacts.items() if name.endswith(".whl")]
    if result.exit_code != 0 or not made:
        raise BuildFailed(cause(result))
    name = Path(made[0][0]).name
    if not re.fullmatch(r"[\w.+!]+(?:-[\w.+!]+){4,5}\.whl", name):
        raise BuildFailed("the build made a wheel with a name that no installer accepts")
    return _keep(made[0][1], into, name)


def _copied(source: Path, tools: Path, name: str) -> Path:
    """A file in the cache: that is all that a worker in a container shares with its daemon's
    host.
    """
    kept = tools / name
    return kept if kept.exists() else _keep(source.read_bytes(), tools, name, 0o755)


def _certified(indexes: Indexes, tools: Path) -> Indexes:
    """The settings with the authorities' certificates where the daemon sees them."""
    source = Path(indexes.certificate)
    if not source.is_file():
        return indexes
    name = f"certificates-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}.pem"
    return replace(indexes, certificate=str(_copied(source, tools, name)))


def _environment(source: BuildSource, python: Snapshot, indexes: Indexes) -> dict[str, str]:
    told = dict.fromkeys(("SETUPTOOLS_SCM_PRETEND_VERSION", "PBR_VERSION"), source.version)
    return {
        "PATH": f"{python.root}/bin:{_TOOLS}",
        "HOME": "/tmp",  # noqa: S108
        "LC_ALL": "C.UTF-8",
        "UV_CACHE_DIR": ".uv-cache",
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
        "NO_COLOR": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "MAX_JOBS": "2",
        **(told if source.version else {}),
        **indexes.variables(),
        **python.variables,
    }


def _keep(data: bytes, into: Path, name: str, mode: int = 0o644) -> Path:
    into.mkdir(mode=0o755, parents=True, exist_ok=True)
    into.chmod(0o755)
    part = into / f".{name}.{os.getpid()}.{time.monotonic_ns()}"  # other builders may be at it too
    part.write_bytes(data)
    part.chmod(mode)
    return part.replace(into / name)


def cause(result: RunResult) -> str:
    """The line of a failed build that says why."""
    if result.timed_out:
        return "the build took too long"
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"(?:\w+\.)*\w*(?:Error|Exception): \S", line)]
    compiler = [
        line
        for line in lines
        if re.search(r"\b(?:fatal )?error: (?!Failed to build|command)|command not found", line)
    ]
    causes = [line.removeprefix("cause: ") for line in lines if line.startswith("cause: ")]
    chosen = (compiler or raised or causes or lines or ["the build ended without output"])[-1]
    return chosen[:300]
