"""A negative verdict needs a witness: one run that is seen to reach the operation in question."""

from bot.models.report import AnyVerdict, DifferentFailure, NotReproduced
from bot.models.signature import OutputSignature, members_of
from bot.pipeline.confirm import verdicts
from bot.pipeline.execution import artifacts, launch
from bot.pipeline.execution.runner import Runner
from bot.pipeline.execution.session import SearchResult
from bot.rules.operation import Functions, operation
from sandbox.port import RunResult


def witnessed(runner: Runner, found: SearchResult, verdict: AnyVerdict) -> AnyVerdict:
    """A negative verdict where a further run, not counted, reaches what the report complains of;
    otherwise an inconclusive one that says what was not reached.
    """
    if not isinstance(verdict, NotReproduced | DifferentFailure):
        return verdict
    wanted = operation(
        runner.bug,
        members_of(runner.signature),
        found.script,
        failed=isinstance(verdict, DifferentFailure),
    )
    runner.say("confirm", f"checking that a run reaches {wanted.says}")
    result = runner.execute(
        launch.reached_spec(
            found.script, found.environment, runner.job, runner.signature, wanted.functions
        )
    )
    entered, lines = _reached(result, found.script.entry)
    if not wanted.reached(entered, lines):
        ended = "" if verdict.kind == "not_reproduced" else f": they ended with {verdict.seen}"
        return verdicts.undecided(verdict, f"no run was observed to reach {wanted.says}{ended}")
    if isinstance(verdict, NotReproduced):
        if _output_alone(runner, found):
            why = "neither the output that the bug report shows nor the one it expects was printed"
            return verdicts.undecided(verdict, why)
        checked = (*verdict.checked, f"the program reached {wanted.says}")
        return verdict.model_copy(update={"checked": checked})
    return verdict


def _output_alone(runner: Runner, found: SearchResult) -> bool:
    """Whether the report shows an output, and no run printed what it expects instead: the same
    behaviour may be printed in many ways.
    """
    shown = any(isinstance(member, OutputSignature) for member in members_of(runner.signature))
    runs = runner.attempts.of(found.script, found.environment, "confirm")
    return shown and not any(run.judgement.contrary for run in runs)


def _reached(result: RunResult, entry: str) -> tuple[Functions, frozenset[int]]:
    """What the processes of a run entered, and the lines of the entry file that ran."""
    entered: set[tuple[str, str]] = set()
    lines: set[int] = set()
    for data in result.artifacts.values():
        row = artifacts.read(artifacts.Reached, data)
        if isinstance(row, artifacts.Reached):
            entered |= set(row.entered)
            lines |= {line for file, line in row.lines if file == entry}
    return tuple(entered), frozenset(lines)
