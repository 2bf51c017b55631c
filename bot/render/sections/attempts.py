"""Every run of the program; similar runs share a row."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from bot.models.attempt import Attempt
from bot.models.job import PROOFS
from bot.render.document import DataTable, RunTable, Section
from bot.render.phrases import MATCHES

_GROUPS, _PROOF_GROUPS = 30, 10
COLUMNS = ("Runs", "Purpose", "Seed", "Result", "Seconds")
Row = tuple[str, ...]


def section(attempts: Sequence[Attempt], elsewhere: str = "") -> Section | None:
    """The runs. `elsewhere` says where to find the runs that a folded table has no room for."""
    title = f"Runs of the program: {len(attempts)}"
    table = RunTable(attempts, elsewhere)
    return Section("attempts", title, details=[table], fold=title) if attempts else None


def grouped(table: RunTable) -> DataTable:
    """Similar neighbouring runs in one row, then the runs of each proof together."""
    own = [attempt for attempt in table.attempts if attempt.purpose not in PROOFS]
    groups = [list(group) for _, group in groupby(own, key=_alike)]
    proofs: dict[tuple[object, ...], list[Attempt]] = {}
    for attempt in table.attempts:
        if attempt.purpose in PROOFS:
            proofs.setdefault(_alike_in_proof(attempt), []).append(attempt)
    first = _rows(groups, _GROUPS, table.elsewhere)
    return DataTable(COLUMNS, [*first, *_rows(proofs.values(), _PROOF_GROUPS, table.elsewhere)])


def _rows(groups: Iterable[Sequence[Attempt]], limit: int, elsewhere: str) -> list[Row]:
    rows = [_row(group) for group in groups]
    more = f"{len(rows) - limit} more rows {elsewhere}".rstrip()
    return [*rows[:limit], *([("\u2026", more, "", "", "")] if len(rows) > limit else [])]


def _alike(attempt: Attempt) -> tuple[object, ...]:
    judgement = attempt.judgement
    return attempt.purpose, attempt.script, attempt.change, judgement.match, judgement.reason


def _alike_in_proof(attempt: Attempt) -> tuple[object, ...]:
    """Bisections have their own table, and a row cannot distinguish the programs of a
    minimization.
    """
    change = attempt.change if attempt.purpose != "bisect" else ""
    return attempt.purpose, change, attempt.judgement.match


def _row(group: Sequence[Attempt]) -> Row:
    first, last = group[0], group[-1]
    seeds = {run.execution.seed for run in group if run.execution.seed is not None}
    seconds = sorted(run.execution.seconds for run in group)
    numbers = _span([str(first.number), str(last.number)])
    apart = last.number - first.number >= len(group)
    return (
        f"{len(group)} of runs {numbers}" if apart else numbers,
        _what(group),
        _span([str(seed) for seed in sorted(seeds)]),
        outcome(first) if len({run.judgement.reason for run in group}) == 1 else _match(first),
        _span([f"{value:.1f}" for value in seconds]),
    )


def _what(group: Sequence[Attempt]) -> str:
    changes = {attempt.change for attempt in group}
    return (
        purpose(group[0]) if len(changes) == 1 else f"{group[0].purpose}: {len(changes)} versions"
    )


def purpose(attempt: Attempt) -> str:
    """What a run was for, and on which change."""
    change = attempt.change.removeprefix(f"{attempt.purpose}: ")
    return f"{attempt.purpose}: {change}" if change else attempt.purpose


def outcome(attempt: Attempt) -> str:
    """The outcome of a run, and the reason."""
    return f"{_match(attempt)}: {attempt.judgement.reason}".removesuffix(": ")


def _match(attempt: Attempt) -> str:
    return MATCHES[attempt.judgement.match]


def _span(values: Sequence[str]) -> str:
    """The first and the last value, or the only one."""
    return "\u2013".join(dict.fromkeys([*values[:1], *values[-1:]]))
