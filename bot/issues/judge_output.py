"""Compares what a run printed with an output signature: the reported values, and the right ones."""

import math
import re
from itertools import chain, starmap

from bot.issues.judgements import EVIDENCE, contrary, matched, passed, undecided
from bot.issues.observe import Observation
from bot.issues.signature import references, staged, values
from bot.kernel.attempt import Judgement, Script
from bot.kernel.bug import NonFiniteSignature, OutputSignature

_ARRAY = 4
_FEW_LINES = 8  # among more printed lines a single value of a sentence stands somewhere by chance
_Arrays = list[tuple[str, list[tuple[str, str]]]]


def judge_output(
    observation: Observation, reported_signature: OutputSignature, script: Script
) -> Judgement:
    """Whether a run printed the reported lines; that it printed the expected ones speaks against
    the report.
    """
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
        return undecided("the expected value may be the one that the program prints beside")
    if denied and evidence and signature.within_line and denied != evidence:
        return undecided("both the reported and the expected value were printed")
    if denied:
        return contrary("the expected output was printed", "\n".join(denied))
    if evidence and signature.within_line and len(own.output) > _FEW_LINES:
        return undecided("too much was printed to tell which value the bug report means")
    if evidence:
        return matched("the reported output was printed", "\n".join(evidence))
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
        return contrary(why, line)
    partly = _still(arrays)
    if partly and not _fixed(arrays, signature):
        return matched("non-finite values were printed where the bug report shows them", partly)
    if _skeleton(observation, signature):
        return undecided("the same lines were printed with different numbers", last_lines)
    if partly:
        return undecided("some of the reported non-finite values were printed", partly)
    if _finite_instead(observation, signature):
        return contrary("finite values were printed where the bug report shows others", last_lines)
    return passed("the reported output was not printed", last_lines)


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
        raw_line[:EVIDENCE]
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


def _is_under(label: str, line: str, groups: list[list[str]], pattern: re.Pattern[str]) -> bool:
    """Whether a line shows a matching value under a label: anywhere, unless the program's print
    labels several values.
    """
    group = next((row for row in groups if label in row), None)
    if group is None:
        return label in line
    return any(pattern.search(part) for part in references.stretches(label, line, group))


_NUMBER = re.compile(r"(?<![A-Za-z_])\d")


def judge_nonfinite(
    observation: Observation, signature: NonFiniteSignature, script: Script
) -> Judgement:
    """Whether a run printed a non-finite value, with the reported label where there is one."""
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
    groups = [
        [values.clean(label) for label in row.labels]
        for row in references.prints_of(script.source)
        if len(row.labels) > 1
    ]
    for at, line, raw_line in rows:
        is_labelled = any(_is_under(label, line, groups, pattern) for label in labels)
        if at not in right | unsure and (not labels or is_labelled):
            return matched("a non-finite value was printed", raw_line)
    if rows:
        return undecided("a non-finite value was printed beside the reported one", rows[0][2])
    tail = "\n".join(observation.told[-5:])
    if not any(map(_NUMBER.search, observation.output)):
        return undecided("no value was printed", tail)
    return passed("every printed value was finite", tail)
