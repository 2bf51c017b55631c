"""For each rule of the diagnosis a trace that it speaks of, and a healthy one beside it."""

from __future__ import annotations

from typing import Any, Literal

from bot.kernel.training_types import (
    ActivationStep,
    Data,
    Epoch,
    Evaluation,
    Layer,
    Summary,
    TrainedModel,
    TrainingStep,
    TrainingTrace,
)
from tests.support.code_pairs import CODE_PAIRS, coded
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

_ENDS = {"linear": dense(2, 32, 10, ""), "sigmoid": dense(2, 32, 10, "sigmoid")}
PARTLY = curve(2.3, 1.0)
_LOGITS = {
    "activation": "linear",
    "rows_sum_to_one": False,
    "predictions": summary((32, 10), -3, 3),
}
VALUES = summary((32, 1), -4.0, 9.0)
SLOW = curve(2.3, 0.1, 500, fall=0.001)
_JUMPY = [2.0, 1.0] * 10


def ending_in(function: str, **fed: Any) -> TrainingTrace:
    """A classifier whose last layer ends in another function."""
    last = dense(2, 32, 10, "" if function == "linear" else function)
    return trace((*LAYERS[:2], last), FLAT, fed=loss(**{"activation": function, **fed}))


_ON_OUTPUTS = {"activity_regularizer.l1": 0.01}
_LAST = dense(1, 64, 1, "")
_UNBIASED = TrainedModel(
    id="m",
    framework="keras",
    layers=(dense(0, 64, 64), _LAST.model_copy(update={"weights": _LAST.weights[:1]})),
)


def one_unit(
    function: str, name: str, targets: Summary, losses: list[float] = FLAT, **fed: Any
) -> TrainingTrace:
    layers = (dense(0, 64, 64), dense(1, 64, 1, "" if function == "linear" else function))
    given = {
        "activation": function,
        "predictions": summary((32, 1), 0.1, 0.9),
        "targets": targets,
        "rows_sum_to_one": False,
        "one_hot": False,
        "class_shares": (),
        "trivial": 2.3,
    }
    return trace(layers, losses, fed=loss(name, **{**given, **fed}))


CONSTANT = summary((32, 1), 1.0, 1.0, std=0.0)
BINARY = summary((32, 1), 0.0, 1.0, distinct=2)
BALANCED = summary((32, 1), 0.0, 1.0, distinct=2, zero=0.5)
MANY_LABELS = summary((32, 10), 0.0, 1.0, distinct=2)
ABOVE_ONE = summary((32, 1), 0.0, 9.0)
STARS = summary((800, 1), 1.0, 5.0, distinct=5)


def partly_trained(
    layers: tuple[Layer, ...] = LAYERS, losses: list[float] = PARTLY, **changes: Any
) -> TrainingTrace:
    return trace(layers, losses, **changes)


def active_units(index: int, **changes: float) -> tuple[ActivationStep, ...]:
    return (ActivationStep(layer=index, mean=0.1, std=0.1, **changes),)


def scaled_inputs(**changes: Any) -> TrainingTrace:
    return trace(losses=PARTLY, data=changes)


def _beside(other: Summary, part: Literal["validation", "evaluation"]) -> TrainingTrace:
    return trace(held_out=(Data(model="m", part=part, inputs=other),))


def _crawling(name: str) -> TrainingTrace:
    """Steps of one size, under plain descent or another optimizer."""
    taken = steps(FLAT, ratio=2e-4, rate=1e-3)
    return partly_trained(taken=taken, optimizer={"name": name, "rates": (1e-3,)})


def _filtered(size: int) -> TrainingTrace:
    """A convolution over 64 places before the classifier."""
    settings = {"kernel_size": (size,)}
    first = dense(0, 1, 8, input=summary((32, 64, 1), -1, 1), settings=settings)
    return partly_trained((first, dense(1, 8, 32), LAYERS[2]))


def _falling_rate(factor: float) -> tuple[TrainingStep, ...]:
    """Steps of a rate that a schedule multiplies after each."""
    taken = steps(FLAT)
    return tuple(x.model_copy(update={"rate": 1e-3 * factor**x.step}) for x in taken)


def _in_parts(share: float) -> TrainingTrace:
    """A run with batch normalization that is far worse in evaluation."""
    seen = coded(losses=GOOD, facts={"between_batches": share})
    (model,) = seen.models
    norm = dense(3, 32, 32, "", type="BatchNorm1d", weights=())
    return seen.model_copy(
        update={
            "models": (model.model_copy(update={"layers": (*model.layers, norm)}),),
            "evaluations": (Evaluation(losses=(9.0, 9.0, 9.0)),),
        }
    )


TRACE_PAIRS: dict[str, tuple[TrainingTrace, ...]] = {
    "softmax-of-one-unit": (
        one_unit("softmax", "binary_crossentropy", BINARY, predictions=CONSTANT),
        one_unit("sigmoid", "binary_crossentropy", BINARY),
    ),
    "softmax-twice": (
        ending_in("softmax", name="cross_entropy"),
        ending_in("linear", name="cross_entropy", **_LOGITS),
    ),
    "log-probabilities-expected": (
        ending_in("linear", name="nll", **_LOGITS),
        ending_in(
            "log_softmax", name="nll", **{**_LOGITS, "predictions": summary((32, 10), -5, -0.1)}
        ),
    ),
    "probabilities-expected": (ending_in("linear", **_LOGITS), ending_in("softmax")),
    "probability-expected": (
        one_unit("log_softmax", "bce", BINARY, predictions=summary((32, 1), -4, 0)),
        one_unit("sigmoid", "bce", BINARY),
    ),
    "labels-compete": (
        ending_in("softmax", name="mse", one_hot=False, targets=MANY_LABELS),
        ending_in("sigmoid", name="mse", one_hot=False, targets=MANY_LABELS, rows_sum_to_one=False),
    ),
    "binary-loss-of-classes": (
        ending_in("softmax", name="binary_crossentropy"),
        ending_in("softmax"),
    ),
    "targets-out-of-reach": (
        one_unit("sigmoid", "mse", VALUES),
        one_unit("linear", "mse", VALUES),
    ),
    "rectified-output": (one_unit("relu", "mse", ABOVE_ONE), one_unit("linear", "mse", ABOVE_ONE)),
    "rectified-sigmoid": (
        one_unit("sigmoid", "bce", BALANCED, predictions=summary((32, 1), 0.5, 0.9)),
        one_unit("sigmoid", "bce", BALANCED, predictions=summary((32, 1), 0.49, 0.9)),
    ),
    "values-under-softmax": (
        ending_in("softmax", name="mse", one_hot=False, targets=summary((32, 10), 0.0, 0.8)),
        ending_in(
            "linear", name="mse", one_hot=False, targets=summary((32, 10), 0.0, 0.8), **_LOGITS
        ),
    ),
    "distance-between-classes": (ending_in("softmax", name="mae"), ending_in("softmax")),
    "labels-no-class-numbers": (
        ending_in(
            "softmax", name="sparse_categorical_crossentropy", targets=summary((32, 1), 0, 0.03)
        ),
        ending_in(
            "softmax",
            name="sparse_categorical_crossentropy",
            targets=summary((32, 1), 0, 9),
            integer_targets=True,
        ),
    ),
    "entropy-of-one-unit": (
        one_unit("sigmoid", "categorical_crossentropy", BINARY),
        one_unit("sigmoid", "binary_crossentropy", BINARY),
    ),
    "sums-grow": tuple(
        trace(
            (
                dense(
                    0,
                    64,
                    64,
                    input=summary((32, 64), -1, 1),
                    output=summary((32, 64), -1, 1, std=std),
                ),
                *LAYERS[1:],
            ),
            curve(9.0, 2.2),
        )
        for std in (30.0, 0.6)
    ),
    "labels-contradict": (
        coded(facts={"labelled_rows": 300, "contradicted_rows": 290}),
        coded(facts={"labelled_rows": 300, "contradicted_rows": 9}),
    ),
    "rows-alike": (
        coded(facts={"row_batches": 24, "alike_batches": 24, "distinct_batches": 24}),
        coded(facts={"row_batches": 24, "alike_batches": 1, "distinct_batches": 24}),
    ),
    "masks-not-shares": (coded(facts={"mask_high": 255.0}), coded(facts={})),
    "batches-alike": (_in_parts(0.9), _in_parts(0.1)),
    "targets-alike": (
        one_unit(
            "sigmoid", "binary_crossentropy", CONSTANT, curve(0.7, 0.001), class_shares=(0.0, 1.0)
        ),
        one_unit("sigmoid", "binary_crossentropy", BINARY, class_shares=(0.5, 0.5)),
    ),
    "too-few-units": tuple(
        ending_in(
            "softmax",
            name="sparse_categorical_crossentropy",
            one_hot=False,
            class_shares=(),
            targets=summary((32,), 0, most),
            integer_targets=True,
        )
        for most in (11, 9)
    ),
    "one-unit-of-classes": (
        one_unit("sigmoid", "mse", ABOVE_ONE, integer_targets=True),
        one_unit("linear", "mse", ABOVE_ONE, integer_targets=True),
    ),
    "broadcast-targets": (
        one_unit("linear", "mse", summary((32,), -4.0, 9.0), settings={"broadcast": True}),
        one_unit("linear", "mse", summary((32,), -4.0, 9.0)),
    ),
    "class-loss-of-values": (
        one_unit("sigmoid", "binary_crossentropy", VALUES),
        one_unit("sigmoid", "binary_crossentropy", BINARY),
    ),
    "unsuited-distance": (
        one_unit("linear", "msle", VALUES),
        one_unit("linear", "msle", ABOVE_ONE),
    ),
    "constant-kernel": (
        partly_trained((weight(LAYERS[0], std=0.0, mean=1.0), *LAYERS[1:])),
        partly_trained((*LAYERS[:2], weight(LAYERS[2], std=0.0, mean=0.0))),
    ),
    "kernel-scale": (partly_trained((weight(LAYERS[0], std=1.0), *LAYERS[1:])), partly_trained()),
    "one-signed-kernel": tuple(
        partly_trained((weight(LAYERS[0], minimum=low, maximum=0.1), *LAYERS[1:]))
        for low in (0.0, -0.1)
    ),
    "bias-not-zero": (
        partly_trained((weight(LAYERS[0], "bias", minimum=1.0, maximum=1.0), *LAYERS[1:])),
        partly_trained((weight(LAYERS[0], "bias", minimum=-0.12, maximum=0.12), *LAYERS[1:])),
    ),
    "no-bias": tuple(
        one_unit(
            "linear", "mse", summary((32, 1), mean - 5, mean + 5, mean=mean, std=2.0), PARTLY
        ).model_copy(update={"models": (_UNBIASED,)})
        for mean in (6.0, 0.0)
    ),
    "rate-out-of-band": (
        partly_trained(optimizer={"rates": (0.12,)}, taken=steps(PARTLY, ratio=0.06)),
        partly_trained(optimizer={"rates": (0.12,)}, taken=steps(PARTLY, ratio=0.004)),
    ),
    "update-ratio": (partly_trained(taken=steps(PARTLY, ratio=0.3)), partly_trained()),
    "penalty-outweighs": (
        partly_trained(taken=steps([x + 2 for x in PARTLY], penalty=2.0)),
        partly_trained(taken=steps([x + 0.01 for x in PARTLY], penalty=0.01)),
    ),
    "weights-shrink": tuple(
        partly_trained(
            taken=tuple(
                x.model_copy(
                    update={
                        "weights": tuple(
                            w.model_copy(update={"weight_norm": 3.0 * share**x.step})
                            for w in x.weights
                        )
                    }
                )
                for x in steps(PARTLY)
            )
        )
        for share in (0.99, 1.001)
    ),
    "activity-penalty": tuple(
        partly_trained(
            (LAYERS[0], LAYERS[1].model_copy(update={"settings": _ON_OUTPUTS}), LAYERS[2]),
            taken=steps([x + penalty for x in PARTLY], penalty=penalty),
        )
        for penalty in (0.15, 0.01)
    ),
    "decay-outweighs": (
        partly_trained(optimizer={"weight_decay": 0.3}),
        partly_trained(optimizer={"weight_decay": 0.3, "decoupled": True}),
    ),
    "invalid-inputs": (
        scaled_inputs(inputs=summary((800, 64), -1, 1, finite=0.9)),
        scaled_inputs(),
    ),
    "samples-alike": tuple(
        trace(losses=FLAT, data={"constant_columns": share}) for share in (1.0, 0.5)
    ),
    "rate-vanishes": tuple(
        trace(losses=FLAT, taken=_falling_rate(factor)) for factor in (0.9, 0.999)
    ),
    "softmax-over-batch": tuple(
        one_unit("log_softmax", "nll", BINARY, columns_sum_to_one=wrong) for wrong in (True, False)
    ),
    "unscaled-inputs": (
        scaled_inputs(inputs=summary((800, 64), 0, 255)),
        scaled_inputs(inputs=summary((800, 64), 0, 255), ids=True),
    ),
    "unscaled-targets": tuple(
        trace(
            losses=PARTLY,
            fed=loss("mse", one_hot=False, rows_sum_to_one=False, targets=VALUES),
            data={"targets": summary((800, 1), 0, most)},
        )
        for most in (900.0, 9.0)
    ),
    "uneven-columns": (
        scaled_inputs(inputs=summary((800, 64), -4, 4), feature_std_ratio=900.0),
        scaled_inputs(inputs=summary((800, 64), -4, 4), feature_std_ratio=9.0),
    ),
    "parts-differ": (
        _beside(summary((200, 64), 0, 255), "evaluation"),
        _beside(summary((200, 64), -1.6, 1.6), "validation"),
    ),
    "unseen-classes": tuple(
        trace(
            fed=loss(
                "sparse_categorical_crossentropy",
                one_hot=False,
                integer_targets=True,
                targets=summary((32,), 0, 8, distinct=9),
            ),
            data={"targets": summary((800,), 0, 8, distinct=9)},
            held_out=(
                Data(
                    model="m",
                    part="evaluation",
                    inputs=summary((200, 64), -1.6, 1.6),
                    targets=summary((200,), 0, most),
                ),
            ),
        )
        for most in (9, 8)
    ),
    "sorted-classes": (
        trace(
            losses=PARTLY,
            fed=loss(class_shares=(1.0,)),
            plan={"shuffle": False},
            data={"targets": summary((800, 10), 0, 1, distinct=10)},
        ),
        trace(losses=PARTLY, plan={"shuffle": False}),
    ),
    "no-activation": (partly_trained((dense(0, 64, 64, ""), *LAYERS[1:])), partly_trained()),
    "squashing-inside": (
        partly_trained((dense(0, 64, 64, "softmax"), *LAYERS[1:])),
        partly_trained((dense(0, 64, 64, "tanh"), *LAYERS[1:])),
    ),
    "saturated": (
        partly_trained(
            (dense(0, 64, 64, "tanh"), *LAYERS[1:]),
            taken=steps(PARTLY, activations=active_units(0, saturated=0.9)),
        ),
        partly_trained(
            (dense(0, 64, 64, "tanh"), *LAYERS[1:]),
            taken=steps(PARTLY, activations=active_units(0, saturated=0.1)),
        ),
    ),
    "sigmoid-inside": (
        partly_trained((dense(0, 64, 64, "sigmoid"), *LAYERS[1:])),
        partly_trained(),
    ),
    "vanishing-gradient": (
        partly_trained(losses=FLAT, taken=steps(FLAT, norms=(1e-6, 1e-4, 0.1))),
        partly_trained(losses=FLAT),
    ),
    "dead-units": (
        partly_trained(taken=steps(PARTLY, activations=active_units(0, dead=0.9))),
        partly_trained(taken=steps(PARTLY, activations=active_units(0, dead=0.2))),
    ),
    "killed-units": (
        partly_trained(
            taken=(
                *steps(PARTLY[:5], activations=active_units(0, dead=0.2)),
                *steps(PARTLY, activations=active_units(0, dead=1.0)),
            )
        ),
        partly_trained(taken=steps(PARTLY, activations=active_units(0, dead=0.9))),
    ),
    "loss-breaks": (
        partly_trained(losses=[2.0] * 9 + [float("nan")]),
        partly_trained(losses=[2.0] * 10),
    ),
    "loss-jumps": (
        partly_trained(losses=_JUMPY),
        partly_trained(losses=sorted(_JUMPY, reverse=True)),
    ),
    "targets-unrelated": tuple(trace(losses=PARTLY, data={"agreement": x}) for x in (0.3, 20.0)),
    "loss-stuck": (partly_trained(losses=FLAT), partly_trained(losses=PARTLY)),
    "few-updates": (partly_trained(losses=FLAT[:40]), partly_trained(losses=FLAT)),
    "still-falling": (partly_trained(losses=SLOW), partly_trained(losses=PARTLY)),
    "tiny-batch": (partly_trained(plan={"batch_size": 1}), partly_trained(plan={"batch_size": 16})),
    "huge-batch": (
        partly_trained(plan={"batch_size": 800}),
        partly_trained(plan={"batch_size": 512, "samples": 50000}),
    ),
    "plain-optimizer": (
        partly_trained(losses=SLOW, optimizer={"name": "sgd", "rates": (0.01,)}),
        partly_trained(losses=SLOW, optimizer={"name": "sgd", "rates": (0.01,), "momentum": 0.9}),
    ),
    "narrow-layer": (partly_trained((dense(0, 64, 2), *LAYERS[1:])), partly_trained()),
    "single-unit": tuple(
        trace((dense(0, 64, units), dense(1, units, 32), LAYERS[2])) for units in (1, 8)
    ),
    "heavy-dropout": (
        partly_trained(
            (*LAYERS[:2], dense(2, 1, 1, "", weights=(), settings={"rate": 0.9}), LAYERS[2])
        ),
        partly_trained(
            (*LAYERS[:2], dense(2, 1, 1, "", weights=(), settings={"rate": 0.7}), LAYERS[2])
        ),
    ),
    "no-hidden-layer": (
        partly_trained((dense(0, 64, 10, "softmax"),), FLAT),
        partly_trained(losses=FLAT),
    ),
    "dropout-over-half": (
        partly_trained(
            (*LAYERS[:2], dense(2, 1, 1, "", weights=(), settings={"rate": 0.8}), LAYERS[2])
        ),
        partly_trained(
            (*LAYERS[:2], dense(2, 1, 1, "", weights=(), settings={"rate": 0.5}), LAYERS[2])
        ),
    ),
    "bias-before-norm": (
        partly_trained((LAYERS[0], weight(dense(1, 1, 1, ""), "x"), *LAYERS[1:])),
        partly_trained(),
    ),
    "over-fitting": (
        trace(epochs=(Epoch(epoch=9, step=9, values={"accuracy": 0.9, "val_accuracy": 0.5}),)),
        trace(epochs=(Epoch(epoch=9, step=9, values={"accuracy": 0.9, "val_accuracy": 0.88}),)),
    ),
    "small-total-step": (_crawling("sgd"), _crawling("adam")),
    "dropout-on-output": (
        partly_trained(
            (*LAYERS, dense(3, 1, 1, "", type="Dropout", weights=(), settings={"rate": 0.5}))
        ),
        partly_trained(
            (
                *LAYERS[:2],
                dense(3, 1, 1, "", type="Dropout", weights=(), settings={"rate": 0.5}),
                LAYERS[2],
            )
        ),
    ),
    "pointwise-convolution": (_filtered(1), _filtered(3)),
    "widening": (
        partly_trained((dense(0, 64, 8), dense(1, 8, 64), LAYERS[2])),
        partly_trained(),
    ),
}


def _norm(told: TrainingTrace) -> TrainingTrace:
    """The second layer's kernel taken for the scale of a norm."""
    model = told.models[0]
    layers = list(model.layers)
    scale = layers[1].weights[0].model_copy(update={"role": "scale"})
    layers[1] = layers[1].model_copy(update={"weights": (scale,)})
    return told.model_copy(update={"models": (model.model_copy(update={"layers": tuple(layers)}),)})


TRACE_PAIRS["bias-before-norm"] = (
    _norm(TRACE_PAIRS["bias-before-norm"][0]),
    TRACE_PAIRS["bias-before-norm"][1],
)
TRACE_PAIRS.update(CODE_PAIRS)
