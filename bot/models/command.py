"""A command someone wrote in a comment, after its text was read and before anyone asked whether
they may.
"""

from typing import Literal

from bot.models.base import Record

Verb = Literal[
    "reproduce", "minimize", "bisect", "control", "diagnose", "repair", "pr", "paper",
    "status", "cancel", "approve", "help", "config",
]  # fmt: skip


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
