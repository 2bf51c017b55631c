"""What a diagnosis says of a training run: findings with their fault type, place and numbers; the
program that trained and its curves; what a model adds.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from bot.models.base import Record
from bot.models.dialogue import Usage

FaultType = Literal[
    "ACH", "ARM", "AAL", "HLR", "HNE", "HBS", "LCH", "OCH",
    "WCI", "BCI", "RAW", "LRM", "LAD", "LCN", "LCF", "CPP",
]  # fmt: skip
"""The sixteen fault types of Table 1 of "Fault Localisation and Repair for DL Systems: An Empirical
Study with LLMs": activation changed, removed or added; learning rate, number of epochs, batch size;
loss, optimiser; initial weights, initial bias; regulariser added; layer removed, added, with
other neurons or filters; data preprocessing.
"""


class Measurement(Record):
    """A number that supports a finding, and the limit that it is compared with ("" for none)."""

    name: str
    value: str
    limit: str = ""


class Change(Record):
    """The edit that a finding suggests: which hyperparameter, and the values to try in this
    order. The repair tries them; `words` says the same to people.
    """

    parameter: str
    values: tuple[str, ...] = ()
    words: str


class Finding(Record):
    """One fault: its type, the layers it is in (as `Layer.index`; none for the whole run), the rule
    that found it, how certain that is (0 to 1), and what to do. `direction` says where a number
    should go. `also` are other names for the same fault: no activation is a changed one (ACH) to
    some and a removed one (ARM) to others. A finding `by` a model is no rule's and has no
    confidence.
    """

    fault: FaultType
    also: tuple[FaultType, ...] = ()
    layers: tuple[int, ...] = ()
    rule: str
    confidence: float
    direction: Literal["", "up", "down"] = ""
    message: str
    evidence: tuple[Measurement, ...] = ()
    change: Change | None = None
    source: str = ""
    line: int = 0
    by: Literal["rules", "model"] = "rules"

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the study: "HLR", or one for each layer, "ACH(7)"; those of `also` last."""
        names = (self.fault, *self.also)
        return tuple(f"{name}({layer})" for name in names for layer in self.layers) or names


class Diagnosis(Record):
    """At most four findings, most certain first, and apart from them advice. No finding is an
    answer: `examined` says what was looked at, `unseen` what could not be.
    """

    findings: tuple[Finding, ...] = ()
    advice: tuple[Finding, ...] = ()
    examined: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


class SuspectedFault(Record):
    """A fault that a model suspects. `quote` are words of what it was shown."""

    fault: FaultType
    layers: tuple[int, ...] = Field((), max_length=8)
    quote: str = Field(max_length=300)
    reason: str = Field(max_length=400)
    change: str = Field(max_length=300)


class Opinion(Record):
    """A model's answer about a training run: what the program is for, and the faults."""

    purpose: str = Field(max_length=1500)
    faults: tuple[SuspectedFault, ...] = Field(max_length=4)


class SecondOpinion(Record):
    """What came of asking a model about a run. `agreed` are codes of the rules that it names too;
    `unsupported` counts faults for which it quoted nothing that it was shown, or a layer that
    does not exist. `missing` is why there is no answer, "" when there is one.
    """

    model: str = ""
    prompt: str = ""
    agreed: tuple[str, ...] = ()
    unsupported: int = 0
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
    `opinion` is None where no model is configured.
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

    @property
    def suspected(self) -> tuple[Finding, ...]:
        """What a model alone names."""
        return tuple(each for each in self.diagnosis.findings if each.by == "model")
