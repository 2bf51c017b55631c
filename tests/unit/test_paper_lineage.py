"""What a paper leaves open, in the works that it cites: which of them are looked into, what they have,
and that nothing else is reached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.kernel.bug import Issue
from bot.kernel.paper import (
    Criterion,
    Paper,
    PaperFiles,
    PaperReference,
    PaperSection,
    PaperSentence,
)
from bot.kernel.report import PaperReport
from bot.papers.lineage import related_works
from bot.papers.reading.read import read_paper
from bot.papers.reproduce import reproduce
from bot.papers.sections import paper_document
from bot.report.comment import arranged
from tests.support.papers import CORPUS, FakePapers, in_tree, paper_job, paper_ports

TRAINS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--batch-size", type=int, default=8)
args = parser.parse_args()
print(args.lr, args.epochs)
"""
OPEN = Criterion(kind="epochs", name="epochs", cited="smith", verdict="open")
CITED = b"""# Waves

## Training

We train with a learning rate of 0.02 and a batch size of 16.

Table 1: RMSE on Friedman.

| Method | Friedman |
|---|---|
| Waves (ours) | 3.1 |
"""


def reference(key: str, text: str = "A Title", url: str = "") -> PaperReference:
    return PaperReference(key=key, text=text, url=url)


def a_paper(*references: PaperReference, **counts: int) -> Paper:
    """A paper whose experiments cite each work so often."""
    keys = [key for key, count in counts.items() for _ in range(count)]
    sentences = tuple(
        PaperSentence(id=f"S1.{at}", text="We train it.", cites=(key,))
        for at, key in enumerate(keys)
    )
    section = PaperSection(id="S1", title="Experiments")
    return Paper(
        format="latex", sections=(section,), sentences=sentences, references=references
    )  # fmt: skip


def keys_of(paper: Paper, *criteria: Criterion, **at_hand: str) -> list[str]:
    return [work.key for work in related_works(paper, None, criteria, at_hand)]


def test_what_details_are_left_to_comes_first_and_three_are_taken() -> None:
    url = "https://github.com/a/b"
    names = ("a", "b", "c", "d", "smith")
    paper = a_paper(*(reference(key, url=url) for key in names), a=1, b=4, c=3, d=2, smith=1)
    assert keys_of(paper, OPEN) == ["smith", "b", "c"]
    assert keys_of(paper) == ["b", "c", "d"]


def test_what_everybody_cites_counts_only_where_details_are_left_to_it() -> None:
    adam = reference("smith", "Adam: A Method for Stochastic Optimization. arXiv:1412.6980")
    paper = a_paper(adam, smith=5)
    assert keys_of(paper) == []
    assert keys_of(paper, OPEN) == ["smith"]


@pytest.mark.parametrize(
    "url",
    [
        "http://github.com/a/b", "https://10.0.0.1/a/b", "https://localhost/a/b", "file:///etc/x",
        "https://github.com.evil.org/a/b", "https://github.com/a", "https://evil@internal/a/b",
    ],
)  # fmt: skip
def test_a_reference_leads_to_known_hosts_only(url: str) -> None:
    assert keys_of(a_paper(reference("smith", url=url), smith=2), OPEN) == []
    known = reference("smith", url="https://gitlab.com/a/b")
    assert keys_of(a_paper(known, smith=2), OPEN) == ["smith"]
    assert keys_of(a_paper(reference("smith", url=url), smith=2), OPEN, smith="/a/clone") == [
        "smith"
    ]


def look(folder: Path, papers: FakePapers | None = None, key: str = "", **more: Any) -> PaperReport:
    """The report of the paper that leaves details to [rahimi]."""
    ports = replace(paper_ports(CORPUS / "rff" / "repo"), **more.pop("ports", {}))
    source: Any = CORPUS / "rff" / "paper"
    if papers is not None:
        ports, source = replace(ports, papers=papers), "here"
    job = paper_job(source, CORPUS / "rff" / "repo", runs=1, **more)
    return reproduce(job, ports)


def inherited(report: PaperReport) -> dict[str, tuple[str, str]]:
    rows = ((row.kind, row.inherited) for row in report.result.criteria)
    return {kind: (value.value, value.where) for kind, value in rows if value is not None}


def test_a_repository_that_is_given_tells_what_is_open(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    report = look(tmp_path, cited={"rahimi": str(tmp_path)}, ports={"builder": in_tree(None)})
    assert inherited(report) == {
        "learning_rate": ("0.05", "train.py:4"), "epochs": ("60", "train.py:5"),
    }  # fmt: skip
    rows = {row.kind: row for row in report.result.criteria}
    assert (rows["epochs"].verdict, rows["epochs"].stated) == ("open", "")
    text = arranged(paper_document(report), elsewhere="here")
    assert "the paper refers to \\[rahimi\\], which has 60 (`train.py:5`)" in text


def with_arxiv() -> dict[str, bytes]:
    """The paper, with an arXiv id in its bibliography."""
    folder = CORPUS / "rff" / "paper"
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    files["references.bib"] = files["references.bib"].replace(
        b"year = {2007}", b"year = {2007}, eprint = {2007.01234}, archivePrefix = {arXiv}"
    )
    return files


def test_the_paper_of_a_cited_work_tells_what_is_open(tmp_path: Path) -> None:
    papers = FakePapers({"here": with_arxiv(), "arXiv:2007.01234": {"paper.md": CITED}})
    report = look(tmp_path, papers)
    assert inherited(report) == {"learning_rate": ("0.02", "S1.1"), "batch_size": ("16", "S1.1")}
    assert papers.fetched == ["here", "arXiv:2007.01234"]


def test_a_work_that_cannot_be_reached_is_said_and_changes_nothing(tmp_path: Path) -> None:
    papers = FakePapers({"here": with_arxiv()})
    report = look(tmp_path, papers)
    assert inherited(report) == {}
    assert (
        "the paper of the cited work [rahimi] cannot be read: There is no paper arXiv:2007.01234."
        in [note.text for note in report.notes]
    )
    assert report.result.runs


def test_on_an_issue_nothing_but_its_paper_is_fetched(tmp_path: Path) -> None:
    papers = FakePapers({"here": with_arxiv(), "arXiv:2007.01234": {"paper.md": CITED}})
    issue = Issue(title="Cannot reproduce", body="The RMSE is 3.")
    look(tmp_path, papers, issue=issue)
    assert papers.fetched == ["here"]


def test_an_eprint_is_a_part_of_its_reference() -> None:
    paper = read_paper(PaperFiles(name="x", files=with_arxiv()))
    texts = {row.key: row.text for row in paper.references}
    assert texts["rahimi"].endswith("2007. arXiv:2007.01234")
    assert "arXiv" not in texts["friedman"]
