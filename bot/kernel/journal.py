"""What a run records while it works: entries of a few kinds, each in its own order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from bot.kernel.attempt import Attempt, Script
from bot.kernel.dialogue import Exchange, Usage
from bot.kernel.training_types import Curve
from bot.kernel.values import Record

E = TypeVar("E", bound=Record)


@dataclass(frozen=True, slots=True)
class EntryKind(Generic[E]):
    """A kind of entry: its name in files and tables, its type, and the key of an entry.

    Only an unfinished run needs entries of a kind `until_report`.
    """

    name: str
    model: type[E]
    key: Callable[[E], str]
    until_report: bool = False


class RunLog(Record):
    """What one run of a program printed, and how it ended."""

    number: int
    text: str


def log_name(number: int) -> str:
    """The name under which a report refers to the log of an attempt; its file in a run folder."""
    return f"logs/{number:03d}.log"


ATTEMPTS = EntryKind("attempts", Attempt, lambda attempt: str(attempt.number))
PROGRAMS = EntryKind("programs", Script, lambda script: script.digest)
"""The programs of the attempts, each once."""
LOGS = EntryKind("logs", RunLog, lambda log: str(log.number))
EXCHANGES = EntryKind("exchanges", Exchange, lambda exchange: str(exchange.number), True)
USAGE = EntryKind("usage", Usage, lambda _: "so far", until_report=True)
"""What models have used so far: one entry, which the next one replaces."""
LOSSES = EntryKind("losses", Curve, lambda _: "so far", until_report=True)
"""The loss of the training that goes on: one entry, which the next one replaces."""
