import random

import pytest

from bot.kernel.statistics import SequentialTest, interval


@pytest.mark.parametrize(
    ("failures", "runs", "decision"),
    [
        (0, 0, "undecided"),
        (1, 1, "undecided"),
        (2, 2, "fails"),
        (0, 8, "undecided"),
        (0, 9, "passes"),
        (3, 10, "fails"),
    ],
)
def test_decisions(failures, runs, decision):
    assert SequentialTest().decide(failures, runs) == decision


@pytest.mark.parametrize(("rate", "wrong"), [(0.02, "fails"), (0.30, "passes")])
def test_error_rates_hold(rate, wrong):
    chance, test, mistakes = random.Random(7), SequentialTest(), 0
    for _ in range(2000):
        failures = runs = 0
        while (decision := test.decide(failures, runs)) == "undecided":
            runs, failures = runs + 1, failures + (chance.random() < rate)
        mistakes += decision == wrong
    assert mistakes / 2000 < 0.07


@pytest.mark.parametrize(
    ("failures", "runs", "low", "high"),
    [
        (0, 9, 0.0, 0.3363),
        (3, 20, 0.0321, 0.3789),
        (5, 5, 0.4782, 1.0),
        (85, 106, 0.7134, 0.8730),
        (0, 0, 0.0, 1.0),
    ],
)
def test_clopper_pearson_against_published_values(failures, runs, low, high):
    assert interval(failures, runs) == pytest.approx((low, high), abs=5e-4)
