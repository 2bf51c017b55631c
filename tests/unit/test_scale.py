"""The figures of the scale benchmark, from tasks whose times are known."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from benchmarks.scale.measure import ScaleResult, _figures, scale_table
from benchmarks.scale.queue_alone import QueueFigures
from benchmarks.scale.worker import HandledTask


def task(kind, began, seconds, engine_s=0.0, github_s=0.0):
    times = {"engine_s": engine_s, "github_s": github_s, "own_cpu_s": 0.0}
    times |= {"engine_cpu_s": 0.0, "cpu_began_s": began, "cpu_ended_s": began + seconds}
    return HandledTask(kind=kind, began=began, ended=began + seconds, **times)


def runs(*begins):
    """Runs of 0.5 s: 0.3 in the engine, 0.1 for GitHub, so 0.1 in the App."""
    return [task("run", begin, 0.5, engine_s=0.3, github_s=0.1) for begin in begins]


def test_the_time_of_a_slot_is_shared_between_engine_github_app_and_queue():
    tasks = [task("delivery", 90.0, 0.2), *runs(100.0, 100.6, 101.2, 101.8)]
    row = _figures(1, tasks, {"workers": 50.0}, None)
    assert (row.runs, row.workers) == (4, 1)
    assert row.seconds == pytest.approx(2.3)
    assert row.engine_ms == pytest.approx(300)
    assert row.github_ms == pytest.approx(100)
    assert row.app_ms == pytest.approx(100)
    assert row.queue_ms == pytest.approx(1000 * 2.3 / 4 - 500)
    assert row.delivery_ms == pytest.approx(200)


def test_more_workers_have_more_slots_and_a_speedup():
    one = _figures(1, runs(0.0, 0.5, 1.0, 1.5), {"workers": 1.0}, None)
    two = _figures(2, runs(0.0, 0.0, 0.5, 0.5), {"workers": 1.0}, one.runs_per_s)
    assert one.speedup == 1.0
    assert two.speedup == pytest.approx(2.0)
    assert two.queue_ms == pytest.approx(0.0)


def test_a_run_that_only_announced_is_not_counted():
    row = _figures(1, [*runs(0.0, 0.5), task("run", 1.0, 0.1)], {"workers": 1.0}, None)
    assert row.runs == 2


def test_the_table_has_a_row_for_each_number_of_workers():
    row = _figures(2, runs(0.0, 0.0), {"workers": 12.5, "redis": 2.0}, None)
    text, queue = io.StringIO(), QueueFigures(tasks=400, offer_ms=1.5, take_ms=4.0)
    result = ScaleResult(processors=2, sleep_s=0.1, queue=queue, figures=(row,))
    Console(file=text, width=200).print(scale_table(result))
    assert "2 processors, 0.1 s a program run" in text.getvalue()
    assert "the queue alone takes 5.5 ms a run" in text.getvalue()
    assert "12.5" in text.getvalue()
