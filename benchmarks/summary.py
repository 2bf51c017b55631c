"""The figures of a bench run, pure: one row a case, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.proving import Proofs, Proven, add_up
from bot.kernel.values import Record


class Row(Record):
    """One case as it went. `error` is set, and `verdict` is None, when no verdict was reached.
    `author` is who wrote the program ("reporter", "model", "" for none), `cause` why a wrong one
    went wrong as far as a model's part goes, `missed` how many answers a replay lacked.
    """

    id: str
    verdict: str | None
    right: bool | None
    runs: int = 0
    seconds: float = 0.0
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    author: str = ""
    cause: str = ""
    missed: int = 0
    report: str = ""
    kind: str = ""
    runnable: bool = False
    false_reproduced: bool = False
    reason: str = ""
    error: str = ""
    overhead: float | None = None
    proven: Proven | None = None
    kept: bool = False

    @property
    def mark(self) -> str:
        """The word in the table."""
        if self.right is None:
            return "needs review"
        return "right" if self.right else "wrong"


class Tally(Record):
    """So many of so many."""

    right: int
    needs_eyes: int
    total: int


class Asked(Record):
    """What models were asked: in how many cases, in all, and in the median case."""

    cases: int
    calls: int
    tokens: int
    usd: float
    calls_median: float
    tokens_median: float
    usd_median: float
    by_model: Tally
    causes: dict[str, tuple[str, ...]]


class Summary(Record):
    """What the rows add up to. `overhead` is the median of verdict seconds over (runs x bare
    script seconds).
    """

    right: int
    wrong: int
    needs_eyes: int
    total: int
    false_reproduced: tuple[str, ...]
    errors: tuple[str, ...]
    by_kind: dict[str, Tally]
    runnable: Tally
    seconds: float
    seconds_median: float | None
    overhead: float | None
    model: Asked | None = None
    proofs: Proofs | None = None


class Bench(Record):
    """The JSON of `python -m benchmarks issues`."""

    cases: tuple[Row, ...]
    summary: Summary


def summarise(rows: Sequence[Row]) -> Bench:
    """Add the rows up, in the order of their ids."""
    ordered = tuple(sorted(rows, key=lambda row: row.id))
    whole = _tally(ordered)
    kinds = sorted({row.kind for row in ordered if row.kind})
    overheads = [row.overhead for row in ordered if row.overhead is not None]
    return Bench(
        cases=ordered,
        summary=Summary(
            right=whole.right,
            wrong=whole.total - whole.right - whole.needs_eyes,
            needs_eyes=whole.needs_eyes,
            total=whole.total,
            false_reproduced=tuple(row.id for row in ordered if row.false_reproduced),
            errors=tuple(row.id for row in ordered if row.error),
            by_kind={kind: _tally([row for row in ordered if row.kind == kind]) for kind in kinds},
            runnable=_tally([row for row in ordered if row.runnable]),
            seconds=round(sum(row.seconds for row in ordered), 1),
            seconds_median=round(median(row.seconds for row in ordered), 1) if ordered else None,
            overhead=round(median(overheads), 2) if overheads else None,
            model=_asked(ordered),
            proofs=add_up([(row.id, row.proven) for row in ordered if row.proven is not None]),
        ),
    )


def _asked(rows: Sequence[Row]) -> Asked | None:
    """None when no case asked a model."""
    several = [row for row in rows if row.calls or row.missed]
    if not several:
        return None
    causes = sorted({row.cause for row in rows if row.cause})
    return Asked(
        cases=len(several),
        calls=sum(row.calls for row in several),
        tokens=sum(row.tokens for row in several),
        usd=round(sum(row.usd for row in several), 6),
        calls_median=median(row.calls for row in several),
        tokens_median=median(row.tokens for row in several),
        usd_median=round(median(row.usd for row in several), 6),
        by_model=_tally([row for row in rows if row.author == "model"]),
        causes={cause: tuple(row.id for row in rows if row.cause == cause) for cause in causes},
    )


def _tally(rows: Sequence[Row]) -> Tally:
    return Tally(
        right=sum(row.right is True for row in rows),
        needs_eyes=sum(row.right is None for row in rows),
        total=len(rows),
    )
