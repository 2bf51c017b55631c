"""A traced program with what the rules say of it, its features, and the labels to learn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.fault_runs import FaultCase
from benchmarks.faults import expanded
from benchmarks.learned.features import Features, of_program
from benchmarks.learned.layer_features import of_layers
from bot.models.diagnosis import Finding
from bot.models.training import TrainingTrace
from bot.rules.diagnosis import diagnose
from bot.rules.diagnosis.training import Training, trainings

FAULTY = "faulty"
"""The label of a program with any fault."""
LAYERED = "()"
"""What follows the code of a fault that is in a layer, in the label of a program."""


@dataclass(frozen=True)
class Example:
    """A program of a family; `truths` are those of its key, none when it is healthy."""

    id: str
    family: str
    framework: str
    truths: tuple[tuple[str, ...], ...]
    direction: str
    findings: tuple[Finding, ...]
    program: Features
    layers: dict[int, Features] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to find."""
        return not self.truths

    @property
    def codes(self) -> tuple[str, ...]:
        """The true codes, one for each layer."""
        return expanded(self.truths[0]) if self.truths else ()

    @property
    def labels(self) -> frozenset[str]:
        """What to learn of the program: "faulty", "HLR", "HLR up", "ACH()"."""
        return frozenset(self._labels())

    def _labels(self) -> Iterator[str]:
        for code in self.codes:
            name, _, layer = code.partition("(")
            yield name + (LAYERED if layer else "")
            if name == "HLR" and self.direction:
                yield f"HLR {self.direction}"
        if self.codes:
            yield FAULTY

    def labels_of(self, layer: int) -> frozenset[str]:
        """What to learn of a layer: the faults in it."""
        return frozenset(x[:3] for x in self.codes if x.endswith(f"({layer})"))


def example(case: FaultCase, seen: TrainingTrace) -> Example | None:
    """What a trace teaches; nothing when no model trained in it."""
    training = longest(seen)
    if training is None:
        return None
    return Example(
        id=case.id,
        family=case.family or case.id,
        framework=case.data.get("framework", ""),
        truths=case.truths,
        direction=case.direction,
        findings=diagnose(seen).findings,
        program=of_program(training),
        layers=of_layers(training),
    )


def longest(seen: TrainingTrace) -> Training | None:
    """The training with the most steps of those in a trace."""
    return max(trainings(seen), key=lambda each: each.updates, default=None)
