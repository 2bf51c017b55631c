"""The files that the training probe left → a `TrainingTrace`.

They come from where hostile code ran. Each line is bounded before it is parsed, and what is no
record of ours or over a limit is counted and left out, so that a file costs seconds at most.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from pydantic import ValidationError

from bot.models.training import (
    RECORDS,
    Data,
    Epoch,
    Evaluation,
    Loss,
    Optimizer,
    Plan,
    ProbeEnd,
    Start,
    TrainedModel,
    TrainingRecord,
    TrainingStep,
    TrainingTrace,
)

_T = TypeVar("_T")
_NAME = re.compile(r"(?:^|/)training-\d+\.jsonl$")
_MOST_FILES = 16
_MOST_BYTES = 8 << 20
_MOST_LINES = 100_000
_MOST_LINE_BYTES = 1 << 20
_MOST_RECORDS = 2000
_MOST_TENSORS = 2000
_MOST_LAYERS = 400
_MOST_ROWS = 100_000


def read(artifacts: Mapping[str, bytes]) -> TrainingTrace:
    """The trace of the process that trained most; an empty one when none trained."""
    names = sorted(name for name in artifacts if _NAME.search(name))
    traces = (_read(artifacts[name]) for name in names[:_MOST_FILES])  # two at a time in memory
    return max(traces, key=lambda trace: trace.taken, default=TrainingTrace())


def _read(data: bytes) -> TrainingTrace:
    lines = data[:_MOST_BYTES].splitlines()
    written = [line for line in lines[:_MOST_LINES] if line.strip()]
    known = list(_within(map(_record, written)))
    dropped = len(written) - len(known) + max(0, len(lines) - _MOST_LINES)
    dropped += len(data) > _MOST_BYTES
    return _trace(known, dropped)


def _record(line: bytes) -> TrainingRecord | None:
    if len(line) > _MOST_LINE_BYTES:
        return None
    try:
        record = RECORDS.validate_json(line)
    except (ValidationError, RecursionError):
        return None
    layers = len(record.layers) if isinstance(record, TrainedModel) else 0
    return record if layers <= _MOST_LAYERS and _rows(record) <= _MOST_TENSORS else None


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


def _trace(records: list[TrainingRecord], dropped: int) -> TrainingTrace:
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
        end=next(_of(records, ProbeEnd), None),
        dropped=dropped,
    )


def _of(records: Iterable[TrainingRecord], kind: type[_T]) -> Iterator[_T]:
    return (record for record in records if isinstance(record, kind))


def _last(records: Iterable[_T], key: Callable[[_T], Hashable]) -> tuple[_T, ...]:
    """The last record under each key, in the order of the first ones, at most `_MOST_RECORDS`."""
    found: dict[Hashable, _T] = {}
    for record in records:
        name = key(record)
        if name in found or len(found) < _MOST_RECORDS:
            found[name] = record
    return tuple(found.values())
