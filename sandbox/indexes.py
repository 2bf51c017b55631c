"""The host's package index settings, from pip's configuration and the variables of pip and uv,
as uv takes them.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

DEFAULT = "https://pypi.org/simple"
_PROXIES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)


@dataclass(frozen=True, slots=True)
class Indexes:
    """Where packages come from. `find_links` are folders or pages of files; `certificate` is a
    bundle of authorities.
    """

    index: str = DEFAULT
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    certificate: str = ""
    trusted_hosts: tuple[str, ...] = ()
    timeout_s: str = ""
    offline: bool = False
    proxies: tuple[tuple[str, str], ...] = ()

    @property
    def folders(self) -> tuple[Path, ...]:
        """The local folders among the places for single files."""
        paths = (_local(place) for place in self.find_links)
        return tuple(path for path in paths if path is not None and path.is_dir())

    def variables(self) -> dict[str, str]:
        """The settings as uv's environment variables: addresses may hold a password, and
        arguments can be seen by everyone.
        """
        settings = {
            "UV_DEFAULT_INDEX": self.index,
            "UV_INDEX": " ".join(self.extra),
            "UV_INDEX_STRATEGY": "unsafe-best-match" if self.extra else "",
            "UV_FIND_LINKS": ",".join(self.find_links),
            "SSL_CERT_FILE": self.certificate,
            "UV_INSECURE_HOST": " ".join(self.trusted_hosts),
            "UV_HTTP_TIMEOUT": self.timeout_s,
            **dict(self.proxies),
        }
        return {name: value for name, value in settings.items() if value}

    def without_secrets(self) -> Indexes:
        """The same places without names and passwords, for a phase that runs foreign code."""
        clean = tuple((name, _bare(value)) for name, value in self.proxies)
        links = tuple(map(_bare, self.find_links))
        return replace(
            self,
            index=_bare(self.index),
            extra=tuple(map(_bare, self.extra)),
            find_links=links,
            proxies=clean,
        )


def read_indexes(
    environ: Mapping[str, str], home: Path | None = None, system: Path = Path("/etc")
) -> Indexes:
    """The effective settings: pip's files from the general to the particular, then PIP_* variables,
    then UV_* ones.
    """
    files = _files(environ, home or Path(environ.get("HOME") or "/nonexistent"), system)
    values = _from_files(files)
    values |= {
        name[4:].lower().replace("_", "-"): text
        for name, text in environ.items()
        if name.startswith("PIP_") and text
    }
    uv_links = tuple(filter(None, environ.get("UV_FIND_LINKS", "").split(",")))
    return Indexes(
        index=environ.get("UV_DEFAULT_INDEX")
        or environ.get("UV_INDEX_URL")
        or values.get("index-url")
        or DEFAULT,
        extra=tuple(
            (
                environ.get("UV_INDEX")
                or environ.get("UV_EXTRA_INDEX_URL")
                or values.get("extra-index-url", "")
            ).split()
        ),
        find_links=tuple(dict.fromkeys((*uv_links, *values.get("find-links", "").split()))),
        certificate=environ.get("SSL_CERT_FILE")
        or values.get("cert")
        or environ.get("REQUESTS_CA_BUNDLE")
        or "",
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        timeout_s=environ.get("UV_HTTP_TIMEOUT")
        or values.get("timeout")
        or values.get("default-timeout")
        or "",
        offline=values.get("no-index", "").lower() in {"1", "true", "t", "yes", "y", "on"},
        proxies=_proxies(environ, values),
    )


def _files(environ: Mapping[str, str], home: Path, system: Path) -> tuple[Path, ...]:
    if environ.get("PIP_CONFIG_FILE") == "/dev/null":
        return ()
    own = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [
        system / "xdg/pip/pip.conf",
        system / "pip.conf",
        home / ".pip/pip.conf",
        own / "pip/pip.conf",
    ]
    return (*files, *([Path(environ["PIP_CONFIG_FILE"])] if environ.get("PIP_CONFIG_FILE") else []))


def _from_files(files: tuple[Path, ...]) -> dict[str, str]:
    values: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue
        for section in ("global", "download", "install"):
            if parser.has_section(section):
                values |= {
                    name.replace("_", "-"): text for name, text in parser.items(section) if text
                }
    return values


def _proxies(environ: Mapping[str, str], values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    variables = {name: environ[name] for name in _PROXIES if environ.get(name)}
    if values.get("proxy"):
        variables.setdefault("ALL_PROXY", values["proxy"])
    return tuple(variables.items())


def _local(place: str) -> Path | None:
    """The path behind a file address or a plain path; None for anything on the network."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(place) if not parts.scheme else None


def _bare(address: str) -> str:
    parts = urlsplit(address)
    return (
        urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        if "@" in parts.netloc
        else address
    )
