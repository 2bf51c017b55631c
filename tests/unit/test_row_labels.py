"""Rows and labels that do not belong together, as the probe counts them in any framework."""

from __future__ import annotations

import pytest

from sandbox.probe.training.row_labels import RowLabels


def test_rows_with_several_labels_are_counted_once() -> None:
    pairs = RowLabels()
    pairs.add_labels("abc", [0, 1, 2])
    pairs.add_labels("abd", [0, 2, 1])
    pairs.add_labels("b", [1])
    facts = pairs.facts()
    assert (facts["labelled_rows"], facts["contradicted_rows"]) == (4, 1)


@pytest.mark.parametrize(
    ("keys", "alike"), [("a" * 8, 1), ("a" * 7 + "b", 0), ("aaa", 0)], ids=["one", "two", "few"]
)
def test_a_batch_of_one_row_is_alike(keys: str, alike: int) -> None:
    pairs = RowLabels()
    pairs.add_batch(keys)
    assert pairs.facts()["alike_batches"] == alike


def test_answers_of_two_losses_are_held_against_chance() -> None:
    pairs = RowLabels()
    pairs.add_answers([0, 1] * 50, [0, 1] * 50)
    pairs.add_answers([0, 1] * 50, [1, 0] * 50)
    facts = pairs.facts()
    assert facts["answers"] == 200
    assert facts["answers_agreed"] == 100
    assert facts["answers_by_chance"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("offset", "share"), [(100.0, 1.0), (0.0, 0.0)], ids=["parts", "rows in any order"]
)
def test_the_spread_between_batches_is_told(offset: float, share: float) -> None:
    pairs = RowLabels()
    for batch in range(8):
        pairs.add_levels([batch * offset + at for at in range(10)])
    assert pairs.facts()["between_batches"] == pytest.approx(share, abs=0.01)
