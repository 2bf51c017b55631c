"""The two servers that are measured: ours as it is deployed (its own process, SQLite on disk, Redis), and probot under node."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.errors import TransientError, UserError
from bot.settings import host

SECRET = "measured-in-the-open"  # noqa: S105 - signs payloads that the same program sends
_KEY = "\n".join(f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END")).replace("\n", "\nMA==\n")
_START_S = 60.0
_OURS = "from handlers.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Contender:
    """A server that runs. `path` is where it takes deliveries."""

    name: str
    pid: int
    port: int
    path: str


@contextmanager
def ours(folder: Path, database: str) -> Iterator[Contender]:
    """`reprise serve` on a new database at an address, with a Redis of its own."""
    with _redis(folder) as redis_port:
        port = _free_port()
        environment = {name: value for name, value in host().items() if not name.startswith("REPRISE_")}
        environment |= {
            "REPRISE_APP_ID": "1",
            "REPRISE_APP_SLUG": "reprise",
            "REPRISE_PRIVATE_KEY": _KEY,
            "REPRISE_WEBHOOK_SECRET": SECRET,
            "REPRISE_APP_FILE": str(folder / "app.env"),
            "REPRISE_DATABASE_URL": database,
            "REPRISE_REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
        }
        argv = (sys.executable, "-P", "-c", _OURS, "serve", "--port", str(port))
        with _running(argv, environment, folder / "ours.log", port) as pid:
            yield Contender("Reprise", pid, port, "/webhook")


@contextmanager
def probot(node: Path, folder: Path) -> Iterator[Contender]:
    """Probot from the npm packages in `node`, in production mode."""
    if shutil.which("node") is None or not (node / "node_modules" / "probot").is_dir():
        raise UserError("probot is not installed here.", f"Install node, then: npm ci --prefix {node}")
    port = _free_port()
    environment = {
        "PATH": os.defpath + os.pathsep + host().get("PATH", ""), "NODE_ENV": "production", "LOG_LEVEL": "fatal", "APP_ID": "1",
        "PRIVATE_KEY": _KEY, "WEBHOOK_SECRET": SECRET, "HOST": "127.0.0.1", "PORT": str(port),
    }  # fmt: skip
    with _running(("node", "probot.mjs"), environment, folder / "probot.log", port, node) as pid:
        yield Contender("probot", pid, port, "/api/github/webhooks")


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident memory of a process in megabytes, now and at its highest."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    if shutil.which("redis-server") is None:
        raise UserError("redis-server is not installed here.", "On Debian and Ubuntu: apt install redis-server")
    port = _free_port()
    argv = ("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder))
    with _running(argv, host(), folder / "redis.log", port):
        yield port


@contextmanager
def _running(
    argv: tuple[str, ...], environment: dict[str, str], log: Path, port: int, cwd: Path | None = None
) -> Iterator[int]:
    """A process that answers on its port until the block ends."""
    with log.open("wb") as stream:
        process = subprocess.Popen(argv, env=environment, cwd=cwd, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL)
    try:
        _await(process, argv[0], port, log)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(process: subprocess.Popen[bytes], program: str, port: int, log: Path) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    said = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
    raise TransientError(f"{Path(program).name} did not start: {said[0]}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port
