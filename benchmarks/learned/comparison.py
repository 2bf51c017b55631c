"""Rules, learned diagnoser and both on families that the learning never saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from benchmarks.faults import FaultBench, FaultRow, scored, summarise
from benchmarks.learned.estimator import Kind
from benchmarks.learned.examples import Example
from benchmarks.learned.fusion import METHODS, Limits, chosen
from benchmarks.learned.opinion import Opinion, fit
from bot.errors import UserError
from bot.models.base import Record

_GROUPS = 4
_Examples = Sequence[Example]


class Comparison(Record):
    """The JSON of `python -m benchmarks learned`: the rows and figures of each method, its mean F3
    by fault type, and how often it knew where a wrong rate should go (known of all).
    """

    model: Kind
    programs: int
    methods: dict[str, FaultBench]
    by_code: dict[str, dict[str, float]]
    directions: dict[str, tuple[int, int]]
    limits: dict[str, tuple[Limits, ...]]


def compare(train: _Examples, test: _Examples, kind: Kind) -> Comparison:
    """Judge test families by what was learned without them; without test programs, each family
    of the training programs in turn.
    """
    judged: list[tuple[Example, Opinion]] = []
    rows: dict[str, list[FaultRow]] = {name: [] for name in METHODS}
    limits: dict[str, tuple[Limits, ...]] = dict.fromkeys(METHODS, ())
    for known, unseen in _folds(train, test):
        for name, method in METHODS.items():
            limit, pairs = _formed(name, known, unseen, kind)
            limits[name] += (limit,)
            rows[name] += [_row(x, method(x, opinion, limit)) for x, opinion in pairs]
            judged += pairs if name == "learned" else []
    return Comparison(
        model=kind,
        programs=len(judged),
        methods={name: summarise(each) for name, each in rows.items()},
        by_code=_by_code(rows),
        directions=_directions(judged),
        limits=limits,
    )


def _formed(
    method: str, known: _Examples, unseen: _Examples, kind: Kind
) -> tuple[Limits, list[tuple[Example, Opinion]]]:
    """The limits of a method and its opinions, both without sight of what it is asked about."""
    if method == "rules":
        return Limits(faulty=0, tell=0), [(x, Opinion()) for x in unseen]
    sighted = method == "fusion"
    opinions = fit(known, kind, sighted=sighted)(unseen)
    limits = chosen(method, _blind(known, kind, sighted=sighted))
    return limits, list(zip(unseen, opinions, strict=True))


def _folds(train: _Examples, test: _Examples) -> Iterator[tuple[_Examples, _Examples]]:
    """What is learned from, and what is judged: never the same family."""
    asked, learned = test or train, _families(train)
    strange = _families(asked) - learned
    held = [strange] if strange else []
    for families in [*held, *({x} for x in sorted(_families(asked) & learned))]:
        known = [x for x in train if x.family not in families]
        if len(_families(known)) < 2:
            raise UserError(
                "Learning needs at least two families.", "Name more folders to learn from."
            )
        yield known, [x for x in asked if x.family in families]


def _families(examples: _Examples) -> set[str]:
    return {x.family for x in examples}


def _blind(examples: _Examples, kind: Kind, *, sighted: bool) -> list[tuple[Example, Opinion]]:
    """Opinions on examples by what was learned from other families alone."""
    families = sorted(_families(examples))
    count = min(_GROUPS, len(families))
    told: list[tuple[Example, Opinion]] = []
    for group in (set(families[i::count]) for i in range(count)):
        asked = [x for x in examples if x.family in group]
        diagnose = fit([x for x in examples if x.family not in group], kind, sighted=sighted)
        told += zip(asked, diagnose(asked), strict=True)
    return told


def _row(example: Example, found: tuple[str, ...]) -> FaultRow:
    row = FaultRow(
        id=example.id, framework=example.framework, truth=(), found=found,
        recall=None, precision=None, f3=None, f3_alternatives=None,
        healthy=example.healthy, seconds=0.0, family=example.family,
    )  # fmt: skip
    return row if example.healthy else scored(row, example.truths)


def _by_code(rows: dict[str, list[FaultRow]]) -> dict[str, dict[str, float]]:
    """The mean F3 of the programs with a fault, by method."""
    found: dict[str, dict[str, list[float]]] = {}
    for method, each in rows.items():
        for row in each:
            for code in {code[:3] for code in row.truth}:
                found.setdefault(code, {}).setdefault(method, []).append(row.f3 or 0.0)
    return {
        code: {method: round(fmean(values), 4) for method, values in of.items()}
        for code, of in sorted(found.items())
    }


def _directions(judged: Sequence[tuple[Example, Opinion]]) -> dict[str, tuple[int, int]]:
    asked = [(x, opinion) for x, opinion in judged if "HLR" in x.codes and x.direction]
    rules = [
        any(y.fault == "HLR" and y.direction == x.direction for y in x.findings) for x, _ in asked
    ]
    learned = [opinion.direction == x.direction for x, opinion in asked]
    return {"rules": (sum(rules), len(asked)), "learned": (sum(learned), len(asked))}
