"""The revisions of one bisection, and the runs that were made at each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from bot.models.attempt import Attempt, Judgement, Match
from bot.models.environment import Environment, EnvironmentSpec
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof import control_environments
from bot.pipeline.proof.outcome import Failing
from bot.rules.packages import imports
from bot.rules.probe_test import ProbeTally

FRESH = ("confirm", "control", "bisect")
_LACKING = re.compile(r"\b(?:module|cannot import name '\w+' from) '(?P<module>\w+)[\w.]*'")
_DECIDED = {Match.MATCHED, Match.PASSED}


@dataclass(slots=True)
class Revision:
    """A release or commit on the line. `specs` are the ways to have it, the closest to the known
    bad one first. `unbuilt` says why it cannot be tested when it only lies on the path, because
    something else would be tested in its place; "" when it can.
    """

    name: str
    date: datetime | None
    specs: Callable[[], tuple[EnvironmentSpec, ...]]
    subject: str = ""
    unbuilt: Callable[[], str] = lambda: ""


@dataclass(slots=True)
class Visit:
    """What is known of one revision."""

    environment: Environment | None = None
    tally: ProbeTally = field(default_factory=ProbeTally)
    seeds: set[int] = field(default_factory=set)
    why: str = ""
    index: int = 0

    def count(self, judgement: Judgement) -> None:
        """Count one run."""
        if judgement.match in _DECIDED:
            self.tally.runs += 1
            self.tally.failures += judgement.match is Match.MATCHED
            return
        # A failure of the environment itself is there every time: it counts twice.
        self.tally.others += 2 if judgement.match is Match.SETUP_FAILURE else 1
        self.tally.why = self.why = control_environments.words(judgement)

    def lacks(self, package: str) -> bool:
        """Whether the program broke because the release does not have what it uses: other
        companions change nothing.
        """
        named = _LACKING.search(self.why)
        return named is not None and package in {
            imports.distribution(named["module"]),
            imports.normalise(named["module"]),
        }


def earlier(
    failing: Failing, runner: Runner, environment: Environment, purposes: Collection[str]
) -> ProbeTally:
    """The runs of the failing program in an environment for these purposes.

    A run that was repeated under its seed, as a control that is made anew does, counts once.
    """
    tally, seeds = ProbeTally(), set[int]()
    for attempt in runner.attempts.of(failing.script, environment, *purposes):
        seed = attempt.execution.seed
        if attempt.judgement.match not in _DECIDED or seed in seeds:
            continue
        tally.runs += 1
        tally.failures += attempt.judgement.match is Match.MATCHED
        if seed is not None:
            seeds.add(seed)
    return tally


def used_seeds(
    failing: Failing, runner: Runner, environment: Environment, match: Match | None = None
) -> list[int]:
    """The seeds under which the program ran in an environment, or those with one outcome."""

    def seeds(attempts: list[Attempt]) -> Iterator[int]:
        for attempt in attempts:
            seed = attempt.execution.seed
            if seed is not None and match in {None, attempt.judgement.match}:
                yield seed

    return list(dict.fromkeys(seeds(runner.attempts.of(failing.script, environment, *FRESH))))
