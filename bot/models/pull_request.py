"""What a pull request is made of: files of the repository, a change of its own code, and what is
proposed to it.
"""

from __future__ import annotations

from typing import Literal

from bot.models.base import Record

Framework = Literal["pytest", "unittest"]

REGULAR = frozenset({"100644", "100755"})
"""Modes of files that are neither links nor submodules."""


class TreeEntry(Record):
    """A file of a commit, by git's mode: "120000" is a link, "160000" a submodule, "040000" a
    folder. `sha` is the blob's id, "" for one on disk that was not hashed.
    """

    path: str
    mode: str
    size: int = 0
    sha: str = ""


class TestLayout(Record):
    """Where a repository's tests are and how they are named. `name` has `{}` for the subject, as
    in "test_{}.py"; `function` likewise.
    """

    __test__ = False  # pytest would collect it

    folder: str
    framework: Framework = "pytest"
    name: str = "test_{}.py"
    function: str = "test_{}"


class FileChange(Record):
    """A change of a file that the repository has: its whole new text, and the unified diff that
    leads there.
    """

    path: str
    text: str
    diff: str


class RepositoryPatch(Record):
    """Changes of a training program of the repository: of its own file, its modules and its
    configuration files. `program` is its path.
    """

    program: str
    changes: tuple[FileChange, ...]

    @property
    def diff(self) -> str:
        """Everything as one unified diff."""
        return "".join(change.diff for change in self.changes)


class ProposedFile(Record):
    """A file as it will be."""

    path: str
    text: str
    mode: Literal["100644", "100755"] = "100644"


class RegressionTest(Record):
    """The test of a proposal. `files` are the test itself and what it needs beside it, `command`
    runs it, `raises` names the exception that it expects, `strict` is whether an unexpected pass
    fails.
    """

    files: tuple[ProposedFile, ...]
    command: str
    framework: Framework
    raises: str
    strict: bool

    @property
    def path(self) -> str:
        """Where it is."""
        return self.files[0].path


class Proposal(Record):
    """What is proposed: a test, a change of the repository's own code, or both. `diff` is
    everything as one unified diff; `left_out` says why one of the two is not in it.
    """

    files: tuple[ProposedFile, ...]
    diff: str
    test: RegressionTest | None = None
    patch: RepositoryPatch | None = None
    left_out: str = ""
