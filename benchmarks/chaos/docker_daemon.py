"""A Docker daemon of our own, which can be restarted while nobody else has to do with it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bot.kernel.errors import UserError
from sandbox.docker import BASE_IMAGE

_BUILD = Path(__file__).parents[2] / "deploy" / "base" / "build.sh"
_START_S, _STOP_S = 60.0, 60.0


class DockerDaemon:
    """dockerd with its own socket, images and containers below `folder`; root alone can start
    it. Without networks, as runs have none.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder, self._environ = folder, environ
        self._process: subprocess.Popen[bytes] | None = None
        self._socket = folder / "own.sock"

    @property
    def address(self) -> str:
        """As DOCKER_HOST names it."""
        return f"unix://{self._socket}"

    def start(self) -> None:
        """Begin to answer."""
        words = {
            "--data-root": self._folder / "data",
            "--exec-root": self._folder / "exec",
            "--pidfile": self._folder / "pid",
            "--host": self.address,
            "--bridge": "none",
            "--iptables": "false",
        }
        argv = ["dockerd", *(f"{name}={value}" for name, value in words.items())]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, env=dict(self._environ))
        end = time.monotonic() + _START_S
        while self._docker("info").returncode:
            if time.monotonic() > end or self._process.poll() is not None:
                raise UserError("dockerd does not start.", f"Look at {self._folder / 'log'}.")
            time.sleep(0.2)

    def stop(self) -> None:
        """End it, and with it all containers."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def take_image(self) -> None:
        """Have the image that runs need: that of the daemon of this environment, or a new one."""
        save = ["docker", "save", BASE_IMAGE]
        with subprocess.Popen(
            save, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(self._environ)
        ) as saving:
            self._docker("load", stdin=saving.stdout)
        if saving.returncode:
            build = subprocess.run(
                ["sh", str(_BUILD)], env=self._own(), check=False, capture_output=True
            )
            if build.returncode:
                words = build.stderr.decode("utf-8", "replace").strip()[-300:]
                raise UserError(f"The image of the sandbox cannot be built: {words}")

    def _docker(
        self, *words: str, stdin: IO[bytes] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        argv, source = ["docker", *words], stdin or subprocess.DEVNULL
        return subprocess.run(argv, stdin=source, env=self._own(), check=False, capture_output=True)

    def _own(self) -> dict[str, str]:
        return {**self._environ, "DOCKER_HOST": self.address}


@contextmanager
def docker_daemon(folder: Path, environ: Mapping[str, str]) -> Iterator[DockerDaemon]:
    """The daemon while the block lasts, with the image of the sandbox."""
    folder.mkdir()
    daemon = DockerDaemon(folder, environ)
    try:
        daemon.start()
        daemon.take_image()
        yield daemon
    finally:
        daemon.stop()
