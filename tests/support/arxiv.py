"""An arXiv on this machine: answers by path, and what was asked."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


class Arxiv(BaseHTTPRequestHandler):
    """Answers by path; any other is 404."""

    answers: dict[str, tuple[int, bytes]] = {}
    asked: list[tuple[str, str, float]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["User-Agent"], time.monotonic()))
        status, body = self.answers.get(self.path, (404, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def local_arxiv(answers: Mapping[str, tuple[int, bytes]]) -> Iterator[str]:
    """The address of a server with these answers."""
    Arxiv.answers, Arxiv.asked = dict(answers), []
    server = HTTPServer(("127.0.0.1", 0), Arxiv)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def packed(files: dict[str, bytes]) -> bytes:
    """Files as an e-print has them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
