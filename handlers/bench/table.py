"""The figures of `reprise bench webhook` for people."""

from __future__ import annotations

from rich.table import Table

from handlers.bench.webhook import MOST_MB, MOST_RATIO, Result


def table(result: Result) -> Table:
    """The figures, one line a server and rate."""
    shown = Table(title="Milliseconds from due to answered")
    for column in ("rate", "server", "requests", "refused", "p50", "p90", "p99", "max", "p99 of a round", "p99 ratio"):
        shown.add_column(column, justify="left" if column == "server" else "right")
    for each in result.figures:
        ratio = f"{result.ratios[each.rate]:.2f}" if each.server == "Reprise" else ""
        times = (f"{value:.2f}" for value in (each.p50_ms, each.p90_ms, each.p99_ms, each.max_ms, each.p99_median_ms))
        shown.add_row(f"{each.rate}/s", each.server, str(each.requests), str(each.refused), *times, ratio)
    return shown


def sentences(result: Result) -> str:
    """What the table does not show, and whether the targets are met."""
    late = max(each.generator_late_p99_ms for each in result.figures)
    thrown = sum(each.rounds_late for each in result.figures if each.server == "Reprise")
    (rate, ratio), *beyond = result.ratios.items()
    further = "".join(f"; beyond it {other:.2f} at {faster}/s" for faster, other in beyond)
    return (
        f"Reprise's process: {result.memory_mb:.0f} MB, at most {result.memory_peak_mb:.0f} MB (target: under {MOST_MB:.0f}).\n"
        f"Deliveries sent under different ids: {result.sent}; kept: {result.kept}.\n"
        f"A bare synchronous write on this disk: p50 {result.disk_p50_ms:.2f} ms, p99 {result.disk_p99_ms:.2f} ms.\n"
        f"The load generator's own lateness is in the figures: p99 {late:.2f} ms at most; rounds thrown away "
        f"because it was later: {thrown}; p99 ratios with them: "
        f"{', '.join(f'{with_late:.2f} at {each}/s' for each, with_late in result.ratios_with_late.items())}.\n"
        f"Target: p99 at most {MOST_RATIO} times probot's at {rate}/s: {ratio:.2f}{further}.\n"
        f"{'All targets met.' if result.good else 'NOT MET.'}"
    )
