"""Losses: of Keras by the form of the labels, of PyTorch wherever they are computed, with
predictions and targets that fit the new one.
"""

import pytest

from bot.kernel.training_types import Loss, Summary, TrainingTrace
from bot.program.hyperparameters import find, patch_program
from bot.program.text import NotApplicable
from tests.support.edits import changed, diff, edit, values

KERAS = """\
import keras
model = keras.Sequential([keras.layers.Dense(3)])
model.compile(optimizer='sgd', loss={})
model.fit(x, y)
"""
TORCH = """\
import torch
from torch import nn
import torch.nn.functional as F

model = nn.Linear(4, 3)
criterion = nn.{}()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    loss = criterion(model(x), y)
    loss.backward()
    opt.step()
print(criterion(model(x_test), y_test))
"""

_FUNCTION = """\
def criterion(out, y):
    return F.l1_loss(F.softmax(out, dim=1), F.one_hot(y, 3).float())
"""


def _trace(
    predictions: tuple[int, ...],
    targets: tuple[int, ...],
    dtype: str = "float32",
    *,
    high: float = 1.0,
    one_hot: bool = False,
    integer: bool = False,
) -> TrainingTrace:
    loss = Loss(
        model="m", name="mse", predictions=Summary(shape=predictions, dtype="float32"),
        targets=Summary(shape=targets, dtype=dtype, minimum=0.0, maximum=high),
        one_hot=one_hot, integer_targets=integer,
    )  # fmt: skip
    return TrainingTrace(losses=(loss,))


def test_keras_losses_by_name_and_object() -> None:
    assert changed(KERAS.format("'mse'"), loss="mae") == [
        "model.compile(optimizer='sgd', loss='mean_absolute_error')"
    ]
    made = "keras.losses.CategoricalCrossentropy(from_logits=True)"
    assert changed(KERAS.format(made), loss="binary_crossentropy") == [
        "model.compile(optimizer='sgd', loss=keras.losses.BinaryCrossentropy(from_logits=True))"
    ]
    assert values(KERAS.format("keras.losses.MeanSquaredError()"))["loss"] == "mse"


def test_keras_losses_have_the_form_of_the_labels() -> None:
    source = KERAS.format("'mse'")
    classes = _trace((32, 3), (32,), "int64", high=2.0, integer=True)
    (found,) = [x for x in find(source, classes) if x.kind == "loss"]
    assert found.choices == ("sparse_categorical_crossentropy", "mse")
    assert "sparse_" in changed(source, classes, loss="sparse_categorical_crossentropy")[0]
    one_hot = _trace((32, 3), (32, 3), one_hot=True)
    assert "'categorical_" in changed(source, one_hot, loss="categorical_crossentropy")[0]
    for trace, loss in ((classes, "categorical"), (one_hot, "sparse_categorical")):
        with pytest.raises(NotApplicable, match="cannot be"):
            patch_program(source, [edit(source, "loss", f"{loss}_crossentropy")], trace)


def test_an_object_is_changed_where_it_is_made() -> None:
    assert changed(TORCH.format("MSELoss"), loss="mae") == ["criterion = nn.L1Loss()"]


@pytest.mark.parametrize(
    ("before", "trace", "after", "targets"),
    [
        ("MSELoss", _trace((9, 3), (9, 3), one_hot=True), "cross_entropy", "y.argmax(dim=1)"),
        ("MSELoss", _trace((9, 3), (9, 1), "int64", integer=True), "cross_entropy", "y.view(-1)"),
        ("MSELoss", _trace((9, 3), (9,), integer=True), "cross_entropy", "y.long()"),
        ("MSELoss", _trace((9, 1), (9, 1), "int64"), "bce_logits", "y.float()"),
        ("MSELoss", _trace((9, 1), (9,)), "bce_logits", "y.view(-1, 1)"),
        ("MSELoss", _trace((9,), (9, 1)), "huber", "y.view(-1)"),
    ],
)
def test_targets_get_the_form_that_the_loss_takes(
    before: str, trace: TrainingTrace, after: str, targets: str
) -> None:
    lines = changed(TORCH.format(before), trace, loss=after)
    assert lines[1] == f"    loss = criterion(model(x), {targets})"
    assert lines[2].startswith("print(criterion(model(x_test), ")


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (_FUNCTION, "    return F.cross_entropy(out, y)"),
        (
            "criterion = lambda out, y: F.mse_loss(out.mean(1), y.float())",
            "criterion = lambda out, y: F.cross_entropy(out, y.long())",
        ),
        (
            "criterion = lambda out, y: F.l1_loss(out.max(1).values, y.float())",
            "criterion = lambda out, y: F.cross_entropy(out, y.long())",
        ),
    ],
)
def test_a_loss_that_the_program_writes_itself(lines: str, wanted: str) -> None:
    source = TORCH.format("MSELoss").replace("criterion = nn.MSELoss()", lines)
    assert changed(source, loss="cross_entropy") == [wanted]


def test_a_written_difference_becomes_a_loss() -> None:
    source = TORCH.format("MSELoss").replace(
        "loss = criterion(model(x), y)", "output = model(x)\n    loss = (y - output).abs().mean()"
    )
    assert diff(source, loss="huber") == [
        "-    loss = (y - output).abs().mean()",
        "+    loss = F.huber_loss(output, y)",
    ]


def test_a_loss_and_the_slices_in_it_are_changed_together() -> None:
    source = (
        "import torch.nn.functional as F\nfor i in range(0, 90, 32):\n"
        "    loss = F.mse_loss(model(x[i:i + 32]), y[i:i + 32])\n    loss.backward()\n"
    )
    assert changed(source, loss="mae", batch_size="8")[1] == (
        "    loss = F.l1_loss(model(x[i:i + 8]), y[i:i + 8])"
    )
