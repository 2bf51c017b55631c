"""Imports are matched to distributions by what an index over HTTP tells of them; the index may
be hostile.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bot.environment import matching
from bot.environment.builder import UvBuilder
from bot.kernel.environment import Claimed, EnvironmentSpec, PinSource, Requirement

DAY = datetime(2024, 6, 1, tzinfo=UTC)


def wheel(
    name: str, *files: str, links: tuple[str, ...] = (), needs: tuple[str, ...] = ()
) -> bytes:
    buffer, info = io.BytesIO(), f"{name.replace('-', '_')}-1.0.dist-info"
    meta = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    meta += [f"Project-URL: Source, {link}" for link in links]
    meta += [f"Requires-Dist: {need}" for need in needs]
    with zipfile.ZipFile(buffer, "w") as pack:
        pack.writestr("large/weights.bin", bytes(400_000))
        for file in files:
            pack.writestr(file, "")
        pack.writestr(f"{info}/METADATA", "\n".join(meta) + "\n\nText.\n")
    return buffer.getvalue()


def source(name: str, *files: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as pack:
        for file in files:
            pack.addfile(tarfile.TarInfo(f"{name}-1.0/{file}"))
    return buffer.getvalue()


OWN, THEIRS = ("https://github.com/org/dm-tool",), ("https://github.com/them/serpent",)
FILES: dict[str, bytes] = {
    "tool-1.0-py3-none-any.whl": wheel("tool", "tool/__init__.py", links=THEIRS),
    "dm_tool-1.0-py3-none-any.whl": wheel(
        "dm-tool", "tool/__init__.py", links=OWN, needs=("extra-thing-lib>=1; extra == 'x'",)
    ),
    "hollow-1.0-py3-none-any.whl": wheel("hollow", "elsewhere.py"),
    "hollow_ml-1.0-py3-none-any.whl": wheel("hollow-ml", "hollow/__init__.py"),
    "thing_lib-1.0-py3-none-any.whl": wheel("thing-lib", "other.py"),
    "extra_thing_lib-1.0-py3-none-any.whl": wheel("extra-thing-lib", "thing_lib/__init__.py"),
    "moved-1.0-py3-none-any.whl": wheel(
        "moved", "moved/__init__.py", links=("https://github.com/them/old",)
    ),
    "packed-1.0.tar.gz": source("packed", "setup.py", "src/packed/__init__.py"),
    "unlike-1.0.tar.gz": source("unlike", "setup.py", "other/__init__.py"),
    "broken-1.0-py3-none-any.whl": b"PK\x03\x04 no archive",
    "bomb-1.0.tar.gz": b"\x1f\x8b not gzip",
}


PAGES = {
    "garbled": b'{"files": [1, {"filename": null}]}',
    "untyped": b'{"files": [{"filename": 5, "url": "x", "hashes": {"sha256": 7}}]}',
    "undated": b'{"files": [{"filename": "undated-1.0-py3-none-any.whl", "url": "x", "upload-time": "2030-01-01"}]}',
    "nested": b"[" * 100_000,
    "misdirected": b'{"files": [{"filename": "a-1.0.tar.gz", "url": "http://[broken"}]}',
    "endless": b'{"files": [{"filename": "endless-%s-py3-none-any.whl", "url": "x"}]}'
    % (b"9" * 5000),
}


class _Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """A page, the part of a file that is asked for, or nothing."""
        kind, _, name = self.path.strip("/").partition("/")
        server: Index = self.server  # type: ignore[assignment]
        if kind == "simple":
            self._page(name.strip("/"), server)
        elif (data := FILES.get(name)) is not None:
            self._file(data, server)
        elif self.path == "/pypi/moved/json":
            info = {"project_urls": {"Source": "https://github.com/new-owner/moved"}}
            self._send(200, json.dumps({"info": info}).encode())
        else:
            self._send(404, b"")

    def _page(self, name: str, server: Index) -> None:
        if name in PAGES:
            return self._send(200, PAGES[name])
        names = [file for file in FILES if file.rsplit("-1.0", 1)[0].replace("_", "-") == name]
        rows = [
            {"filename": each, "url": f"/files/{each}", "upload-time": "2024-01-01T00:00:00Z"}
            for each in names
        ]
        return self._send(200 if rows else 404, json.dumps({"files": rows}).encode())

    def _file(self, data: bytes, server: Index) -> None:
        span = self.headers.get("Range", "").removeprefix("bytes=")
        if not span or not server.ranges:
            return self._send(200, data)
        first, _, last = span.partition("-")
        start, end = (int(first), int(last) + 1) if first else (-int(last), len(data))
        part = data[start:end]
        server.sent += len(part)
        at = len(data) - len(part) if start < 0 else start
        return self._send(206, part, f"bytes {at}-{at + len(part) - 1}/{len(data)}")

    def _send(self, code: int, body: bytes, span: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        if span:
            self.send_header("Content-Range", span)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Index(ThreadingHTTPServer):
    ranges, sent = True, 0


@pytest.fixture
def index() -> Iterator[Index]:
    server = Index(("127.0.0.1", 0), _Index)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def builder(index: Index | None, cache: Path) -> UvBuilder:
    port = index.server_port if index else 9
    address = f"http://127.0.0.1:{port}/simple"
    return UvBuilder(
        cache,
        environ={"PATH": "/usr/bin", "UV_INDEX_URL": address, "PIP_CONFIG_FILE": "/dev/null"},
    )


def spec(
    *modules: str, repository: str = "org/dm-tool", named: tuple[str, ...] = ()
) -> EnvironmentSpec:
    wanted = tuple(
        Requirement(
            name=module.replace("_", "-"),
            rung=PinSource.IMPORT,
            reason=f"the program imports {module}",
            modules=(module,),
        )
        for module in modules
    )
    claims = (Claimed(name="hollow-ml", claimed="1.0", resolved=""),)
    return EnvironmentSpec(
        python="3.11",
        requirements=wanted,
        exclude_newer=DAY,
        repository=repository,
        named=named,
        claims=claims,
    )


def test_the_links_of_another_distribution_name_the_repository(
    index: Index, tmp_path: Path
) -> None:
    found, told = builder(index, tmp_path).matched(spec("tool"))
    assert [(each.name, each.evidence) for each in found.requirements] == [
        ("dm-tool", "its links name org/dm-tool")
    ]
    assert not told
    assert index.sent < 2 * 300_000, "only the ends of the wheels were read"


def test_what_belongs_to_another_project_is_left_out_and_said(index: Index, tmp_path: Path) -> None:
    found, told = builder(index, tmp_path).matched(spec("tool", repository="org/tool"))
    assert found.requirements == ()
    assert told == ("tool is not installed: the tool on the index belongs to them/serpent",)


def test_a_repository_that_has_moved_since_is_known_by_the_newest_links(
    index: Index, tmp_path: Path
) -> None:
    found, told = builder(index, tmp_path).matched(spec("moved", repository="new-owner/moved"))
    assert ([each.name for each in found.requirements], told) == (["moved"], ())


@pytest.mark.parametrize(
    ("repository", "kept"), [("org/dm-tool", ["dm-tool"]), ("else/dm-tool", ["dm-tool"])]
)
def test_what_is_named_like_the_repository_is_weighed_too(
    index: Index, tmp_path: Path, repository: str, kept: list[str]
) -> None:
    guess = Requirement(
        name="dm-tool", rung=PinSource.REPOSITORY, reason="named like it", modules=("dm_tool",)
    )
    asked = spec(repository=repository).model_copy(update={"requirements": (guess,)})
    found, _ = builder(index, tmp_path).matched(asked)
    assert [each.name for each in found.requirements] == kept


def test_a_name_from_the_report_replaces_one_without_the_module(
    index: Index, tmp_path: Path
) -> None:
    asked = spec("hollow", named=("numpy", "hollow-ml"))
    found, _ = builder(index, tmp_path).matched(asked)
    only = found.requirements[0]
    assert (only.name, only.specifier) == ("hollow-ml", "==1.0.*")
    assert only.evidence == "its files contain hollow"
    found, told = builder(index, tmp_path).matched(spec("hollow"))
    assert found.requirements == ()
    assert "hollow on the index has no module hollow" in told[0]


def test_an_optional_dependency_of_the_package_under_test_is_a_candidate(
    index: Index, tmp_path: Path
) -> None:
    found, _ = builder(index, tmp_path).matched(spec("thing_lib"))
    assert [each.name for each in found.requirements] == ["extra-thing-lib"]


@pytest.mark.parametrize(("module", "kept"), [("packed", 1), ("unlike", 0)])
def test_a_source_archive_is_looked_into(
    index: Index, tmp_path: Path, module: str, kept: int
) -> None:
    found, _ = builder(index, tmp_path).matched(spec(module))
    assert len(found.requirements) == kept


@pytest.mark.parametrize("module", ["unknown", "broken", "bomb", *PAGES])
def test_what_the_index_cannot_tell_leaves_the_guess(
    index: Index, tmp_path: Path, module: str
) -> None:
    found, told = builder(index, tmp_path).matched(spec(module))
    assert [each.name for each in found.requirements] == [module]
    assert not told


def test_a_server_without_ranges_is_read_whole(index: Index, tmp_path: Path) -> None:
    index.ranges = False
    found, _ = builder(index, tmp_path).matched(spec("tool"))
    assert found.requirements[0].name == "dm-tool"


def test_an_index_that_does_not_answer_costs_the_evidence_only(tmp_path: Path) -> None:
    found, told = builder(None, tmp_path).matched(spec("tool", "hollow"))
    assert [(each.name, each.evidence) for each in found.requirements] == [
        ("tool", matching.UNCHECKED),
        ("hollow", matching.UNCHECKED),
    ]
    assert not told


def test_a_distribution_that_two_imports_mean_is_installed_once(
    index: Index, tmp_path: Path
) -> None:
    own = Requirement(name="dm-tool", rung=PinSource.REPOSITORY, reason="published by it")
    asked = spec("tool")
    asked = asked.model_copy(update={"requirements": (own, *asked.requirements)})
    found, _ = builder(index, tmp_path).matched(asked)
    assert found.requirements == (own,)
