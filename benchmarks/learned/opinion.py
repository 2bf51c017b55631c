"""What a learned diagnoser says of a program, and how it is fitted to examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.learned.estimator import Kind, learn
from benchmarks.learned.examples import FAULTY, LAYERED, Example
from benchmarks.learned.features import Features
from benchmarks.learned.rule_features import of_findings

Diagnoser = Callable[[Sequence[Example]], "list[Opinion]"]
_AS_LIKELY = 0.5  # of the likeliest layer: such layers are named too


@dataclass(frozen=True)
class Opinion:
    """`faulty` is the probability of any fault, `codes` of each, with its layer. `direction` says
    where the learning rate should go, if it is at fault.
    """

    faulty: float = 0.0
    codes: dict[str, float] = field(default_factory=dict)
    direction: str = ""


def fit(examples: Sequence[Example], kind: Kind, *, sighted: bool) -> Diagnoser:
    """Learn faults from programs and their places from layers; `sighted` sees what the rules say
    of them too.
    """
    programs = learn(
        [_program(x, sighted) for x in examples],
        [x.labels for x in examples],
        kind,
        _weights(examples),
    )
    layers = [(x, i) for x in examples if not x.healthy for i in x.layers]
    places = learn(
        [_layer(x, i, sighted) for x, i in layers],
        [x.labels_of(i) for x, i in layers],
        kind,
        [1.0] * len(layers),
    )

    def diagnose(asked: Sequence[Example]) -> list[Opinion]:
        told = programs([_program(x, sighted) for x in asked])
        placed = iter(places([_layer(x, i, sighted) for x in asked for i in x.layers]))
        return [
            _opinion(of, {i: next(placed) for i in x.layers})
            for x, of in zip(asked, told, strict=True)
        ]

    return diagnose


def _program(example: Example, sighted: bool) -> Features:
    seen = of_findings(example.findings) if sighted else {}
    return {**example.program, **seen}


def _layer(example: Example, layer: int, sighted: bool) -> Features:
    seen = of_findings(example.findings, layer) if sighted else {}
    return {**example.layers[layer], **seen}


def _weights(examples: Sequence[Example]) -> list[float]:
    """Healthy programs are few: together they count as a third of the faulty ones."""
    counts = Counter(x.healthy for x in examples)
    rare = max(counts[False] / (3 * counts[True]), 1.0) if counts[True] else 1.0
    return [rare if x.healthy else 1.0 for x in examples]


def _opinion(program: dict[str, float], layers: dict[int, dict[str, float]]) -> Opinion:
    codes: dict[str, float] = {}
    for label, chance in program.items():
        name = label.removesuffix(LAYERED)
        if label.endswith(LAYERED):
            codes |= {f"{name}({i})": chance * x for i, x in _places(name, layers).items()}
        elif len(label) == len("HLR"):
            codes[name] = chance
    ways = {way: program.get(f"HLR {way}", 0.0) for way in ("up", "down")}
    return Opinion(
        faulty=program.get(FAULTY, 1.0),
        codes=dict(sorted(codes.items(), key=lambda pair: -pair[1])),
        direction=max(ways, key=ways.__getitem__) if any(ways.values()) else "",
    )


def _places(name: str, layers: dict[int, dict[str, float]]) -> dict[int, float]:
    """The likeliest layers of a fault, relative to the likeliest."""
    chances = {i: x.get(name, 0.0) for i, x in layers.items()}
    top = max(chances.values(), default=0.0)
    return {i: x / top for i, x in chances.items() if top and x >= _AS_LIKELY * top}
