"""What the training recorder saw, what a diagnosis says of it, and what a repair works with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from bot.kernel.dialogue import Usage
from bot.kernel.training_code import (
    CODE_FAULTS,
    CodeFault,
    Count,
    Place,
    ProbeRecord,
    ProgramCode,
    Real,
    Setting,
    Shape,
)
from bot.kernel.values import Record

# The faults.

FaultType = Literal[
    "ACH", "ARM", "AAL", "HLR", "HNE", "HBS", "LCH", "OCH",
    "WCI", "BCI", "RAW", "LRM", "LAD", "LCN", "LCF", "CPP",
]  # fmt: skip
"""The sixteen fault types of Table 1 of "Fault Localisation and Repair for DL Systems: An Empirical
Study with LLMs": activation changed, removed or added; learning rate, number of epochs, batch size;
loss, optimiser; initial weights, initial bias; regulariser added; layer removed, added, with
other neurons or filters; data preprocessing.
"""
Fault = FaultType | CodeFault
"""A fault type of the study, or a fault that is code."""


# Edits of a program's hyperparameters and of its code, and what they brought in trainings.

HyperparameterKind = Literal[
    "learning_rate", "optimizer", "momentum", "weight_decay", "clipping", "loss", "batch_size",
    "epochs", "activation", "kernel_initializer", "bias_initializer", "weight_regularizer",
    "dropout", "units", "kernel_size", "layers", "preprocessing", "code", "lines",
]  # fmt: skip

OPERATORS: dict[HyperparameterKind, FaultType] = {
    "learning_rate": "HLR", "optimizer": "OCH", "momentum": "OCH", "weight_decay": "RAW",
    "clipping": "OCH", "loss": "LCH", "batch_size": "HBS", "epochs": "HNE", "activation": "ACH",
    "kernel_initializer": "WCI", "bias_initializer": "BCI", "weight_regularizer": "RAW",
    "dropout": "LAD", "units": "LCN", "kernel_size": "LCF", "layers": "LRM", "preprocessing": "CPP",
}  # fmt: skip
"""The fault type of the study that a change of each kind repairs; "code" and "lines" repair their
own.
"""


class Edit(Record):
    """One hyperparameter with another value. `parameter` is its id; `line` is in the program, or in
    the `file` beside it. Of the kind "lines" it is whole lines of that file, which stand there
    once, and what a model puts in their place.
    """

    parameter: str
    kind: HyperparameterKind
    before: str
    after: str
    line: int = 0
    file: str = ""

    @property
    def operator(self) -> str:
        """The fault that the edit repairs."""
        if self.kind in ("code", "lines"):
            return self.parameter.partition("(")[2].partition(")")[0]
        return OPERATORS[self.kind]


Patch = tuple[Edit, ...]
"""Edits that are made together, at most one of each hyperparameter."""


class Metric(Record):
    """The number that measures how well a program learned, by the program's own name. `source` is
    where it is read: the last such number that the program prints, or the last epoch that the probe
    saw.
    """

    name: str
    direction: Literal["max", "min"]
    source: Literal["output", "epochs"]


class Gain(Record):
    """What a change brought in trainings of a diagnosis: the metric without it and with it, from
    the same seeds on. `p` is of the exact one-sided rank test; `share` is the part of what was left
    to gain that the change gained.
    """

    patch: Patch
    metric: str
    before: tuple[float | None, ...]
    after: tuple[float | None, ...]
    p: float
    share: float


DIAGNOSIS_BUDGET = 3.0
"""The usual time for trainings that confirm findings, in times of the program's own run."""


class Interventions(Record):
    """The trainings with changes that a diagnosis made. `budget` is in times of the program's own
    run; `epochs` is to how many each training was shortened, 0 for none. `missing` is why there
    were none, or no more.
    """

    budget: float
    metric: Metric | None = None
    trainings: int = 0
    seconds: float = 0.0
    epochs: int = 0
    missing: str = ""


# What a diagnosis says of a training run: findings with their fault type, place and numbers; the
# program that trained and its curves; what a model adds.


class Measurement(Record):
    """A number that supports a finding, and the limit that it is compared with ("" for none)."""

    name: str
    value: str
    limit: str = ""


class Change(Record):
    """The edit that a finding suggests: which hyperparameter, and the values to try in this
    order. The repair tries them; `words` says the same to people. `edit` are lines that a model
    would replace.
    """

    parameter: str
    values: tuple[str, ...] = ()
    words: str
    edit: Edit | None = None


Status = Literal["confirmed", "likely", "refuted"]
"""What trainings with the change of a finding say: a significant gain, nothing certain, no gain."""


class Finding(Record):
    """One fault: its type, the layers it is in (as `Layer.index`; none for the whole run), the rule
    that found it, how certain that is (0 to 1), and what to do. `direction` says where a number
    should go. `also` are other names for the same fault: no activation is a changed one (ACH) to
    some and a removed one (ARM) to others. A finding `by` a model is no rule's and has no
    confidence; one by runs is what no rule saw and trainings showed. `status` says what trainings
    with the change told: a significant gain, none, or (`likely`) nothing certain.
    """

    fault: Fault
    also: tuple[Fault, ...] = ()
    layers: tuple[int, ...] = ()
    rule: str
    confidence: float
    direction: Literal["", "up", "down"] = ""
    message: str
    evidence: tuple[Measurement, ...] = ()
    change: Change | None = None
    source: str = ""
    line: int = 0
    by: Literal["rules", "model", "runs"] = "rules"
    status: Status = "likely"
    gain: Gain | None = None

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the study: "HLR", or one for each layer, "ACH(7)"; those of `also` last. A
        fault that is code has its name alone.
        """
        names = (self.fault, *self.also)
        if not self.layers:
            return names
        codes = (
            (name,) if name in CODE_FAULTS else (f"{name}({layer})" for layer in self.layers)
            for name in names
        )
        return tuple(code for of_name in codes for code in of_name)


class Diagnosis(Record):
    """At most four findings, most certain first, and apart from them `doubts`, which nothing that
    was measured decides, advice, and what trainings `refuted`. No finding is an answer: `examined`
    says what was looked at, `unseen` what could not be.
    """

    findings: tuple[Finding, ...] = ()
    doubts: tuple[Finding, ...] = ()
    advice: tuple[Finding, ...] = ()
    refuted: tuple[Finding, ...] = ()
    examined: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


class SuspectedFault(Record):
    """A fault that a model suspects. `quote` are words of what it was shown; `before` are whole
    lines of a file of the program ("" for the program itself) and `after` what should stand in
    their place, both "" for no edit.
    """

    fault: Fault
    layers: tuple[int, ...] = Field((), max_length=8)
    file: str = Field("", max_length=300)
    line: int = 0
    quote: str = Field(max_length=300)
    reason: str = Field(max_length=400)
    change: str = Field(max_length=300)
    before: str = Field("", max_length=3000)
    after: str = Field("", max_length=3000)


class Opinion(Record):
    """A model's answer about a training run: what the program is for, and the faults."""

    purpose: str = Field(max_length=1500)
    faults: tuple[SuspectedFault, ...] = Field(max_length=4)


class SecondOpinion(Record):
    """What came of asking a model about a run. `agreed` are codes of the rules that it names too;
    `unsupported` counts faults for which it quoted nothing that it was shown, or a layer that
    does not exist; `refused` says why edits that it proposed are not tried. `missing` is why there
    is no answer, "" when there is one.
    """

    model: str = ""
    prompt: str = ""
    agreed: tuple[str, ...] = ()
    unsupported: int = 0
    refused: tuple[str, ...] = ()
    usage: Usage = Usage()
    missing: str = ""


class Curve(Record):
    """One line of the plot of a training run. Points are (step, value); a panel is the loss, the
    norm of gradients, the ratio of updates to weights, or the share of dead units.
    """

    panel: Literal["loss", "gradients", "updates", "dead"]
    name: str
    points: tuple[tuple[float, float], ...] = ()


class TrainingProgram(Record):
    """A training program with the files beside it; `entry` is started with `arguments`."""

    model_config = ConfigDict(ser_json_bytes="base64")

    files: dict[str, bytes]
    entry: str
    arguments: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The text of the entry file."""
        return self.files[self.entry].decode("utf-8", "replace")


class DiagnosedRun(Record):
    """A training run with its diagnosis. `ended` says how the program ended and `error` names the
    exception that ended it; `undecided` is why nothing could be told, "" when something could.
    `opinion` is None where no model is configured, `interventions` where none were asked for.
    """

    diagnosis: Diagnosis = Diagnosis()
    undecided: str = ""
    ended: Literal["completed", "failed", "timed out", "killed"] = "completed"
    error: str = ""
    framework: str = ""
    steps: int = 0
    epochs: int = 0
    seconds: float = 0.0
    curves: tuple[Curve, ...] = ()
    opinion: SecondOpinion | None = None
    interventions: Interventions | None = None

    @property
    def suspected(self) -> tuple[Finding, ...]:
        """What a model alone names."""
        return tuple(finding for finding in self.diagnosis.findings if finding.by == "model")


# What the training probe saw: one record for each line of `training-<pid>.jsonl`.
#
# The probe (`sandbox/probe/training/`) writes facts and never judges them; the rules read these
# types alone. A number that could not be computed is None, and NaN and infinities are written as
# strings.

Framework = Literal["torch", "keras", "jax"]


class _Description(ProbeRecord):
    """A part of which earlier probes wrote more: fields that are no longer read are left out."""

    model_config = ConfigDict(extra="ignore")


class Summary(ProbeRecord):
    """A tensor in numbers. `minimum` to `std` are of its finite elements, `finite` and `zero` are
    shares of all. `distinct` counts different values, None when there are over 1,000.
    """

    shape: Shape
    dtype: str
    minimum: Real | None = None
    maximum: Real | None = None
    mean: Real | None = None
    std: Real | None = None
    finite: Real = 1.0
    zero: Real = 0.0
    distinct: Count | None = None


class Weight(ProbeRecord):
    """A trainable or frozen tensor of a layer as it was before the first step. `role` is
    "kernel", "bias", "scale", "embedding", "recurrent" or "other".
    """

    name: str
    role: str
    trainable: bool
    initial: Summary
    fan_in: Count | None = None
    fan_out: Count | None = None


class Layer(_Description):
    """A layer in the order in which the model calls it.

    `index` counts as the framework's users do: the place in `model.layers` (Keras, without
    the input) or in the order of the leaf modules of a forward pass (PyTorch). `activation` is
    the function that is applied last to what it returns ("" for none): its own, or one that
    the program calls on its output (`functional`). `bias_initializer` and `regularizer` are as
    the framework names them, "" when it does not. `inputs` are the indices of the layers that
    feed it.
    """

    index: Count
    name: str
    type: str
    activation: str = ""
    functional: bool = False
    inputs: tuple[Count, ...] = ()
    units: Count | None = None
    bias_initializer: str = ""
    regularizer: str = ""
    settings: dict[str, Setting] = {}
    weights: tuple[Weight, ...] = ()
    input: Summary | None = None
    output: Summary | None = None


class Start(ProbeRecord):
    """The probe is armed."""

    kind: Literal["start"] = "start"
    pid: Count
    frameworks: dict[str, str] = {}


class TrainedModel(ProbeRecord):
    """A model at its first training step, and where in the program it stands (line, 0 unknown)."""

    kind: Literal["model"] = "model"
    id: str
    framework: Framework
    layers: tuple[Layer, ...]
    residual: bool = False
    compiled: bool = False
    line: Count = 0


class Loss(ProbeRecord):
    """What the loss is fed, by the values of one batch.

    `name` is canonical: cross_entropy, nll, bce, bce_logits, categorical_crossentropy,
    sparse_categorical_crossentropy, binary_crossentropy, mse, mae, mape, msle, huber, hinge,
    poisson, kld, rmse, … or the function's own name; "expression" for any other that the program
    writes out, with targets where they are known. `from_logits` says what it expects, None for
    neither. `activation` is what was effectively applied to the predictions last: by the graph
    where it is known, otherwise by their values (softmax, log_softmax, sigmoid, tanh, relu, linear;
    "" unknown).
    `rows_sum_to_one` and `one_hot` are of the last axis (PyTorch: of the classes'),
    `columns_sum_to_one` is of the samples, also where logarithms are returned. `trivial` is the
    loss of the best constant prediction on the same targets, None where it cannot be computed;
    `floor` is that of the perfect one, above zero for targets that are shares. Of several outputs
    each has a loss, with the `layer` that it comes from and its weight in the sum. `line` is where
    the loss is made, `call` where it is computed.
    """

    kind: Literal["loss"] = "loss"
    model: str
    name: str
    from_logits: bool | None = None
    activation: str = ""
    predictions: Summary
    targets: Summary
    rows_sum_to_one: bool = False
    columns_sum_to_one: bool = False
    one_hot: bool = False
    integer_targets: bool = False
    class_shares: tuple[Real, ...] = ()
    trivial: Real | None = None
    floor: Real = 0.0
    settings: dict[str, Setting] = {}
    layer: Count | None = None
    line: Count = 0
    call: Count = 0


class Optimizer(_Description):
    """An optimiser at its first step. `name` is lower case (sgd, adam, …); `rates` are of its
    groups of parameters. `scheduled` says that a scheduler or callback changes them.
    """

    kind: Literal["optimizer"] = "optimizer"
    id: str
    model: str = ""
    name: str
    rates: tuple[Real, ...]
    momentum: Real = 0.0
    weight_decay: Real = 0.0
    decoupled: bool = False
    scheduled: bool = False
    settings: dict[str, Setting] = {}
    line: Count = 0


class Plan(_Description):
    """How the program means to train, as far as can be seen: `epochs` and `steps_per_epoch` are
    those that were asked for or, in a plain loop, counted at the end. `metrics` are their names.
    """

    kind: Literal["plan"] = "plan"
    model: str = ""
    batch_size: Count | None = None
    samples: Count | None = None
    epochs: Count | None = None
    steps_per_epoch: Count | None = None
    shuffle: bool | None = None
    metrics: tuple[str, ...] = ()
    line: Count = 0


class Data(_Description):
    """What a model is given. `feature_std_ratio` is the largest standard deviation of a column over
    the smallest that is not zero; `constant_columns` is a share. `columns` holds mean and standard
    deviation of each, of more than 64 of some at equal distances. `classes` are those of labels
    or one-hot targets, at most 64. `agreement` says by how many standard errors the targets of
    nearest neighbours agree better than by chance. Integer inputs of an embedding are `ids`.
    """

    kind: Literal["data"] = "data"
    model: str = ""
    part: Literal["train", "validation", "evaluation"] = "train"
    inputs: Summary
    feature_std_ratio: Real | None = None
    constant_columns: Real = 0.0
    columns: Annotated[tuple[tuple[Real, Real], ...], Field(max_length=64)] = ()
    classes: Annotated[tuple[Count, ...], Field(max_length=64)] = ()
    agreement: Real | None = None
    ids: bool = False
    targets: Summary | None = None


class WeightStep(ProbeRecord):
    """One tensor at a sampled step: L2 norm and mean absolute value of its gradient, and the norm
    of the update over the norm of the tensor. `gradient_zero` is the share of exact zeros. The
    program adds a term of a `penalised` tensor to the loss.
    """

    layer: Place
    role: str
    norm: Real | None = None
    mean_abs: Real | None = None
    gradient_zero: Real | None = None
    weight_norm: Real | None = None
    update_ratio: Real | None = None
    penalised: bool = False


class ActivationStep(ProbeRecord):
    """The output of one layer at a sampled step. `dead` is the share of units that are zero for the
    whole batch, `saturated` the share of outputs at the bounds of a sigmoid or tanh; None where the
    layer has no such function.
    """

    layer: Place
    mean: Real | None = None
    std: Real | None = None
    finite: Real = 1.0
    dead: Real | None = None
    saturated: Real | None = None


class TrainingStep(ProbeRecord):
    """One step of an optimiser. Of the first 2,000 each is written down, then every tenth, from the
    20,000th on every hundredth, and so on; and the sampled ones, which alone have tensors.
    `penalty` is the part of the loss that regularisers add, `added` what else the program adds to
    the one loss function that it calls. A `skipped` step found infinities and
    changed nothing (gradient scaling).
    """

    kind: Literal["step"] = "step"
    optimizer: str = ""
    step: Count
    epoch: Count | None = None
    loss: Real | None = None
    rate: Real | None = None
    penalty: Real | None = None
    added: Real | None = None
    skipped: bool = False
    weights: tuple[WeightStep, ...] = ()
    activations: tuple[ActivationStep, ...] = ()


class Epoch(ProbeRecord):
    """The means of an epoch by the framework's own names: loss, accuracy, val_loss, …"""

    kind: Literal["epoch"] = "epoch"
    model: str = ""
    epoch: Count
    step: Count
    values: dict[str, Real | None]


class Evaluation(ProbeRecord):
    """The loss that a trained model was judged by: the framework's own, or several ways to sum up
    what a loss function returned.
    """

    kind: Literal["evaluation"] = "evaluation"
    losses: Annotated[tuple[Real, ...], Field(max_length=8)]


class ProbeEnd(ProbeRecord):
    """The program's end as the probe saw it; missing when it was killed. `raised` says that an
    exception ended it. `failures` counts what went wrong in the probe itself, `unseen` says in
    words what it could not see.
    """

    kind: Literal["end"] = "end"
    steps: Count
    seconds: Real
    raised: bool = False
    failures: Count = 0
    unseen: tuple[str, ...] = ()


TrainingRecord = Annotated[
    Start
    | TrainedModel
    | Loss
    | Optimizer
    | Plan
    | Data
    | TrainingStep
    | Epoch
    | Evaluation
    | ProgramCode
    | ProbeEnd,
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
    evaluations: tuple[Evaluation, ...] = ()
    code: ProgramCode | None = None
    end: ProbeEnd | None = None
    dropped: Count = 0

    @property
    def taken(self) -> int:
        """How many steps all optimizers took; of a long run not each is written down."""
        last: dict[str, int] = {}
        for step in self.steps:
            last[step.optimizer] = max(step.step, last.get(step.optimizer, 0))
        return sum(last.values()) + len(last)


# What a repair works with: the hyperparameters of a program, edits of them, trainings that tried
# them, and what came of it.


class Hyperparameter(Record):
    """A choice that a program makes, at one place of its text.

    `id` names it: its kind, with the layer where there is one, "activation(3)", and "#2" for the
    second of a kind without layers. `value` is canonical, lower case: "0.001", "adam",
    "cross_entropy", "relu", "none" for one that is not there and could be, "default" where the
    framework decides. `low` and `high` bound a number. `choices` are the values that can be
    written for it, none for numbers. `line` is 1-based, in the program or in the `file` beside
    it that has the value.

    Of "layers" the value is "kept"; it can be "removed" or get "dense_after", "batch_norm_after" or
    "dropout_after". Of "preprocessing" it is how the inputs are scaled ("none", "standardise",
    "min-max"), "labels scaled" (which can be "unscaled"), or "x_train alone" where training and
    test inputs are not scaled alike (which can be "both"). A regulariser has its number,
    "l2(0.001)".
    """

    id: str
    kind: HyperparameterKind
    value: str
    line: int
    file: str = ""
    layer: int | None = None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()


class RepairRequest(Record):
    """What is asked of a repair: the metric by its name ("" for what the program prints last), the
    budget of the search in trainings of the faulty program by time, and how many run at once.
    """

    metric: str = ""
    budget: float = Field(10.0, ge=1)
    jobs: int = Field(1, ge=1)


class Trial(Record):
    """One training of the program with a patch. `part` is the data on which the metric is measured:
    the guide part, by which patches are chosen, the held-out part, or all of it if it cannot be
    split; `rows_split` says that the program saw only a part. `value` is None if the program
    failed, was stopped or printed no such number; `error` says which.
    """

    patch: Patch
    seed: int
    part: Literal["guide", "held-out", "whole"]
    value: float | None
    seconds: float
    rows_split: bool = False
    error: str = ""


class KeptTrial(Record):
    """A trial as it is kept. `key` says what was repaired: program, environment and metric;
    `symptom` what was seen in its trace, where trials are looked at.
    """

    key: str
    trial: Trial
    symptom: str = ""


class Improvement(Record):
    """The faulty and the patched program over the same fresh seeds.

    `p` is of the exact two-sided sign-flip test on the pairs; `effect` is Cohen's d of the paired
    differences, positive for better, infinite when all are equal.
    """

    before: tuple[float | None, ...]
    after: tuple[float | None, ...]
    p: float
    effect: float
    significant: bool


class Repair(Record):
    """What a repair found. `proven` only with a significant gain on seeds and, where the program's
    data could be split, rows that the search did not see (`held_out_rows`); never where trainings
    are `seed_independent`, the same for every seed.

    `patch` is the best one that was found, proven or not; `entry` names the program's file,
    `source` is its text, `source_sha` git's id of it where the text was not kept, `diff` the
    unified diff of it and of the files beside it. `trainings` counts those of the search and of the
    minimisation, `confirmations` those of the proof. `limit_s` is what one training of the proof
    could take, `elsewhere` are likely findings of the diagnosis that no hyperparameter mends,
    `refused` says why lines that a model would replace were not tried.
    `undecided` is why nothing could be tried. `bound` is halfway between the metric of the program
    and that of the patched one in the search, as it was known before the proof, and at least a
    tenth short of the latter.
    """

    metric: Metric | None = None
    patch: Patch = ()
    entry: str = ""
    source: str = ""
    source_sha: str = ""
    diff: str = ""
    improvement: Improvement | None = None
    bound: float | None = None
    proven: bool = False
    seed_independent: bool = False
    held_out_rows: bool = False
    trainings: int = 0
    confirmations: int = 0
    budget: float = Field(0.0, ge=0)
    limit_s: float = 0.0
    elsewhere: tuple[Finding, ...] = ()
    refused: tuple[str, ...] = ()
    seconds: float = 0.0
    training_seconds: float = 0.0
    tried: tuple[Trial, ...] = ()
    curves: tuple[Curve, ...] = ()
    undecided: str = ""
