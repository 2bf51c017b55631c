"""What a contradiction costs: the program with the code's value and with the paper's, over the same
seeds.
"""

from collections.abc import Sequence
from statistics import fmean

from bot.kernel.paper import Criterion, CriterionEffect
from bot.papers.evidence import site_of
from bot.papers.located import Site
from bot.papers.runs import PaperMeasurement, PaperRunner

_PAIRS = 3
_CLOSED = 0.25
"""The share of the gap that may stay where a change explains it."""


def measure_effects(
    runner: PaperRunner,
    criteria: Sequence[Criterion],
    sites: tuple[Site, ...],
    runs: Sequence[PaperMeasurement],
) -> tuple[Criterion, ...]:
    """The criteria with the effect of each contradiction whose value can be written, while there
    is time. Those that explain the gap come first.
    """
    values = [row.run.value for row in runs[:_PAIRS] if not row.run.partial and not row.run.problem]
    before = [value for value in values if value is not None]
    pairs = 1 if len({*before}) == 1 else len(before)
    rows = [
        _with_effect(runner, row, site_of(row, sites), before[:pairs])
        if row.verdict == "contradicts"
        else row
        for row in criteria
    ]
    return tuple(sorted(rows, key=lambda row: not (row.effect is not None and row.effect.explains)))


def _with_effect(
    runner: PaperRunner, row: Criterion, site: Site | None, before: list[float]
) -> Criterion:
    changed = site.change(row.stated) if site is not None else None
    if changed is None or not before:
        return row
    change, after = changed.fixes[-1].what, list[float]()
    for number in range(len(before)):
        if not runner.has_time:
            break
        run = runner.variant(changed, number, change).run
        if run.value is None or run.problem or run.partial:
            break
        after.append(run.value)
    if not after:
        return row
    effect = CriterionEffect(
        change=change,
        before=tuple(before[: len(after)]),
        after=tuple(after),
        explains=_explains(runner, before, after),
    )
    return row.model_copy(update={"effect": effect})


def _explains(runner: PaperRunner, before: list[float], after: list[float]) -> bool:
    """Whether a change brings our number to the paper's."""
    claim = runner.claim
    gap, rest = abs(fmean(before) - claim.value), abs(fmean(after) - claim.value)
    return rest <= max(claim.rounding, claim.spread or 0.0, _CLOSED * gap)
