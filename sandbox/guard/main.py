"""The guard's loops: one follows a program, passes its output on, holds its limits and kills
everything when it is over or the caller is gone; a workspace's outer one takes the next job.
"""

from __future__ import annotations

import marshal
import os
import select
import struct
import time

from sandbox.guard import files, place, spawn, tree, wire

LIFE, OUT = 0, 1
TICK_S = 0.2
BUSY_SHARE = 0.02
STARVED_SHARE = 0.5


class Watch:
    """One run under way."""

    def __init__(self, where: place.RunLocation, caller: int) -> None:
        self.place, self.caller = where, caller
        self.limits = where.limits
        self.ending = ""
        self.status: int | None = None
        self.cpu = self.cpu_mark = 0.0
        self.mark = self.refilled = time.monotonic()
        self.open: dict[int, wire.Capped] = {}
        limit, whole = self.limits["output_bytes"], where.job["whole_output"]
        tail = 0 if whole else limit // 2
        self.streams = [wire.Capped(name, OUT, limit, tail) for name in wire.STREAM_KINDS]
        self.oom_kills, self.seconds = where.oom_kills(), 0.0

    def run(self) -> None:
        """Until the program ends, a limit is met, or the caller leaves."""
        self.start()
        wire.send(OUT, wire.STARTED)
        self.mark = time.monotonic()
        tick = 0.0
        end_signal = spawn.watch(self.place.main)
        while self.status is None and not self.ending:
            self.poll([LIFE, end_signal, *self.open], TICK_S)
            self.status = tree.reap().get(self.place.main)
            now = time.monotonic()
            if self.status is None and not self.ending and now >= tick:
                tick = now + TICK_S
                self.check(now)
        self.seconds = time.monotonic() - self.place.began
        os.close(end_signal)

    def start(self) -> None:
        """Start the program on two pipes; what the sandbox's own start says on them belongs to
        its failure.
        """
        ends = []
        for stream in self.streams:
            reader, writer = os.pipe()
            self.open[reader] = stream
            ends.append(writer)
        try:
            self.place.start(*ends)
        except place.Failed as error:
            os.set_blocking(reader, False)
            self.place.kill()
            reason = (
                os.read(reader, 4000).decode(errors="replace").strip()
                if select.select([reader], [], [], 0)[0]
                else ""
            )
            raise place.Failed(f"{error}: {reason}" if reason else str(error)) from error
        finally:
            for writer in ends:
                os.close(writer)

    def poll(self, descriptors: list[int], wait: float) -> None:
        """Wait for something to happen and take it."""
        for fd in select.select(descriptors, [], [], wait)[0]:
            if fd == LIFE:
                self.ending = "cancelled" if os.read(LIFE, 64) else "abandoned"
            elif fd in self.open:
                self.take(fd)

    def take(self, fd: int) -> None:
        """Pass on what the program wrote; at the end of the stream, forget it."""
        data = os.read(fd, 131072)
        if data:
            self.open[fd].feed(data)
            self.mark, self.cpu_mark = time.monotonic(), self.cpu
        else:
            del self.open[fd]
            os.close(fd)

    def check(self, now: float) -> None:
        """Hold the limits that nothing else holds."""
        pids = self.place.pids()
        self.cpu = max(self.cpu, tree.cpu_seconds(pids))
        if self.caller and os.getppid() != self.caller:
            self.ending = "abandoned"
        elif self.is_late(now, pids):
            self.ending = "timed_out"
        elif self.place.memory_mb(pids) > self.limits["memory_mb"]:
            self.ending = "oom"
        elif self.is_idle(now):
            self.ending = "idle"
        if now - self.refilled > 1:
            self.refilled = now
            for stream in self.streams:
                stream.refill()
            if self.place.over_scratch():
                self.ending = self.ending or "scratch"

    def is_late(self, now: float, pids: list[int]) -> bool:
        """Whether the run has had its time: what others took of it does not count."""
        elapsed = now - self.place.began
        if elapsed <= self.limits["wall_s"]:
            return False
        if elapsed > self.limits["longest_s"] or self.cpu > STARVED_SHARE * elapsed:
            return True
        return bool(elapsed - tree.waited_seconds(pids) > self.limits["wall_s"])

    def is_idle(self, now: float) -> bool:
        """Whether the tree neither printed nor computed for as long as it may."""
        limit = self.limits["idle_s"]
        if limit is None:
            return False
        if self.cpu - self.cpu_mark > BUSY_SHARE * limit:
            self.mark, self.cpu_mark = now, self.cpu
        return bool(now - self.mark >= limit)

    def finish(self) -> None:
        """End whatever is left, read the rest of the output and the artifacts, and say how it
        went.
        """
        if not self.place.kill():
            raise place.Failed("some processes of the run could not be killed")
        end = time.monotonic() + 5
        while self.open and time.monotonic() < end:
            for fd in select.select(list(self.open), [], [], 1)[0]:
                self.take(fd)
        for fd in self.open:
            os.close(fd)
        if self.ending == "abandoned":
            return
        if self.ending == "scratch":
            note = f"\n[killed: more than {self.limits['scratch_mb']} MiB on disk]\n"
            self.streams[1].feed(note.encode())
        outcome = self.outcome()
        self.hand_over()
        if self.ending == "abandoned":
            return
        outcome["dropped"] = {stream.name: stream.finish() for stream in self.streams}
        wire.send(OUT, wire.RESULT, wire.as_json(outcome).encode())

    def hand_over(self) -> None:
        """Send what the program left and the caller wants, unless the caller leaves meanwhile."""
        budget = self.limits["artifact_mb"] * tree.MIB
        # Compiled before the change of user, who may not see this interpreter's modules.
        patterns = {glob: files.pattern(glob) for glob in self.place.job["artifacts"]}
        with spawn.As(self.place.user):
            for path, data in files.collect(self.place.folder, patterns, budget):
                self.poll([LIFE], 0)
                if self.ending == "abandoned":
                    return
                name = path.encode(errors="surrogateescape")
                kind = wire.REFUSED if isinstance(data, str) else wire.ARTIFACT
                content = data.encode() if isinstance(data, str) else data
                wire.send(OUT, kind, struct.pack(">H", len(name)) + name + content)

    def outcome(self) -> dict[str, object]:
        """The result, less its streams."""
        code: int | None = None
        number: int | None = None
        if self.status is not None:
            code, number = self.place.outcome(self.status)
        elif self.ending in ("oom", "scratch"):
            number = 9
        killed = self.place.oom_kills() > self.oom_kills and code != 0
        oom = self.ending == "oom" or (killed and not self.ending)
        return {
            "exit_code": code,
            "signal": number,
            "oom": oom,
            **{name: self.ending == name for name in ("timed_out", "idle", "cancelled")},
            "seconds": self.seconds,
        }


def read_job() -> place.Job:
    """The header and the files, as the caller sent them."""
    (size,) = struct.unpack(">I", wire.read_exactly(LIFE, 4))
    header = wire.read_exactly(LIFE, size)
    job: place.Job = marshal.loads(header)  # noqa: S302  from our caller, and json would cost each run ten milliseconds
    job["contents"] = [(name, wire.read_exactly(LIFE, length)) for name, length in job["files"]]
    return job


def next_job(until: float, caller: int) -> place.Job:
    """The next job of a workspace. Raises EOFError when its time is over or the caller gone."""
    while time.monotonic() < until and (not caller or os.getppid() == caller):
        ready = select.select([LIFE], [], [], 1)[0]
        # A request to stop what has just ended by itself is dropped.
        if ready and wire.read_exactly(LIFE, 1) == wire.JOB:
            return read_job()
    raise EOFError("the workspace is over")


def serve(where: place.RunLocation) -> None:
    """Do the one job of a run, or one after the other in a workspace, where a job that cannot be
    done leaves everything as it is.
    """
    caller, until = os.getppid(), time.monotonic() + where.job["total_s"]
    while True:
        try:
            where.fill()
            watch = Watch(where, caller)
            if where.job["argv"]:
                watch.run()
            watch.finish()
        except (place.Failed, OSError, ValueError) as error:
            caller_gone = isinstance(error, (BrokenPipeError, ConnectionError))
            if caller_gone or not where.job["total_s"] or not where.kill():
                raise
            wire.send(OUT, wire.FAILED, str(error).encode())
        if not where.job["total_s"]:
            return
        where.take(next_job(until, caller))


def main(kind: type[place.RunLocation]) -> None:
    """Guard one run or workspace."""
    where = None
    try:
        job = read_job()
        spawn.prctl(spawn.DUMPABLE, 0)
        spawn.prctl(spawn.SUBREAPER, 1)
        spawn.quiet_signals()
        where = kind(job)
        serve(where)
    except (EOFError, BrokenPipeError, ConnectionError):
        pass  # the caller is gone; what remains is to leave nothing behind
    except (place.Failed, OSError, ValueError) as error:
        if where is not None:
            where.kill()
        wire.send(OUT, wire.FAILED, str(error).encode())
    finally:
        if where is not None:
            where.kill()
            where.clean()
