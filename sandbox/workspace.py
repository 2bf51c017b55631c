"""A workspace over any guard: filled by programs inside, so that nothing of what it starts with or
leaves is unpacked on the host.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from typing_extensions import override

from sandbox import footprint
from sandbox.port import (
    Limits,
    Mount,
    OnOutput,
    RunResult,
    RunSpec,
    SandboxError,
    Workspace,
    WorkspaceSpec,
)

_COPY = ("/bin/cp", "-a", "--no-preserve=ownership", "--")
_PACK = ("/bin/tar", "--sparse", "-cf", "-", ".")
_UNPACK = ("/bin/tar", "--no-same-owner", "-xf")
_SYSTEM = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


class ProgramRunner(Protocol):
    """Runs one program after the other in the same folder."""

    def run(
        self,
        spec: RunSpec,
        *,
        cancel: Event | None = None,
        on_output: OnOutput | None = None,
        sink: BinaryIO | None = None,
    ) -> RunResult:
        """One program, or none with an empty argument vector: then files are only put in or taken
        out. The standard output goes to `sink`, from its beginning up to the limit.
        """

    def close(self) -> None:
        """End everything, and remove the files. May be repeated."""


def run_once(
    runner: ProgramRunner, spec: RunSpec, cancel: Event | None, on_output: OnOutput | None
) -> RunResult:
    """The run that is not a workspace: one program, and the end."""
    with closing(runner):
        return runner.run(spec, cancel=cancel, on_output=on_output)


class RunnerWorkspace(Workspace):
    """A workspace of programs that a runner runs."""

    def __init__(self, runner: ProgramRunner, spec: WorkspaceSpec) -> None:
        self._runner, self._spec = runner, spec
        self._until = monotonic() + spec.total_s
        try:
            self.put({})
            if spec.start is not None:
                self._fill(spec.start)
        except BaseException:
            self.close()
            raise

    def _fill(self, start: Path) -> None:
        folder = start.is_dir()
        argv = (*_COPY, f"{start}/.", ".") if folder else (*_UNPACK, str(start))
        result = self._runner.run(self._job(argv, _SYSTEM, self._within()))
        if result.exit_code != 0:
            raise SandboxError(f"the workspace cannot be filled: {_reason(result)}")

    def _within(self, wall_s: float | None = None) -> Limits:
        """The limits of one program, whose time may be over already."""
        limits = self._spec.limits
        longest = limits.wall_s if wall_s is None else min(wall_s, limits.wall_s)
        return replace(limits, wall_s=min(longest, self._until - monotonic()))

    def _job(self, argv: tuple[str, ...], env: Mapping[str, str], limits: Limits) -> RunSpec:
        spec = self._spec
        start = () if spec.start is None else (Mount(spec.start),)
        mounts = (*spec.mounts, *start)
        return RunSpec(
            argv, env=env, mounts=mounts, limits=limits, device=spec.device, label=spec.label
        )

    @override
    def exec(
        self,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str = "",
        wall_s: float | None = None,
        cancel: Event | None = None,
        on_output: OnOutput | None = None,
    ) -> RunResult:
        if not argv:
            raise SandboxError("nothing to run: the argument vector is empty")
        limits = self._within(wall_s)
        if limits.wall_s <= 0:
            return RunResult(exit_code=None, timed_out=True)
        job = self._job(argv, {**self._spec.env, **(env or {})}, limits)
        return self._runner.run(replace(job, cwd=cwd), cancel=cancel, on_output=on_output)

    @override
    def put(self, files: Mapping[str, bytes]) -> None:
        self._runner.run(replace(self._job((), {}, self._spec.limits), files=files))

    @override
    def get(self, *patterns: str) -> RunResult:
        return self._runner.run(replace(self._job((), {}, self._spec.limits), artifacts=patterns))

    @override
    def snapshot(self, into: Path) -> None:
        limits = replace(self._within(), output_bytes=self._spec.limits.scratch_mb << 20)
        footprint.ensure_room(into.parent)
        part = into.with_name(f".{into.name}.part")
        try:
            with part.open("wb") as archive:
                result = self._runner.run(self._job(_PACK, _SYSTEM, limits), sink=archive)
            if result.exit_code != 0 or result.stdout_truncated:
                raise SandboxError(f"the workspace cannot be archived: {_reason(result)}")
            part.chmod(0o644)  # the user of the next workspace reads it
            part.replace(into)
        finally:
            part.unlink(missing_ok=True)

    @override
    def close(self) -> None:
        self._runner.close()

    @override
    def __enter__(self) -> Self:
        return self

    @override
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _reason(result: RunResult) -> str:
    limits = {
        "it takes too long": result.timed_out,
        "it needs too much memory": result.oom,
        "it is too large": result.stdout_truncated,
    }
    reason = next((reason for reason, exceeded in limits.items() if exceeded), "")
    return reason or result.stderr.strip()[-300:] or f"exit code {result.exit_code}"
