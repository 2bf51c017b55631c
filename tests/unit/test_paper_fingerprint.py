"""What a model reads in a paper: quotations are checked, two readings merged, and nothing that it
says decides.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from bot.kernel.errors import ModelUnavailable
from bot.kernel.paper import Criterion, CriterionKind
from bot.kernel.report import PaperReport
from bot.papers.reproduce import reproduce
from prompts import load
from tests.support.model import Answers, ScriptedModel
from tests.support.papers import paper_job, paper_ports

PAPER = """# HalfNet: A Very Small Example

## Training

We use a learning rate of 0.5. Each update sees four coins. We go through the data thrice.

## Results

Table 1: Accuracy on coins.

| Method | coins |
|---|---|
| HalfNet (ours) | 0.7 |
"""
PROGRAM = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--batch-size", type=int, default=8)
args = parser.parse_args()
print("test accuracy:", sum(range(8)) / 40)
"""


def says(*rows: tuple[str, str, str, str]) -> dict[str, Any]:
    names = ("kind", "value", "sentence", "quote")
    return {"criteria": [dict(zip(names, row, strict=True)) for row in rows]}


BATCH = ("batch_size", "4", "S1.2", "Each update sees four coins")
EPOCHS = ("epochs", "3", "S1.3", "through the data thrice")


def run(folder: Path, answers: Answers | None, **more: Any) -> PaperReport:
    (folder / "repo").mkdir()
    (folder / "repo" / "train.py").write_text(PROGRAM)
    (folder / "repo" / "README.md").write_text("```\npython train.py\n```\n")
    (folder / "paper.md").write_text(PAPER)
    model = ScriptedModel(answers) if answers is not None else None
    ports = replace(paper_ports(folder / "repo"), model=model)
    return reproduce(paper_job(folder / "paper.md", folder / "repo", runs=2, **more), ports)


def criteria(report: PaperReport) -> dict[str, Criterion]:
    return {row.kind: row for row in report.result.criteria}


def test_what_both_readings_quote_is_judged_as_any_other(tmp_path: Path) -> None:
    report = run(tmp_path, [says(BATCH, EPOCHS), says(BATCH)])
    rows = criteria(report)
    assert (rows["batch_size"].stated, rows["batch_size"].by, rows["batch_size"].readings) == (
        "4",
        "model",
        2,
    )
    assert (rows["batch_size"].verdict, rows["batch_size"].evidence) == ("contradicts", "located")
    assert rows["batch_size"].quote is not None
    assert rows["batch_size"].quote.text == "Each update sees four coins."
    assert (rows["epochs"].stated, rows["epochs"].readings) == ("3", 1)
    assert (rows["learning_rate"].by, rows["learning_rate"].stated) == ("rules", "0.5")
    assert report.cost.calls == 2
    assert report.models == ("scripted",)
    assert list(report.prompts) == ["fingerprint", "compare"]  # which nobody answers


@pytest.mark.parametrize(
    "row",
    [
        ("batch_size", "4", "S1.2", "We use batches of four."),  # no words of the paper
        ("batch_size", "4", "S9.9", "Each update sees four coins"),  # no such sentence
        ("batch_size", "a few", "S1.2", "Each update sees four coins"),  # no value of the kind
        ("learning_rate", "0.9", "S1.1", "We use a learning rate of 0.5"),  # rules read it
    ],
)
def test_what_is_not_quoted_or_known_already_counts_for_nothing(
    tmp_path: Path, row: tuple[str, str, str, str]
) -> None:
    rows = criteria(run(tmp_path, [says(row), says(row)]))
    assert {one.by for one in rows.values()} == {"rules"}
    assert rows["learning_rate"].stated == "0.5"
    assert rows["batch_size"].verdict == "open"


def test_readings_that_disagree_leave_it_open(tmp_path: Path) -> None:
    other = ("batch_size", "16", "S1.2", "Each update sees four coins")
    assert criteria(run(tmp_path, [says(BATCH), says(other)]))["batch_size"].verdict == "open"


def test_a_statement_that_no_kind_covers_counts_if_both_readings_take_it(tmp_path: Path) -> None:
    ways = ("method", "passes over the data", "S1.3", "We go through the data thrice")
    shorter = ("method", "three passes", "S1.3", "go through the data thrice")
    rows = [
        row
        for row in run(tmp_path, [says(ways, BATCH), says(shorter, BATCH)]).result.criteria
        if row.kind == "method"
    ]
    assert [(row.name, row.stated, row.by, row.readings) for row in rows] == [
        ("passes over the data", "We go through the data thrice", "model", 2)
    ]
    once = tmp_path / "once"
    once.mkdir()
    kinds = criteria(run(once, [says(ways, BATCH), says(BATCH)]))
    assert "method" not in kinds


def test_a_model_may_name_every_kind() -> None:
    rows = load("fingerprint").schema["properties"]["criteria"]["items"]["properties"]
    assert set(rows["kind"]["enum"]) == set(get_args(CriterionKind))


def test_a_model_decides_no_verdict(tmp_path: Path) -> None:
    plain, asked = tmp_path / "a", tmp_path / "b"
    plain.mkdir()
    asked.mkdir()
    reports = [run(plain, None), run(asked, [says(BATCH), says(BATCH)])]
    assert reports[0].result.verdict == reports[1].result.verdict
    assert reports[0].result.claim == reports[1].result.claim


def test_without_an_answer_the_run_goes_on_and_says_so(tmp_path: Path) -> None:
    report = run(tmp_path, [ModelUnavailable("the model does not answer")])
    assert "the model does not answer" in report.notes_on()[0]
    assert report.result.verdict.kind == "reproduced"


def test_a_model_that_is_left_out_is_not_asked(tmp_path: Path) -> None:
    report = run(tmp_path, [says(BATCH), says(BATCH)], without=("model",))
    assert report.cost.calls == 0
    assert report.prompts == {}
