"""The caller's side of a guarded run: send the job, follow the frames, build the result."""

import codecs
import json
import marshal
import queue
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, BinaryIO, Protocol

from sandbox.guard import wire
from sandbox.port import OnOutput, RunResult, RunSpec, SandboxError, Stream

# The modules of the guard that each kind of sandbox needs, in the order of their imports: each
# costs a run its compilation.
MODULES = {
    "docker": ("wire", "tree", "spawn", "files", "place", "container", "main"),
    "bwrap": ("wire", "tree", "spawn", "files", "place", "host", "bubble", "main"),
    "process": ("wire", "tree", "spawn", "files", "place", "host", "main"),
}
# The guard travels as text, so that it runs in a container whose image knows nothing of it.
BOOT = """
import os, struct, sys, types
def take(n):
    got = b""
    while len(got) < n:
        part = os.read(0, n - len(got))
        if not part: sys.exit(0)
        got += part
    return got
for name in ("sandbox", "sandbox.guard"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
while (size := struct.unpack(">I", take(4))[0]):
    name, _, source = take(size).decode().partition("\\n")
    module = sys.modules["sandbox.guard." + name] = types.ModuleType("sandbox.guard." + name)
    setattr(sys.modules["sandbox.guard"], name, module)
    exec(compile(source, name, "exec"), module.__dict__)
kind = [one.KIND for one in list(sys.modules.values()) if hasattr(one, "KIND")][-1]
sys.modules["sandbox.guard.main"].main(kind)
"""
GRACE_S = 15.0
STEP_S = 0.05
LONGEST_LINE = 16_384
LARGEST_NAMES = 8 << 20


class JobFailed(SandboxError):
    """The guard could not do a job, and said why."""


class Channel(Protocol):
    """A connection to a guard."""

    def send(self, data: bytes) -> None:
        """Send all of it."""

    def receive(self) -> bytes:
        """What has come, waiting for some; b"" at the end. Closing waits for a call that is under
        way: it would read from the next run, whose connection gets the same descriptor.
        """


def guard_text(mode: str) -> bytes:
    """The guard's own text, which it reads first."""
    parts = []
    for name in MODULES[mode]:
        source = (resources.files("sandbox.guard") / f"{name}.py").read_text("utf-8")
        text = f"{name}\n{source}".encode()
        parts.append(struct.pack(">I", len(text)) + text)
    return b"".join((*parts, struct.pack(">I", 0)))


def package(job: Mapping[str, object], spec: RunSpec) -> bytes:
    """A job, and its files."""
    header = marshal.dumps(dict(job), 2)
    return b"".join((struct.pack(">I", len(header)), header, *spec.files.values()))


@dataclass(slots=True)
class Lines:
    """Cuts a stream into lines as they come."""

    stream: Stream
    tell: OnOutput | None
    decoder: Any = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    rest: str = ""

    def feed(self, data: bytes, *, final: bool = False) -> None:
        """Take bytes, tell lines."""
        if self.tell is None:
            return
        *lines, self.rest = (self.rest + self.decoder.decode(data, final)).split("\n")
        if self.rest and (final or len(self.rest) > LONGEST_LINE):
            lines.append(self.rest)
            self.rest = ""
        for line in lines:
            self.tell(self.stream, line.rstrip("\r"))


@dataclass(slots=True)
class Outcome:
    """The content of the frames so far."""

    spec: RunSpec
    on_output: OnOutput | None
    sink: BinaryIO | None = None
    started: bool = False
    result: dict[str, Any] | None = None
    heads: dict[Stream, bytearray] = field(
        default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()}
    )
    tails: dict[Stream, bytes] = field(default_factory=dict)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    handed_over: int = 0
    lines: dict[Stream, Lines] = field(default_factory=dict)
    buffer: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.lines = {name: Lines(name, self.on_output) for name in self.heads}

    def feed(self, data: bytes) -> None:
        """Take bytes from the guard."""
        self.buffer += data
        limits = self.spec.limits
        largest = max(limits.artifact_mb << 20, limits.output_bytes, 1 << 20) + 65_536
        while len(self.buffer) >= wire.HEAD.size:
            kind, size = wire.HEAD.unpack_from(self.buffer)
            if size > largest:
                raise SandboxError("the guard's answer is invalid: a frame exceeds the limits")
            end = wire.HEAD.size + size
            if len(self.buffer) < end:
                return
            payload = bytes(self.buffer[wire.HEAD.size : end])
            del self.buffer[:end]
            self.frame(kind, payload)

    def frame(self, kind: bytes, payload: bytes) -> None:
        """Take one frame."""
        if kind == wire.RESULT:
            self.result = json.loads(payload)
        elif kind == wire.FAILED:
            raise JobFailed(payload.decode(errors="replace"))
        elif kind == wire.STARTED:
            self.started = True
        elif kind in (wire.ARTIFACT, wire.REFUSED):
            self.left(kind, payload)
        else:
            self.output(kind, payload)

    def left(self, kind: bytes, payload: bytes) -> None:
        """Take a file that the run left, or why it was refused."""
        self.handed_over += len(payload)
        if self.handed_over > (self.spec.limits.artifact_mb << 20) + LARGEST_NAMES:
            raise SandboxError("the guard's answer is invalid: the artifacts exceed the limits")
        (size,) = struct.unpack_from(">H", payload)
        name, data = payload[2 : 2 + size].decode(errors="replace"), payload[2 + size :]
        if kind == wire.ARTIFACT:
            self.artifacts[name] = data
        else:
            self.refused[name] = data.decode(errors="replace")

    def output(self, kind: bytes, payload: bytes) -> None:
        """Take a piece of a stream."""
        for name, head in self.heads.items():
            if kind == wire.TAIL[name]:
                self.tails[name] = payload[: self.spec.limits.output_bytes]
            elif kind in (wire.STREAM_KINDS[name], wire.LIVE[name]):
                if self.sink is not None and name == "stdout":
                    self.sink.write(payload)
                elif kind == wire.STREAM_KINDS[name] and len(head) < self.spec.limits.output_bytes:
                    head += payload
                self.lines[name].feed(payload)

    def text(self, name: Stream, dropped: int) -> str:
        """A stream as it is kept: head, a mark where something was cut, tail."""
        if not dropped:
            return (bytes(self.heads[name]) + self.tails.get(name, b"")).decode(errors="replace")
        head, tail = (
            bytes(self.heads[name]).decode(errors="replace"),
            self.tails.get(name, b"").decode(errors="replace"),
        )
        return f"{head}\n[... {dropped} bytes cut ...]\n{tail}"

    def built(self) -> RunResult:
        """The finished result."""
        if self.result is None:
            raise SandboxError("the guard ended without a result")
        for lines in self.lines.values():
            lines.feed(b"", final=True)
        fields = dict(self.result)
        dropped = fields.pop("dropped")
        return RunResult(
            stdout=self.text("stdout", dropped["stdout"]),
            stderr=self.text("stderr", dropped["stderr"]),
            stdout_truncated=dropped["stdout"] > 0,
            stderr_truncated=dropped["stderr"] > 0,
            artifacts=self.artifacts,
            refused=self.refused,
            **fields,
        )


class Connection:
    """A guard under way: jobs in, one at a time, and what comes of them out."""

    def __init__(self, channel: Channel, mode: str) -> None:
        self.channel, self.before = channel, guard_text(mode)
        self.inbox, self.over = queue.Queue[bytes](maxsize=256), threading.Event()
        arguments = (channel, self.inbox, self.over)
        threading.Thread(target=_pump, args=arguments, daemon=True).start()

    def follow(
        self, job: Mapping[str, object], outcome: Outcome, cancel: threading.Event | None
    ) -> Outcome:
        """Send a job and listen until the guard has sent its result or is gone."""
        _send(self.channel, self.before + package(job, outcome.spec))
        self.before = wire.JOB
        self._listen(outcome, cancel)
        return outcome

    def _listen(self, outcome: Outcome, cancel: threading.Event | None) -> None:
        deadline, cancel_sent = time.monotonic() + outcome.spec.limits.longest_s + GRACE_S, False
        while outcome.result is None:
            if cancel is not None and cancel.is_set() and not cancel_sent:
                cancel_sent = True
                _send(self.channel, wire.CANCEL)
            try:
                data = self.inbox.get(timeout=STEP_S)
            except queue.Empty:
                if time.monotonic() > deadline:
                    raise SandboxError("the guard does not answer") from None
                continue
            if not data:
                return
            outcome.feed(data)


class GuardClient:
    """A guard and the way to it, which begins with its first job. `job` makes what it is sent of
    what is to be run.
    """

    def __init__(self, job: Callable[[RunSpec], Mapping[str, object]]) -> None:
        self._job = job
        self._connection: Connection | None = None
        self._closed = False
        self.answered = False

    def run(
        self,
        spec: RunSpec,
        *,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
        sink: BinaryIO | None = None,
    ) -> RunResult:
        """One job, as `sandbox.workspace.ProgramRunner` has it."""
        job = {**self._job(spec), "whole_output": sink is not None}
        if self._closed:
            raise SandboxError("the workspace is closed")
        outcome = Outcome(spec, on_output, sink)
        try:
            if self._connection is None:
                self._connection = Connection(self.start(spec), str(job["mode"]))
            self._connection.follow(job, outcome, cancel)
            self.answered = outcome.result is not None
            if not self.answered:
                self.explain_end(outcome)
                self.close()
        except JobFailed:
            raise
        except BaseException:
            self.close()  # what comes next belongs to the job that is not followed any more
            raise
        return outcome.built()

    def start(self, spec: RunSpec) -> Channel:
        """Start the guard."""
        raise NotImplementedError

    def explain_end(self, outcome: Outcome) -> None:
        """Give the outcome of a guard that ended without one a result, or raise SandboxError."""
        raise NotImplementedError

    def end(self) -> None:
        """See to it that the guard, and what it started, ends."""
        raise NotImplementedError

    def close(self) -> None:
        """End everything. May be repeated."""
        if not self._closed:
            self._closed = True
            if self._connection is not None:
                self._connection.over.set()
            self.end()


def _send(channel: Channel, data: bytes) -> None:
    try:
        channel.send(data)
    except (BrokenPipeError, ConnectionError):
        return  # the guard is gone; why, its last frame or its absence will say


def _pump(channel: Channel, inbox: queue.Queue[bytes], over: threading.Event) -> None:
    """Read until the guard is gone, also when nobody listens any more: a guard stuck in writing
    would not see its input end.
    """
    data = b"-"
    while data:
        try:
            data = channel.receive()
        except (OSError, ValueError):
            data = b""
        while not over.is_set():
            try:
                inbox.put(data, timeout=STEP_S)
                break
            except queue.Full:
                continue
