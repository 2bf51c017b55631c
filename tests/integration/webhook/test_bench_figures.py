"""The figures of the webhook's benchmark: answers beside what no durable answer can do without."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest
from rich.console import Console

from benchmarks.webhook.measure import measure, synchronous_writes
from benchmarks.webhook.table import sentences, table


def test_the_disk_is_asked_as_often_as_the_server(tmp_path: Path) -> None:
    began = perf_counter()
    assert len(synchronous_writes(tmp_path, 20, 100)) == 20
    assert perf_counter() - began > 0.18
    assert (tmp_path / "disk").stat().st_size == 20 * 4096


@pytest.mark.redis
def test_an_answer_stands_beside_the_floor_of_its_server() -> None:
    result = measure((20,), 1.0, lambda _text: None)
    (figures,) = result.rates
    assert (result.stored, figures.refused, figures.requests) == (result.sent, 0, 20)
    assert figures.floor_p50_ms > max(figures.empty_p50_ms, figures.disk_p50_ms)
    assert figures.floor_ratio == pytest.approx(figures.p99_ms / figures.floor_p99_ms)
    console = Console(width=120, record=True)
    console.print(table(result))
    assert f"{figures.floor_ratio:.2f}" in console.export_text()
    assert "none refused" in sentences(result)
