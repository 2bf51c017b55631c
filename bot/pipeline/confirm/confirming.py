"""Runs a failing program again, with new seeds, until the sequential test decides."""

from dataclasses import dataclass

from bot.models.attempt import Judgement, Match, Script
from bot.models.bug import BugReport
from bot.models.dialogue import Reconstruction
from bot.models.report import AnyVerdict, Claim, Determinism, Reproduced
from bot.models.signature import AnySignature, HangSignature, members_of
from bot.pipeline.confirm import verdicts
from bot.pipeline.confirm.witness import witnessed
from bot.pipeline.execution.runner import Runner
from bot.pipeline.execution.session import SearchResult
from bot.rules import flaky
from bot.rules.signatures import doubts
from bot.rules.statistics import SequentialTest, TestDecision

_REPEATS = 3
_INTERMITTENT = 9
_UNDECIDABLE = {Match.OTHER, Match.UNDECIDED, Match.SETUP_FAILURE}


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and what it is about. `result` is the program and the environment to show, None
    when nothing was run. `contrasts` are the report's variants that did work.
    """

    verdict: AnyVerdict
    bug: BugReport | None = None
    signature: AnySignature | None = None
    result: SearchResult | None = None
    contrasts: tuple[Script, ...] = ()
    claims: tuple[Claim, ...] = ()
    reconstruction: Reconstruction | None = None


def confirm(runner: Runner, found: SearchResult) -> tuple[AnyVerdict, Match]:
    """The verdict from fresh runs, and what they show of the signature. Mixed outcomes are run
    again with the same seeds, to find out why.
    """
    if found.judgement.match is Match.SETUP_FAILURE:
        return verdicts.blocked(found.judgement), Match.SETUP_FAILURE
    determinism: Determinism = "deterministic"
    with runner.stage("confirm", "confirming with fresh runs"):
        decision, runs = _fresh_runs(runner, found)
        if decision == "fails":
            determinism = _determinism(runner, found)
    verdict = verdicts.verdict(decision, runs, determinism, (verdicts.versions(found.environment),))
    if isinstance(verdict, Reproduced):
        signs = (run.doubt for run in runs if run.doubt)
        doubt = doubts.doubt(found.script.files) or next(signs, "")
        verdict = verdict.model_copy(update={"doubt": doubt})
    verdict = verdicts.as_unsaid(verdict, runner.bug, runner.signature)
    verdict = witnessed(runner, found, verdicts.as_mended(verdict, found.script))
    return verdict, Match.MATCHED if decision == "fails" else found.judgement.match


def _fresh_runs(runner: Runner, found: SearchResult) -> tuple[TestDecision, list[Judgement]]:
    test, runs, cap = SequentialTest(), list[Judgement](), _cap(runner, found)
    issue, decided = runner.job.issue, False
    intermittent = flaky.says_so(f"{issue.title}\n{issue.body}")
    while not decided and len(runs) < cap:
        number = len(runs) + 1
        runner.say("confirm", f"run {number}", number, cap)
        seed = runner.job.limits.seed + number
        runs.append(runner.run(found.script, found.environment, seed, "confirm").judgement)
        failures = sum(run.match is Match.MATCHED for run in runs)
        # An intermittent failure, by the report's own words: look for the other outcome too.
        early = intermittent and failures == len(runs) < _INTERMITTENT
        decided = test.decide(failures, len(runs)) != "undecided" and not early
        # Two runs that both failed otherwise, or decided nothing: more of them will not help.
        decided |= len(runs) == 2 and all(run.match in _UNDECIDABLE for run in runs)
    return test.decide(sum(run.match is Match.MATCHED for run in runs), len(runs)), runs


def _cap(runner: Runner, found: SearchResult) -> int:
    """Most confirming runs; a run that only ends by the clock is not repeated forty times."""
    hang = any(isinstance(member, HangSignature) for member in members_of(runner.signature))
    slow = found.judgement.match is Match.UNDECIDED and not hang
    return min(runner.job.limits.max_runs, 2 if slow else runner.job.limits.max_runs)


def _determinism(runner: Runner, found: SearchResult) -> Determinism:
    """The determinism of mixed outcomes over seeds: runs with equal seeds separate chance in the
    program from chance outside it.
    """
    judged = runner.attempts.by_seed(found.script, found.environment)
    outcomes = {
        seed: judgement.match is Match.MATCHED
        for seed, judgement in judged.items()
        if judgement.match in {Match.MATCHED, Match.PASSED}
    }
    if all(outcomes.values()):
        return "deterministic"
    for wanted in (True, False):
        seed = next(seed for seed, matched in outcomes.items() if matched is wanted)
        for _ in range(_REPEATS):
            change = f"seed {seed} again"
            again = runner.run(found.script, found.environment, seed, "repeat", change)
            if (again.match is Match.MATCHED) is not wanted:
                return "nondeterministic"
    return "seed-dependent"
