"""The benchmark of papers: a report held against its key, and mutants that fit their repositories."""

from __future__ import annotations

import json

import pytest

from benchmarks.papers import MutantRow, Rates, cases, mutant_summary, rates, score
from tests.support.papers import CORPUS, reproduced


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


def test_a_mutant_is_told_of_by_its_kind_alone() -> None:
    rows = [
        MutantRow(id="a", kind="epochs", contradictions={"epochs": "observed"}, judged=9),
        MutantRow(id="b", kind="loss", contradictions={"epochs": "located"}, judged=9),
        MutantRow(id="c", kind="", judged=9),
    ]
    assert mutant_summary(rows) == (
        "1 of 2 mutants told of (1 observed, 0 located); 1 false alarms of 27 judgements"
    )


@pytest.mark.parametrize("path", cases(CORPUS), ids=lambda path: path.name)
def test_every_mutant_changes_its_repository(path: object) -> None:
    folder = CORPUS / str(getattr(path, "name", ""))
    data = json.loads((folder / "mutants.json").read_text())
    for row in (*data["base"], *data["mutants"]):
        text = (folder / "repo" / row["file"]).read_text()
        for edit in data["base"]:
            if edit["file"] == row["file"] and edit != row:
                text = text.replace(edit["before"], edit["after"])
        assert row["before"] in text, row
        assert row["before"] != row["after"]
