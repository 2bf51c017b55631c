"""Whether the batch normalizations of a Keras model ever ran in training mode, by what they hold."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sandbox.probe.training import keras_layers


@pytest.fixture(autouse=True)
def arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras_layers, "array", np.asarray)


def norm(**changes: Any) -> Any:
    """One that learned by gradients alone."""
    values = {
        "momentum": 0.99, "moving_mean": [0.0, 0.0], "moving_variance": [1.0, 1.0],
        "gamma": [0.9, 1.1], "beta": [0.0, 0.1],
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, True),
        ({"gamma": None}, True),
        ({"moving_mean": [0.01, 0.0]}, False),
        ({"moving_variance": [1.0, 0.99]}, False),
        ({"gamma": [1.0, 1.0], "beta": [0.0, 0.0]}, False),  # it was never used
        ({"gamma": None, "beta": None}, False),
        ({"momentum": 1.0}, False),
    ],
    ids=str,
)
def test_averages_that_never_moved_tell_of_evaluation_mode(changes: Any, told: bool):
    assert keras_layers.is_evaluating(norm(**changes)) == told
