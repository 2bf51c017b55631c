"""`/reproduce paper` end to end: an issue of the paper's repository → the paper from arXiv → the
README's command in a clone → the comment. Everything but GitHub and arXiv is real.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.app import bootstrap
from bot.app.paper_sources import ArxivPapers
from bot.kernel.report import PaperReport
from bot.kernel.settings import load
from bot.products.engine import execute
from sandbox.select import choose
from tests.integration.test_pull_requests import NAME, NUMBER, World
from tests.support.arxiv import local_arxiv, packed
from tests.support.papers import CORPUS
from tests.support.stand_in import GitHubServer

IDENTITY = "2310.01234"
BODY = (
    "The README says it is Table 1 of the paper, where RidgeMix has an RMSE of 2.05.\n\n"
    "I get something else on my machine, numpy 1.26."
)


def files(folder: str) -> dict[str, str]:
    root = CORPUS / "rff" / folder
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_text() for path in paths}


class PaperRepository(World):
    """The repository of one of our own papers, whose README links it."""

    def __init__(self, server: GitHubServer, papers: ArxivPapers) -> None:
        super().__init__(server)
        tree = files("repo")
        tree["README.md"] = f"{tree['README.md']}\n[Paper](https://arxiv.org/abs/{IDENTITY})\n"
        self.commit = server.commit(NAME, tree, datetime(2026, 1, 2, tzinfo=UTC))
        here = self.here.issues[NUMBER]
        here.title, here.body = "Cannot get the RMSE of Table 1", BODY
        self.title = here.title
        self.papers = papers

    def issue(self):
        update = {"title": self.title, "body": BODY, "created_at": datetime(2026, 1, 4, tzinfo=UTC)}
        return super().issue().model_copy(update=update)

    def _engine(self, job: Any, *, journal: Any, listener: Any, cancel: Any, **_: object):
        ports = bootstrap.make_ports(
            load(),
            sandbox=choose("bwrap"), journal=journal, listener=listener, cancel=cancel,
        )  # fmt: skip
        self.job, self.report = job, execute(job, replace(ports, papers=self.papers))
        return self.report


@pytest.mark.index
@pytest.mark.slow
def test_an_issue_of_a_papers_repository_is_answered_with_both_numbers(tmp_path):
    eprint = packed({name: text.encode() for name, text in files("paper").items()})
    with (
        local_arxiv({f"/e-print/{IDENTITY}": (200, eprint)}) as arxiv,
        GitHubServer(echo=False) as server,
    ):
        world = PaperRepository(server, ArxivPapers(tmp_path / "papers", arxiv))
        world.deliver("comment", "paper", sender="passer-by")
        ours = [each.body for each in server.state.ours(NAME, NUMBER)]
        assert len(ours) == 1
        assert "Waiting for approval" in ours[0]
        assert world.commit in ours[0]
        plan = ours[0].partition("/reproduce approve ")[2][:32]
        world.deliver("comment", "approve", argument=plan)
        report, body = world.report, world.sticky()
        assert isinstance(report, PaperReport)
        assert report.verdict.kind == "reproduced", report.verdict
        assert report.environment is not None
        assert report.environment.commit == world.commit
        assert report.result.command == "python train.py --config config.json"
        assert report.result.comparison.gap < 0.05
        assert "**Number reproduced: Table 1, RidgeMix (ours), Friedman**" in body
        assert "the paper's 2.05" in body
        assert f"the paper is arXiv:{IDENTITY}, which the README names" in body.replace(
            "The p", "the p"
        )
        assert server.violations == []
