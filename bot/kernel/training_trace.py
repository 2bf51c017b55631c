"""The files of the training recorder → a trace, its curves, and the losses as they are printed."""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import TypeVar

from pydantic import ValidationError

from bot.kernel.training_code import ProgramCode
from bot.kernel.training_types import (
    RECORDS,
    ActivationStep,
    Curve,
    Data,
    Epoch,
    Evaluation,
    Layer,
    Loss,
    Optimizer,
    Plan,
    ProbeEnd,
    Start,
    TrainedModel,
    TrainingRecord,
    TrainingStep,
    TrainingTrace,
    WeightStep,
)
from sandbox.port import OnOutput, RunResult, Stream

# The files that the training probe left → a `TrainingTrace`.
#
# They come from where hostile code ran. Each line is bounded before it is parsed, and what is no
# record of ours or over a limit is counted and left out, so that a file costs seconds at most.

_T = TypeVar("_T")
_NAME = re.compile(r"(?:^|/)training-\d+\.jsonl$")
_MOST_FILES = 16
_MOST_BYTES = 8 << 20
_MOST_LINES = 100_000
_MOST_LINE_BYTES = 1 << 20
_MOST_RECORDS = 2000
_MOST_TENSORS = 2000
_MOST_TRACED_LAYERS = 400
_MOST_ROWS = 100_000


def read_trace(artifacts: Mapping[str, bytes]) -> TrainingTrace:
    """The trace of the process that trained most; an empty one when none trained."""
    names = sorted(name for name in artifacts if _NAME.search(name))
    traces = (
        _parse_trace(artifacts[name]) for name in names[:_MOST_FILES]
    )  # two at a time in memory
    return max(traces, key=lambda trace: trace.taken, default=TrainingTrace())


def _parse_trace(data: bytes) -> TrainingTrace:
    lines = data[:_MOST_BYTES].splitlines()
    nonempty_lines = [line for line in lines[:_MOST_LINES] if line.strip()]
    records = list(_within(map(_record, nonempty_lines)))
    dropped_count = len(nonempty_lines) - len(records) + max(0, len(lines) - _MOST_LINES)
    dropped_count += len(data) > _MOST_BYTES
    return _trace(records, dropped_count)


def _record(line: bytes) -> TrainingRecord | None:
    if len(line) > _MOST_LINE_BYTES:
        return None
    try:
        record = RECORDS.validate_json(line)
    except (ValidationError, RecursionError):
        return None
    layers = len(record.layers) if isinstance(record, TrainedModel) else 0
    return record if layers <= _MOST_TRACED_LAYERS and _rows(record) <= _MOST_TENSORS else None


def _rows(record: TrainingRecord) -> int:
    """How many tensors or values a record has numbers of."""
    if isinstance(record, TrainingStep):
        return max(len(record.weights), len(record.activations))
    if isinstance(record, TrainedModel):
        return sum(len(layer.weights) for layer in record.layers)
    return len(record.values) if isinstance(record, Epoch) else 0


def _within(records: Iterable[TrainingRecord | None]) -> Iterator[TrainingRecord]:
    """The records that fit into memory together, and of each optimiser the steps that go on."""
    rows, last = 0, dict[str, int]()
    for record in records:
        if record is None or rows + _rows(record) > _MOST_ROWS:
            continue
        rows += _rows(record)
        if isinstance(record, TrainingStep):
            if record.step <= last.get(record.optimizer, -1):
                continue
            last[record.optimizer] = record.step
        yield record


def _trace(records: list[TrainingRecord], dropped_count: int) -> TrainingTrace:
    """The records by kind. The probe writes some again when it knows more: the last one counts."""
    return TrainingTrace(
        start=next(_of(records, Start), None),
        models=_last(_of(records, TrainedModel), lambda one: one.id),
        losses=_last(_of(records, Loss), lambda one: (one.model, one.name, one.line)),
        optimizers=_last(_of(records, Optimizer), lambda one: one.id),
        plans=_last(_of(records, Plan), lambda one: one.model),
        data=_last(_of(records, Data), lambda one: (one.model, one.part)),
        steps=tuple(_of(records, TrainingStep)),
        epochs=tuple(_of(records, Epoch)),
        evaluations=tuple(_of(records, Evaluation))[-_MOST_RECORDS:],
        code=next(reversed(tuple(_of(records, ProgramCode))), None),
        end=next(_of(records, ProbeEnd), None),
        dropped=dropped_count,
    )


def _of(records: Iterable[TrainingRecord], kind: type[_T]) -> Iterator[_T]:
    return (record for record in records if isinstance(record, kind))


def _last(records: Iterable[_T], key: Callable[[_T], Hashable]) -> tuple[_T, ...]:
    """The last record under each key, in the order of the first ones, at most `_MOST_RECORDS`."""
    last_records: dict[Hashable, _T] = {}
    for record in records:
        name = key(record)
        if name in last_records or len(last_records) < _MOST_RECORDS:
            last_records[name] = record
    return tuple(last_records.values())


# The losses that the training probe prints while a program runs: a marked line on its standard
# error, taken out again before anyone reads that.

_MARK = re.compile(r"\x1ereprise step (\d{1,12}) loss (-?[0-9.e+-]{1,30})\n")


def listener(on_loss: Callable[[int, float], None]) -> OnOutput:
    """Listens to the lines that a run prints for the losses in them."""

    def collect(stream: Stream, line: str) -> None:
        marks = _MARK.finditer(f"{line}\n") if stream == "stderr" else ()
        for mark in marks:
            if (loss := _number(mark[2])) is not None:
                on_loss(int(mark[1]), loss)

    return collect


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def without_marks(result: RunResult) -> RunResult:
    """The result with the program's own output alone."""
    return replace(result, stderr=_MARK.sub("", result.stderr))


# A training trace → the curves of its plot, thinned to what a picture can show.

MOST_POINTS, _MOST_PLOTTED_LAYERS, _MOST_OPTIMIZERS, HUGE = 200, 4, 12, 1e100
Point = tuple[float, float]
_KERNELS = {"kernel", "embedding", "recurrent"}


def curves(trace: TrainingTrace) -> tuple[Curve, ...]:
    """The loss of training and validation, and for some layers the norm of gradients, the ratio of
    updates to weights, and the share of dead units.
    """
    names = _names(trace)
    candidates = [*_losses(trace), *_weights(trace, names), *_dead(trace, names)]
    return tuple(curve for curve in candidates if curve.points)


def thin(points: Iterable[Point]) -> tuple[Point, ...]:
    """Finite points in order; of too many, the means of neighbours."""
    finite_points = [point for point in points if all(abs(part) < HUGE for part in point)]
    size = math.ceil(len(finite_points) / MOST_POINTS) or 1
    groups = (finite_points[at : at + size] for at in range(0, len(finite_points), size))
    return tuple((fmean(x for x, _ in group), fmean(y for _, y in group)) for group in groups)


def _losses(trace: TrainingTrace) -> Iterator[Curve]:
    optimizers = list(dict.fromkeys(step.optimizer for step in trace.steps))
    for number, optimizer in enumerate(optimizers[:_MOST_OPTIMIZERS]):
        steps = (step for step in trace.steps if step.optimizer == optimizer)
        name = f"training (optimizer {number + 1})" if len(optimizers) > 1 else "training"
        yield Curve(panel="loss", name=name, points=thin(_points_of(steps, "loss")))
    validation = [(row.step, row.values.get("val_loss")) for row in trace.epochs]
    points = ((float(at), value) for at, value in validation if value is not None)
    yield Curve(panel="loss", name="validation", points=thin(points))


def _points_of(steps: Iterable[TrainingStep], field: str) -> Iterator[Point]:
    for step in steps:
        if (value := getattr(step, field)) is not None:
            yield float(step.step), value


def _weights(trace: TrainingTrace, names: dict[int, str]) -> Iterator[Curve]:
    rows = [(step.step, weight) for step in trace.steps for weight in step.weights]
    kernels = [(at, row) for at, row in rows if row.role in _KERNELS]
    layers = _some(sorted({row.layer for _, row in kernels}))
    for layer in layers:
        own = [(at, row) for at, row in kernels if row.layer == layer]
        name = names.get(layer, f"layer {layer}")
        yield Curve(panel="gradients", name=name, points=_median(own, "norm"))
        yield Curve(panel="updates", name=name, points=_median(own, "update_ratio"))


def _dead(trace: TrainingTrace, names: dict[int, str]) -> Iterator[Curve]:
    rows = [(step.step, row) for step in trace.steps for row in step.activations]
    dead_rows = [(at, row) for at, row in rows if row.dead is not None]
    last = {row.layer: row.dead or 0.0 for _, row in dead_rows}
    worst = sorted(last, key=lambda layer: (-last[layer], layer))[:_MOST_PLOTTED_LAYERS]
    for layer in sorted(worst):
        own = [(at, row) for at, row in dead_rows if row.layer == layer]
        name = names.get(layer, f"layer {layer}")
        yield Curve(panel="dead", name=name, points=_median(own, "dead"))


def _median(
    rows: Sequence[tuple[int, WeightStep | ActivationStep]], field: str
) -> tuple[Point, ...]:
    """One value a step: a layer may have several tensors, and several models a layer each."""
    by_step: dict[int, list[float]] = {}
    for at, row in rows:
        value = getattr(row, field)
        if value is not None and math.isfinite(value):
            by_step.setdefault(at, []).append(value)
    return thin((float(at), median(values)) for at, values in sorted(by_step.items()))


def _some(layers: Sequence[int]) -> list[int]:
    """The first, the last and some between."""
    most = _MOST_PLOTTED_LAYERS - 1
    if len(layers) <= _MOST_PLOTTED_LAYERS:
        return list(layers)
    return [layers[round(at * (len(layers) - 1) / most)] for at in range(_MOST_PLOTTED_LAYERS)]


def _names(trace: TrainingTrace) -> dict[int, str]:
    layers: tuple[Layer, ...] = trace.models[0].layers if trace.models else ()
    return {layer.index: f"layer {layer.index} {layer.type}"[:28] for layer in layers}
