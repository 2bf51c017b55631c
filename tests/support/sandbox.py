"""A sandbox in memory: a program is a function that returns a result, or the steps it would
take, under the same limits. And one of real processes that counts its runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from threading import Event
from typing import BinaryIO

from sandbox import guard_client, port
from sandbox.guard import files, wire
from sandbox.port import (
    Health,
    OnOutput,
    RunResult,
    RunSpec,
    SandboxError,
    Stream,
    Workspace,
    WorkspaceSpec,
)
from sandbox.process import ProcessSandbox
from sandbox.workspace import RunnerWorkspace


@dataclass(frozen=True, slots=True)
class Say:
    """Write to a stream."""

    data: bytes
    stream: Stream = "stdout"


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass, computing (`busy`) or not, or waiting for a processor (`starved`)."""

    seconds: float
    busy: bool = False
    starved: bool = False


@dataclass(frozen=True, slots=True)
class Take:
    """Use so much memory from now on."""

    megabytes: float


@dataclass(frozen=True, slots=True)
class Save:
    """Write a file into the working directory."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Exit:
    """End with a code."""

    code: int = 0


@dataclass(frozen=True, slots=True)
class Die:
    """End by a signal."""

    signal: int


Step = Say | Wait | Take | Save | Exit | Die
Program = Callable[[RunSpec], RunResult | Iterable[Step]]


class _Ended(Exception):
    def __init__(self, **fields: object) -> None:
        super().__init__()
        self.fields = fields


@dataclass
class _Run:
    """One run of steps."""

    spec: RunSpec
    cancel: Event
    outcome: guard_client.Outcome
    folder: dict[str, bytes]
    began: float = field(default_factory=time.monotonic)
    active: float = 0.0
    kept: dict[Stream, bytearray] = field(
        default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()}
    )

    def take(self, step: Step) -> None:
        """Do one step; raises _Ended when it is the last."""
        match step:
            case Say(data, stream):
                self.active = time.monotonic()
                self.kept[stream] += data
                self.outcome.output(wire.LIVE[stream], data)
            case Wait(seconds, busy, starved):
                self.wait(seconds, busy=busy or starved, starved=starved)
            case Take(megabytes):
                if megabytes > self.spec.limits.memory_mb:
                    raise _Ended(signal=9, oom=True)
            case Save(path, data):
                if (
                    sum(map(len, self.folder.values())) + len(data)
                    > self.spec.limits.scratch_mb << 20
                ):
                    raise _Ended(exit_code=1)
                self.folder[path] = data
            case Exit(code):
                raise _Ended(exit_code=code)
            case Die(number):
                raise _Ended(signal=number)

    def wait(self, seconds: float, *, busy: bool, starved: bool = False) -> None:
        """Real time passes, in small pieces, so that cancelling and limits behave as they do
        elsewhere.
        """
        limits = self.spec.limits
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            if now - self.began > (limits.longest_s if starved else limits.wall_s):
                raise _Ended(timed_out=True)
            if not busy and limits.idle_s is not None and now - self.active >= limits.idle_s:
                raise _Ended(idle=True)
            piece = min(0.02, end - now)
            self.active = now if busy else self.active
            if self.cancel.wait(piece):
                raise _Ended(cancelled=True)

    def streams(self) -> dict[str, int]:
        """Keep head and tail of each stream, as the guard does; returns what was dropped."""
        limit, dropped = self.spec.limits.output_bytes, {}
        for name, data in self.kept.items():
            tail = limit // 2
            dropped[str(name)] = max(0, len(data) - limit)
            self.outcome.heads[name] += data[: limit - tail]
            self.outcome.tails[name] = bytes(data[limit - tail :][-tail:]) if tail else b""
        return dropped


def _signed(spec: RunSpec, done: RunResult) -> RunResult:
    """The result with what the probe of a real run would have left."""
    key = spec.files.get(".reprise/key", b"")
    if not key:
        return done
    files = dict(done.artifacts)
    if done.exit_code is not None:
        files[".reprise/end-1.json"] = b"1"
    made = {name: blake2b(data, key=key, digest_size=16) for name, data in files.items()}
    signed = {
        f"{name.removesuffix('.json')}-{made[name].hexdigest()}.json"
        if name.endswith(".json")
        else name: data
        for name, data in files.items()
    }
    return replace(done, artifacts=signed)


class FakeSandbox:
    """Runs `programs` instead of real ones: one function for all runs, or one for each entry of
    argv[0]. `reaches`: whether a program that is watched reaches all that is wanted, or nothing.
    `imports` answers for the packages under test, which can be imported unless it says otherwise.
    """

    name = "fake"

    def __init__(
        self,
        program: Program | Mapping[str, Program],
        *,
        reaches: bool = True,
        imports: Program | None = None,
    ) -> None:
        self.program, self.reaches, self.imports = program, reaches, imports
        self.specs: list[RunSpec] = []

    def check(self) -> Health:
        """Always works."""
        return Health(works=True, detail="in memory", protects=("everything: nothing is run",))

    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        """Run to the end or to a limit. Raises SandboxError when the sandbox, not the program,
        failed.
        """
        port.job(spec, self.name)
        if spec.label == "import" and self.imports is None:
            return RunResult(exit_code=0, seconds=0.1)
        self.specs.append(spec)
        done = self._chosen(spec)(spec)
        if isinstance(done, RunResult):
            if on_output is not None:
                guard_client.Lines("stdout", on_output).feed(done.stdout.encode(), final=True)
                guard_client.Lines("stderr", on_output).feed(done.stderr.encode(), final=True)
            return (
                replace(done, cancelled=True, exit_code=None, signal=None)
                if cancel is not None and cancel.is_set()
                else self._watched(spec, _signed(spec, done))
            )
        return self._play(
            _Run(spec, cancel or Event(), guard_client.Outcome(spec, on_output), dict(spec.files)),
            done,
        )

    def open(self, spec: WorkspaceSpec) -> Workspace:
        """A workspace whose programs find its files in `files` of what they are given."""
        return RunnerWorkspace(_FakeRunner(self), spec)

    def _watched(self, spec: RunSpec, done: RunResult) -> RunResult:
        wanted = spec.env.get("REPRISE_WANTED")
        if wanted is None or not self.reaches:
            return done
        entry = spec.argv[-1]
        lines = range(1, spec.files[entry].count(b"\n") + 2)
        row = {"entered": json.loads(wanted), "lines": [[entry, line] for line in lines]}
        artifacts = {**done.artifacts, ".reprise/reached-1.json": json.dumps(row).encode()}
        return replace(done, artifacts=artifacts)

    def _chosen(self, spec: RunSpec) -> Program:
        if spec.label == "import" and self.imports is not None:
            return self.imports
        if callable(self.program):
            return self.program
        if spec.argv[0] not in self.program:
            raise SandboxError(f"the program cannot be started: {spec.argv[0]}: not found")
        return self.program[spec.argv[0]]

    def _play(self, run: _Run, steps: Iterable[Step]) -> RunResult:
        run.active = run.began
        ended: dict[str, object] = {"exit_code": 0}
        try:
            for step in steps:
                run.take(step)
        except _Ended as end:
            ended = {"exit_code": None, **end.fields}
        patterns = [files.pattern(glob) for glob in run.spec.artifacts]
        budget = run.spec.limits.artifact_mb << 20
        for path, data in sorted(run.folder.items()):
            if not any(one.match(path) for one in patterns):
                continue
            if len(data) > budget:
                run.outcome.refused[path] = f"it has {len(data)} bytes, {budget} are left"
                continue
            budget -= len(data)
            run.outcome.artifacts[path] = data
        seconds = time.monotonic() - run.began
        run.outcome.result = {**ended, "seconds": seconds, "dropped": run.streams()}
        return run.outcome.built()

    def sweep(self) -> int:
        """Nothing is ever left."""
        return 0


class _FakeRunner:
    """Programs in one folder of memory, with the two of the system that fill it and pack it."""

    def __init__(self, sandbox: FakeSandbox) -> None:
        self.sandbox = sandbox
        self.folder: dict[str, bytes] | None = {}

    def run(
        self,
        spec: RunSpec,
        *,
        cancel: Event | None = None,
        on_output: OnOutput | None = None,
        sink: BinaryIO | None = None,
    ) -> RunResult:
        """One program, or none."""
        port.job(spec, self.sandbox.name, 1.0)
        if self.folder is None:
            raise SandboxError("the workspace is closed")
        self._put(self.folder, spec.files)
        inside = replace(spec, files=dict(self.folder))
        run = _Run(inside, cancel or Event(), guard_client.Outcome(spec, on_output), self.folder)
        if spec.argv[:1] == ("/bin/cp",):
            start = Path(spec.argv[-2])
            files = [path for path in start.rglob("*") if path.is_file() and not path.is_symlink()]
            self.folder |= {str(path.relative_to(start)): path.read_bytes() for path in files}
        elif spec.argv[:1] == ("/bin/tar",) and sink is not None:
            sink.write(json.dumps({k: v.hex() for k, v in self.folder.items()}).encode())
        elif spec.argv[:1] == ("/bin/tar",):
            packed = json.loads(Path(spec.argv[-1]).read_bytes())
            self.folder |= {name: bytes.fromhex(text) for name, text in packed.items()}
        elif spec.argv:
            steps = self.sandbox._chosen(inside)(inside)
            return steps if isinstance(steps, RunResult) else self.sandbox._play(run, steps)
        return self.sandbox._play(run, [])

    def _put(self, folder: dict[str, bytes], files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            if any(one.startswith(f"{name}/") for one in folder):
                raise SandboxError(f"Is a directory: {name}")
            folder[name] = data

    def close(self) -> None:
        """Forget all."""
        self.folder = None


class CountingSandbox(ProcessSandbox):
    """Counts what it is asked to run."""

    runs = 0

    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        self.runs += 1
        return super().run(spec, cancel=cancel, on_output=on_output)
