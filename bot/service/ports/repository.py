"""One repository, opened for one pull request: what is read there, and the branch and the pull
request that are written.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from bot.models.base import Record
from bot.models.pull_request import ProposedFile, TreeEntry


class RepositoryState(Record):
    """What kind of repository it is. `head` is the commit of the default branch, "" when there is
    none.
    """

    default_branch: str
    head: str
    fork: bool = False
    archived: bool = False


class PullRequest(Record):
    """A pull request of a branch."""

    number: int
    state: Literal["open", "closed", "merged"]


class RepositoryReader(Protocol):
    """A repository through a token that can do nothing else and ends with its use. Raises what
    `GitHub` raises.
    """

    def state(self) -> RepositoryState:
        """What kind of repository it is now."""

    def issue_open(self, number: int) -> bool:
        """Whether an issue is open."""

    def entries(self, commit: str) -> tuple[TreeEntry, ...]:
        """Everything in a commit, folders too. Raises UserError when that is too much to list."""

    def text(self, entry: TreeEntry) -> str | None:
        """The text of a file; None when it is none."""


class RepositoryWriter(RepositoryReader, Protocol):
    """A repository whose token can also write contents and pull requests."""

    def branch(self, name: str) -> str:
        """The commit of a branch, "" when there is no such branch."""

    def others(self, base: str, head: str) -> int:
        """How many commits `head` has on top of `base` that the App did not write."""

    def commit(self, base: str, files: Sequence[ProposedFile], above: str, message: str) -> str:
        """A commit with the files of `base` and these, on top of `above` where that is given.
        Returns `above` when it says the same already.
        """

    def point(self, branch: str, commit: str, *, new: bool) -> None:
        """Create a branch, or move it forward. Raises TransientError when somebody was faster."""

    def pulls(self, branch: str) -> tuple[PullRequest, ...]:
        """The pull requests of a branch, the newest first."""

    def open_pull(self, branch: str, base: str, title: str, body: str) -> int:
        """Open a draft and return its number. Raises TransientError when there is one already."""

    def edit_pull(self, number: int, title: str, body: str) -> None:
        """Replace title and body."""

    def close_pull(self, number: int) -> None:
        """Close it. Idempotent."""
