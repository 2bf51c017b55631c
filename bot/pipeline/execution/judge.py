"""A run held against the frozen signature. Only here is it decided what a run shows, and no
model is asked.
"""

from __future__ import annotations

import math
import re

from bot.models.attempt import Failure, Judgement, Match, Script, SetupFailure
from bot.models.signature import (
    AnySignature,
    CrashSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    OutputSignature,
    WarningSignature,
)
from bot.pipeline.execution import crashes
from bot.pipeline.execution.observe import Observation, flatten
from bot.pipeline.reading.signature import members_of
from bot.rules import setup_failures
from bot.rules.signatures import genuine, observed, readings, staged, values, warned, wording

_ARRAY = 4
_RIGHTED = "the expected values stand where the report shows non-finite ones"
_EVIDENCE = 600
_FEW_LINES = 8  # among more printed lines a single value of a sentence stands somewhere by chance
_UNREADABLE = {"SyntaxError", "IndentationError", "TabError"}
_READABLE = "the program as a file that Python can read (as pasted it is no valid Python)"


def judge(seen: Observation, signature: AnySignature, script: Script) -> Judgement:
    """What one run shows: the signature met, absent, another failure, a decoy of the
    environment, or nothing that decides.
    """
    verdicts = [_either(seen, member, script) for member in members_of(signature)]
    for index, judgement in enumerate(verdicts):
        if judgement.match is Match.MATCHED:
            return judgement.model_copy(update={"member": index})
    return _decoy(seen) or _unmet(seen, verdicts)


def _either(seen: Observation, member: Member, script: Script) -> Judgement:
    """A member held against a run; where that does not show it, also in the other way in which
    its words can be read.
    """
    judgement = _genuine(seen, member, script)
    reading = None if judgement.match is Match.MATCHED else readings.other(member)
    if reading is None or (
        reading.printed and _output(seen, reading.printed).match is not Match.MATCHED
    ):
        return judgement
    other = _genuine(seen, reading.member, script, member)
    return other if other.match is Match.MATCHED else judgement


def _genuine(
    seen: Observation, member: Member, script: Script, reported: Member | None = None
) -> Judgement:
    """A member held against a run, which shows nothing when the program brings it about by
    itself. `reported` is what the signature has in its place: a print that stands for an
    exception may not be staged in either way.
    """
    judgement = _member(seen, member, script)
    for each in (member, reported) if isinstance(reported, CrashSignature) else (member,):
        if judgement.match is Match.MATCHED and (line := staged.staged(script.source, each)):
            return Judgement(
                match=Match.PASSED, reason=f"the program brings it about by itself: {line[:120]}"
            )
    return judgement


def _member(seen: Observation, member: Member, script: Script) -> Judgement:
    if isinstance(member, CrashSignature):
        return _crash(seen, member, script)
    if isinstance(member, OutputSignature):
        return _output(seen, member)
    if isinstance(member, NonFiniteSignature):
        return _nonfinite(seen, member, script)
    if isinstance(member, WarningSignature):
        return _warning(seen, member)
    if isinstance(member, ObservationSignature):
        return _observation(seen, member)
    return _hang(seen, member)


def _met(reason: str, evidence: str, failure: Failure | None = None) -> Judgement:
    return Judgement(
        match=Match.MATCHED, reason=reason, evidence=evidence[:_EVIDENCE], failure=failure
    )


def _crash(seen: Observation, wanted: CrashSignature, script: Script) -> Judgement:
    names = genuine.own_names(script.source)
    why = "the reported exception did not occur"
    for failure in flatten(seen.failures):
        if not wording.same_exception(wanted.exception, failure.exception, failure.bases):
            continue
        fault = crashes.mismatch(failure, wanted, script, names)
        if not fault:
            return _met("the reported exception occurred", _last_line(failure), failure)
        why = fault
    return Judgement(match=Match.PASSED, reason=why)


def _last_line(failure: Failure) -> str:
    return f"{failure.exception}: {failure.message}" if failure.message else failure.exception


def _output(seen: Observation, reported: OutputSignature) -> Judgement:
    comparable = {
        "observed": values.cleaned(reported.observed),
        "expected": values.cleaned(reported.expected),
    }
    wanted, printed = reported.model_copy(update=comparable), list(seen.output)
    place = _sentence if wanted.within_line else _chunks
    found = place(seen, wanted.observed, wanted)
    denied = (
        place(seen, wanted.expected[:1] if wanted.within_line else wanted.expected, wanted)
        if wanted.expected
        else None
    )
    if found and not denied and wanted.within_line and len(printed) > _FEW_LINES:
        return Judgement(
            match=Match.UNDECIDED,
            reason="too much was printed to tell which value the report means",
        )
    if found and not denied:
        return _met("the reported output was printed", "\n".join(found))
    if denied:
        return Judgement(
            match=Match.PASSED,
            reason="the expected output was printed",
            evidence="\n".join(denied)[:_EVIDENCE],
        )
    if line := _righted(seen, wanted):
        return Judgement(match=Match.PASSED, reason=_RIGHTED, evidence=line[:_EVIDENCE])
    if line := _scattered(seen, wanted):
        return _met("non-finite values stand where the report shows them", line)
    if _skeleton(printed, wanted):
        return Judgement(
            match=Match.UNDECIDED,
            reason="the same lines were printed with other numbers",
            evidence="\n".join(seen.told[-10:])[:_EVIDENCE],
        )
    if line := _still(seen, wanted):
        return Judgement(
            match=Match.UNDECIDED,
            reason="some of the reported non-finite values were printed",
            evidence=line,
        )
    return Judgement(
        match=Match.PASSED,
        reason="the reported output was not printed",
        evidence="\n".join(seen.told[-10:])[:_EVIDENCE],
    )


def _chunks(
    seen: Observation, wanted: tuple[values.Chunk, ...], signature: OutputSignature
) -> list[str] | None:
    """The lines where all chunks stand, or None."""
    lines: list[str] = []
    for chunk in wanted:
        place = values.holds(chunk, list(seen.output), signature.rtol, signature.atol)
        if place is None:
            return None
        lines.extend(seen.told[place[0] : place[1]])
    return lines


def _sentence(
    seen: Observation, wanted: tuple[values.Chunk, ...], signature: OutputSignature
) -> list[str] | None:
    at = values.within(wanted[0][0], list(seen.output), signature.rtol, signature.atol)
    return None if at is None else [seen.told[at]]


def _skeleton(printed: list[str], wanted: OutputSignature) -> bool:
    """Whether all reported lines were printed with other numbers in them, finite ones only for
    finite ones.
    """
    alike = {(values.skeleton(line), bool(values.nonfinite(line))) for line in printed}
    lines = [line for chunk in wanted.observed for line in chunk]
    return not wanted.within_line and all(
        (values.skeleton(line), bool(values.nonfinite(line))) in alike for line in lines
    )


def _scattered(seen: Observation, wanted: OutputSignature) -> str:
    """A printed array that is alike but for its numbers to one the report shows, with non-finite
    ones among them as there.

    Which entries of a random array are non-finite is chance; that some are is the failure. An array
    that has a number of the report in its place (a whole number may stand there by chance) is no
    random one: there every entry counts.
    """
    for line, rows in _arrays(seen, wanted):
        for printed, _ in rows:
            pairs = list(zip(values.numbers(line), values.numbers(printed), strict=True))
            known = [
                (one, now) for one, now in pairs if math.isfinite(one) and not one.is_integer()
            ]
            fixed = any(values.same_number(one, now, wanted.rtol, 0.0) for one, now in known)
            if fixed and any(_became(one, now) for one, now in pairs):
                return ""
    return _still(seen, wanted)


def _still(seen: Observation, wanted: OutputSignature) -> str:
    """A printed array that is alike but for its numbers to one the report shows, and has
    non-finite ones as that has.
    """
    rows = (
        (printed, told, line) for line, alike in _arrays(seen, wanted) for printed, told in alike
    )
    return next(
        (
            told[:_EVIDENCE]
            for printed, told, line in rows
            if values.nonfinite(printed) & values.nonfinite(line)
        ),
        "",
    )


def _righted(seen: Observation, wanted: OutputSignature) -> str:
    """A printed array with numbers that the report expects where it shows non-finite ones; ""
    when one of its arrays is as before, unless that holds all that is expected, as a reference
    does that a program prints beside.
    """
    right = [
        number
        for chunk in wanted.expected
        for line in chunk
        for number in values.numbers(line)
        if math.isfinite(number)
    ]
    found = ""
    for line, rows in _arrays(seen, wanted) if right else ():
        for printed, told in rows:
            turned = [
                now
                for one, now in zip(values.numbers(line), values.numbers(printed), strict=True)
                if _became(one, now)
            ]
            if turned and all(_among(now, right, wanted) for now in turned):
                found = told
            elif not all(_among(number, list(values.numbers(printed)), wanted) for number in right):
                return ""
        if not rows:
            return ""
    return found


def rightly(seen: Observation, wanted: OutputSignature) -> bool:
    """Whether a run shows the values that the report expects in place of non-finite ones."""
    comparable = {
        "observed": values.cleaned(wanted.observed),
        "expected": values.cleaned(wanted.expected),
    }
    return bool(_righted(seen, wanted.model_copy(update=comparable)))


def _became(before: float, now: float) -> bool:
    return math.isfinite(now) and not math.isfinite(before)


def _among(number: float, others: list[float], wanted: OutputSignature) -> bool:
    return any(values.same_number(number, other, wanted.rtol, wanted.atol) for other in others)


def _arrays(seen: Observation, wanted: OutputSignature) -> list[tuple[str, list[tuple[str, str]]]]:
    """The reported lines that hold an array with non-finite numbers, each with what was printed
    in its place, as it is compared and as it is shown: lines that are alike but for their
    numbers, the very one where as many were printed as are reported.
    """
    lines = [line for chunk in wanted.observed for line in chunk]
    found = []
    for at, line in enumerate(lines):
        if values.nonfinite(line) and values.count(line) >= _ARRAY:
            kind = values.skeleton(line)
            rows = [
                row
                for row in zip(seen.output, seen.told, strict=True)
                if values.skeleton(row[0]) == kind
            ]
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
        {values.clean(line) for line in genuine.constant_lines(script.source)} if found else set()
    )
    for line, told in found:
        if line not in constant:
            return _met("a non-finite value was printed", told)
    return Judgement(
        match=Match.PASSED,
        reason="every printed value was finite",
        evidence="\n".join(seen.told[-5:])[:_EVIDENCE],
    )


def _warning(seen: Observation, wanted: WarningSignature) -> Judgement:
    lines = warned.lines((*seen.errors.splitlines(), *seen.printed), wanted)
    if len(lines) >= wanted.at_least:
        return _met(f"the reported warning was given {len(lines)} times", lines[0])
    near = warned.nearest((*seen.errors.splitlines(), *seen.printed))
    return Judgement(
        match=Match.PASSED,
        reason=f"the reported warning was given {len(lines)} times, {wanted.at_least} expected",
        evidence="\n".join(near)[:_EVIDENCE],
    )


def _observation(seen: Observation, wanted: ObservationSignature) -> Judgement:
    reported, shown = observed.outcome(wanted, seen.printed)
    if reported is not None:
        state = "was observed as reported" if reported else "is as it should be"
        return Judgement(
            match=Match.MATCHED if reported else Match.PASSED,
            reason=f"`{wanted.name}` {state}",
            evidence=f"{wanted.name} = {shown}"[:_EVIDENCE],
            value=_number(shown),
        )
    return Judgement(
        match=Match.UNDECIDED, reason=f"`{wanted.name}` decides nothing: {shown}"[:_EVIDENCE]
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _hang(seen: Observation, wanted: HangSignature) -> Judgement:
    if seen.idle or (seen.timed_out and not wanted.idle):
        state = "idle" if seen.idle else "busy without an end"
        return _met(f"no progress within {wanted.bound_s:g} s: {state}", seen.errors[-_EVIDENCE:])
    if seen.timed_out:
        return Judgement(
            match=Match.UNDECIDED,
            reason="it was still working when the time was up; a hang would be idle",
        )
    return Judgement(
        match=Match.PASSED, reason=f"the program came to its end after {seen.seconds:.1f} s"
    )


def _decoy(seen: Observation) -> Judgement | None:
    """The environment's own failure, when that is what ended the run (or what a program that
    exits with an error has printed).
    """
    failure = seen.escaped
    if failure is not None and not failure.frames and failure.exception in _UNREADABLE:
        return _decoyed(
            SetupFailure(
                id="syntax", what=f"{failure.exception}: {failure.message}", needs=_READABLE
            ),
            failure,
        )
    if failure is not None:
        for inner in flatten((failure,)):
            if (found := setup_failures.recognise(inner.exception, inner.message)) is not None:
                return _decoyed(found, failure)
        return None
    if seen.exit_code == 0 and not seen.failures:
        return None
    text = seen.errors[-4000:] + "\n" + "\n".join(seen.output[-40:])
    found = setup_failures.recognise("", text)
    return _decoyed(found, None) if found is not None else None


def _decoyed(found: SetupFailure, failure: Failure | None) -> Judgement:
    return Judgement(
        match=Match.SETUP_FAILURE,
        reason=f"the environment failed first: {found.what}",
        failure=failure,
        decoy=found,
    )


def _unmet(seen: Observation, verdicts: list[Judgement]) -> Judgement:
    best = next((row for row in verdicts if row.match is Match.UNDECIDED), verdicts[0])
    if seen.timed_out or seen.idle:
        return Judgement(
            match=Match.UNDECIDED,
            reason="the run was ended before it decided anything"
            if best.match is Match.PASSED
            else best.reason,
        )
    if seen.oom:
        return Judgement(
            match=Match.UNDECIDED, reason="the program used more memory than a run may have"
        )
    failure = seen.escaped
    if failure is not None:
        said = _last_line(failure)[:_EVIDENCE]
        return Judgement(match=Match.OTHER, reason=best.reason, evidence=said, failure=failure)
    if seen.exit_code:
        return Judgement(
            match=Match.OTHER,
            reason=f"it ended with exit status {seen.exit_code}",
            evidence=seen.errors[-_EVIDENCE:],
        )
    return best
