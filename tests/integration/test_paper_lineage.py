"""What a paper leaves open to a cited work whose repository a git server has: fetched by git's own
protocol, with the real builder.
"""

from __future__ import annotations

from pathlib import Path

from bot.app import bootstrap
from bot.kernel.paper import Criterion
from bot.kernel.session import Session
from bot.kernel.settings import Settings
from bot.papers.claims import choose_claim, read_claims
from bot.papers.criteria import read_criteria
from bot.papers.lineage import add_lineage
from bot.papers.reading.archives import read_local
from bot.papers.reading.read import read_paper
from sandbox.process import ProcessSandbox
from tests.support.engine import ListListener, MemoryJournal
from tests.support.git_http import GitServer
from tests.support.papers import CORPUS, paper_job

RFF = CORPUS / "rff"


def criteria(folder: Path, repository: str) -> tuple[dict[str, Criterion], list[str]]:
    """The criteria of the paper that leaves details to [rahimi], and the notes on the way."""
    ports = bootstrap.make_ports(
        Settings(cache_dir=folder / "cache"), sandbox=ProcessSandbox(), journal=MemoryJournal(),
        listener=ListListener(), own_paths=True,
    )  # fmt: skip
    job = paper_job(RFF / "paper", None, cited={"rahimi": repository})
    session = Session.begin(job, ports)
    paper = read_paper(read_local(RFF / "paper"))
    claims = read_claims(paper)
    claim = choose_claim(claims, "")
    rows = add_lineage(paper, claim, read_criteria(paper, claims, claim), session)
    return {row.kind: row for row in rows}, [note.text for note in session.notes]


def test_the_repository_of_a_cited_work_is_fetched_and_tells_what_is_open(tmp_path: Path) -> None:
    with GitServer(tmp_path / "served") as server:
        address = server.publish(RFF / "cited" / "rahimi")
        rows, notes = criteria(tmp_path, address)
    assert notes == []
    inherited = {kind: row.inherited for kind, row in rows.items() if row.inherited is not None}
    assert {kind: (value.value, value.where) for kind, value in inherited.items()} == {
        "learning_rate": ("0.05", "train.py:16"),
        "batch_size": ("16", "train.py:17"),
        "epochs": ("60", "train.py:18"),
    }
    assert {value.source for value in inherited.values()} == {address}
    assert {rows[kind].verdict for kind in inherited} == {"open"}
    assert "/rahimi.git/git-upload-pack" in server.requests


def test_a_server_that_is_gone_or_has_no_such_repository_is_noted(tmp_path: Path) -> None:
    with GitServer(tmp_path / "served") as server:
        address = server.publish(RFF / "cited" / "rahimi")
        missing, missing_notes = criteria(tmp_path / "a", address.replace("rahimi", "nobody"))
    gone, gone_notes = criteria(tmp_path / "b", address)
    for rows, notes in ((missing, missing_notes), (gone, gone_notes)):
        assert not any(row.inherited for row in rows.values())
        assert [
            note.startswith("the code of the cited work [rahimi] cannot be read: ")
            for note in notes
        ] == [True]
