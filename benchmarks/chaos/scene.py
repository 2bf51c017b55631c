"""A small whole App in which everything can be broken: its Redis, its PostgreSQL, its Docker, its
disk, its clock, its model and its GitHub.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chaos.docker_daemon import DockerDaemon, docker_daemon
from benchmarks.chaos.docker_socket import DockerSocket
from benchmarks.supervised import free_port
from benchmarks.whole_app import AppPlan, RunningApp, running
from tests.support.postgres import PostgresServer, postgres_server

DISK_MB = 3_072  # environments are built while 2 GiB are free
_JUMPING = '''"""A clock that jumps by the seconds in a file, where there is one."""
import os, time
_true_time = time.time
def _jumped():
    try:
        with open(os.environ["CHAOS_CLOCK"]) as file:
            return _true_time() + float(file.read())
    except (OSError, ValueError):
        return _true_time()
time.time = _jumped
'''
_SETTINGS = {
    "REPRISE_LOG_FORMAT": "json",
    "REPRISE_DAILY_MINUTES": "1000000",
    "REPRISE_RESERVE_GB": "0",
    "REPRISE_GRACE_S": "5",
    "REPRISE_LEASE_S": "10",
    "REPRISE_NETWORK_TIMEOUT_S": "5",
}


@dataclass(frozen=True)
class Scene:
    """A running App. `disk` is the small file system of its workers, None without root; a number
    in the file `clock` moves the clock of the second worker by so many seconds. `daemon` is a
    Docker daemon of the App's own, if there is one.
    """

    app: RunningApp
    database: PostgresServer
    docker: DockerSocket
    disk: Path | None
    clock: Path
    daemon: DockerDaemon | None = None


@contextmanager
def scene(
    sandbox: str, environ: Mapping[str, str], dead_model: bool = False, own_daemon: bool = False
) -> Iterator[Scene]:
    """The App while the block lasts; with a model, it is one that nobody listens for."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reprise-chaos-")))
        folder.chmod(0o755)
        database = stack.enter_context(postgres_server(durable=True))
        docker = DockerSocket(folder / "docker.sock")
        stack.callback(docker.close)
        own = docker_daemon(folder / "docker", environ) if own_daemon else nullcontext()
        daemon = stack.enter_context(own)
        address = docker.address if daemon is None else daemon.address
        disk = folder / "disk"
        mounted = stack.enter_context(_small_disk(disk))
        plan = AppPlan(
            sandbox=sandbox,
            database=database.fresh(),
            cache=disk / "cache",
            environ={**environ, "DOCKER_HOST": address, "TMPDIR": str(disk / "tmp")},
            settings=_SETTINGS | (_dead_model() if dead_model else {}),
            prefixes={"worker-2": _with_clock(folder)},
        )
        app = stack.enter_context(running(plan, folder))
        place = disk if mounted else None
        yield Scene(app, database, docker, place, folder / "clock.txt", daemon)


def _dead_model() -> dict[str, str]:
    url = f"http://127.0.0.1:{free_port()}/v1"
    return {"REPRISE_MODEL_URL": url, "REPRISE_MODEL_KEY": "k", "REPRISE_MODEL_READER": "dead"}


@contextmanager
def _small_disk(disk: Path) -> Iterator[bool]:
    """A file system of its own for cache and temporary files; root alone can mount one."""
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "tmpfs", str(disk)]
    is_mounted = (
        os.geteuid() == 0
        and shutil.which("mount") is not None
        and subprocess.run(mount, check=False, capture_output=True).returncode == 0
    )
    try:
        (disk / "cache").mkdir()
        (disk / "tmp").mkdir()
        (disk / "tmp").chmod(0o1777)
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(disk)], check=False)


def _with_clock(folder: Path) -> list[str]:
    (folder / "clock").mkdir()
    (folder / "clock" / "sitecustomize.py").write_text(_JUMPING)
    return ["env", f"PYTHONPATH={folder / 'clock'}", f"CHAOS_CLOCK={folder / 'clock.txt'}"]
