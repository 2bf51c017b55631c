"""Each operator changes what it says and nothing else, and names the right layer."""

import ast
import difflib

import pytest

from benchmarks.mutants.family import FOLDER, load, read
from benchmarks.mutants.operators import mutants

FAMILIES = load(FOLDER)

TORCH = """#: framework=torch metric=accuracy direction=max good=0.9 data="points"
import torch
from torch import nn
from torch.optim import Adam

BATCH = 16  #: batch
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 8)  #: layer 0 as .fc1
        self.act = nn.ReLU()  #: act 1 own
        self.fc2 = nn.Linear(8, 3)  #: layer 2 as .fc2; init self

    def forward(self, x):
        x = torch.tanh(self.act(self.fc1(x)))  #: act 0
        return self.fc2(x)  #: out 2

net = Net()
criterion = nn.CrossEntropyLoss()  #: loss classes of 3
optimizer = Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99))  #: rate; optimizer
for epoch in range(20):  #: epochs
    loss = criterion(net(x), y)  #: objective net
#! CPP: net(x), y ==> net(x * 10), y
"""

KERAS = """#: framework=keras metric=accuracy direction=max good=0.9 data="points"
import keras
from keras.layers import Activation, Dense

model = keras.Sequential()
model.add(Dense(8, activation="relu", input_shape=(4,)))  #: layer 0; act 0
model.add(Dense(8))  #: layer 1
model.add(Activation("tanh"))  #: act 2 own
model.add(Dense(1))  #: layer 3; out 3
model.compile("adam", loss="mse")  #: optimizer; loss regression
model.fit(x, y, batch_size=32, epochs=10)  #: epochs; batch
"""


def changes(text, operator, contains=""):
    """What a family's mutants of an operator change: code, lines before, lines after."""
    family = read("toy", text)
    found = []
    for mutant in mutants(family):
        if mutant.operator == operator and contains in mutant.change:
            diff = list(
                difflib.ndiff(family.source.splitlines(), mutant.source.splitlines(), None, None)
            )
            old = [line[2:].strip() for line in diff if line.startswith("- ")]
            new = [line[2:].strip() for line in diff if line.startswith("+ ")]
            found.append((mutant.codes[0], old, new))
    return found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_is_a_program_without_marks_and_so_is_each_mutant(family):
    every = mutants(family)
    assert {"HLR", "HNE", "OCH", "LCH", "WCI", "BCI", "RAW"} <= {one.operator for one in every}
    for program in (family.source, *(mutant.source for mutant in every)):
        ast.parse(program)
        assert "#:" not in program
        assert "#!" not in program
    assert all(mutant.source != family.source for mutant in every)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_number_is_changed_in_one_line_alone(family):
    for mutant in mutants(family):
        if mutant.operator in ("HLR", "HNE", "HBS"):
            pairs = zip(family.source.splitlines(), mutant.source.splitlines(), strict=True)
            assert sum(old != new for old, new in pairs) == 1


@pytest.mark.parametrize(
    ("text", "operator", "contains", "expected"),
    [
        (
            TORCH,
            "HLR",
            "to 1e-07",
            (
                "HLR",
                ["optimizer = Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99))"],
                ["optimizer = Adam(net.parameters(), lr=1e-07, betas=(0.9, 0.99))"],
            ),
        ),
        (
            TORCH,
            "HNE",
            "to 1",
            ("HNE", ["for epoch in range(20):"], ["for epoch in range(1):"]),
        ),
        (TORCH, "HBS", "to 512", ("HBS", ["BATCH = 16"], ["BATCH = 512"])),
        (
            TORCH,
            "OCH",
            "SGD",
            (
                "OCH",
                [
                    "from torch.optim import Adam",
                    "optimizer = Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99))",
                ],
                ["from torch.optim import SGD", "optimizer = SGD(net.parameters(), lr=1e-3)"],
            ),
        ),
        (
            TORCH,
            "LCH",
            "F.nll_loss",
            (
                "LCH",
                ["criterion = nn.CrossEntropyLoss()"],
                [
                    "import torch.nn.functional as F",
                    "def criterion(output, target):",
                    "return F.nll_loss(output, target)",
                ],
            ),
        ),
        (
            TORCH,
            "ACH",
            "layer 1 to softmax",
            ("ACH(1)", ["self.act = nn.ReLU()"], ["self.act = nn.Softmax(dim=1)"]),
        ),
        (
            TORCH,
            "ACH",
            "layer 0 to sigmoid",
            (
                "ACH(0)",
                ["x = torch.tanh(self.act(self.fc1(x)))"],
                ["x = torch.sigmoid(self.act(self.fc1(x)))"],
            ),
        ),
        (
            TORCH,
            "ARM",
            "layer 1",
            ("ARM(0)", ["self.act = nn.ReLU()"], ["self.act = nn.Identity()"]),
        ),
        (
            TORCH,
            "AAL",
            "tanh",
            ("AAL(2)", ["return self.fc2(x)"], ["return torch.tanh(self.fc2(x))"]),
        ),
        (
            TORCH,
            "WCI",
            "layer 0: nn.init.zeros_",
            ("WCI(0)", [], ["nn.init.zeros_(self.fc1.weight)"]),
        ),
        (
            TORCH,
            "BCI",
            "layer 2: nn.init.normal_",
            ("BCI(2)", [], ["nn.init.normal_(self.fc2.bias, std=10.0)"]),
        ),
        (
            TORCH,
            "RAW",
            "layer 2: 0.1",
            (
                "RAW(2)",
                ["loss = criterion(net(x), y)"],
                ["loss = criterion(net(x), y) + 0.1 * net.fc2.weight.abs().sum()"],
            ),
        ),
        (
            TORCH,
            "CPP",
            "",
            ("CPP", ["loss = criterion(net(x), y)"], ["loss = criterion(net(x * 10), y)"]),
        ),
        (
            KERAS,
            "OCH",
            "SGD",
            (
                "OCH",
                ['model.compile("adam", loss="mse")'],
                ['model.compile("sgd", loss="mse")'],
            ),
        ),
        (
            KERAS,
            "LCH",
            "poisson",
            (
                "LCH",
                ['model.compile("adam", loss="mse")'],
                ['model.compile("adam", loss="poisson")'],
            ),
        ),
        (
            KERAS,
            "HNE",
            "to 2",
            (
                "HNE",
                ["model.fit(x, y, batch_size=32, epochs=10)"],
                ["model.fit(x, y, batch_size=32, epochs=2)"],
            ),
        ),
        (
            KERAS,
            "HBS",
            "to 256",
            (
                "HBS",
                ["model.fit(x, y, batch_size=32, epochs=10)"],
                ["model.fit(x, y, batch_size=256, epochs=10)"],
            ),
        ),
        (
            KERAS,
            "ARM",
            "layer 0",
            (
                "ARM(0)",
                ['model.add(Dense(8, activation="relu", input_shape=(4,)))'],
                ["model.add(Dense(8, input_shape=(4,)))"],
            ),
        ),
        (KERAS, "ARM", "layer 2", ("ARM(1)", ['model.add(Activation("tanh"))'], [])),
        (
            KERAS,
            "AAL",
            "relu",
            ("AAL(3)", ["model.add(Dense(1))"], ['model.add(Dense(1, activation="relu"))']),
        ),
        (
            KERAS,
            "WCI",
            'layer 1: "zeros"',
            (
                "WCI(1)",
                ["model.add(Dense(8))"],
                ['model.add(Dense(8, kernel_initializer="zeros"))'],
            ),
        ),
    ],
)
def test_an_operator_changes_what_it_says(text, operator, contains, expected):
    assert expected in changes(text, operator, contains)


def test_a_removed_activation_layer_may_be_named_by_either_index():
    removed = next(one for one in mutants(read("toy", KERAS)) if one.codes == ("ARM(1)",))
    assert removed.alternatives == (("ACH(1)",), ("ARM(2)",), ("ACH(2)",))


def test_an_edit_of_a_familys_own_must_have_one_place():
    with pytest.raises(ValueError, match="not exactly one place"):
        mutants(read("toy", TORCH + "#! CPP: x ==> y\n"))


def test_an_edit_of_a_familys_own_must_have_a_code():
    with pytest.raises(ValueError, match="is no fault code"):
        mutants(read("toy", TORCH + "#! LCN(0)+LCN(1): x ==> y\n"))
