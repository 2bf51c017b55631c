"""Two faults under a whole App: nothing is lost and nothing done twice."""

from __future__ import annotations

import pytest

from benchmarks.chaos.faults import FAULTS
from benchmarks.chaos.measure import Plan, chaos
from bot.kernel.settings import host


@pytest.mark.nightly
@pytest.mark.redis
@pytest.mark.postgres
def test_a_killed_redis_and_a_killed_worker_lose_nothing() -> None:
    faults = [fault for fault in FAULTS if fault.name in {"redis", "worker"}]
    plan = Plan(faults, reports=2, gap_s=0.5, fault_s=3.0, sandbox="process", environ=host())
    outcomes = list(chaos(plan, lambda _text: None))
    assert [(one.fault, one.good, one.takes >= 2) for one in outcomes] == [
        ("redis", True, True),
        ("worker", True, True),
    ]
    assert any("Redis" in line for line in outcomes[0].seen)
