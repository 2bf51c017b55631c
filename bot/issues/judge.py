"""Compares a run with the frozen signature. Only this module decides what a run shows; no
model is asked.
"""

import builtins
import math
import re
from collections.abc import Iterator
from itertools import chain, starmap

from bot.environment import missing, setup_failures
from bot.issues.observe import Observation, flatten
from bot.issues.script_fixes import FILLED, NO_GPU
from bot.issues.signature import copied, freeze, locations, references, staged, values, wording
from bot.kernel import metrics, tracebacks, usage_errors
from bot.kernel.attempt import Evidence, Failure, Judgement, Match, Script, SetupFailure
from bot.kernel.bug import (
    AnySignature,
    CrashSignature,
    FailedTestSignature,
    Frame,
    HangSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    OutputSignature,
    TrainingSignature,
    WarningSignature,
    members_of,
)
from bot.kernel.tree_programs import GUESSED

# Compares an exception with a crash signature: class, words, shapes, place, and whether the
# program itself raised it on purpose.

_STRICT = 0.95


def weigh(
    failure: Failure, signature: CrashSignature, script: Script, names: frozenset[str]
) -> tuple[Evidence, ...]:
    """What each piece of an exception of the reported class says, up to the first that speaks
    against it.
    """
    evidence: list[Evidence] = []
    for piece in _pieces(failure, signature, script, names):
        evidence.append(piece)
        if not piece.agrees:
            break
    return tuple(evidence)


def _pieces(
    failure: Failure, signature: CrashSignature, script: Script, names: frozenset[str]
) -> Iterator[Evidence]:
    yield Evidence(what="class", says=_class(failure, signature))
    if signature.checks:
        yield _check_evidence(failure, signature, names)
        return
    alike = wording.likeness(signature.message, failure.message, names)
    yield from _words(failure, signature, alike, names)
    is_copy = copied.is_repositorys(failure, script)
    if is_copy:  # the way to it is shorter now
        signature = signature.model_copy(update={"places": signature.places[-1:]})
    yield from _where(failure, signature, worded=_is_worded(signature.message, alike))
    # What the repository under test raises is its own failure, not a staged one.
    if not (script.is_repositorys or is_copy) and _by_itself(failure, signature, script):
        says = "the program itself raises or prints this error"
        yield Evidence(what="origin", agrees=False, says=says)


def _class(failure: Failure, signature: CrashSignature) -> str:
    one, other = (name.rsplit(".", 1)[-1] for name in (signature.exception, failure.exception))
    return other if one in {other, ""} else f"{other}, reported as {one}"


def _words(
    failure: Failure, signature: CrashSignature, alike: float, names: frozenset[str]
) -> Iterator[Evidence]:
    is_specific = signature.message or signature.frame or signature.exception.startswith("SIG")
    if failure.message.strip() and not is_specific:
        yield Evidence(what="words", agrees=False, says="the reported exception has no message")
    elif signature.message:
        agrees = alike >= wording.ENOUGH or _is_restyled(failure, signature, names)
        says = "" if agrees else f"the message differs (similarity {alike:.2f})"
        yield Evidence(what="words", agrees=agrees, score=alike, says=says)
    reported_axes, observed_axes = wording.axes(signature.message), wording.axes(failure.message)
    same = wording.same_shapes(signature.shapes, failure.message)
    axes = not reported_axes or not observed_axes or bool(reported_axes & observed_axes)
    if signature.shapes or not axes:
        observed_shapes = ", ".join(wording.shapes(failure.message)) or "none"
        shapes = ", ".join(signature.shapes)
        says = f"the operand shapes differ: {shapes} reported, {observed_shapes} observed"
        says = shapes if same else says
        says = says if axes else "it concerns another axis"
        yield Evidence(what="shapes", agrees=same and axes, says=says)


def _is_restyled(failure: Failure, signature: CrashSignature, names: frozenset[str]) -> bool:
    """Whether a class of the library's own, in its place, has the words in other forms only."""
    own = not hasattr(builtins, failure.exception.rsplit(".", 1)[-1])
    alike = own and wording.same_stems(signature.message, failure.message, names)
    return alike and is_placed(failure, signature)


def is_placed(failure: Failure, signature: CrashSignature) -> bool:
    """Whether an exception arose in the library where the report says."""
    return any(piece.agrees for piece in _where(failure, signature, worded=False))


def may_be_reworded(failure: Failure, signature: CrashSignature, names: frozenset[str]) -> bool:
    """Whether an exception of the reported class and other words may be the reported one: it
    arose in its place or, where the report shows none, has most of its words.
    """
    where = list(_where(failure, signature, worded=False))
    mostly = wording.mostly(signature.message, failure.message, names)
    return where[0].agrees if where else mostly


def _where(failure: Failure, signature: CrashSignature, *, worded: bool) -> Iterator[Evidence]:
    location = signature.frame or (signature.places and signature.places[-1].file)
    if not location or not failure.frames:
        return
    if signature.places:
        agrees = locations.same(signature.places, failure, is_reworded=worded)
    else:  # only a file is known; for words that are plain enough its package will do
        top = signature.frame.partition("/")[0]
        agrees = any(
            frame.module_path == signature.frame or (worded and frame.package == top)
            for frame in failure.frames
        )
    place = f"{location} {signature.function}".strip()
    says = place if agrees else f"it was not raised in {location}"
    yield Evidence(what="place", agrees=agrees, says=says)


def _is_worded(message: str, alike: float) -> bool:
    """Whether the words alone identify a failure."""
    return alike >= _STRICT and len(wording.tokens(wording.core(message))) >= 4


def _check_evidence(failure: Failure, signature: CrashSignature, names: frozenset[str]) -> Evidence:
    if signature.exception.rsplit(".", 1)[-1] == "AssertionError":
        agrees, other = _is_check(failure, signature.checks), "a different assertion failed"
    else:
        agrees, other = (
            locations.fails(failure, signature, names),
            "it was not raised by the reported statement",
        )
    return Evidence(what="check", agrees=agrees, says=signature.checks[0] if agrees else other)


def _is_check(failure: Failure, checks: tuple[str, ...]) -> bool:
    texts = [" ".join(check.split()) for check in checks]
    codes = [
        " ".join(frame.code.split()) for frame in failure.frames if not frame.package and frame.code
    ]
    return any(code in text or text in code for text in texts for code in codes[-2:])


def _by_itself(failure: Failure, signature: CrashSignature, script: Script) -> bool:
    last = failure.innermost
    is_raised = last is not None and not last.package and last.code.strip().startswith("raise")
    if last is not None and is_raised:
        own = staged.raised_by_itself(script.source, last.line, last.code)
        if signature.frame or own:
            return True
    words = signature.message or failure.message
    is_printed = not failure.bases  # read off the output: only the probe tells of base classes
    is_self_made = staged.self_made(script.source, signature.exception, words, prints=is_printed)
    return bool(is_self_made)


_ARRAY = 4
_EVIDENCE = 600
_FEW_LINES = 8  # among more printed lines a single value of a sentence stands somewhere by chance
# What a process says of one it has started that ended before its time. Why is in that one's trace.
_CHILD_DIED = {
    *("EOFError", "BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError"),
    *("BrokenProcessPool", "BrokenExecutor", "ProcessExitedException", "ProcessRaisedException"),
    *("TerminatedWorkerError", "ChildFailedError"),
}
_WORKER = re.compile(
    r"\b(?:worker|process)\b.{0,80}\b(?:exited|died|terminated|failed)", re.I | re.S
)
_LEVEL = re.compile(r"\b(?:ERROR|CRITICAL|WARNING|Error|Warning|E\d{4})\b")
_UNREADABLE = {"SyntaxError", "IndentationError", "TabError"}
_Arrays = list[tuple[str, list[tuple[str, str]]]]
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
        return _undecided(observation.refused[0])
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
        reading.printed and _output(observation, reading.printed, script).match is not Match.MATCHED
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
    if judgement.match is Match.MATCHED and _is_filled_in(judgement.failure):
        inconclusive = _undecided("the failure arises from a value that the bug report leaves open")
        return inconclusive.model_copy(update={"failure": judgement.failure})
    if judgement.match is Match.MATCHED and _is_of_gpu(judgement.failure, script):
        return _without_gpu(judgement)
    if judgement.match is Match.MATCHED and (absent := _reporters_file(judgement.failure, script)):
        return judgement.model_copy(update=absent)
    is_match = judgement.match is Match.MATCHED
    is_settled = is_match or judgement.match is Match.PASSED
    if isinstance(member, CrashSignature) and is_settled:
        why = _says_nothing(member, script, is_match=is_match)
        judgement = _undecided(why) if why else judgement
    for candidate in (
        (member, reported_member) if isinstance(reported_member, CrashSignature) else (member,)
    ):
        if script.is_repositorys or copied.is_repositorys(judgement.failure, script):
            break
        if judgement.match is Match.MATCHED and (line := staged.staged(script.source, candidate)):
            return _passed(f"the program itself causes it: {line[:120]}")
    return judgement


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
            return _crash(observation, member, script)
        case OutputSignature():
            return _output(observation, member, script)
        case NonFiniteSignature():
            return _nonfinite(observation, member, script)
        case WarningSignature():
            return _warning(observation, member)
        case ObservationSignature():
            return _observation(observation, member)
        case HangSignature():
            return _hang(observation, member)
        case TrainingSignature():
            return _training(observation, member, script)
        case FailedTestSignature():
            return _failed_test(observation, member, script)


def _matched(reason: str, evidence: str, failure: Failure | None = None) -> Judgement:
    return Judgement(
        match=Match.MATCHED, reason=reason, evidence=evidence[:_EVIDENCE], failure=failure
    )


def _passed(reason: str, evidence: str = "") -> Judgement:
    return Judgement(match=Match.PASSED, reason=reason, evidence=evidence[:_EVIDENCE])


def _contrary(reason: str, evidence: str) -> Judgement:
    return _passed(reason, evidence).model_copy(update={"contrary": True})


def _undecided(reason: str, evidence: str = "") -> Judgement:
    return Judgement(match=Match.UNDECIDED, reason=reason, evidence=evidence[:_EVIDENCE])


def _crash(observation: Observation, signature: CrashSignature, script: Script) -> Judgement:
    names = staged.own_names(script.source)
    closest: tuple[Evidence, ...] = ()
    reworded_failure: Failure | None = None
    elsewhere: Failure | None = None
    for failure in (
        *flatten(observation.failures),
        *_logged_failures(observation, signature),
        *_exit_failures(observation, signature),
    ):
        failure = _placed(failure, signature, script)
        alike = _in_one_class(failure, signature)
        if alike is None or setup_failures.made_here(failure.message):
            continue
        if _is_bare_line(failure) and signature.places and not staged.handles(script.source):
            continue
        evidence = weigh(*alike, script, names)
        if evidence[-1].agrees:
            # Only the probe tells of base classes: this one was read off what was printed.
            is_caught = failure.swallowed and not failure.bases
            how = "was caught, and printed or logged" if is_caught else "was raised"
            judgement = _matched(f"{failure.exception} {how}", _last_line(failure), failure)
            return judgement.model_copy(update={"weighed": evidence})
        closest = max(closest, evidence, key=len)
        if _names_only_class(signature) and not failure.swallowed:
            elsewhere = failure
        if evidence[-1].what == "words" and may_be_reworded(failure, signature, names):
            reworded_failure = failure
    if reworded_failure is not None or elsewhere is not None:
        return _doubtful(signature, closest, reworded_failure, elsewhere)
    if signature.checks and not signature.exception:
        inconclusive = _undecided("the bug report names a statement that fails, but not how")
        return inconclusive.model_copy(update={"weighed": closest, "failure": observation.escaped})
    why = closest[-1].says if closest else "the reported exception did not occur"
    return _passed(why).model_copy(update={"weighed": closest})


def _names_only_class(signature: CrashSignature) -> bool:
    """Whether a class and a statement are all that is known; an assertion is its own place."""
    name = signature.exception.rsplit(".", 1)[-1]
    return bool(signature.checks) and name not in {"", "AssertionError"}


def _doubtful(
    signature: CrashSignature,
    closest: tuple[Evidence, ...],
    reworded_failure: Failure | None,
    elsewhere: Failure | None,
) -> Judgement:
    """A run with the reported class, whose words or statement are others: another release may word
    it otherwise, and the statement may be one that rules have guessed.
    """
    failure = reworded_failure or elsewhere
    assert failure is not None
    if reworded_failure is not None:
        where = " in the same place" if is_placed(reworded_failure, signature) else ""
        why = f"the same exception arose{where}, with another message"
    else:
        why = "the reported exception arose at another statement than the bug report seems to mean"
    inconclusive = _undecided(why, _last_line(failure))
    return inconclusive.model_copy(update={"weighed": closest, "failure": failure})


def _placed(failure: Failure, signature: CrashSignature, script: Script) -> Failure:
    """A failure whose frames in code of the repository under test are named as its own."""
    if script.command:
        return _in_tree(failure, signature, script)
    return copied.with_places(failure, script) if script.fault_code is not None else failure


def _in_tree(failure: Failure, signature: CrashSignature, script: Script) -> Failure:
    """A failure whose frames in files of the repository are called as the report calls them: it
    may have them below a folder of the repository's name. What lies beside a program of ours is
    the repository's, not the program's own.
    """
    files = [signature.frame, *(place.file for place in signature.places)]
    rows = [(frame, _reported_file(frame, files, script)) for frame in failure.frames]
    frames = tuple(
        frame.model_copy(update={"module_path": file, "package": file.partition("/")[0]})
        if file
        else frame
        for frame, file in rows
    )
    return failure.model_copy(update={"frames": frames})


def _reported_file(frame: Frame, files: list[str], script: Script) -> str:
    if frame.package:
        return ""
    ends = ((file, file.partition("/")[2] or file) for file in files if file)
    file = next((file for file, end in ends if f"/{frame.path}".endswith(f"/{end}")), "")
    is_program = script.is_repositorys or frame.path.endswith(script.entry)
    return file or ("" if is_program else frame.path.lstrip("/"))


def _in_one_class(
    failure: Failure, signature: CrashSignature
) -> tuple[Failure, CrashSignature] | None:
    """Both as they are compared: in the words of one version of Python where another raises the
    same failure under another class; None where the classes differ otherwise.
    """
    if wording.same_exception(signature.exception, failure.exception, failure.bases):
        return failure, signature
    shared = wording.as_reclassed(
        (signature.exception, signature.message), (failure.exception, failure.message)
    )
    if shared is None:
        return None
    both = {"exception": shared[0], "message": shared[1]}
    return failure.model_copy(update=both), signature.model_copy(update=both | {"shapes": ()})


def _is_bare_line(failure: Failure) -> bool:
    """Whether all that is known is a printed line. Where the report shows the place, such a line
    tells of the failure only if the program prints what it catches: anything may print a line.
    """
    return failure.swallowed and not failure.bases and not failure.frames


def _logged_failures(observation: Observation, signature: CrashSignature) -> list[Failure]:
    """The exceptions that lines of a log name, for a report that shows no more of one either."""
    lines = (line for line in observation.errors.splitlines() if _LEVEL.search(line))
    matches = (tracebacks.INLINE.search(line) for line in lines if not signature.places)
    return [
        Failure(exception=match["exc"], message=match["msg"], swallowed=True)
        for match in matches
        if match is not None
    ]


def _exit_failures(observation: Observation, signature: CrashSignature) -> list[Failure]:
    """The exit that a command-line tool asked for: Python shows no traceback of it, the last line
    that the tool wrote says why.
    """
    lines = [line.strip() for line in observation.errors.splitlines() if line.strip()]
    if (
        observation.escaped is not None
        or not observation.exit_code
        or not lines
        or not signature.message
    ):
        return []
    if usage_errors.usage_error(signature.message):
        messages = [row.traceback.message for row in usage_errors.find_usage_errors(lines)]
        is_refusal = messages and observation.exit_code == usage_errors.EXIT_STATUS
        lines = messages if is_refusal else []
    return [Failure(exception=usage_errors.EXCEPTION, message=line) for line in lines[-1:]]


def _says_nothing(signature: CrashSignature, script: Script, *, is_match: bool) -> str:
    """Why a run says nothing about a reported usage error: arguments are missing from whatever is
    started without them, and what a command does not pass cannot be refused.
    """
    message = usage_errors.usage_error(signature.message)
    if is_match and usage_errors.is_about_missing(message):
        is_guess = any(fix.why == GUESSED for fix in script.fixes)
        return "the program was started without arguments, which it asks for" if is_guess else ""
    if not is_match and script.command:
        options = usage_errors.refused_options(message)
        passed_options = {word.partition("=")[0] for word in script.command}
        if options and passed_options.isdisjoint(options):
            return f"the command does not pass {options[0]}, which the reported error refuses"
    return ""


def _last_line(failure: Failure) -> str:
    return f"{failure.exception}: {failure.message}" if failure.message else failure.exception


def _output(
    observation: Observation, reported_signature: OutputSignature, script: Script
) -> Judgement:
    comparable = {
        "observed": values.clean_chunks(reported_signature.observed),
        "expected": values.clean_chunks(reported_signature.expected),
    }
    signature = reported_signature.model_copy(update=comparable)
    place = _sentence if signature.within_line else _chunks
    # What the program prints beside as right is neither the failure nor its absence.
    right, unsure = references.right_lines(script.source, observation.output)
    own = _without(observation, right)
    evidence = place(own if signature.within_line else observation, signature.observed, signature)
    denied = place(own, signature.expected, signature) if signature.expected else None
    surely = _without(observation, right | unsure) if unsure else own
    if denied and evidence and not place(surely, signature.expected, signature):
        return _undecided("the expected value may be the one that the program prints beside")
    if denied:
        return _contrary("the expected output was printed", "\n".join(denied))
    if evidence and signature.within_line and len(own.output) > _FEW_LINES:
        return _undecided("too much was printed to tell which value the bug report means")
    if evidence:
        return _matched("the reported output was printed", "\n".join(evidence))
    return _unmet_output(own, signature)


def _without(observation: Observation, places: frozenset[int]) -> Observation:
    """A run without some of the printed lines."""
    if not places:
        return observation
    fields = {"output": observation.output, "told": observation.told}
    update = {
        name: tuple(line for at, line in enumerate(lines) if at not in places)
        for name, lines in fields.items()
    }
    return observation.model_copy(update=update)


def _unmet_output(observation: Observation, signature: OutputSignature) -> Judgement:
    """What a run shows whose output is neither the reported nor the expected one."""
    arrays, last_lines = _arrays(observation, signature), "\n".join(observation.told[-10:])
    if line := _expected_line(arrays, signature):
        why = "the expected values were printed where the bug report shows non-finite ones"
        return _contrary(why, line)
    partly = _still(arrays)
    if partly and not _fixed(arrays, signature):
        return _matched("non-finite values were printed where the bug report shows them", partly)
    if _skeleton(observation, signature):
        return _undecided("the same lines were printed with different numbers", last_lines)
    if partly:
        return _undecided("some of the reported non-finite values were printed", partly)
    if _finite_instead(observation, signature):
        return _contrary("finite values were printed where the bug report shows others", last_lines)
    return _passed("the reported output was not printed", last_lines)


def _chunks(
    observation: Observation, chunks: tuple[values.Chunk, ...], signature: OutputSignature
) -> list[str] | None:
    """The lines that hold all chunks, or None."""
    lines: list[str] = []
    for chunk in chunks:
        place = values.values_hold(chunk, list(observation.output), signature.rtol, signature.atol)
        if place is None:
            return None
        lines.extend(observation.told[place[0] : place[1]])
    return lines


def _sentence(
    observation: Observation, chunks: tuple[values.Chunk, ...], signature: OutputSignature
) -> list[str] | None:
    at = values.within(chunks[0][0], list(observation.output), signature.rtol, signature.atol)
    return None if at is None else [observation.told[at]]


def _skeleton(observation: Observation, signature: OutputSignature) -> bool:
    """Whether all reported lines were printed with other numbers in them, finite ones only for
    finite ones.
    """
    alike = {(values.skeleton(line), bool(values.nonfinite(line))) for line in observation.output}
    return not signature.within_line and all(
        (values.skeleton(line), bool(values.nonfinite(line))) in alike
        for line in chain.from_iterable(signature.observed)
    )


def _finite_instead(observation: Observation, signature: OutputSignature) -> bool:
    """Whether each reported line with a non-finite value was printed with finite ones."""
    nonfinite_lines = [
        line for line in chain.from_iterable(signature.observed) if values.nonfinite(line)
    ]
    finite = {values.skeleton(line) for line in observation.output if not values.nonfinite(line)}
    return bool(nonfinite_lines) and all(
        values.skeleton(line) in finite for line in nonfinite_lines
    )


def _fixed(arrays: _Arrays, signature: OutputSignature) -> bool:
    """Whether a printed array has a number of the report in its place, and finite ones where the
    report shows non-finite ones.

    Which entries of a random array are non-finite is chance; that some are is the failure. An array
    that has a number of the report in its place (a whole number may stand there by chance) is no
    random one: there every entry counts.
    """
    every = (_pairs(line, printed_line) for line, rows in arrays for printed_line, _ in rows)
    return any(
        any(starmap(_became, pairs))
        and any(
            values.same_number(one, now, signature.rtol, 0.0)
            for one, now in pairs
            if math.isfinite(one) and not one.is_integer()
        )
        for pairs in every
    )


def _still(arrays: _Arrays) -> str:
    """A printed array that has non-finite numbers as the reported one has."""
    matches = (
        raw_line[:_EVIDENCE]
        for line, rows in arrays
        for printed_line, raw_line in rows
        if values.nonfinite(printed_line) & values.nonfinite(line)
    )
    return next(matches, "")


def _expected_line(arrays: _Arrays, signature: OutputSignature) -> str:
    """A printed array with numbers that the report expects where it shows non-finite ones; ""
    when one of its arrays is as before, unless that holds all that is expected, as a reference
    does that a program prints beside.
    """
    expected = (values.numbers(line) for line in chain.from_iterable(signature.expected))
    right = [number for number in chain.from_iterable(expected) if math.isfinite(number)]
    evidence = ""
    for line, rows in arrays if right else ():
        for printed_line, raw_line in rows:
            new_numbers = [now for one, now in _pairs(line, printed_line) if _became(one, now)]
            if new_numbers and all(_among(now, right, signature) for now in new_numbers):
                evidence = raw_line
            elif not all(
                _among(number, list(values.numbers(printed_line)), signature) for number in right
            ):
                return ""
        if not rows:
            return ""
    return evidence


def _pairs(line: str, printed_line: str) -> list[tuple[float, float]]:
    return list(zip(values.numbers(line), values.numbers(printed_line), strict=True))


def _became(before: float, now: float) -> bool:
    return math.isfinite(now) and not math.isfinite(before)


def _among(number: float, others: list[float], signature: OutputSignature) -> bool:
    return any(
        values.same_number(number, other, signature.rtol, signature.atol) for other in others
    )


def _arrays(observation: Observation, signature: OutputSignature) -> _Arrays:
    """The reported lines that hold an array with non-finite numbers, each with what was printed
    in its place, as it is compared and as it is shown: lines that are alike but for their
    numbers, the very one where as many were printed as are reported.
    """
    lines, arrays = [*chain.from_iterable(signature.observed)], _Arrays()
    for at, line in enumerate(lines):
        if values.nonfinite(line) and values.count(line) >= _ARRAY:
            kind = values.skeleton(line)
            output_rows = zip(observation.output, observation.told, strict=True)
            rows = [row for row in output_rows if values.skeleton(row[0]) == kind]
            like = [number for number, line in enumerate(lines) if values.skeleton(line) == kind]
            arrays.append((line, [rows[like.index(at)]] if len(rows) == len(like) else rows))
    return arrays


def _nonfinite(
    observation: Observation, signature: NonFiniteSignature, script: Script
) -> Judgement:
    pattern = re.compile(
        rf"(?<![\w.])-?(?:{'|'.join(signature.values)})(?:inity)?(?!\w)", re.IGNORECASE
    )
    numbered = enumerate(zip(observation.output, observation.told, strict=True))
    rows = [(at, *row) for at, row in numbered if pattern.search(row[0])]
    constant = (
        {values.clean(line) for line in staged.constant_lines(script.source)} if rows else set()
    )
    rows = [row for row in rows if row[1] not in constant]
    right, unsure = references.right_lines(script.source, observation.output)
    labels = tuple(map(values.clean, signature.labels))
    for at, line, raw_line in rows:
        if at not in right | unsure and (not labels or any(label in line for label in labels)):
            return _matched("a non-finite value was printed", raw_line)
    if rows:
        return _undecided("a non-finite value was printed beside the reported one", rows[0][2])
    return _passed("every printed value was finite", "\n".join(observation.told[-5:]))


def _warning(observation: Observation, signature: WarningSignature) -> Judgement:
    everything = (*observation.errors.splitlines(), *observation.printed)
    lines = wording.lines(everything, signature)
    if len(lines) >= signature.at_least:
        return _matched("the reported warning was issued", lines[0])
    near = "\n".join(wording.nearest(everything))
    counts = f"the reported warning was issued {len(lines)} of at least {signature.at_least} times"
    return _passed(counts, near)


def _observation(observation: Observation, signature: ObservationSignature) -> Judgement:
    is_as_reported, observed_text = values.outcome(signature, observation.printed)
    if is_as_reported is None:
        return _undecided(f"`{signature.name}` is inconclusive: {observed_text}"[:_EVIDENCE])
    state = "was observed as reported" if is_as_reported else "has the expected value"
    return Judgement(
        match=Match.MATCHED if is_as_reported else Match.PASSED,
        reason=f"`{signature.name}` {state}",
        evidence=f"{signature.name} = {observed_text}"[:_EVIDENCE],
        value=_number(observed_text),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_COURSE = 3  # values that show whether a metric changes
_LEARNED = 0.1  # the least share of the way from a first value by which a training gets better


def _training(observation: Observation, signature: TrainingSignature, script: Script) -> Judgement:
    """A training whose last printed value is on the wrong side of the bound, or no better than the
    first one. What the program prints as a constant is not measured.
    """
    if observation.escaped is not None or observation.timed_out:
        return _undecided("the training did not come to its end")
    rows = list(_printed_values(observation, signature, script))
    if not rows or (signature.bound is None and len(rows) < _COURSE):
        return _undecided(f"the program prints no {signature.metric} to compare")
    (first, _), (last, line) = rows[0], rows[-1]
    if signature.bound is not None:
        has_failed = learns_too_little(last, signature)
        reason = f"{signature.metric} ended at {last:.4g}, the limit is {signature.bound:.4g}"
    else:
        goal = first + (1 - first if signature.direction == "max" else -abs(first)) * _LEARNED
        has_failed = not _is_better(last, goal, signature.direction)
        reason = f"{signature.metric} went from {first:.4g} to {last:.4g}"
    if not has_failed:
        return _contrary(reason, line).model_copy(update={"value": last})
    return _matched(reason, line).model_copy(update={"value": last})


def learns_too_little(value: float | None, signature: TrainingSignature) -> bool:
    """Whether a training that ended at a value of the metric fails as the signature says."""
    bound = signature.bound if signature.bound is not None else math.nan
    scaled = math.nan if value is None else _scaled(value, signature)
    return not _is_better(scaled, bound, signature.direction)


def _is_better(value: float, than: float, direction: str) -> bool:
    """NaN is never better."""
    return value > than if direction == "max" else value < than


def _printed_values(
    observation: Observation, signature: TrainingSignature, script: Script
) -> Iterator[tuple[float, str]]:
    """The values that the output gives to the metric, each with its line. Of several on a line,
    the last one: that of data which the training has not seen.
    """
    name = metrics.plain_name(signature.metric)
    constant = set(map(values.clean, staged.constant_lines(script.source)))
    for line in observation.told:
        numbers = [
            float(text)
            for printed_name, text in metrics.printed_metrics(line[-400:])
            if metrics.plain_name(printed_name) == name
        ]
        if numbers and values.clean(line) not in constant:
            yield _scaled(numbers[-1], signature, is_percent="%" in line), line


def _scaled(value: float, signature: TrainingSignature, *, is_percent: bool = False) -> float:
    """A value as the signature gives it: shares where its bound is one."""
    is_share = signature.direction == "max" and (signature.bound is None or signature.bound <= 1)
    return metrics.as_share(value, is_percent=is_percent) if is_share else value


_FAILED_TEST = re.compile(
    r"^FAILED (?:\S{1,300}::)?(?P<name>\w{1,200})(?:\[.{0,300}\])?(?: - (?P<words>.*))?$"
)
_TEST_TITLE = re.compile(
    r"^_{3,} (?:\w{1,100}\.){0,4}(?P<name>test_\w{1,200})(?:\[.{0,300}\])? _{3,}$"
)
_TESTS_PASSED = re.compile(r"\b\d{1,6} passed\b")
_TESTS_FAILED, _PYTEST = 1, ("-m", "pytest")
_ASSERTS = ("assert", "AssertionError")


def _failed_test(
    observation: Observation, signature: FailedTestSignature, script: Script
) -> Judgement:
    """A test that fails by an assertion: what else ends one may be missing here."""
    if script.command[:2] != _PYTEST:
        return _undecided("the program is no run of the tests")
    lines = [line.rstrip()[:2000] for line in observation.printed]
    if observation.exit_code == 0:
        summary = next((line for line in reversed(lines) if _TESTS_PASSED.search(line)), "")
        return _passed("the tests passed", summary) if summary else _undecided("no test was run")
    rows = {
        match["name"]: match["words"] or "" for match in map(_FAILED_TEST.match, lines) if match
    }
    titles = {match["name"] for match in map(_TEST_TITLE.match, lines) if match}
    failures = flatten(observation.failures)
    assertion = next((row for row in failures if row.exception.endswith("AssertionError")), None)
    other: Failure | None = None
    for name in signature.tests if observation.exit_code == _TESTS_FAILED else ():
        words, is_failed = rows.get(name, ""), name in titles | set(rows)
        if words.startswith(_ASSERTS) or (is_failed and not words and assertion is not None):
            evidence = f"{name}: {words}".rstrip(": ")
            return _matched(f"the test {name} failed", evidence, assertion)
        if is_failed:
            other = observation.escaped
    if other is None:
        return _undecided("the tests did not end in a failed assertion", "\n".join(lines[-3:]))
    why = "the test failed, by another error than an assertion"
    return _undecided(why, _last_line(other)).model_copy(update={"failure": other})


def _hang(observation: Observation, signature: HangSignature) -> Judgement:
    if observation.idle or (observation.timed_out and not signature.idle):
        state = "idle" if observation.idle else "still busy"
        return _matched(
            f"no progress within {signature.bound_s:g} s: {state}", observation.errors[-_EVIDENCE:]
        )
    if observation.timed_out:
        return _undecided("the program was still working at the time limit; a hang would be idle")
    return _passed(f"the program finished after {observation.seconds:.1f} s")


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
        return _undecided(ending if best.match is Match.PASSED else best.reason)
    if observation.oom:
        return _undecided("the program exceeded the memory limit")
    if best.match is Match.UNDECIDED and best.failure is not None:
        return best  # the reported exception in other words
    if (failure := observation.escaped) is not None:
        last_line = _last_line(failure)[:_EVIDENCE]
        fields = {"reason": best.reason, "evidence": last_line, "weighed": best.weighed}
        return Judgement(match=Match.OTHER, failure=failure, **fields)
    if observation.exit_code:
        ending = f"the program exited with status {observation.exit_code}"
        return Judgement(match=Match.OTHER, reason=ending, evidence=observation.errors[-_EVIDENCE:])
    return best
