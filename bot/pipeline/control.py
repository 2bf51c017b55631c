"""A confirmed failure → its control: the same program where it should pass, in turn with the failing one, seed by seed.

What fails there too, or fails for another reason, is no control; the next candidate is tried. See reproduction.md, section 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from bot.errors import Stopped, TransientError
from bot.models.attempt import Judgement, Match, Script
from bot.models.base import Record
from bot.models.bisect import Bisection
from bot.models.bug import BugReport
from bot.models.environment import Environment, EnvironmentSpec
from bot.models.report import Claim
from bot.models.signature import ObservationSignature
from bot.models.verdict import Control, Effect
from bot.pipeline import claimed, twins
from bot.pipeline.at_hand import AtHand, Candidate
from bot.pipeline.desk import OUT_OF_TIME, Desk
from bot.pipeline.signature import members_of
from bot.pipeline.twins import Refused, Twin
from bot.rules import exact

AS_REPORTED = "as reported"


class Controlled(Record):
    """A control and where it ran. `attempts` are the numbers of its runs; `claims` what the report says that they bear on;
    `ended` is why the search for it was cut short, "" when it was not.
    """

    control: Control = Control()
    spec: EnvironmentSpec | None = None
    attempts: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    ended: str = ""


@dataclass(slots=True)
class _Side:
    """The runs of one environment by seed."""

    script: Script
    built: Environment
    change: str
    seen: dict[int, Judgement] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        return sum(run.match is Match.MET for run in self.seen.values())


def control(
    desk: Desk,
    script: Script,
    spec: EnvironmentSpec,
    built: Environment,
    bug: BugReport,
    *,
    bisected: Bisection | None = None,
    fix: str = "",
    surrogates: tuple[Candidate, ...] = (),
    versions: bool = True,
    seconds: float = 600.0,
) -> Controlled:
    """The first candidate that passes where the failing environment fails, with the counts of both.

    `bisected` is a search over releases that may have found one that passes: it goes first. `fix` is the commit of the merged
    fix, where one is known and a clone is at hand; `surrogates` are tried last, or alone without `versions`. No new candidate
    and no new pair is begun after `seconds`. What the desk shows is as before; being stopped ends with what there is.
    """
    shown = (desk.spec, desk.environment, desk.script)
    work = _Work(desk, script, spec, built, bug, desk.ports.clock() + seconds)
    try:
        with desk.stage("control", "looking for a version that works" if versions else "running the twin"):
            return work.first(bisected, fix, surrogates, versions=versions)
    except (Stopped, TransientError) as error:
        why = f"{desk.why_stopped} while a control was run" if isinstance(error, Stopped) else f"no control: {error}"
        work.notes.append(why)
        ended = desk.why_stopped if isinstance(error, Stopped) else ""
        return Controlled(notes=tuple(work.notes), claims=tuple(work.claims), attempts=tuple(work.numbers), ended=ended)
    finally:
        desk.spec, desk.environment, desk.script = shown


class _Work:
    """One search for a control."""

    def __init__(
        self, desk: Desk, script: Script, spec: EnvironmentSpec, built: Environment, bug: BugReport, until: float
    ) -> None:
        self.desk, self.script, self.spec, self.built, self.bug, self.until = desk, script, spec, built, bug, until
        self.notes: list[str] = []
        self._at_hand = AtHand(desk, spec, built, bug, self.notes)
        self.claims: list[Claim] = []
        self.numbers: list[int] = []
        self.ended = ""

    def first(self, bisected: Bisection | None, fix: str, surrogates: tuple[Candidate, ...], *, versions: bool) -> Controlled:
        failing = _Side(self.script, self.built, AS_REPORTED, _confirmed(self.desk, self.script, self.built))
        failing.seen |= self._earlier(failing)
        wanted = exact.pairs(failing.failures, len(failing.seen), most=max(5, self.desk.job.options.max_runs))
        at_hand = self._at_hand.candidates(bisected, fix) if versions else ()
        for candidate in chain(at_hand, surrogates):
            if self.desk.ports.clock() > self.until:
                self.notes.append("the time for a control was up")
                self.ended = OUT_OF_TIME
                break
            found = self._tried(candidate, failing, wanted)
            if found is not None:
                return found
        notes, claims, numbers = tuple(self.notes), tuple(self.claims), tuple(self.numbers)
        return Controlled(notes=notes, claims=claims, attempts=numbers, ended=self.ended)

    def _tried(self, candidate: Candidate, failing: _Side, wanted: int) -> Controlled | None:
        """The candidate's control, None when it is none; notes and claims say why."""
        self.desk.say("control", f"control: {candidate.what}")
        twin, why = twins.build(self.desk, candidate.ways, candidate.package, candidate.version), ""
        while isinstance(twin, Twin) and not self._is_ours(candidate, twin.built):
            passing = _Side(candidate.script or self.script, twin.built, f"control: {candidate.what}")
            passing.seen |= self._earlier(passing)
            why = self._alternate(failing, passing, wanted)
            failed = any(run.match is Match.MET for run in passing.seen.values())
            if not why or failed:
                return self._concluded(candidate, twin.spec, failing, passing, why)
            twin = twins.build(self.desk, candidate.ways, candidate.package, candidate.version, twin.way + 1)
        why = why or (twin.why if isinstance(twin, Refused) else "it is what failed")
        self.notes.append(f"no control with {candidate.what}: {why}")
        self._bears(candidate, None, why)
        return None

    def _is_ours(self, candidate: Candidate, built: Environment) -> bool:
        """Whether a candidate is nothing but the failing environment over again."""
        return candidate.script is None and (built.id, built.commit) == (self.built.id, self.built.commit)

    def _concluded(
        self, candidate: Candidate, spec: EnvironmentSpec, failing: _Side, passing: _Side, why: str
    ) -> Controlled | None:
        counts = f"{candidate.what}: {passing.failures} of {len(passing.seen)} failed as reported"
        self._bears(candidate, not why, counts)
        if why:
            self.notes.append(f"no control with {candidate.what}: {why}")
            return None
        return Controlled(
            control=self._counted(candidate, failing, passing),
            spec=spec,
            attempts=tuple(self.numbers),
            notes=tuple(self.notes),
            claims=tuple(self.claims),
            ended=self.ended,
        )

    def _alternate(self, failing: _Side, passing: _Side, wanted: int) -> str:
        """Run both sides in turn under the same seeds; why the twin is no control, "" when it is one."""
        first = self.desk.job.options.seed + 1
        for done, seed in enumerate(range(first, first + wanted)):
            if done and self.desk.ports.clock() > self.until:
                self.notes.append(f"the time for a control was up after {done} of {wanted} pairs")
                self.ended = OUT_OF_TIME
                break
            self.desk.say("control", passing.change, done + 1, wanted)
            if seed not in failing.seen:
                failing.seen[seed] = self._run(failing, seed)
            if seed not in passing.seen:
                passing.seen[seed] = self._run(passing, seed)
            judgement = passing.seen[seed]
            if judgement.match is Match.MET:
                return "it fails there too"
            if judgement.match is not Match.ABSENT:
                return f"it does not come to its end there: {twins.words(judgement)}"
        return ""

    def _earlier(self, side: _Side) -> dict[int, Judgement]:
        """What a search that was cut short had run of a side, by seed; one that came to its end is made anew."""
        if "control" not in self.desk.begun:
            return {}
        of = (side.script.digest, side.built.id, "control", side.change)
        rows = (each for each in self.desk.attempts if (each.script, each.environment, each.purpose, each.change) == of)
        return {row.execution.seed: row.judgement for row in rows if row.execution.seed is not None}

    def _run(self, side: _Side, seed: int) -> Judgement:
        judgement = self.desk.run(side.script, side.built, seed, "control", side.change)
        self.numbers.append(len(self.desk.attempts))
        return judgement

    def _counted(self, candidate: Candidate, failing: _Side, passing: _Side) -> Control:
        paired = [run for seed, run in failing.seen.items() if seed in passing.seen]
        failures, runs = sum(run.match is Match.MET for run in paired), len(paired)
        return Control(
            type=candidate.type,
            runs=len(passing.seen),
            failures=passing.failures,
            p=exact.one_sided(failures, runs, passing.failures, len(passing.seen)),
            what=candidate.what,
            paired_runs=runs,
            paired_failures=failures,
            effect=self._effect(paired, passing),
            environment=passing.built.id,
            python=passing.built.python,
            moved=twins.moved(self.built, passing.built, candidate.package),
            patch=candidate.patch,
            why=candidate.why,
        )

    def _effect(self, paired: list[Judgement], passing: _Side) -> Effect:
        failures = sum(run.match is Match.MET for run in paired)
        gap, low, high = exact.difference(failures, len(paired), passing.failures, len(passing.seen))
        ours, theirs = self._values(paired), self._values(list(passing.seen.values()))
        return Effect(
            difference=gap,
            interval=(low, high),
            delta=exact.cliffs_delta(ours, theirs) if ours and theirs else None,
            values=ours,
            control_values=theirs,
        )

    def _values(self, runs: list[Judgement]) -> tuple[float, ...]:
        """The numbers that the runs observed; none when any of them is no number."""
        assert self.desk.signature is not None
        if not any(isinstance(member, ObservationSignature) for member in members_of(self.desk.signature)):
            return ()
        try:
            return tuple(float(run.evidence.partition(" = ")[2]) for run in runs)
        except ValueError:
            return ()

    def _bears(self, candidate: Candidate, holds: bool | None, evidence: str) -> None:
        if candidate.claim is not None:
            self.claims.append(Claim(text=claimed.works(candidate.claim), holds=holds, evidence=evidence))


def _confirmed(desk: Desk, script: Script, built: Environment) -> dict[int, Judgement]:
    """The confirming runs of this program in this environment, by their seeds."""
    rows = (row for row in desk.attempts if row.purpose == "confirm")
    same = (row for row in rows if row.script == script.digest and row.environment == built.id)
    return {row.execution.seed: row.judgement for row in same if row.execution.seed is not None}
