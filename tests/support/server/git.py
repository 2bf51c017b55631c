"""Repositories on disk: commits with chosen dates, files for the contents API, and git's smart
protocol over HTTP.
"""

from __future__ import annotations

import gzip
import secrets
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.kernel.settings import host
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

    def write_tree(
        self, repository: Repository, base: str, files: list[tuple[str, str, str]]
    ) -> str:
        """A new tree: another one with files (mode, path, text) on top. Raises CalledProcessError."""
        folder, index = self.folder(repository), self._root / f"index-{secrets.token_hex(8)}"
        alone = {"GIT_INDEX_FILE": str(index)}
        try:
            if base:
                self._git(folder, "read-tree", base, extra=alone)
            for mode, path, text in files:
                sha = self._git(folder, "hash-object", "-w", "--stdin", stdin=text.encode())
                info = f"{mode},{sha.decode().strip()},{path}"
                self._git(folder, "update-index", "--add", "--cacheinfo", info, extra=alone)
            return self._git(folder, "write-tree", extra=alone).decode().strip()
        finally:
            index.unlink(missing_ok=True)

    def write_commit(
        self, repository: Repository, tree: str, parents: list[str], message: str, author: str
    ) -> str:
        """A new commit that no branch has yet. Raises CalledProcessError."""
        who = {"NAME": author, "EMAIL": f"{author}@users.noreply.github.com"}
        roles = {f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in who.items()}  # fmt: skip
        above = [word for parent in parents for word in ("-p", parent)]
        argv = ("commit-tree", tree, *above)
        made = self._git(self.folder(repository), *argv, stdin=message.encode(), extra=roles)
        return made.decode().strip()

    def move(self, repository: Repository, branch: str, sha: str) -> None:
        """Point a branch at a commit."""
        self._git(self.folder(repository), "update-ref", f"refs/heads/{branch}", sha)

    def log(self, repository: Repository, *argv: str) -> list[str]:
        """The ids of the commits that git rev-list names."""
        return self._git(self.folder(repository), "rev-list", *argv).decode().split()

    def commit_of(self, repository: Repository, sha: str) -> tuple[str, list[str], str, str]:
        """The tree, parents, author's name and message of a commit."""
        form = "--format=%T%n%P%n%an%n%B"
        shown = self._git(self.folder(repository), "show", "-s", form, sha).decode()
        tree, parents, author, message = shown.split("\n", 3)
        return tree, parents.split(), author, message.strip()

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
        self, folder: Path, *argv: str, stdin: bytes = b"", protocol: str = "", check: bool = True,
        extra: Mapping[str, str] | None = None,
    ) -> bytes:  # fmt: skip
        alone = {
            **(extra or {}),
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
