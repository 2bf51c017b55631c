"""The package index, asked directly: releases, their upload dates and their files (PEP 503, 691,
700).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.parser import Parser
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

from bot.adapters.packages import archives
from bot.adapters.packages.fetch import MOST_PAGE, PAGE_S, fetch
from bot.errors import IndexUnreachable
from bot.models.bisect import Wheels
from bot.rules.packages import evidence
from bot.rules.packages.evidence import Known
from sandbox.indexes import Indexes

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
            if any("linux" in each for each in platforms)
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
                self._known[name] = _grouped(files)
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
            for each in self.releases(name)[-1:]
            for file in each.files
            if file.name.endswith(".whl")
        ]
        if not wheels or not wheels[0].url.startswith("http"):
            return {}
        answer = self._fetch(f"{wheels[0].url}.metadata")
        metadata = (
            Parser().parsestr(answer.text, headersonly=True) if answer.is_success else Message()
        )
        named = (str(each).partition(",") for each in metadata.get_all("Project-URL", []))
        return {label.strip(): url.strip() for label, _, url in named}

    def about(self, name: str, at: datetime | None = None, specifier: str = "") -> Known | None:
        """What a distribution's newest release tells, of those that fit a specifier, else of those
        before a day; None when no index has it. What cannot be read is left out. Raises
        IndexUnreachable.
        """
        found = [each for each in self.releases(name) if not each.yanked]
        then = [each for each in found if not (at and each.uploaded and each.uploaded > at)]
        asked = SpecifierSet(specifier)
        fitting = [each for each in found if specifier and each.version in asked]
        if not found:
            return None
        files, told = self._contents((fitting or then or found)[-1])
        headers = Parser().parsestr(told, headersonly=True)
        links = [each.partition(",")[2] for each in map(str, headers.get_all("Project-URL", []))]
        links += map(str, headers.get_all("Home-page", []))
        needs = evidence.names(map(str, headers.get_all("Requires-Dist", [])))
        projects = evidence.projects(links) or evidence.projects(self._index_links(name).values())
        mentions = evidence.projects(evidence.links(told))
        modules = None if files is None else evidence.modules(files)
        return Known(name, modules, projects, mentions, needs)

    def _contents(self, release: IndexRelease) -> tuple[list[str] | None, str]:
        """The files that a release installs and its metadata; None where they cannot be read."""
        wheel = next((file for file in release.files if file.name.endswith(".whl")), None)
        try:
            if wheel is not None:
                with archives.wheel(self.opened(wheel)) as archive:
                    return archive.namelist(), archives.metadata(archive)
            if release.source is not None:
                data = self.download(release.source, _MOST_SOURCE, PAGE_S)
                return archives.source_files(release.source.name, data), ""
        except archives.UNREADABLE:
            pass
        return None, ""

    def opened(self, file: File) -> IO[bytes]:
        """A file of the index, fetched as it is read."""
        if urlsplit(file.url).scheme == "file":
            return Path(unquote(urlsplit(file.url).path)).open("rb")
        return archives.ranged(lambda start, count: self._part(file, start, count))

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
        uploaded = _time(link.get("data-upload-time"))
        yield File(name, urljoin(base, address), digest, uploaded, yanked="data-yanked" in link)


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if found else None


def _grouped(files: list[File]) -> tuple[IndexRelease, ...]:
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
