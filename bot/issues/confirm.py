"""Runs a failing program again until the sequential test decides; counted runs → the verdict."""

import re
from dataclasses import dataclass

from bot.environment import imports, specify, versions as releases
from bot.issues import script_fixes, triage
from bot.issues.missing_inputs import lacking
from bot.issues.observe import Functions, operation
from bot.issues.reading import inline_code, symptoms
from bot.issues.runner import Runner
from bot.issues.signature import data_flow, freeze, values
from bot.kernel import artifacts, launch
from bot.kernel.attempt import Attempt, Failure, Judgement, Match, Script
from bot.kernel.bug import (
    AnySignature,
    BugReport,
    CrashSignature,
    FailedTestSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    OutputSignature,
    TrainingSignature,
    WarningSignature,
    members_of,
)
from bot.kernel.dialogue import Reconstruction, Refutation
from bot.kernel.environment import BuildStep, Environment, PinSource
from bot.kernel.report import (
    AnyVerdict,
    BudgetReached,
    Claim,
    Comparison,
    Determinism,
    DifferentFailure,
    Inconclusive,
    NeedsHardware,
    NotReproduced,
    Reproduced,
    SetupFailed,
)
from bot.kernel.session import SearchResult
from bot.kernel.statistics import SequentialTest, TestDecision, interval
from bot.kernel.trees import read_tree
from sandbox.port import RunResult

# Counted runs → the verdict, and the table that compares the reported with the observed.


def describe(signature: AnySignature) -> str:
    """A signature in one line, for people."""
    return " or ".join(_describe(member) for member in members_of(signature))


def _describe(member: Member) -> str:
    match member:
        case CrashSignature():
            words = ": ".join(filter(None, [member.exception, *member.message.splitlines()[:1]]))
            where = f" in {member.frame}" if member.frame else ""
            return f"{words}{where}" + (f" at `{member.checks[0]}`" if member.checks else "")
        case OutputSignature():
            return "the output " + " / ".join(member.observed[0][:3])
        case NonFiniteSignature():
            return f"{' or '.join(member.values)} among the printed values"
        case WarningSignature():
            times = f", at least {member.at_least} times" if member.at_least > 1 else ""
            return f"{member.category or 'a warning'}: {member.message}{times}"
        case ObservationSignature():
            return f"`{member.name}` {values.words(member.wrong)}: {member.says}"
        case HangSignature():
            what = "no progress for" if member.idle else "no end within"
            return f"{what} {member.bound_s:g} s"
        case FailedTestSignature():
            return f"a failed assertion in {' or '.join(member.tests)}"
        case TrainingSignature(bound=None):
            return f"{member.metric} does not get better during the training"
        case TrainingSignature():
            side = "at most" if member.direction == "max" else "at least"
            return f"{member.metric} of {side} {member.bound:.4g} at the end of the training"


def _describe_member(member: Member) -> str:
    """A cell of the table; the claim that an observation is about is in the row above."""
    return (
        f"{member.name} {values.words(member.wrong)}"
        if isinstance(member, ObservationSignature)
        else _describe(member)
    )


def verdict_of(
    decision: TestDecision,
    runs: list[Judgement],
    determinism: Determinism,
    versions: tuple[str, ...],
) -> AnyVerdict:
    """The verdict on the confirming runs."""
    matching_runs = [run for run in runs if run.match is Match.MATCHED]
    other = [run for run in runs if run.match is Match.OTHER]
    undecided = [run for run in runs if run.match is Match.UNDECIDED]
    counts = {
        "runs": len(runs),
        "failures": len(matching_runs),
        "interval": interval(len(matching_runs), len(runs)),
    }
    if decision == "fails":
        return Reproduced(**counts, reason=matching_runs[0].reason, determinism=determinism)
    if other and len(other) * 2 >= len(runs):
        return DifferentFailure(
            **counts,
            reason=f"the program failed, but not as reported: {other[0].reason}",
            reported="",
            seen=other[0].evidence,
        )
    if undecided and len(undecided) * 2 >= len(runs):
        return Inconclusive(**counts, reason=undecided[0].reason)
    if decision == "passes":
        return NotReproduced(
            **counts, reason=runs[0].reason, checked=(runs[0].reason,), versions_tried=versions
        )
    if all(run.match is Match.SETUP_FAILURE for run in runs):
        return Inconclusive(**counts, reason=runs[0].reason)
    return Inconclusive(**counts, reason=_too_few(len(matching_runs), runs), at_maximum=True)


def _too_few(failures: int, runs: list[Judgement]) -> str:
    """Why the maximum number of runs did not decide."""
    if failures in {0, len(runs)}:
        return f"the maximum number of runs, {len(runs)}, is too small to decide"
    return (
        f"after {len(runs)} runs, the maximum, there were too many failures to rule the bug out "
        "and too few to confirm it"
    )


def as_mended(verdict: AnyVerdict, script: Script) -> AnyVerdict:
    """The verdict on a program that was changed in substance: its passing does not refute the
    report, whose own program was not run.
    """
    whys = {fix.why for fix in script.fixes}
    if not isinstance(verdict, NotReproduced | DifferentFailure):
        return verdict
    if script_fixes.NO_GPU in whys:
        counts = f"{verdict.failures} of {verdict.runs}"
        reason = (
            f"{counts} runs on the CPU failed as reported; the reporter's program asks for a GPU"
        )
        return NeedsHardware(reason=reason, needs=("a GPU",))
    if inline_code.INLINE in whys:
        reason = "the calls quoted in the bug report may not be its whole program"
        return undecided(verdict, f"{verdict.reason}; {reason}")
    if script_fixes.TOO_LONG in whys:
        reason = "the shortened program did not fail, and the full program exceeds the time limit"
        return undecided(verdict, reason)
    return verdict


_VALUES = (NonFiniteSignature, ObservationSignature, OutputSignature)


def as_elsewhere(
    verdict: AnyVerdict, bug: BugReport, device: str, signature: AnySignature
) -> AnyVerdict:
    """The verdict on a report about a device or system that this run did not have: that the program
    passes without it refutes nothing, and a value that shows here too, where the report finds it
    right, is another one.
    """
    if bug.system and isinstance(verdict, NotReproduced | DifferentFailure):
        reason = f"the bug report is about {bug.system}, and the program ran on Linux"
        return undecided(verdict, f"{verdict.reason}; {reason}")
    if bug.device not in {"gpu", "tpu", "mps"} or device != "cpu":
        return verdict
    name = bug.device.upper()
    needs = (f"a {name}",)
    if isinstance(verdict, NotReproduced | DifferentFailure):
        reason = f"{verdict.failures} of {verdict.runs} runs on the CPU failed as reported"
        return NeedsHardware(reason=f"{reason}; the bug report is about a {name}", needs=needs)
    is_value = all(isinstance(member, _VALUES) for member in members_of(signature))
    if isinstance(verdict, Reproduced) and is_value and bug.cpu_is_right is not None:
        says = f"of the CPU the bug report says: {bug.cpu_is_right.text}"
        reason = f"the CPU gives such a value too, so it is not what goes wrong on the {name}"
        return NeedsHardware(reason=f"{reason}; {says}", needs=needs)
    return verdict


def as_released(runner: Runner, result: SearchResult, verdict: AnyVerdict) -> AnyVerdict:
    """The verdict where no release of the package under test from the day of the report can be
    installed: that another one does not fail refutes nothing.
    """
    if not isinstance(verdict, NotReproduced | DifferentFailure):
        return verdict
    target = specify.under_test(result.spec, runner.bug, runner.job.issue)
    environments = (environment for _, environment in runner.environments.values())
    packages = [
        package
        for environment in environments
        for package in environment.packages
        if target is not None and package.name == target.name
    ]
    if not packages or any(row.rung is not PinSource.NEIGHBOUR for row in packages):
        return verdict
    name, version = packages[0].name, result.environment.version(packages[0].name)
    reason = f"no {name} from the day of the bug report can be installed here; {version} may differ"
    return undecided(verdict, f"{verdict.reason}; {reason}")


# What may be newer than a report and says nothing: tools, and torch with what it needs, of which
# there is but one build.
_NEWER = {
    *("pip", "setuptools", "wheel", *imports.TORCH_FAMILY),
    *("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "sympy"),
    "typing-extensions",
}


def as_claimed(runner: Runner, result: SearchResult, verdict: AnyVerdict) -> AnyVerdict:
    """The verdict where the release that a report names is not among those that were tried, where
    some of what is installed is newer than the report, or where it says of a statement that it
    fails, not how, and names no release: that another one does not fail refutes nothing, and that
    it fails where something is newer confirms nothing.
    """
    is_unsaid = any(
        isinstance(member, CrashSignature)
        and member.checks
        and not (member.exception or member.message)
        for member in members_of(runner.signature)
    )
    if not isinstance(verdict, NotReproduced | DifferentFailure | Reproduced):
        return verdict
    if isinstance(verdict, Reproduced) and not is_unsaid:
        return verdict
    environment = result.environment
    as_reported = {
        row.name for row in environment.claims if releases.fits(row.resolved, row.claimed)
    }
    if late := [name for name in environment.undated if name not in as_reported | _NEWER]:
        names = ", ".join(f"{name} {environment.version(name)}" for name in late[:3])
        return undecided(verdict, f"{verdict.reason}; newer than the bug report: {names}")
    if isinstance(verdict, Reproduced):
        return verdict
    target = specify.under_test(result.spec, runner.bug, runner.job.issue)
    if target is None:
        return verdict
    claims = [row for row in environment.claims if row.name == target.name]
    numbers = [row.claimed for row in claims if any(map(str.isdigit, row.claimed))]
    installed = [one.version(target.name) for _, one in runner.environments.values()]
    if any(releases.fits(one, number) for one in installed for number in numbers):
        return verdict
    if not numbers and not is_unsaid:
        return verdict
    reason = f"the bug report names no release of {target.name} with which the statement fails"
    if numbers:
        reason = f"the bug report is about {target.name} {numbers[0]}, which was not run"
    return undecided(verdict, f"{verdict.reason}; {reason}")


def as_unsaid(verdict: AnyVerdict, bug: BugReport, signature: AnySignature) -> AnyVerdict:
    """The verdict where the checks of the report's own program are all there is to compare with:
    that they hold as pasted refutes nothing, since nobody said that they fail so.
    """
    checks = isinstance(signature, CrashSignature) and signature.checks
    if not isinstance(verdict, NotReproduced) or not checks or bug.tracebacks:
        return verdict
    reason = "the assertions of the reported program hold, and the bug report shows none that fails"
    return undecided(verdict, reason)


def as_written(
    verdict: AnyVerdict, script: Script, refutation: Refutation | None = None
) -> AnyVerdict:
    """The verdict on a program that a model wrote: it may lack what the reporter's has, so that its
    passing leaves the question open, unless it has the report's own calls and something but the
    model says that the value is right.
    """
    if not isinstance(verdict, NotReproduced) or script.author != "model":
        return verdict
    if refutation is not None:
        return _refuted(verdict, refutation)
    counts = f"{verdict.failures} of {verdict.runs}"
    reason = f"{counts} runs of a program that a model wrote showed the failure ({verdict.reason})"
    return undecided(verdict, f"{reason}; the reporter's own program may differ")


def _refuted(verdict: NotReproduced, refutation: Refutation) -> NotReproduced:
    """The verdict where the library was shown to be right."""
    computes = f"a computation without the library gives the same value, {refutation.value}"
    says = f"the library does what its documentation says: {refutation.quote}"
    reason = says if refutation.quote else computes
    checks = [verdict.reason, *verdict.checked, "the program has the calls of the bug report"]
    checks += [f"the words are in {refutation.path}"] if refutation.quote else []
    checks += [computes] if refutation.value and refutation.quote else []
    return verdict.model_copy(update={"reason": reason, "checked": tuple(dict.fromkeys(checks))})


def if_read_alike(
    verdict: AnyVerdict, rules: AnySignature, model: AnySignature | None
) -> AnyVerdict:
    """Keeps a negative verdict if a model that has not seen the runs reads the report as the rules
    do; otherwise the verdict is inconclusive.
    """
    if not isinstance(verdict, NotReproduced | DifferentFailure):
        return verdict
    if model is not None and freeze.same(rules, model):
        return verdict
    reading = describe(model) if model is not None else "nothing that a run could show"
    return undecided(
        verdict,
        f"the bug report can be read in two ways: the rules read {describe(rules)}, which did not "
        f"happen; a model reads {reading}, which no run could decide",
    )


def if_contradicted(verdict: AnyVerdict | None, by_rules: AnyVerdict) -> AnyVerdict | None:
    """The verdict on a model's program; a negative one is inconclusive where the report's own
    program failed in another way.
    """
    if not isinstance(verdict, NotReproduced) or not isinstance(by_rules, DifferentFailure):
        return verdict
    reason = f"the reporter's own program fails in another way ({by_rules.seen or by_rules.reason})"
    return undecided(verdict, f"{verdict.reason}, but {reason}")


def undecided(verdict: NotReproduced | DifferentFailure | Reproduced, reason: str) -> Inconclusive:
    """An inconclusive verdict with the counts of another one."""
    counts = verdict.model_dump(include={"runs", "failures", "interval"})
    return Inconclusive(**counts, reason=reason)


def describe_steps(steps: tuple[BuildStep, ...]) -> tuple[str, ...]:
    """The tries in order; those with the same cause are one entry."""
    causes: dict[str, list[str]] = {}
    for step in steps:
        causes.setdefault(step.error or "done", []).append(step.what)
    return tuple(f"{'; '.join(dict.fromkeys(whats))}: {cause}" for cause, whats in causes.items())


def place(judgement: Judgement) -> tuple[str, ...]:
    """A word to the reader when no library's Python code was on the stack: the bug may be the
    program's own.
    """
    failure = judgement.failure
    if failure is None or not failure.frames or any(frame.package for frame in failure.frames):
        return ()
    return (
        (
            f"the program's own line `{failure.frames[-1].code[:120]}` raised it; "
            "no library's Python code was on the stack"
        ),
    )


_ABSENT_MODULE = re.compile(r"No module named '(?P<name>(?P<top>\w+)(?:\.\w+)+)'")


def absent_module(result: SearchResult) -> AnyVerdict | None:
    """The verdict where an installed package lacks a module of its own: that is a matter of its
    release, and no package is missing.
    """
    failure, setup_failure = result.judgement.failure, result.judgement.setup_failure
    match = _ABSENT_MODULE.search(failure.message) if failure is not None else None
    if match is None or setup_failure is None or not setup_failure.module:
        return None
    name = imports.installed_as(imports.distribution(match["top"]))
    version = result.environment.version(name)
    if not version:
        return None
    return Inconclusive(
        runs=1,
        failures=0,
        interval=interval(0, 1),
        reason=f"the program imports `{match['name']}`, which {name} {version} does not have, and "
        "no release that has it can be installed here",
    )


def blocked(judgement: Judgement) -> AnyVerdict:
    """The verdict when a setup failure could not be fixed."""
    failure = judgement.setup_failure
    if failure is None:
        return Inconclusive(runs=0, failures=0, interval=(0.0, 1.0), reason=judgement.reason)
    if failure.hardware:
        return NeedsHardware(
            reason=f"the program needs hardware that is not available here: {failure.what}",
            needs=(failure.hardware,),
        )
    if failure.names:
        names = ", ".join(f"`{name}`" for name in failure.names)
        return triage.needs_reader(f"the program uses {names}, which nothing in it defines")
    if failure.needs:
        why = f"the program cannot run here: {failure.what}; it takes {failure.needs}"
        return triage.needs_reader(why)
    return SetupFailed(
        reason=f"the environment lacks something that could not be installed: {failure.what}",
        tried=(failure.module or failure.requirement,),
    )


ALSO, BESIDE = "also reported", "but with "
"""The row of a complaint beside the one that was reproduced, and of releases that do not fail."""


def compare(
    signature: AnySignature | None, last: Attempt | None, environment: Environment | None
) -> tuple[Comparison, ...]:
    """The table "reported / observed"."""
    rows: list[Comparison] = []
    if signature is not None and last is not None:
        member = members_of(signature)[min(last.judgement.member, len(members_of(signature)) - 1)]
        # What stands on the error stream of a hang is the stacks that were asked for, not what
        # happened.
        evidence = "" if isinstance(member, HangSignature) else last.judgement.evidence
        observation = evidence or last.judgement.reason
        rows.append(
            Comparison(
                what="failure",
                reported=_describe_member(member),
                observed=_describe_output(member, observation),
            )
        )
        if isinstance(member, CrashSignature) and member.frame and last.judgement.failure:
            location = f"{member.frame} in {member.function}" if member.function else member.frame
            rows.append(
                Comparison(
                    what="location", reported=location, observed=_place(last.judgement.failure)
                )
            )
    if environment is not None:
        rows.extend(
            Comparison(
                what=row.name, reported=row.claimed, observed=row.resolved or "not installed"
            )
            for row in [row for row in environment.claims if row.claimed][:6]
        )
    return tuple(rows)


def _place(failure: Failure) -> str:
    """The innermost frame of a library, or of the program where no library was on the stack."""
    libraries = [frame for frame in failure.frames if frame.package not in {"", "<stdlib>"}]
    frame = next(reversed(libraries or failure.frames), None)
    if frame is None:
        return "not shown"
    file = frame.module_path or frame.path.rsplit("/", 1)[-1]
    return f"{file} in {frame.function}"


def _describe_output(member: Member, observation: str) -> str:
    rows = [row for row in observation.strip().splitlines() if row.strip()]
    return (
        " / ".join(rows[:3]) if isinstance(member, OutputSignature) else (rows[0] if rows else "")
    )


def versions(environment: Environment) -> str:
    """The versions that matter, in one line: Python and the packages that were asked for."""
    packages = [
        package for package in environment.packages if package.rung is not PinSource.DEPENDENCY
    ]
    return ", ".join(
        [
            f"Python {environment.python}",
            *(f"{package.name} {package.version}" for package in packages[:8]),
        ]
    )


# A negative verdict needs a witness: one run that is seen to reach the operation in question.


def check_reach(runner: Runner, search_result: SearchResult, verdict: AnyVerdict) -> AnyVerdict:
    """A negative verdict where a further run, not counted, reaches what the report complains of;
    otherwise an inconclusive one that says what was not reached.
    """
    if not isinstance(verdict, NotReproduced | DifferentFailure):
        return verdict
    script, tree = search_result.script, search_result.environment.tree
    reach = operation(
        runner.bug,
        members_of(runner.signature),
        script,
        read_tree(tree) if script.is_repositorys else {},
        failed=isinstance(verdict, DifferentFailure),
    )
    runner.say("confirm", f"checking that a run reaches {reach.says}")
    result = runner.execute(
        launch.reached_spec(
            search_result.script,
            search_result.environment,
            runner.job,
            runner.signature,
            reach.functions,
        )
    )
    functions, lines = functions_reached(result, reach.file or search_result.script.entry)
    if not reach.reached(functions, lines):
        ending = "" if verdict.kind == "not_reproduced" else f": they ended with {verdict.seen}"
        return undecided(verdict, f"no run was observed to reach {reach.says}{ending}")
    if isinstance(verdict, NotReproduced):
        if _output_alone(runner, search_result):
            why = "neither the output that the bug report shows nor the one it expects was printed"
            return undecided(verdict, why)
        checks = (*verdict.checked, f"the program reached {reach.says}")
        return verdict.model_copy(update={"checked": checks})
    return verdict


def _output_alone(runner: Runner, result: SearchResult) -> bool:
    """Whether the report shows an output, and no run printed what it expects instead: the same
    behaviour may be printed in many ways.
    """
    has_output = any(isinstance(member, OutputSignature) for member in members_of(runner.signature))
    runs = runner.attempts.of(result.script, result.environment, "confirm")
    return has_output and not any(run.judgement.contrary for run in runs)


def functions_reached(result: RunResult, path: str) -> tuple[Functions, frozenset[int]]:
    """What the processes of a run entered, and the lines of a file that ran."""
    functions: set[tuple[str, str]] = set()
    lines: set[int] = set()
    for data in result.artifacts.values():
        row = artifacts.parse_record(artifacts.Reached, data)
        if isinstance(row, artifacts.Reached):
            functions |= set(row.entered)
            lines |= {line for file, line in row.lines if file == path}
    return tuple(functions), frozenset(lines)


# Runs a failing program again, with new seeds, until the sequential test decides.

_REPEATS = 3
_INTERMITTENT = 9
_UNDECIDABLE = {Match.OTHER, Match.UNDECIDED, Match.SETUP_FAILURE}


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and what it is about. `result` is the program and the environment to show, None
    when nothing was run. `contrasts` are the report's variants that did work, `facets` what became
    of its other complaints.
    """

    verdict: AnyVerdict
    bug: BugReport | None = None
    signature: AnySignature | None = None
    result: SearchResult | None = None
    contrasts: tuple[Script, ...] = ()
    claims: tuple[Claim, ...] = ()
    facets: tuple[Comparison, ...] = ()
    reconstruction: Reconstruction | None = None


def confirm(runner: Runner, result: SearchResult) -> tuple[AnyVerdict, Match]:
    """The verdict from fresh runs, and what they show of the signature. Mixed outcomes are run
    again with the same seeds, to find out why.
    """
    if result.judgement.match is Match.SETUP_FAILURE:
        verdict = lacking(result, runner.job.issue) or absent_module(result)
        return verdict or blocked(result.judgement), Match.SETUP_FAILURE
    if result.judgement.rest_s is not None:
        return BudgetReached(reason=result.judgement.reason), Match.UNDECIDED
    determinism: Determinism = "deterministic"
    with runner.stage("confirm", "confirming with fresh runs"):
        decision, runs = _fresh_runs(runner, result)
        if decision == "fails":
            determinism = _determinism(runner, result)
    verdict = verdict_of(decision, runs, determinism, (versions(result.environment),))
    if isinstance(verdict, Reproduced):
        signs = (run.doubt for run in runs if run.doubt)
        doubt = data_flow.doubt(result.script.files) or next(signs, "")
        verdict = verdict.model_copy(update={"doubt": doubt})
    verdict = as_unsaid(verdict, runner.bug, runner.signature)
    device = runner.job.environment.device
    verdict = as_elsewhere(verdict, runner.bug, device, runner.signature)
    verdict = check_reach(runner, result, as_mended(verdict, result.script))
    verdict = as_claimed(runner, result, as_released(runner, result, verdict))
    return verdict, Match.MATCHED if decision == "fails" else result.judgement.match


def _fresh_runs(runner: Runner, result: SearchResult) -> tuple[TestDecision, list[Judgement]]:
    test, runs, cap = SequentialTest(), list[Judgement](), _cap(runner, result)
    issue, decided = runner.job.issue, False
    intermittent = symptoms.says_so(f"{issue.title}\n{issue.body}")
    while not decided and len(runs) < cap:
        number = len(runs) + 1
        runner.say("confirm", f"run {number}", number, cap)
        seed = runner.job.limits.seed + number
        runs.append(runner.run(result.script, result.environment, seed, "confirm").judgement)
        failures = sum(run.match is Match.MATCHED for run in runs)
        # An intermittent failure, by the report's own words: look for the other outcome too.
        early = intermittent and failures == len(runs) < _INTERMITTENT
        decided = test.decide(failures, len(runs)) != "undecided" and not early
        # Two runs that both failed otherwise, or decided nothing: more of them will not help.
        decided |= len(runs) == 2 and all(run.match in _UNDECIDABLE for run in runs)
    return test.decide(sum(run.match is Match.MATCHED for run in runs), len(runs)), runs


def _cap(runner: Runner, result: SearchResult) -> int:
    """Most confirming runs; a run that only ends by the clock is not repeated forty times."""
    hang = any(isinstance(member, HangSignature) for member in members_of(runner.signature))
    slow = result.judgement.match is Match.UNDECIDED and not hang
    return min(runner.job.limits.max_runs, 2 if slow else runner.job.limits.max_runs)


def _determinism(runner: Runner, result: SearchResult) -> Determinism:
    """The determinism of mixed outcomes over seeds: runs with equal seeds separate chance in the
    program from chance outside it.
    """
    judgements = runner.attempts.by_seed(result.script, result.environment)
    outcomes = {
        seed: judgement.match is Match.MATCHED
        for seed, judgement in judgements.items()
        if judgement.match in {Match.MATCHED, Match.PASSED}
    }
    if all(outcomes.values()):
        return "deterministic"
    for expected in (True, False):
        seed = next(seed for seed, matched in outcomes.items() if matched is expected)
        for _ in range(_REPEATS):
            change = f"seed {seed} again"
            again = runner.run(result.script, result.environment, seed, "repeat", change)
            if (again.match is Match.MATCHED) is not expected:
                return "nondeterministic"
    return "seed-dependent"
