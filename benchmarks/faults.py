"""The figures of a diagnosis bench, pure: recall, precision and F3 of fault codes, as the source
study counts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from bot.kernel.dialogue import Usage
from bot.kernel.values import Record

_CODE = re.compile(r"([A-Z]{3})(?:\(([\d, ]+)\))?")


class Score(Record):
    """How well found codes meet the true ones. F3 weighs recall nine times as much."""

    recall: float
    precision: float
    f3: float


class FaultRow(Record):
    """One program as it went. `truth` and `found` hold a code for each layer; `found` is ranked.
    `tools` are the codes of each published tool's rules alone, `f3_tools` their scores against
    the truth, and against its alternatives; with a model they also hold "rules" and "model", what
    either says alone. `opinion` is what came of asking it.
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
    tools: dict[str, tuple[str, ...]] = {}
    f3_tools: dict[str, tuple[float, float]] = {}
    opinion: str = ""
    usage: Usage = Usage()
    error: str = ""
    family: str = ""


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
    """Codes with one layer each: "ACH(0,1)" is ACH(0) and ACH(1)."""
    rows: list[str] = []
    for code in codes:
        match = _CODE.fullmatch(code.strip())
        if match is None:
            raise ValueError(f"{code!r} is no fault code")
        layers = [layer.strip() for layer in (match[2] or "").split(",")]
        rows += [f"{match[1]}({layer})" if layer else match[1] for layer in layers]
    return tuple(dict.fromkeys(rows))


def score(found: Iterable[str], truth: Iterable[str]) -> Score:
    """Recall, precision and F3 = 10 PR RC / (9 PR + RC) of found codes."""
    named, true = set(expanded(found)), set(expanded(truth))
    hits = len(named & true)
    recall = hits / len(true) if true else 0.0
    precision = hits / len(named) if named else 0.0
    f3 = 10 * precision * recall / (9 * precision + recall) if hits else 0.0
    return Score(recall=recall, precision=precision, f3=f3)


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
    return row.model_copy(update={"truth": expanded(truths[0]), **update})


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
        kinds = {"true": true, "found": true & found, "wrong": found - true}
        for kind, codes in kinds.items():
            for code in codes:
                of_code = counts.setdefault(code[:3], {"true": 0, "found": 0, "wrong": 0})
                of_code[kind] += 1
    return {code: Found(**counts[code]) for code in sorted(counts)}


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
