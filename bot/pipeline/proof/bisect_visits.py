"""The revisions that a bisection visits, with the runs at each. While a program runs, the
environments that are likely to come next are built in the background.
"""

import re
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Self

from packaging.utils import canonicalize_name

from bot.errors import BuildError, Stopped, TransientError
from bot.models.attempt import Judgement, Match
from bot.models.environment import Environment, EnvironmentSpec
from bot.pipeline.execution.runner import Runner
from bot.pipeline.proof import control_environments
from bot.pipeline.proof.outcome import Failing
from bot.ports import Builder
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
            canonicalize_name(named["module"]),
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


class Prefetch:
    """Builds at most two environments at a time, each spec once. Only builds go on in threads:
    runs, judgements and what is kept of them stay with the caller. Leaving the context stops
    what nobody asked for in the end.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder, self._flag = builder, Event()
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prefetch")
        self._started: dict[str, Future[Environment | None]] = {}

    def start(self, spec: EnvironmentSpec) -> None:
        """Begin with an environment, unless that was done before."""
        key = spec.model_dump_json()
        if key not in self._started:
            self._started[key] = self._pool.submit(self._made, spec)

    def take(self, spec: EnvironmentSpec, cancel: Event) -> Environment | None:
        """What was built ahead, waiting for it; None when nothing was, or when it has to be
        tried again in earnest.
        """
        future = self._started.pop(spec.model_dump_json(), None)
        if future is None or future.cancel():
            return None
        while not future.done():
            if cancel.wait(0.05):
                return None
        return future.result()

    def _made(self, spec: EnvironmentSpec) -> Environment | None:
        try:
            return self._builder.build(spec, cancel=self._flag)
        except (BuildError, Stopped, TransientError):
            return None  # whoever needs it builds it again, and hears why it fails

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flag.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
