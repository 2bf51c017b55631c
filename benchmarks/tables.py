"""The human view of a bench run: a table and a few lines below it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from benchmarks.causes import TOLD
from benchmarks.killing import Kill
from benchmarks.proving import lines as proof_lines, told
from benchmarks.summary import Asked, Bench, Row

STYLES = {"right": "green", "wrong": "red", "needs review": "yellow"}


def issues_table(bench: Bench) -> Group:
    """One row a case, and the summary."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("id")
    table.add_column("verdict")
    table.add_column("")
    table.add_column("runs", justify="right")
    table.add_column("seconds", justify="right")
    if bench.summary.overhead is not None:
        table.add_column("overhead", justify="right")
    if bench.summary.model is not None:
        table.add_column("model")
    if bench.summary.proofs is not None:
        table.add_column("proofs", overflow="fold")
    table.add_column("why", overflow="fold", style="dim")
    for row in bench.cases:
        table.add_row(*_cells(row, bench))
    return Group(table, Text(), *(Text(line) for line in _lines(bench)))


def _cells(row: Row, bench: Bench) -> list[str | Text]:
    figures: list[str | Text] = [str(row.runs), f"{row.seconds:.1f}"]
    if bench.summary.overhead is not None:
        figures.append("" if row.overhead is None else f"{row.overhead:.2f}")
    if bench.summary.model is not None:
        figures.append(_model(row))
    if bench.summary.proofs is not None:
        figures.append(told(row.proven) if row.proven is not None else "")
    verdict = row.verdict or "error"
    return [
        row.id,
        verdict,
        Text(row.mark, STYLES[row.mark]),
        *figures,
        Text(row.error or row.reason),
    ]


def _model(row: Row) -> str:
    """What a model was asked in a case, and whether its program is the one that was run."""
    if not row.calls:
        return "not recorded" if row.missed else ""
    used = f"{row.calls} calls, {row.tokens:,} tokens" + (f", {row.usd:.4f} USD" if row.usd else "")
    return (
        used
        + (", its program" if row.author == "model" else "")
        + (", not recorded further" if row.missed else "")
    )


def _lines(bench: Bench) -> list[str]:
    summary = bench.summary
    lines = [
        (
            f"{summary.right} right, {summary.needs_eyes} need review, {summary.wrong} wrong, of "
            f"{summary.total}"
        ),
        f"false reproduced: {', '.join(summary.false_reproduced) or 'none'}",
    ]
    if summary.runnable.total:
        tally = summary.runnable
        lines.append(
            f"with a program in the body: {tally.right} right, {tally.needs_eyes} need review, of "
            f"{tally.total}"
        )
    lines += [
        f"{kind}: {tally.right} right, {tally.needs_eyes} need review, of {tally.total}"
        for kind, tally in summary.by_kind.items()
    ]
    if summary.errors:
        lines.append(f"no verdict: {', '.join(summary.errors)}")
    lines += _asked(summary.model) if summary.model is not None else []
    lines += proof_lines(summary.proofs) if summary.proofs is not None else []
    lines.append(f"{summary.seconds:.0f} s in all, median {summary.seconds_median or 0:.1f} s")
    if summary.overhead is not None:
        lines.append(
            f"verdict seconds / (runs x bare script seconds): median {summary.overhead:.2f}"
        )
    return lines


def _asked(asked: Asked) -> list[str]:
    price = f"{asked.usd:.4f} USD (median {asked.usd_median:.4f})" if asked.usd else "price unknown"
    tally = asked.by_model
    calls = f"{asked.calls} calls (median {asked.calls_median:g})"
    tokens = f"{asked.tokens:,} tokens (median {asked.tokens_median:,.0f})"
    return [
        f"models: asked in {asked.cases} cases, {calls}, {tokens}, {price}",
        (
            f"with a program of a model: {tally.right} right, {tally.needs_eyes} need review, of "
            f"{tally.total}"
        ),
        *(
            f"wrong for {cause} ({TOLD.get(cause, cause)}): {', '.join(ids)}"
            for cause, ids in asked.causes.items()
        ),
    ]


def kills_table(kills: Sequence[Kill]) -> Group:
    """One row a kill, and how many were clean."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("sandbox", "environment", "", "left behind"):
        table.add_column(name, overflow="fold")
    for name in ("killed after", "gone after", "next run"):
        table.add_column(name, justify="right")
    for kill in kills:
        mark = Text("clean", "green") if kill.clean else Text("NOT CLEAN", "red")
        left = "; ".join((*kill.containers, *kill.processes, *filter(None, [kill.torn_report])))
        figures = (f"{kill.after_s:.2f} s", f"{kill.gone_after_s:.2f} s", f"exit {kill.next_run}")
        table.add_row(kill.sandbox, "cold" if kill.cold else "warm", mark, Text(left), *figures)
    clean = sum(kill.clean for kill in kills)
    return Group(
        table,
        Text(),
        Text(f"{clean} of {len(kills)} kills left nothing behind and the next run succeeded"),
    )
