from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from bot.kernel import statistics


@pytest.mark.parametrize(
    ("table", "one"),
    [
        ((5, 5, 0, 5), 0.003968),
        ((3, 20, 0, 20), 0.1154),
        ((3, 4, 1, 4), 0.2429),  # Fisher's lady tasting tea
        ((8, 10, 1, 6), 0.0245),
        ((0, 5, 0, 5), 1.0),
        ((0, 5, 5, 5), 1.0),
    ],
)
def test_fisher_against_known_tables(table, one):
    assert statistics.one_sided(*table) == pytest.approx(one, abs=5e-5)


@st.composite
def tables(draw):
    runs, control_runs = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    return draw(st.integers(0, runs)), runs, draw(st.integers(0, control_runs)), control_runs


@given(tables())
def test_fisher_is_the_share_of_all_ways_to_deal_the_failures(table):
    failures, runs, control_failures, control_runs = table
    ways = [
        sum(at < runs for at in deal)
        for deal in combinations(range(runs + control_runs), failures + control_failures)
    ]
    assert statistics.one_sided(*table) == pytest.approx(
        sum(seen >= failures for seen in ways) / len(ways)
    )


def test_more_failures_than_runs_is_no_table():
    with pytest.raises(ValueError, match="more failures"):
        statistics.one_sided(3, 2, 0, 2)


def test_the_interval_of_a_difference_against_newcombe():
    assert statistics.difference(56, 70, 48, 80) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert statistics.difference(9, 10, 3, 10) == pytest.approx((0.6, 0.1705, 0.8090), abs=5e-5)
    gap, low, high = statistics.difference(5, 5, 0, 5)
    assert (gap, high) == (1.0, 1.0)
    assert 0.35 < low < 0.5


@given(st.lists(st.floats(-10, 10), max_size=6), st.lists(st.floats(-10, 10), max_size=6))
def test_delta_changes_its_sign_with_the_order(first, second):
    assert statistics.cliffs_delta(first, second) == -statistics.cliffs_delta(second, first)


def test_delta_of_apart_and_equal_samples():
    assert statistics.cliffs_delta([3, 4], [1, 2]) == 1
    assert statistics.cliffs_delta([1, 2], [1, 2]) == 0
    assert statistics.cliffs_delta([1, 3], [2, 2, 0, 4]) == 0


@pytest.mark.parametrize(
    ("failures", "runs", "wanted"), [(2, 2, 5), (9, 9, 5), (2, 4, 12), (3, 10, 24), (1, 40, 40)]
)
def test_a_rarer_failure_takes_more_pairs(failures, runs, wanted):
    n = statistics.pairs(failures, runs)
    assert n == wanted
    assert n == 40 or statistics.one_sided(failures * n // runs, n, 0, n) <= 0.01
