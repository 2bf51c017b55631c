"""What the training probe saw: one record for each line of `training-<pid>.jsonl`.

The probe (`sandbox/probe/training/`) writes facts and never judges them; the rules read these types
alone. A number that could not be computed is None, and NaN and infinities are written as strings.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from bot.models.base import Record

Framework = Literal["torch", "keras", "jax"]
Setting = str | float | int | bool | None | tuple[float, ...]


class Summary(Record):
    """A tensor in numbers. `minimum` to `std` are of its finite elements, `finite` and `zero` are
    shares of all. `distinct` counts different values, None when there are over 1,000.
    """

    shape: tuple[int, ...]
    dtype: str
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    finite: float = 1.0
    zero: float = 0.0
    distinct: int | None = None


class Weight(Record):
    """A trainable or frozen tensor of a layer as it was before the first step. `role` is
    "kernel", "bias", "scale", "embedding", "recurrent" or "other".
    """

    name: str
    role: str
    trainable: bool
    initial: Summary
    fan_in: int | None = None
    fan_out: int | None = None


class Layer(Record):
    """A layer in the order in which the model calls it.

    `index` counts as the framework's users do: the place in `model.layers` (Keras, without
    the input) or in the order of the leaf modules of a forward pass (PyTorch). `activation` is
    the function that is applied last to what it returns ("" for none): its own, or one that
    the program calls on its output (`functional`). `initializer` and `regularizer` are as the
    framework names them, "" when it does not. `inputs` are the indices of the layers that feed it.
    """

    index: int
    name: str
    type: str
    activation: str = ""
    functional: bool = False
    inputs: tuple[int, ...] = ()
    units: int | None = None
    initializer: str = ""
    bias_initializer: str = ""
    regularizer: str = ""
    settings: dict[str, Setting] = {}
    weights: tuple[Weight, ...] = ()
    input: Summary | None = None
    output: Summary | None = None


class Start(Record):
    """The probe is armed."""

    kind: Literal["start"] = "start"
    pid: int
    frameworks: dict[str, str] = {}


class TrainedModel(Record):
    """A model at its first training step, and where in the program it stands (line, 0 unknown)."""

    kind: Literal["model"] = "model"
    id: str
    framework: Framework
    layers: tuple[Layer, ...]
    residual: bool = False
    compiled: bool = False
    line: int = 0


class Loss(Record):
    """What the loss is fed, by the values of one batch.

    `name` is canonical: cross_entropy, nll, bce, bce_logits, categorical_crossentropy,
    sparse_categorical_crossentropy, binary_crossentropy, mse, mae, mape, msle, huber, hinge,
    poisson, kld, … or the function's own name. `from_logits` says what it expects, None for
    neither. `activation` is what was effectively applied to the predictions last: by the graph
    where it is known, otherwise by their values (softmax, log_softmax, sigmoid, tanh, relu, linear;
    "" unknown). `rows_sum_to_one` and `one_hot` are of the last axis (PyTorch: of the classes').
    `trivial` is the loss of the best constant prediction on the same targets, None where it
    cannot be computed.
    """

    kind: Literal["loss"] = "loss"
    model: str
    name: str
    from_logits: bool | None = None
    activation: str = ""
    predictions: Summary
    targets: Summary
    rows_sum_to_one: bool = False
    one_hot: bool = False
    integer_targets: bool = False
    class_shares: tuple[float, ...] = ()
    trivial: float | None = None
    settings: dict[str, Setting] = {}
    line: int = 0


class Optimizer(Record):
    """An optimiser at its first step. `name` is lower case (sgd, adam, …); `rates` are of its
    groups of parameters. `scheduled` says that a scheduler or callback changes them.
    """

    kind: Literal["optimizer"] = "optimizer"
    id: str
    model: str = ""
    name: str
    rates: tuple[float, ...]
    momentum: float = 0.0
    weight_decay: float = 0.0
    decoupled: bool = False
    clipping: bool = False
    scheduled: bool = False
    settings: dict[str, Setting] = {}
    line: int = 0


class Plan(Record):
    """How the program means to train, as far as can be seen: `epochs` and `steps_per_epoch` are
    those that were asked for or, in a plain loop, counted at the end. `metrics` are their names.
    """

    kind: Literal["plan"] = "plan"
    model: str = ""
    batch_size: int | None = None
    samples: int | None = None
    epochs: int | None = None
    steps_per_epoch: int | None = None
    validation: bool = False
    shuffle: bool | None = None
    early_stopping: bool = False
    metrics: tuple[str, ...] = ()
    line: int = 0


class Data(Record):
    """What a model is given. `feature_std_ratio` is the largest standard deviation of a column over
    the smallest that is not zero; `constant_columns` is a share. Integer inputs of an embedding
    are `ids`.
    """

    kind: Literal["data"] = "data"
    model: str = ""
    part: Literal["train", "validation"] = "train"
    inputs: Summary
    feature_std_ratio: float | None = None
    constant_columns: float = 0.0
    duplicate_rows: float = 0.0
    ids: bool = False
    targets: Summary | None = None


class WeightStep(Record):
    """One tensor at a sampled step: L2 norm and mean absolute value of its gradient, and the norm
    of the update over the norm of the tensor. `gradient_zero` is the share of exact zeros.
    """

    layer: int
    role: str
    norm: float | None = None
    mean_abs: float | None = None
    gradient_zero: float | None = None
    weight_norm: float | None = None
    update_ratio: float | None = None


class ActivationStep(Record):
    """The output of one layer at a sampled step. `dead` is the share of units that are zero for the
    whole batch, `saturated` the share of outputs at the bounds of a sigmoid or tanh; None where the
    layer has no such function.
    """

    layer: int
    mean: float | None = None
    std: float | None = None
    finite: float = 1.0
    dead: float | None = None
    saturated: float | None = None


class TrainingStep(Record):
    """One step of an optimiser. Every step has its loss and rate; only sampled ones have tensors.
    `penalty` is the part of the loss that regularisers add. A `skipped` step found infinities and
    changed nothing (gradient scaling).
    """

    kind: Literal["step"] = "step"
    optimizer: str = ""
    step: int
    epoch: int | None = None
    loss: float | None = None
    rate: float | None = None
    penalty: float | None = None
    skipped: bool = False
    weights: tuple[WeightStep, ...] = ()
    activations: tuple[ActivationStep, ...] = ()


class Epoch(Record):
    """The means of an epoch by the framework's own names: loss, accuracy, val_loss, …"""

    kind: Literal["epoch"] = "epoch"
    model: str = ""
    epoch: int
    step: int
    values: dict[str, float | None]


class ProbeEnd(Record):
    """The program's end as the probe saw it; missing when it was killed. `failures` counts what
    went wrong in the probe itself, `unseen` says in words what it could not see.
    """

    kind: Literal["end"] = "end"
    steps: int
    seconds: float
    failures: int = 0
    unseen: tuple[str, ...] = ()


TrainingRecord = Annotated[
    Start | TrainedModel | Loss | Optimizer | Plan | Data | TrainingStep | Epoch | ProbeEnd,
    Field(discriminator="kind"),
]
RECORDS: TypeAdapter[TrainingRecord] = TypeAdapter(TrainingRecord)
"""Reads one line of a trace."""


class TrainingTrace(Record):
    """What one training process wrote, sorted by kind, each in its order. `dropped` counts lines
    that were no record or over the limits.
    """

    start: Start | None = None
    models: tuple[TrainedModel, ...] = ()
    losses: tuple[Loss, ...] = ()
    optimizers: tuple[Optimizer, ...] = ()
    plans: tuple[Plan, ...] = ()
    data: tuple[Data, ...] = ()
    steps: tuple[TrainingStep, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    end: ProbeEnd | None = None
    dropped: int = 0
