"""Repositories behind git's own HTTP server, `git http-backend`."""

from __future__ import annotations

import os
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_WHO = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")


class GitServer:
    """Serves the repositories of a folder on a port of this machine; `requests` are the paths that
    were asked for.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.requests = folder, list[str]()

    def publish(self, files: Path) -> str:
        """The address of a repository with one commit, of a folder's files."""
        folder = self.folder / f"{files.name}.git"
        folder.mkdir(parents=True)
        for argv in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
            where = ("--git-dir", str(folder), "--work-tree", str(files))
            subprocess.run(("git", *_WHO, *where, *argv), check=True)
        return f"http://127.0.0.1:{self._server.server_address[1]}/{folder.name}"

    def answer(self, method: str, address: str, headers: dict[str, str], body: bytes) -> bytes:
        """What git says to a request, with its headers, as CGI has it."""
        parts = urlsplit(address)
        self.requests.append(parts.path)
        variables = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "REQUEST_METHOD": method,
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
        }
        argv = ("git", "http-backend")
        done = subprocess.run(argv, input=body, env=variables, capture_output=True, check=True)
        return done.stdout

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(git: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            named = {name.lower(): value for name, value in self.headers.items()}
            answer = git.answer(self.command, self.path, named, body)
            head, _, content = answer.partition(b"\r\n\r\n")
            rows = dict(row.split(": ", 1) for row in head.decode().split("\r\n"))
            self.send_response(int(rows.pop("Status", "200").split()[0]))
            for name, value in rows.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return Handler
