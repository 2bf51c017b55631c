"""A program that was seen to fail → fresh runs under new seeds until the sequential test decides."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models.attempt import Judgement, Match, Script
from bot.models.environment import Environment, EnvironmentSpec
from bot.models.signature import HangSignature
from bot.models.verdict import AnyVerdict, Determinism
from bot.pipeline import conclude
from bot.pipeline import signature as signatures
from bot.pipeline.desk import Desk
from bot.rules import flaky
from bot.rules.statistics import Decision, SequentialTest

_REPEATS = 3
_INTERMITTENT = 9
_DECIDED = {Match.MET, Match.ABSENT}


@dataclass(frozen=True, slots=True)
class Found:
    """Where a search ended: the script and the environment as mended, and how the last run was judged."""

    script: Script
    spec: EnvironmentSpec
    built: Environment
    judgement: Judgement


def confirm(desk: Desk, found: Found) -> tuple[AnyVerdict, Match]:
    """Fresh runs under new seeds until the sequential test decides; then the same seed again where outcomes were mixed."""
    if found.judgement.match is Match.DECOY:
        return conclude.blocked(found.judgement), Match.DECOY
    test, runs = SequentialTest(), list[Judgement]()
    decision: Decision = "undecided"
    cap = _cap(desk, found)
    with desk.stage("confirm", "confirming with fresh runs"):
        while decision == "undecided" and len(runs) < cap:
            desk.say("confirm", f"run {len(runs) + 1}", len(runs) + 1, cap)
            seed = desk.job.options.seed + len(runs) + 1
            runs.append(desk.run(found.script, found.built, seed, "confirm"))
            failures = sum(run.match is Match.MET for run in runs)
            decision = test.decide(failures, len(runs))
            if _settled_otherwise(runs):
                break
            if decision == "fails" and failures == len(runs) < _INTERMITTENT and flaky.says_so(_words(desk)):
                decision = "undecided"  # the report says that it comes and goes: look for the other outcome too
        if decision == "undecided":
            decision = test.decide(sum(run.match is Match.MET for run in runs), len(runs))
        determinism: Determinism = _determinism(desk, found) if decision == "fails" else "deterministic"
    verdict = conclude.verdict(decision, runs, determinism, (conclude.versions(found.built),))
    verdict = conclude.as_mended(verdict, found.script)
    return verdict, Match.MET if decision == "fails" else found.judgement.match


def _words(desk: Desk) -> str:
    return f"{desk.job.issue.title}\n{desk.job.issue.body}"


def _cap(desk: Desk, found: Found) -> int:
    """Most confirming runs; a run that only ends by the clock is not repeated forty times."""
    hang = (
        any(isinstance(member, HangSignature) for member in signatures.members_of(desk.signature)) if desk.signature else False
    )
    slow = found.judgement.match is Match.UNDECIDED and not hang
    return min(desk.job.options.max_runs, 2 if slow else desk.job.options.max_runs)


def _settled_otherwise(runs: list[Judgement]) -> bool:
    """Two runs that both failed in another way, or both decided nothing, will not be bettered by more of them."""
    return len(runs) == 2 and all(run.match in {Match.OTHER, Match.UNDECIDED, Match.DECOY} for run in runs)


def _determinism(desk: Desk, found: Found) -> Determinism:
    """Mixed outcomes over seeds: the same seed again tells chance in the program from chance outside it."""
    same = [row for row in desk.attempts if row.script == found.script.digest and row.environment == found.built.id]
    outcomes = {row.execution.seed: row.judgement.match is Match.MET for row in same if row.judgement.match in _DECIDED}
    if all(outcomes.values()):
        return "deterministic"
    for wanted in (True, False):
        seed = next(seed for seed, met in outcomes.items() if met is wanted)
        for _ in range(_REPEATS):
            again = desk.run(found.script, found.built, seed or 0, "repeat", f"seed {seed} again")
            if (again.match is Match.MET) is not wanted:
                return "nondeterministic"
    return "seed-dependent"
