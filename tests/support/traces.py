"""Traces of small trainings, built by hand: a healthy classifier, and changes to it."""

from typing import Any

from bot.kernel.training_types import (
    ActivationStep,
    Data,
    Epoch,
    Layer,
    Loss,
    Optimizer,
    Plan,
    ProbeEnd,
    Summary,
    TrainedModel,
    TrainingStep,
    TrainingTrace,
    Weight,
    WeightStep,
)


def summary(shape: tuple[int, ...], low: float, high: float, **changes: Any) -> Summary:
    """A tensor spread evenly between two values."""
    told: dict[str, Any] = {
        "shape": shape,
        "dtype": "float32",
        "minimum": low,
        "maximum": high,
        "mean": (low + high) / 2,
        "std": (high - low) / 3.46,
    }
    return Summary(**{**told, **changes})


def dense(index: int, fan_in: int, units: int, activation: str = "relu", **changes: Any) -> Layer:
    """A dense layer with weights by Glorot and no bias at the start."""
    std = (2 / (fan_in + units)) ** 0.5
    kernel = Weight(
        name="kernel",
        role="kernel",
        trainable=True,
        initial=summary((fan_in, units), -1.7 * std, 1.7 * std, std=std, mean=0.0),
        fan_in=fan_in,
        fan_out=units,
    )
    bias = Weight(
        name="bias", role="bias", trainable=True, initial=summary((units,), 0.0, 0.0, zero=1.0)
    )
    told: dict[str, Any] = {
        "index": index,
        "name": f"dense_{index}",
        "type": "Dense",
        "activation": activation,
        "units": units,
        "weights": (kernel, bias),
    }
    return Layer(**{**told, **changes})


def weight(layer: Layer, role: str = "kernel", **changes: Any) -> Layer:
    """A layer with one of its weights begun otherwise."""
    weights = tuple(
        x.model_copy(update={"initial": x.initial.model_copy(update=changes)})
        if x.role == role
        else x
        for x in layer.weights
    )
    return layer.model_copy(update={"weights": weights})


def loss(name: str = "categorical_crossentropy", **changes: Any) -> Loss:
    """Cross-entropy over ten classes, fed with softmax and one-hot labels."""
    told: dict[str, Any] = {
        "model": "m",
        "name": name,
        "activation": "softmax",
        "predictions": summary((32, 10), 0.01, 0.9),
        "targets": summary((32, 10), 0.0, 1.0, distinct=2),
        "rows_sum_to_one": True,
        "one_hot": True,
        "class_shares": (0.1,) * 10,
        "trivial": 2.3,
    }
    return Loss(**{**told, **changes})


def steps(
    losses: list[float],
    ratio: float = 2e-3,
    activations: tuple[ActivationStep, ...] = (),
    norms: tuple[float, ...] = (0.2, 0.3, 0.4),
    **changes: Any,
) -> tuple[TrainingStep, ...]:
    """One step for each loss; every tenth has tensors."""
    kernels = tuple(
        WeightStep(layer=i, role="kernel", norm=x, mean_abs=x / 10, update_ratio=ratio)
        for i, x in enumerate(norms)
    )
    return tuple(
        TrainingStep(
            optimizer="o",
            step=i,
            loss=x,
            weights=kernels if i % 10 == 0 else (),
            activations=activations if i % 10 == 0 else (),
            **changes,
        )
        for i, x in enumerate(losses)
    )


def curve(start: float, end: float, count: int = 500, fall: float = 0.02) -> list[float]:
    """Losses that fall exponentially towards `end`, with a little alternating noise."""
    fallen = (end + (start - end) * (1 - fall) ** i for i in range(count))
    return [x * (1.01 if i % 2 else 0.99) for i, x in enumerate(fallen)]


GOOD = curve(2.3, 0.1)
FLAT = [2.31, 2.29] * 250
LAYERS = (dense(0, 64, 64), dense(1, 64, 32), dense(2, 32, 10, "softmax"))


def trace(
    layers: tuple[Layer, ...] = LAYERS,
    losses: list[float] = GOOD,
    *,
    optimizer: dict[str, Any] | None = None,
    plan: dict[str, Any] | None = None,
    data: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    fed: Loss | None = None,
    taken: tuple[TrainingStep, ...] | None = None,
    epochs: tuple[Epoch, ...] = (),
    held_out: tuple[Data, ...] = (),
) -> TrainingTrace:
    """A trace that differs from a healthy one by what is given."""
    optimised = {"name": "adam", "rates": (1e-3,), **(optimizer or {})}
    planned = {"batch_size": 32, "samples": 800, "epochs": 20, **(plan or {})}
    given = {"inputs": summary((800, 64), -1.7, 1.7), **(data or {})}
    made = {"id": "m", "framework": "keras", "layers": layers, **(model or {})}
    return TrainingTrace(
        models=(TrainedModel(**made),),
        losses=(fed or loss(),),
        optimizers=(Optimizer(id="o", model="m", line=3, **optimised),),
        plans=(Plan(model="m", line=4, **planned),),
        data=(Data(model="m", **given), *held_out),
        steps=steps(losses) if taken is None else taken,
        epochs=epochs,
        end=ProbeEnd(steps=len(losses), seconds=1.0),
    )
