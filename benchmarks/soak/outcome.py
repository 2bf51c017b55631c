"""The figures of a soak, its limits, and the lines that people read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from statistics import median

from benchmarks.soak.leftovers import Leftovers
from benchmarks.soak.sampling import Sample, Window
from bot.kernel.run import RunState
from bot.kernel.values import Record

MOST_GROWTH = 5.0
MOST_FILES = 8
"""So many more open files may a program have at the end: connections come and go."""


class Answer(Record):
    """What became of one report. `verdicts` are the kinds that are right, "" when nobody need be
    answered, none when any will do; `seconds` passed from the delivery to the last word of the
    comment, None without one.
    """

    id: str
    issue: str
    honest: bool
    verdicts: tuple[str, ...]
    runs: int
    comments: int
    verdict: str
    state: str
    seconds: float | None = None

    @property
    def right(self) -> bool:
        """Whether the run ended with a right verdict; an honest report gets one comment, or none
        that only a reader can decide.
        """
        if self.state in {
            "",
            RunState.WAITING,
        }:  # nothing has run, and without a person nothing will
            return not self.verdicts or "" in self.verdicts
        ended = self.state == RunState.FINISHED
        is_for_reader = self.verdict == "inconclusive"  # of which nobody need be told
        told = self.comments == 1 or (is_for_reader and not self.comments) or not self.honest
        return ended and told and (not self.verdicts or self.verdict in self.verdicts)


class Outcome(Record):
    """The figures. `growth` is in percent; `files` and `restarts` are by program, `leftovers` by
    kind; `processors` is what the App, its Redis and its runs used on average.
    """

    answers: tuple[Answer, ...]
    refused: int
    minutes: float
    warm: Window
    end: Window
    at_rest: Window
    leftovers: Leftovers
    restarts: dict[str, int]
    processors: float
    load: float
    samples: tuple[Sample, ...] = ()

    @property
    def growth(self) -> float:
        """The memory at the end against that after the warm-up, in percent."""
        return 100 * (self.end.memory_mb / self.warm.memory_mb - 1)

    @property
    def broken(self) -> tuple[str, ...]:
        """Every limit that was exceeded, as a sentence."""
        wrong = [each for each in self.answers if each.honest and not each.right]
        more = {
            name: self.at_rest.files[name] - before
            for name, before in self.warm.files.items()
            if self.at_rest.files[name] > before + MOST_FILES
        }
        said = [
            f"memory grew by {self.growth:.1f} %" if self.growth > MOST_GROWTH else "",
            f"left behind: {', '.join(self.leftovers)}" if self.leftovers else "",
            f"honest reports answered wrongly: {len(wrong)}" if wrong else "",
            f"deliveries refused: {self.refused}" if self.refused else "",
            f"started again: {', '.join(self.restarts)}" if self.restarts else "",
            *(f"{name} has {number} more files open" for name, number in more.items()),
        ]
        return tuple(filter(None, said))


def told(outcome: Outcome) -> str:
    """The figures in lines, with each wrong answer and each leftover named."""
    honest = [each for each in outcome.answers if each.honest]
    hostile = [each for each in outcome.answers if not each.honest]
    waits = sorted(each.seconds for each in outcome.answers if each.seconds is not None)
    lines = [
        (
            f"{len(outcome.answers)} deliveries in {outcome.minutes:.1f} minutes, "
            f"{outcome.refused} refused"
        ),
        *_answers("honest", honest),
        *_answers("hostile", hostile),
        f"from delivery to comment: median {_nth(waits, 0.5):.1f} s, p95 {_nth(waits, 0.95):.1f} s",
        (
            f"memory: {outcome.warm.memory_mb:.1f} MB after the warm-up, "
            f"{outcome.end.memory_mb:.1f} MB at the end ({outcome.growth:+.1f} %)"
        ),
        *(
            f"  {name}: {before:.1f} MB, then {outcome.end.by_program[name]:.1f} MB; open files: "
            f"{outcome.warm.files[name]}, at rest {outcome.at_rest.files[name]}"
            for name, before in outcome.warm.by_program.items()
        ),
        f"left behind: {'; '.join(outcome.leftovers) or 'nothing'}",
        *(f"  {kind}: {one}" for kind, names in outcome.leftovers.items() for one in names[:20]),
        f"restarts: {outcome.restarts or 'none'}",
        (
            f"load: {outcome.processors:.2f} processors for the App and its runs; load average of "
            f"the machine {outcome.load:.1f}"
        ),
        *(f"LIMIT BROKEN: {sentence}" for sentence in outcome.broken),
    ]
    return "\n".join(lines)


def _answers(kind: str, answers: Sequence[Answer]) -> list[str]:
    wrong = [each for each in answers if not each.right]
    counted = Counter(each.verdict or each.state or "no run" for each in answers)
    kinds = ", ".join(f"{name} {number}" for name, number in counted.most_common())
    return [
        f"{kind}: {len(answers)} reports, {len(wrong)} answered wrongly ({kinds})",
        *(
            f"  {each.id} ({each.issue}): {each.verdict or each.state or 'no run'}, "
            f"{each.comments} comments, not {' or '.join(each.verdicts)}"
            for each in wrong
        ),
    ]


def _nth(ordered: Sequence[float], share: float) -> float:
    """The quantile by nearest rank; 0 of nothing."""
    if not ordered:
        return 0.0
    return median(ordered) if share == 0.5 else ordered[ceil(share * len(ordered)) - 1]
