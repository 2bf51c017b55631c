"""`python -m benchmarks.scale.worker`: a worker of the App whose sandbox runs nothing.

It is the App's own worker, from the queue to the comment. Only the sandbox and the builder answer
at once (after `--sleep` seconds), so that what remains is what the App itself takes. Each task is
a line of the file `--tasks`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Lock, local
from typing import IO

from bot.app import factory
from bot.app.ports import CloneToken, Task, Write
from bot.app.worker import Service, run
from bot.kernel.job import RequestedJob
from bot.kernel.ports import Journal, Listener, Ports
from bot.kernel.report import IssueReport, RequestedReport
from bot.kernel.settings import load
from bot.kernel.values import Record
from bot.products.engine import execute
from handlers import server
from sandbox.port import RunResult, RunSpec
from tests.support.engine import FakeBuilder
from tests.support.sandbox import FakeSandbox

_TRACEBACK = """Traceback (most recent call last):
  File "repro.py", line 3, in <module>
    print(statistics.mean([]))
  File "/usr/lib/python3.11/statistics.py", line 327, in mean
    raise StatisticsError('mean requires at least one data point')
statistics.StatisticsError: mean requires at least one data point
"""


class HandledTask(Record):
    """One task, by seconds since 1970; of its time `engine_s` was spent in the engine and
    `github_s` on answers of GitHub. `own_cpu_s` and `engine_cpu_s` are processor seconds of its
    thread, outside the engine and in it; `cpu_began_s` and `cpu_ended_s` those of the process
    until then.
    """

    kind: str
    began: float
    ended: float
    engine_s: float
    github_s: float
    own_cpu_s: float
    engine_cpu_s: float
    cpu_began_s: float
    cpu_ended_s: float


class _Watch(local):
    """What the task of this thread has spent elsewhere."""

    engine_s = github_s = engine_cpu_s = 0.0


class TimedWorker:
    """Handles tasks and writes down what each of them took."""

    def __init__(self, sleep_s: float, file: IO[str]) -> None:
        self._sleep_s, self._file = sleep_s, file
        self._watch, self._lock = _Watch(), Lock()

    def engine(
        self,
        job: RequestedJob,
        *,
        journal: Journal,
        listener: Listener,
        cancel: Event,
        clone: CloneToken | None,  # noqa: ARG002  # nothing is cloned
        earlier: IssueReport | None = None,  # noqa: ARG002  # no proofs follow
    ) -> RequestedReport:
        """The real engine over a sandbox and a builder that do nothing."""
        sandbox = FakeSandbox(self._program)
        began, cpu = time.monotonic(), time.thread_time()
        try:
            world = Ports(sandbox, FakeBuilder(), journal, time.monotonic, listener, cancel)
            return execute(job, world)
        finally:
            self._watch.engine_s += time.monotonic() - began
            self._watch.engine_cpu_s += time.thread_time() - cpu

    @contextmanager
    def request(self, _installation: int, _write: Write | None) -> Iterator[None]:
        """The hook around each request to GitHub."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._watch.github_s += time.monotonic() - began

    def timed(self, service: Service, task: Task, event: Event) -> None:
        """Handle a task and write down its times."""
        watch, began = self._watch, time.time()
        cpu, process_cpu = time.thread_time(), time.process_time()
        watch.engine_s = watch.github_s = watch.engine_cpu_s = 0.0
        service.handle(task, event)
        done = HandledTask(
            kind=task.kind,
            began=began,
            ended=time.time(),
            engine_s=watch.engine_s,
            github_s=watch.github_s,
            own_cpu_s=time.thread_time() - cpu - watch.engine_cpu_s,
            engine_cpu_s=watch.engine_cpu_s,
            cpu_began_s=process_cpu,
            cpu_ended_s=time.process_time(),
        )
        with self._lock:
            self._file.write(f"{done.model_dump_json()}\n")
            self._file.flush()

    def _program(self, _spec: RunSpec) -> RunResult:
        time.sleep(self._sleep_s)
        return RunResult(exit_code=1, stderr=_TRACEBACK, seconds=self._sleep_s)


def main() -> None:
    """Work until a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sleep", type=float, required=True)
    parser.add_argument("--tasks", type=Path, required=True)
    options, settings = parser.parse_args(), load()
    server.to_stderr(settings.secrets)
    with (
        options.tasks.open("a") as file,
        closing(factory.store(settings)) as store,
        closing(factory.queue(settings)) as queue,
    ):
        worker = TimedWorker(options.sleep, file)
        hub = factory.hub(settings).hooked(worker.request)
        context = factory.make_context(settings, store, queue, hub, worker.engine)
        service = Service(context)
        run(
            lambda task, event: worker.timed(service, task, event),
            queue,
            device="cpu",
            slots=1,
            ticks=service.ticks(),
            grace_s=settings.grace_s,
        )


if __name__ == "__main__":
    main()
