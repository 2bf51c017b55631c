"""Who started a container, in a form a later process can check; and the removal of a dead owner's
containers by a small stdlib-only process, which waits for the end of its input and then asks the
Docker daemon.
"""

import json
import os
import select
import socket
import sys
import threading
import time
import urllib.parse
from http.client import HTTPConnection, HTTPException
from pathlib import Path

PATIENCE_S = 30.0
QUIET_S = 3.0
OWNER = "reprise.owner"


class Daemon(HTTPConnection):
    """HTTP over the daemon's Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self) -> None:
        """Connect to the socket instead of an address."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path: str, method: str, url: str) -> bytes:
    """One request."""
    daemon = Daemon(path)
    try:
        daemon.request(method, url)
        return daemon.getresponse().read()
    finally:
        daemon.close()


def clear(path: str, owner: str) -> int:
    """Remove every container of this owner; returns how many there were."""
    query = urllib.parse.urlencode(
        {"all": 1, "filters": json.dumps({"label": [f"{OWNER}={owner}"]})}
    )
    containers = json.loads(ask(path, "GET", f"/containers/json?{query}"))
    for container in containers:
        ask(path, "DELETE", f"/containers/{container['Id']}?force=1&v=1")
    return len(containers)


def wait_and_clear(path: str, owner: str) -> None:
    """Wait for the owner's end, then clear until nothing new appears for a while: its last
    request may still be under way.
    """
    parent = os.getppid()
    while os.getppid() == parent:  # a forked child of the owner may keep our input open
        if select.select([0], [], [], 0.5)[0] and not os.read(0, 64):
            break
    end = time.monotonic() + PATIENCE_S
    quiet = time.monotonic() + QUIET_S
    while time.monotonic() < min(end, quiet):
        try:
            if clear(path, owner):
                quiet = time.monotonic() + QUIET_S
        except (OSError, HTTPException, ValueError):
            pass  # the daemon may be restarting; the sweep at the next start is the last resort
        time.sleep(0.2)


_running: dict[tuple[str, str], tuple[int, int]] = {}
_lock = threading.Lock()


def keep(path: str, owner: str) -> None:
    """Start the janitor of this process, once; it stays until the process ends, however it ends."""
    with _lock:
        process = _running.get((path, owner))
        if process is not None and os.waitpid(process[0], os.WNOHANG)[0] == 0:
            return
        reader, writer = os.pipe()
        argv = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), path, owner]
        actions = [
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        pid = os.posix_spawn(sys.executable, argv, {}, file_actions=actions, setsid=True)
        os.close(reader)
        _running[(path, owner)] = (pid, writer)


def started(pid: int) -> str:
    """When a process began, in ticks since boot; "" when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def boot() -> str:
    """The identity of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def namespace() -> str:
    """The space our process numbers count in: two workers in containers may share a daemon, but
    not their numbers.
    """
    return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")


def me() -> str:
    """This process."""
    return f"{boot()}/{namespace()}/{os.getpid()}/{started(os.getpid())}"


def alive(owner: str) -> bool | None:
    """Whether an owner still lives; None when that cannot be seen from here: of another boot it
    may be on another machine that shares the daemon.
    """
    parts = owner.split("/")
    if len(parts) != 4 or parts[:2] != [boot(), namespace()]:
        return None
    *_, pid, began = parts
    return pid.isdigit() and started(int(pid)) == began


if __name__ == "__main__":
    wait_and_clear(sys.argv[1], sys.argv[2])
