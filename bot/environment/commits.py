"""The history of a clone, read with git: one line of commits, and what lies between the tags of two
releases.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from typing_extensions import override

from bot.environment import provided
from bot.environment.git import HEAD, MOST_TEXT, Git, check_ref
from bot.kernel.bug import Commit, Provided
from bot.kernel.environment import RepoSource
from bot.kernel.errors import TransientError, UserError
from bot.kernel.ports import Commits

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,99}", re.ASCII)
_RELEASE_NUMBER = re.compile(r"\d+\.\d+")
_FORMAT = "--format=%H%x09%cI%x09%s"
_MOST = 20_000
_MOST_TEXT = 1 << 20


@dataclass
class GitCommits(Commits):
    """Reads clones through one `Git`."""

    git: Git

    @override
    def line(self, source: RepoSource, older: str, newer: str) -> tuple[Commit, ...]:
        last = self.commit(source, newer).id
        first = self.commit(source, older).id if older else ""
        if first and self.git.history(source, "merge-base", "--is-ancestor", first, last).code:
            return ()
        return self._log(
            source,
            "--first-parent",
            "--reverse",
            f"--max-count={_MOST}",
            f"{first}..{last}" if first else last,
        )

    @override
    def commit(self, source: RepoSource, ref: str) -> Commit:
        check_ref(ref)
        for name in (f"refs/tags/{ref}", f"refs/heads/{ref}", ref) if ref else (HEAD,):
            result = self.git.history(
                source, "rev-parse", "--verify", "-q", "--end-of-options", f"{name}^{{commit}}"
            )
            if result.code == 0:
                return self._log(source, "--max-count=1", result.out.strip())[0]
        raise UserError(
            f"The repository has no {ref or 'commit'}.", "Look up the branch, tag or commit."
        )

    @override
    def between(
        self, source: RepoSource, older: str, newer: str, limit: int = 50
    ) -> tuple[Commit, ...]:
        first, last = self._tag(source, older), self._tag(source, newer)
        if not first or not last:
            return ()
        return self._log(source, "--no-merges", f"--max-count={limit}", f"{first}..{last}")

    @override
    def changes(
        self, source: RepoSource, commit: str, paths: tuple[str, ...], limit: int
    ) -> tuple[Commit, ...]:
        options = ("--first-parent", "--min-parents=1", f"--max-count={limit}")
        return self._log(source, *options, commit, paths=paths)

    @override
    def texts(self, source: RepoSource, commit: str, paths: tuple[str, ...]) -> dict[str, str]:
        results = {
            path: self.git.history(source, "cat-file", "blob", f"{commit}:{path}") for path in paths
        }
        return {path: one.out[:_MOST_TEXT] for path, one in results.items() if not one.code}

    @override
    def provides(self, source: RepoSource, commit: str) -> Provided:
        listing = self.git.history(
            source, "ls-tree", "-r", "-z", "--name-only", commit
        )  # -z: names as they are
        if listing.code:
            raise TransientError("git could not read the files of the repository.")
        results = {
            name: self.git.history(source, "cat-file", "blob", f"{commit}:{name}")
            for name in provided.METADATA
        }
        texts = {
            name: result.out[:MOST_TEXT] for name, result in results.items() if not result.code
        }
        return provided.read_layout(listing.out.split("\0"), texts)

    @override
    def tags(self, source: RepoSource, commit: str) -> tuple[str, str]:
        order = ("--sort=version:refname", "--sort=creatordate")
        result = self.git.history(
            source,
            "for-each-ref",
            *order,
            "--format=%(refname:strip=2)",
            f"--contains={commit}",
            "refs/tags/",
        )
        having = result.out.split() if result.code == 0 else []
        before = self.git.history(source, "describe", "--tags", "--abbrev=0", f"{commit}^")
        first = next(
            (tag for tag in having if _RELEASE_NUMBER.search(tag)), having[0] if having else ""
        )
        return first, before.out.strip() if before.code == 0 else ""

    def _tag(self, source: RepoSource, version: str) -> str:
        """The tag of a release: its version, with a "v" or a name before it."""
        if not _VERSION.fullmatch(version):
            return ""
        result = self.git.history(source, "for-each-ref", "--format=%(refname)", "refs/tags/")
        tags = result.out.split() if result.code == 0 else []
        ends = re.compile(rf"^refs/tags/(?:.*[^0-9.])?{re.escape(version)}$")
        return min((tag for tag in tags if ends.match(tag)), key=len, default="")

    def _log(
        self, source: RepoSource, *argv: str, paths: tuple[str, ...] = ()
    ) -> tuple[Commit, ...]:
        literal_paths = (f":(literal){path}" for path in paths)
        result = self.git.history(source, "log", _FORMAT, *argv, "--", *literal_paths)
        if result.code:
            raise TransientError("git could not read the history of the repository.")
        rows = (line.split("\t", 2) for line in result.out.splitlines() if line.count("\t") >= 2)
        return tuple(
            Commit(id=name, date=datetime.fromisoformat(day), subject=subject[:200])
            for name, day, subject in rows
        )
