"""Repositories on disk: commits with chosen dates, files for the contents API, and git's smart
protocol over HTTP.
"""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.settings import host
from tests.support.server.records import Repository, now

SERVICES = {"git-upload-pack": "upload-pack"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a tree. `kind` is blob, tree or commit (a submodule)."""

    mode: str
    kind: str
    sha: str
    size: int
    path: str


class Git:
    """Bare repositories under a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, repository: Repository) -> Path:
        """Where a repository is, made when it is not there yet."""
        path = self._root / f"{repository.full_name.lower()}.git"
        if not path.exists():
            path.mkdir(parents=True)
            self._git(
                path, "init", "--quiet", "--bare", f"--initial-branch={repository.default_branch}"
            )
            self._git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
            self._git(path, "config", "uploadpack.allowFilter", "true")
        return path

    def commit(
        self, repository: Repository, files: Mapping[str, str | bytes | None], date: datetime | None = None,
        message: str = "Change", branch: str | None = None, tag: str | None = None,
    ) -> str:  # fmt: skip
        """Commit files (None takes one away) on a branch; the commit's id."""
        folder, branch = self.folder(repository), branch or repository.default_branch
        stream = _stream(self._head(folder, branch), files, date or now(), message, branch)
        self._git(folder, "fast-import", "--quiet", "--date-format=raw", stdin=stream)
        sha = self._head(folder, branch)
        if tag is not None:
            self._git(folder, "tag", tag, sha)
        return sha

    def resolve(self, repository: Repository, ref: str) -> str:
        """The id of the commit that a ref names, "" when there is none."""
        return self._head(self.folder(repository), ref)

    def tree(self, repository: Repository, ref: str) -> list[Entry] | None:
        """Everything in a commit, folders too; None when there is no such commit."""
        folder = self.folder(repository)
        sha = self._head(folder, ref)
        if not sha:
            return None
        lines = self._git(folder, "ls-tree", "-r", "-t", "-l", "-z", sha).decode().split("\0")[:-1]
        split = [(line.partition("\t")[0].split(), line.partition("\t")[2]) for line in lines]
        return [
            Entry(mode, kind, sha, int(size) if size.isdigit() else 0, path)
            for (mode, kind, sha, size), path in split
        ]

    def blob(self, repository: Repository, sha: str) -> bytes:
        """The bytes of a file."""
        return self._git(self.folder(repository), "cat-file", "blob", sha)

    def advertise(self, repository: Repository, service: str, protocol: str) -> bytes:
        """The answer to info/refs."""
        first = f"# service={service}\n".encode()
        head = b"%04x%s0000" % (len(first) + 4, first)
        return head + self._serve(repository, service, protocol, "--http-backend-info-refs", b"")

    def answer(
        self, repository: Repository, service: str, protocol: str, body: bytes, encoding: str
    ) -> bytes:
        """The answer to a POST of the service."""
        return self._serve(
            repository,
            service,
            protocol,
            "--strict",
            gzip.decompress(body) if encoding == "gzip" else body,
        )

    def _serve(
        self, repository: Repository, service: str, protocol: str, option: str, stdin: bytes
    ) -> bytes:
        folder = self.folder(repository)
        argv = (SERVICES[service], "--stateless-rpc", option, str(folder))
        return self._git(folder, *argv, stdin=stdin, protocol=protocol)

    def _head(self, folder: Path, ref: str) -> str:
        argv = ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{ref}^{{commit}}")
        return self._git(folder, *argv, check=False).decode().strip()

    def _git(
        self, folder: Path, *argv: str, stdin: bytes = b"", protocol: str = "", check: bool = True
    ) -> bytes:
        alone = {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_PROTOCOL": protocol,
            "GIT_DIR": str(folder),
        }
        done = subprocess.run(
            ("git", *argv), input=stdin, capture_output=True, check=check, env={**host(), **alone}
        )
        return done.stdout


def _stream(
    head: str, files: Mapping[str, str | bytes | None], date: datetime, message: str, branch: str
) -> bytes:
    """A commit in the language of git fast-import."""
    who = f"Octo Cat <octocat@example.com> {int(date.timestamp())} +0000"
    lines = [
        f"commit refs/heads/{branch}",
        f"author {who}",
        f"committer {who}",
        f"data {len(message.encode())}",
        message,
    ]
    parts = ["\n".join([*lines, *([f"from {head}"] if head else []), ""]).encode()]
    for path, content in files.items():
        if content is None:
            parts.append(f"D {path}\n".encode())
            continue
        raw = content.encode() if isinstance(content, str) else content
        parts.append(f"M 100644 inline {path}\ndata {len(raw)}\n".encode() + raw + b"\n")
    return b"".join(parts)
