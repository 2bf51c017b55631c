"""The metric that a program reports is found by its own words, the last one it prints."""

import pytest

from bot.kernel.training_types import Epoch, Evaluation, Metric, TrainingStep, TrainingTrace
from bot.training.repair import metric as repair_metric

NOTHING = TrainingTrace()
EPOCHS = TrainingTrace(epochs=(Epoch(epoch=0, step=9, values={"loss": 0.4, "val_accuracy": 0.8}),))


@pytest.mark.parametrize(
    ("output", "name", "direction", "value"),
    [
        ("test score: 0.69\ntest accuracy: 0.5", "accuracy", "max", 0.5),
        ("accuracy: 0.5\ndone in 3 s", "accuracy", "max", 0.5),
        ("epoch 1: loss 0.9\nepoch 2: loss 0.7", "loss", "min", 0.7),
        ("loss=0.3, acc=93.1%", "acc", "max", 93.1),
        ("accuracy = tensor(0.9333)", "accuracy", "max", 0.9333),
        ("Accuracy of the network on 450 images: 87 %", "accuracy", "max", 87.0),
        ("Mean Squared Error: 1.5e-03", "mean squared error", "min", 0.0015),
        ("RMSE -> .25", "rmse", "min", 0.25),
    ],
)
def test_the_last_metric_that_is_printed_counts(
    output: str, name: str, direction: str, value: float
) -> None:
    """Quality before loss on one line, and the last line before earlier ones."""
    found = repair_metric.choose(output, NOTHING)
    assert found is not None
    assert (found.name, found.direction, found.source) == (name, direction, "output")
    assert repair_metric.read_value(found, output) == pytest.approx(value)


def test_a_wanted_metric_is_found_among_others() -> None:
    """By the name that the program prints with it."""
    output = "test mse: 12.5\ntest mae: 3.5"
    found = repair_metric.choose(output, NOTHING, "mse")
    assert found is not None
    assert repair_metric.read_value(found, output) == 12.5
    assert repair_metric.choose(output, NOTHING, "f1") is None


@pytest.mark.parametrize(
    ("wanted", "name", "direction", "value"),
    [
        ("explained variance", "explained variance", "max", 0.8),
        ("Energy:min", "energy", "min", -3.5),
        ("mse:max", "mse", "max", 12.5),
        ("hit@10", "hit@10", "max", 0.25),
        ("quantile_loss", "quantile_loss", "min", 0.1),
    ],
)
def test_a_wanted_metric_need_not_be_a_known_one(
    wanted: str, name: str, direction: str, value: float
) -> None:
    output = (
        "test mse: 12.5\nexplained variance: 0.8\nenergy = -3.5\nhit@10: 0.25\nquantile_loss: 0.1"
    )
    found = repair_metric.choose(output, NOTHING, wanted)
    assert found is not None
    assert (found.name, found.direction) == (name, direction)
    assert repair_metric.read_value(found, output) == value
    assert repair_metric.choose(output, NOTHING, repair_metric.option_text(found)) == found


@pytest.mark.parametrize(
    ("wanted", "output", "value"),
    [
        ("val_acc", "val_acc: 0.71\ntrain_acc: 0.99", 0.71),
        ("macro_f1", "macro_f1: 0.4 micro_f1: 0.6", 0.4),
        ("test_loss", "test_loss: 2.5\ntrain_loss: 0.1", 2.5),
        ("acc", "val_acc: 0.71", 0.71),
        ("test accuracy", "test accuracy = 0.7\naccuracy: 0.9", 0.7),
    ],
)
def test_the_whole_name_counts_before_a_part_of_it(wanted: str, output: str, value: float) -> None:
    found = repair_metric.choose(output, NOTHING, wanted)
    assert found is not None
    assert repair_metric.read_value(found, output) == value
    assert repair_metric.is_loss(found) is ("loss" in wanted)


@pytest.mark.parametrize("wanted", ["<b>: 1", "#7", "\n", "a" * 99, "score:lower"])
def test_a_wanted_name_that_is_no_name_is_refused(wanted: str) -> None:
    assert repair_metric.choose(f"{wanted}: 0.5", NOTHING, wanted) is None


@pytest.mark.parametrize("output", ["", "Accuracies follow", "lossless 12", "accuracy: high"])
def test_no_metric_is_made_up(output: str) -> None:
    """A word without a number, or inside another word, is none."""
    assert repair_metric.choose(output, NOTHING) is None


def test_epochs_that_the_probe_saw_serve_where_nothing_is_printed() -> None:
    """Held-out accuracy before the training loss."""
    found = repair_metric.choose("", EPOCHS)
    assert found is not None
    assert (found.name, found.source) == ("val_accuracy", "epochs")
    assert repair_metric.read_value(found, "", EPOCHS) == 0.8
    assert repair_metric.read_value(found, "", NOTHING) is None


@pytest.mark.parametrize("output", ["test mse: nan", "test mse: inf", "no metric"])
def test_a_run_without_a_finite_number_has_none(output: str) -> None:
    """Not a number that a improvement would take for good."""
    found = repair_metric.choose("test mse: 3", NOTHING)
    assert found is not None
    assert repair_metric.read_value(found, output) is None


@pytest.mark.parametrize(
    ("output", "same"),
    [
        ("test error: 0.53", True),
        ("test error: 0.5312", True),
        ("test error: 0.5313", False),
        ("test error: 0.531", True),
        ("test error: 0.4", False),
        ("error 4.1", True),  # the last epoch's
        ("error 7", True),  # the last step's
        ("error 8", False),
        ("accuracy: 0.53", False),
        ("error: nan", False),
        ("", False),
    ],
)
def test_a_metric_that_has_the_value_of_a_loss_is_the_loss(output: str, same: bool) -> None:
    trace = TrainingTrace(
        evaluations=(Evaluation(losses=(9.0,)), Evaluation(losses=(17.0, 0.53124, float("nan")))),
        epochs=(Epoch(epoch=0, step=1, values={"loss": 4.1, "val_loss": None}),),
        steps=(TrainingStep(step=0, loss=8.0), TrainingStep(step=1, loss=7.0)),
    )
    metric = repair_metric.choose(output, trace) or Metric(
        name="x", direction="min", source="output"
    )
    assert repair_metric.was_loss(metric, output, trace) is same


@pytest.mark.parametrize(
    ("name", "loss", "same"),
    [
        ("mse", "mse", True),
        ("mean squared error", "mse", True),
        ("val_rmse", "mse", True),
        ("nll", "sparse_categorical_crossentropy", True),
        ("mae", "mse", False),
        ("accuracy", "cross_entropy", False),
    ],
)
def test_a_metric_with_the_name_of_the_loss_may_be_the_loss(
    name: str, loss: str, same: bool
) -> None:
    assert (
        repair_metric.may_be_loss(Metric(name=name, direction="min", source="output"), (loss,))
        is same
    )
