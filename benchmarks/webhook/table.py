"""The figures of `python -m benchmarks webhook` for people."""

from __future__ import annotations

from rich.table import Table

from benchmarks.webhook.measure import MAX_MB, MAX_P99_MS, WebhookFigures

COLUMNS = ("rate", "requests", "refused", "", "p50", "p99", "max", "ratio of p99")


def table(result: WebhookFigures) -> Table:
    """For each rate the answers, and below them the baselines with the answers' ratio to each."""
    shown = Table(title="Milliseconds from due to answered")
    for column in COLUMNS:
        shown.add_column(column, justify="right")
    for figures in result.rates:
        answers = (figures.p50_ms, figures.p99_ms, figures.max_ms)
        shown.add_row(
            f"{figures.rate}/s",
            str(figures.requests),
            str(figures.refused),
            "acknowledgement",
            *(f"{value:.2f}" for value in answers),
        )
        baselines = (
            ("empty request", figures.empty_p50_ms, figures.empty_p99_ms, ""),
            ("write and fsync", figures.disk_p50_ms, figures.disk_p99_ms, f"{figures.ratio:.2f}"),
            ("both", figures.floor_p50_ms, figures.floor_p99_ms, f"{figures.floor_ratio:.2f}"),
        )
        for name, p50, p99, ratio in baselines:
            shown.add_row("", "", "", name, f"{p50:.2f}", f"{p99:.2f}", "", ratio)
    return shown


def sentences(result: WebhookFigures) -> str:
    """What the table does not show, and whether the targets are met."""
    late = max(figures.generator_late_p99_ms for figures in result.rates)
    return (
        f"Memory of the web process: {result.memory_mb:.0f} MB, peak {result.memory_peak_mb:.0f} "
        f"MB (target: under {MAX_MB:.0f}).\n"
        f"Deliveries sent under different ids: {result.sent}; stored: {result.stored}.\n"
        f"The load generator's own lateness is in the figures: p99 {late:.2f} ms at most.\n"
        f"Target: p99 under {MAX_P99_MS:.0f} ms at every rate, none refused, each stored once: "
        f"{'met' if result.good else 'NOT MET'}."
    )
