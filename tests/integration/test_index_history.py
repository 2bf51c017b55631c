"""What an index tells of releases beyond their files: days, withdrawals, and where the changes
are written down.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bot.environment.builder import UvBuilder
from bot.kernel.bug import Release

NOTES = {"Changelog": "https://alpha.example/changes", "Homepage": "https://alpha.example"}
METADATA = "Metadata-Version: 2.1\nName: beta\nVersion: 1.0\nProject-URL: Release Notes, https://beta.example/news\n\nText.\n"


def simple(name: str, *rows: tuple[str, str, bool]) -> dict[str, object]:
    files = [
        {"filename": f"{name}-{version}-py3-none-any.whl", "url": f"/files/{name}-{version}-py3-none-any.whl", "hashes": {},
         "upload-time": f"{day}T10:00:00Z", "yanked": yanked}
        for version, day, yanked in rows
    ]  # fmt: skip
    return {"meta": {"api-version": "1.1"}, "name": name, "files": files}


PAGES = {
    "/simple/alpha/": simple(
        "alpha",
        ("1.0", "2024-01-01", False),
        ("1.1rc1", "2024-02-01", False),
        ("1.1", "2024-03-01", True),
    ),
    "/simple/beta/": simple("beta", ("1.0", "2024-01-01", False)),
    "/pypi/alpha/json": {"info": {"project_urls": NOTES, "home_page": None}},
    "/pypi/gamma/json": ["not what it should be"],
}


class _Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """A page as JSON, the metadata of a wheel, or nothing."""
        page = (
            json.dumps(PAGES[self.path])
            if self.path in PAGES
            else METADATA
            if self.path.endswith(".metadata")
            else ""
        )
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Index)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    server.server_close()


def builder(cache: Path, address: str) -> UvBuilder:
    return UvBuilder(
        cache,
        environ={"PATH": "/usr/bin", "PIP_INDEX_URL": address, "PIP_CONFIG_FILE": "/dev/null"},
    )


def test_every_release_with_its_day(address: str, tmp_path: Path) -> None:
    day = [datetime(2024, month, 1, 10, tzinfo=UTC) for month in (1, 2, 3)]
    assert builder(tmp_path, address).history("alpha") == (
        Release(version="1.0", uploaded_at=day[0], wheels="any"),
        Release(version="1.1rc1", uploaded_at=day[1], prerelease=True, wheels="any"),
        Release(version="1.1", uploaded_at=day[2], yanked=True, wheels="any"),
    )
    assert builder(tmp_path, address).history("unknown") == ()


def test_the_changes_from_the_page_of_the_project_or_the_metadata_of_a_wheel(
    address: str, tmp_path: Path
) -> None:
    found = [
        builder(tmp_path, address).changelog(name) for name in ("alpha", "beta", "gamma", "unknown")
    ]
    assert found == ["https://alpha.example/changes", "https://beta.example/news", "", ""]


def test_an_index_that_does_not_answer_tells_nothing(tmp_path: Path) -> None:
    silent = builder(tmp_path, "http://127.0.0.1:9/simple")
    assert (silent.history("alpha"), silent.changelog("alpha")) == ((), "")
