"""What a layer of a Keras model applies last: also one that is a model itself."""

from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.probe.training import keras_layers


class Dense(SimpleNamespace):
    """A layer with weights."""

    weights = ("kernel",)


class GlobalMaxPooling2D(SimpleNamespace):
    """A layer that has nothing to learn."""

    weights = ()


class Sequential(SimpleNamespace):
    """A model of some layers."""

    weights = ("kernel",)


def _relu() -> None:
    """An activation."""


_relu.__name__ = "relu"


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ([Dense(activation=None), Dense(activation=_relu)], "relu"),
        ([Dense(activation=_relu), GlobalMaxPooling2D()], "relu"),
        ([Dense(activation=_relu), Dense(activation=None)], ""),
        ([Sequential(layers=[Dense(activation=_relu)])], "relu"),
        ([GlobalMaxPooling2D()], ""),
    ],
    ids=["two layers", "pooling last", "none last", "a model within", "pooling alone"],
)
def test_a_model_within_a_model_applies_what_its_last_layer_does(parts: list[Any], name: str):
    assert keras_layers.activation(Sequential(layers=parts)) == name
