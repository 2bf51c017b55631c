"""The probes of one bisection: which places were run, how often each failed, and what that says of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, count

from bot.errors import Stopped, TransientError
from bot.models.attempt import Match, Script
from bot.models.bisect import Outcome, Probe
from bot.models.environment import Environment, EnvironmentSpec
from bot.pipeline import twins
from bot.pipeline.ahead import Ahead
from bot.pipeline.desk import OUT_OF_TIME, Desk
from bot.pipeline.twins import Refused
from bot.rules import odds, releases
from bot.rules.bisecting import Edge, Seen, bracket, following
from bot.rules.odds import Tally
from bot.rules.packages import imports
from bot.rules.statistics import SequentialTest

_SEEN: dict[Outcome, Seen] = {"fails": "bad", "passes": "good"}
_FRESH = {"confirm", "control", "bisect"}
_MOST_RUNS = 80
"""At one place, before it is left undecided."""

_LACKING = re.compile(r"\b(?:module|cannot import name '\w+' from) '(?P<module>\w+)[\w.]*'")
_SAME = 3
"""So many releases of which only the failing one can be had, and it is left at that."""

_DOUBT = 0.3
"""A place that is said to fail must be seen to fail more rarely than this before that is denied."""


@dataclass(slots=True)
class Place:
    """A release or commit on the line. `ways` are the specs to have it by, the closest to the known bad one first; `unbuilt`
    says why it cannot be tested when it only lies on the path: something else would be tested in its place; "" when it can.
    """

    name: str
    date: datetime | None
    ways: Callable[[], tuple[EnvironmentSpec, ...]]
    subject: str = ""
    unbuilt: Callable[[], str] = lambda: ""


@dataclass(slots=True)
class _Visit:
    """What is known of one place."""

    built: Environment | None = None
    tally: Tally = field(default_factory=Tally)
    seeds: set[int] = field(default_factory=set)
    why: str = ""
    way: int = 0


class _Pointless(Exception):
    """Going on would tell no more; the text says why."""


def _words(error: Stopped | TransientError | _Pointless, desk: Desk) -> str:
    return desk.why_stopped if isinstance(error, Stopped) else str(error)


class Hunt:
    """Probes of places on one line, `bad` the one that is known to fail. Outcomes are read off the counts anew after each run,
    because a failure that turns out to be rarer than it seemed asks for more runs at places that were settled before.

    `package` is what has the releases, "" on a line of commits; `subject` is what those provide.
    """

    def __init__(
        self,
        desk: Desk,
        script: Script,
        built: Environment,
        places: list[Place],
        bad: int,
        package: str,
        ahead: Ahead,
        *,
        seconds: float,
        risk: float,
        subject: str = "",
    ) -> None:
        self.desk, self.script, self.built, self.places, self.bad, self.package = desk, script, built, places, bad, package
        self.ahead, self.risk, self.stopped, self.subject = ahead, risk, "", subject or package
        self._until = desk.ports.clock() + seconds
        self._visits: dict[int, _Visit] = {}
        self._asked: list[int] = []
        self._seeds = self._seeds_of(built, Match.MET)
        self._same = 0
        self._confirmed = Tally()
        if package:
            self._visits[bad] = _Visit(built=built, tally=self._earlier(built, _FRESH))
        else:  # commits may share one environment; what was confirmed tells of the rate all the same
            self._confirmed = self._earlier(built, {"confirm"})

    @property
    def rate(self) -> float:
        """What the failure is taken to occur at least at."""
        return odds.rate((self._confirmed, *(visit.tally for visit in self._visits.values())))

    def edge(self, way: int, hints: tuple[int, ...] = ()) -> Edge:
        """The boundary in one direction, -1 to older and 1 to newer places; as far as it is known when it has to stop."""
        size = self.bad if way < 0 else len(self.places) - 1 - self.bad
        try:
            self._refer()
            while not self.stopped:
                step = following(size, self._known(way), hints)
                if isinstance(step, Edge):
                    return step
                self._look_ahead(way, step, size, hints)
                self._probe(self.bad + way * step)
        except (Stopped, TransientError, _Pointless) as error:
            self.stopped = _words(error, self.desk)
        return bracket(size, self._known(way))

    def look(self, at: int) -> None:
        """Try one place, unless it had to stop before."""
        try:
            if not self.stopped:
                self._probe(at)
        except (Stopped, TransientError, _Pointless) as error:
            self.stopped = _words(error, self.desk)

    def outcome(self, at: int) -> Outcome | None:
        """What is known of a place; None when it was not tried."""
        visit = self._visits.get(at)
        if at == self.bad and self.package:
            return "fails"
        if visit is None:
            return None
        if visit.built is None:
            return "uninstallable" if visit.why else None
        if visit.tally.hopeless:
            return "untestable"
        decided = self._test(at).decide(visit.tally.failures, visit.tally.runs)
        if decided == "undecided":
            return "undecided" if visit.tally.runs else None
        return decided

    def seen(self) -> dict[int, Seen]:
        """Every settled place by its distance from the known bad one, older ones negative."""
        return {at - self.bad: seen for at in self._visits if (seen := self._settled(at)) is not None}

    def probes(self) -> tuple[Probe, ...]:
        """Everything that was tried, in the order of the line."""
        rows = []
        for at, visit in sorted(self._visits.items()):
            outcome, place, built = self.outcome(at), self.places[at], visit.built
            if outcome is not None:
                rows.append(
                    Probe(
                        at=place.name,
                        date=place.date,
                        outcome=outcome,
                        runs=visit.tally.runs,
                        failures=visit.tally.failures,
                        reason=visit.why,
                        moved=twins.moved(self.built, built, self.subject) if built is not None else (),
                        environment=built.id if built is not None else "",
                    )
                )
        return tuple(rows)

    def skipped(self) -> list[tuple[str, str]]:
        """Places where nothing could be told, and why."""
        return [(probe.at, probe.reason or probe.outcome) for probe in self.probes() if probe.outcome not in _SEEN]

    def risk_taken(self) -> float:
        """The bound on the chance that any settled probe is wrong."""
        settled = sum(at != self.bad and self._settled(at) in {"bad", "good"} for at in self._visits)
        return min(self.risk, settled * self.risk / odds.branches(len(self.places)))

    def _test(self, at: int) -> SequentialTest:
        rate = min(self.rate, _DOUBT) if at == self.bad else self.rate
        return odds.test(rate, len(self.places), self.risk)

    def _known(self, way: int) -> dict[int, Seen]:
        places = {(at - self.bad) * way: self._settled(at) for at in self._visits}
        return {step: seen for step, seen in places.items() if step > 0 and seen is not None}

    def _settled(self, at: int) -> Seen | None:
        """What a place counts as for the search, None while more runs may tell."""
        outcome, visit = self.outcome(at), self._visits[at]
        if outcome in _SEEN:
            return _SEEN[outcome]
        capped = visit.tally.runs + visit.tally.others >= _MOST_RUNS
        if outcome == "untestable" and self._lacks(visit):
            return "lacks"
        return "skip" if capped or outcome in {"untestable", "uninstallable"} else None

    def _lacks(self, visit: _Visit) -> bool:
        """Whether the program broke because the release does not have what it asks of it: other companions change nothing."""
        named = _LACKING.search(visit.why)
        return named is not None and self.package in {imports.distribution(named["module"]), imports.normalise(named["module"])}

    def _earlier(self, built: Environment, purposes: Collection[str]) -> Tally:
        """The runs for these purposes that were made of this very program in this very environment. One that was made again
        under its seed, as a control that is looked for anew does, is no new one.
        """
        tally, seeds = Tally(), set[int]()
        for row in self.desk.attempts:
            same = row.script == self.script.digest and row.environment == built.id and row.purpose in purposes
            if not same or row.judgement.match not in {Match.MET, Match.ABSENT} or row.execution.seed in seeds:
                continue
            tally.runs += 1
            tally.failures += row.judgement.match is Match.MET
            if row.execution.seed is not None:
                seeds.add(row.execution.seed)
        return tally

    def _known_of(self, built: Environment) -> Tally:
        """The runs of a place before it was entered: those in its environment, which no other release has."""
        return self._earlier(built, _FRESH) if self.package else Tally()

    def _seeds_of(self, built: Environment, match: Match | None = None) -> list[int]:
        """The seeds under which the program was run before in an environment, or those with one outcome."""
        same = (row for row in self.desk.attempts if (row.script, row.environment) == (self.script.digest, built.id))
        rows = (row for row in same if row.purpose in _FRESH and match in {None, row.judgement.match})
        return list(dict.fromkeys(row.execution.seed for row in rows if row.execution.seed is not None))

    def _refer(self) -> None:
        """Enough runs of the known bad place to read the rate from."""
        visit = self._visits.get(self.bad)
        if visit is None or visit.built is None:
            return
        while visit.tally.runs + visit.tally.others < odds.REFERENCE:
            used = self._seeds_of(self.built)
            seed = next(seed for seed in count(self.desk.job.options.seed + 1) if seed not in used)
            self._once(self.bad, visit, visit.built, seed)

    def _probe(self, at: int) -> None:
        """Runs at one place until it is settled; where the program breaks otherwise, in the next way to have it too."""
        visit = self._visits.setdefault(at, _Visit())
        if visit.built is None:
            self._time()
            self.desk.say("bisect", f"bisect: {self._short(at)}: building", *self._progress(at))
            self._enter(at, visit, 0)
        self._settle(at, visit)
        if self.outcome(at) == "untestable" and not self._lacks(visit) and self._enter(at, visit, visit.way + 1):
            self._settle(at, visit)
        tally, outcome = visit.tally, self.outcome(at)
        counted = f" ({tally.failures} of {tally.runs})" if outcome in _SEEN else ""
        self.desk.say("bisect", f"bisect: {self._short(at)}: {outcome}{counted}", *self._progress(at))

    def _enter(self, at: int, visit: _Visit, first: int) -> bool:
        """Build a place, from one of its ways on; False when it cannot be had, or only as it was had already."""
        place = self.places[at]
        ways = place.ways()
        early = self.ahead.take(ways[0], self.desk.ports.cancel) if first == 0 else None
        if early is not None:
            self.desk.built[ways[0].model_dump_json()] = early
        found = twins.build(self.desk, ways, self.package, place.name, first)
        if isinstance(found, Refused):
            visit.why = visit.why or found.why
            self._count(found)
            return False
        if visit.built is not None and visit.built.id == found.built.id:
            return False
        if found.built.roots and (why := place.unbuilt()):
            visit.why = why
            return False
        visit.built, visit.way, visit.tally, visit.why = found.built, found.way, self._known_of(found.built), ""
        visit.seeds = {*self._seeds_of(found.built)} if self.package else set()
        return True

    def _count(self, found: Refused) -> None:
        """Stop the search when this machine's index has nothing but the version that fails."""
        self._same += bool(found.instead) and releases.same(found.instead, self.built.version(self.package))
        if self._same >= _SAME:
            raise _Pointless(f"no other version of {self.package} than {found.instead} could be had")

    def _settle(self, at: int, visit: _Visit) -> None:
        while visit.built is not None and self._settled(at) is None:
            self._once(at, visit, visit.built, self._seed(visit))

    def _once(self, at: int, visit: _Visit, built: Environment, seed: int) -> None:
        self._time()
        tally, subject = visit.tally, f"{self.package} {self.places[at].name}".strip()
        judgement = self.desk.run(self.script, built, seed, "bisect", subject)
        visit.seeds.add(seed)
        if judgement.match in {Match.MET, Match.ABSENT}:
            tally.runs += 1
            tally.failures += judgement.match is Match.MET
            return
        tally.others += 1
        tally.why = visit.why = twins.words(judgement)
        if judgement.match is Match.DECOY:
            tally.others += 1  # the environment's own failure is there every time

    def _seed(self, visit: _Visit) -> int:
        """One that a place was not run under yet. Seeds that are known to fail come first: a failure that hangs on the seed is
        then there at every bad place.
        """
        seeds = chain(self._seeds, count(self.desk.job.options.seed + 1))
        return next(seed for seed in seeds if seed not in visit.seeds)

    def _look_ahead(self, way: int, step: int, size: int, hints: tuple[int, ...]) -> None:
        """Have the environments built that will be wanted next, whichever way this probe goes."""
        known = self._known(way)
        for seen in ("bad", "good"):
            after = following(size, {**known, step: seen}, hints)
            if not isinstance(after, Edge) and (self.bad + way * after) not in self._visits:
                self.ahead.start(self.places[self.bad + way * after].ways()[0])

    def _progress(self, at: int) -> tuple[int, int]:
        if at not in self._asked:
            self._asked.append(at)
        total = max(len(self._asked), 2 * len(self.places).bit_length() + 2)
        return len(self._asked), min(total, len(self.places))

    def _short(self, at: int) -> str:
        name = self.places[at].name
        return name if self.package else name[:12]

    def _time(self) -> None:
        self.desk.stop_if_asked()
        if self.desk.ports.clock() > self._until:
            raise _Pointless(OUT_OF_TIME)
