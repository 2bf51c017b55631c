"""A gain counts only when it is significant over pairs of runs with the same seed."""

import math
from itertools import product

import pytest
from hypothesis import given, strategies as st

from bot.training.repair.metric import compare, effect, sign_flip


def test_six_equal_gains_are_significant_and_five_are_not() -> None:
    """Two of 64 signs reach the sum, 1 in 32; with five pairs it is 1 in 16."""
    six = compare([0.5] * 6, [1.0] * 6, "max")
    five = compare([0.5] * 5, [1.0] * 5, "max")
    assert (six.p, six.significant) == (1 / 32, True)
    assert (five.p, five.significant) == (1 / 16, False)


def test_less_is_better_for_an_error() -> None:
    """And more of it is never significant for the better."""
    before, after = [3.0, 3.1, 2.9, 3.0, 3.2, 3.1], [1.0, 1.1, 0.9, 1.2, 1.0, 1.1]
    assert compare(before, after, "min").significant
    assert not compare(after, before, "min").significant


def test_one_pair_that_is_worse_ends_significance_of_small_gains() -> None:
    """The mean alone does not decide."""
    assert not compare([0.5] * 6, [0.6, 0.6, 0.6, 0.6, 0.6, 0.2], "max").significant


def test_a_training_without_a_number_is_worse_than_any() -> None:
    """Where the faulty program never told one, six that do are a gain; the contrary is a loss."""
    assert compare([None] * 6, [9.0] * 6, "min").significant
    assert not compare([9.0] * 6, [None] * 6, "min").significant
    assert not compare([None] * 6, [None] * 6, "min").significant


@pytest.mark.parametrize(("before", "after"), [([], []), ([1.0], [1.0, 2.0]), ([1.0] * 13,) * 2])
def test_pairs_are_needed(before: list[float], after: list[float]) -> None:
    """As many of one as of the other, and not more than can be enumerated."""
    with pytest.raises(ValueError, match="pairs"):
        compare(before, after, "max")


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=7))
def test_the_test_is_exact(gains: list[float]) -> None:
    """p is the share of sign changes that reach the sum, so it is uniform where nothing changed."""
    reached = [sign_flip([s * g for s, g in zip(signs, gains, strict=True)])
               for signs in product((1, -1), repeat=len(gains))]  # fmt: skip
    for level in (0.05, 0.25, 0.5):
        assert sum(p <= level for p in reached) / len(reached) <= level + 1e-9


def test_the_effect_of_equal_gains_has_no_bound() -> None:
    """And that of no gain is nothing."""
    assert effect([0.5, 0.5]) == math.inf
    assert effect([-0.5, -0.5]) == -math.inf
    assert effect([0.0, 0.0]) == 0.0
