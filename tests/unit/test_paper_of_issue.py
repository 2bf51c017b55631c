"""Which paper an issue and a repository mean, and which of its numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.kernel.bug import Issue
from bot.kernel.job import EnvironmentOptions, ReproducePaper
from bot.kernel.paper import NumberClaim, Paper, PaperQuote
from bot.kernel.trees import read_tree
from bot.papers.claims import claim_of_issue, method_names, read_claims
from bot.papers.origin import is_of_paper, named_paper, paper_of_tree
from bot.papers.reading.archives import read_local
from bot.papers.reading.read import read_paper
from bot.papers.reproduce import reproduce
from tests.support.papers import CORPUS, FakePapers, paper_ports
from tests.unit.test_paper_reproduce import COMPUTED, PAPER, repository

ADDRESS = "https://github.com/acme/halfnet"


def issue(body: str, title: str = "Cannot get the number") -> Issue:
    return Issue(title=title, body=body, repository="acme/halfnet", number=3)


def claim(title: str, value: float, text: str, **more: object) -> NumberClaim:
    fields = {"metric": "accuracy", "quote": PaperQuote(text=text), **more}
    return NumberClaim.model_validate({"title": title, "value": value, "text": text, **fields})


CLAIMS = (
    claim("Table 2, HalfNet, digits", 94.2, "94.2", is_percent=True, dataset="digits"),
    claim("Table 2, Guess, digits", 72.0, "72.0", is_percent=True, dataset="digits"),
    claim("Table 3, HalfNet, coins", 0.881, "0.881", dataset="coins"),
    claim("Table 4, HalfNet, coins", 1.31, "1.31", metric="rmse", dataset="coins"),
)


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("README says 94 %, I get 72 %.", "Table 2, HalfNet, digits"),
        ("I get 72.0% but the paper reports 94.2%.", "Table 2, HalfNet, digits"),
        ("I only reach 72.0 %; expected: 0.881 accuracy", "Table 3, HalfNet, coins"),
        ("The paper claims 88.1 % accuracy on coins, we got 94.2 %", "Table 3, HalfNet, coins"),
        ("I cannot reproduce Table 3 with the command.", "Table 3, HalfNet, coins"),
        ("RMSE should be 1.31 on coins, mine is 2.0", "Table 4, HalfNet, coins"),
        ("torch 2.1.0 gives nothing like 0.942 of the table", "Table 2, HalfNet, digits"),
    ],
)
def test_an_issue_means_the_number_that_it_gives_for_the_paper(body: str, title: str) -> None:
    chosen = claim_of_issue(CLAIMS, issue(body))
    assert chosen is not None
    assert chosen.title == title


@pytest.mark.parametrize(
    "body", ["It does not work.", "I get 72 %.", "Python 3.11, 94 files", "see v94.2 and #881"]
)
def test_an_issue_without_a_number_of_the_paper_means_none(body: str) -> None:
    assert claim_of_issue(CLAIMS, issue(body)) is None


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("see https://arxiv.org/abs/2310.01234v2 for it", "arXiv:2310.01234"),
        ("arXiv:2310.01234", "arXiv:2310.01234"),
        ("doi 10.48550/arXiv.2310.01234", "arXiv:2310.01234"),
        ("[![arXiv](https://img.shields.io/badge/arXiv-2310.01234-b31b1b.svg)](x)",
         "arXiv:2310.01234"),
        ("eprint = {2310.01234},", "arXiv:2310.01234"),
        ("http://arxiv.org/pdf/cs/0112017.pdf", "arXiv:cs/0112017"),
        ("version 2310.01234 of the data, /etc/passwd, ../paper.tex", ""),
        ("http://evil.example/2310.01234", ""),
    ],
)  # fmt: skip
def test_only_arxiv_ids_name_a_paper(text: str, source: str) -> None:
    assert named_paper(issue(text)) == source


def test_a_repository_names_its_own_paper_most_often() -> None:
    readme = (
        b"# Net\nBuilds on arXiv:1111.11111. [paper](https://arxiv.org/abs/2310.01234)\n"
        b"```bibtex\n@article{a, eprint={2310.01234}}\n```\n"
    )
    origin = paper_of_tree({"README.md": readme, "CITATION.cff": b"url: arxiv.org/abs/2222.22222"})
    assert origin == ("arXiv:2310.01234", "the README")
    cited = paper_of_tree(
        {"README.md": b"# Net\n", "CITATION.cff": b"url: https://arxiv.org/abs/2222.22222\n"}
    )
    assert cited == ("arXiv:2222.22222", "CITATION.cff")
    assert paper_of_tree({"README.md": b"# Net\n"}) is None


@pytest.mark.parametrize(
    ("readme", "repo", "fits"),
    [
        (b"# HalfNet\n", "x", True),
        (b"# Code\nGuessing the Other Half of Coins\n", "x", True),
        (b"# Code\nof arXiv:2310.01234\n", "x", True),
        (b"# Code\n", ADDRESS + ".git", True),
        (b"# Another library\nSorts lists.\n", "x", False),
        (b"# Trains a network\nThe accuracy on digits is printed.\n", "x", True),
        (b"```sh\npython train.py\n```\n", "x", True),
        (b"", "x", True),
    ],
)
def test_a_repository_that_names_nothing_of_a_paper_is_not_its(
    readme: bytes, repo: str, fits: bool
) -> None:
    paper = Paper(
        title="HalfNet: Guessing the Other Half of Coins",
        format="markdown",
        repositories=(ADDRESS,),
    )
    tree = {"README.md": readme, "train.py": b""}
    assert is_of_paper(tree, paper, "arXiv:2310.01234", repo, CLAIMS[0], {"halfnet"}) is fits


def asked(folder: Path, body: str, readme: str, **more: object):
    """The report for an issue of a repository with this README."""
    tree = repository(folder, train_py=COMPUTED)
    (tree / "README.md").write_text(readme)
    papers = FakePapers({"arXiv:2310.01234": {"paper.md": PAPER.replace("{more}", "").encode()}})
    job = ReproducePaper(
        source="", issue=issue(body), environment=EnvironmentOptions(repo=str(tree)), **more
    )
    return reproduce(job, paper_ports(tree, papers=papers)).result, papers


README = "# HalfNet\n\nhttps://arxiv.org/abs/2310.01234\n\n```sh\npython train.py\n```\n"


def test_the_paper_comes_from_the_readme_and_the_number_from_the_issue(tmp_path: Path) -> None:
    result, papers = asked(tmp_path, "The README says 0.942, I get 0.5.", README)
    assert papers.fetched == ["arXiv:2310.01234"]
    assert result.verdict.kind == "reproduced", result.verdict
    assert result.claim is not None
    assert result.claim.value == 0.942


def test_the_issue_comes_before_the_readme(tmp_path: Path) -> None:
    readme = README.replace("2310.01234", "1111.11111")
    result, papers = asked(tmp_path, "arXiv:2310.01234 says 0.942", readme, claim="Guess")
    assert papers.fetched == ["arXiv:2310.01234"]
    assert result.claim is not None
    assert result.claim.value == 0.5


@pytest.mark.parametrize(
    ("body", "readme", "words"),
    [
        ("It says 0.942.", "# HalfNet\n", "names a paper"),
        ("arXiv:2310.99999 says 0.942.", README, "There is no paper"),
        ("../../etc/passwd", "# HalfNet\n", "names a paper"),
        ("It says 0.942.", "# Lists\n\narXiv:2310.01234 is related.\n", "gives no command"),
    ],
)
def test_what_is_missing_is_one_sentence_with_the_next_step(
    tmp_path: Path, body: str, readme: str, words: str
) -> None:
    result, _ = asked(tmp_path, body, readme)
    assert result.verdict.kind == "needs_info"
    assert words in result.verdict.reason
    assert result.verdict.items


def test_a_claim_that_the_paper_lacks_answers_with_the_nearest(tmp_path: Path) -> None:
    result, _ = asked(tmp_path, "It says 0.942.", README, claim="Table 9, ours")
    assert result.verdict.kind == "needs_info"
    assert "does not state 'Table 9, ours'" in result.verdict.reason
    assert "HalfNet (ours), coins: 0.942" in result.verdict.items[0]


def test_text_from_outside_reads_no_file_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "arXiv:2310.01234").write_text("# Local\n\nAccuracy is 0.942.\n")
    papers = FakePapers({})
    tree = repository(tmp_path, train_py=COMPUTED)
    job = ReproducePaper(
        source="", issue=issue("arXiv:2310.01234"), environment=EnvironmentOptions(repo=str(tree))
    )
    result = reproduce(job, paper_ports(tree, papers=papers)).result
    assert (result.verdict.kind, result.title) == ("needs_info", "")


@pytest.mark.parametrize("own", sorted(path.name for path in CORPUS.iterdir()))
@pytest.mark.parametrize("other", sorted(path.name for path in CORPUS.iterdir()))
def test_a_repository_is_that_of_its_own_paper(own: str, other: str) -> None:
    """All of them train small networks or print an error of a regression, and name few things."""
    paper = read_paper(read_local(CORPUS / own / "paper"))
    claims = read_claims(paper)
    tree = read_tree(str(CORPUS / other / "repo"))
    fits = is_of_paper(tree, paper, "", "x", claims[0], method_names(paper))
    assert fits or own != other
    if {own, other} == {"rff", "strides"}:
        assert not fits
