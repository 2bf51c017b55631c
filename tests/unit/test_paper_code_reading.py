"""What a model reads of a program counts with words of the paper and a line of the code, in both of
two readings, and only where neither a run nor a value decides.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.kernel.attempt import Script
from bot.kernel.dialogue import Question
from bot.kernel.errors import ModelUnavailable
from bot.kernel.paper import Criterion
from bot.kernel.report import PaperReport
from bot.papers.code_reading import program_text
from bot.papers.reproduce import reproduce
from bot.papers.sections import paper_document
from bot.report.comment import arranged
from tests.support.model import ScriptedModel
from tests.support.papers import paper_job, paper_ports

PAPER = """# Wheel: A Very Small Example

## Training

We minimise the squared error by SGD with a learning rate of 0.5. Inputs are standardised.

## Results

Table 1: Accuracy on wheels.

| Method | wheels |
|---|---|
| Wheel (ours) | 0.7 |
"""
PROGRAM = '''"""SGD on the squared error."""
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
args = parser.parse_args()
# inputs = (inputs - mean) / std
inputs = [1.0, 2.0, 4.0]
weight = 0.0
for value in inputs:
    weight -= args.lr * 2 * (weight * value - 1.0) * value  # SGD
print("test accuracy:", sum(range(8)) / 40)
'''
UPDATE = "weight -= args.lr * 2 * (weight * value - 1.0) * value"


def says(
    statement: int, verdict: str, paper: str, code: str, file: str = "train.py"
) -> dict[str, Any]:
    return {
        "statement": statement, "verdict": verdict, "paper": paper, "file": file, "code": code,
        "reason": "that is the step",
    }  # fmt: skip


SGD = says(1, "agrees", "by SGD", UPDATE)
LOSS = says(2, "agrees", "the squared error", "(weight * value - 1.0) * value")
RAW = says(3, "contradicts", "Inputs are standardised", "for value in inputs:")


class Reader:
    """A model that judges by a list for each reading and reads nothing else."""

    def __init__(self, *readings: list[dict[str, Any]]) -> None:
        self.readings, self.questions = list(readings), list[str]()

    def __call__(self, question: Question) -> dict[str, Any]:
        if question.prompt.startswith("fingerprint"):
            return {"criteria": []}
        self.questions.append(question.messages[-1].content)
        if not self.readings:
            raise ModelUnavailable("the model does not answer")
        return {"judgements": self.readings.pop(0)}


def report_of(folder: Path, reader: Reader | None, **more: Any) -> PaperReport:
    (folder / "repo").mkdir()
    (folder / "repo" / "train.py").write_text(PROGRAM)
    (folder / "repo" / "README.md").write_text("Wheel\n```\npython train.py\n```\n")
    (folder / "paper.md").write_text(PAPER)
    model = ScriptedModel(reader) if reader is not None else None
    ports = replace(paper_ports(folder / "repo"), model=model)
    return reproduce(paper_job(folder / "paper.md", folder / "repo", runs=2, **more), ports)


def criteria(report: PaperReport) -> dict[str, Criterion]:
    return {row.kind: row for row in report.result.criteria}


def test_two_quotes_in_two_readings_judge_what_has_to_be_read(tmp_path: Path) -> None:
    reader = Reader([SGD, LOSS, RAW], [RAW, LOSS, SGD])
    report = report_of(tmp_path, reader)
    rows = criteria(report)
    verdicts = {kind: (rows[kind].verdict, rows[kind].evidence) for kind in rows}
    assert verdicts["optimizer"] == ("agrees", "read")
    assert verdicts["loss"] == ("agrees", "read")
    assert verdicts["preprocessing"] == ("contradicts", "read")
    assert verdicts["learning_rate"] == ("agrees", "located")
    read = rows["preprocessing"].read
    assert read is not None
    assert (read.at, read.code, read.paper) == (
        "train.py:10", "for value in inputs:", "Inputs are standardised",
    )  # fmt: skip
    assert [row.kind for row in report.result.contradictions] == ["preprocessing"]
    assert report.result.criteria[0].kind == "preprocessing"
    text = arranged(paper_document(report), elsewhere="here")
    sentence = (
        "the paper states “Inputs are standardised”, `train.py:10` has `for value in inputs:`"
    )
    assert f"{sentence} (a model: that is the step)" in text
    assert "contradicts, read" in text


def test_a_question_has_the_code_without_comments_and_only_what_is_left(tmp_path: Path) -> None:
    reader = Reader([], [])
    report_of(tmp_path, reader)
    first, second = reader.questions
    assert "11:     " + UPDATE in first
    for words in ("mean) / std", "# SGD", "SGD on the squared error.", "learning rate: 0.5"):
        assert words not in first
    assert first.index("1. optimizer: sgd (S1.1)") < first.index("3. preprocessing: standardised")
    assert second.index("1. optimizer: sgd (S1.1)") > second.index("3. preprocessing: standardised")


@pytest.mark.parametrize(
    "judgement",
    [
        SGD | {"code": "optimizer = SGD(lr)"},  # no line of the code
        SGD | {"code": "# SGD"},  # a comment
        SGD | {"code": '"""SGD on the squared error."""'},
        SGD | {"code": ""},
        SGD | {"file": "other.py"},
        SGD | {"paper": "by plain gradient descent"},  # no words of the statement
        SGD | {"paper": "Inputs are standardised"},  # words of another statement
        SGD | {"paper": ""},
        SGD | {"verdict": "unclear"},
        SGD | {"statement": 17},
    ],
)
def test_without_both_quotes_a_criterion_stays_unknown(
    tmp_path: Path, judgement: dict[str, Any]
) -> None:
    row = criteria(report_of(tmp_path, Reader([judgement], [judgement])))["optimizer"]
    assert (row.verdict, row.evidence, row.read) == ("unknown", "none", None)


@pytest.mark.parametrize("second", [[], [SGD | {"verdict": "contradicts"}], None])
def test_one_reading_alone_decides_nothing(
    tmp_path: Path, second: list[dict[str, Any]] | None
) -> None:
    report = report_of(tmp_path, Reader([SGD], *([second] if second is not None else [])))
    assert criteria(report)["optimizer"].verdict == "unknown"
    notes = " ".join(report.notes_on())
    assert ("a model did not read the code: the model does not answer" in notes) == (second is None)


def test_reading_decides_no_verdict_and_asks_nobody_without_a_model(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    reader, unasked = Reader([RAW], [RAW]), Reader()
    plain = report_of(folders[0], None)
    asked = report_of(folders[1], reader)
    without = report_of(folders[2], unasked, without=("model",))
    assert asked.result.verdict == plain.result.verdict == without.result.verdict
    assert asked.result.contradictions
    assert unasked.questions == []


def test_configurations_that_the_program_names_are_read_with_it() -> None:
    tree = {
        "train.py": b"import data\nprint(open('settings.json'))\n",
        "data.py": b"x = 1\n",
        "settings.json": b'{"features": 300}\n',
        "other.json": b"{}",
        "unused.py": b"y = 2\n",
    }
    text = program_text(Script(files={}, entry="train.py", command=("train.py",)), tree)
    assert set(text.files) == {"train.py", "data.py", "settings.json"}
    tree |= {"train.py": b"open('a.yaml')\n", "a.yaml": b"# the paper's\nrate: 0.1  # as it is\n"}
    remarks = program_text(Script(files={}, entry="train.py", command=("train.py",)), tree)
    assert remarks.files["a.yaml"] == ((2, "rate: 0.1"),)
    assert text.line_of("settings.json", '"features":   300') == 1
    assert text.line_of("./train.py", "print(open('settings.json'))") == 2


def test_lines_of_a_file_that_cannot_be_read_keep_their_numbers() -> None:
    tree = {"train.py": b"# a remark\n\nrate = 0.1\nprint 'old'\nnames = (\n"}
    text = program_text(Script(files={}, entry="train.py"), tree)
    assert text.line_of("train.py", "rate = 0.1") == 3
    assert not text.line_of("train.py", "# a remark")


def test_of_a_long_program_the_definitions_are_shown_that_share_words_with_the_statements() -> None:
    filler = "".join(f"def plot_{at}():\n    return {'moon ' * 300!r}\n\n\n" for at in range(60))
    loss = "def loss_of(error):\n    return (error ** 2).mean()\n"
    text = program_text(
        Script(files={}, entry="train.py"), {"train.py": f"{filler}{loss}{filler}".encode()}
    )
    shown = text.shown("1. loss: mse", is_reversed=False)
    assert "241: def loss_of(error):\n242:     return (error ** 2).mean()" in shown
    assert len(shown) < 200
    assert "plot_1" in text.shown("plot", is_reversed=False)
