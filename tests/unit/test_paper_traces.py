"""What a trace says of warm-up, clipping, convolutions, order and initialisation."""

from __future__ import annotations

import math

import pytest

from bot.kernel.paper import Criterion, PaperQuote
from bot.kernel.training_code import Clipping, ProgramCode
from bot.kernel.training_types import (
    Layer,
    Optimizer,
    Plan,
    Summary,
    TrainedModel,
    TrainingStep,
    TrainingTrace,
    Weight,
)
from bot.papers import traces
from bot.papers.evidence import judge, judge_seeds


def trace(*layers: Layer, rates: tuple[float, ...] = (0.1,) * 20, **more: object) -> TrainingTrace:
    steps = tuple(TrainingStep(optimizer="o", step=at, rate=rate) for at, rate in enumerate(rates))
    fields = {
        "optimizers": (Optimizer(id="o", name="adam", rates=(0.1,)),),
        "plans": (Plan(steps_per_epoch=10),),
        "models": (TrainedModel(id="m", framework="torch", layers=layers),) if layers else (),
        "steps": steps,
    }
    return TrainingTrace.model_validate({**fields, **more})


def rising(length: int, total: int = 60) -> tuple[float, ...]:
    return tuple(0.1 * min(1.0, (at + 1) / length) for at in range(total))


@pytest.mark.parametrize(
    ("length", "stated", "fits"),
    [(20, "20", True), (20, "2", True), (20, "40", False), (1, "20", False), (40, "20", False)],
)
def test_a_warm_up_is_as_long_as_its_rise_in_steps_or_epochs(
    length: int, stated: str, fits: bool
) -> None:
    seen = traces.warm_up(trace(rates=rising(length)))
    assert traces.same_warm_up(seen, stated) is fits


def test_a_rate_that_goes_up_and_down_is_no_warm_up() -> None:
    rates = tuple(0.1 + 0.05 * math.sin(at) for at in range(60))
    assert traces.warm_up(trace(rates=rates)) == ""


def test_clipping_is_the_limit_that_was_called_for() -> None:
    code = ProgramCode(clippings=(Clipping(limit=1.0, calls=20),))
    assert traces.clipping(trace(code=code)) == "1"
    assert traces.clipping(trace(code=ProgramCode())) == "none"
    assert traces.clipping(trace()) == ""


def convolution(index: int, units: int, stride: int, activation: str = "") -> Layer:
    settings = {"kernel_size": (3.0, 3.0), "stride": (float(stride), float(stride))}
    return Layer(
        index=index, name=f"c{index}", type="Conv2d", units=units, settings=settings,
        activation=activation, inputs=(index - 1,) if index else (),
    )  # fmt: skip


def norm(index: int, activation: str = "") -> Layer:
    return Layer(
        index=index, name=f"n{index}", type="BatchNorm2d", activation=activation,
        inputs=(index - 1,),
    )  # fmt: skip


def test_convolutions_have_channels_a_kernel_and_a_stride() -> None:
    seen = trace(convolution(0, 16, 2), norm(1, "relu"), convolution(2, 32, 2), norm(3, "relu"))
    values = (traces.channels(seen), traces.kernel(seen), traces.stride(seen), traces.order(seen))
    assert values == ("16, 32", "3", "2", "normalisation first")
    assert traces.activation(seen) == "relu"
    mixed = trace(convolution(0, 16, 2), convolution(1, 32, 1))
    assert traces.stride(mixed) == ""
    swapped = trace(convolution(0, 16, 2, "relu"), norm(1))
    assert traces.order(swapped) == "activation first"


def dense(index: int, *, dropped: float = 0.0, own: float = 0.0) -> Layer:
    settings = {"functional_dropout": dropped} if dropped else {"dropout": own} if own else {}
    return Layer(
        index=index, name=f"l{index}", type="Linear", units=64, settings=settings,
        inputs=(index - 1,) if index else (),
    )  # fmt: skip


def plain(index: int, kind: str, **settings: float) -> Layer:
    inputs = (index - 1,) if index else ()
    return Layer(index=index, name=kind, type=kind, settings=settings, inputs=inputs)


def drop(index: int, rate: float = 0.2) -> Layer:
    return plain(index, "Dropout", p=rate)


@pytest.mark.parametrize(
    ("layers", "seen"),
    [
        ((dense(0), plain(1, "ReLU"), drop(2), dense(3), drop(4), dense(5)), "0.2"),
        ((dense(0), plain(1, "ReLU"), drop(2), dense(3), dense(4)), "0.2 after 1 of 2 hidden layers"),
        ((dense(0), dense(1), drop(2), dense(3)), "0.2 after 1 of 2 hidden layers"),
        ((dense(0), drop(1, 0.1), dense(2), drop(3, 0.5), dense(4)), ""),
        ((drop(0), dense(1), dense(2)), "0.2"),
        ((dense(0, dropped=0.2), dense(1, dropped=0.2), dense(2)), "0.2"),
        ((dense(0, dropped=0.2), dense(1), dense(2)), "0.2 after 1 of 2 hidden layers"),
        ((plain(0, "LSTM", dropout=0.3), dense(1), dense(2)), "0.3"),
        ((dense(0), drop(1), norm(2), dense(3), dense(4)), "0.2 after 1 of 2 hidden layers"),
        ((convolution(0, 16, 2), dense(1), drop(2), dense(3), dense(4)), "0.2"),
        ((dense(0), dense(1)), "0"),
        ((dense(0), drop(1, 0.0), dense(2)), "0"),
    ],
)  # fmt: skip
def test_dropout_is_its_rate_and_in_a_plain_network_its_share_of_the_layers(
    layers: tuple[Layer, ...], seen: str
) -> None:
    assert traces.dropout(trace(*layers)) == seen


@pytest.mark.parametrize(
    ("sentence", "agrees"),
    [
        ("It has two hidden layers; dropout with probability 0.2 follows each of them.", False),
        ("We use dropout of 0.2 after every fully connected layer.", False),
        ("Dropout with rate 0.2 is applied to each of the two hidden layers.", False),
        ("All layers use ReLU, and dropout of 0.2 precedes the output.", True),
        ("We use dropout with probability 0.2.", True),
    ],
)
def test_dropout_that_is_said_of_each_layer_is_in_all(sentence: str, agrees: bool) -> None:
    quote = PaperQuote(text=sentence, sentence="S1.1")
    row = Criterion(kind="dropout", name="dropout", stated="0.2", quote=quote)
    verdicts = [
        judge([row], (), {"dropout": seen})[0].verdict
        for seen in ("0.2 after 1 of 2 hidden layers", "0.2", "0.5")
    ]
    assert verdicts == ["agrees" if agrees else "contradicts", "agrees", "contradicts"]


def weights(std: float, into: int = 64, out: int = 128) -> Layer:
    summary = Summary(shape=(out, into), dtype="float32", std=std)
    weight = Weight(
        name="weight", role="kernel", trainable=True, initial=summary, fan_in=into, fan_out=out
    )
    return Layer(index=0, name="a", type="Linear", units=out, weights=(weight,))


@pytest.mark.parametrize(
    ("std", "name"),
    [
        (math.sqrt(2 / 64), "he"),
        (math.sqrt(2 / 192), "xavier"),
        (math.sqrt(1 / 64), "lecun"),
        (math.sqrt(1 / 192), "default"),
        (0.0, "zero"),
        (3.0, "other"),
    ],
)
def test_an_initialisation_is_told_by_its_spread(std: float, name: str) -> None:
    assert traces.initialisation(trace(weights(std))) == name


def test_families_that_are_alike_are_not_told_apart() -> None:
    square = weights(math.sqrt(1 / 64), 64, 64)  # xavier and lecun
    assert traces.initialisation(trace(square)) == ""


@pytest.mark.parametrize(
    ("stated", "verdict"), [("he", "contradicts"), ("xavier", "agrees"), ("normal", "unknown")]
)
def test_a_spread_decides_on_families_alone(stated: str, verdict: str) -> None:
    row = Criterion(kind="initialisation", name="initialisation", stated=stated)
    assert judge([row], (), {"initialisation": "xavier"})[0].verdict == verdict


@pytest.mark.parametrize(
    ("values", "stated", "verdict"),
    [
        ([0.9, 0.9], "5", "contradicts"),
        ([0.9, 0.91], "5", "unknown"),
        ([0.9, 0.91, 0.92], "3", "agrees"),
        ([0.9], "5", "unknown"),
        ([0.9, 0.9], "1", "agrees"),
        ([0.9, None], "5", "unknown"),
    ],
)
def test_runs_say_how_many_seeds_there_were(
    values: list[float | None], stated: str, verdict: str
) -> None:
    row = Criterion(kind="seeds", name="seeds", stated=stated)
    assert judge_seeds([row], values)[0].verdict == verdict
