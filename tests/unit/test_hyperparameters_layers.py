"""What layers are given and how they are stacked: initialisers, regularisers, dropout, units,
layers taken out and put in, and clipping beside them.
"""

import pytest

from bot.program.hyperparameters import patch_program
from bot.program.text import NotApplicable
from tests.support.edits import changed, diff, edit, values

KERAS = """\
from keras.models import Sequential
from keras.layers import Dense, Dropout
from keras.initializers import RandomNormal

model = Sequential()
model.add(Dense(16, input_dim=4, activation='relu'))
# half of them
model.add(Dropout(0.5))
model.add(Dense(
    8,
    kernel_initializer=RandomNormal(stddev=1),
))
model.add(Dense(1))
"""
TORCH = """\
import torch
from torch import nn

HIDDEN = 16
model = nn.Sequential(
    nn.Linear(4, HIDDEN),
    nn.ReLU(),
    nn.Dropout(),
    nn.Linear(HIDDEN, 8),
    nn.BatchNorm1d(8),
    nn.ReLU(),
    nn.Linear(8, 1),
)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in pairs:
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
"""


def test_values_of_keras_layers() -> None:
    found = values(KERAS)
    assert found["kernel_initializer(0)"] == "default"
    assert found["kernel_initializer(2)"] == "random_normal"
    assert (found["dropout(1)"], found["units(0)"], found["units(2)"]) == ("0.5", "16", "8")
    assert "units(3)" not in found


def test_keywords_of_keras_layers() -> None:
    assert changed(KERAS, kernel_initializer_2="he_normal") == [
        "    kernel_initializer='he_normal',"
    ]
    assert diff(KERAS, kernel_initializer_2="default") == [
        "-    kernel_initializer=RandomNormal(stddev=1),"
    ]
    assert changed(KERAS, bias_initializer_3="ones") == [
        "model.add(Dense(1, bias_initializer='ones'))"
    ]
    assert changed(KERAS, weight_regularizer_3="l2(0.001)") == [
        "from keras.regularizers import L2",
        "model.add(Dense(1, kernel_regularizer=L2(0.001)))",
    ]
    assert changed(KERAS, dropout_1="0.1", units_0="64") == [
        "model.add(Dense(64, input_dim=4, activation='relu'))",
        "model.add(Dropout(0.1))",
    ]


def test_layers_of_keras_models() -> None:
    assert diff(KERAS, layers_1="removed") == ["-model.add(Dropout(0.5))"]
    assert changed(KERAS, layers_0="dense_after") == ["model.add(Dense(16, activation='relu'))"]
    source = "from keras import Sequential, layers as L\nm = Sequential([\n    L.Dense(8),\n    L.Dense(1),\n])\n"
    assert diff(source, layers_0="batch_norm_after") == ["+    L.BatchNormalization(),"]
    assert diff(source, layers_0="removed") == ["-    L.Dense(8),"]


def test_units_are_changed_with_what_depends_on_them() -> None:
    assert changed(TORCH, units_0="64") == ["    nn.Linear(4, 64),", "    nn.Linear(64, 8),"]
    assert changed(TORCH, units_3="32") == [
        "    nn.Linear(HIDDEN, 32),",
        "    nn.BatchNorm1d(32),",
        "    nn.Linear(32, 1),",
    ]
    flat = TORCH.replace("nn.Linear(8, 1)", "nn.Linear(72, 1)")
    assert "units(3)" not in values(flat)


def test_layers_of_torch_models() -> None:
    assert diff(TORCH, layers_2="removed") == ["-    nn.Dropout(),"]
    longer = patch_program(TORCH, [edit(TORCH, "layers(0)", "dense_after")]).source
    added = "nn.ReLU(),\n    nn.Linear(HIDDEN, HIDDEN),\n    nn.ReLU(),\n    nn.Dropout"
    assert added in longer
    assert diff(TORCH, layers_0="removed") == [
        "-    nn.Linear(4, HIDDEN),",
        "-    nn.Linear(HIDDEN, 8),",
        "+    nn.Linear(4, 8),",
    ]
    with pytest.raises(NotApplicable, match="depend on its width"):
        patch_program(TORCH, [edit(TORCH, "layers(3)", "removed")])


def test_edits_of_one_stack_fit_together() -> None:
    """A place is that after all edits, a width the one that the patch gives."""
    removed = changed(TORCH, layers_2="removed", kernel_initializer_3="he_normal")
    assert "nn.init.kaiming_normal_(model[2].weight)" in removed
    added = changed(TORCH, layers_0="dense_after", kernel_initializer_3="he_normal")
    assert "nn.init.kaiming_normal_(model[5].weight)" in added
    wider = changed(TORCH, layers_0="batch_norm_after", units_0="32")
    assert "    nn.BatchNorm1d(32)," in wider
    both = {"layers(0)": "removed", "units(3)": "4"}
    with pytest.raises(NotApplicable, match="depend on its width"):
        patch_program(TORCH, [edit(TORCH, name, value) for name, value in both.items()])


def test_dropout_of_torch() -> None:
    assert values(TORCH)["dropout(2)"] == "default"
    assert changed(TORCH, dropout_2="0.1") == ["    nn.Dropout(p=0.1),"]


def test_initialisers_of_torch_are_added_after_the_module() -> None:
    assert diff(TORCH, kernel_initializer_3="he_normal") == [
        "+nn.init.kaiming_normal_(model[3].weight)"
    ]


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("nn.init.zeros_(self.fc.weight)", "zeros", "nn.init.xavier_uniform_(self.fc.weight)"),
        (
            "self.fc.weight.data.normal_(0, 9)",
            "random_normal",
            "nn.init.xavier_uniform_(self.fc.weight)",
        ),
        ("nn.init.constant_(self.fc.weight, 1)", "ones", "nn.init.xavier_uniform_(self.fc.weight)"),
    ],
)
def test_initialisers_of_torch_are_changed(before: str, value: str, after: str) -> None:
    source = (
        "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n"
        f"        self.fc = nn.Linear(4, 2)\n        {before}\n"
        "    def forward(self, x):\n        return self.fc(x)\n"
    )
    assert values(source)["kernel_initializer(0)"] == value
    assert changed(source, kernel_initializer_0="glorot_uniform") == [f"        {after}"]
    assert diff(source, kernel_initializer_0="default") == [f"-        {before}"]


def test_initialisers_of_all_modules() -> None:
    source = (
        "from torch import nn\nmodel = nn.Sequential(nn.Linear(4, 2))\n"
        "for m in model.modules():\n    if isinstance(m, nn.Linear):\n"
        "        nn.init.zeros_(m.weight)\n"
    )
    found = values(source)
    assert found["kernel_initializer"] == "zeros"
    assert "kernel_initializer(0)" not in found
    assert diff(source, kernel_initializer="default") == [
        "-        nn.init.zeros_(m.weight)",
        "+        pass",
    ]


def test_clipping_comes_before_the_step() -> None:
    assert diff(TORCH, clipping="1") == ["+    nn.utils.clip_grad_norm_(model.parameters(), 1)"]
    clipped = TORCH.replace(
        "    opt.step", "    nn.utils.clip_grad_norm_(model.parameters(), 5.0)\n    opt.step"
    )
    assert values(clipped)["clipping"] == "5"
    assert changed(clipped, clipping="0.5") == [
        "    nn.utils.clip_grad_norm_(model.parameters(), 0.5)"
    ]
    assert diff(clipped, clipping="none") == [
        "-    nn.utils.clip_grad_norm_(model.parameters(), 5.0)"
    ]


def test_a_patch_of_everything() -> None:
    lines = diff(
        TORCH, optimizer="adam", learning_rate="0.01", clipping="1", loss="huber",
        activation_1="tanh", units_0="32", layers_2="removed", activation_6="sigmoid",
    )  # fmt: skip
    assert [x for x in lines if x.startswith("+")] == [
        "+    nn.Linear(4, 32),",
        "+    nn.Tanh(),",
        "+    nn.Linear(32, 8),",
        "+    nn.Sigmoid(),",
        "+opt = torch.optim.Adam(model.parameters(), lr=0.01)",
        "+    loss = nn.functional.huber_loss(model(x), y)",
        "+    nn.utils.clip_grad_norm_(model.parameters(), 1)",
    ]


@pytest.mark.parametrize(
    "call", ["F.dropout(x, 0.9, self.training)", "torch.dropout(x, p=0.9, train=True)"]
)
def test_dropout_that_is_a_function_belongs_to_the_layer_before_it(call: str) -> None:
    source = (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.first = nn.Linear(4, 8)\n        self.last = nn.Linear(8, 2)\n"
        f"    def forward(self, x):\n        x = F.relu(self.first(x))\n        x = {call}\n"
        "        return self.last(x)\n"
    )
    assert values(source)["dropout(0)"] == "0.9"
    assert changed(source, dropout_0="0.2") == [f"        x = {call.replace('0.9', '0.2')}"]


FILTERS = """\
from torch import nn

model = nn.Sequential(
    nn.Conv2d(1, 8, 3),
    nn.ReLU(),
    nn.Conv2d(8, 8, kernel_size=5, padding=2),
    nn.Conv2d(8, 8, 3, padding="same"),
    nn.Conv2d(8, 8, (3, 5)),
    nn.Conv2d(8, 4, 3, dilation=2),
)
"""


def test_larger_filters_keep_the_shape_of_the_outputs() -> None:
    """The padding grows with them; where that cannot be written, their size is left alone."""
    sizes = {name: value for name, value in values(FILTERS).items() if "kernel_size" in name}
    assert sizes == {"kernel_size(0)": "3", "kernel_size(2)": "5"}
    assert changed(FILTERS, kernel_size_0="5") == ["    nn.Conv2d(1, 8, 5, padding=1),"]
    (line,) = changed(FILTERS, kernel_size_2="7")
    assert line == "    nn.Conv2d(8, 8, kernel_size=7, padding=3),"
    with pytest.raises(NotApplicable):
        changed(FILTERS, kernel_size_0="4")


def test_filters_of_keras_have_a_size() -> None:
    source = KERAS.replace("Dense, Dropout", "Conv1D, Dense, Dropout", 1).replace(
        "model = Sequential()", "model = Sequential()\nmodel.add(Conv1D(8, 3, padding='same'))"
    )
    assert values(source)["kernel_size(0)"] == "3"
    assert changed(source, kernel_size_0="5") == ["model.add(Conv1D(8, 5, padding='same'))"]
