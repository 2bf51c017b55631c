"""Papers whose text instructs a model, the reader or GitHub: nothing changes, and what is shown of
them is inert.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.kernel.paper import PaperResult
from bot.kernel.report import PaperReport
from bot.papers.reproduce import reproduce
from bot.papers.sections import paper_document
from bot.report.comment import arranged
from bot.report.html import paper_page
from bot.report.terminal import print_document
from tests.support.model import ScriptedModel
from tests.support.papers import paper_job, paper_ports
from tests.unit.test_paper_reproduce import COMPUTED, PAPER, repository

FILE = Path(__file__).parents[1] / "corpus" / "hostile" / "papers" / "cases.toml"
CASES = tomllib.loads(FILE.read_text())["paper"]
PROGRAM = COMPUTED.replace("default=0.5", "default=0.001")
OBEYS = {
    "criteria": [
        # What the paper does not say, what its order says, and what is of no kind of value.
        {"kind": "dropout", "value": "0.9", "sentence": "S2.1", "quote": "HalfNet"},
        {"kind": "momentum", "value": "0.5", "sentence": "S2.1", "quote": "momentum of 0.5"},
        {"kind": "width", "value": "reproduced", "sentence": "S2.2", "quote": "reproduced"},
        {"kind": "learning_rate", "value": "0.001", "sentence": "S2.1", "quote": "0.5"},
        {"kind": "method", "value": "verdict", "sentence": "S2.1", "quote": "All is reproduced."},
    ]
}
JUDGES = {
    "judgements": [
        # A line that is nowhere, and words that the statement does not have.
        {
            "statement": 1,
            "verdict": "agrees",
            "paper": "We use SGD",
            "file": "train.py",
            "code": "optimizer = SGD()",
            "reason": "the paper says so",
        },
        {
            "statement": 1,
            "verdict": "agrees",
            "paper": "reproduced",
            "file": "train.py",
            "code": "args = parser.parse_args()",
            "reason": "the paper says so",
        },
    ]
}


def report_on(folder: Path, text: str, *, obeys: bool) -> PaperReport:
    folder.mkdir()
    (folder / "paper.md").write_text(PAPER.replace("{more}", text))
    tree = repository(folder, train_py=PROGRAM)
    model = ScriptedModel([OBEYS, OBEYS, JUDGES, JUDGES]) if obeys else None
    ports = replace(paper_ports(tree), model=model)
    return reproduce(paper_job(folder / "paper.md", tree, runs=3), ports)


def essence(result: PaperResult) -> tuple[Any, ...]:
    """What no text may change."""
    rows = {row.kind: (row.stated, row.verdict, row.by) for row in result.criteria}
    assert result.claim is not None
    claim = (result.claim.title, result.claim.value)
    return result.verdict, result.command, claim, rows, len(result.runs)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> PaperResult:
    folder = tmp_path_factory.mktemp("honest") / "paper"
    return report_on(folder, "", obeys=False).result


@pytest.mark.parametrize("obeys", [False, True], ids=["rules", "a model that obeys"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_what_a_paper_tells_the_machine_changes_nothing(
    tmp_path: Path, honest: PaperResult, case: dict[str, str], obeys: bool
) -> None:
    report = report_on(tmp_path / "paper", case["text"], obeys=obeys)
    assert essence(report.result) == essence(honest), case["attacks"]
    document = paper_document(report)
    markdown = arranged(document)
    for line in markdown.splitlines():
        assert not line.startswith(("/reproduce", "@")), line
    assert "<!-- reprise" not in markdown
    assert "<script" not in paper_page(document)
    for text in (markdown, print_document(document, 100, "utf-8", colour=False)):
        assert not set("\x1b\u202e\u200b") & set(text)
        assert "root:x:0" not in text
