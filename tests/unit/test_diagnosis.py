"""The diagnosis as a whole: silence on healthy runs, ranking, cross-validation, hostile traces."""

from typing import Any

import pytest

from bot.kernel.training_types import ActivationStep, Epoch, Layer, ProbeEnd, TrainingTrace
from bot.training.diagnosis.rule import trainings
from bot.training.diagnosis.rules import _EFFECTS, RULES, constant_end, diagnose
from tests.support.traces import (
    FLAT,
    GOOD,
    LAYERS,
    curve,
    dense,
    loss,
    steps,
    summary,
    trace,
    weight,
)


def codes(told: TrainingTrace) -> set[str]:
    diagnosis = diagnose(told)
    return {code for x in (*diagnosis.findings, *diagnosis.doubts) for code in x.codes}


def test_a_run_that_learned_is_not_spoken_of():
    assert diagnose(trace()).findings == ()
    assert "loss curve" in diagnose(trace()).examined


@pytest.mark.parametrize(("end", "told"), [(0.25, set()), (1.0, {"CPP"})])
def test_inputs_without_scale_are_not_spoken_of_where_all_was_learned(
    end: float, told: set[str]
) -> None:
    pixels = {"inputs": summary((800, 64), 0, 255)}
    assert codes(trace(losses=curve(2.3, end), data=pixels)) == told


def test_a_trace_of_nothing_is_an_answer():
    assert diagnose(TrainingTrace()).findings == ()
    assert diagnose(TrainingTrace()).examined == ()


def test_what_breaks_the_contract_comes_first_and_curves_it_explains_last():
    last = dense(2, 32, 10, "linear")
    fed = loss(activation="linear", rows_sum_to_one=False)
    slow = steps(FLAT, ratio=1e-6)
    rates = {"rates": (1e-6,)}
    told = diagnose(trace((*LAYERS[:2], last), FLAT, fed=fed, optimizer=rates, taken=slow))
    assert [x.fault for x in told.findings][:2] == ["ACH", "HLR"]
    assert told.findings[0].codes == ("ACH(2)", "ARM(2)")
    assert all(x.confidence < 0.85 for x in told.findings if x.rule == "loss-stuck")


def test_at_most_four_findings():
    layers = (dense(0, 64, 64, "softmax"), *(weight(x, std=0.0, mean=1.0) for x in LAYERS[1:]))
    optimizer = {"name": "sgd", "rates": (30.0,), "weight_decay": 1.0}
    told = trace(layers, FLAT, optimizer=optimizer, fed=loss("mae"), plan={"batch_size": 1})
    assert len(diagnose(told).findings) == 4


@pytest.mark.parametrize(("inputs", "told"), [((-1, 1), {"ACH(0)"}), ((0, 255), {"CPP"})])
def test_what_another_finding_brings_about_is_not_told(
    inputs: tuple[float, float], told: set[str]
) -> None:
    """Units that inputs without scale drive to their bounds need another scale, not a function."""
    layers = (dense(0, 64, 64, "tanh"), *LAYERS[1:])
    full = (ActivationStep(layer=0, mean=0.1, std=0.9, saturated=0.9),)
    losses = curve(2.3, 1.0)
    taken = steps(losses, activations=full)
    run = trace(layers, losses, data={"inputs": summary((800, 64), *inputs)}, taken=taken)
    assert codes(run) == told


def test_layers_with_the_same_fault_are_one_finding():
    layers = (*(weight(x, std=0.0, mean=1.0) for x in LAYERS[:2]), LAYERS[2])
    found = next(x for x in diagnose(trace(layers, FLAT)).findings if x.fault == "WCI")
    assert found.codes == ("WCI(0)", "WCI(1)")


def test_a_finding_names_its_line_and_source():
    found = diagnose(trace(losses=FLAT, optimizer={"rates": (5.0,)})).findings[0]
    assert (found.fault, found.direction, found.line) == ("HLR", "down", 3)
    assert found.source
    assert found.change
    assert found.change.parameter == "learning_rate"


def test_folds_of_a_cross_validation_are_taken_together():
    """A fault of one fold in five is chance; a fault of all is the program's."""
    one = trace(losses=FLAT, taken=steps(FLAT, ratio=0.2))
    good = trace()

    def folds(*parts: TrainingTrace) -> TrainingTrace:
        made = [
            (
                x.models[0].model_copy(update={"id": str(i)}),
                x.losses[0].model_copy(update={"model": str(i)}),
                x.optimizers[0].model_copy(update={"id": str(i), "model": str(i)}),
                tuple(y.model_copy(update={"optimizer": str(i)}) for y in x.steps),
            )
            for i, x in enumerate(parts)
        ]
        return TrainingTrace(
            models=tuple(x[0] for x in made),
            losses=tuple(x[1] for x in made),
            optimizers=tuple(x[2] for x in made),
            steps=tuple(y for x in made for y in x[3]),
        )

    assert codes(folds(one, one, one)) >= {"HLR"}
    assert codes(folds(one, good, good, good, good)) == set()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, -1e30])
def test_odd_losses_break_no_rule(value: float | None):
    fed = loss(trivial=value)
    diagnose(trace(losses=[value or 0.0] * 50, fed=fed))
    diagnose(trace(losses=[], fed=fed))


def test_causes_and_effects_are_rules():
    named = {*_EFFECTS, *(effect for effects in _EFFECTS.values() for effect in effects)}
    assert named <= {rule.id for rule in RULES}


def test_each_rule_is_described():
    assert len({rule.id for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.sentence.endswith(".")
        assert rule.sources
        assert rule.faults


def test_a_slow_run_is_told_to_go_on():
    slow = curve(2.3, 0.1, 500, fall=0.001)
    found = diagnose(trace(losses=slow)).findings
    assert {x.fault for x in found} == {"HNE", "HLR"}
    assert {x.direction for x in found} == {"up"}


def test_models_that_train_against_each_other_have_no_trivial_loss_to_beat():
    one = trace(losses=FLAT)
    other = one.models[0].model_copy(update={"id": "n"})
    rival = one.optimizers[0].model_copy(update={"id": "p", "model": "n"})
    turns = tuple(y for x in one.steps for y in (x, x.model_copy(update={"optimizer": "p"})))
    told = one.model_copy(
        update={
            "models": (*one.models, other),
            "optimizers": (*one.optimizers, rival),
            "losses": (*one.losses, one.losses[0].model_copy(update={"model": "n"})),
            "steps": turns,
        }
    )
    assert codes(one)
    assert codes(told) == set()


def test_a_summed_loss_is_compared_with_the_sum_of_trivial_ones():
    fed = loss(trivial=2.3, settings={"reduction": "sum"})
    assert codes(trace(losses=curve(2.3 * 32, 0.1 * 32), fed=fed)) == set()
    assert codes(trace(losses=[x * 32 for x in FLAT], fed=fed))


def test_classes_of_pixels_are_on_the_second_axis():
    """The last axis of a segmentation is an image's width, with any number of labels."""
    fed = loss(
        "cross_entropy",
        activation="linear",
        rows_sum_to_one=False,
        one_hot=False,
        integer_targets=True,
        predictions=summary((32, 6, 16, 4), -3, 3),
        targets=summary((32, 16, 4), 0, 5, distinct=6),
    )
    assert codes(trace((*LAYERS[:2], dense(2, 32, 6, "")), curve(2.3, 1.2), fed=fed)) == set()


def _told(layers: tuple[Layer, ...], losses: list[float], **changes: Any) -> set[str]:
    return codes(trace(layers, losses, **changes))


def test_softmax_of_one_unit_is_constant_but_for_rounding():
    fed = loss(
        "binary_crossentropy",
        predictions=summary((33, 1), 0.99999994, 1.0),
        targets=summary((33, 1), 0, 1, distinct=2),
        rows_sum_to_one=False,
        one_hot=False,
    )
    assert "ACH(2)" in _told((*LAYERS[:2], dense(2, 32, 1, "softmax")), FLAT, fed=fed)


def test_a_loss_that_falls_below_zero_though_it_cannot_is_no_success():
    """The divergence of what is no distribution falls without end; its narrow layer counts too."""
    fed = loss("kld", activation="linear", rows_sum_to_one=False, trivial=None)
    falls = [0.1 - i for i in range(500)]
    layers = (dense(0, 64, 3), dense(1, 3, 10, ""))
    assert _told(layers, falls, fed=fed) >= {"LCH", "LCN(0)"}


def test_a_mask_of_zeros_and_ones_is_no_label_of_a_hinge():
    fed = loss(
        "hinge",
        activation="linear",
        rows_sum_to_one=False,
        one_hot=False,
        predictions=summary((8, 1, 16, 16), -3, 3),
        targets=summary((8, 1, 16, 16), 0, 1, distinct=2),
        trivial=None,
    )
    assert "LCH" in _told((*LAYERS[:2], dense(2, 32, 1, "")), FLAT, fed=fed)


@pytest.mark.parametrize(("name", "told"), [("adadelta", True), ("adam", False)])
def test_a_plain_optimizer_below_its_band_may_itself_be_at_fault(name: str, told: bool):
    slow = steps(FLAT, ratio=1e-6)
    found = _told(LAYERS, FLAT, optimizer={"name": name, "rates": (1e-5,)}, taken=slow)
    assert "HLR" in found
    assert ("OCH" in found) == told


def test_a_few_epochs_are_told_beside_a_broken_contract():
    fed = loss("mse", activation="relu", targets=summary((32, 10), -4, 4), one_hot=False)
    layers, short = (*LAYERS[:2], dense(2, 32, 10, "relu")), curve(2.3, 1.2, 120)
    assert "HNE" in _told(layers, short, fed=fed, plan={"epochs": 4})
    assert "HNE" not in _told(layers, short, fed=fed, plan={"epochs": 40})


def _convolution(index: int, given: int, filters: int) -> Layer:
    layer = weight(dense(index, given * 9, filters), shape=(filters, given, 3, 3))
    return layer.model_copy(update={"type": "Conv2d"})


@pytest.mark.parametrize(("filters", "told"), [(1, True), (4, False)])
def test_a_single_filter_lets_too_little_through(filters: int, told: bool):
    layers = (_convolution(0, 1, 8), _convolution(1, 8, filters), dense(2, filters * 16, 10))
    assert ("LCN(1)" in _told(layers, curve(2.3, 0.5))) == told


@pytest.mark.parametrize(("layers", "told"), [((1,), "RAW(1)"), ((0, 1, 2), "RAW")])
def test_a_penalty_that_a_program_adds_is_that_of_the_layers_it_is_of(
    layers: tuple[int, ...], told: str
) -> None:
    taken = tuple(
        step.model_copy(
            update={
                "penalty": 0.7 * (step.loss or 0),
                "weights": tuple(
                    x.model_copy(update={"penalised": x.layer in layers}) for x in step.weights
                ),
            }
        )
        for step in steps(curve(2.3, 1.0))
    )
    assert told in _told(LAYERS, [], taken=taken)


@pytest.mark.parametrize("named", [True, False])
def test_a_penalty_that_no_layer_names_is_that_of_the_layer_that_shrinks(named: bool):
    """It weighs most at the start, and little when it has done its work."""
    taken = steps(curve(2.3, 1.0))
    shrinking = tuple(
        x.model_copy(
            update={
                "penalty": 0.7 * (x.loss or 0) if x.step < 50 else 0.01,
                "weights": tuple(
                    w.model_copy(
                        update={"weight_norm": 3.0 / (1 + x.step / 100) if w.layer == 1 else 3.0}
                    )
                    for w in x.weights
                ),
            }
        )
        for x in taken
    )
    layers = (LAYERS[0].model_copy(update={"regularizer": "l2"}), *LAYERS[1:]) if named else LAYERS
    assert ("RAW(0)" if named else "RAW(1)") in _told(layers, [], taken=shrinking)


def test_a_single_sigmoid_between_rectifiers_is_told_when_the_run_went_only_fairly():
    layers = (dense(0, 64, 64, "sigmoid"), dense(1, 64, 32), dense(2, 32, 10, "softmax"))
    assert _told(layers, curve(2.3, 0.4)) == {"ACH(0)"}
    assert _told(layers, GOOD) == set()


def _attention(inputs: tuple[int, ...]) -> Layer:
    return Layer(index=2, name="attention", type="Attention", inputs=inputs)


@pytest.mark.parametrize(("inputs", "told"), [((1,), False), ((), True)])
def test_what_attention_is_given_is_linear_by_design(inputs: tuple[int, ...], told: bool):
    layers = (dense(0, 64, 16, ""), dense(1, 16, 16, ""), _attention(inputs), dense(3, 16, 10))
    assert ("ACH(0)" in _told(layers, curve(2.3, 0.8))) == told


def test_inputs_to_be_returned_from_beyond_the_output_may_be_scaled_instead():
    wide = summary((800, 64), -2.0, 5.0)
    fed = loss("mse", activation="sigmoid", targets=wide, rows_sum_to_one=False, one_hot=False)
    layers = (*LAYERS[:2], dense(2, 32, 64, "sigmoid"))
    copied = _told(layers, FLAT, fed=fed, data={"inputs": wide, "targets": wide})
    assert {"ACH(2)", "AAL(2)", "CPP"} <= copied
    other = _told(layers, FLAT, fed=fed, data={"targets": wide})
    assert "CPP" not in other


def test_whole_numbers_may_be_counts():
    fed = loss(
        "mse",
        activation="linear",
        rows_sum_to_one=False,
        one_hot=False,
        integer_targets=True,
        predictions=summary((32, 1), -1, 9),
        targets=summary((32, 1), 0, 9, distinct=10),
        class_shares=(),
    )
    told = trace((*LAYERS[:2], dense(2, 32, 1, "")), curve(2.3, 1.2), fed=fed)
    assert codes(told) == set()


@pytest.mark.parametrize("losses", [curve(2.3, 1.6, 20), curve(2.3, 0.1, 500, fall=0.001)])
@pytest.mark.parametrize(
    ("end", "plan", "told"),
    [
        (ProbeEnd(steps=9, seconds=1), {}, True),
        (ProbeEnd(steps=9, seconds=1, raised=True), {}, False),
        (None, {}, False),
        (None, {"epochs": 100, "steps_per_epoch": 50}, False),
        (None, {"epochs": 2, "steps_per_epoch": 10}, True),  # and then something else hung
    ],
)
def test_a_run_that_was_cut_short_is_not_told_to_train_longer(losses, end, plan, told):
    seen = trace(losses=losses, plan=plan).model_copy(update={"end": end})
    assert ("HNE" in codes(seen)) is told


def test_a_run_is_judged_by_what_its_targets_leave_to_learn() -> None:
    """An autoencoder of grey values under binary cross-entropy never comes near zero."""
    ends = curve(0.69, 0.31)
    grey = loss("bce", one_hot=False, trivial=0.45, floor=0.3)
    assert trainings(trace(losses=ends, fed=grey))[0].learning.well
    assert trainings(trace(losses=ends, fed=loss("bce", trivial=0.45)))[0].learning.poor
    smoothed = loss("cross_entropy", trivial=2.3, settings={"label_smoothing": 0.1})
    assert trainings(trace(losses=curve(2.3, 0.55), fed=smoothed))[0].learning.well
    assert not trainings(trace(losses=curve(2.3, 0.55)))[0].learning.well


def test_a_run_that_ends_no_better_than_a_constant_says_by_which_metric() -> None:
    flat = constant_end(trace(losses=FLAT))
    assert flat is not None
    assert flat.metric == "loss"
    assert flat.value == pytest.approx(2.3, rel=0.01)
    assert flat.value > flat.limit
    assert constant_end(trace()) is None


@pytest.mark.parametrize(("accuracy", "is_constant"), [(0.11, True), (0.6, False)])
def test_a_loss_that_falls_while_nothing_gets_right_is_told_by_the_accuracy(
    accuracy: float, *, is_constant: bool
) -> None:
    shares = loss(class_shares=(0.1,) * 10)
    epochs = (Epoch(epoch=0, step=499, values={"accuracy": accuracy}),)
    end = constant_end(trace(losses=GOOD, fed=shares, epochs=epochs))
    assert (end is not None) is is_constant
    if end is not None:
        assert (end.metric, end.value) == ("accuracy", accuracy)
        assert end.limit == pytest.approx(0.235)
