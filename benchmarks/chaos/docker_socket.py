"""Docker's socket behind a door of ours: shutting it is what a restart of the daemon looks like."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread

_DAEMON = Path("/var/run/docker.sock")


class DockerSocket:
    """Passes connections on to the daemon of this machine, which others go on using."""

    def __init__(self, path: Path, daemon: Path = _DAEMON) -> None:
        self.path, self._daemon = path, daemon
        self._lock, self._pairs = Lock(), set[tuple[socket.socket, socket.socket]]()
        self._listen()

    @property
    def address(self) -> str:
        """As DOCKER_HOST names it."""
        return f"unix://{self.path}"

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Cut every connection, and refuse new ones while the block lasts."""
        self.close()
        try:
            yield
        finally:
            self._listen()

    def close(self) -> None:
        """Cut every connection, and refuse new ones."""
        self.path.unlink(missing_ok=True)
        self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._server.close()
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for one in (end for pair in pairs for end in pair):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> None:
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.path))
        self._server.listen(64)
        Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):  # the door is shut
            while True:
                Thread(target=self._pass_on, args=(server.accept()[0],), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as daemon, suppress(OSError):
            daemon.connect(str(self._daemon))
            pair = client, daemon
            with self._lock:
                self._pairs.add(pair)
            answers = Thread(target=_pump, args=(daemon, client), daemon=True)
            answers.start()
            _pump(client, daemon)
            answers.join()
            with self._lock:
                self._pairs.discard(pair)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
