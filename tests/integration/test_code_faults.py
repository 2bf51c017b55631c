"""Faults that are code: each buggy program is named with its line and mended by the rule's own edit;
its healthy twin stays silent.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from benchmarks import probing
from bot.program import hyperparameters
from bot.training.diagnosis.rules import RULES, diagnose
from bot.training.repair.search import from_diagnosis
from tests.integration.test_training_probe import environment

pytestmark = [pytest.mark.index, pytest.mark.slow]

TWINS = Path(__file__).parents[1] / "fixtures" / "code_faults"
CASES = sorted(path.name.removesuffix(".buggy.py") for path in TWINS.glob("*.buggy.py"))
WITHOUT_LINE = frozenset(("split-leak", "target-in-inputs"))
WITHOUT_EDIT = WITHOUT_LINE | {
    "state-carried", "metric-wrong", "layer-repeated", "future-leak", "mask-inverted",
    "positions-missing", "accumulation-wrong", "weights-swapped", "self-compared",
    "divergence-negative", "terminal-ignored", "best-not-copied", "labels-shuffled",
    "state-incomplete", "target-stale", "result-lost", "seed-repeated", "batches-unused",
    "averages-short", "value-undefined", "direction-inverted",
}  # fmt: skip
FORMS_WITHOUT_EDIT = (
    "gradients-not-reset.own",
    "axis-mixed.softmax",
    "wrong-reduction.divergence",
    "axis-mixed.classes",
    "broadcast-loss.policy",
    "graph-cut.term",
    "padding-counts.end",
)
"""Other forms of a fault than the one that its edit mends."""
NEAR = 2
HEALTHY = sorted((Path(__file__).parents[1] / "fixtures" / "healthy_trainings").glob("*.py"))
EVERY_DAY = ("mc_dropout", "two_losses_shared")
DAILY = ("axis-mixed", "dropout-in-evaluation", "eval-while-training", "gradients-not-reset")
"""What every run of CI tries: a training and its twin for each part of the probe."""


def some(cases: list[str]) -> list[ParameterSet]:
    """The cases; those beyond the daily ones take minutes together."""
    return [
        pytest.param(case, marks=() if case in DAILY else pytest.mark.nightly) for case in cases
    ]


@pytest.fixture(scope="module")
def python() -> str:
    return str(environment("torch").interpreter)  # type: ignore[no-untyped-call]


def test_every_rule_of_code_has_twins() -> None:
    rules = {rule.id for rule in RULES if rule.severity == "code"}
    assert rules <= {case.split(".")[0] for case in CASES}


@pytest.mark.parametrize("case", some(CASES))
def test_the_fault_is_named_with_its_line_and_its_twin_is_silent(case: str, python: str) -> None:
    slug = case.split(".")[0]
    source = (TWINS / f"{case}.buggy.py").read_text()
    line = next(at for at, text in enumerate(source.splitlines(), 1) if "# fault" in text)
    run = probing.run(TWINS / f"{case}.buggy.py", python, probe=True)
    assert run.trace.code is not None, run.errors
    assert run.trace.end is not None
    assert run.trace.end.failures == 0
    (first, *_) = diagnose(run.trace).findings
    assert slug in first.codes
    assert abs(first.line - line) <= NEAR or (slug in WITHOUT_LINE and first.line == 0)
    healthy = probing.run(TWINS / f"{case}.healthy.py", python, probe=True)
    assert diagnose(healthy.trace).findings == ()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, marks=() if path.stem in EVERY_DAY else pytest.mark.nightly, id=path.stem
        )
        for path in HEALTHY
    ],
)
def test_healthy_trainings_of_other_habits_have_no_finding(path: Path, python: str) -> None:
    run = probing.run(path, python, probe=True)
    assert run.exit_code == 0, run.errors
    assert run.trace.end is not None
    assert run.trace.end.failures == 0
    assert diagnose(run.trace).findings == ()


@pytest.mark.parametrize(
    "case",
    some([x for x in CASES if x.split(".")[0] not in WITHOUT_EDIT and x not in FORMS_WITHOUT_EDIT]),
)
def test_the_rule_edits_the_program_so_that_the_fault_is_gone(
    case: str, python: str, tmp_path: Path
) -> None:
    path, slug = TWINS / f"{case}.buggy.py", case.split(".")[0]
    trace = probing.run(path, python, probe=True).trace
    places = hyperparameters.find(path.read_text(), trace)
    patch = next(x for x in from_diagnosis(diagnose(trace), places) if x[0].kind == "code")
    assert [edit.operator for edit in patch] == [slug]
    mended = tmp_path / "mended.py"
    mended.write_text(hyperparameters.patch_program(path.read_text(), patch, trace).source)
    after = probing.run(mended, python, probe=True)
    assert after.exit_code == 0, after.errors
    codes = {code for finding in diagnose(after.trace).findings for code in finding.codes}
    assert slug not in codes
