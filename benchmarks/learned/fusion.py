"""Codes from the rules, from a learned opinion, and from both: the opinion moves the rules'
findings up or down, drops those that it doubts, and fills up what is left of four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from statistics import fmean

from benchmarks.faults import score
from benchmarks.learned.examples import Example
from benchmarks.learned.opinion import Opinion
from bot.models.base import Record
from bot.models.diagnosis import Finding

MOST = 4
SILENCE = 0.5
"""What the share of silent healthy programs counts when limits are chosen, against F3."""
_TELL = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
_FAULTY = (0.5, 0.6, 0.7, 0.8, 0.9)
_KEEP = (0.0, 0.5, 0.6, 0.7, 0.8)
_HUSH = (0.0, 0.2, 0.35, 0.5)
_NEVER = 2.0


class Limits(Record):
    """From which probabilities on something is told: `tell` is for what the opinion alone names of
    a program that is `faulty` at least so likely, `keep` for a rule's confidence and the opinion's
    probability together. Of a program that is less likely faulty than `hush` nothing is told.
    """

    faulty: float
    tell: float
    keep: float = 0.0
    hush: float = 0.0


Method = Callable[[Example, Opinion, Limits], tuple[str, ...]]


def rules(example: Example, _: Opinion, __: Limits) -> tuple[str, ...]:
    """What the rules find."""
    return _codes(example.findings)


def learned(_: Example, opinion: Opinion, limits: Limits) -> tuple[str, ...]:
    """What the opinion alone names."""
    if opinion.faulty < limits.faulty:
        return ()
    return tuple(code for code, chance in opinion.codes.items() if chance >= limits.tell)[:MOST]


def fused(example: Example, opinion: Opinion, limits: Limits) -> tuple[str, ...]:
    """The rules' findings in the order of both, then what the opinion adds."""
    if opinion.faulty < limits.hush:
        return ()
    sure = {x: x.confidence + _chance(x, opinion) for x in example.findings}
    kept = sorted((x for x in sure if sure[x] >= limits.keep), key=lambda x: -sure[x])
    told = _codes(kept)
    added = [x for x in learned(example, opinion, limits) if x not in told]
    return (*told, *added[: MOST - len(kept)])


def _chance(finding: Finding, opinion: Opinion) -> float:
    return max(opinion.codes.get(code, 0.0) for code in finding.codes)


def _codes(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code for finding in findings for code in finding.codes))


METHODS: dict[str, Method] = {"rules": rules, "learned": learned, "fusion": fused}
_GRIDS: dict[str, list[Limits]] = {
    "learned": [Limits(faulty=x, tell=y) for x, y in product(_FAULTY, _TELL)],
    "fusion": [
        Limits(faulty=w, tell=x, keep=y, hush=z)
        for w, x, y, z in product(_FAULTY, (*_TELL[1:], _NEVER), _KEEP, _HUSH)
    ],
}


def chosen(method: str, blind: Sequence[tuple[Example, Opinion]]) -> Limits:
    """The limits that serve best on programs whose opinions were formed without their family."""
    return max(_GRIDS[method], key=lambda limits: _worth(METHODS[method], blind, limits))


def _worth(method: Method, blind: Sequence[tuple[Example, Opinion]], limits: Limits) -> float:
    f3: list[float] = []
    silent: list[float] = []
    for example, opinion in blind:
        found = method(example, opinion, limits)
        if example.healthy:
            silent.append(float(not found))
        else:
            f3.append(_f3(found, example.codes))
    return (fmean(f3) if f3 else 0.0) + SILENCE * (fmean(silent) if silent else 0.0)


@cache
def _f3(found: tuple[str, ...], truth: tuple[str, ...]) -> float:
    return score(found, truth).f3
