"""The revisions of one bisection, and the runs that were made at each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from bot.models.attempt import Judgement, Match
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
    attempts = runner.attempts.of(failing.script, environment, *purposes)
    decided = [row for row in attempts if row.judgement.match in _DECIDED]
    first = {row.execution.seed: row.judgement.match for row in reversed(decided)}
    failures = sum(match is Match.MATCHED for match in first.values())
    return ProbeTally(runs=len(first), failures=failures)


def used_seeds(
    failing: Failing, runner: Runner, environment: Environment, match: Match | None = None
) -> list[int]:
    """The seeds under which the program ran in an environment, or those with one outcome."""
    attempts = runner.attempts.of(failing.script, environment, *FRESH)
    wanted = (row for row in attempts if match in {None, row.judgement.match})
    seeds = (row.execution.seed for row in wanted)
    return list(dict.fromkeys(seed for seed in seeds if seed is not None))
