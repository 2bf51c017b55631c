"""Activations: of keywords, layers, modules and functions, changed, added and taken away."""

import pytest

from bot.kernel.training_types import TrainedModel, TrainingTrace
from bot.program.hyperparameters import find
from tests.support.edits import changed, diff, values

KERAS = """\
from keras import Input, Sequential, layers
model = Sequential([
    Input((4,)),
    layers.Dense(8, activation='relu'),  # hidden
    layers.Dense(8),
    layers.BatchNormalization(),
    layers.LeakyReLU(),
    layers.Dense(3),
])
"""
LIST = """\
from torch import nn
model = nn.Sequential(
    nn.Linear(4, 8),
    nn.ReLU(),
    nn.Linear(8, 8), nn.Tanh(),
    nn.Linear(8, 3),
)
"""
NET = """\
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 3)
        self.inp = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        x = F.relu(self.drop(self.inp(x)))
        return self.out(x)
"""


def test_keras_layers_are_counted_without_the_input() -> None:
    found = values(KERAS)
    assert {x: v for x, v in found.items() if x.startswith("activation")} == {
        "activation(0)": "relu", "activation(3)": "leaky_relu", "activation(4)": "linear",
    }  # fmt: skip


def test_keras_activations_are_written() -> None:
    assert changed(KERAS, activation_0="tanh") == [
        "    layers.Dense(8, activation='tanh'),  # hidden"
    ]
    assert changed(KERAS, activation_3="selu") == ["    layers.Activation('selu'),"]
    assert changed(KERAS, activation_4="softmax") == ["    layers.Dense(3, activation='softmax'),"]


def test_modules_of_a_list() -> None:
    assert values(LIST) | {} == values(LIST)
    assert values(LIST)["activation(3)"] == "tanh"
    assert changed(LIST, activation_1="gelu") == ["    nn.GELU(),"]
    assert diff(LIST, activation_4="softmax") == ["+    nn.Softmax(dim=-1),"]
    assert changed(LIST, activation_3="linear") == ["    nn.Linear(8, 8), nn.Identity(),"]


def test_functions_of_a_forward_pass() -> None:
    assert {x.id: (x.value, x.line) for x in find(NET) if x.kind == "activation"} == {
        "activation(0)": ("relu", 13),
        "activation(2)": ("linear", 8),
    }
    assert changed(NET, activation_0="tanh") == ["        x = F.tanh(self.drop(self.inp(x)))"]
    assert changed(NET, activation_0="linear") == ["        x = self.drop(self.inp(x))"]
    assert changed(NET, activation_2="sigmoid") == ["        return torch.sigmoid(self.out(x))"]
    assert changed(NET, activation_2="log_softmax") == [
        "        return torch.log_softmax(self.out(x), dim=-1)"
    ]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("torch.softmax(self.out(x), dim=1)", "self.out(x)"),
        ("self.out(x).softmax(1)", "self.out(x)"),
        ("nn.Softmax(dim=1)(self.out(x))", "self.out(x)"),
        ("nn.functional.log_softmax(self.out(x), 1)", "self.out(x)"),
    ],
)
def test_a_function_at_the_end_is_taken_away(written: str, wanted: str) -> None:
    source = NET.replace("return self.out(x)", f"return {written}")
    assert changed(source, activation_2="linear") == [f"        return {wanted}"]


def test_a_trace_tells_the_indices() -> None:
    layers = [
        {"index": 0, "name": "embed", "type": "Embedding"},
        {"index": 1, "name": "net.inp", "type": "Linear"},
        {"index": 3, "name": "net.out", "type": "Linear"},
    ]
    model = TrainedModel.model_validate({"id": "m", "framework": "torch", "layers": layers})
    found = values(NET, TrainingTrace(models=(model,)))
    assert {x for x in found if x.startswith("activation")} == {"activation(1)", "activation(3)"}


def test_layers_of_a_loop_are_one_place() -> None:
    source = (
        "import keras\nmodel = keras.Sequential()\nfor _ in range(3):\n"
        "    model.add(keras.layers.Dense(8, activation='tanh'))\nmodel.add(keras.layers.Dense(1))\n"
    )
    layers = [{"index": n, "name": f"d{n}", "type": "Dense"} for n in range(4)]
    model = TrainedModel.model_validate({"id": "m", "framework": "keras", "layers": layers})
    found = values(source, TrainingTrace(models=(model,)))
    assert {x: v for x, v in found.items() if x.startswith("activation")} == {
        "activation(0)": "tanh", "activation(3)": "linear",
    }  # fmt: skip


NET_CLASS = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
LAYERS = "nn.Linear(2, 8),\n    nn.Tanh(),\n    nn.Linear(8, 2),\n"


@pytest.mark.parametrize(
    "source",
    [
        f"layers = [\n    {LAYERS}]\nmodel = nn.Sequential(*layers)\n",
        f"model = nn.Sequential(*[\n    {LAYERS}])\n",
        "first, last = nn.Linear(2, 8), nn.Linear(8, 2)\nmodel = nn.Sequential(first, nn.Tanh(), last)\n",
        f"{NET_CLASS}        self.body = nn.ModuleList([{' '.join(LAYERS.split())}])\n",
    ],
    ids=["named list", "list in place", "modules by name", "module list"],
)
def test_modules_in_a_list_are_found_in_a_trace(source: str) -> None:
    prefix = "body." if "ModuleList" in source else ""
    layers = [
        {"index": n, "name": f"{prefix}{n}", "type": kind}
        for n, kind in enumerate(("Linear", "Tanh", "Linear"))
    ]
    model = TrainedModel.model_validate({"id": "m", "framework": "torch", "layers": layers})
    found = values("from torch import nn\n" + source, TrainingTrace(models=(model,)))
    assert found["activation(1)"] == "tanh"


def test_modules_of_another_model_are_not_taken_for_these() -> None:
    source = f"from torch import nn\nlayers = [\n    {LAYERS}]\nmodel = nn.Sequential(*layers)\n"
    layers = [{"index": n, "name": f"x{n}", "type": "Linear"} for n in range(3)]
    model = TrainedModel.model_validate({"id": "m", "framework": "torch", "layers": layers})
    assert not any("(" in one for one in values(source, TrainingTrace(models=(model,))))


def test_modules_that_one_statement_names_are_told_apart() -> None:
    source = (
        f"from torch import nn\n{NET_CLASS}        self.a, self.b = nn.Linear(2, 8), nn.Tanh()\n"
        "        self.c = nn.Linear(8, 2)\n    def forward(self, x):\n"
        "        return self.c(self.b(self.a(x)))\n"
    )
    layers = [
        {"index": n, "name": name, "type": kind}
        for n, (name, kind) in enumerate((("a", "Linear"), ("b", "Tanh"), ("c", "Linear")))
    ]
    model = TrainedModel.model_validate({"id": "m", "framework": "torch", "layers": layers})
    assert values(source, TrainingTrace(models=(model,)))["activation(1)"] == "tanh"
