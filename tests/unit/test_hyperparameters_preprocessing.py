"""Preprocessing: training and test inputs are scaled alike, where both are ready."""

from bot.models.training import Data, Summary, TrainingTrace
from bot.rules.hyperparameters import find
from tests.support.edits import changed, diff, values

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
