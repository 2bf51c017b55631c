"""What GitHub told us, cut down to what matters: the frozen input of everything that follows."""

from datetime import datetime
from typing import Literal

from bot.models.base import Record
from bot.models.command import Command
from bot.models.issue import Issue

Trigger = Literal["opened", "labeled", "comment", "gone", "uninstalled"]


class Repository(Record):
    """A repository an installation covers. `full_name` is "owner/name"."""

    id: int
    full_name: str
    private: bool = False
    default_branch: str = "main"
    clone_url: str = ""

    @property
    def owner(self) -> str:
        """The part of the name before the slash."""
        return self.full_name.partition("/")[0]

    @property
    def name(self) -> str:
        """The part of the name after the slash."""
        return self.full_name.partition("/")[2]


class Delivery(Record):
    """One webhook delivery that concerns us. Title, body and commands are those of the payload:
    what is edited later is not looked at.

    `trigger` "gone" is an issue that was deleted or transferred, or a repository that left the
    installation (`issue` None); "uninstalled" ends everything of `installation` (`repository`
    None). `comment` is the id of the comment that holds `commands`. `label` is the one that was
    set, for "labeled".
    """

    guid: str
    event: str
    action: str
    trigger: Trigger
    installation: int
    repository: Repository | None = None
    issue: Issue | None = None
    pull_request: bool = False
    sender: str = ""
    label: str = ""
    comment: int | None = None
    commands: tuple[Command, ...] = ()
    received_at: datetime
