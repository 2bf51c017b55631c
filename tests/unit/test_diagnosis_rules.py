"""Each rule of the diagnosis has a buggy trace that it speaks of, and a healthy twin."""

import math
from time import process_time

import pytest

from bot.kernel.training_code import (
    CODE_FAULTS,
    CallSite,
    Clipping,
    Mention,
    ModeUse,
    Schedule,
    TensorUse,
)
from bot.kernel.training_types import (
    Data,
    Epoch,
    Layer,
    Loss,
    Plan,
    TrainingTrace,
    WeightStep,
)
from bot.training.diagnosis.rates import update_ratio
from bot.training.diagnosis.rule import trainings
from bot.training.diagnosis.rules import RULES, diagnose
from sandbox.probe.training.core import is_sampled, sampled
from tests.support.code_pairs import CALLS, HEAD, LEARNER, USE, coded
from tests.support.trace_pairs import (
    ABOVE_ONE,
    BALANCED,
    BINARY,
    CONSTANT,
    MANY_LABELS,
    PARTLY,
    SLOW,
    STARS,
    TRACE_PAIRS,
    VALUES,
    active_units,
    ending_in,
    one_unit,
    partly_trained,
    scaled_inputs,
)
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


@pytest.mark.parametrize(
    ("losses", "grows", "is_told"),
    [(GOOD, True, False), (GOOD, False, True), (FLAT, True, True)],
    ids=["leaves zero", "stays at zero", "learns nothing"],
)
def test_what_begins_at_zero_and_leaves_it_as_in_an_adapter_is_no_fault(losses, grows, is_told):
    layers = (weight(LAYERS[0], std=0.0, mean=0.0), *LAYERS[1:])
    taken = tuple(
        step.model_copy(
            update={
                "weights": tuple(
                    row.model_copy(update={"weight_norm": step.step * 0.1 * grows})
                    for row in step.weights
                )
            }
        )
        for step in steps(losses)
    )
    found = diagnose(trace(layers, losses, taken=taken)).findings
    assert any(row.rule == "constant-kernel" for row in found) is is_told


@pytest.mark.parametrize(
    ("losses", "is_rate", "is_at_once"),
    [
        ([*curve(2.3, 0.2), math.nan], False, True),
        ([*curve(2.3, 0.2), 3.0, 40.0, 9e3, 5e8, math.nan], True, False),
        ([2.3, 2.2, math.nan], False, False),
        ([2.3, 9.0, math.nan], True, False),
        ([*curve(2.3, 2.0), math.nan], False, False),
    ],
    ids=["at once", "after it grew", "at the beginning", "after one step", "before it fell"],
)
def test_a_loss_that_breaks_blames_the_rate_only_where_it_grew(losses, is_rate, is_at_once):
    """The gradient of a root at zero, say: no rate that is too high lets a loss fall for so long."""
    told = diagnose(trace(losses=losses))
    assert bool(told.findings) == is_rate
    (found, *_) = told.findings or told.doubts
    assert (found.rule, found.confidence >= 0.7) == ("loss-breaks", is_rate)
    assert ("at once" in found.message) is is_at_once


@pytest.mark.parametrize("name", [rule.id for rule in RULES])
def test_a_rule_tells_its_twins_apart(name: str):
    rule = next(x for x in RULES if x.id == name)
    buggy, healthy = TRACE_PAIRS[name]
    told = [sign for x in trainings(buggy) for sign in rule.check(x)]
    assert told
    assert {sign.fault for sign in told} <= set(rule.faults)
    assert all(0 < sign.confidence <= 1 for sign in told)
    assert [sign for x in trainings(healthy) for sign in rule.check(x)] == []


@pytest.mark.parametrize("framework", ["torch", "keras"])
@pytest.mark.parametrize(
    ("targets", "spreads"), [((32,), True), ((32, 32), True), ((32, 1), False)], ids=str
)
def test_targets_of_another_shape_are_broadcast_by_torch_alone(framework, targets, spreads):
    seen = one_unit("linear", "mse", summary(targets, -4.0, 9.0))
    model = seen.models[0].model_copy(update={"framework": framework})
    found = diagnose(seen.model_copy(update={"models": (model,)}))
    told = any(finding.rule == "broadcast-targets" for finding in found.findings)
    assert told == (spreads and framework == "torch")


@pytest.mark.parametrize(("functional", "told"), [(False, True), (True, False)])
def test_an_exponential_that_a_program_computes_itself_may_be_a_variance(functional, told):
    layers = (dense(0, 64, 64, "exponential", functional=functional), *LAYERS[1:])
    found = diagnose(partly_trained(layers, FLAT)).findings
    assert any(finding.rule == "squashing-inside" for finding in found) == told


@pytest.mark.parametrize(("inputs", "told"), [((0,), True), ((0, 1), False)])
def test_an_exponential_that_alone_feeds_a_layer_is_no_variance(inputs, told):
    first, *others = LAYERS
    layers = (
        first.model_copy(update={"activation": "exponential", "functional": True}),
        *(
            x.model_copy(update={"inputs": inputs if i == 0 else (1,)})
            for i, x in enumerate(others)
        ),
    )
    found = diagnose(partly_trained(layers, FLAT)).findings
    assert any(finding.rule == "squashing-inside" for finding in found) == told


def test_a_run_of_few_updates_is_told_how_many_epochs_make_enough():
    short = trace(losses=[2.3] * 20, plan={"epochs": 1, "samples": 640})
    told = next(x for x in diagnose(short).findings if "HNE" in x.codes)
    assert told.change.values[0] == "50"


def _bare(rate: float) -> TrainingTrace:
    """Steps of an optimizer whose variables no model holds."""
    seen = trace(losses=curve(2.3, 2.2, 100, fall=0.001))
    steps = tuple(x.model_copy(update={"rate": rate, "weights": ()}) for x in seen.steps)
    (optimizer,) = seen.optimizers
    alone = optimizer.model_copy(update={"model": "", "rates": (rate,), "name": "sgd"})
    bare = {"models": (), "losses": (), "data": (), "plans": ()}
    return seen.model_copy(update={**bare, "steps": steps, "optimizers": (alone,)})


def test_variables_that_no_model_holds_are_judged_by_their_curve_and_rate() -> None:
    low, usual = (diagnose(_bare(rate)).findings for rate in (1e-6, 1e-2))
    assert [(x.fault, x.direction) for x in low if x.confidence > 0.5] == [("HLR", "up")]
    (short,) = (x.change for x in usual if x.fault == "HNE")
    assert short is not None
    assert (short.words, short.values) == ("Train 10 times as long.", ())
    assert trainings(_bare(1e-2).model_copy(update={"steps": ()})) == ()


def test_a_loss_that_lets_one_label_win_is_wrong_where_several_hold() -> None:
    fed = {"one_hot": False, "targets": MANY_LABELS, "rows_sum_to_one": False}
    for function, name in (("linear", "cross_entropy"), ("sigmoid", "categorical_crossentropy")):
        (first, *_) = diagnose(ending_in(function, name=name, **fed)).findings
        assert (first.fault, first.rule) == ("LCH", "labels-compete")
    codes = {
        x.fault for x in diagnose(ending_in("sigmoid", name="binary_crossentropy", **fed)).findings
    }
    assert "LCH" not in codes


def test_what_probabilities_are_compared_with_tells_which_side_is_wrong() -> None:
    signs = summary((32, 1), -1.0, 1.0, distinct=2)
    grey = summary((800, 64), 0.0, 16.0)
    copied = one_unit("sigmoid", "binary_crossentropy", summary((32, 64), 0.0, 16.0))
    given = copied.data[0].model_copy(update={"inputs": grey, "targets": grey})
    for told, codes in (
        (one_unit("sigmoid", "binary_crossentropy", VALUES), ["LCH", "ACH"]),
        (one_unit("sigmoid", "binary_crossentropy", signs), ["CPP", "LCH"]),
        (copied.model_copy(update={"data": (given,)}), ["CPP", "LCH"]),
    ):
        found = [x.fault for x in diagnose(told).findings if x.rule == "class-loss-of-values"]
        assert found == codes


@pytest.mark.parametrize(
    ("rate", "ratio", "losses", "low"),
    [
        (1e-4, 4e-4, PARTLY, True),
        (1e-4, 4e-3, PARTLY, False),  # steps are large all the same
        (1e-3, 4e-4, PARTLY, False),  # the usual rate
        (1e-4, 4e-4, GOOD, False),
    ],
)
def test_a_rate_below_the_usual_one_is_told_where_steps_are_small_and_little_was_learned(
    rate: float, ratio: float, losses: list[float], low: bool
) -> None:
    told = trace(optimizer={"rates": (rate,)}, taken=steps(losses, ratio=ratio))
    rates = [x for x in diagnose(told).findings if x.rule == "rate-out-of-band"]
    assert [x.direction for x in rates] == (["up"] if low else [])


def test_a_loss_without_meaning_does_not_excuse_a_rate() -> None:
    """It falls below nothing, so that it looks as if all was learned."""
    for name, targets, fed in (
        ("binary_crossentropy", VALUES, {}),
        ("nll", BINARY, {"activation": "linear"}),
    ):
        told = one_unit("sigmoid", name, targets, **fed)
        (optimizer,) = told.optimizers
        slow = optimizer.model_copy(update={"name": "adadelta", "rates": (1e-3,)})
        taken = steps(curve(2.0, 0.01), ratio=2e-4)
        seen = told.model_copy(update={"optimizers": (slow,), "steps": taken})
        (run,) = trainings(seen)
        assert (run.learning.health, run.learning.falling) == ("unknown", False)
        assert {"HLR", "OCH"} <= {x.fault for x in diagnose(seen).findings}


def test_a_long_run_reads_alike_whether_or_not_each_step_was_written_down() -> None:
    """Else what is written down more often would count for more."""
    losses = curve(2.3, 0.5, 30_000, fall=0.0003)
    every = steps(losses)
    written = tuple(x for x in every if is_sampled(x.step) or sampled(x.step))
    (whole,) = trainings(trace(taken=every))
    (thinned,) = trainings(trace(taken=written))
    assert len(written) < 4500
    assert sum(x.step >= 20_000 for x in written) < 500
    assert thinned.learning.points == pytest.approx(whole.learning.points, rel=0.02)
    assert (thinned.learning.health, thinned.learning.falling) == (
        whole.learning.health,
        whole.learning.falling,
    )


def test_what_nobody_begins_with_is_told_even_where_it_did_little_harm() -> None:
    for layers, fault in (
        ((weight(LAYERS[0], "bias", minimum=-5.0, maximum=-5.0), *LAYERS[1:]), "BCI"),
        ((*LAYERS[:2], weight(LAYERS[2], std=0.0, mean=0.5)), "WCI"),
    ):
        seen = trace(layers)
        assert trainings(seen)[0].learning.well
        assert [x.fault for x in diagnose(seen).findings] == [fault]
    assert diagnose(trace((*LAYERS[:2], weight(LAYERS[2], std=0.0, mean=0.0)))).findings == ()


def test_attention_scores_are_no_hidden_softmax() -> None:
    scored = (
        dense(0, 6, 24, "tanh"),
        dense(1, 24, 1, "", inputs=(0,)),
        dense(2, 1, 1, "softmax", weights=(), inputs=(1,)),
        dense(3, 1, 1, "", type="Dot", weights=(), inputs=(0, 2)),
        dense(4, 24, 10, "softmax", inputs=(3,)),
    )
    rules = {x.rule for x in diagnose(partly_trained(scored, FLAT)).findings}
    assert not rules & {"squashing-inside", "narrow-layer"}
    passed = (*scored[:3], dense(3, 1, 10, "softmax", inputs=(2,)))
    assert "squashing-inside" in {x.rule for x in diagnose(partly_trained(passed, FLAT)).findings}


def test_a_hostile_graph_of_layers_costs_little() -> None:
    tangled = tuple(
        dense(at, 1, 1, "softmax", weights=(), inputs=tuple(range(at))) for at in range(400)
    )
    outputs = tuple(loss(layer=at, line=at) for at in range(400))
    told = partly_trained((*tangled, dense(400, 64, 10)), FLAT).model_copy(
        update={"losses": outputs}
    )
    began = process_time()
    diagnose(trace(losses=FLAT))
    usual = process_time() - began
    diagnose(told)
    assert process_time() - began < 200 * max(usual, 0.01)


def _of_two(first: Loss, second: Loss, losses: list[float]) -> TrainingTrace:
    """A classifier with a second output, which returns a value."""
    layers = (dense(0, 64, 32), dense(1, 32, 10, "softmax"), dense(2, 32, 1, second.activation))
    linked = tuple(
        x.model_copy(update={"inputs": (0,)} if x.index else {"inputs": ()}) for x in layers
    )
    told = trace(linked, losses)
    return told.model_copy(update={"losses": (first, second)})


def test_each_output_is_held_against_its_own_loss() -> None:
    value = {"predictions": summary((32, 1), 0.1, 0.9), "targets": VALUES, "trivial": 4.0}
    plain = {"one_hot": False, "rows_sum_to_one": False, "class_shares": ()}
    shares = {"settings": {"weight": 1.0}}
    first = loss(layer=1, **shares)
    wrong = loss("mse", activation="sigmoid", layer=2, **value, **plain, **shares)
    (found, *_) = diagnose(_of_two(first, wrong, curve(6.3, 3.0))).findings
    assert (found.rule, found.layers) == ("targets-out-of-reach", (2,))
    right = wrong.model_copy(update={"activation": ""})
    assert diagnose(_of_two(first, right, curve(6.3, 0.1))).findings == ()
    stuck = diagnose(_of_two(first, right, [6.31, 6.29] * 250)).doubts
    assert {x.rule for x in stuck} == {"loss-stuck"}
    unweighed = right.model_copy(update={"settings": {}})
    assert trainings(_of_two(first, unweighed, FLAT))[0].learning.trivial is None


def test_an_output_is_judged_by_its_own_targets_and_metrics() -> None:
    """Ratings from one to five beside "liked or not": the data's targets are those of the first."""
    one = {"one_hot": False, "rows_sum_to_one": False, "class_shares": (), "integer_targets": True}
    rating = loss("mse", activation="", layer=1, targets=STARS, trivial=1.1, **one)
    liked = loss("binary_crossentropy", activation="sigmoid", layer=2, targets=BALANCED, **one)
    layers = (dense(0, 64, 32), dense(1, 32, 1, ""), dense(2, 32, 1, "sigmoid"))
    plan = {"metrics": ("loss", "liked_accuracy")}
    seen = trace(layers, curve(2.0, 1.2), data={"targets": STARS}, plan=plan)
    found = diagnose(seen.model_copy(update={"losses": (rating, liked)})).findings
    assert not {"class-loss-of-values", "one-unit-of-classes"} & {x.rule for x in found}


def test_a_table_of_single_numbers_for_words_is_too_narrow() -> None:
    found = diagnose(
        partly_trained((_embedding(0, 1), dense(1, 1, 48), dense(2, 48, 10, "softmax")), FLAT)
    ).findings
    assert "LCN(0)" in {code for x in found for code in x.codes}


def test_batches_of_one_class_are_seen_where_nothing_tells_whether_data_is_shuffled() -> None:
    fed = {"one_hot": False, "class_shares": (), "integer_targets": True}
    wide = {"targets": summary((800,), 0.0, 9.0, distinct=10)}
    alone = loss("nll", targets=summary((32,), 2.0, 2.0), **fed)
    mixed = loss("nll", targets=summary((32,), 0.0, 9.0), **fed)
    plan = {"shuffle": None}
    sorted_, shuffled = (trace(losses=FLAT, fed=x, data=wide, plan=plan) for x in (alone, mixed))
    assert "sorted-classes" in {x.rule for x in diagnose(sorted_).findings}
    assert "sorted-classes" not in {x.rule for x in diagnose(shuffled).findings}


def test_a_rectifier_before_a_dropout_ends_the_model() -> None:
    layers = (
        *LAYERS[:2],
        dense(2, 32, 10, ""),
        dense(3, 1, 10, "relu", weights=()),
        dense(4, 1, 10, "", type="Dropout", weights=(), settings={"p": 0.5}),
    )
    fed = loss(
        "cross_entropy",
        activation="linear",
        rows_sum_to_one=False,
        predictions=summary((32, 10), 0.0, 9.0),
    )
    codes = {code for x in diagnose(trace(layers, FLAT, fed=fed)).findings for code in x.codes}
    assert {"AAL(3)", "LAD(4)"} <= codes


def test_a_margin_that_falls_to_nothing_has_taught_no_values() -> None:
    fallen = one_unit("linear", "squared_hinge", ABOVE_ONE, curve(1.0, 0.001), trivial=None)
    assert trainings(fallen)[0].learning.well
    assert diagnose(fallen).findings[0].rule == "unsuited-distance"


def test_a_model_that_scales_its_inputs_needs_no_scaled_ones() -> None:
    norm = dense(0, 1, 1, "", type="BatchNormalization", weights=())
    layers = (norm, *(x.model_copy(update={"index": x.index + 1}) for x in LAYERS))
    large = {"inputs": summary((800, 64), -900, 900)}
    found, plain = (diagnose(trace(x, FLAT, data=large)).findings for x in (layers, LAYERS))
    assert "unscaled-inputs" not in {x.rule for x in found}
    assert "unscaled-inputs" in {x.rule for x in plain}


def test_counts_are_no_classes_for_a_loss_that_is_made_for_them() -> None:
    counts = summary((32, 1), 0.0, 12.0, distinct=13)
    counted = one_unit("linear", "poisson", counts, integer_targets=True)
    assert "LCH" not in {x.fault for x in diagnose(counted).findings}
    bounded = one_unit("softmax", "poisson", counts, integer_targets=True)
    assert "distance-between-classes" in {x.rule for x in diagnose(bounded).findings}


def test_what_attention_multiplies_needs_no_function() -> None:
    layers = (
        dense(0, 24, 24, "", inputs=()),
        dense(1, 24, 24, "", inputs=()),
        dense(2, 24, 32, inputs=(0, 1)),
        dense(3, 32, 10, "softmax", inputs=(2,)),
    )
    alone = (*layers[:2], dense(2, 24, 32, inputs=(1,)), layers[3])
    joined, plain = (diagnose(partly_trained(x, FLAT)).findings for x in (layers, alone))
    assert 1 not in {at for x in joined if x.rule == "no-activation" for at in x.layers}
    assert 1 in {at for x in plain if x.rule == "no-activation" for at in x.layers}


@pytest.mark.parametrize(
    ("kind", "linear"), [("Lambda", False), ("Multiply", False), ("Reshape", True)]
)
def test_layers_with_a_function_of_any_kind_between_are_no_linear_map(
    kind: str, linear: bool
) -> None:
    between = dense(1, 24, 24, "", type=kind, weights=())
    layers = (dense(0, 64, 24, ""), between, dense(2, 24, 32), dense(3, 32, 10, "softmax"))
    told = [
        x.layers
        for x in diagnose(partly_trained(layers, FLAT)).findings
        if x.rule == "no-activation"
    ]
    assert told == ([(0,)] if linear else [])


@pytest.mark.parametrize(
    ("first", "ratio", "fault", "is_certain"),
    [(math.nan, 2e-3, "LCH", False), (2.3, 0.5, "HLR", True), (2.3, 2e-3, "HLR", False)],
)
def test_the_rate_is_to_blame_for_a_loss_that_breaks_at_once_only_where_steps_are_large(
    first: float, ratio: float, fault: str, is_certain: bool
) -> None:
    losses = [first, *[math.nan] * 59]
    found = diagnose(trace(losses=losses, taken=steps(losses, ratio)))
    rows = found.findings if is_certain else found.doubts
    assert fault in {x.fault for x in rows if x.rule == "loss-breaks"}
    assert ("HLR" in {x.fault for x in found.findings}) is is_certain


@pytest.mark.parametrize(("units", "told"), [(64, True), (None, False)])
def test_a_layer_of_the_programs_own_class_may_apply_a_function_inside(
    units: int | None, told: bool
) -> None:
    own = dense(0, 64, 64, "").model_copy(update={"units": units})
    found = diagnose(partly_trained((own, *LAYERS[1:]))).findings
    assert ("no-activation" in {x.rule for x in found}) is told


def test_filters_apart_and_a_mix_of_their_channels_are_one_convolution() -> None:
    size = {"kernel_size": (1, 1)}
    mix = dense(1, 24, 32, settings=size, type="Conv2D")
    apart = dense(0, 24, 24, "", type="DepthwiseConv2D")
    whole = dense(0, 24, 24, "", type="Conv2D")
    last = dense(2, 32, 10, "softmax")
    factorised, plain = (
        diagnose(partly_trained((x, mix, last), FLAT)).findings for x in (apart, whole)
    )
    assert "no-activation" not in {x.rule for x in factorised}
    assert "no-activation" in {x.rule for x in plain}


def test_a_layer_of_a_single_unit_is_told_where_a_fair_share_was_learned() -> None:
    fair = curve(2.3, 0.6)
    one, two = (
        diagnose(partly_trained((dense(0, 64, x), *LAYERS[1:]), fair)).findings for x in (1, 2)
    )
    assert "LCN(0)" in {x for one_of in one for x in one_of.codes}
    assert not two


def test_the_units_of_a_single_output_are_those_of_the_layer_before_its_activation() -> None:
    seen = one_unit("sigmoid", "mse", ABOVE_ONE, integer_targets=True)
    (model,) = seen.models
    first, last = model.layers
    plain = last.model_copy(update={"activation": ""})
    own = dense(2, 1, 1, "sigmoid", type="Activation", weights=())
    apart = model.model_copy(update={"layers": (first, plain, own)})
    found = diagnose(seen.model_copy(update={"models": (apart,)})).findings
    assert [x.layers for x in found if x.fault == "LCN"] == [(1,)]


def test_a_second_output_of_one_unit_is_no_narrow_layer() -> None:
    heads = (dense(1, 64, 1, "", inputs=(0,)), dense(2, 64, 10, "softmax", inputs=(0,)))
    inside = (dense(1, 64, 1, "", inputs=(0,)), dense(2, 1, 10, "softmax", inputs=(1,)))
    apart, through = (
        diagnose(partly_trained((dense(0, 64, 64), *x), FLAT)).findings for x in (heads, inside)
    )
    assert "narrow-layer" not in {x.rule for x in apart}
    assert "narrow-layer" in {x.rule for x in through}


def test_numbers_beside_embedded_codes_must_be_scaled_too() -> None:
    codes = {"inputs": summary((800, 1), 0, 20), "ids": True}
    embedding = _embedding(0, 8)
    found = [
        diagnose(
            trace(
                (embedding, dense(1, 12, 32, input=summary((32, 12), -high, high))),
                FLAT,
                data=codes,
            )
        ).findings
        for high in (300, 1)
    ]
    assert ["unscaled-inputs" in {x.rule for x in one} for one in found] == [True, False]


def test_an_embedding_that_a_penalty_shrinks_is_named() -> None:
    taken = tuple(
        x.model_copy(update={"penalty": 2.0, "weights": (_shrunk(0, at), *x.weights[1:])})
        for at, x in enumerate(steps(FLAT))
    )
    told = trace((_embedding(0, 8), *LAYERS[1:]), taken=taken, data={"ids": True})
    (first, *_) = diagnose(told).findings
    assert first.codes == ("RAW(0)",)


def _embedding(index: int, units: int) -> Layer:
    plain = dense(index, 20, units, "", type="Embedding")
    return plain.model_copy(
        update={"weights": (plain.weights[0].model_copy(update={"role": "embedding"}),)}
    )


def _shrunk(layer: int, step: int) -> WeightStep:
    return WeightStep(
        layer=layer, role="embedding", norm=1.0, mean_abs=0.1, weight_norm=max(8.0 - step, 0.1)
    )


def test_margins_of_labels_that_are_all_positive_say_nothing() -> None:
    learned = curve(1.0, 0.0, 500)
    one, both = (
        diagnose(one_unit("linear", "squared_hinge", summary((32, 1), low, 4.0), learned)).findings
        for low in (2.0, -1.0)
    )
    assert "LCH" in {x.fault for x in one}
    assert "LCH" not in {x.fault for x in both}


def test_a_lone_unit_that_dies_does_not_blame_the_rate() -> None:
    died = (
        *steps(FLAT[:5], activations=active_units(1, dead=0.0)),
        *steps(FLAT, activations=active_units(1, dead=1.0)),
    )
    narrow = (dense(0, 64, 64), dense(1, 64, 1), dense(2, 1, 10, "softmax"))
    found = diagnose(partly_trained(narrow, taken=died)).findings
    assert found[0].codes[0] == "LCN(1)"
    assert "killed-units" not in {x.rule for x in found}


def test_a_distance_far_from_labels_is_wrong_for_several_of_them() -> None:
    fed = {"one_hot": False, "targets": MANY_LABELS, "rows_sum_to_one": False}
    (first, *_) = diagnose(ending_in("linear", name="poisson", **fed)).findings
    assert (first.fault, first.rule) == ("LCH", "distance-between-classes")
    near = diagnose(ending_in("sigmoid", name="mse", **fed)).findings
    assert "distance-between-classes" not in {x.rule for x in near}


def test_the_label_of_a_single_sample_is_one_class() -> None:
    alone = {"predictions": summary((10,), -3, 3), "targets": summary((), 1.0, 1.0, distinct=1)}
    told = ending_in("linear", name="cross_entropy", one_hot=False, rows_sum_to_one=False, **alone)
    assert "labels-compete" not in {x.rule for x in diagnose(told).findings}


def test_a_sigmoid_of_nothing_was_not_rectified() -> None:
    same = summary((32, 1), 0.5, 0.5, std=0.0)
    told = one_unit("sigmoid", "bce", BALANCED, predictions=same)
    assert "rectified-sigmoid" not in {x.rule for x in diagnose(told).findings}


def test_softmax_over_one_unit_that_returns_values_was_added_or_changed() -> None:
    constant = {"predictions": summary((32, 1), 1.0, 1.0, std=0.0)}
    (values, *_) = diagnose(one_unit("softmax", "mse", ABOVE_ONE, **constant)).findings
    (classes, *_) = diagnose(one_unit("softmax", "mse", BINARY, **constant)).findings
    assert (values.codes, values.change.values) == (("ACH(1)", "AAL(1)"), ("linear",))
    assert (classes.codes, classes.change.values) == (("ACH(1)",), ("sigmoid",))


def test_a_function_right_after_another_was_added_or_changed() -> None:
    sigmoid, softmax = dense(2, 32, 10, "sigmoid"), dense(3, 10, 10, "softmax", weights=())
    told = trace(
        (*LAYERS[:2], sigmoid, softmax),
        FLAT,
        fed=loss(name="mse", activation="softmax", one_hot=False, targets=MANY_LABELS),
    )
    (first, *_) = diagnose(told).findings
    assert first.codes == ("ACH(3)", "AAL(3)")


def test_a_network_that_is_one_linear_map_is_told_where_it_gets_no_further() -> None:
    """It came close, as a straight line often does, but stays there."""
    close = [2.3, 0.15] + [0.15, 0.149] * 249
    linear = (dense(0, 64, 64, ""), dense(1, 64, 256, ""), *LAYERS[2:])
    given = trace(linear, close).data[0]
    copied = given.model_copy(update={"targets": given.inputs})
    for layers, losses, data, layer in (
        (linear, close, given, (0, 1)),
        (linear, close, copied, ()),  # an autoencoder may be meant so
        (linear, curve(2.3, 0.001), given, ()),
        (LAYERS, close, given, ()),
    ):
        seen = trace(layers, losses).model_copy(update={"data": (data,)})
        told = [x.layers for x in diagnose(seen).findings if x.rule == "no-activation"]
        assert told == ([layer] if layer else [])


def test_targets_that_are_no_numbers_are_told() -> None:
    targets = summary((800, 1), 0.0, 1.0, finite=0.99)
    (first, *_) = diagnose(scaled_inputs(targets=targets)).findings
    assert (first.fault, first.rule) == ("CPP", "invalid-inputs")
    assert first.message == "The targets contain NaN or infinity."


@pytest.mark.parametrize("framework", ["torch", "keras"])
@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_the_divergence_of_pytorch_takes_logarithms(framework: str, function: str) -> None:
    low, high = (-5, -0.1) if function == "log_softmax" else (0.01, 0.9)
    shares = function == "softmax"
    fed = {"predictions": summary((32, 10), low, high), "rows_sum_to_one": shares}
    seen = ending_in(function, name="kld", **fed)
    model = seen.models[0].model_copy(update={"framework": framework})
    found = diagnose(seen.model_copy(update={"models": (model,)})).findings
    told = any(x.rule == "log-probabilities-expected" for x in found)
    assert told == (framework == "torch" and shares)
    assert "LCH" not in {x.fault for x in found}


@pytest.mark.parametrize(("units", "told"), [(64, True), (1, False)])
def test_softmax_of_a_single_unit_weighs_places(units: int, told: bool) -> None:
    found = diagnose(partly_trained((dense(0, 64, units, "softmax"), *LAYERS[1:]))).findings
    assert any(x.rule == "squashing-inside" for x in found) == told


@pytest.mark.parametrize(("rate", "way"), [(0.01, "up"), (0.3, "down")])
def test_plain_descent_on_a_plateau_is_told_to_take_larger_steps(rate: float, way: str) -> None:
    seen = partly_trained(
        LAYERS, FLAT, taken=steps(FLAT, rate=rate), optimizer={"name": "sgd", "rates": (rate,)}
    )
    rule = next(x for x in RULES if x.id == "loss-stuck")
    (sign,) = (x for run in trainings(seen) for x in rule.check(run) if x.fault == "HLR")
    assert sign.direction == way


@pytest.mark.parametrize(
    ("columns", "apart"),
    [
        (((0.1, 0.9), (-0.1, 0.2), (0.0, 0.2)), True),
        (((0.1, 0.9), (15.0, 1.1), (19.0, 1.0)), True),
        (((4.1, 0.9), (5.0, 1.1), (4.0, 1.0)), False),  # as what grows over time
        (((0.1, 0.9), (-0.1, 1.1), (0.0, 0.1)), False),  # one of three columns
        (((0.1, 0.0), (-0.1, 0.0), (0.0, 1.0)), False),  # constant columns say nothing
        (((9.0, 9.0),), False),  # another table
    ],
)
def test_parts_differ_where_most_columns_do_though_the_whole_does_not(
    columns: tuple[tuple[float, float], ...], apart: bool
) -> None:
    alike = summary((400, 3), -1.7, 1.7, std=1.0, mean=0.0)
    other = Data(model="m", part="evaluation", inputs=alike, columns=columns)
    learned = {"inputs": alike, "columns": ((0.0, 1.0),) * 3}
    found = diagnose(trace(data=learned, held_out=(other,))).findings
    assert [x.rule for x in found] == (["parts-differ"] if apart else [])


def test_a_softmax_of_one_unit_before_a_loss_that_takes_logits_is_needless() -> None:
    (first, *_) = diagnose(one_unit("softmax", "bce_logits", BINARY, predictions=CONSTANT)).findings
    assert (first.rule, first.codes) == ("softmax-of-one-unit", ("AAL(1)", "ACH(1)"))


def _lstm(std: float, bias: float) -> Layer:
    own = dense(0, 1, 80, "", type="LSTM").model_copy(update={"units": 20})
    kernel = own.weights[0].model_copy(update={"role": "recurrent"})
    layer = own.model_copy(update={"weights": (*own.weights, kernel)})
    return weight(weight(layer, std=std), "bias", minimum=-abs(bias), maximum=bias)


@pytest.mark.parametrize(
    ("std", "bias", "rules"),
    [
        (0.13, 0.2, []),
        (0.13, 6.0, []),  # gates may begin open
        (0.13, 25.0, ["bias-not-zero"]),
        (0.13, -5.0, ["bias-not-zero"]),  # all of them
        (0.5, 1.0, []),
        (5.0, 1.0, ["kernel-scale"]),
    ],
)
def test_what_a_recurrent_layer_begins_with_is_told_where_nobody_means_it(
    std: float, bias: float, rules: list[str]
) -> None:
    """Though the run learned all the same."""
    found = diagnose(trace((_lstm(std, bias), *LAYERS[1:]))).findings
    assert [x.rule for x in found] == rules


@pytest.mark.parametrize(("name", "told"), [("adagrad", True), ("adam", False)])
def test_an_optimizer_whose_steps_decay_is_told_where_a_fair_share_was_learned(
    name: str, told: bool
) -> None:
    found = diagnose(trace(losses=curve(2.3, 0.35), optimizer={"name": name, "rates": (0.01,)}))
    assert ("OCH" in {x.fault for x in found.findings}) is told


@pytest.mark.parametrize("units", [3, 1])
def test_a_loss_that_sees_one_of_several_outputs_says_nothing_of_classes(units: int) -> None:
    classes = summary((32,), 0.0, 2.0, distinct=3)
    shape = summary((32,), 0.0, 2.0)
    fed = {"targets": classes, "predictions": shape, "integer_targets": True, "trivial": 0.65}
    told = one_unit("linear", "mae", losses=curve(0.9, 0.04), **fed)
    (model,) = told.models
    last = dense(1, 64, units, "")
    seen = told.model_copy(
        update={"models": (model.model_copy(update={"layers": (model.layers[0], last)}),)}
    )
    found = {x.rule for x in diagnose(seen).findings}
    assert ("distance-between-classes" in found) is (units == 3)


@pytest.mark.parametrize(("share", "beside"), [(0.95, False), (0.8, True)])
def test_dropout_of_nearly_all_explains_a_flat_curve(share: float, beside: bool) -> None:
    drops = dense(1, 64, 64, "", type="Dropout", weights=(), settings={"rate": share})
    layers = (LAYERS[0], drops, dense(2, 64, 10, "softmax"))
    stuck = partly_trained(layers, FLAT, data={"agreement": 0.5})
    found = {x.fault for x in diagnose(stuck).findings}
    assert "LAD" in found
    assert ("CPP" in found) is beside


@pytest.mark.parametrize(
    ("train", "validation", "told"),
    [
        ((0, 1, 2), (2, 3), True),
        ((0, 1, 2), (2,), True),  # sorted data, split within a class
        ((0, 1, 2), (0, 2), False),
        ((1,), (1,), False),
    ],
)
def test_classes_are_told_that_training_never_saw_or_that_validation_sees_alone(
    train: tuple[int, ...], validation: tuple[int, ...], told: bool
) -> None:
    alike = summary((200, 64), -1.7, 1.7)
    targets = summary((200, 10), 0.0, 1.0, distinct=2)
    other = Data(model="m", part="validation", inputs=alike, targets=targets, classes=validation)
    given = {"targets": targets, "classes": train}
    found = diagnose(trace(data=given, held_out=(other,))).findings
    assert [x.rule for x in found] == (["unseen-classes"] if told else [])


@pytest.mark.parametrize(("strength", "told"), [(1.0, True), (0.01, False)])
def test_a_penalty_a_hundred_times_too_strong_is_told_though_all_was_learned(
    strength: float, told: bool
) -> None:
    settings = {"kernel_regularizer.l2": strength}
    layers = (LAYERS[0].model_copy(update={"settings": settings, "regularizer": "l2"}), *LAYERS[1:])
    first, *rest = steps(GOOD, penalty=0.001)
    heavy = first.model_copy(update={"penalty": 9.0, "loss": 11.3})
    found = diagnose(trace(layers, taken=(heavy, *rest))).findings
    assert [(x.fault, x.layers) for x in found] == ([("RAW", (0,))] if told else [])


@pytest.mark.parametrize(("fall", "told"), [(0.15, True), (0.9, False)])
def test_a_huge_batch_is_told_where_a_short_run_still_learns_fast(fall: float, told: bool) -> None:
    plan = {"batch_size": 512, "samples": 1000, "epochs": 12}
    found = diagnose(trace(losses=curve(2.3, 0.02, 24, fall=fall), plan=plan)).findings
    assert ("HBS" in {x.fault for x in found}) is told


@pytest.mark.parametrize(("rate", "told"), [(1e-3, False), (0.1, True)])
def test_a_loss_that_falls_by_steps_too_small_needs_larger_ones_and_not_more(
    rate: float, told: bool
) -> None:
    optimizer = {"name": "sgd", "rates": (rate,)}
    taken = steps(SLOW, ratio=2e-4, rate=rate)
    found = diagnose(trace(losses=SLOW, taken=taken, optimizer=optimizer)).findings
    assert found[0].fault == ("HNE" if told else "HLR")
    assert ("HNE" in {x.fault for x in found}) is told


@pytest.mark.parametrize(("agreement", "told"), [(None, False), (0.5, True), (20.0, False)])
def test_a_flat_curve_blames_no_labels_that_their_neighbours_share(
    agreement: float | None, told: bool
) -> None:
    found = diagnose(trace(losses=FLAT, data={"agreement": agreement})).findings
    assert ("CPP" in {x.fault for x in found}) is told


@pytest.mark.parametrize(("ratio", "told"), [(1e-3, True), (1e-2, False)])
@pytest.mark.parametrize("losses", [FLAT[:20], SLOW])
def test_a_higher_rate_is_suggested_where_steps_are_small(
    losses: list[float], ratio: float, told: bool
) -> None:
    found = diagnose(partly_trained(losses=losses, taken=steps(losses, ratio=ratio))).findings
    raised = [x for x in found if x.rule in ("few-updates", "still-falling") and x.fault == "HLR"]
    assert "HNE" in {x.fault for x in found}
    assert bool(raised) is told


@pytest.mark.parametrize(("share", "told"), [(0.95, False), (0.5, True)])
def test_units_that_die_beside_a_certain_fault_do_not_blame_the_rate(
    share: float, told: bool
) -> None:
    died = (
        *steps(FLAT[:5], activations=active_units(0, dead=0.0)),
        *steps(FLAT, activations=active_units(0, dead=0.9)),
    )
    drops = dense(1, 64, 64, "", type="Dropout", weights=(), settings={"rate": share})
    layers = (LAYERS[0], drops, dense(2, 64, 10, "softmax"))
    found = {x.rule for x in diagnose(partly_trained(layers, FLAT, taken=died)).findings}
    assert ("killed-units" in found) is told


@pytest.mark.parametrize(("batch", "told"), [(1, False), (32, True)])
def test_the_first_losses_of_single_samples_are_no_start(batch: int, told: bool) -> None:
    noisy = [*[0.01] * 5, *[2.0, 0.6] * 200]
    plan = {"batch_size": batch}
    found = {x.rule for x in diagnose(partly_trained(losses=noisy, plan=plan)).findings}
    assert ("loss-breaks" in found) is told


@pytest.mark.parametrize(("distinct", "told"), [(2, True), (None, False)])
def test_more_than_a_thousand_values_between_0_and_1_are_no_labels(
    distinct: int | None, told: bool
) -> None:
    fed = one_unit("linear", "mse", summary((32, 1), 0.0, 1.0, distinct=distinct))
    found = {x.rule for x in diagnose(fed).findings}
    assert ("distance-between-classes" in found) is told


def test_logarithms_of_linear_outputs_that_became_invalid_are_the_fault_of_the_loss() -> None:
    broken = [0.9] * 9 + [float("nan")]
    targets = summary((32, 1), 0.1, 0.9)
    (first, *_) = diagnose(one_unit("linear", "poisson", targets, broken)).findings
    assert (first.fault, first.rule) == ("LCH", "unsuited-distance")
    # Bounded outputs are never negative, and msle cuts off what is.
    for function, name in (("softplus", "poisson"), ("linear", "msle")):
        others = diagnose(one_unit(function, name, targets, broken)).findings
        assert "LCH" not in {x.fault for x in others}


@pytest.mark.parametrize(
    ("function", "framework", "settings", "told"),
    [
        ("sigmoid", "torch", {}, True),
        ("sigmoid", "torch", {"log_input": False}, False),
        ("linear", "torch", {}, False),
        ("sigmoid", "tensorflow", {}, False),
    ],
)
def test_logarithms_above_zero_predict_no_shares(
    function: str, framework: str, settings: dict[str, bool], told: bool
) -> None:
    """PyTorch's poisson takes a sigmoid's values for logarithms, so that it predicts one or more."""
    seen = one_unit(function, "poisson", summary((32, 1), 0.0, 0.9), settings=settings)
    model = seen.models[0].model_copy(update={"framework": framework})
    found = diagnose(seen.model_copy(update={"models": (model,)})).findings
    assert ("LCH" in {x.fault for x in found}) is told


@pytest.mark.parametrize(("activation", "told"), [("relu", True), ("", False)])
def test_zeros_before_an_activation_are_no_end_of_a_residual_branch(
    activation: str, told: bool
) -> None:
    zeros = weight(dense(1, 64, 32, activation), std=0.0, mean=0.0)
    seen = trace((LAYERS[0], zeros, LAYERS[2]), FLAT)
    model = seen.models[0].model_copy(update={"residual": True})
    found = diagnose(seen.model_copy(update={"models": (model,)})).findings
    assert ("WCI" in {x.fault for x in found}) is told


@pytest.mark.parametrize(
    ("units", "shifted", "told"), [(1, True, True), (8, True, False), (1, False, False)]
)
def test_one_unit_cannot_remember_a_sequence(units: int, shifted: bool, told: bool) -> None:
    """Targets one step on are no copy of the inputs; a code of an autoencoder may be one number."""
    cells = dense(0, 1, units, "tanh", type="RNN")
    own = cells.weights[0].model_copy(update={"role": "recurrent"})
    first = cells.model_copy(update={"weights": (*cells.weights, own)})
    seen = summary((30, 20, 1), -1.0, 1.0, mean=0.003, std=0.7)
    wanted = summary((30, 20, 1), -1.0, 1.0, mean=-0.001 if shifted else 0.003, std=0.7)
    fed = loss("mse", activation="linear", targets=wanted, one_hot=False, trivial=0.5)
    data = {"inputs": seen, "targets": wanted}
    run = trace((first, dense(1, units, 1, "")), curve(0.9, 0.04), fed=fed, data=data)
    assert ("LCN" in {x.fault for x in diagnose(run).findings}) is told


@pytest.mark.parametrize(
    ("stride", "channels", "told"), [(2, 8, True), (1, 1, True), (1, 8, False)]
)
def test_filters_of_one_that_skip_places_cost_even_a_fair_run(
    stride: int, channels: int, told: bool
) -> None:
    settings = {"kernel_size": (1,), "strides": (stride,)}
    first = dense(0, channels, 8, input=summary((32, 64, channels), -1, 1), settings=settings)
    fair = curve(2.3, 0.35)
    found = diagnose(trace((first, dense(1, 8, 32), LAYERS[2]), fair)).findings
    assert ("LCF" in {x.fault for x in found}) is told


def test_steps_that_only_add_to_a_gradient_change_nothing() -> None:
    """Three of four steps wait for the fourth."""
    falls = curve(2.3, 0.9)
    taken = steps(falls, ratio=1e-3)
    waiting = tuple(
        step.model_copy(
            update={
                "weights": tuple(
                    row.model_copy(update={"update_ratio": 0.0}) for row in step.weights
                )
            }
        )
        if at % 40
        else step
        for at, step in enumerate(taken)
    )
    (run,) = trainings(trace(LAYERS, falls, taken=waiting))
    assert update_ratio(run) == pytest.approx(1e-3)


@pytest.mark.parametrize(("most", "told"), [(40.0, True), (400.0, False)])
def test_a_spread_that_a_few_values_make_is_not_compared(most: float, told: bool) -> None:
    heavy = summary((60, 16), -12.0, most, mean=0.1, std=12.0)
    judged = Data(model="m", part="evaluation", inputs=heavy)
    learned = {"inputs": summary((300, 16), -3.0, 3.0, mean=0.0, std=1.0)}
    found = diagnose(trace(data=learned, held_out=(judged,))).findings
    assert ("parts-differ" in {x.rule for x in found}) is told


@pytest.mark.parametrize(
    ("low", "high", "told"), [(-0.5, 0.5, True), (-0.5, 0.1, False), (0.0, 1.0, False)]
)
def test_pixels_that_were_centred_in_one_part_alone_differ(
    low: float, high: float, told: bool
) -> None:
    """What falls over time (the second) may leave the range of its past."""
    pixels = summary((300, 64), 0.0, 1.0, mean=0.5, std=0.2)
    other = summary((60, 64), low, high, mean=(low + high) / 2, std=0.2)
    judged = Data(model="m", part="evaluation", inputs=other)
    found = diagnose(trace(data={"inputs": pixels}, held_out=(judged,))).findings
    assert ("parts-differ" in {x.rule for x in found}) is told


@pytest.mark.parametrize(("copied", "told"), [(True, False), (False, True)])
def test_the_code_of_an_autoencoder_may_be_linear(copied: bool, told: bool) -> None:
    layers = (dense(0, 64, 32), dense(1, 32, 16, ""), dense(2, 16, 32), dense(3, 32, 64, ""))
    images = summary((32, 64), 0.0, 1.0)
    other = images if copied else summary((32, 64), -3.0, 3.0)
    fed = loss("mse", activation="linear", targets=other, one_hot=False, rows_sum_to_one=False)
    seen = trace(layers, PARTLY, fed=fed, data={"inputs": images, "targets": other})
    assert ("no-activation" in {x.rule for x in diagnose(seen).findings}) is told


@pytest.mark.parametrize(("fall", "told"), [(0.02, True), (0.3, False)])
def test_a_short_run_that_still_falls_fast_is_told_to_go_on(fall: float, told: bool) -> None:
    losses = curve(2.3, 0.4, 120, fall=fall)
    found = {x.rule for x in diagnose(partly_trained(losses=losses)).findings}
    assert ("few-updates" in found) is told


@pytest.mark.parametrize(
    ("updates", "after", "told"), [(40, 1.9, True), (40, 0.11, False), (400, 1.9, False)]
)
def test_averages_of_batch_normalisation_that_had_no_time_to_settle_are_told(
    updates: int, after: float, told: bool
) -> None:
    norm = dense(1, 1, 1, "", weights=(), type="BatchNormalization", settings={"momentum": 0.99})
    epochs = (Epoch(model="m", epoch=0, step=updates, values={"loss": 0.1, "val_loss": after}),)
    seen = trace(
        (LAYERS[0], norm, dense(2, 32, 10, "softmax")),
        curve(2.3, 0.02, updates, fall=0.3),
        epochs=epochs,
    )
    assert trainings(seen)[0].learning.well
    assert any(x.fault == "HNE" for x in diagnose(seen).findings) == told


def test_momentum_of_batch_normalisation_counts_from_the_other_end_in_torch() -> None:
    norm = dense(1, 1, 1, "", weights=(), type="BatchNorm1d", settings={"momentum": 0.1})
    epochs = (Epoch(model="m", epoch=0, step=40, values={"loss": 0.1, "val_loss": 1.9}),)
    seen = trace(
        (LAYERS[0], norm, dense(2, 32, 10, "softmax")),
        curve(2.3, 0.02, 40, fall=0.3),
        epochs=epochs,
        model={"framework": "torch"},
    )
    assert not any(x.fault == "HNE" for x in diagnose(seen).findings)


@pytest.mark.parametrize("mean", [0.3, 0.1])
def test_softmax_is_wrong_where_targets_sum_to_more_than_one(mean: float) -> None:
    """As for pixels that an autoencoder returns; targets of a mean of 0.1 over ten are shares."""
    targets = summary((32, 10), 0.0, 1.0, mean=mean, distinct=17)
    fed = {"name": "binary_crossentropy", "targets": targets, "one_hot": False, "trivial": 0.4}
    seen = trace((*LAYERS[:2], dense(2, 32, 10, "softmax")), curve(0.69, 0.1), fed=loss(**fed))
    seen = seen.model_copy(update={"data": (seen.data[0].model_copy(update={"targets": targets}),)})
    assert not trainings(seen)[0].learning.poor
    assert any(x.layers == (2,) for x in diagnose(seen).findings) == (mean > 0.2)


def test_a_loss_that_sees_one_number_of_two_classes_is_told_though_it_fell() -> None:
    seen = one_unit(
        "",
        "mse",
        summary((32,), 0.0, 1.0, distinct=2),
        curve(0.25, 0.001),
        trivial=0.25,
        predictions=summary((32,), -0.3, 1.1),
        integer_targets=True,
    )
    layers = (seen.models[0].layers[0], dense(1, 64, 2, ""))
    model = seen.models[0].model_copy(update={"layers": layers})
    found = diagnose(seen.model_copy(update={"models": (model,)})).findings
    assert [x.fault for x in found][:1] == ["LCH"]
    single = model.model_copy(update={"layers": (layers[0], dense(1, 64, 1, ""))})
    assert not diagnose(seen.model_copy(update={"models": (single,)})).findings


def test_vectors_of_codes_that_begin_alike_are_told_where_little_was_learned() -> None:
    def table(std: float) -> Layer:
        own = weight(dense(0, 50, 16, ""), "kernel", std=std, mean=1.0)
        kept = own.weights[0].model_copy(update={"role": "embedding"})
        return own.model_copy(update={"type": "Embedding", "weights": (kept,)})

    for std, losses, told in ((0.0, PARTLY, True), (1.0, PARTLY, False), (0.0, GOOD, False)):
        layers = (table(std), dense(1, 16, 32), dense(2, 32, 10, "softmax"))
        found = diagnose(partly_trained(layers, losses)).findings
        assert any(x.fault == "WCI" and x.layers == (0,) for x in found) == told


def test_a_function_that_drops_belongs_to_the_layer_before_it() -> None:
    settings = {"functional_dropout": 0.95}
    hidden = (LAYERS[0], LAYERS[1].model_copy(update={"settings": settings}), LAYERS[2])
    (found,) = (x for x in diagnose(partly_trained(hidden)).findings if x.rule == "heavy-dropout")
    assert (found.fault, found.layers) == ("LAD", (1,))
    last = (*LAYERS[:2], LAYERS[2].model_copy(update={"settings": {"functional_dropout": 0.3}}))
    rules = {x.rule: x.layers for x in diagnose(partly_trained(last)).findings}
    assert rules["dropout-on-output"] == (2,)


def test_advice_names_the_layer_the_line_and_the_loss():
    (twice,) = diagnose(trace(LAYERS, FLAT, fed=loss("cross_entropy", line=8))).findings[:1]
    assert twice.change is not None
    assert twice.change.words == (
        f"Remove the `softmax` from the output of layer {LAYERS[-1].index} "
        f"(`{LAYERS[-1].name}`): `cross_entropy` in line 8 applies it itself."
    )
    slow = trace(losses=SLOW, optimizer={"name": "sgd", "rates": (1e-6,)})
    (rate,) = (x.change for x in diagnose(slow).findings if x.fault == "HLR")
    assert rate is not None
    assert rate.words == f"Try a learning rate of 0.01 in line {slow.optimizers[0].line}."


def _signs(name: str, seen: TrainingTrace) -> list[object]:
    rule = next(x for x in RULES if x.id == name)
    return [sign for x in trainings(seen) for sign in rule.check(x)]


def test_parts_of_a_batch_whose_loss_is_divided_are_no_missing_steps():
    inner, outer = CALLS[1], ("10",)
    calls = (
        CallSite(name="zero_grad", line=13, calls=42, loops=outer),
        inner,
        CallSite(name="step", line=16, calls=42, loops=outer),
    )
    totals = {"zero_grad": 42, "backward": 500, "step": 42}
    summed = coded(calls=calls, totals=totals, facts={"looks": 60, "divided": 0})
    divided = coded(calls=calls, totals=totals, facts={"looks": 60, "divided": 60})
    assert _signs("per-epoch-step", summed)
    assert not _signs("per-epoch-step", divided)


def test_a_fixed_network_beside_the_one_that_learns_is_no_frozen_layer():
    fixed = LEARNER.model_copy(update={"trainable": False, "changed": False, "optimizers": 0})
    beside = fixed.model_copy(update={"root": 1})
    assert _signs("parameters-frozen", coded(parameters=(fixed, HEAD)))
    assert not _signs("parameters-frozen", coded(parameters=(beside, HEAD)))


def test_what_shapes_the_inputs_of_a_fixed_network_is_not_judged_by_its_curve():
    fixed = LEARNER.model_copy(update={"trainable": False, "changed": False, "optimizers": 0})
    assert trainings(coded())[0].learning.points
    assert not trainings(coded(parameters=(fixed,)))[0].learning.points


def test_the_loss_of_a_policy_that_draws_its_own_data_says_nothing():
    names = [Mention(name=name, line=5) for name in ("sample", "log_prob", "rsample")]
    assert not trainings(coded(mentions=tuple(names[:2])))[0].learning.points
    assert trainings(coded(mentions=tuple(names)))[0].learning.points
    assert not trainings(coded(facts={"picked_values": 1}))[0].learning.points


def test_divergence_suits_logarithms_of_probabilities():
    shares = summary((32, 2), 0.1, 0.9)
    seen = coded()
    given = seen.losses[0].model_copy(
        update={
            "name": "kld", "targets": shares, "one_hot": False, "class_shares": (),
            "activation": "linear", "rows_sum_to_one": False, "integer_targets": False,
        }
    )  # fmt: skip
    fits = given.model_copy(update={"activation": "log_softmax"})
    assert _signs("unsuited-distance", seen.model_copy(update={"losses": (given,)}))
    assert not _signs("unsuited-distance", seen.model_copy(update={"losses": (fits,)}))


def test_the_targets_of_a_second_loss_are_not_those_of_the_first():
    seen = coded()
    first = seen.losses[0].model_copy(
        update={"name": "bce_logits", "targets": summary((32, 1), 0.0, 1.0)}
    )
    other = first.model_copy(update={"name": "mse", "targets": summary((32, 1), -3.0, 5.0)})
    data = seen.data[0].model_copy(update={"targets": summary((32, 1), -3.0, 5.0)})
    alone = seen.model_copy(update={"losses": (first,), "data": (data,)})
    assert _signs("class-loss-of-values", alone)
    assert not _signs("class-loss-of-values", alone.model_copy(update={"losses": (first, other)}))


def test_many_copies_of_a_model_are_tasks_and_no_short_runs():
    seen = coded()
    short = seen.model_copy(update={"steps": seen.steps[:8]})
    assert any(x.rule == "few-updates" for x in diagnose(short).findings)
    models = tuple(seen.models[0].model_copy(update={"id": f"m{at}"}) for at in range(20))

    def of(rows, **more):
        return tuple(
            row.model_copy(update={"model": model.id, **{k: f(at) for k, f in more.items()}})
            for at, model in enumerate(models)
            for row in rows
        )

    steps_of = tuple(
        step.model_copy(update={"optimizer": f"o{at}"}) for at in range(20) for step in short.steps
    )
    many = short.model_copy(
        update={
            "models": models, "losses": of(seen.losses), "data": of(seen.data),
            "plans": of(seen.plans), "epochs": (),
            "optimizers": of(seen.optimizers, id=lambda at: f"o{at}"), "steps": steps_of,
        }
    )  # fmt: skip
    assert not any(x.rule == "few-updates" for x in diagnose(many).findings)


def test_a_step_of_jax_whose_parameters_never_change_has_lost_its_updates():
    def of(compared: int, unchanged: int, updated: int) -> TrainingTrace:
        facts = {"jax_compared": compared, "jax_unchanged": unchanged, "jax_updated": updated}
        seen = coded(facts=facts)
        model = seen.models[0].model_copy(update={"framework": "jax"})
        return seen.model_copy(update={"models": (model,)})

    assert _signs("update-lost", of(9, 9, 9))
    assert not _signs("update-lost", of(9, 8, 9))
    assert not _signs("update-lost", of(9, 9, 0))
    assert not _signs("update-lost", of(1, 1, 1))


def test_a_stopped_gradient_of_jax_is_a_cut_wherever_it_stands():
    still = LEARNER.model_copy(
        update={"name": "w1", "module": "Dense", "fed": 0, "in_graph": False, "changed": False}
    )
    stop = Mention(name="stop_gradient", line=21, function="loss_of")
    assert _signs("graph-cut", coded(parameters=(still, HEAD), mentions=(stop,)))
    assert not _signs("graph-cut", coded(parameters=(still, HEAD)))


def test_the_same_rows_in_a_loop_over_parts_of_the_data_are_the_same_batch():
    facts = {"batches": 20, "distinct_batches": 1, "batch_share": 1.0}
    in_parts = coded(facts={**facts, "batch_loops": (11.0,)})
    whole = coded(facts=facts)  # a second loop that makes several steps on all rows
    assert _signs("same-batch", in_parts)
    assert not _signs("same-batch", whole)
    rarely = {"totals": {"zero_grad": 500, "backward": 500, "step": 20}}
    assert not _signs("same-batch", coded(**rarely, facts=in_parts.code.facts))


def test_clipping_below_the_epsilon_of_an_adaptive_optimizer_kills_too():
    clip = Clipping(limit=1e-4, median=0.5, calls=500, line=14)
    seen = coded(clippings=(clip,), optimizers=(USE.model_copy(update={"name": "adadelta"}),))
    still = seen.model_copy(update={"steps": steps(FLAT, ratio=1e-6, rate=1.0)})
    moving = seen.model_copy(update={"steps": steps(FLAT, ratio=1e-3, rate=1.0)})
    assert _signs("clipping-kills", still)
    assert not _signs("clipping-kills", moving)


def test_gradients_that_are_erased_are_not_cut_as_well():
    still = LEARNER.model_copy(
        update={"name": "conv1.weight", "fed": 0, "in_graph": False, "changed": False}
    )
    cut = Mention(name="argmax", line=21, function="forward", names=("conv1",))
    erased = USE.model_copy(update={"erased": 40})
    assert _signs("graph-cut", coded(parameters=(still, HEAD), mentions=(cut,)))
    assert not _signs(
        "graph-cut", coded(parameters=(still, HEAD), mentions=(cut,), optimizers=(erased,))
    )


def test_least_squares_of_models_that_train_against_each_other_are_no_fault():
    seen, _ = TRACE_PAIRS["distance-between-classes"]
    (model,), (optimizer,) = seen.models, seen.optimizers
    other = model.model_copy(update={"id": "other"})
    by_turns = tuple(
        x.model_copy(update={"optimizer": "other" if at % 2 else x.optimizer})
        for at, x in enumerate(seen.steps)
    )
    against = seen.model_copy(
        update={
            "models": (model, other),
            "optimizers": (
                optimizer,
                optimizer.model_copy(update={"id": "other", "model": "other"}),
            ),
            "steps": by_turns,
        }
    )
    assert "distance-between-classes" in {x.rule for x in diagnose(seen).findings}
    assert "distance-between-classes" not in {x.rule for x in diagnose(against).findings}


@pytest.mark.parametrize(("batch", "is_mixed"), [(32, True), (12, False)])
def test_where_targets_have_places_too_the_loader_says_which_axis_is_the_batch(batch, is_mixed):
    seen, _ = TRACE_PAIRS["axis-mixed"]
    loss = seen.losses[0].model_copy(
        update={"targets": summary((32, 12), 0, 4), "predictions": summary((32, 12, 5), -1, 1)}
    )
    plan = Plan(model=seen.models[0].id, batch_size=batch)
    code = seen.code.model_copy(update={"facts": {"loader_steps": 9}})
    seen = seen.model_copy(update={"losses": (loss,), "plans": (plan,), "code": code})
    rule = next(x for x in RULES if x.id == "axis-mixed")
    assert bool([sign for x in trainings(seen) for sign in rule.check(x)]) is is_mixed


def test_a_name_that_gets_a_new_tensor_leaves_the_parameter_as_it_is():
    facts = {"own_looks": 60, "own_changes": 0, "own_inputs": 0, "own_copies": (12.0,)}
    bare = coded(optimizers=(), facts=facts)
    rule = next(x for x in RULES if x.id == "update-lost")

    def signs(code):
        seen = bare.model_copy(update={"code": bare.code.model_copy(update={"facts": code})})
        return [sign.line for x in trainings(seen) for sign in rule.check(x)]

    assert signs(facts) == [12]
    for change in ({"own_changes": 9}, {"own_inputs": 1}, {"own_copies": ()}):
        assert signs({**facts, **change}) == []


def test_a_recurrent_layer_that_reads_backwards_sees_what_follows():
    def reading(**settings):
        layer = dense(0, 8, 16, "", type="GRU", settings=settings)
        seen = coded(facts={"shifted_targets": 1.0})
        (model,) = seen.models
        layers = (layer, *model.layers[1:])
        return seen.model_copy(update={"models": (model.model_copy(update={"layers": layers}),)})

    assert _signs("future-leak", reading(bidirectional=True))
    assert not _signs("future-leak", reading(bidirectional=False))


@pytest.mark.parametrize(("classes", "shuffled", "is_named"), [
    (1.1, False, True), (1.1, True, False), (6.0, False, False),
])  # fmt: skip
def test_batches_with_far_fewer_classes_than_chance_has_are_sorted(classes, shuffled, is_named):
    facts = {
        "batch_classes": classes, "random_classes": 9.0, "label_batches": 40,
        "loader_shuffle": shuffled, "loader_line": 12,
    }  # fmt: skip
    assert [x.line for x in _signs("sorted-classes", coded(facts=facts))] == [12] * is_named


def _recurrent_layer():
    layer = dense(0, 8, 16, "", type="LSTM")
    again = layer.weights[0].model_copy(update={"name": "weight_hh", "role": "recurrent"})
    return layer.model_copy(update={"weights": (*layer.weights, again)})


@pytest.mark.parametrize(("gradient", "is_named"), [(0.0, True), (0.1, False)])
def test_recurrent_weights_without_a_gradient_have_sequences_of_one_place(gradient, is_named):
    seen = coded()
    (model,) = seen.models
    layer = _recurrent_layer()
    rows = (
        WeightStep(layer=0, role="kernel", norm=0.5),
        WeightStep(layer=0, role="recurrent", norm=gradient),
    )
    model = model.model_copy(update={"layers": (layer, *model.layers[1:])})
    taken = tuple(x.model_copy(update={"weights": rows}) for x in seen.steps[:20])
    seen = seen.model_copy(update={"models": (model,), "steps": (*taken, *seen.steps[20:])})
    assert bool(_signs("axis-mixed", seen)) is is_named


@pytest.mark.parametrize(("shape", "is_named"), [((32, 4, 4), True), ((8, 4, 4), False)])
def test_softmax_over_the_samples_mixes_axes(shape, is_named):
    _, seen = TRACE_PAIRS["axis-mixed"]
    use = TensorUse(name="softmax", line=7, before=shape)
    seen = seen.model_copy(update={"code": seen.code.model_copy(update={"uses": (use,)})})
    assert [x.line for x in _signs("axis-mixed", seen)] == [7] * is_named


@pytest.mark.parametrize(("outputs", "is_named"), [(1, True), (2, False)])
def test_one_of_a_single_column_is_always_the_first(outputs, is_named):
    use = TensorUse(name="argmax", line=30, before=(100, outputs))
    seen = coded(uses=(use,))
    fed = seen.losses[0].model_copy(
        update={"name": "bce", "predictions": summary((32, outputs), 0, 1)}
    )
    seen = seen.model_copy(update={"losses": (fed,)})
    assert bool(_signs("metric-wrong", seen)) is is_named


@pytest.mark.parametrize(("first", "last", "error", "is_named"), [
    (9.0, 0.01, 1.0, True), (9.0, 5.0, 1.0, False), (9.0, 0.01, 0.2, False), (0.5, 0.01, 1.0, False),
    (-9.0, -0.01, 1.0, False),
])  # fmt: skip
def test_a_sum_beside_a_mean_outweighs_it(first, last, error, is_named):
    seen = coded(facts={"loss_line": 20})
    count = len(seen.steps)
    rows = tuple(
        x.model_copy(update={"added": added, "loss": added + own})
        for at, x in enumerate(seen.steps)
        for added, own in [(first, 1.0) if at < count // 2 else (last, error)]
    )
    fed = seen.losses[0].model_copy(update={"name": "mse", "trivial": 1.0})
    seen = seen.model_copy(update={"steps": rows, "losses": (fed,)})
    assert [x.line for x in _signs("wrong-reduction", seen)] == [20] * is_named


@pytest.mark.parametrize("kind", ["LSTM", "Linear"])
def test_states_of_a_recurrent_layer_reach_no_further_than_one(kind):
    layer = _recurrent_layer() if kind == "LSTM" else dense(0, 8, 16, "")
    seen = coded()
    (model,) = seen.models
    fed = seen.losses[0].model_copy(update={
        "name": "mse", "activation": "", "predictions": summary((32, 16), -0.9, 0.9),
        "targets": summary((32, 16), -2.0, 2.0),
    })  # fmt: skip
    model = model.model_copy(update={"layers": (layer,)})
    seen = seen.model_copy(update={"models": (model,), "losses": (fed,), "data": ()})
    assert bool(_signs("targets-out-of-reach", seen)) is (kind == "LSTM")


@pytest.mark.parametrize(("parts", "rule"), [(60, "accumulation-wrong"), (0, "per-epoch-step")])
def test_a_reset_before_each_part_is_no_missing_step(parts: int, rule: str):
    calls = (*CALLS[:2], CALLS[2].model_copy(update={"loops": ("10",)}))
    totals = {"zero_grad": 500, "backward": 500, "step": 42}
    seen = coded(calls=calls, totals=totals, facts={"looks": 60, "divided": parts})
    (finding,) = (x for x in diagnose(seen).findings if x.rule in _OF_STEPS)
    assert (finding.rule, finding.line) == (rule, 13 if parts else 16)


_OF_STEPS = ("accumulation-wrong", "per-epoch-step")


def test_parts_whose_step_is_skipped_within_their_own_loop_are_reset_too_soon():
    totals = {"zero_grad": 500, "backward": 500, "step": 125}
    facts = {"looks": 60, "divided": 60}
    assert _signs("accumulation-wrong", coded(totals=totals, facts=facts))
    second = CALLS[1].model_copy(update={"line": 14, "calls": 250})
    two_losses = coded(calls=(*CALLS, second), totals=totals, facts=facts)
    assert not _signs("accumulation-wrong", two_losses)


@pytest.mark.parametrize(
    ("times", "highest", "is_told"),
    [(7, 0.02, True), (7, 0.1, False), (500, 0.02, False)],
    ids=["ends while it warms up", "is warm in the end", "a step for each of the optimizer"],
)
def test_a_warm_up_that_outlasts_the_run_is_told(times, highest, is_told):
    seen = coded(schedules=(Schedule(name="LambdaLR", steps=times, line=6),))
    last = seen.steps[-1].step
    taken = [
        row.model_copy(update={"rate": highest * row.step / last if times < 99 else 0.01})
        for row in seen.steps
    ]
    optimizer = seen.optimizers[0].model_copy(update={"settings": {"lr": 0.1}})
    seen = seen.model_copy(update={"steps": tuple(taken), "optimizers": (optimizer,)})
    assert bool(_signs("schedule-stepped-wrong", seen)) is is_told


@pytest.mark.parametrize(("share", "told"), [(0.2, True), (0.9, False)])
@pytest.mark.parametrize("losses", [FLAT, GOOD], ids=["flat", "learned"])
def test_a_schedule_that_leaves_no_rate_for_most_of_a_run_is_told(share, told, losses):
    seen = coded(losses, schedules=(Schedule(name="LambdaLR", steps=20, line=6),))
    end = share * len(losses)
    moving = [x.model_copy(update={"rate": 0.1 * (x.step < end)}) for x in steps(losses)]
    still = [
        x if x.rate else x.model_copy(update={"weights": y.weights})
        for x, y in zip(moving, steps(losses, ratio=0.0), strict=True)
    ]
    found = diagnose(seen.model_copy(update={"steps": tuple(still)})).findings
    assert [x.line for x in found if x.fault == "schedule-stepped-wrong"] == [6] * told
    others_move = seen.model_copy(update={"steps": tuple(moving)})
    assert not _signs("schedule-stepped-wrong", others_move)


def test_a_rate_of_zero_at_the_start_is_a_warm_up():
    seen = coded(schedules=(Schedule(name="LambdaLR", steps=500, line=6),))
    taken = [x.model_copy(update={"rate": 0.1 * (x.step > 99)}) for x in steps(FLAT, ratio=0.0)]
    assert not _signs("schedule-stepped-wrong", seen.model_copy(update={"steps": tuple(taken)}))


@pytest.mark.parametrize(("distinct", "told"), [(64, False), (10, True)])
def test_rows_that_find_their_partners_in_a_batch_need_not_come_near_zero(distinct, told):
    fed = loss(
        "cross_entropy", activation="", rows_sum_to_one=False, one_hot=False,
        predictions=summary((64, 64), -3, 3), targets=summary((64,), 0, 63, distinct=distinct),
        integer_targets=True, class_shares=(1 / 64,) * 64, trivial=4.16,
    )  # fmt: skip
    short = trace(losses=curve(4.2, 2.6, 200), fed=fed)
    assert bool(_signs("few-updates", short)) == told
    stuck = trace(losses=[4.2, 4.1] * 100, fed=fed)
    assert _signs("few-updates", stuck)


@pytest.mark.parametrize(("samples", "told"), [(800, True), (64, False)])
def test_rows_of_another_training_are_no_leak(samples: int, told: bool):
    facts = {"trained_rows": 800, "judged_rows": (100.0,), "judged_trained": (30.0,)}
    seen = coded(facts=facts)
    plan = seen.plans[0].model_copy(update={"samples": samples})
    assert bool(_signs("split-leak", seen.model_copy(update={"plans": (plan,)}))) == told


@pytest.mark.parametrize(("last", "told"), [(0.1, True), (1e-5, False)])
def test_a_loss_that_falls_as_the_rate_is_taken_away_is_not_cut_short(last: float, told: bool):
    losses = curve(2.3, 0.6, 500, fall=0.004)
    taken = [x.model_copy(update={"rate": 0.1}) for x in steps(losses)]
    taken[-1] = taken[-1].model_copy(update={"rate": last})
    assert bool(_signs("still-falling", trace(taken=tuple(taken)))) == told


def test_data_say_nothing_where_no_step_changes_anything():
    large = summary((800, 64), 0.0, 63.0)
    still = steps(FLAT, ratio=0.0, rate=0.1)
    seen = coded()
    data = seen.data[0].model_copy(update={"inputs": large})
    given = seen.model_copy(update={"data": (data,)})
    assert any(x.rule == "unscaled-inputs" for x in diagnose(given).findings)
    found = diagnose(given.model_copy(update={"steps": still})).findings
    assert {x.fault for x in found} == {"update-lost"}


@pytest.mark.parametrize(("low", "told"), [(0.0, False), (-3.0, True)])
def test_values_that_lost_their_sign_passed_a_function(low: float, told: bool):
    first = dense(0, 64, 64, "", output=summary((32, 64), -3.0, 3.0))
    after = LAYERS[1].model_copy(update={"input": summary((32, 64), low, 3.0)})
    found = _signs("no-activation", partly_trained((first, after, LAYERS[2])))
    assert bool(found) == told


@pytest.mark.parametrize("own", [True, False])
def test_a_loss_that_a_keras_program_writes_itself_broadcasts(own: bool):
    settings = {"broadcast": True} if own else {}
    seen = one_unit("linear", "expression", summary((32,), -4.0, 9.0), settings=settings, line=23)
    found = [x for x in diagnose(seen).findings if x.rule == "broadcast-targets"]
    assert [(x.also, x.line) for x in found if x.fault == "CPP"] == [
        (("broadcast-loss",), 23)
    ] * own


@pytest.mark.parametrize(("size", "told"), [(LEARNER.size, False), (LEARNER.size + 1, True)])
def test_frozen_layers_that_were_trained_in_another_model_are_not_at_their_start(size, told):
    fixed = LEARNER.model_copy(update={"trainable": False, "changed": False, "root": 1})
    head = HEAD.model_copy(update={"root": 1})
    before = LEARNER.model_copy(update={"size": size})
    seen = coded(parameters=(before, HEAD, fixed, head))
    assert bool(_signs("parameters-frozen", seen)) == told


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, "1 more layer."), (9, "6 more layers.")])
def test_what_all_layers_have_in_common_is_not_said_of_each(count: int, more: str):
    layers = tuple(dense(at, 64, 64, "") for at in range(count))
    rest = (dense(count, 64, 32), dense(count + 1, 32, 10, "softmax"))
    found = diagnose(partly_trained((*layers, *rest))).findings
    (finding,) = (x for x in found if x.rule == "no-activation")
    assert finding.layers == tuple(range(count))
    assert finding.message.count("No activation follows") == 3
    assert finding.message.endswith(more or "one linear map.")


@pytest.mark.parametrize(
    ("framework", "words"), [("torch", "`model.train()`"), ("keras", "`training=True`")]
)
def test_each_framework_has_its_own_way_to_train_in_training_mode(framework: str, words: str):
    seen = coded(modes=(ModeUse(layers=("BatchNorm",), evaluating=20),))
    model = seen.models[0].model_copy(update={"framework": framework})
    (finding,) = diagnose(seen.model_copy(update={"models": (model,)})).findings
    assert finding.fault == "eval-while-training"
    assert finding.change is not None
    assert words in finding.change.words


def _in_keras(seen: TrainingTrace, **changes: object) -> TrainingTrace:
    model = seen.models[0].model_copy(update={"framework": "keras"})
    losses = tuple(x.model_copy(update=changes) for x in seen.losses)
    return seen.model_copy(update={"models": (model,), "losses": losses})


def _code_faults(seen: TrainingTrace) -> set[str]:
    return {finding.fault for finding in diagnose(seen).findings if "-" in finding.fault}


@pytest.mark.parametrize(("from_logits", "told"), [(True, {"metric-wrong"}), (False, set())])
def test_keras_counts_logits_above_one_half(from_logits: bool, told: set[str]):
    seen = coded(facts={"threshold": 0.5, "threshold_line": 12})
    changes = {"name": "binary_crossentropy", "from_logits": from_logits}
    assert _code_faults(_in_keras(seen, **changes)) == told


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"predicted_shuffled": True, "predicted_line": 30}, {"metric-wrong"}),
        ({"frozen_model": True, "frozen_line": 30}, {"parameters-frozen"}),
        ({}, set()),
    ],
)
def test_keras_models_that_stay_frozen_or_predict_in_another_order(facts, told):
    assert _code_faults(_in_keras(coded(facts=facts))) == told


@pytest.mark.parametrize(("share", "told"), [(0.95, {"padding-counts"}), (0.1, set())])
def test_a_recurrent_layer_is_read_at_padding(share: float, told: set[str]):
    assert _code_faults(coded(facts={"ends": 40.0, "padded_ends": share})) == told


@pytest.mark.parametrize(("times", "told"), [(30, {"graph-cut"}), (2, set())])
def test_a_term_that_no_step_follows(times: int, told: set[str]):
    mentions = (
        Mention(name="detach", line=6), Mention(name="detach", line=14),
        Mention(name="backward", line=16),
    )  # fmt: skip
    seen = coded(facts={"idle_terms": times, "idle_line": 16}, mentions=mentions)
    assert _code_faults(seen) == told
    assert all(x.line == 14 for x in diagnose(seen).findings if x.fault == "graph-cut")


@pytest.mark.parametrize(
    ("start", "mean", "told"),
    [(-1.5, 0.2, False), (1.5, 0.2, True), (-1.5, 0.5, True)],
)
def test_a_bias_that_starts_at_the_odds_of_the_labels_is_a_prior(start, mean, told):
    targets = summary((32, 1), 0, 1, mean=mean)
    seen = one_unit("sigmoid", "binary_crossentropy", targets, PARTLY)
    (model,) = seen.models
    last = weight(model.layers[-1], "bias", minimum=start, maximum=start, mean=start)
    model = model.model_copy(update={"layers": (*model.layers[:-1], last)})
    found = diagnose(seen.model_copy(update={"models": (model,)})).findings
    assert any(finding.rule == "bias-not-zero" for finding in found) == told


@pytest.mark.parametrize(("start", "told"), [(150.0, False), (600.0, True)])
def test_a_bias_that_starts_at_the_mean_of_the_targets_is_a_prior(start: float, told: bool):
    """However far from zero they lie."""
    seen = one_unit("", "mse", summary((32, 1), 30, 300, mean=150, std=60), PARTLY)
    (model,) = seen.models
    fed = model.layers[-1].model_copy(update={"input": summary((32, 64), -1, 1)})
    last = weight(fed, "bias", minimum=start, maximum=start, mean=start)
    model = model.model_copy(update={"layers": (*model.layers[:-1], last)})
    found = diagnose(seen.model_copy(update={"models": (model,)})).findings
    assert any(finding.rule == "bias-not-zero" for finding in found) is told


def test_one_layer_may_be_fitted_to_all_data_at_once():
    rule = next(x for x in RULES if x.id == "huge-batch")
    plan = {"batch_size": 800, "samples": 800}
    fallen = curve(2.3, 0.2, 120, fall=0.03)
    single = partly_trained(LAYERS[-1:], fallen, plan=plan)
    several = partly_trained(LAYERS, fallen, plan=plan)
    signs = [[y for x in trainings(one) for y in rule.check(x)] for one in (single, several)]
    assert [bool(x) for x in signs] == [False, True]


@pytest.mark.parametrize(("share", "told"), [(0.6, True), (0.93, False)])
def test_neighbours_of_rare_labels_tell_too_little(share: float, told: bool):
    seen = trace(losses=PARTLY, data={"agreement": 0.3}, fed=loss(class_shares=(share, 1 - share)))
    found = diagnose(seen).findings
    assert any(finding.rule == "targets-unrelated" for finding in found) == told


@pytest.mark.parametrize(("reduction", "is_known"), [("mean", True), ("none", False)])
def test_errors_that_a_program_adds_up_itself_have_a_scale_of_their_own(reduction, is_known):
    fed = loss("mse", trivial=0.1, settings={"reduction": reduction})
    (run,) = trainings(trace(losses=curve(200.0, 10.0), fed=fed))
    assert (run.learning.skill is not None) == is_known


@pytest.mark.parametrize(("name", "is_policy"), [("categorical", True), ("permutation", False)])
def test_a_jax_program_that_draws_its_actions_from_logits_trains_a_policy(name, is_policy):
    seen = coded(mentions=(Mention(name=name, line=9),))
    model = seen.models[0].model_copy(update={"framework": "jax"})
    (run,) = trainings(seen.model_copy(update={"models": (model,), "losses": ()}))
    assert run.is_policy == is_policy


def _unbiased(index: int, fan_in: int, units: int, **changes: object) -> Layer:
    layer = dense(index, fan_in, units, "", **changes)
    return layer.model_copy(update={"weights": layer.weights[:1]})


@pytest.mark.parametrize(("units", "told"), [(4, False), (64, True)], ids=["adapter", "full"])
def test_a_matrix_of_low_rank_needs_no_function_inside(units: int, told: bool) -> None:
    layers = (
        dense(0, 64, 64), _unbiased(1, 64, units), _unbiased(2, units, 64),
        dense(3, 64, 10, "softmax"),
    )  # fmt: skip
    found = diagnose(partly_trained(layers)).findings
    assert any(x.rule == "no-activation" and 1 in x.layers for x in found) is told


@pytest.mark.parametrize(("inputs", "told"), [((1,), True), ((), False)], ids=["chain", "beside"])
def test_layers_side_by_side_are_no_chain(inputs: tuple[int, ...], told: bool) -> None:
    """A branch that starts from the data follows no layer, where it is known which feeds which."""
    layers = (
        dense(0, 64, 64), dense(1, 64, 64, "", inputs=(0,)), dense(2, 64, 64, inputs=inputs),
        dense(3, 64, 10, "softmax", inputs=(2,)),
    )  # fmt: skip
    found = diagnose(partly_trained(layers)).findings
    assert any(x.rule == "no-activation" and 1 in x.layers for x in found) is told


@pytest.mark.parametrize(("activation", "told"), [("exponential", False), ("relu", True)])
def test_a_bias_of_a_logarithm_of_a_variance_may_begin_anywhere(
    activation: str, told: bool
) -> None:
    values = summary((32, 64), -1, 1)
    head = weight(
        dense(1, 64, 64, activation, functional=True, input=values), "bias",
        minimum=-8.0, maximum=-8.0, mean=-8.0, std=0.0,
    )  # fmt: skip
    found = diagnose(partly_trained((LAYERS[0], head, dense(2, 64, 10, "softmax")))).findings
    assert any(x.rule == "bias-not-zero" for x in found) is told


@pytest.mark.parametrize(("held_out", "told"), [(0.0, False), (30.0, True)])
def test_rows_of_training_may_be_judged_beside_clean_ones(held_out: float, told: bool) -> None:
    """The reference of a nearest-neighbour search, say."""
    judged = {"judged_rows": (100.0, 100.0), "judged_trained": (60.0, held_out)}
    seen = coded(facts={"trained_rows": 800, "repeated_rows": 0, **judged})
    assert ("split-leak" in _code_faults(seen)) is told


@pytest.mark.parametrize(("rate", "told"), [(0.04, True), (0.005, False)])
def test_far_too_fast_steps_are_told_where_no_loss_says_how_it_went(
    rate: float, told: bool
) -> None:
    fed = loss("triplet", trivial=None, class_shares=(), activation="linear")
    losses = curve(1.0, 0.5)
    taken = tuple(x.model_copy(update={"rate": rate}) for x in steps(losses, ratio=0.06, rate=rate))
    seen = trace(losses=losses, fed=fed, taken=taken, optimizer={"rates": (rate,)})
    assert trainings(seen)[0].learning.health == "unknown"
    assert any(x.rule == "rate-out-of-band" for x in diagnose(seen).findings) is told


@pytest.mark.parametrize(
    ("shares", "told"),
    [((1.0, 0.0, 0.2), True), ((0.9, 0.1, 0.2), False), ((0.5, 0.0, 0.5), False)],
    ids=["none but the background", "both", "an empty class"],
)
def test_a_column_of_the_targets_that_is_always_one_has_nothing_to_tell(
    shares: tuple[float, ...], told: bool
) -> None:
    fed = loss("own", one_hot=False, targets=summary((32, 8, 8, 3), 0, 1), class_shares=shares)
    assert any(x.rule == "targets-alike" for x in diagnose(trace(fed=fed)).findings) is told


def test_a_similarity_may_have_its_answer_at_one_place() -> None:
    """Of one positive before many negatives, as in momentum contrast, the target is always 0."""
    fed = loss(
        "cross_entropy", one_hot=False, targets=summary((32,), 0, 0, std=0.0), class_shares=(1.0,),
        integer_targets=True, predictions=summary((32, 65), -3, 3),
    )  # fmt: skip
    assert not any(x.rule == "targets-alike" for x in diagnose(trace(fed=fed)).findings)


@pytest.mark.parametrize(("buffer", "told"), [(32, True), (1000, False)])
def test_sorted_data_needs_a_buffer_for_all_rows(buffer: int, told: bool) -> None:
    """The probe sees the rows as they are before a pipeline shuffles them."""
    fed = loss(
        "sparse_categorical_crossentropy", one_hot=False, class_shares=(1.0,),
        targets=summary((32,), 0, 0, std=0.0, distinct=1), integer_targets=True,
    )  # fmt: skip
    seen = trace(losses=PARTLY, fed=fed, plan={"samples": None, "shuffle": None})
    code = coded(facts={"shuffle_buffer": buffer, "shuffled_rows": 1000}).code
    found = diagnose(seen.model_copy(update={"code": code})).findings
    assert any(x.rule == "sorted-classes" for x in found) is told
    assert not any(x.rule == "targets-alike" for x in found)


def test_gradients_of_one_model_are_given_to_another() -> None:
    seen = _in_keras(coded(facts={"applied_to_others": 19}))
    (found, *_) = diagnose(seen).findings
    assert (found.fault, found.line) == ("optimizer-holds-others", 19)


@pytest.mark.parametrize(
    ("losses", "told"),
    [(curve(2.3, 1.0, 200, fall=0.006), True), (FLAT[:200], False)],
    ids=["falling", "flat"],
)
def test_of_a_flat_curve_more_steps_promise_nothing(losses: list[float], told: bool) -> None:
    found = diagnose(trace(losses=losses, plan={"epochs": 8})).findings
    assert ("HNE" in {x.fault for x in found}) is told


@pytest.mark.parametrize(("share", "told"), [(1.0, True), (0.0, False)])
def test_a_decoder_that_reads_its_targets_copies_them(share: float, told: bool) -> None:
    assert ("target-in-inputs" in _code_faults(coded(facts={"copied_targets": share}))) is told


def _falling(added: float | None, start: float) -> TrainingTrace:
    seen = trace(losses=curve(start, 1.2, fall=0.004))
    taken = tuple(step.model_copy(update={"added": added}) for step in seen.steps)
    return seen.model_copy(update={"steps": taken})


@pytest.mark.parametrize(
    ("added", "start", "is_told"),
    [(None, 2.3, True), (0.5, 2.3, False), (None, 7.4, False)],
    ids=["one loss", "a term beside it", "several losses"],
)
def test_a_curve_of_several_terms_asks_for_no_more_epochs(added, start, is_told):
    found = diagnose(_falling(added, start)).findings
    assert any(x.rule == "still-falling" for x in found) is is_told


@pytest.mark.parametrize(("ratio", "is_told"), [(0.05, True), (2e-3, False)])
def test_a_loss_that_jumps_blames_the_rate_only_where_steps_are_large(ratio, is_told):
    losses = [x for _ in range(10) for x in [2.0] * 25 + [1.0] * 25]
    found = diagnose(trace(losses=losses, taken=steps(losses, ratio))).findings
    assert any(x.rule == "loss-jumps" for x in found) is is_told


@pytest.mark.parametrize(("finite", "is_told"), [(0.99, True), (0.0, False)])
def test_inputs_that_break_after_the_loss_had_a_value_are_computed(finite, is_told):
    seen = trace(losses=[2.3, *[math.nan] * 59])
    (given,) = seen.data
    inputs = given.inputs.model_copy(update={"finite": finite})
    data = (given.model_copy(update={"inputs": inputs}),)
    found = diagnose(seen.model_copy(update={"data": data})).findings
    assert any(x.rule == "invalid-inputs" for x in found) is is_told


def test_a_run_that_diverged_is_not_too_short():
    losses = [2.0 * 3**at for at in range(20)]
    found = diagnose(trace(losses=losses)).findings
    assert found[0].rule == "loss-breaks"
    assert not any(x.rule == "few-updates" for x in found)


@pytest.mark.parametrize(
    ("facts", "fault", "line"),
    [
        ({"dropped_line": 8, "dropped_call": "self.norm"}, "result-lost", 8),
        ({"dead_line": 8, "dead_by": 10, "dead_name": "total"}, "result-lost", 10),
        ({"dead_line": 8, "dead_by": 0, "dead_name": "kind"}, "result-lost", 8),
        ({"loop_ends": (11.0, 18.0, 1.0, 0.0)}, "batches-unused", 18),
        ({"loop_ends": (11.0, 18.0, 0.0, 0.0)}, "", 0),
        ({"loop_ends": (30.0, 34.0, 1.0, 1.0)}, "metric-wrong", 34),
        ({"loop_ends": (30.0, 34.0, 1.0, 0.0)}, "", 0),
        ({"key_inside": (14.0,)}, "seed-repeated", 14),
        ({"same_key_looks": 20, "key_line": 12}, "seed-repeated", 12),
        ({"still_line": 20, "still_cut": 17}, "graph-cut", 17),
        ({"kept_alias": (9.0,)}, "best-not-copied", 9),
        ({"seeded_again": 30, "seed_line": 4}, "", 0),
    ],
)
def test_what_a_program_computes_for_nothing_is_named_with_its_line(facts, fault, line):
    found = diagnose(coded(facts=facts)).findings
    rows = [(x.fault, x.line) for x in found if x.fault in CODE_FAULTS]
    assert rows == ([(fault, line)] if fault else [])


def test_a_state_of_flax_that_is_thrown_away_is_an_update_lost():
    seen = coded(facts={"lost_state": (44.0,)})
    model = seen.models[0].model_copy(update={"framework": "jax"})
    (first, *_) = diagnose(seen.model_copy(update={"models": (model,)})).findings
    assert (first.fault, first.also, first.line) == ("result-lost", ("update-lost",), 44)


def test_the_first_step_that_breaks_a_weight_is_named():
    seen = coded(losses=[2.3, *[math.nan] * 59], facts={"quotients": (24.0,)})
    row = WeightStep(layer=0, role="kernel", norm=0.0, update_ratio=math.nan)
    taken = (seen.steps[0].model_copy(update={"weights": (row,)}), *seen.steps[1:])
    own = seen.optimizers[0].model_copy(update={"name": "normuon"})
    (first, *_) = diagnose(seen.model_copy(update={"steps": taken, "optimizers": (own,)})).findings
    assert (first.fault, first.line) == ("value-undefined", 24)


def test_parameters_of_a_loss_that_no_optimizer_holds_are_named():
    centers = LEARNER.model_copy(
        update={
            "name": "centers", "module": "CenterLoss", "size": 2, "optimizers": 0, "root": 1,
            "changed": False,
        }
    )  # fmt: skip
    held = [LEARNER, HEAD]
    found = diagnose(coded(parameters=(*held, centers))).findings
    assert [x.fault for x in found if x.fault == "optimizer-holds-others"]
    within = centers.model_copy(update={"root": 0})
    found = diagnose(coded(parameters=(*held, within))).findings
    assert not [x.fault for x in found if x.fault == "optimizer-holds-others"]


@pytest.mark.parametrize(
    ("steps_of_its_own", "rates", "is_told"),
    [(0, (0.1, 0.1), True), (500, (0.1, 0.1), False), (0, (0.1, 0.05), False)],
    ids=["of another", "of the one that steps", "within a wrapper"],
)
def test_a_scheduler_of_an_optimizer_that_never_steps(steps_of_its_own, rates, is_told):
    use = Schedule(name="StepLR", steps=20, line=6, optimizer_steps=steps_of_its_own)
    seen = coded(schedules=(use,))
    taken = tuple(x.model_copy(update={"rate": rates[x.step >= 250]}) for x in seen.steps)
    found = diagnose(seen.model_copy(update={"steps": taken})).findings
    assert any(x.fault == "schedule-stepped-wrong" for x in found) is is_told


@pytest.mark.parametrize(("zero", "is_told"), [(0.0, True), (0.9, False)])
def test_weights_that_begin_as_an_identity_have_no_one_sign(zero, is_told):
    (first, *rest) = LAYERS
    (own, *others) = first.weights
    start = own.initial.model_copy(update={"minimum": 0.0, "maximum": 1.0, "zero": zero})
    changed = own.model_copy(update={"initial": start})
    layer = first.model_copy(update={"weights": (changed, *others)})
    found = diagnose(trace((layer, *rest), FLAT)).findings
    assert any(x.rule == "one-signed-kernel" for x in found) is is_told


def test_padding_that_keras_masks_is_no_finding():
    seen, _ = TRACE_PAIRS["padding-counts"]
    assert any(x.fault == "padding-counts" for x in diagnose(seen).findings)
    model = seen.models[0].model_copy(update={"framework": "keras"})
    found = diagnose(seen.model_copy(update={"models": (model,)})).findings
    assert not any(x.fault == "padding-counts" for x in found)
