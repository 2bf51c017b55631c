"""Processes that are started again whenever they die, as an orchestrator would, so that they can
be killed at will.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread

from bot.kernel.errors import UserError

_AGAIN_S = 0.2
_GRACE_S = 20.0


def free_port() -> int:
    """A port that nothing listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Supervised(AbstractContextManager["Supervised"]):
    """Named programs, kept alive until the block is left; their output goes to files of `logs`."""

    def __init__(
        self, programs: Mapping[str, Sequence[str]], env: Mapping[str, str], logs: Path
    ) -> None:
        self._programs, self._env, self._logs = dict(programs), dict(env), logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._lock, self._stop = Lock(), Event()
        self._down: set[str] = set()
        self._keeper = Thread(target=self._keep, name="keeper", daemon=True)
        self.starts = dict.fromkeys(programs, 0)

    def __enter__(self) -> Supervised:
        for name in self._programs:
            self._start(name)
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._keeper.join()
        for process in self._running.values():
            process.terminate()
        end = time.monotonic() + _GRACE_S
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, end - time.monotonic()))
            process.kill()
            process.wait()

    def kill(self, chance: random.Random) -> str:
        """SIGKILL one of those that are alive, chosen by chance; its name, "" when none was."""
        with self._lock:
            alive = [name for name, process in self._running.items() if process.poll() is None]
            if not alive:
                return ""
            name = chance.choice(alive)
            os.kill(self._running[name].pid, signal.SIGKILL)
            return name

    @contextmanager
    def down(self, name: str) -> Iterator[None]:
        """SIGKILL a program, and start it again when the block is left."""
        with self._lock:
            self._down.add(name)
            self._running[name].kill()
        try:
            yield
        finally:
            with self._lock:
                self._down.discard(name)

    def pid(self, name: str) -> int:
        """The process id of a program."""
        with self._lock:
            return self._running[name].pid

    def _keep(self) -> None:
        while not self._stop.wait(_AGAIN_S):
            for name in self._programs:
                if name not in self._down and self._running[name].poll() is not None:
                    self._start(name)

    def _start(self, name: str) -> None:
        with self._lock, (self._logs / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                list(self._programs[name]),
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._logs,
            )
            self.starts[name] += 1


def redis(port: int, folder: Path, program: str | None) -> list[str]:
    """How to start a Redis that keeps nothing. `program` is its path, None when it is not
    installed.
    """
    if program is None:
        raise UserError(
            "redis-server is not installed.", "Install it (on Debian: apt install redis-server)."
        )
    words = {
        "--port": str(port),
        "--bind": "127.0.0.1",
        "--save": "",
        "--appendonly": "no",
        "--dir": str(folder),
    }
    return [program, *(word for pair in words.items() for word in pair)]


def reachable(port: int, within_s: float) -> bool:
    """Whether something listens on a port of this machine before the time is up."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return True
        time.sleep(0.05)
    return False
