"""Preprocessing: training and test inputs are scaled alike, where both are ready."""

import pytest

from bot.kernel.training_types import Data, Summary, TrainingTrace
from bot.program.hyperparameters import find, patch_program
from tests.support.edits import changed, diff, edit, values

SPLIT = """\
import keras
X_train, X_test, y_train, y_test = train_test_split(X, y)
X_train = X_train.astype('float32')

model = keras.Sequential([keras.layers.Dense(3)])
model.compile(loss='sparse_categorical_crossentropy')
model.fit(X_train, y_train)
print(model.evaluate(X_test, y_test))
"""


def _inputs(*shape: int, ids: bool = False) -> TrainingTrace:
    return TrainingTrace(data=(Data(inputs=Summary(shape=shape, dtype="float32"), ids=ids),))


def test_columns_of_a_table() -> None:
    assert diff(SPLIT, preprocessing="standardise") == [
        "+X_mean, X_std = X_train.mean(axis=0), X_train.std(axis=0)",
        "+X_std = X_std + (X_std == 0)  # constant columns",
        "+X_train, X_test = (X_train - X_mean) / X_std, (X_test - X_mean) / X_std",
    ]


def test_pictures_are_scaled_as_a_whole() -> None:
    assert changed(SPLIT, _inputs(32, 8, 8, 1), preprocessing="standardise") == [
        "X_mean, X_std = X_train.mean(), X_train.std()",
        "X_train, X_test = (X_train - X_mean) / X_std, (X_test - X_mean) / X_std",
    ]
    assert (
        changed(SPLIT, preprocessing="min-max")[0] == "X_min, X_max = X_train.min(), X_train.max()"
    )


def test_ids_are_not_scaled() -> None:
    assert "preprocessing" not in values(SPLIT, _inputs(32, 8, ids=True))


def test_what_the_program_does_itself_is_told() -> None:
    scaled = SPLIT.replace("X_train.astype('float32')", "StandardScaler().fit_transform(X_train)")
    scaled = f"from sklearn.preprocessing import StandardScaler\n{scaled}"
    assert values(scaled)["preprocessing"] == "standardise"


def test_a_split_within_a_function() -> None:
    source = (
        "import torch\ndef read(data):\n    a, b, c, d = train_test_split(data.x, data.y)\n"
        "    return torch.tensor(a), torch.tensor(b)\n"
    )
    assert changed(source, preprocessing="standardise")[-1] == (
        "    a, b = (a - a_mean) / a_std, (b - a_mean) / a_std"
    )


def test_tensors_of_a_loop() -> None:
    source = """\
import torch
model = torch.nn.Linear(4, 1)
x_train = torch.randn(90, 4)
y_train = torch.randn(90, 1)
x_test = torch.randn(9, 4)
for epoch in range(3):
    ((model(x_train) - y_train) ** 2).mean().backward()
print(model(x_test))
"""
    lines = changed(source, preprocessing="standardise")
    assert lines[2:] == [
        "x_train = (x_train - x_mean) / x_std",
        "x_test = (x_test - x_mean) / x_std",
    ]


def test_scaling_of_one_side_and_of_labels() -> None:
    source = SPLIT.replace(
        "X_train = X_train.astype('float32')", "X_train = X_train / 255\ny_train /= 255  # why?"
    )
    found = {x.value: x.id for x in find(source) if x.kind == "preprocessing"}
    assert list(found) == ["none", "X_train alone", "labels scaled"]
    assert diff(source, **{found["X_train alone"]: "both"}) == ["+X_test = X_test / 255"]
    assert diff(source, **{found["labels scaled"]: "unscaled"}) == ["-y_train /= 255  # why?"]


FED = """\
import torch
model = torch.nn.Linear(4, 1)
{}
for epoch in range(3):
    ((model(x) - y) ** 2).mean().backward()
"""


@pytest.mark.parametrize(
    ("data", "after"),
    [
        ("x = torch.randn(90, 4)\ny = x.sum(1)", "y = x.sum(1)"),
        ("x = torch.randn(90, 4)\ny = (x[:, 0] > 0).float()\nz = 1", "y = (x[:, 0] > 0).float()"),
        ("x = torch.randn(90, 4)\nt = x @ w\ny = t.reshape(-1, 1)", "t = x @ w"),
        ("x = torch.randn(90, 4)\ny = torch.randn(90, 1)", "x = torch.randn(90, 4)"),
        ("y = torch.randn(90, 1)\nx = y + torch.randn(90, 4)", "x = y + torch.randn(90, 4)"),
    ],
)
def test_inputs_are_scaled_after_what_is_computed_from_them(data: str, after: str) -> None:
    source = FED.format(data)
    lines = changed(source, preprocessing="standardise")
    assert lines[-1] == "x = (x - x_mean) / x_std"
    whole = patch_program(
        source, [edit(source, "preprocessing", "standardise")]
    ).source.splitlines()
    assert whole.index(after) == whole.index(lines[0]) - 1


def test_inputs_of_a_training_function_are_scaled_after_their_targets() -> None:
    source = """\
import torch
model = torch.nn.Linear(4, 1)
def train(a, b):
    for epoch in range(3):
        ((model(a) - b) ** 2).mean().backward()
x = torch.randn(90, 4)
y = x.sum(1)
train(x, y)
data = torch.utils.data.TensorDataset(x, y)
print((model(x) - y).abs().mean())
guessed = model(x) > 0
"""
    lines = patch_program(
        source, [edit(source, "preprocessing", "standardise")]
    ).source.splitlines()
    assert lines.index("y = x.sum(1)") == lines.index("x = (x - x_mean) / x_std") - 3


@pytest.mark.parametrize(
    "data",
    [
        "x = torch.randn(90, 4)\nrows = torch.tensor(x)\ny = x.sum(1)",  # the copy is used
        "x = torch.randn(90, 4)\nif True:\n    y = x.sum(1)",
    ],
)
def test_inputs_are_not_scaled_where_they_are_needed_unscaled(data: str) -> None:
    assert "preprocessing" not in values(FED.format(data))


def test_inputs_that_are_the_targets_are_not_scaled() -> None:
    source = SPLIT.replace("fit(X_train, y_train)", "fit(X_train, X_train)")
    source = source.replace("X_train, X_test, y_train, y_test = train_test_split(X, y)\n", "")
    assert "preprocessing" in values(source.replace("fit(X_train, X_train)", "fit(X_train, y)"))
    assert "preprocessing" not in values(source)
    same = Summary(shape=(9, 4), dtype="float32", mean=3.0, std=2.0)
    trace = TrainingTrace(data=(Data(inputs=same, targets=same),))
    assert "preprocessing" not in values(SPLIT, trace)
