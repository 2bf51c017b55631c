"""The server that is measured, as it is deployed: its own process, SQLite on disk, Redis."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.supervised import Supervised, free_port, reachable, redis
from bot.kernel.errors import TransientError
from bot.kernel.settings import host

SECRET = "measured-in-the-open"
_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMA==\n-----END RSA PRIVATE KEY-----\n"
_START_S = 60.0
_RUN = "from bot.cli.app import main; main()"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, by its process and port."""

    pid: int
    port: int

    def memory_mb(self) -> tuple[float, float]:
        """Resident memory in megabytes, now and at its highest."""
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in status)
        return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024


@contextmanager
def serving(folder: Path, database: str) -> Iterator[Server]:
    """`reprise serve` on a new database at an address, with a Redis of its own."""
    port, queue = free_port(), free_port()
    programs = {
        "redis": redis(queue, folder, shutil.which("redis-server")),
        "web": [sys.executable, "-P", "-c", _RUN, "serve", "--port", str(port)],
    }
    env = {name: value for name, value in host().items() if not name.startswith("REPRISE_")}
    env |= {
        "REPRISE_APP_ID": "1",
        "REPRISE_APP_SLUG": "reprise",
        "REPRISE_PRIVATE_KEY": _KEY,
        "REPRISE_WEBHOOK_SECRET": SECRET,
        "REPRISE_APP_FILE": str(folder / "app.env"),
        "REPRISE_DATABASE_URL": database,
        "REPRISE_REDIS_URL": f"redis://127.0.0.1:{queue}/0",
    }
    with Supervised(programs, env, folder) as running:
        if not reachable(queue, _START_S) or not reachable(port, _START_S):
            log = (folder / "web.log").read_text("utf-8", "replace").strip()
            raise TransientError(f"The server did not start: {log[-300:] or 'no output'}")
        yield Server(running.pid("web"), port)
