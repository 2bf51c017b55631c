"""Other ground truths are found for what they reach, in a landscape that answers with it."""

import re
from collections import Counter

import pytest

from benchmarks.neutral_runs import NeutralRow, searched
from benchmarks.neutrality import neighbours
from bot.kernel.training_types import Hyperparameter
from bot.training.repair.trials import TRIALS
from tests.unit.test_repair import FAULTY, Landscape, by_rate, rate
from tests.unit.test_repair_arms import begin

SMALL = """import torch
from torch import nn

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=50.0)
for epoch in range(20):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print("test accuracy:", accuracy(model))
"""


def either(text):
    """Learns with a small rate, and with any by Adam."""
    return 0.95 if rate(text) <= 1 or "Adam(" in text else 0.3


def both(text):
    """Needs a smaller rate, and then more epochs."""
    many = int(re.search(r"range\((\d+)\)", text)[1]) >= 30
    return 0.3 + (0.3 if rate(text) <= 1 else 0) + (0.35 if rate(text) <= 1 and many else 0)


def found(metric, *, source=FAULTY, truth=0.95, budget=400, kept=(), row=None):
    landscape = Landscape(metric)
    with begin(landscape, source, kept, budget, arguments=("-v",)) as trials:
        row = row or NeutralRow(id="a", ground_truth=("HLR",))
        return searched(row, trials, truth), trials, landscape


@pytest.mark.nightly  # many trainings
def test_another_way_to_the_same_metric_is_a_ground_truth() -> None:
    """The key's own codes are none, and neither is a truth with more beside it."""
    row, _, _ = found(either, source=SMALL)
    assert row.alternative_ground_truths == (("OCH",),)
    assert {x.codes for x in row.truths} == {("HLR",), ("OCH",)}
    assert all(x.mean > 0.93 for x in row.truths)
    assert row.before < 0.35


@pytest.mark.nightly  # many trainings
def test_truths_of_two_edits_are_found_behind_what_helps_by_itself() -> None:
    """Another optimizer brings a rate that suits it."""
    row, _, _ = found(both, source=SMALL, row=NeutralRow(id="a", ground_truth=("LCH",)))
    assert set(row.alternative_ground_truths) == {("HLR", "HNE"), ("HNE", "OCH")}


def test_what_is_clearly_worse_is_dropped_after_three_trainings() -> None:
    """What fails, after one."""

    def metric(text):
        if "Adam(" in text:
            raise ZeroDivisionError
        return 0.1 if "RMSprop(" in text else by_rate(text)

    _, trials, _ = found(metric, source=SMALL, budget=100)
    tried = Counter(x.patch[0].after for x in trials.made.values() if len(x.patch) == 1)
    assert (tried["rmsprop"], tried["adam"], tried["0.001"]) == (3, 1, 6)


def test_a_stopped_search_goes_on_from_its_trials() -> None:
    whole, trials, landscape = found(either, source=SMALL, budget=100)
    kept = trials.session.ports.journal.read(TRIALS)
    again, _, resumed = found(either, source=SMALL, kept=kept, budget=100)
    assert again == whole
    assert len(resumed.runs) == 1  # the recorded one
    assert len(landscape.runs) > 50


def test_the_budget_ends_the_search() -> None:
    row, trials, _ = found(either, budget=10)
    assert not row.exhausted
    assert len([x for x in trials.made.values() if x.patch]) <= 10 + 6


def test_neighbours_differ_in_one_hyperparameter_also_back_to_its_own_value() -> None:
    one = Hyperparameter(
        id="optimizer", kind="optimizer", value="sgd", line=1, choices=("sgd", "adam")
    )
    other = Hyperparameter(id="epochs", kind="epochs", value="10", line=2, low=1, high=5000)
    first = list(neighbours((), (one, other)))
    assert [x.after for _, patch in first for x in patch] == ["adam", "29", "17", "6", "4"]
    found = neighbours(first[0][1], (one, other))
    behind = [{x.parameter: x.after for x in patch} for _, patch in found]
    assert {} in behind
    assert {"optimizer": "adam", "epochs": "29"} in behind
    assert all(len(patch) != 1 for patch in behind)
