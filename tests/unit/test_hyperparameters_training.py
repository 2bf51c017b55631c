"""Optimiser, learning rate, epochs and batch size are changed where they are used, and a patch
changes no other line.
"""

import pytest

from bot.kernel.training_types import Edit, Plan, TrainingTrace
from bot.program.hyperparameters import find, patch_program
from bot.program.text import NotApplicable
from tests.support.edits import changed, diff, edit, values

KERAS = """\
from keras.models import Sequential
from keras.layers import Dense

model = Sequential([Dense(8, activation='relu'), Dense(1)])
model.compile(optimizer='rmsprop', loss='mse')  # as in the paper
model.fit(x, y, epochs=20, verbose=0)
"""
TORCH = """\
import argparse
import torch
from torch import nn, optim

parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", "--lr", type=float, default=0.5)
args = parser.parse_args()
EPOCHS = 5
BATCH = 16

model = nn.Linear(4, 2)
optimizer = optim.SGD(model.parameters(), lr=args.learning_rate, momentum=0.9)

for epoch in range(1, EPOCHS + 1):
    for i in range(0, len(x), BATCH):
        loss = criterion(model(x[i:i + BATCH]), y[i:i + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_values_of_a_keras_program() -> None:
    found = values(KERAS)
    assert found["optimizer"] == "rmsprop"
    assert found["learning_rate"] == "default"
    assert (found["epochs"], found["batch_size"]) == ("20", "default")


def test_a_name_becomes_a_construction_only_for_a_rate() -> None:
    assert changed(KERAS, optimizer="adam") == [
        "model.compile(optimizer='adam', loss='mse')  # as in the paper"
    ]
    assert changed(KERAS, learning_rate="0.1") == [
        "from keras.optimizers import RMSprop",
        "model.compile(optimizer=RMSprop(learning_rate=0.1), loss='mse')  # as in the paper",
    ]


def test_a_whole_rate_is_written_as_a_real_number() -> None:
    """Keras refuses an integer."""
    assert "RMSprop(learning_rate=1.0)" in changed(KERAS, learning_rate="1")[1]


def test_edits_of_one_optimiser_are_written_together() -> None:
    assert changed(KERAS, optimizer="sgd", learning_rate="0.1", momentum="0.9", clipping="1")[
        1
    ] == (
        "model.compile(optimizer=SGD(learning_rate=0.1, momentum=0.9, clipnorm=1.0), loss='mse')"
        "  # as in the paper"
    )


def test_numbers_that_are_not_given_are_added() -> None:
    assert changed(KERAS, batch_size="64") == [
        "model.fit(x, y, epochs=20, verbose=0, batch_size=64)"
    ]
    bare = "import keras\nmodel.compile()\nmodel.fit(x, y)\n"
    assert changed(bare, optimizer="adam", epochs="3") == [
        'model.compile(optimizer="adam")',
        "model.fit(x, y, epochs=3)",
    ]


def test_numbers_are_changed_where_they_are_used() -> None:
    assert diff(TORCH, learning_rate="0.01")[1] == (
        "+optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)"
    )
    assert changed(TORCH.replace("+ 1", "+ 2"), epochs="30") == ["for epoch in range(1, 29 + 2):"]
    assert changed(TORCH, batch_size="64") == [
        "    for i in range(0, len(x), 64):",
        "        loss = criterion(model(x[i:i + 64]), y[i:i + 64])",
    ]


def test_another_optimiser_keeps_a_rate_that_suits_it_and_drops_what_it_has_not() -> None:
    kept = TORCH.replace("args.learning_rate", "0.005")
    assert changed(kept, optimizer="adam") == [
        "optimizer = optim.Adam(model.parameters(), lr=0.005)"
    ]
    high = TORCH.replace("args.learning_rate", "0.5")
    assert changed(high, optimizer="adam")[0].endswith("lr=0.001)")
    assert changed(high, optimizer="adam", learning_rate="0.2")[0].endswith("lr=0.2)")


@pytest.mark.parametrize(
    ("loop", "wanted"),
    [
        ("for epoch in range(10):", "for epoch in range(7):"),
        ("for epoch in range(1, 11):", "for epoch in range(1, 8):"),
        ("for epoch in tqdm(range(10), desc='x'):", "for epoch in tqdm(range(7), desc='x'):"),
        ("for epoch in trange(10):", "for epoch in trange(7):"),
        ("for _ in range(10):", "for _ in range(7):"),
        ("while epoch < 10:", "while epoch < 7:"),
    ],
)
def test_epochs_of_loops(loop: str, wanted: str) -> None:
    source = f"import torch\n{loop}\n    for x, y in pairs:\n        loss(x, y).backward()\n"
    assert values(source)["epochs"] == "10"
    assert changed(source, epochs="7") == [wanted]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("loader = DataLoader(data, 8)\nfor x in loader:", "loader = DataLoader(data, 32)"),
        ("for x in DataLoader(data, batch_size=8):", "for x in DataLoader(data, batch_size=32):"),
        ("for x in torch.randperm(9).split(8):", "for x in torch.randperm(9).split(32):"),
        ("for x in batches(size=8):", "    for i in range(0, 90, 32):"),
    ],
)
def test_batches_of_loops(lines: str, wanted: str) -> None:
    source = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n"
        "def batches(size):\n    for i in range(0, 90, size):\n        yield data[i:i + size]\n\n"
        f"{lines}\n    model(x).backward()\n"
    )
    assert values(source)["batch_size"] == "8"
    assert changed(source, batch_size="32")[0] == wanted


def test_a_number_that_is_written_twice_is_changed_twice() -> None:
    source = "import torch\nfor i in range(0, 90, 32):\n    model(x[i:i + 32], 32).backward()\n"
    assert changed(source, batch_size="8") == [
        "for i in range(0, 90, 8):",
        "    model(x[i:i + 8], 32).backward()",
    ]


def test_epochs_by_a_name_that_nobody_reads() -> None:
    source = (
        "import keras\nmodel = Wrapper(build, nb_epoch=200, batch_size=5)\n"
        "class Wrapper:\n    def fit(self, X, y):\n        self.model.fit(X, y, **self.kept)\n"
    )
    assert values(source)["epochs"] == "default"
    assert changed(source, epochs="200") == ["model = Wrapper(build, epochs=200, batch_size=5)"]


@pytest.mark.parametrize(
    "lines",
    [
        "rate = 0.1\nopt = optim.Adam(p, lr=rate)",
        "def train(rate=0.1):\n    opt = optim.Adam(p, lr=rate)",
        "def train(rate):\n    opt = optim.Adam(p, lr=rate)\ntrain(0.1)",
        """\
class T:
    def __init__(self, lr):
        self.lr = lr
        self.opt = optim.Adam(p, lr=self.lr)

T(lr=0.1)""",
        "opt = optim.Adam(p, 0.1)",
    ],
)
def test_a_rate_that_a_name_was_given_once_is_known(lines: str) -> None:
    source = f"from torch import optim\n{lines}\n"
    assert values(source)["learning_rate"] == "0.1"
    (line,) = changed(source, learning_rate="0.003")
    assert "0.003" in line


def test_a_name_that_may_have_two_values_is_not_known() -> None:
    source = "from torch import optim\ndef train(rate=0.1):\n    if slow:\n        rate = 0.01\n"
    source += "    opt = optim.Adam(p, lr=rate)\n"
    assert values(source)["learning_rate"] == "default"
    assert changed(source, learning_rate="0.003") == ["    opt = optim.Adam(p, lr=0.003)"]


def test_the_optimiser_that_compile_gets_is_the_one() -> None:
    source = (
        "from keras.optimizers import SGD\nsgd = SGD(0.1)\n"
        "model.compile(loss='mse', optimizer='adam')\nmodel.fit(x, y)\n"
    )
    assert values(source)["optimizer"] == "adam"


def test_a_class_that_is_used_once_is_imported_instead_of_the_one_before() -> None:
    source = "from torch.optim import SGD\nopt = SGD(p, lr=0.005, nesterov=True, momentum=0.9)\n"
    assert changed(source, optimizer="adamw") == [
        "from torch.optim import AdamW",
        "opt = AdamW(p, lr=0.005)",
    ]
    twice = f"{source}other = SGD(q)\n"
    assert changed(twice, optimizer="adamw")[0] == "from torch.optim import SGD, AdamW"


def test_a_number_that_is_computed_is_known_from_a_trace() -> None:
    source = KERAS.replace("epochs=20", "epochs=20, batch_size=len(x)")
    trace = TrainingTrace(plans=(Plan(batch_size=150),))
    assert "batch_size" not in values(source)
    assert values(source, trace)["batch_size"] == "150"
    assert changed(source, trace, batch_size="32") == [
        "model.fit(x, y, epochs=20, batch_size=32, verbose=0)"
    ]


def test_what_cannot_be_written_is_told() -> None:
    with pytest.raises(NotApplicable, match="no hyperparameter"):
        patch_program(KERAS, [Edit(parameter="dropout(7)", kind="dropout", before="", after="0.1")])
    for name, value in (("learning_rate", "fast"), ("epochs", "0"), ("epochs", "20.0")):
        with pytest.raises(NotApplicable):
            patch_program(KERAS, [edit(KERAS, name, value)])
    with pytest.raises(NotApplicable):
        patch_program("def (", [])
    with pytest.raises(NotApplicable):
        patch_program(KERAS, [])


@pytest.mark.parametrize(
    "source", ["", "def (", "x = " + "(" * 500, "print 'hello'", "\0", "x = 1\n" * 10, "\ud800"]
)
def test_odd_text_has_none(source: str) -> None:
    assert find(source) == ()


def test_hostile_text_costs_little() -> None:
    many = "import torch\n" + "loss = a(b, c)\nloss.backward()\noptim.SGD(p, lr=f.lr)\n" * 300
    assert len(find(many)) < 300
    assert find("x = 1\n" * 10**6) == ()
