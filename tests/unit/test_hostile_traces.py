"""Any numbers in a trace, and as many records as fit into one, lead to a diagnosis and to no error."""

import json
import random
import time
from collections.abc import Iterator

import pytest

from benchmarks.published_tools import TOOLS, codes
from bot.kernel import training_trace
from bot.kernel.training_trace import curves
from bot.kernel.training_types import ActivationStep, DiagnosedRun, Epoch, TrainingTrace
from bot.report.report_json import diagnosis_text
from bot.report.svg import training as svg
from bot.training.diagnosis.rules import diagnose
from tests.support.code_pairs import CODE_PAIRS
from tests.support.trace_pairs import TRACE_PAIRS
from tests.support.traces import FLAT, dense, loss, steps, trace, weight

NAME = ".reprise/training-7.jsonl"
ODD = (
    0, -0.0, 1, -1, 0.5, 1e300, -1e300, 1.7e308, 5e-324, "NaN", "Infinity", "-Infinity", None,
    10**12, 10**30, 10**400, "x" * 500, [], True,
)  # fmt: skip
ODD_FACTS = ("NaN", "Infinity", "x" * 500, None, True, [], ["Infinity", 1e300], ["x"])
EVERYTHING = trace(
    (weight(dense(0, 64, 64), std=0.0), dense(1, 64, 32, "sigmoid"), dense(2, 32, 10, "softmax")),
    FLAT[:60],
    taken=steps(FLAT[:60], activations=(ActivationStep(layer=0, mean=0.1, dead=0.9),)),
    fed=loss(settings={"reduction": "sum"}),
    epochs=(Epoch(model="m", epoch=0, step=9, values={"accuracy": 0.9, "val_accuracy": 0.1}),),
)


def lines(told: TrainingTrace) -> list[dict[str, object]]:
    parts = (told.models, told.losses, told.optimizers, told.plans, told.data, told.epochs)
    records = [record for part in (*parts, told.steps) for record in part]
    return [record.model_dump(mode="json") for record in (*records, told.end) if record]


def places(value: object) -> Iterator[tuple[object, object]]:
    """Every container with each key of it that holds no container."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        if isinstance(inner, (dict, list)):
            yield from places(inner)
        elif key != "kind":
            yield value, key


def written(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def tell(read: TrainingTrace) -> None:
    run = DiagnosedRun(diagnosis=diagnose(read), curves=curves(read))
    assert diagnosis_text(run, program="a.py", environment=None, sandbox="process", hide=str)
    svg(run.curves)


@pytest.mark.parametrize("seed", range(150))
def test_odd_values_lead_to_a_diagnosis(seed: int):
    chosen, rows = random.Random(seed), lines(EVERYTHING)
    whole = [place for row in rows if row["kind"] != "step" for place in places(row)]
    for container, key in chosen.sample(whole, 6):
        container[key] = chosen.choice(ODD)
    odd = chosen.choice(ODD)
    for row in rows:
        if row["kind"] == "step" and chosen.random() < 0.3:
            container, key = chosen.choice(list(places(row)))
            container[key] = odd
    read = training_trace.read_trace({NAME: written(rows)})
    tell(read)
    for tool in TOOLS:
        codes(tool, read)


PAIRS = {**CODE_PAIRS, **{name: pair for name, pair in TRACE_PAIRS.items() if pair[0].code}}


@pytest.mark.parametrize("name", PAIRS)
def test_odd_facts_of_the_code_lead_to_a_diagnosis(name: str):
    """Where one of our own would be: each fact in turn has each odd value."""
    buggy, *_ = PAIRS[name]
    others, code = lines(buggy), buggy.code.model_dump(mode="json")
    for key in code["facts"]:
        for odd in ODD_FACTS:
            row = {**code, "facts": {**code["facts"], key: odd}}
            tell(training_trace.read_trace({NAME: written([*others, row])}))


def full(rows: Iterator[dict[str, object]]) -> bytes:
    """As many lines as a file may hold."""
    found, size = [], 0
    for row in rows:
        found.append(json.dumps(row, separators=(",", ":")))
        size += len(found[-1]) + 1
        if size > 8 << 20:
            break
    return "\n".join(found).encode()


def many_models() -> Iterator[dict[str, object]]:
    """Twenty-four models of 400 layers, each with a fault of its own kind in every layer."""
    wide = [weight(dense(at, 64, 64, "sigmoid"), std=0.0) for at in range(400)]
    (model, fed, optimizer, *_) = lines(trace(tuple(wide), losses=[]))
    for name in map(str, range(24)):
        yield from ({**model, "id": name}, {**fed, "model": name})
        yield {**optimizer, "id": name, "model": name}
        yield from (
            {"kind": "step", "optimizer": name, "step": at, "loss": 2.3} for at in range(500)
        )


def many_steps() -> Iterator[dict[str, object]]:
    """One model of 400 layers, and as many steps as there may be."""
    wide = [dense(at, 64, 64, "sigmoid") for at in range(400)]
    yield from lines(trace(tuple(wide), losses=[]))[:3]
    for at in range(99_000):
        yield {"kind": "step", "optimizer": "o", "step": at, "loss": 2.3, "activations": [{"layer": at % 400}]}  # fmt: skip


def many_optimizers() -> Iterator[dict[str, object]]:
    for at in range(100_000):
        yield {"kind": "step", "optimizer": str(at), "step": 1, "loss": 1}


def many_tensors() -> Iterator[dict[str, object]]:
    yield from lines(trace(losses=[]))[:5]
    for at in range(9999):
        some = [{"layer": layer % 400, "role": "kernel", "norm": 1} for layer in range(2000)]
        active = [{"layer": layer % 400, "dead": 1} for layer in range(2000)]
        yield {"kind": "step", "optimizer": "o", "step": at, "loss": 1, "weights": some, "activations": active}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rows", [many_models, many_steps, many_optimizers, many_tensors])
def test_a_full_file_costs_seconds(rows):
    data = full(rows())
    started = time.process_time()
    tell(training_trace.read_trace({NAME: data}))
    assert time.process_time() - started < 20
