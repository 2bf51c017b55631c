"""The contract of a source of papers, held by files, by arXiv over a server of this machine, and by
the fake alike.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from bot.app.paper_sources import ArxivPapers, LocalPapers, PaperSources, arxiv_id
from bot.kernel.errors import Stopped, TransientError, UserError
from bot.kernel.ports import Papers
from tests.support.arxiv import Arxiv, local_arxiv, packed
from tests.support.papers import FakePapers

SOURCE = b"\\documentclass{article}\\begin{document}\\section{A} One sentence.\\end{document}"
NAME = "2310.01234"


@pytest.fixture
def arxiv(tmp_path: Path) -> Iterator[ArxivPapers]:
    with local_arxiv({f"/e-print/{NAME}": (200, packed({"main.tex": SOURCE}))}) as url:
        yield ArxivPapers(tmp_path / "papers", url, gap_s=0.5)


@pytest.fixture(params=["local", "arxiv", "fake"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, arxiv: ArxivPapers
) -> tuple[Papers, str, str]:
    """A source of papers, a paper that it has, and one that it has not."""
    if request.param == "arxiv":
        return arxiv, NAME, "2310.99999"
    if request.param == "fake":
        return FakePapers({"one": {"main.tex": SOURCE}}), "one", "two"
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "main.tex").write_bytes(SOURCE)
    return LocalPapers(), str(tmp_path / "paper"), str(tmp_path / "none")


def test_a_paper_comes_with_its_files(world: tuple[Papers, str, str]) -> None:
    papers, source, _ = world
    assert papers.fetch(source).files == {"main.tex": SOURCE}
    assert papers.fetch(source) == papers.fetch(source)


def test_a_paper_that_is_not_there_is_a_user_error_with_the_next_step(
    world: tuple[Papers, str, str],
) -> None:
    papers, _, missing = world
    with pytest.raises(UserError) as caught:
        papers.fetch(missing)
    assert caught.value.fix


def test_a_stopped_fetch_raises_stopped(world: tuple[Papers, str, str]) -> None:
    papers, source, _ = world
    flag = Event()
    flag.set()
    with pytest.raises(Stopped):
        papers.fetch(source, cancel=flag)


def test_arxiv_is_asked_once_for_a_paper_and_in_turns(arxiv: ArxivPapers) -> None:
    Arxiv.answers["/e-print/2310.00001"] = (200, gzip.compress(SOURCE))
    arxiv.fetch(f"arXiv:{NAME}")
    arxiv.fetch(f"https://arxiv.org/abs/{NAME}")
    assert arxiv.fetch("2310.00001").files == {"arXiv-2310.00001.tex": SOURCE}
    assert [path for path, _, _ in Arxiv.asked] == [f"/e-print/{NAME}", "/e-print/2310.00001"]
    assert all(agent.startswith("reprise/") for _, agent, _ in Arxiv.asked)
    assert Arxiv.asked[1][2] - Arxiv.asked[0][2] > 0.4


def test_html_is_taken_where_there_is_no_source(arxiv: ArxivPapers) -> None:
    page = b"<!doctype html><html><body><h1>A</h1><p>One sentence.</p></body></html>"
    Arxiv.answers["/html/cs/0112017"] = (200, page)
    assert list(arxiv.fetch("cs/0112017").files) == ["arXiv-cs_0112017.html"]


@pytest.mark.parametrize(("status", "words"), [(429, "asks to wait"), (503, "status 503")])
def test_an_arxiv_that_fails_may_be_asked_again(
    arxiv: ArxivPapers, status: int, words: str
) -> None:
    Arxiv.answers[f"/e-print/{NAME}"] = (status, b"")
    with pytest.raises(TransientError, match=words) as caught:
        arxiv.fetch(NAME)
    assert "pass the file" in caught.value.fix


def test_an_arxiv_out_of_reach_says_what_to_do(tmp_path: Path) -> None:
    papers = ArxivPapers(tmp_path, "http://127.0.0.1:9", gap_s=0.0)
    with pytest.raises(TransientError, match="cannot be reached") as caught:
        papers.fetch(NAME)
    assert "pass the file" in caught.value.fix


def test_a_path_comes_before_an_id_and_no_other_address_is_fetched(
    tmp_path: Path, arxiv: ArxivPapers, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = PaperSources(arxiv)
    monkeypatch.chdir(tmp_path)
    Path(NAME).write_bytes(SOURCE)
    assert sources.fetch(NAME).name == NAME
    assert not Arxiv.asked
    with pytest.raises(UserError, match="Only addresses of arXiv"):
        sources.fetch("http://169.254.169.254/latest")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("2310.01234", "2310.01234"),
        ("arXiv:2310.01234v2", "2310.01234v2"),
        ("https://arxiv.org/pdf/2310.01234.pdf", "2310.01234"),
        ("https://arxiv.org/abs/cs/0112017", "cs/0112017"),
        ("paper.tex", ""),
        ("https://example.com/2310.01234", ""),
        ("../2310.01234", ""),
    ],
)
def test_an_id_is_read_from_its_usual_forms(source: str, name: str) -> None:
    assert arxiv_id(source) == name
