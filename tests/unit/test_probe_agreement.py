"""Whether targets follow from inputs, by nearest neighbours."""

import numpy
import pytest
from sklearn.datasets import load_diabetes, load_digits, load_iris

from sandbox.probe.training.numbers import agreement, thin

_DATA = {
    "images": lambda: load_digits(return_X_y=True),
    "values": lambda: load_diabetes(return_X_y=True),
    "classes that lie crosswise": lambda: _crosswise(),
    "the same rows again": lambda: [numpy.concatenate([x] * 3) for x in load_iris(return_X_y=True)],
}


def _crosswise() -> tuple[numpy.ndarray, numpy.ndarray]:
    inputs = numpy.random.default_rng(0).normal(size=(400, 2))
    return inputs, (inputs[:, 0] * inputs[:, 1] > 0).astype(int)


def _agreement(inputs: numpy.ndarray, targets: numpy.ndarray) -> float:
    table = targets.astype(float).reshape(len(targets), -1)
    found = agreement(numpy, thin(inputs.astype(float)), table)
    assert found is not None
    return found


@pytest.mark.parametrize("name", _DATA)
def test_targets_agree_with_those_of_neighbours_until_they_are_shuffled(name: str) -> None:
    inputs, targets = _DATA[name]()
    assert _agreement(inputs, targets) > 8
    for seed in range(5):
        mixed = numpy.random.default_rng(seed).permutation(targets)
        assert abs(_agreement(inputs, mixed)) < 4


def test_one_hot_rows_and_labels_are_the_same_targets() -> None:
    inputs, targets = load_digits(return_X_y=True)
    assert _agreement(inputs, numpy.eye(10)[targets]) == _agreement(inputs, targets)


def test_too_few_different_samples_say_nothing() -> None:
    corners = numpy.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 100)
    assert agreement(numpy, corners, corners[:, :1]) is None
    assert agreement(numpy, corners[:20], corners[:20, :1]) is None
    assert agreement(numpy, corners * numpy.nan, corners[:, :1]) is None
    assert agreement(numpy, corners, corners[:8, :1]) is None
