"""Compares a run with the frozen signature. Only this module, with those for each kind of
signature beside it, decides what a run shows; no model is asked.
"""

import re
from pathlib import PurePosixPath

from bot.environment import imports, missing, setup_failures
from bot.issues.judge_crash import judge_crash, last_line, says_nothing
from bot.issues.judge_output import judge_nonfinite, judge_output
from bot.issues.judge_training import judge_training
from bot.issues.judgements import EVIDENCE, matched, passed, undecided
from bot.issues.observe import Observation, flatten
from bot.issues.script_fixes import FILLED, NO_GPU
from bot.issues.signature import copied, freeze, staged, values, wording
from bot.kernel.attempt import Failure, Judgement, Match, Script, SetupFailure
from bot.kernel.bug import (
    AnySignature,
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

# What a process says of one it has started that ended before its time. Why is in that one's trace.
_CHILD_DIED = {
    *("EOFError", "BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError"),
    *("BrokenProcessPool", "BrokenExecutor", "ProcessExitedException", "ProcessRaisedException"),
    *("TerminatedWorkerError", "ChildFailedError"),
}
_WORKER = re.compile(
    r"\b(?:worker|process)\b.{0,80}\b(?:exited|died|terminated|failed)", re.I | re.S
)
_UNREADABLE = {"SyntaxError", "IndentationError", "TabError"}
_READABLE = "the program as a Python file (the pasted text is not valid Python)"


def judge(observation: Observation, signature: AnySignature, script: Script) -> Judgement:
    """What one run shows: the signature matched, no failure, another failure, a setup failure, or
    nothing that decides.
    """
    judgement = _judge_failures(observation, signature, script)
    doubt = observation.doubt or _unsigned(observation, judgement)
    return judgement.model_copy(update={"doubt": doubt}) if doubt else judgement


def _unsigned(observation: Observation, judgement: Judgement) -> str:
    """Why a traced exception that counts may be made up: only the probe tells of base classes."""
    failure = judgement.failure
    has_trace = failure is not None and failure.bases and judgement.match is Match.MATCHED
    signed = map(_as_traced, observation.signed)
    if not observation.keyed or not has_trace or failure is None or _as_traced(failure) in signed:
        return ""
    return "only a trace that the probe did not sign shows the exception"


def _as_traced(failure: Failure) -> tuple[object, ...]:
    """What a trace says, whatever its frames were called since."""
    frames = tuple((row.path, row.code) for row in failure.frames)
    return failure.exception, failure.message, failure.bases, frames, failure.chained


def _judge_failures(observation: Observation, signature: AnySignature, script: Script) -> Judgement:
    if observation.refused:
        return undecided(observation.refused[0])
    verdicts = [_either(observation, member, script) for member in members_of(signature)]
    for index, judgement in enumerate(verdicts):
        if judgement.match is Match.MATCHED:
            return judgement.model_copy(update={"member": index})
    of_gpu = next((row for row in verdicts if row.match is Match.SETUP_FAILURE), None)
    return of_gpu or _setup_failure(observation) or _unmet(observation, verdicts)


def _either(observation: Observation, member: Member, script: Script) -> Judgement:
    """A member compared with a run; where that does not show it, the other reading of its words is
    tried.
    """
    judgement = _genuine(observation, member, script)
    reading = None if judgement.match is Match.MATCHED else freeze.other(member)
    if reading is None or (
        reading.printed
        and judge_output(observation, reading.printed, script).match is not Match.MATCHED
    ):
        return judgement
    other = _genuine(observation, reading.member, script, member)
    return other if other.match is Match.MATCHED else judgement


def _genuine(
    observation: Observation, member: Member, script: Script, reported_member: Member | None = None
) -> Judgement:
    """A member compared with a run, which shows nothing when the program itself causes the match.
    `reported` is the member of the signature that it replaces: a print in the place of an exception
    may not be staged in either way.
    """
    judgement = _member(observation, member, script)
    if judgement.match is Match.MATCHED and (why := _left_open(judgement.failure, member, script)):
        return undecided(why).model_copy(update={"failure": judgement.failure})
    if judgement.match is Match.MATCHED and _is_of_gpu(judgement.failure, script):
        return _without_gpu(judgement)
    if judgement.match is Match.MATCHED and (absent := _reporters_file(judgement.failure, script)):
        return judgement.model_copy(update=absent)
    is_match = judgement.match is Match.MATCHED
    is_settled = is_match or judgement.match is Match.PASSED
    if isinstance(member, CrashSignature) and is_settled:
        why = says_nothing(member, script, is_match=is_match)
        judgement = undecided(why) if why else judgement
    for candidate in (
        (member, reported_member) if isinstance(reported_member, CrashSignature) else (member,)
    ):
        if script.is_repositorys or copied.is_repositorys(judgement.failure, script):
            break
        if judgement.match is Match.MATCHED and (line := staged.staged(script.source, candidate)):
            return passed(f"the program itself causes it: {line[:120]}")
    return judgement


def _left_open(failure: Failure | None, member: Member, script: Script) -> str:
    """Which guess of ours a failure may come from: of a value, or where the report only says that a
    statement fails, of the function that it calls.
    """
    if _is_filled_in(failure):
        return "the failure arises from a value that the bug report leaves open"
    is_unsaid = isinstance(member, CrashSignature) and not (member.exception or member.message)
    guesses = [fix.what for fix in script.fixes if fix.why == imports.LOCATED]
    if is_unsaid and guesses:
        return (
            f"{guesses[0]}, which is a guess; the bug report does not say how the statement fails"
        )
    return ""


_OF_GPU = re.compile(r"cuda|gpu|\bdevices?\b", re.IGNORECASE)
_GPU_CHECK = re.compile(r"\bis_cuda\b|\.device(?:\.type)? *[!=]=|\bcuda\.(?:is|get|device)_")


def _is_of_gpu(failure: Failure | None, script: Script) -> bool:
    """Whether an exception of a repository's program is about the GPU that it was run without."""
    if failure is None or not script.command or all(fix.why != NO_GPU for fix in script.fixes):
        return False
    code = failure.innermost.code if failure.innermost is not None else ""
    return bool(_OF_GPU.search(failure.message) or _GPU_CHECK.search(code))


def _without_gpu(judgement: Judgement) -> Judgement:
    """What a run on the CPU shows of a failure that is about a GPU."""
    what = f"without a GPU, {judgement.evidence or judgement.reason} says nothing"
    failure = SetupFailure(id="no-gpu", what=what[:200], rewrite="cpu", hardware="a GPU")
    update = {"match": Match.SETUP_FAILURE, "reason": what, "setup_failure": failure}
    return judgement.model_copy(update=update)


def _reporters_file(failure: Failure | None, script: Script) -> dict[str, object]:
    """What becomes of a match with the failure to open a file that only the reporter has: it would
    arise here whatever the library does. A path that the program names twice may be its own work.
    """
    if failure is None or failure.exception != "FileNotFoundError" or script.command:
        return {}
    frame = failure.script_frame
    path = missing.path_in([failure.message], frame.code if frame is not None else "")
    setup_failure = setup_failures.recognise(failure.exception, failure.message)
    if setup_failure is None or not path or script.source.count(path) != 1:
        return {}
    what = f"`{path}` is not here, so that the failure to open it says nothing"
    return {"match": Match.SETUP_FAILURE, "reason": what, "setup_failure": setup_failure}


def _is_filled_in(failure: Failure | None) -> bool:
    """Whether an exception arose where a program was given a value that its report left open."""
    own = [frame for frame in failure.frames if not frame.package] if failure else []
    return bool(own) and FILLED in own[-1].code


def _member(observation: Observation, member: Member, script: Script) -> Judgement:
    match member:
        case CrashSignature():
            return judge_crash(observation, member, script)
        case OutputSignature():
            return judge_output(observation, member, script)
        case NonFiniteSignature():
            return judge_nonfinite(observation, member, script)
        case WarningSignature():
            return _warning(observation, member)
        case ObservationSignature():
            return _observation(observation, member)
        case HangSignature():
            return _hang(observation, member)
        case TrainingSignature():
            return judge_training(observation, member, script)
        case FailedTestSignature():
            return _failed_test(observation, member, script)


def _warning(observation: Observation, signature: WarningSignature) -> Judgement:
    everything = (*observation.errors.splitlines(), *observation.printed)
    lines = wording.lines(everything, signature)
    if len(lines) >= signature.at_least:
        return matched("the reported warning was issued", lines[0])
    near = "\n".join(wording.nearest(everything))
    counts = f"the reported warning was issued {len(lines)} of at least {signature.at_least} times"
    return passed(counts, near)


def _observation(observation: Observation, signature: ObservationSignature) -> Judgement:
    is_as_reported, observed_text = values.outcome(signature, observation.printed)
    if is_as_reported is None:
        return undecided(f"`{signature.name}` is inconclusive: {observed_text}"[:EVIDENCE])
    state = "was observed as reported" if is_as_reported else "has the right value"
    return Judgement(
        match=Match.MATCHED if is_as_reported else Match.PASSED,
        reason=f"`{signature.name}` {state}",
        evidence=f"{signature.name} = {observed_text}"[:EVIDENCE],
        value=_number(observed_text),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_FAILED_TEST = re.compile(
    r"^FAILED (?:(?P<path>\S{1,300}?\.py)?\S{0,300}::)?(?P<name>\w{1,200})(?:\[.{0,300}\])?"
    r"(?: - (?P<words>.*))?$"
)
_TEST_TITLE = re.compile(
    r"^_{3,} (?:\w{1,100}\.){0,4}(?P<name>test_\w{1,200})(?:\[.{0,300}\])? _{3,}$"
)
_TESTS_PASSED = re.compile(r"\b\d{1,6} passed\b")
_TESTS_FAILED, _PYTEST = 1, ("-m", "pytest")


_ASSERTS = ("assert", "AssertionError")


def _is_assertion(words: str | None) -> bool:
    """Whether pytest says of a test that an assertion of it failed."""
    return words is not None and words.startswith(_ASSERTS)


def _failed_test(
    observation: Observation, signature: FailedTestSignature, script: Script
) -> Judgement:
    """A test that fails by an assertion: what else ends one may be missing here."""
    if script.command[:2] != _PYTEST:
        return undecided("the program is no run of the tests")
    lines = [line.rstrip()[:2000] for line in observation.printed]
    if observation.exit_code == 0:
        summary = next((line for line in reversed(lines) if _TESTS_PASSED.search(line)), "")
        return passed("the tests passed", summary) if summary else undecided("no test was run")
    rows = dict[str, str]()
    for match in filter(None, map(_FAILED_TEST.match, lines)):
        words, file = match["words"] or "", PurePosixPath(match["path"] or "").stem
        rows |= {name: words for name in (match["name"], file) if not _is_assertion(rows.get(name))}
    titles = {match["name"] for match in map(_TEST_TITLE.match, lines) if match}
    failures = flatten(observation.failures)
    assertion = next((row for row in failures if row.exception.endswith("AssertionError")), None)
    other: Failure | None = None
    for name in signature.tests if observation.exit_code == _TESTS_FAILED else ():
        words, is_failed = rows.get(name, ""), name in titles | set(rows)
        if _is_assertion(words) or (is_failed and not words and assertion is not None):
            evidence = f"{name}: {words}".rstrip(": ")
            return matched(f"the test {name} failed", evidence, assertion)
        if is_failed:
            other = observation.escaped
    if other is None:
        return undecided("the tests did not end in a failed assertion", "\n".join(lines[-3:]))
    why = "the test failed, by another error than an assertion"
    return undecided(why, last_line(other)).model_copy(update={"failure": other})


def _hang(observation: Observation, signature: HangSignature) -> Judgement:
    if observation.idle or (observation.timed_out and not signature.idle):
        state = "no progress within" if observation.idle else "still running after"
        return matched(f"{state} {signature.bound_s:g} s", observation.errors[-EVIDENCE:])
    if observation.timed_out:
        return undecided("the program was still working at the time limit; a hang would be idle")
    return passed(f"the program finished after {observation.seconds:.1f} s")


def _setup_failure(observation: Observation) -> Judgement | None:
    """The environment's own failure, when that is what ended the run (or what a program that
    exits with an error has printed).
    """
    failure = observation.escaped
    if failure is None:
        if observation.exit_code == 0 and not observation.failures:
            return None
        # A line without an end would take the patterns minutes.
        text = (
            observation.errors[-4000:]
            + "\n"
            + "\n".join(line[-500:] for line in observation.output[-40:])
        )
        setup_failure = setup_failures.recognise("", text)
    elif not failure.frames and failure.exception in _UNREADABLE:
        what = f"{failure.exception}: {failure.message}"
        setup_failure = SetupFailure(id="syntax", what=what, needs=_READABLE)
    else:
        chained_failures = flatten((failure,))
        if failure.exception.rsplit(".", 1)[-1] in _CHILD_DIED or _WORKER.search(failure.message):
            chained_failures += flatten(
                tuple(one for one in observation.failures if one.swallowed and one.bases)
            )
        recognitions = (
            setup_failures.recognise(one.exception, one.message) for one in chained_failures
        )
        setup_failure = next(filter(None, recognitions), None)
    if setup_failure is None:
        return None
    reason = f"the environment failed first: {setup_failure.what}"
    return Judgement(
        match=Match.SETUP_FAILURE, reason=reason, failure=failure, setup_failure=setup_failure
    )


def _unmet(observation: Observation, verdicts: list[Judgement]) -> Judgement:
    best = next((row for row in verdicts if row.match is Match.UNDECIDED), verdicts[0])
    if observation.timed_out or observation.idle:
        ending = "the run was stopped before it could decide"
        return undecided(ending if best.match is Match.PASSED else best.reason)
    if observation.oom:
        return undecided("the program exceeded the memory limit")
    if best.match is Match.UNDECIDED and best.failure is not None:
        return best  # the reported exception in other words
    if (failure := observation.escaped) is not None:
        evidence = last_line(failure)[:EVIDENCE]
        fields = {"reason": best.reason, "evidence": evidence, "weighed": best.weighed}
        return Judgement(match=Match.OTHER, failure=failure, **fields)
    if observation.exit_code:
        ending = f"the program exited with status {observation.exit_code}"
        return Judgement(match=Match.OTHER, reason=ending, evidence=observation.errors[-EVIDENCE:])
    return best
