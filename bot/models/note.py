"""What a report tells its reader beside the figures, and what each note is about."""

from enum import StrEnum
from typing import Literal

from bot.models.base import Record

NoteKind = Literal["run", "control", "bisect", "minimize"]
"""The run itself, or one of its proofs."""


class Note(Record):
    """One sentence for the reader. Code selects notes by `kind` and never reads `text`."""

    kind: NoteKind
    text: str


class Interruption(StrEnum):
    """What ended work that has more to do."""

    STOPPED = "stopped on request"
    OUT_OF_TIME = "the time limit was reached"
