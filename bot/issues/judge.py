"""Compares a run with the frozen signature. Only this module decides what a run shows; no
model is asked.
"""

import builtins
import math
import re
from collections.abc import Iterator
from itertools import chain, starmap

from bot.environment import setup_failures
from bot.issues.observe import Observation, flatten
from bot.issues.signature import freeze, locations, staged, values, wording
from bot.kernel import tracebacks
from bot.kernel.attempt import Evidence, Failure, Judgement, Match, Script, SetupFailure
from bot.kernel.bug import (
    AnySignature,
    CrashSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    OutputSignature,
    WarningSignature,
    members_of,
)

# Compares an exception with a crash signature: class, words, shapes, place, and whether the
# program itself raised it on purpose.

_STRICT = 0.95


def weigh(
    failure: Failure, wanted: CrashSignature, script: Script, names: frozenset[str]
) -> tuple[Evidence, ...]:
    """What each piece of an exception of the reported class says, up to the first that speaks
    against it.
    """
    weighed: list[Evidence] = []
    for piece in _pieces(failure, wanted, script, names):
        weighed.append(piece)
        if not piece.agrees:
            break
    return tuple(weighed)


def _pieces(
    failure: Failure, wanted: CrashSignature, script: Script, names: frozenset[str]
) -> Iterator[Evidence]:
    yield Evidence(what="class", says=_class(failure, wanted))
    if wanted.checks:
        yield _checked(failure, wanted)
        return
    alike = wording.likeness(wanted.message, failure.message, names)
    yield from _words(failure, wanted, alike, names)
    yield from _where(failure, wanted, worded=_is_worded(wanted.message, alike))
    if _by_itself(failure, wanted, script):
        says = "the program itself raises or prints this error"
        yield Evidence(what="origin", agrees=False, says=says)


def _class(failure: Failure, wanted: CrashSignature) -> str:
    one, other = (name.rsplit(".", 1)[-1] for name in (wanted.exception, failure.exception))
    return other if one in {other, ""} else f"{other}, reported as {one}"


def _words(
    failure: Failure, wanted: CrashSignature, alike: float, names: frozenset[str]
) -> Iterator[Evidence]:
    shown = wanted.message or wanted.frame or wanted.exception.startswith("SIG")
    if failure.message.strip() and not shown:
        yield Evidence(what="words", agrees=False, says="the reported exception has no message")
    elif wanted.message:
        agrees = alike >= wording.ENOUGH or _restyled(failure, wanted, names)
        says = "" if agrees else f"the message differs (similarity {alike:.2f})"
        yield Evidence(what="words", agrees=agrees, score=alike, says=says)
    reported, seen = wording.axes(wanted.message), wording.axes(failure.message)
    same = wording.same_shapes(wanted.shapes, failure.message)
    axes = not reported or not seen or bool(reported & seen)
    if wanted.shapes or not axes:
        got = ", ".join(wording.shapes(failure.message)) or "none"
        shapes = ", ".join(wanted.shapes)
        says = f"the operand shapes differ: {shapes} reported, {got} observed"
        says = shapes if same else says
        says = says if axes else "it concerns another axis"
        yield Evidence(what="shapes", agrees=same and axes, says=says)


def _restyled(failure: Failure, wanted: CrashSignature, names: frozenset[str]) -> bool:
    """Whether a class of the library's own, in its place, has the words in other forms only."""
    own = not hasattr(builtins, failure.exception.rsplit(".", 1)[-1])
    alike = own and wording.same_stems(wanted.message, failure.message, names)
    return alike and is_placed(failure, wanted)


def is_placed(failure: Failure, wanted: CrashSignature) -> bool:
    """Whether an exception arose in the library where the report says."""
    return any(piece.agrees for piece in _where(failure, wanted, worded=False))


def may_be_reworded(failure: Failure, wanted: CrashSignature, names: frozenset[str]) -> bool:
    """Whether an exception of the reported class and other words may be the reported one: it
    arose in its place or, where the report shows none, has most of its words.
    """
    where = list(_where(failure, wanted, worded=False))
    mostly = wording.mostly(wanted.message, failure.message, names)
    return where[0].agrees if where else mostly


def _where(failure: Failure, wanted: CrashSignature, *, worded: bool) -> Iterator[Evidence]:
    shown = wanted.frame or (wanted.places and wanted.places[-1].file)
    if not shown or not failure.frames:
        return
    if wanted.places:
        agrees = locations.same(wanted.places, failure, worded=worded)
    else:  # only a file is known; for words that are plain enough its package will do
        top = wanted.frame.partition("/")[0]
        agrees = any(
            frame.module_path == wanted.frame or (worded and frame.package == top)
            for frame in failure.frames
        )
    place = f"{shown} {wanted.function}".strip()
    says = place if agrees else f"it was not raised in {shown}"
    yield Evidence(what="place", agrees=agrees, says=says)


def _is_worded(message: str, alike: float) -> bool:
    """Whether the words alone identify a failure."""
    return alike >= _STRICT and len(wording.tokens(wording.core(message))) >= 4


def _checked(failure: Failure, wanted: CrashSignature) -> Evidence:
    if wanted.exception.rsplit(".", 1)[-1] == "AssertionError":
        agrees, other = _is_check(failure, wanted.checks), "a different assertion failed"
    else:
        agrees, other = (
            locations.fails(failure, wanted),
            "it was not raised by the reported statement",
        )
    return Evidence(what="check", agrees=agrees, says=wanted.checks[0] if agrees else other)


def _is_check(failure: Failure, checks: tuple[str, ...]) -> bool:
    texts = [" ".join(check.split()) for check in checks]
    codes = [
        " ".join(frame.code.split()) for frame in failure.frames if not frame.package and frame.code
    ]
    return any(code in text or text in code for text in texts for code in codes[-2:])


def _by_itself(failure: Failure, wanted: CrashSignature, script: Script) -> bool:
    last = failure.innermost
    raised = last is not None and not last.package and last.code.strip().startswith("raise")
    if last is not None and raised:
        own = staged.raised_by_itself(script.source, last.line, last.code)
        if wanted.frame or own:
            return True
    words = wanted.message or failure.message
    printed = not failure.bases  # read off the output: only the probe tells of base classes
    made = staged.self_made(script.source, wanted.exception, words, prints=printed)
    return bool(made)


# Compares a run with the frozen signature. Only this module decides what a run shows; no model is
# asked.

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


def judge(seen: Observation, signature: AnySignature, script: Script) -> Judgement:
    """What one run shows: the signature matched, no failure, another failure, a setup failure, or
    nothing that decides.
    """
    judgement = _judged(seen, signature, script)
    doubt = seen.doubt or _unsigned(seen, judgement)
    return judgement.model_copy(update={"doubt": doubt}) if doubt else judgement


def _unsigned(seen: Observation, judgement: Judgement) -> str:
    """Why a traced exception that counts may be made up: only the probe tells of base classes."""
    failure = judgement.failure
    traced = failure is not None and failure.bases and judgement.match is Match.MATCHED
    if not seen.keyed or not traced or failure in seen.signed:
        return ""
    return "only a trace that the probe did not sign shows the exception"


def _judged(seen: Observation, signature: AnySignature, script: Script) -> Judgement:
    if seen.refused:
        return _undecided(seen.refused[0])
    verdicts = [_either(seen, member, script) for member in members_of(signature)]
    for index, judgement in enumerate(verdicts):
        if judgement.match is Match.MATCHED:
            return judgement.model_copy(update={"member": index})
    return _setup_failure(seen) or _unmet(seen, verdicts)


def _either(seen: Observation, member: Member, script: Script) -> Judgement:
    """A member compared with a run; where that does not show it, the other reading of its words is
    tried.
    """
    judgement = _genuine(seen, member, script)
    reading = None if judgement.match is Match.MATCHED else freeze.other(member)
    if reading is None or (
        reading.printed and _output(seen, reading.printed).match is not Match.MATCHED
    ):
        return judgement
    other = _genuine(seen, reading.member, script, member)
    return other if other.match is Match.MATCHED else judgement


def _genuine(
    seen: Observation, member: Member, script: Script, reported: Member | None = None
) -> Judgement:
    """A member compared with a run, which shows nothing when the program itself causes the match.
    `reported` is the member of the signature that it replaces: a print in the place of an exception
    may not be staged in either way.
    """
    judgement = _member(seen, member, script)
    for each in (member, reported) if isinstance(reported, CrashSignature) else (member,):
        if judgement.match is Match.MATCHED and (line := staged.staged(script.source, each)):
            return _passed(f"the program itself causes it: {line[:120]}")
    return judgement


def _member(seen: Observation, member: Member, script: Script) -> Judgement:
    match member:
        case CrashSignature():
            return _crash(seen, member, script)
        case OutputSignature():
            return _output(seen, member)
        case NonFiniteSignature():
            return _nonfinite(seen, member, script)
        case WarningSignature():
            return _warning(seen, member)
        case ObservationSignature():
            return _observation(seen, member)
        case HangSignature():
            return _hang(seen, member)


def _met(reason: str, evidence: str, failure: Failure | None = None) -> Judgement:
    return Judgement(
        match=Match.MATCHED, reason=reason, evidence=evidence[:_EVIDENCE], failure=failure
    )


def _passed(reason: str, evidence: str = "") -> Judgement:
    return Judgement(match=Match.PASSED, reason=reason, evidence=evidence[:_EVIDENCE])


def _contrary(reason: str, evidence: str) -> Judgement:
    return _passed(reason, evidence).model_copy(update={"contrary": True})


def _undecided(reason: str, evidence: str = "") -> Judgement:
    return Judgement(match=Match.UNDECIDED, reason=reason, evidence=evidence[:_EVIDENCE])


def _crash(seen: Observation, wanted: CrashSignature, script: Script) -> Judgement:
    names = staged.own_names(script.source)
    closest: tuple[Evidence, ...] = ()
    reworded: Failure | None = None
    for failure in (*flatten(seen.failures), *_logged(seen, wanted), *_exited(seen, wanted)):
        same = wording.same_exception(wanted.exception, failure.exception, failure.bases)
        if not same or setup_failures.made_here(failure.message):
            continue
        if _is_bare_line(failure) and wanted.places and not staged.handles(script.source):
            continue
        weighed = weigh(failure, wanted, script, names)
        if weighed[-1].agrees:
            # Only the probe tells of base classes: this one was read off what was printed.
            caught = failure.swallowed and not failure.bases
            how = "was caught, and printed or logged" if caught else "was raised"
            met = _met(f"{failure.exception} {how}", _last_line(failure), failure)
            return met.model_copy(update={"weighed": weighed})
        closest = max(closest, weighed, key=len)
        if weighed[-1].what == "words" and may_be_reworded(failure, wanted, names):
            reworded = failure
    if reworded is not None:  # another release may word it otherwise
        where = " in the same place" if is_placed(reworded, wanted) else ""
        why = f"the same exception arose{where}, with another message"
        told = _undecided(why, _last_line(reworded))
        return told.model_copy(update={"weighed": closest, "failure": reworded})
    if wanted.checks and not wanted.exception:
        told = _undecided("the bug report names a statement that fails, but not how")
        return told.model_copy(update={"weighed": closest, "failure": seen.escaped})
    why = closest[-1].says if closest else "the reported exception did not occur"
    return _passed(why).model_copy(update={"weighed": closest})


def _is_bare_line(failure: Failure) -> bool:
    """Whether all that is known is a printed line. Where the report shows the place, such a line
    tells of the failure only if the program prints what it catches: anything may print a line.
    """
    return failure.swallowed and not failure.bases and not failure.frames


def _logged(seen: Observation, wanted: CrashSignature) -> list[Failure]:
    """The exceptions that lines of a log name, for a report that shows no more of one either."""
    lines = (line for line in seen.errors.splitlines() if _LEVEL.search(line))
    named = (tracebacks.INLINE.search(line) for line in lines if not wanted.places)
    return [
        Failure(exception=found["exc"], message=found["msg"], swallowed=True)
        for found in named
        if found is not None
    ]


def _exited(seen: Observation, wanted: CrashSignature) -> list[Failure]:
    """The exit that a command-line tool asked for: Python shows no traceback of it, the last line
    that the tool wrote says why.
    """
    written = [line.strip() for line in seen.errors.splitlines() if line.strip()]
    if seen.escaped is not None or not seen.exit_code or not written or not wanted.message:
        return []
    return [Failure(exception="SystemExit", message=written[-1])]


def _last_line(failure: Failure) -> str:
    return f"{failure.exception}: {failure.message}" if failure.message else failure.exception


def _output(seen: Observation, reported: OutputSignature) -> Judgement:
    comparable = {
        "observed": values.cleaned(reported.observed),
        "expected": values.cleaned(reported.expected),
    }
    wanted = reported.model_copy(update=comparable)
    place = _sentence if wanted.within_line else _chunks
    found = place(seen, wanted.observed, wanted)
    denied = place(seen, wanted.expected, wanted) if wanted.expected else None
    if denied:
        return _contrary("the expected output was printed", "\n".join(denied))
    if found and wanted.within_line and len(seen.output) > _FEW_LINES:
        return _undecided("too much was printed to tell which value the bug report means")
    if found:
        return _met("the reported output was printed", "\n".join(found))
    arrays, printed = _arrays(seen, wanted), "\n".join(seen.told[-10:])
    if line := _righted(arrays, wanted):
        why = "the expected values were printed where the bug report shows non-finite ones"
        return _contrary(why, line)
    partly = _still(arrays)
    if partly and not _fixed(arrays, wanted):
        return _met("non-finite values were printed where the bug report shows them", partly)
    if _skeleton(seen, wanted):
        return _undecided("the same lines were printed with different numbers", printed)
    if partly:
        return _undecided("some of the reported non-finite values were printed", partly)
    if _finite_instead(seen, wanted):
        return _contrary("finite values were printed where the bug report shows others", printed)
    return _passed("the reported output was not printed", printed)


def _chunks(
    seen: Observation, wanted: tuple[values.Chunk, ...], signature: OutputSignature
) -> list[str] | None:
    """The lines that hold all chunks, or None."""
    lines: list[str] = []
    for chunk in wanted:
        place = values.values_hold(chunk, list(seen.output), signature.rtol, signature.atol)
        if place is None:
            return None
        lines.extend(seen.told[place[0] : place[1]])
    return lines


def _sentence(
    seen: Observation, wanted: tuple[values.Chunk, ...], signature: OutputSignature
) -> list[str] | None:
    at = values.within(wanted[0][0], list(seen.output), signature.rtol, signature.atol)
    return None if at is None else [seen.told[at]]


def _skeleton(seen: Observation, wanted: OutputSignature) -> bool:
    """Whether all reported lines were printed with other numbers in them, finite ones only for
    finite ones.
    """
    alike = {(values.skeleton(line), bool(values.nonfinite(line))) for line in seen.output}
    return not wanted.within_line and all(
        (values.skeleton(line), bool(values.nonfinite(line))) in alike
        for line in chain.from_iterable(wanted.observed)
    )


def _finite_instead(seen: Observation, wanted: OutputSignature) -> bool:
    """Whether each reported line with a non-finite value was printed with finite ones."""
    shown = [line for line in chain.from_iterable(wanted.observed) if values.nonfinite(line)]
    finite = {values.skeleton(line) for line in seen.output if not values.nonfinite(line)}
    return bool(shown) and all(values.skeleton(line) in finite for line in shown)


def _fixed(arrays: _Arrays, wanted: OutputSignature) -> bool:
    """Whether a printed array has a number of the report in its place, and finite ones where the
    report shows non-finite ones.

    Which entries of a random array are non-finite is chance; that some are is the failure. An array
    that has a number of the report in its place (a whole number may stand there by chance) is no
    random one: there every entry counts.
    """
    every = (_pairs(line, printed) for line, rows in arrays for printed, _ in rows)
    return any(
        any(starmap(_became, pairs))
        and any(
            values.same_number(one, now, wanted.rtol, 0.0)
            for one, now in pairs
            if math.isfinite(one) and not one.is_integer()
        )
        for pairs in every
    )


def _still(arrays: _Arrays) -> str:
    """A printed array that has non-finite numbers as the reported one has."""
    found = (
        told[:_EVIDENCE]
        for line, rows in arrays
        for printed, told in rows
        if values.nonfinite(printed) & values.nonfinite(line)
    )
    return next(found, "")


def _righted(arrays: _Arrays, wanted: OutputSignature) -> str:
    """A printed array with numbers that the report expects where it shows non-finite ones; ""
    when one of its arrays is as before, unless that holds all that is expected, as a reference
    does that a program prints beside.
    """
    expected = (values.numbers(line) for line in chain.from_iterable(wanted.expected))
    right = [number for number in chain.from_iterable(expected) if math.isfinite(number)]
    found = ""
    for line, rows in arrays if right else ():
        for printed, told in rows:
            turned = [now for one, now in _pairs(line, printed) if _became(one, now)]
            if turned and all(_among(now, right, wanted) for now in turned):
                found = told
            elif not all(_among(number, list(values.numbers(printed)), wanted) for number in right):
                return ""
        if not rows:
            return ""
    return found


def _pairs(line: str, printed: str) -> list[tuple[float, float]]:
    return list(zip(values.numbers(line), values.numbers(printed), strict=True))


def _became(before: float, now: float) -> bool:
    return math.isfinite(now) and not math.isfinite(before)


def _among(number: float, others: list[float], wanted: OutputSignature) -> bool:
    return any(values.same_number(number, other, wanted.rtol, wanted.atol) for other in others)


def _arrays(seen: Observation, wanted: OutputSignature) -> _Arrays:
    """The reported lines that hold an array with non-finite numbers, each with what was printed
    in its place, as it is compared and as it is shown: lines that are alike but for their
    numbers, the very one where as many were printed as are reported.
    """
    lines, found = [*chain.from_iterable(wanted.observed)], _Arrays()
    for at, line in enumerate(lines):
        if values.nonfinite(line) and values.count(line) >= _ARRAY:
            kind = values.skeleton(line)
            shown = zip(seen.output, seen.told, strict=True)
            rows = [row for row in shown if values.skeleton(row[0]) == kind]
            like = [number for number, each in enumerate(lines) if values.skeleton(each) == kind]
            found.append((line, [rows[like.index(at)]] if len(rows) == len(like) else rows))
    return found


def _nonfinite(seen: Observation, wanted: NonFiniteSignature, script: Script) -> Judgement:
    pattern = re.compile(
        rf"(?<![\w.])-?(?:{'|'.join(wanted.values)})(?:inity)?(?!\w)", re.IGNORECASE
    )
    found = [
        (line, told)
        for line, told in zip(seen.output, seen.told, strict=True)
        if pattern.search(line)
    ]
    constant = (
        {values.clean(line) for line in staged.constant_lines(script.source)} if found else set()
    )
    for line, told in found:
        if line not in constant:
            return _met("a non-finite value was printed", told)
    return _passed("every printed value was finite", "\n".join(seen.told[-5:]))


def _warning(seen: Observation, wanted: WarningSignature) -> Judgement:
    everything = (*seen.errors.splitlines(), *seen.printed)
    lines = wording.lines(everything, wanted)
    if len(lines) >= wanted.at_least:
        return _met("the reported warning was issued", lines[0])
    near = "\n".join(wording.nearest(everything))
    given = f"the reported warning was issued {len(lines)} of at least {wanted.at_least} times"
    return _passed(given, near)


def _observation(seen: Observation, wanted: ObservationSignature) -> Judgement:
    reported, shown = values.outcome(wanted, seen.printed)
    if reported is None:
        return _undecided(f"`{wanted.name}` is inconclusive: {shown}"[:_EVIDENCE])
    state = "was observed as reported" if reported else "has the expected value"
    return Judgement(
        match=Match.MATCHED if reported else Match.PASSED,
        reason=f"`{wanted.name}` {state}",
        evidence=f"{wanted.name} = {shown}"[:_EVIDENCE],
        value=_number(shown),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _hang(seen: Observation, wanted: HangSignature) -> Judgement:
    if seen.idle or (seen.timed_out and not wanted.idle):
        state = "idle" if seen.idle else "still busy"
        return _met(f"no progress within {wanted.bound_s:g} s: {state}", seen.errors[-_EVIDENCE:])
    if seen.timed_out:
        return _undecided("the program was still working at the time limit; a hang would be idle")
    return _passed(f"the program finished after {seen.seconds:.1f} s")


def _setup_failure(seen: Observation) -> Judgement | None:
    """The environment's own failure, when that is what ended the run (or what a program that
    exits with an error has printed).
    """
    failure = seen.escaped
    if failure is None:
        if seen.exit_code == 0 and not seen.failures:
            return None
        # A line without an end would take the patterns minutes.
        text = seen.errors[-4000:] + "\n" + "\n".join(line[-500:] for line in seen.output[-40:])
        found = setup_failures.recognise("", text)
    elif not failure.frames and failure.exception in _UNREADABLE:
        what = f"{failure.exception}: {failure.message}"
        found = SetupFailure(id="syntax", what=what, needs=_READABLE)
    else:
        chained = flatten((failure,))
        if failure.exception.rsplit(".", 1)[-1] in _CHILD_DIED or _WORKER.search(failure.message):
            chained += flatten(tuple(one for one in seen.failures if one.swallowed and one.bases))
        known = (setup_failures.recognise(one.exception, one.message) for one in chained)
        found = next(filter(None, known), None)
    if found is None:
        return None
    reason = f"the environment failed first: {found.what}"
    return Judgement(match=Match.SETUP_FAILURE, reason=reason, failure=failure, setup_failure=found)


def _unmet(seen: Observation, verdicts: list[Judgement]) -> Judgement:
    best = next((row for row in verdicts if row.match is Match.UNDECIDED), verdicts[0])
    if seen.timed_out or seen.idle:
        ended = "the run was stopped before it could decide"
        return _undecided(ended if best.match is Match.PASSED else best.reason)
    if seen.oom:
        return _undecided("the program exceeded the memory limit")
    if best.match is Match.UNDECIDED and best.failure is not None:
        return best  # the reported exception in other words
    if (failure := seen.escaped) is not None:
        said = _last_line(failure)[:_EVIDENCE]
        told = {"reason": best.reason, "evidence": said, "weighed": best.weighed}
        return Judgement(match=Match.OTHER, failure=failure, **told)
    if seen.exit_code:
        ended = f"the program exited with status {seen.exit_code}"
        return Judgement(match=Match.OTHER, reason=ended, evidence=seen.errors[-_EVIDENCE:])
    return best
