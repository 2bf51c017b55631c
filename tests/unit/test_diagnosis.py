"""The diagnosis as a whole: silence on healthy runs, ranking, cross-validation, hostile traces."""

import pytest

from bot.models.training import ProbeEnd, TrainingTrace
from bot.rules.diagnosis import RULES, diagnose
from tests.support.traces import FLAT, LAYERS, curve, dense, loss, steps, summary, trace, weight


def codes(told: TrainingTrace) -> set[str]:
    return {code for finding in diagnose(told).findings for code in finding.codes}


def test_a_run_that_learned_is_not_spoken_of():
    assert diagnose(trace()).findings == ()
    assert "loss curve" in diagnose(trace()).examined


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
