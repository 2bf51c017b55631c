"""Whether targets follow from inputs, by nearest neighbours."""

from collections.abc import Sequence

import numpy
import pytest

from sandbox.probe.training.numbers import agreement, thin


def _data(name: str) -> Sequence[numpy.ndarray]:
    from sklearn import datasets  # takes a second, in each process that collects this file

    if name == "classes that lie crosswise":
        return _crosswise()
    arrays: Sequence[numpy.ndarray] = getattr(datasets, f"load_{name}")(return_X_y=True)
    return [numpy.concatenate([array] * 3) for array in arrays] if name == "iris" else arrays


def _crosswise() -> tuple[numpy.ndarray, numpy.ndarray]:
    inputs = numpy.random.default_rng(0).normal(size=(400, 2))
    return inputs, (inputs[:, 0] * inputs[:, 1] > 0).astype(int)


def _agreement(inputs: numpy.ndarray, targets: numpy.ndarray) -> float:
    table = targets.astype(float).reshape(len(targets), -1)
    found = agreement(numpy, thin(inputs.astype(float)), table)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["digits", "diabetes", "iris", "classes that lie crosswise"])
def test_targets_agree_with_those_of_neighbours_until_they_are_shuffled(name: str) -> None:
    inputs, targets = _data(name)
    assert _agreement(inputs, targets) > 8
    for seed in range(5):
        mixed = numpy.random.default_rng(seed).permutation(targets)
        assert abs(_agreement(inputs, mixed)) < 4


def test_one_hot_rows_and_labels_are_the_same_targets() -> None:
    inputs, targets = _data("digits")
    assert _agreement(inputs, numpy.eye(10)[targets]) == _agreement(inputs, targets)


def test_too_few_different_samples_say_nothing() -> None:
    corners = numpy.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 100)
    assert agreement(numpy, corners, corners[:, :1]) is None
    assert agreement(numpy, corners[:20], corners[:20, :1]) is None
    assert agreement(numpy, corners * numpy.nan, corners[:, :1]) is None
    assert agreement(numpy, corners, corners[:8, :1]) is None
