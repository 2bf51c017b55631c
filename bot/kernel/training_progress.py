"""How far a program has come by the counters that it prints, and how long the rest would take."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sandbox.port import Stream

_COUNTER = re.compile(
    r"\b(?P<unit>epochs?|iter(?:ation)?s?|(?:time|global_?)?steps?|episodes?|rounds?|updates?)\b"
    r"[^\w\n]{0,4}(?P<at>\d{1,9})\s?(?:/|\bof\b)\s?(?P<of>\d{1,9})\b",
    re.IGNORECASE,
)
_UNITS = r"epoch|iter(?:ation)?|(?:time|global_?)?step|episode|round|update"
_COUNT = re.compile(
    rf"(?<![a-z])(?:total[_ ])?(?P<unit>{_UNITS})s?\b[\s|:=#\[]{{1,24}}"
    r"(?P<at>\d{1,9})\b(?![./%]|\s?of\b)",
    re.IGNORECASE,
)
_PLAN = re.compile(
    rf"(?<![a-z])(?P<unit>{_UNITS})s[\"']?[ \t]{{0,4}}[=:, ][ \t]{{0,4}}"
    r"(?:type ?= ?int, {0,4})?(?:default ?= ?)?"
    r"(?P<of>\d{1,9}(?:_\d{3}){0,3}(?:e\d)?)\b(?![ \t]{0,4}[-+*/.\w])",
    re.IGNORECASE,
)
_BAR = re.compile(
    r"(?:\d{1,3}%\|[^|\n]{0,200}\| *(?=\d{1,9}/\d{1,9} \[)|^ *(?=\d{1,9}/\d{1,9} [\[\u2501]))"
    r"(?P<at>\d{1,9})/(?P<of>\d{1,9})"
)
"""Of tqdm and of Keras."""
_MOST_LETTERS, _MOST_COUNTERS, _MOST_TEXT = 400, 8, 200_000
_SURE_S = 10.0
"""How long a counter must run before it tells a speed."""


class Rest(NamedTuple):
    """Where a counter stands, and the seconds that its rest takes at least, at the speed so far."""

    unit: str
    at: int
    of: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.unit} {self.at:,} of {self.of:,}"


@dataclass(slots=True)
class _Counter:
    since: float
    first: int
    at: int
    stride: int = 0
    began_again: bool = False

    def count(self, at: int) -> None:
        self.began_again |= at < self.at
        self.stride, self.at = at - self.at or self.stride, at

    def seconds_left(self, of: int, now: float) -> float:
        """As if the next count were due now."""
        counts = self.at + self.stride - self.first
        return max(of - self.at - self.stride, 0) * (now - self.since) / counts


def planned_counts(text: str) -> dict[str, int]:
    """How far a program's text has it count, by unit: `--epochs 100`, `total_timesteps=1_000_000`;
    of several numbers none.
    """
    rows: dict[str, set[int]] = {}
    for match in _PLAN.finditer(text[:_MOST_TEXT]):
        rows.setdefault(match["unit"].lower(), set()).add(int(float(match["of"])))
    return {unit: next(iter(numbers)) for unit, numbers in rows.items() if len(numbers) == 1}


@dataclass(slots=True)
class TrainingProgress:
    """Listens to the output of a program. `clock` gives seconds; `plan` has how far a unit that is
    printed alone is counted.
    """

    clock: Callable[[], float]
    plan: Mapping[str, int] = field(default_factory=dict)
    started: float = field(init=False)
    _counters: dict[tuple[str, int], _Counter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the program was started."""
        return self.clock() - self.started

    def hear(self, _: Stream, line: str) -> None:
        """Take one line of the output."""
        for part in line.split("\r")[-_MOST_COUNTERS:]:
            text = part[-_MOST_LETTERS:]
            for match in _COUNTER.finditer(text):
                self._count(match["unit"].lower().rstrip("s"), int(match["at"]), int(match["of"]))
            for match in _BAR.finditer(text):
                self._count("step", int(match["at"]), int(match["of"]))
            for match in _COUNT.finditer(text) if self.plan else ():
                if of := self.plan.get(match["unit"].lower()):
                    self._count(match["unit"].lower(), int(match["at"]), of)

    def _count(self, unit: str, at: int, of: int) -> None:
        counter = self._counters.get((unit, of))
        if counter is not None:
            counter.count(at)
        elif len(self._counters) < _MOST_COUNTERS:
            self._counters[unit, of] = _Counter(self.clock(), at, at)

    def rest(self) -> Rest | None:
        """What is left by the counter with the longest way to go; None where none tells. One that
        began again counts a part of another one's round.
        """
        now = self.clock()
        rows = [
            Rest(unit, counter.at, of, counter.seconds_left(of, now))
            for (unit, of), counter in self._counters.items()
            if counter.stride > 0 and not counter.began_again and now - counter.since >= _SURE_S
        ]
        return max(rows, key=lambda row: row.seconds, default=None)
