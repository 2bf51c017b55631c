"""Faults that are code: each buggy program is named with its line and mended by the rule's own edit;
its healthy twin stays silent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import probing
from bot.training.diagnosis.rules import diagnose
from bot.training.program import hyperparameters
from bot.training.repair.search import from_diagnosis
from tests.integration.test_training_probe import environment

pytestmark = [pytest.mark.index, pytest.mark.slow]

TWINS = Path(__file__).parents[1] / "fixtures" / "code_faults"
SLUGS = sorted({path.name.split(".")[0] for path in TWINS.glob("*.py")})
WITHOUT_EDIT: frozenset[str] = frozenset()
NEAR = 2


@pytest.fixture(scope="module")
def python() -> str:
    built = environment("torch")
    path = Path(built.interpreter)
    return str(path)


@pytest.mark.parametrize("slug", SLUGS)
def test_the_fault_is_named_with_its_line_and_its_twin_is_silent(slug: str, python: str) -> None:
    source = (TWINS / f"{slug}.buggy.py").read_text()
    line = next(at for at, text in enumerate(source.splitlines(), 1) if "# fault" in text)
    run = probing.run(TWINS / f"{slug}.buggy.py", python, probe=True)
    assert run.trace.code is not None, run.errors
    assert run.trace.end is not None
    assert run.trace.end.failures == 0
    (first, *_) = diagnose(run.trace).findings
    assert slug in first.codes
    assert abs(first.line - line) <= NEAR
    healthy = probing.run(TWINS / f"{slug}.healthy.py", python, probe=True)
    assert diagnose(healthy.trace).findings == ()


@pytest.mark.parametrize("slug", [slug for slug in SLUGS if slug not in WITHOUT_EDIT])
def test_the_rule_edits_the_program_so_that_the_fault_is_gone(
    slug: str, python: str, tmp_path: Path
) -> None:
    path = TWINS / f"{slug}.buggy.py"
    trace = probing.run(path, python, probe=True).trace
    places = hyperparameters.find(path.read_text(), trace)
    patch = next(x for x in from_diagnosis(diagnose(trace), places) if x[0].kind == "code")
    assert [edit.operator for edit in patch] == [slug]
    mended = tmp_path / "mended.py"
    mended.write_text(hyperparameters.patch_program(path.read_text(), patch, trace).source)
    after = probing.run(mended, python, probe=True)
    assert after.exit_code == 0, after.errors
    rules = {finding.rule for finding in diagnose(after.trace).findings}
    assert slug not in rules
