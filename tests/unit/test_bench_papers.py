"""The benchmark of papers: a report held against its key, and mutants that fit their repositories."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import yaml

from benchmarks.cassettes import Cassettes
from benchmarks.paper_mutants import mutants
from benchmarks.papers import (
    MutantRow,
    Rates,
    cases,
    key_of,
    mutant_line,
    mutant_summary,
    rates,
    repository_files,
    run_mutants,
    run_written,
    score,
)
from bot.kernel.paper import Criterion
from bot.kernel.settings import Settings
from bot.papers.criterion_kinds import ROWS
from tests.support.papers import CORPUS, reproduced, run_here
from tests.support.sandbox import FakeSandbox


def test_precision_and_recall_are_those_of_sets() -> None:
    assert rates({1, 2, 3, 4}, {1, 2, 5}) == Rates(precision=0.5, recall=2 / 3)
    assert rates(set(), {1}) == Rates(precision=None, recall=0.0)
    assert rates({1}, set()) == Rates(precision=0.0, recall=None)


def test_a_report_is_held_against_its_key() -> None:
    report = reproduced(CORPUS / "rff" / "paper", CORPUS / "rff" / "repo", runs=3)
    expected = json.loads((CORPUS / "rff" / "expected.json").read_text())
    row = score("rff", report, expected)
    assert (row.is_right, row.ran, row.claim_is_right) == (True, True, True)
    assert row.criteria == Rates(precision=1.0, recall=1.0)
    wrong = score("rff", report, expected | {"verdict": "not_reproduced", "claim": {"value": 1.0}})
    assert (wrong.is_right, wrong.claim_is_right) == (False, False)


def test_recall_and_false_alarms_are_counted_by_evidence() -> None:
    judged = {"observed": 6, "located": 3}
    rows = [
        MutantRow(id="a-1", kind="epochs", contradictions={"epochs": "observed"}, judged=judged),
        MutantRow(id="a-2", kind="loss", contradictions={"epochs": "located"}, judged=judged),
        MutantRow(id="a-3", kind="", judged=judged),
        MutantRow(
            id="a-4", kind="schedule", judged=judged,
            contradictions={"schedule": "observed", "warm_up": "observed"},
        ),
    ]  # fmt: skip
    assert list(mutant_summary(rows)) == [
        "2 of 3 mutants found; 1 false alarms of 36 judgements",
        "observed: 2 found, 0 false alarms of 24 judgements",
        "located: 0 found, 1 false alarms of 12 judgements",
        "missed: a-2 loss",
    ]


@pytest.mark.parametrize("path", cases(CORPUS), ids=lambda path: path.name)
def test_every_mutant_is_a_program_that_differs_from_its_repository(path: Path) -> None:
    edits, _ = key_of(path)
    tree = repository_files(path, edits)
    rows = list(mutants(tree))
    assert len({(row.file, row.text) for row in rows}) == len(rows)
    for row in rows:
        assert row.text != tree[row.file]
        assert row.kind in {*ROWS, ""}
        if row.file.endswith(".py"):
            ast.parse(row.text)
        else:
            yaml.safe_load(row.text)
    assert any(not row.kind for row in rows)


def test_there_are_forty_mutants_of_what_the_papers_state_of_every_kind_of_fault() -> None:
    kinds = list[str]()
    for path in cases(CORPUS):
        edits, stated = key_of(path)
        kinds += [row.kind for row in mutants(repository_files(path, edits)) if row.kind in stated]
    assert len(kinds) >= 40
    assert {*kinds} >= {
        "stride", "weight_decay", "loss", "order", "warm_up", "split", "seeds", "schedule",
        "clipping", "initialisation", "preprocessing", "batch_size", "epochs", "optimizer",
    }  # fmt: skip


def test_an_edit_that_makes_a_repository_agree_fits_it() -> None:
    for path in cases(CORPUS):
        for file, before, _ in key_of(path)[0]:
            assert before in (path / "repo" / file).read_text()


def test_statements_that_no_kind_covers_are_in_no_key() -> None:
    report = reproduced(CORPUS / "rff" / "paper", CORPUS / "rff" / "repo", runs=1)
    extra = Criterion(kind="method", name="data", stated="2,000 points")
    result = report.result.model_copy(update={"criteria": (*report.result.criteria, extra)})
    expected = json.loads((CORPUS / "rff" / "expected.json").read_text())
    row = score("rff", report.model_copy(update={"result": result}), expected)
    assert row.criteria == Rates(precision=1.0, recall=1.0)
    assert "data" in row.unknown


def test_a_paper_without_a_recording_has_no_code(tmp_path: Path) -> None:
    """In a replay nobody else is asked, whatever the settings name."""
    settings = Settings(
        cache_dir=tmp_path / "cache", model_url="http://127.0.0.1:9", model_writer="x"
    )
    box = FakeSandbox(run_here)
    bench = run_written([CORPUS / "rff"], box, settings, 1.0, "", Cassettes(replay=tmp_path))
    (row,) = bench.cases
    assert (row.verdict, row.is_right, row.ran, row.error) == ("needs_info", False, False, "")
    assert row.claim_is_right


def test_a_mutant_that_has_ended_is_not_run_again(tmp_path: Path) -> None:
    row = MutantRow(id="rff-5", kind="split", what="a tenth", contradictions={"split": "located"})
    (tmp_path / "rff-5.json").write_text(row.model_dump_json())
    box = FakeSandbox(run_here)
    rows = run_mutants([CORPUS / "rff"], box, Settings(), 1.0, "rff-5", tmp_path)
    assert list(rows) == [row]
    assert box.specs == []
    assert mutant_line(row) == "rff-5  split: a tenth -> split (located) "
