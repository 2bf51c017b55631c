"""What any body of an issue may cost: time, memory, the store and the page."""

from __future__ import annotations

import random

import pytest

from benchmarks.bodies import BodyCost, measure, mixture
from bot.kernel.bug import MOST_BODY
from tests.corpus.bodies.pathological import SHAPES

# Other tests run beside these, and slow them down.
BUSY = 2.0


def assert_within_limits(cost: BodyCost) -> None:
    calm = cost.model_copy(update={name: getattr(cost, name) / BUSY for name in SECONDS})
    assert calm.excesses == (), cost


SECONDS = ("read_s", "plan_s", "page_s")


@pytest.mark.parametrize("name", SHAPES)
def test_a_pathological_body_is_read_and_stored_within_limits(name: str) -> None:
    body = SHAPES[name](MOST_BODY)
    assert len(body) > 0.99 * MOST_BODY
    assert_within_limits(measure(name, body))


@pytest.mark.parametrize("seed", range(12))
def test_a_mixture_of_them_is_read_and_stored_within_limits(seed: int) -> None:
    assert_within_limits(measure(f"mixture {seed}", mixture(random.Random(seed))))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 600))
def test_many_mixtures_are_read_and_stored_within_limits(seed: int) -> None:
    assert_within_limits(measure(f"mixture {seed}", mixture(random.Random(seed))))
