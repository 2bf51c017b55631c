"""What GitHub told us, cut down to what matters: the frozen input of everything that follows."""

from datetime import datetime
from typing import Literal

from bot.models.base import Record
from bot.models.bug import Issue

Verb = Literal[
    "reproduce", "minimize", "bisect", "control", "diagnose", "repair", "pr", "paper",
    "status", "cancel", "approve", "help", "config",
]  # fmt: skip
Trigger = Literal["opened", "labeled", "comment", "gone", "uninstalled"]


class Choices(Record):
    """The options of one command, typed and checked; None where the command does not say."""

    python: str | None = None
    pins: tuple[str, ...] = ()
    device: Literal["cpu", "gpu"] | None = None
    runs: int | None = None
    seed: int | None = None
    ref: str | None = None
    timeout_s: float | None = None
    package: str | None = None


class Command(Record):
    """One `/reproduce …` line. `verb` is "" when it was not understood; `problems` are sentences
    for whoever wrote it.
    """

    text: str
    verb: Verb | Literal[""] = "reproduce"
    choices: Choices = Choices()
    argument: str = ""
    problems: tuple[str, ...] = ()


class Repository(Record):
    """A repository an installation covers. `full_name` is "owner/name"."""

    id: int
    full_name: str
    private: bool = False
    default_branch: str = "main"
    clone_url: str = ""


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
