"""For each rule of a fault that is code a trace that it speaks of, and a healthy one beside it."""

from __future__ import annotations

import math
from typing import Any

from bot.kernel.training_code import (
    CallSite,
    Clipping,
    Mention,
    ModeUse,
    OptimizerUse,
    ParameterUse,
    ProgramCode,
    Schedule,
    TensorUse,
    Unregistered,
)
from bot.kernel.training_types import TrainingTrace
from tests.support.traces import FLAT, dense, steps, summary, trace

INNER, OUTER = ("10", "11"), ("10",)
CALLS = (
    CallSite(name="zero_grad", line=13, calls=500, last=499, loops=INNER),
    CallSite(name="backward", line=15, calls=500, last=499, loops=INNER),
    CallSite(name="step", line=16, calls=500, last=499, loops=INNER),
)
TOTALS = {"zero_grad": 500, "backward": 500, "step": 500}
USE = OptimizerUse(
    optimizer="o", name="sgd", line=5, steps=500, looked=40, backwards=40, held=4, reached=4
)
LEARNER = ParameterUse(
    name="0.weight", module="Linear", size=64, optimizers=1, looked=9, fed=9, in_graph=True,
    ran=True, changed=True,
)  # fmt: skip
HEAD = LEARNER.model_copy(update={"name": "2.weight"})


def coded(losses: list[float] = FLAT, **facts: Any) -> TrainingTrace:
    """A training that learns nothing, with a healthy loop that differs by some facts."""
    told: dict[str, Any] = {
        "calls": CALLS, "totals": TOTALS, "optimizers": (USE,), "parameters": (LEARNER, HEAD),
    }  # fmt: skip
    seen = trace(losses=losses)
    model = seen.models[0].model_copy(update={"framework": "torch"})
    code = ProgramCode(**{**told, **facts})
    return seen.model_copy(update={"models": (model,), "code": code})


def used(**changes: Any) -> dict[str, Any]:
    return {"optimizers": (USE.model_copy(update=changes),)}


def called(name: str, **changes: Any) -> tuple[CallSite, ...]:
    """The calls of a loop, those of one name changed, or gone where there are no calls."""
    own = [x.model_copy(update=changes) if x.name == name else x for x in CALLS]
    return tuple(x for x in own if x.calls)


def _counted(**totals: int) -> dict[str, int]:
    return {name: count for name, count in {**TOTALS, **totals}.items() if count}


def learner(**changes: Any) -> dict[str, Any]:
    return {"parameters": (LEARNER.model_copy(update=changes), HEAD)}


_STILL = {"fed": 9, "changed": False}
_UNSTEPPED = {
    "calls": called("step", calls=0), "totals": _counted(step=0), **used(steps=0, looked=0),
}  # fmt: skip
_DROPOUT = ModeUse(layers=("Dropout",), training=40, judged=20, line=22)
_STEPPED = Schedule(name="StepLR", steps=500, settings={"step_size": 10}, line=6)
_SCHEDULED = (*CALLS, CallSite(name="schedule", line=17, calls=500, loops=INNER))
_CLIP = Clipping(limit=1e-4, median=0.5, calls=500, line=14)
_LIST = Unregistered(owner="Net", attribute="layers", kind="list", count=2, line=4)
_CUT = Mention(name="detach", line=8, function="forward", names=("self", "first", "x"))
_FREEZING = Mention(name="requires_grad", line=9, names=("p",))


def _scheduled(**changes: Any) -> TrainingTrace:
    use = _STEPPED.model_copy(update=changes)
    seen = coded(calls=_SCHEDULED, schedules=(use,))
    rates = [0.1 * 0.9 ** (x.step * use.steps // 500) for x in seen.steps]
    taken = [x.model_copy(update={"rate": rate}) for x, rate in zip(seen.steps, rates, strict=True)]
    return seen.model_copy(update={"steps": tuple(taken)})


def _in_parts(loops: tuple[str, ...], resets: int) -> TrainingTrace:
    return coded(
        calls=(
            CallSite(name="zero_grad", line=13, calls=resets, loops=loops),
            CALLS[1],
            CallSite(name="step", line=16, calls=125, loops=OUTER),
        ),
        totals=_counted(zero_grad=resets, step=125), facts={"looks": 60, "divided": 60},
    )  # fmt: skip


def _unchanging(ratio: float) -> TrainingTrace:
    taken = steps(FLAT, ratio=ratio, rate=0.1)
    return coded().model_copy(update={"steps": taken})


_LOADED = {
    "batches": 20, "loader_begun": 500, "loader_steps": 500, "loader_length": 15,
}  # fmt: skip
_JUDGED = {
    "trained_rows": 800, "repeated_rows": 0, "judged_rows": (100.0,), "judged_trained": (0.0,),
}  # fmt: skip


def _recurrent(shape: tuple[int, ...]) -> TrainingTrace:
    seen = coded()
    layer = dense(
        0, 8, 16, "", type="LSTM", input=summary(shape, -1, 1), settings={"batch_first": False}
    )
    (model,), (given,) = seen.models, seen.data
    data = given.model_copy(update={"inputs": summary((32, 12, 8), -1, 1)})
    layers = (layer, *model.layers[1:])
    return seen.model_copy(
        update={"models": (model.model_copy(update={"layers": layers}),), "data": (data,)}
    )


def _with_loss(seen: TrainingTrace, **changes: Any) -> TrainingTrace:
    return seen.model_copy(update={"losses": (seen.losses[0].model_copy(update=changes),)})


def _summed(optimizer: str) -> TrainingTrace:
    return _with_loss(
        coded(**used(name=optimizer)), name="cross_entropy", settings={"reduction": "sum"}
    )


def _padded(ignored: int | None) -> TrainingTrace:
    seen = coded()
    (given,) = seen.data
    ids = summary((32, 12), 0, 20, dtype="int64", zero=0.6)
    data = given.model_copy(update={"inputs": ids, "ids": True})
    return _with_loss(
        seen.model_copy(update={"data": (data,)}),
        name="cross_entropy", one_hot=False, class_shares=(0.6, 0.2, 0.2),
        targets=summary((384,), 0, 2),
        settings={"ignore_index": -100 if ignored is None else ignored},
    )  # fmt: skip


def _thresholded(**values: float) -> TrainingTrace:
    use = TensorUse(name="half", line=30, before=(120,), **values)
    return _with_loss(coded(uses=(use,)), name="bce_logits")


_OPEN = {
    "shifted_targets": 1.0, "attention_open": 40, "attention_closed": 0, "attention_line_open": 9,
}  # fmt: skip


def _of_places(targets: tuple[int, ...]) -> TrainingTrace:
    seen = _with_loss(
        coded(facts={**_OPEN, "attention_placeless": 20}), targets=summary(targets, 0, 9)
    )
    (given,) = seen.data
    data = given.model_copy(update={"inputs": summary((32, 12), 0, 9)})
    return seen.model_copy(update={"data": (data,)})


def _weighed(*weights: float) -> TrainingTrace:
    return _with_loss(
        coded(), name="cross_entropy", class_shares=(0.92, 0.08), settings={"weights": weights}
    )


def _reconstructed(end: float) -> TrainingTrace:
    """An autoencoder with noise, whose loss goes from 1 to an end."""
    seen = _with_loss(
        coded(
            losses=[1 + (end - 1) * at / 59 for at in range(60)],
            mentions=(Mention(name="randn_like", line=9),), facts={"loss_line": 20},
        ),
        name="mse",
    )  # fmt: skip
    (given,) = seen.data
    inputs = summary((32, 16), -1, 1)
    data = given.model_copy(update={"inputs": inputs, "targets": inputs})
    return seen.model_copy(update={"data": (data,)})


def _answered(agreed: int) -> TrainingTrace:
    """A student whose teacher's answers are the labels in so many of 900 rows."""
    facts = {"answers": 900, "answers_agreed": agreed, "answers_by_chance": 90.0}
    return _with_loss(coded(facts=facts), name="kld", targets=summary((32, 10), 0.0, 1.0))


def _averaged(momentum: float) -> TrainingTrace:
    """A model with batch normalization of a momentum."""
    seen = coded()
    (model,) = seen.models
    norm = dense(1, 64, 64, "", type="BatchNorm1d", settings={"momentum": momentum})
    layers = (model.layers[0], norm, *model.layers[2:])
    return seen.model_copy(update={"models": (model.model_copy(update={"layers": layers}),)})


_PICKED = {"picked_values": 20}

CODE_PAIRS: dict[str, tuple[TrainingTrace, TrainingTrace]] = {
    "gradients-not-reset": (
        coded(
            calls=called("zero_grad", calls=0), totals=_counted(zero_grad=0),
            **used(stale=39, growth=5.0),
        ),
        coded(**used(stale=3, growth=5.0)),
    ),
    "reset-after-backward": (coded(**used(erased=40)), coded(**used(erased=1))),
    "step-never-called": (
        coded(**{**_UNSTEPPED, "parameters": ()}),
        coded(**_UNSTEPPED),  # updates that the program makes itself
    ),
    "per-epoch-step": (
        coded(calls=called("step", loops=OUTER), totals=_counted(step=20)),
        coded(
            calls=(
                CallSite(name="zero_grad", line=13, calls=125, loops=OUTER),
                CALLS[1],
                CallSite(name="step", line=16, calls=125, loops=OUTER),
            ),
            totals=_counted(step=125),
        ),
    ),
    "accumulation-wrong": (_in_parts(INNER, 500), _in_parts(OUTER, 125)),
    "backward-never-called": (
        coded(
            calls=called("backward", calls=0), totals=_counted(backward=0),
            **used(empty=40, reached=0),
        ),
        coded(totals=_counted(backward=0), **used(empty=40)),
    ),
    "schedule-stepped-wrong": (_scheduled(), _scheduled(steps=20)),
    "clipping-kills": (
        coded(clippings=(_CLIP,)),
        coded(clippings=(_CLIP,), **used(name="adam")),
    ),
    "not-registered": (
        coded(unregistered=(_LIST,)),
        coded(unregistered=(_LIST.model_copy(update={"optimized": True}),)),
    ),
    "optimizer-holds-others": (
        coded(**used(reached=0), parameters=(LEARNER.model_copy(update={**_STILL, "optimizers": 0}),)),
        coded(**learner(**_STILL, optimizers=0, restored=True)),
    ),
    "parameters-frozen": (
        coded(**learner(trainable=False, changed=False), mentions=(_FREEZING,)),
        coded(**learner(trainable=False, changed=False, restored=True), mentions=(_FREEZING,)),
    ),
    "graph-cut": (
        coded(
            **learner(name="first.weight", fed=0, in_graph=False, changed=False), mentions=(_CUT,)
        ),
        coded(**learner(name="first.weight", fed=0, in_graph=False, changed=False)),
    ),
    "update-lost": (_unchanging(0.0), _unchanging(1e-3)),
    "step-uphill": (coded(facts={"own_direction": 1.0}), coded(facts={"own_direction": -1.0})),
    "eval-while-training": (
        coded(modes=(_DROPOUT.model_copy(update={"training": 15, "evaluating": 25, "first": 15}),)),
        coded(modes=(_DROPOUT,)),
    ),
    "train-while-evaluating": (
        coded(modes=(_DROPOUT.model_copy(update={"judged_training": 20, "judged_intervals": 20}),)),
        coded(modes=(_DROPOUT.model_copy(update={"judged_training": 20, "judged_intervals": 400}),)),
    ),
    "axis-mixed": (_recurrent((32, 12, 8)), _recurrent((12, 32, 8))),
    "same-batch": (
        coded(facts={**_LOADED, "distinct_batches": 1}),
        coded(facts={**_LOADED, "distinct_batches": 20}),
    ),
    "split-leak": (coded(facts={**_JUDGED, "judged_trained": (30.0,)}), coded(facts=_JUDGED)),
    "target-in-inputs": (coded(facts={"target_columns": (3.0,)}), coded()),
    "wrong-reduction": (_summed("sgd"), _summed("adam")),
    "state-carried": (
        coded(facts={"kept_graphs": 500, "graph_sizes": (9.0, 18.0, 90.0)}),
        coded(facts={"kept_graphs": 500, "graph_sizes": (9.0, 9.0, 9.0)}),
    ),
    "padding-counts": (_padded(None), _padded(0)),
    "metric-wrong": (_thresholded(low=-4.0, high=5.0), _thresholded(low=0.0, high=1.0)),
    "layer-repeated": (
        coded(facts={"repeated_times": 4, "repeated_layer": "Linear", "repeated_line": 8}),
        coded(facts={}),
    ),
    "future-leak": (coded(facts=_OPEN), coded(facts={**_OPEN, "attention_closed": 40})),
    "mask-inverted": (
        coded(facts={**_OPEN, "attention_inverted": 40}),
        coded(facts={**_OPEN, "attention_inverted": 1}),
    ),
    "positions-missing": (
        _of_places((32 * 12,)),
        _of_places((32,)),
    ),
    "broadcast-loss": (
        coded(facts={"outer_shapes": "(64,) and (64, 1)", "outer_line": 12}), coded()
    ),
    "weights-swapped": (_weighed(12.0, 1.1), _weighed(1.1, 12.0)),
    "self-compared": (
        _with_loss(coded(), name="cross_entropy", settings={"self_compared": True}),
        _with_loss(coded(), name="cross_entropy", settings={"self_compared": False}),
    ),
    "divergence-negative": (_reconstructed(-3.0), _reconstructed(0.1)),
    "terminal-ignored": (
        coded(facts={**_PICKED, "unused_ends": (20.0,)}), coded(facts={"unused_ends": (20.0,)})
    ),
    "best-not-copied": (
        coded(facts={"restored_line": 30}, mentions=(Mention(name="state_dict", line=25),)),
        coded(mentions=(Mention(name="state_dict", line=25),)),
    ),
    "labels-shuffled": (
        _answered(95),
        _answered(800),
    ),
    "arguments-swapped": (
        _with_loss(coded(), name="kld", settings={"swapped": True}),
        _with_loss(coded(), name="mse", settings={"swapped": True}),
    ),
    "state-incomplete": (
        coded(facts={"gap_averages": (30.0, 500.0)}), coded(facts={"gap_averages": (30.0, 20.0)})
    ),
    "target-stale": (
        coded(losses=[2.3] * 1200, facts={**_PICKED, "twin_looks": 9}),
        coded(losses=[2.3] * 1200, facts={"twin_looks": 9}),
    ),
    "gradient-singular": (
        coded(losses=[2.3, 1.2, 0.6, 0.5, 0.4, math.nan], facts={"root_low": 0.0}),
        coded(losses=[2.3, 1.2, 0.6, 0.5, 0.4, 0.3], facts={"root_low": 0.0}),
    ),
    "result-lost": (coded(facts={"dropped_line": 8, "dropped_call": "clamp"}), coded()),
    "seed-repeated": (
        coded(facts={"seeded_again": 499, "seed_line": 9}),
        coded(facts={"seeded_again": 9, "seed_line": 9}),
    ),
    "batches-unused": (
        coded(
            facts={
                "loop_ends": (11.0, 18.0, 0.0, 0.0), "loader_begun": 500, "loader_steps": 500,
                "loader_length": 40,
            }
        ),
        coded(
            facts={
                "loop_ends": (11.0, 18.0, 0.0, 0.0), "loader_begun": 20, "loader_steps": 500,
                "loader_length": 40,
            }
        ),
    ),
    "direction-inverted": (
        coded(
            facts={
                "watched": "val_accuracy", "watched_by": "EarlyStopping", "watched_as": "min",
                "watched_line": 20,
            }
        ),
        coded(),
    ),
    "averages-short": (_averaged(0.99), _averaged(0.1)),
    "value-undefined": (
        coded(losses=[math.nan] * 60, facts={"broken_by": "div", "quotients": (9.0,)}),
        coded(facts={"quotients": (9.0,)}),
    ),
    "dropout-in-evaluation": (
        coded(dropped_out=(CallSite(name="dropout", line=9, calls=20),)),
        coded(),
    ),
}  # fmt: skip
