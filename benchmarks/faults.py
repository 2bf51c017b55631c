"""The figures of a diagnosis bench, pure: recall, precision and F3 of fault codes, as the source
study counts them, and how often faults that are code are named, with their line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from bot.kernel.dialogue import Usage
from bot.kernel.training_code import CODE_FAULTS, OTHER_CODE
from bot.kernel.values import Record

_CODE = re.compile(r"([A-Z]{3})(?:\(([\d, ]+)\))?")
_NEAR = 2
"""Lines by which the place of a fault that is code may be missed."""


class Score(Record):
    """How well found codes meet the true ones. F3 weighs recall nine times as much."""

    recall: float
    precision: float
    f3: float


class FaultRow(Record):
    """One program as it went. `truth` and `found` hold a code for each layer; `found` is ranked.
    `tools` are the codes of each published tool's rules alone, `f3_tools` their scores against
    the truth, and against its alternatives; with a model they also hold "rules" and "model", what
    either says alone. `trial_seconds` are those of trainings that confirmed the findings; "rules"
    is then what was found without them. `opinion` is what came of asking it. `alternatives` are
    other true codes.
    """

    id: str
    framework: str
    truth: tuple[str, ...]
    found: tuple[str, ...]
    recall: float | None
    precision: float | None
    f3: float | None
    f3_alternatives: float | None
    healthy: bool
    seconds: float
    trial_seconds: float = 0.0
    tools: dict[str, tuple[str, ...]] = {}
    f3_tools: dict[str, tuple[float, float]] = {}
    opinion: str = ""
    usage: Usage = Usage()
    error: str = ""
    family: str = ""
    alternatives: tuple[str, ...] = ()


class Found(Record):
    """A fault type in all programs: how often it is true, was found, and was found wrongly."""

    true: int = 0
    found: int = 0
    wrong: int = 0


class ToolFigures(Record):
    """One tool's rules alone, or one group of programs."""

    f3: float | None
    f3_alternatives: float | None
    healthy_silent: float | None


class CodeFigures(Record):
    """Programs whose true fault is code: in how many it is named, named in the right line (within
    two), and named first.
    """

    programs: int = 0
    named: int = 0
    in_line: int = 0
    first: int = 0


class FaultSummary(ToolFigures):
    """What the rows add up to: means over faulty programs, and the share of healthy programs in
    which nothing was found.
    """

    f3: float | None
    f3_alternatives: float | None
    recall: float | None
    precision: float | None
    healthy_silent: float | None
    by_code: dict[str, Found]
    code: CodeFigures = CodeFigures()
    by_framework: dict[str, ToolFigures]
    by_family: dict[str, ToolFigures]
    tools: dict[str, ToolFigures]
    usage: Usage
    errors: tuple[str, ...]


class FaultBench(Record):
    """The JSON of `python -m benchmarks faults`."""

    cases: tuple[FaultRow, ...]
    summary: FaultSummary


def expanded(codes: Iterable[str]) -> tuple[str, ...]:
    """Codes with one layer each: "ACH(0,1)" is ACH(0) and ACH(1). A fault that is code has its
    line, "graph-cut:17", or none; one of no name has one, "wrong-code:17". Raises ValueError for a
    code that there is not.
    """
    rows: list[str] = []
    for code in codes:
        name, _, line = code.strip().partition(":")
        if name in CODE_FAULTS and (not line or line.isdecimal()):
            rows.append(code.strip())
            continue
        match = _CODE.fullmatch(code.strip())
        if match is None:
            raise ValueError(f"{code!r} is no fault code")
        layers = [layer.strip() for layer in (match[2] or "").split(",")]
        rows += [f"{match[1]}({layer})" if layer else match[1] for layer in layers]
    return tuple(dict.fromkeys(rows))


def score(found: Iterable[str], truth: Iterable[str]) -> Score:
    """Recall, precision and F3 = 10 PR RC / (9 PR + RC) of found codes."""
    named, true = set(expanded(found)), set(expanded(truth))
    hits = sum(any(is_same(one, other) for other in named) for one in true)
    right = sum(any(is_same(other, one) for other in true) for one in named)
    recall = hits / len(true) if true else 0.0
    precision = right / len(named) if named else 0.0
    f3 = 10 * precision * recall / (9 * precision + recall) if hits else 0.0
    return Score(recall=recall, precision=precision, f3=f3)


def is_same(true: str, found: str) -> bool:
    """Whether a found code is the true one: of a fault that is code within two lines of its line,
    where the key tells it. `wrong-code`, which says nothing but where, is right by its line alone:
    it is any true fault that is code there, and none where the key tells no line.
    """
    (name, _, line), (other, _, place) = true.partition(":"), found.partition(":")
    is_named = name in CODE_FAULTS and bool(line) if other == OTHER_CODE else name == other
    if not is_named or not line:
        return is_named
    return bool(place) and abs(int(line) - int(place)) <= _NEAR


def truths_of(key: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The true codes of a key, the study's own first, then its alternatives that can be read. A
    fault of no name ("other: …") is `wrong-code` at the lines that the key tells; so may any fault
    that is code be named.
    """
    own = tuple(key.get("ground_truth_model_layers") or key["ground_truth"])
    lines = tuple(key.get("lines") or ())
    truths = [_placed(own, lines[0] if lines else None)]
    others = [tuple(codes) for codes in key.get("alternative_ground_truths") or ()]
    for codes in (own, *others):
        rows = [_placed(codes, line, every=True) for line in lines] or [codes]
        truths += [row for row in rows if _is_readable(row) and row not in truths]
    return tuple(truths)


def _placed(codes: tuple[str, ...], line: int | None, *, every: bool = False) -> tuple[str, ...]:
    """Codes with a line of the key: those of no name, or of every fault that is code."""
    if line is None:
        return codes
    named = [OTHER_CODE if code.startswith("other") else code for code in codes]
    return tuple(
        f"{code}:{line}" if code == OTHER_CODE or (every and code in CODE_FAULTS) else code
        for code in named
    )


def _is_readable(codes: Iterable[str]) -> bool:
    try:
        expanded(codes)
    except ValueError:
        return False
    return True


def kind_of(code: str) -> str:
    """The fault type of a code, or the name of a fault that is code."""
    name = code.partition(":")[0]
    return name if name in CODE_FAULTS else name[:3]


def best(found: Iterable[str], truths: Sequence[Iterable[str]]) -> Score:
    """The score against several ground truths: the highest recall, and the means of precision and
    F3 over the truths that attain it.
    """
    scores = [score(found, truth) for truth in truths]
    recall = max(each.recall for each in scores)
    top = [each for each in scores if each.recall == recall]
    precision, f3 = fmean(each.precision for each in top), fmean(each.f3 for each in top)
    return Score(recall=recall, precision=precision, f3=f3)


def scored(row: FaultRow, truths: Sequence[Sequence[str]]) -> FaultRow:
    """A row of a faulty program with its scores; the first truth is the study's own."""
    single, several = score(row.found, truths[0]), best(row.found, truths)
    tools = {
        name: (score(codes, truths[0]).f3, best(codes, truths).f3)
        for name, codes in row.tools.items()
    }
    update = {**single.model_dump(), "f3_alternatives": several.f3, "f3_tools": tools}
    others = expanded(code for truth in truths[1:] for code in truth)
    return row.model_copy(update={"truth": expanded(truths[0]), "alternatives": others, **update})


def summarise(rows: Iterable[FaultRow]) -> FaultBench:
    """Add the rows up, in the order of their ids."""
    ordered = tuple(sorted(rows, key=lambda row: (row.healthy, row.id)))
    faulty = [row for row in ordered if not row.healthy]
    healthy = [row for row in ordered if row.healthy]
    summary = FaultSummary(
        **dict(_figures(ordered)),
        recall=_mean(row.recall for row in faulty),
        precision=_mean(row.precision for row in faulty),
        by_code=_by_code(ordered),
        code=_code_figures(faulty),
        by_framework=_by(ordered, lambda row: row.framework),
        by_family=_by(ordered, lambda row: row.family),
        tools=_tools(faulty, healthy),
        usage=sum((row.usage for row in ordered), Usage()),
        errors=tuple(row.id for row in ordered if row.error),
    )
    return FaultBench(cases=ordered, summary=summary)


def _figures(rows: Sequence[FaultRow]) -> ToolFigures:
    faulty = [row for row in rows if not row.healthy]
    return ToolFigures(
        f3=_mean(row.f3 for row in faulty),
        f3_alternatives=_mean(row.f3_alternatives for row in faulty),
        healthy_silent=_mean(float(not row.found) for row in rows if row.healthy and not row.error),
    )


def _by(rows: Sequence[FaultRow], name: Callable[[FaultRow], str]) -> dict[str, ToolFigures]:
    """The figures of each group of rows that has a name."""
    names = sorted({name(row) for row in rows} - {""})
    return {one: _figures([row for row in rows if name(row) == one]) for one in names}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 4) if known else None


def _by_code(rows: Iterable[FaultRow]) -> dict[str, Found]:
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        true, found = set(row.truth), set(expanded(row.found))
        hits = {x for x in true if any(is_same(x, other) for other in found)}
        wrong = {x for x in found if not any(is_same(other, x) for other in true)}
        kinds = {"true": true, "found": hits, "wrong": wrong}
        for kind, codes in kinds.items():
            for code in codes:
                of_code = counts.setdefault(kind_of(code), {"true": 0, "found": 0, "wrong": 0})
                of_code[kind] += 1
    return {code: Found(**counts[code]) for code in sorted(counts)}


def _code_figures(faulty: Sequence[FaultRow]) -> CodeFigures:
    counts = {"programs": 0, "named": 0, "in_line": 0, "first": 0}
    for row in faulty:
        true = [code for code in row.truth if kind_of(code) in CODE_FAULTS]
        if not true or row.error:
            continue
        names = {kind_of(code) for code in true} - {OTHER_CODE}
        true += [code for code in row.alternatives if kind_of(code) in CODE_FAULTS]
        in_line = [code for code in row.found if _is_in_line(code, true)]
        named = [code for code in row.found if kind_of(code) in names or code in in_line]
        counts["programs"] += 1
        counts["named"] += bool(named)
        counts["in_line"] += bool(in_line)
        counts["first"] += bool(row.found) and row.found[0] in named
    return CodeFigures(**counts)


def _is_in_line(code: str, true: Sequence[str]) -> bool:
    """Whether a found fault that is code is a true one in its line, where the key tells lines."""
    of_name = [x for x in true if kind_of(x) == kind_of(code) or kind_of(code) == OTHER_CODE]
    placed = [x for x in of_name if ":" in x] or of_name
    return any(is_same(one, code) for one in placed)


def _tools(faulty: Sequence[FaultRow], healthy: Sequence[FaultRow]) -> dict[str, ToolFigures]:
    names = dict.fromkeys(name for row in (*faulty, *healthy) for name in row.tools)
    return {
        name: ToolFigures(
            f3=_mean(row.f3_tools.get(name, (0.0, 0.0))[0] for row in faulty),
            f3_alternatives=_mean(row.f3_tools.get(name, (0.0, 0.0))[1] for row in faulty),
            healthy_silent=_mean(float(not row.tools.get(name)) for row in healthy),
        )
        for name in names
    }
