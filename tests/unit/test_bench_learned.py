"""What is learned from traces is free of scale, and never judged on a family that it saw."""

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.commands import app
from benchmarks.learned.estimator import Kind, learn
from benchmarks.learned.examples import Example, example
from benchmarks.learned.features import of_program
from benchmarks.learned.fusion import Limits, chosen, fused, learned
from benchmarks.learned.layer_features import of_layers
from benchmarks.learned.opinion import Opinion
from bot.models.diagnosis import Finding
from bot.models.training import (
    ActivationStep,
    Epoch,
    TrainedModel,
    TrainingStep,
    TrainingTrace,
    WeightStep,
)
from bot.rules.diagnosis.training import trainings
from tests.support.traces import FLAT, GOOD, LAYERS, curve, dense, loss, steps, trace, weight

_BROKEN = trace(
    losses=[math.nan, math.inf, -math.inf, 0.0],
    taken=tuple(
        TrainingStep(
            optimizer="o",
            step=i,
            loss=x,
            rate=math.inf,
            penalty=math.nan,
            weights=(WeightStep(layer=0, role="kernel", norm=x, update_ratio=x, weight_norm=x),),
            activations=(ActivationStep(layer=0, mean=x, std=x, finite=0.0),),
        )
        for i, x in enumerate((math.nan, math.inf, -math.inf, 0.0))
    ),
    epochs=(Epoch(model="m", epoch=0, step=3, values={"loss": math.nan, "val_loss": 0.0}),),
)
_BARE = TrainingTrace(models=(TrainedModel(id="m", framework="jax", layers=()),))


def _scaled(factor: float) -> TrainingTrace:
    """A run whose loss, and with it every gradient, is multiplied."""
    losses = [x * factor for x in curve(2.3, 0.4)]
    norms = tuple(x * factor for x in (0.2, 0.3, 0.4))
    ended = {"loss": 0.4 * factor, "val_loss": 0.6 * factor, "accuracy": 0.8}
    return trace(
        losses=losses,
        fed=loss(trivial=2.3 * factor),
        taken=steps(losses, norms=norms),
        epochs=(Epoch(model="m", epoch=0, step=499, values=ended),),
    )


def _features(seen: TrainingTrace) -> dict[str, float]:
    training = trainings(seen)[0]
    rows = of_layers(training)
    places = {f"{i}.{name}": x for i, row in rows.items() for name, x in row.items()}
    return {**of_program(training), **places}


def test_features_do_not_change_with_the_scale_of_the_loss() -> None:
    assert _features(_scaled(1000.0)) == pytest.approx(_features(_scaled(1.0)))
    assert _features(_scaled(1.0)) != pytest.approx(_features(trace(losses=FLAT)))


@pytest.mark.parametrize("seen", [_BROKEN, _BARE, trace()])
def test_features_are_the_same_finite_numbers_for_every_trace(seen: TrainingTrace) -> None:
    told = of_program(trainings(seen)[0])
    assert told.keys() == of_program(trainings(_scaled(1.0))[0]).keys()
    assert all(math.isfinite(x) for x in _features(seen).values())


def test_a_layer_is_told_by_what_is_unlike_the_others() -> None:
    layers = (LAYERS[0], weight(LAYERS[1], std=0.0, minimum=0.5, maximum=0.5), LAYERS[2])
    rows = of_layers(trainings(trace(layers))[0])
    assert [row["alike"] for row in rows.values()] == [0.0, 1.0, 0.0]
    assert [row["tail"] for row in rows.values()] == [0.0, 0.0, 1.0]


def _finding(fault: str, confidence: float, layers: tuple[int, ...] = ()) -> Finding:
    return Finding(fault=fault, layers=layers, rule="r", confidence=confidence, message="")


def _program(*truth: str, findings: tuple[Finding, ...] = (), direction: str = "") -> Example:
    truths = (truth,) if truth else ()
    return Example("one", "family", "torch", truths, direction, findings, {"x": 1.0})


def test_labels_hold_the_fault_its_direction_and_its_layers() -> None:
    several = _program("HLR", "ACH(1,2)", direction="down")
    assert several.labels == {"faulty", "HLR", "HLR down", "ACH()"}
    assert (several.labels_of(2), several.labels_of(0)) == ({"ACH"}, frozenset())
    assert _program().labels == frozenset()


def test_both_together_reorder_drop_and_fill_up() -> None:
    doubtful = (_finding("OCH", 0.6), _finding("WCI", 0.5, (1,)), _finding("HNE", 0.4))
    opinion = Opinion(faulty=0.9, codes={"WCI(1)": 0.7, "LCH": 0.4, "OCH": 0.1, "CPP": 0.1})
    limits = Limits(faulty=0.5, tell=0.3, keep=0.5)
    assert fused(_program("HLR", findings=doubtful), opinion, limits) == ("WCI(1)", "OCH", "LCH")
    assert learned(_program(), opinion, limits) == ("WCI(1)", "LCH")
    assert learned(_program(), Opinion(0.4, opinion.codes), limits) == ()


def test_a_program_that_is_hardly_faulty_is_hushed() -> None:
    told = _program(findings=(_finding("OCH", 0.6),))
    limits = Limits(faulty=0.5, tell=0.3, hush=0.2)
    assert fused(told, Opinion(0.3), limits) == ("OCH",)
    assert fused(told, Opinion(0.1), limits) == ()


def test_limits_are_chosen_for_faulty_and_healthy_programs() -> None:
    faulty = (_program("LCH"), Opinion(0.9, {"LCH": 0.42, "OCH": 0.12}))
    healthy = (_program(), Opinion(0.55, {"LCH": 0.5}))
    limits = chosen("learned", [faulty, healthy])
    assert learned(*faulty, limits) == ("LCH",)
    assert learned(*healthy, limits) == ()


_RUNS = {
    (): trace(losses=GOOD),
    ("HLR",): trace(losses=FLAT, optimizer={"rates": (3.0,)}, taken=steps(FLAT, ratio=0.9)),
    ("LCH",): trace(losses=curve(0.5, 0.3), fed=loss("mae")),
    ("WCI(1)",): trace((LAYERS[0], weight(LAYERS[1], std=0.0, mean=0.5), LAYERS[2]), FLAT),
}


def _set(folder: Path, out: Path, family: str, width: int) -> None:
    """A family of four programs whose traces are kept."""
    for truth, seen in _RUNS.items():
        layers = (dense(0, width, 64), *seen.models[0].layers[1:])
        name = f"{family}-{truth[0][:3]}" if truth else family
        kept = seen.models[0].model_copy(update={"layers": layers})
        _write(folder / ("cases" if truth else "healthy") / f"{name}.json", {"framework": "keras"})
        if truth:
            way = "down" if truth == ("HLR",) else ""
            key = {"ground_truth": truth, "family": family, "direction": way}
            _write(folder / "keys" / f"{name}.json", key)
        records = (kept, *seen.losses, *seen.optimizers, *seen.plans, *seen.data, *seen.steps)
        lines = "\n".join(record.model_dump_json() for record in records)
        run = out / (name if truth else f"{name}-healthy")
        _write(run / "figures.json", {"seconds": 1.0, "error": ""})
        (run / "training-1.jsonl").write_text(lines)


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def _asked(*arguments: object) -> dict:
    result = CliRunner().invoke(app, ["learned", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("kind", ["forest", "logistic"])
def test_labels_are_learned_from_features(kind: Kind) -> None:
    rows = [{"a": float(i % 2), "b": float(i % 3)} for i in range(24)]
    labels = [{"odd"} if i % 2 else {"rare"} if i == 2 else set() for i in range(24)]
    told = learn(rows, labels, kind, [1.0] * 24)([{"a": 1.0, "b": 1.0}, {"b": 1.0, "a": 0.0}])
    assert [set(each) for each in told] == [{"odd"}, {"odd"}]  # "rare" has too few rows
    assert told[0]["odd"] > 0.55 > 0.45 > told[1]["odd"]


def test_an_unseen_family_is_judged_by_what_others_taught(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for at in range(5):
        _set(tmp_path / "train", out, f"seen{at}", 16 * (at + 1))
    _set(tmp_path / "test", out, "unseen", 40)
    told = _asked(
        tmp_path / "train", "--test", tmp_path / "test", "--out", out,
        "--model", "logistic", "--sandbox", "process",
    )  # fmt: skip
    assert told["programs"] == 4
    learned_rows = {row["id"]: row for row in told["methods"]["learned"]["cases"]}
    assert learned_rows["unseen-HLR"]["found"][0] == "HLR"
    assert learned_rows["unseen-WCI"]["found"][0] == "WCI(1)"
    assert told["directions"]["learned"] == [1, 1]
    assert told["methods"]["fusion"]["summary"]["recall"] >= 0.66
    assert set(told["by_code"]) == {"HLR", "LCH", "WCI"}


def test_a_family_is_never_learned_from_and_judged(tmp_path: Path) -> None:
    _set(tmp_path / "one", tmp_path / "out", "same", 16)
    result = CliRunner().invoke(
        app, ["learned", str(tmp_path / "one"), "--test", str(tmp_path / "one"),
              "--out", str(tmp_path / "out"), "--sandbox", "process"],
    )  # fmt: skip
    assert result.exit_code == 2
    assert "two families" in result.output


def test_a_trace_without_a_model_teaches_nothing() -> None:
    from benchmarks.fault_runs import FaultCase

    assert example(FaultCase("a", {}, (), healthy=True), TrainingTrace()) is None
