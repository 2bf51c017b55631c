"""The package index, asked directly: releases, upload dates, files, and what is inside an
archive. What it sends is hostile.
"""

import gzip
import hashlib
import io
import lzma
import re
import ssl
import struct
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.parser import Parser
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from threading import Lock
from typing import IO, Any
from urllib.parse import unquote, urljoin, urlsplit

import httpx
from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from packaging.version import Version
from typing_extensions import override

from bot.environment import evidence
from bot.environment.evidence import ProjectFacts
from bot.kernel.bug import Wheels
from bot.kernel.errors import IndexUnreachable
from sandbox.indexes import Indexes

# One answer of a package index, bounded in size and time: what an index sends is from outside.

MOST_PAGE = 64 * 1024 * 1024
PAGE_S = 60.0
_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)


def fetch(
    url: str, certificate: str, timeout_s: float, most: int, seconds: float, span: str = ""
) -> httpx.Response:
    """The answer of at most so many bytes and seconds, or the `span` of it. Raises
    IndexUnreachable.
    """
    headers = {"Range": span, "Accept-Encoding": "identity"} if span else {"Accept": _ACCEPT}
    host = urlsplit(url).hostname
    try:
        with (
            httpx.Client(
                verify=_trusted(certificate), timeout=timeout_s, follow_redirects=True
            ) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            answer = httpx.Response(
                response.status_code,
                headers={
                    name: response.headers.get(name, "")
                    for name in ("content-type", "content-range")
                },
                content=_body(response, most, time.monotonic() + seconds),
                request=response.request,
            )
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise IndexUnreachable(
            f"The package index at {host} does not answer.",
            "Check the network, or set PIP_INDEX_URL to one that does.",
        ) from error
    if answer.is_server_error:
        raise IndexUnreachable(f"The package index at {host} failed.", "Try again later.")
    return answer


@cache
def _trusted(certificate: str) -> ssl.SSLContext:
    """The authorities of a file, else the usual ones."""
    return (
        ssl.create_default_context(cafile=certificate)
        if certificate
        else httpx.create_ssl_context()
    )


def _body(response: httpx.Response, most: int, end: float) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > most or time.monotonic() > end:
            raise OSError("the answer is too long")
    return bytes(body)


# The files inside a wheel or a source archive on an index, read without fetching a whole wheel.
#
# What an index sends is hostile: how much is read, in how many requests, and how far it unpacks
# are bounded.

_MOST_READ = 16 * 1024 * 1024
_MOST_UNPACKED = 128 * 1024 * 1024
_MOST_FILES = 50_000
_MOST_MEMBER = 2 * 1024 * 1024
UNREADABLE = (
    *(OSError, EOFError, ValueError, OverflowError, NotImplementedError, RuntimeError, KeyError),
    *(zipfile.BadZipFile, tarfile.TarError, struct.error, zlib.error, lzma.LZMAError),
)
"""What a broken or hostile archive may end in."""

Fetch = Callable[[int, int], tuple[bytes, int]]
"""The bytes from an offset (negative: that many at the end), at most so many, and the size of the
whole.
"""


def ranged(fetch: Fetch) -> IO[bytes]:
    """A file on a server, read in pieces."""
    return io.BufferedReader(_Ranged(fetch), 64 * 1024)


class _Ranged(io.RawIOBase):
    """A file on a server of which only what is read is fetched; the end, where a zip archive lists
    its files, comes with the first request.
    """

    def __init__(self, fetch: Fetch, tail: int = 256 * 1024) -> None:
        super().__init__()
        self._fetch, self._at, self._read = fetch, 0, 0
        self._tail, self._size = fetch(-tail, tail)
        self._start = self._size - len(self._tail)

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at

    @override
    def readinto(self, buffer: Any) -> int:
        data = self._bytes(min(len(buffer), max(self._size - self._at, 0)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _bytes(self, size: int) -> bytes:
        if not size or self._at >= self._start:
            return self._tail[max(self._at - self._start, 0) :][:size]
        self._read += size
        if self._read > _MOST_READ:
            raise ValueError("too much of the archive would have to be read")
        data, _ = self._fetch(self._at, size)
        if len(data) != size:
            raise ValueError("the server sent another range than requested")
        return data


@contextmanager
def open_wheel(file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """A wheel's archive, refused when it lists too many files."""
    with file, zipfile.ZipFile(file) as archive:
        if len(archive.infolist()) > _MOST_FILES:
            raise ValueError("the archive lists too many files")
        yield archive


def member(archive: zipfile.ZipFile, name: str) -> str:
    """The text of one file of an archive, "" when it lacks it. Raises what `UNREADABLE` lists."""
    if name not in archive.NameToInfo:
        return ""
    if archive.getinfo(name).file_size > _MOST_MEMBER:
        raise ValueError("the file is too large")
    with archive.open(name) as stream:
        return stream.read(_MOST_MEMBER).decode("utf-8", "replace")


def metadata(archive: zipfile.ZipFile) -> str:
    """The METADATA of a wheel."""
    members = (
        name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)
    )
    return member(archive, next(members, ""))


def source_files(name: str, data: bytes) -> list[str]:
    """The files of a source archive below its folder, as they would be installed: those of `src`
    as if they stood above it. Raises what `UNREADABLE` lists.
    """
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            paths = archive.namelist()
    else:
        with gzip.open(io.BytesIO(data)) as stream:
            archive_data = stream.read(_MOST_UNPACKED)
        with tarfile.open(fileobj=io.BytesIO(archive_data)) as pack:
            paths = pack.getnames()
    below = map(_installed_path, paths[:_MOST_FILES])
    return [path for path in below if path not in {"", "setup.py", "conftest.py"}]


def source_texts(name: str, data: bytes) -> dict[str, str]:
    """The Python files of a source archive, by the paths that `source_files` gives them. Raises
    what `UNREADABLE` lists.
    """
    texts = dict[str, str]()
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for path in archive.namelist()[:_MOST_FILES]:
                if path.endswith(".py"):
                    texts[_installed_path(path)] = member(archive, path)
        return texts
    with gzip.open(io.BytesIO(data)) as stream:
        archive_data = stream.read(_MOST_UNPACKED)
    with tarfile.open(fileobj=io.BytesIO(archive_data)) as pack:
        for entry in pack.getmembers()[:_MOST_FILES]:
            stream_of_file = pack.extractfile(entry) if entry.isfile() else None
            if entry.name.endswith(".py") and stream_of_file is not None:
                text = stream_of_file.read(_MOST_MEMBER).decode("utf-8", "replace")
                texts[_installed_path(entry.name)] = text
    return texts


def _installed_path(path: str) -> str:
    return path.partition("/")[2].removeprefix("src/")


# The package index, asked directly: releases, their upload dates and their files (PEP 503, 691,
# 700).

_MOST_BYTES = 512 * 1024 * 1024
_MOST_PART = 8 * 1024 * 1024
_MOST_SOURCE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class File:
    """One file of a release."""

    name: str
    url: str
    sha256: str = ""
    uploaded: datetime | None = None
    yanked: bool = False


@dataclass(frozen=True, slots=True)
class IndexRelease:
    """One version of a distribution and the files it comes in."""

    version: Version
    files: tuple[File, ...]

    @property
    def uploaded(self) -> datetime | None:
        """When the first file of the release was uploaded, where the index says so."""
        return min((file.uploaded for file in self.files if file.uploaded), default=None)

    @property
    def yanked(self) -> bool:
        """Whether the release was withdrawn."""
        return all(file.yanked for file in self.files)

    @property
    def wheels(self) -> Wheels:
        """Which wheels for Linux it has, by the names of the files: the last part names the
        platform.
        """
        platforms = [
            file.name.rpartition("-")[2] for file in self.files if file.name.endswith(".whl")
        ]
        return (
            "linux"
            if any("linux" in platform for platform in platforms)
            else "any"
            if "any.whl" in platforms
            else "none"
        )

    def fits(self, minor: str) -> bool:
        """Whether it has a wheel for Linux and this Python ("3.11"), by the names of the files."""
        names = (file.name for file in self.files if file.name.endswith(".whl"))
        return any(_is_for(tag, minor) for name in names for tag in parse_wheel_filename(name)[3])

    @property
    def source(self) -> File | None:
        """Its source distribution."""
        return next((file for file in self.files if not file.name.endswith(".whl")), None)


@dataclass
class PackageIndex:
    """A reader of the configured index and the extra ones. Answers are kept for the life of the
    process.
    """

    indexes: Indexes
    timeout_s: float = 15.0
    _known: dict[str, tuple[IndexRelease, ...]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def releases(self, name: str) -> tuple[IndexRelease, ...]:
        """Every release of a distribution, oldest first; empty when no index has it. Raises
        IndexUnreachable.
        """
        with self._lock:
            if name not in self._known:
                places = () if self.indexes.offline else (self.indexes.index, *self.indexes.extra)
                files = [
                    file for place in places for file in self._files(f"{place.rstrip('/')}/{name}/")
                ]
                self._known[name] = _group_files(files)
            return self._known[name]

    def links(self, name: str) -> dict[str, str]:
        """The addresses that the newest release names for its project, by their labels; empty where
        no index has them. Taken from the index's JSON page, else from the metadata file next to a
        wheel (PEP 658).
        """
        return self._index_links(name) or self._wheel_links(name)

    def _index_links(self, name: str) -> dict[str, str]:
        base = self.indexes.index.rstrip("/")
        if self.indexes.offline or not base.startswith("http") or not base.endswith("/simple"):
            return {}
        answer = self._fetch(f"{base.removesuffix('/simple')}/pypi/{name}/json")
        try:
            info = answer.json()["info"] if answer.is_success else {}
            return _texts({**(info.get("project_urls") or {}), "home": info.get("home_page")})
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return {}

    def _wheel_links(self, name: str) -> dict[str, str]:
        wheels = [
            file
            for release in self.releases(name)[-1:]
            for file in release.files
            if file.name.endswith(".whl")
        ]
        if not wheels or not wheels[0].url.startswith("http"):
            return {}
        answer = self._fetch(f"{wheels[0].url}.metadata")
        metadata = (
            Parser().parsestr(answer.text, headersonly=True) if answer.is_success else Message()
        )
        entries = (str(entry).partition(",") for entry in metadata.get_all("Project-URL", []))
        return {label.strip(): url.strip() for label, _, url in entries}

    def about(
        self, name: str, at: datetime | None = None, specifier: str = ""
    ) -> ProjectFacts | None:
        """What a distribution's newest release tells, of those that fit a specifier, else of those
        before a day; None when no index has it. What cannot be read is left out. Raises
        IndexUnreachable.
        """
        releases = [release for release in self.releases(name) if not release.yanked]
        then = [
            release
            for release in releases
            if not (at and release.uploaded and release.uploaded > at)
        ]
        specifiers = SpecifierSet(specifier)
        fitting = [release for release in releases if specifier and release.version in specifiers]
        if not releases:
            return None
        files, metadata = self._contents((fitting or then or releases)[-1])
        headers = Parser().parsestr(metadata, headersonly=True)
        links = [entry.partition(",")[2] for entry in map(str, headers.get_all("Project-URL", []))]
        links += map(str, headers.get_all("Home-page", []))
        needs = evidence.names(map(str, headers.get_all("Requires-Dist", [])))
        # A repository may have moved since: what the newest release names counts too.
        projects = evidence.projects((*links, *self.links(name).values()))
        mentions = evidence.projects(evidence.links(metadata))
        modules = None if files is None else evidence.modules(files)
        return ProjectFacts(name, modules, projects, mentions, needs)

    def _contents(self, release: IndexRelease) -> tuple[list[str] | None, str]:
        """The files that a release installs and its metadata; None where they cannot be read."""
        wheel = next((file for file in release.files if file.name.endswith(".whl")), None)
        try:
            if wheel is not None:
                with open_wheel(self.opened(wheel)) as archive:
                    return archive.namelist(), metadata(archive)
            if release.source is not None:
                data = self.download(release.source, _MOST_SOURCE, PAGE_S)
                return source_files(release.source.name, data), ""
        except UNREADABLE:
            pass
        return None, ""

    @contextmanager
    def archive_of(self, release: IndexRelease) -> Iterator[tuple[list[str], Callable[[str], str]]]:
        """The paths that a release installs and what reads the text of one, "" where it has no
        such file: of its wheel, else of its source archive. Raises IndexUnreachable and what
        `UNREADABLE` lists.
        """
        wheel = next((file for file in release.files if file.name.endswith(".whl")), None)
        if wheel is not None:
            with open_wheel(self.opened(wheel)) as archive:
                yield archive.namelist(), lambda path: member(archive, path)
        elif release.source is not None:
            data = self.download(release.source, _MOST_SOURCE, PAGE_S)
            texts = source_texts(release.source.name, data)
            yield list(texts), lambda path: texts.get(path, "")
        else:
            raise ValueError("the release has no files")

    def opened(self, file: File) -> IO[bytes]:
        """A file of the index, fetched as it is read."""
        if urlsplit(file.url).scheme == "file":
            return Path(unquote(urlsplit(file.url).path)).open("rb")
        return ranged(lambda start, count: self._part(file, start, count))

    def download(self, file: File, most: int = _MOST_BYTES, seconds: float = 20 * PAGE_S) -> bytes:
        """The bytes of a file, checked against its hash."""
        if urlsplit(file.url).scheme == "file":
            data = Path(unquote(urlsplit(file.url).path)).read_bytes()
        else:
            data = self._fetch(file.url, most, seconds).content
        if len(data) > most or (file.sha256 and hashlib.sha256(data).hexdigest() != file.sha256):
            raise IndexUnreachable(f"{file.name} does not match the index", "Try again later.")
        return data

    def _files(self, page: str) -> list[File]:
        if urlsplit(page).scheme == "file":
            path = Path(unquote(urlsplit(page).path), "index.html")
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            return list(_from_html(text, page))
        answer = self._fetch(page)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        try:
            if "json" in answer.headers.get("content-type", ""):
                return list(_from_json(answer.json(), str(answer.url)))
            return list(_from_html(answer.text, str(answer.url)))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise IndexUnreachable(
                f"A page of the package index at {urlsplit(page).hostname} cannot be read.",
                "Try again later.",
            ) from error

    def _fetch(
        self, url: str, most: int = MOST_PAGE, seconds: float = PAGE_S, span: str = ""
    ) -> httpx.Response:
        return fetch(url, self.indexes.certificate, self.timeout_s, most, seconds, span)

    def _part(self, file: File, start: int, count: int) -> tuple[bytes, int]:
        """Bytes of a file from an offset (negative: that many at its end), and the size of the
        whole. A server that knows no ranges sends all of a small file.
        """
        span = f"bytes={start}-{start + count - 1}" if start >= 0 else f"bytes={start}"
        answer = self._fetch(file.url, max(count, _MOST_PART), span=span)
        data, size = answer.content, answer.headers["content-range"].rpartition("/")[2]
        if answer.status_code == httpx.codes.PARTIAL_CONTENT and size.isdecimal():
            return data[:count], int(size)
        if answer.status_code != httpx.codes.OK:
            raise IndexUnreachable(f"{file.name} cannot be read", "Try again later.")
        return data[start : start + count] if start >= 0 else data[start:], len(data)


def _from_json(page: Any, base: str) -> Iterator[File]:
    for entry in page.get("files", ()):
        yield File(
            name=str(entry["filename"]),
            url=urljoin(base, entry["url"]),
            sha256=str((entry.get("hashes") or {}).get("sha256", "")),
            uploaded=_time(entry.get("upload-time")),
            yanked=bool(entry.get("yanked")),
        )


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {
        name: value
        for name, value in values.items()
        if isinstance(name, str) and isinstance(value, str) and value
    }


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep every link."""
        if tag == "a":
            self.found.append(dict(attrs))


def _from_html(page: str, base: str) -> Iterator[File]:
    links = _Links()
    links.feed(page)
    for link in links.found:
        address, _, fragment = (link.get("href") or "").partition("#")
        digest = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        name = unquote(urlsplit(address).path.rpartition("/")[2])
        upload_time = _time(link.get("data-upload-time"))
        yield File(name, urljoin(base, address), digest, upload_time, yanked="data-yanked" in link)


def _time(text: str | None) -> datetime | None:
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return time.replace(tzinfo=time.tzinfo or UTC) if time else None


def _group_files(files: list[File]) -> tuple[IndexRelease, ...]:
    groups: dict[Version, list[File]] = {}
    for file in files:
        version = _version(file.name)
        if version is not None:
            groups.setdefault(version, []).append(file)
    return tuple(IndexRelease(version, tuple(groups[version])) for version in sorted(groups))


def _is_for(tag: Tag, minor: str) -> bool:
    """Whether a wheel with this tag can be installed; a stable ABI also serves later Pythons."""
    python, own = tag.interpreter, f"3{minor.partition('.')[2]}"
    oldest = python.removeprefix("cp3")
    stable = tag.abi == "abi3" and oldest.isdecimal() and int(oldest) <= int(own[1:])
    fitting = python in {"py3", f"py{own}", f"cp{own}"} or stable
    return fitting and (tag.platform == "any" or "linux" in tag.platform)


def _version(name: str) -> Version | None:
    try:
        return (
            parse_wheel_filename(name)[1]
            if name.endswith(".whl")
            else parse_sdist_filename(name)[1]
        )
    except ValueError:  # not a name of a wheel or a source archive, or not a version
        return None
