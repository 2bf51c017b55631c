"""The package index, asked directly: releases, their upload dates and their files (PEP 503, 691,
700).
"""

import hashlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.message import Message
from email.parser import Parser
from html.parser import HTMLParser
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import httpx
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from bot.errors import IndexUnreachable
from bot.models.bisect import Wheels
from sandbox.indexes import Indexes

_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)
_MOST_BYTES = 512 * 1024 * 1024


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
        answer = self._get(f"{base.removesuffix('/simple')}/pypi/{name}/json")
        try:
            info = answer.json()["info"] if answer.is_success else {}
        except (ValueError, KeyError, TypeError):
            return {}
        return _texts(
            {
                **(info.get("project_urls") or {}),
                **({"home": info["home_page"]} if info.get("home_page") else {}),
            }
        )

    def _wheel_links(self, name: str) -> dict[str, str]:
        wheels = [
            file
            for each in self.releases(name)[-1:]
            for file in each.files
            if file.name.endswith(".whl")
        ]
        if not wheels or not wheels[0].url.startswith("http"):
            return {}
        answer = self._get(f"{wheels[0].url}.metadata")
        metadata = (
            Parser().parsestr(answer.text, headersonly=True) if answer.is_success else Message()
        )
        named = (str(each).partition(",") for each in metadata.get_all("Project-URL", []))
        return {label.strip(): url.strip() for label, _, url in named}

    def download(self, file: File) -> bytes:
        """The bytes of a file, checked against its hash."""
        if urlsplit(file.url).scheme == "file":
            data = Path(unquote(urlsplit(file.url).path)).read_bytes()
        else:
            data = self._get(file.url).content
        if len(data) > _MOST_BYTES or (
            file.sha256 and hashlib.sha256(data).hexdigest() != file.sha256
        ):
            raise IndexUnreachable(f"{file.name} does not match the index", "Try again later.")
        return data

    def _files(self, page: str) -> list[File]:
        if urlsplit(page).scheme == "file":
            path = Path(unquote(urlsplit(page).path), "index.html")
            return (
                list(_from_html(path.read_text(encoding="utf-8"), page)) if path.is_file() else []
            )
        answer = self._get(page)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        if "json" in answer.headers.get("content-type", ""):
            return list(_from_json(answer.json(), str(answer.url)))
        return list(_from_html(answer.text, str(answer.url)))

    def _get(self, url: str) -> httpx.Response:
        certificate = self.indexes.certificate
        verify = ssl.create_default_context(cafile=certificate) if certificate else True
        try:
            with httpx.Client(
                verify=verify,
                timeout=self.timeout_s,
                follow_redirects=True,
                headers={"Accept": _ACCEPT},
            ) as client:
                answer = client.get(url)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            host = urlsplit(url).hostname
            raise IndexUnreachable(
                f"The package index at {host} does not answer.",
                "Check the network, or set PIP_INDEX_URL to one that does.",
            ) from error
        if answer.is_server_error:
            raise IndexUnreachable(
                f"The package index at {urlsplit(url).hostname} failed.",
                "Try again later.",
            )
        return answer


def _from_json(page: Any, base: str) -> Iterator[File]:
    for entry in page.get("files", ()):
        yield File(
            name=entry["filename"],
            url=urljoin(base, entry["url"]),
            sha256=(entry.get("hashes") or {}).get("sha256", ""),
            uploaded=_time(entry.get("upload-time")),
            yanked=bool(entry.get("yanked")),
        )


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {
        name: value
        for name, value in values.items()
        if isinstance(name, str) and isinstance(value, str)
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
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _grouped(files: list[File]) -> tuple[IndexRelease, ...]:
    groups: dict[Version, list[File]] = {}
    for file in files:
        version = _version(file.name)
        if version is not None:
            groups.setdefault(version, []).append(file)
    return tuple(IndexRelease(version, tuple(groups[version])) for version in sorted(groups))


def _version(name: str) -> Version | None:
    try:
        return (
            parse_wheel_filename(name)[1]
            if name.endswith(".whl")
            else parse_sdist_filename(name)[1]
        )
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
