"""The plain process: the same guard and limits without isolation, for trusted code; its health says
what it does not contain.
"""

import os
from dataclasses import replace
from threading import Event

from typing_extensions import override

from sandbox import layout, local_guard
from sandbox.guard import cgroup
from sandbox.port import Health, OnOutput, RunResult, RunSpec, Sandbox, SandboxError

PROTECTS = (
    "wall time, idle time, memory, number of processes, file size",
    "the host's environment variables",
    "processes left running after the end",
)
FIX = "look for a full or read-only temporary directory"
EXPOSES = (
    "the network of this host",
    "every file that the run's user can read or write",
    "the list of this host's processes and their command lines",
    "the whole kernel interface",
)


def holder() -> str:
    """What holds the memory limit of a run on this host."""
    group = cgroup.Group(layout.token())
    try:
        if group.make(256, 256, 1.0):
            return f"memory and processes limited by cgroup {'v2' if group.v2 else 'v1'}"
    finally:
        group.remove(0.2)
    return "memory limited by the guard's polling, processes by RLIMIT_NPROC"


class ProcessSandbox(Sandbox):
    """Runs a program as a child of this machine, guarded but not walled in."""

    name = "process"

    @override
    def check(self) -> Health:
        problem = layout.trial(self)
        user = (
            "as a separate user"
            if os.geteuid() == 0
            else "as the user who started it, whose files and processes it may harm"
        )
        return Health(not problem, problem or f"{user}; {holder()}", FIX, PROTECTS, EXPOSES)

    @override
    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        for mount in spec.mounts:
            if mount.inside != str(mount.source):
                raise SandboxError(
                    f"a plain process cannot see {mount.source} as {mount.target}; mount it at "
                    "its own path"
                )
        job = layout.job(spec, self.name)
        token = str(job["token"])
        marked = replace(spec, env={**spec.env, "REPRISE_RUN": token})
        extra = {
            "env": layout.environment(marked),
            "scratch": str(local_guard.scratch(token)),
        }
        return local_guard.run({**job, **extra}, spec, cancel, on_output)

    @override
    def sweep(self) -> int:
        return local_guard.sweep()
