"""The queue alone on a real Redis, and a few runs through a whole App whose sandbox does nothing."""

from __future__ import annotations

import pytest

from benchmarks.scale.measure import Plan, scale
from benchmarks.scale.queue_alone import queue_alone
from bot.kernel.settings import host


@pytest.mark.redis
def test_tasks_that_wait_are_taken_without_a_poll_between_them() -> None:
    figures = queue_alone(60, host())
    assert figures.tasks == 60
    assert 0 < figures.take_ms < 80  # with a poll between two it is 100


@pytest.mark.nightly
@pytest.mark.redis
@pytest.mark.postgres
def test_a_few_runs_by_one_and_by_two_workers() -> None:
    said: list[str] = []
    result = scale(Plan(6, (1, 2), 0.0, host()), said.append)
    assert [(row.workers, row.runs) for row in result.figures] == [(1, 6), (2, 6)]
    assert all(row.engine_ms > 0 and row.github_ms > 0 for row in result.figures)
    assert set(result.figures[0].cpu_ms) >= {"arq", "deliveries", "engine", "runs", "postgres"}
    assert len(said) == 3
