"""Each criterion held against the run and the code: what a run shows comes before what stands in
the text.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from bot.kernel.paper import Criterion, CriterionKind, CriterionVerdict
from bot.kernel.training_types import TrainingTrace
from bot.papers.criterion_kinds import KINDS, ROWS
from bot.papers.located import Site, deciding
from bot.papers.numbers import number

_WHOLE_RUN: frozenset[CriterionKind] = frozenset(("epochs", "steps", "schedule"))
"""What only a run that came to its end shows."""
_SAME = 2e-3
ORDER: dict[CriterionVerdict, int] = {"contradicts": 0, "agrees": 1, "unknown": 2, "open": 3}
"""How criteria are listed."""


def observe(trace: TrainingTrace, *, partial: bool) -> dict[str, str]:
    """What a run used, by the kind of hyperparameter; empty where nothing trained."""
    if not trace.steps and not trace.epochs:
        return {}
    rows = [row for row in KINDS if not (partial and row.kind in _WHOLE_RUN)]
    values = {row.kind: row.observe(trace) for row in rows}
    return {kind: value for kind, value in values.items() if value}


def judge(
    criteria: Iterable[Criterion], sites: tuple[Site, ...], observed: Mapping[str, str]
) -> tuple[Criterion, ...]:
    """The criteria with what the code and the run say, contradictions first."""
    rows = [_judged(row, sites, observed.get(row.kind, "")) for row in criteria]
    return tuple(sorted(rows, key=lambda row: ORDER[row.verdict]))


def judge_seeds(
    criteria: Iterable[Criterion], values: Sequence[float | None]
) -> tuple[Criterion, ...]:
    """The criteria with what full runs under different seeds say of the seeds: those that print one
    number have one seed, whatever they are given. Ours that differ have as many as there were; one
    of a program that averages may have more, so fewer than the paper's say nothing.
    """
    if len(values) < 2 or None in values:
        return tuple(criteria)
    count = 1 if len({*values}) == 1 else len(values)
    rows = [_with_seeds(row, count) if row.kind == "seeds" else row for row in criteria]
    return tuple(sorted(rows, key=lambda row: ORDER[row.verdict]))


def _with_seeds(row: Criterion, count: int) -> Criterion:
    stated = number(row.stated)
    if row.verdict != "unknown" or stated is None or (1 < count < stated):
        return row
    verdict = "agrees" if count >= stated else "contradicts"
    update = {"observed": str(count), "verdict": verdict, "evidence": "observed"}
    return row.model_copy(update=update)


def _matches(row: Criterion, value: str, *, is_seen: bool) -> bool:
    compare = ROWS[row.kind].matches
    if compare is None or not is_seen:
        return same(value, row.stated)
    return compare(value, row.stated, row.quote.text if row.quote is not None else "")


def _judged(row: Criterion, sites: tuple[Site, ...], observation: str) -> Criterion:
    decides = ROWS[row.kind].decides
    if decides and row.stated and row.stated not in decides:
        observation = ""
    own = deciding(sites, row.kind) if any(site.kind == row.kind for site in sites) else []
    site = next((one for one in own if observation and same(one.located.value, observation)), None)
    # Of several places that differ, only a run can say which one counts.
    site = site or (own[0] if len(own) == 1 and not observation else None)
    update: dict[str, object] = {
        "located": site.located if site is not None else None,
        "observed": observation or None,
    }
    value = observation or (site.located.value if site is not None else "")
    if row.verdict != "open" and value and row.kind != "seeds":
        verdict = "agrees" if _matches(row, value, is_seen=bool(observation)) else "contradicts"
        update |= {"verdict": verdict, "evidence": "observed" if observation else "located"}
    return row.model_copy(update=update)


def site_of(row: Criterion, sites: tuple[Site, ...]) -> Site | None:
    """The place to change for a criterion: the one that was located for it."""
    matches = (site for site in sites if site.kind == row.kind and site.located == row.located)
    return next(matches, None)


def same(first: str, second: str) -> bool:
    """Whether two values are one: numbers to a thousandth, each of a list; words as they are."""
    ones, others = first.split(", "), second.split(", ")
    if len(ones) != len(others):
        return len({*ones}) == 1 and len({*others}) == 1 and ones[0] == others[0]
    return all(_same_one(one, other) for one, other in zip(ones, others, strict=True))


def _same_one(one: str, other: str) -> bool:
    a, b = number(one), number(other)
    if a is None or b is None:
        return one.strip().lower() == other.strip().lower()
    return math.isclose(a, b, rel_tol=_SAME, abs_tol=1e-12)
