"""What a paper leaves open, in the works that it builds on: at most three references, their papers
by the source of papers and their repositories by git.

What such a work states or has is no statement of the paper: it stands beside what is open, with
where it comes from. Nothing of it is run.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from bot.environment import specify
from bot.kernel.attempt import Script
from bot.kernel.errors import RepriseError, Stopped
from bot.kernel.outside_text import clip, one_line
from bot.kernel.paper import Criterion, InheritedValue, NumberClaim, Paper, PaperReference
from bot.kernel.trees import Tree, read_tree
from bot.papers.claims import choose_claim, read_claims
from bot.papers.criteria import is_elsewhere, read_criteria
from bot.papers.criterion_kinds import UNREAD
from bot.papers.located import deciding, locate
from bot.papers.origin import arxiv_ids
from bot.papers.reading.read import read_paper
from bot.papers.repository import choose_program
from bot.papers.runs import PaperSession

MOST_WORKS = 3
_HOSTS = {"github.com", "www.github.com", "gitlab.com", "codeberg.org", "bitbucket.org"}
"""A paper is a stranger's: its references lead nowhere else."""
_UBIQUITOUS = re.compile(
    r"\badam\b|stochastic optimi[sz]ation|batch normali[sz]ation|layer normali[sz]ation|dropout:|"
    r"deep residual learning|attention is all you need|imagenet|pytorch|tensorflow|scikit-?learn|"
    r"\bcifar\b|multiple layers of features|gradient-based learning applied to document|"
    r"\bnumpy\b|\bscipy\b|\bjax\b|understanding the difficulty of training|delving deep into",
    re.IGNORECASE,
)
_STARTS = re.compile(r"(?:train|main|run)\w*\.py")
_LEFT_TO, _BASELINE = 10, 5


class RelatedWork(NamedTuple):
    """A cited work, and where its paper and its code can be had; "" for nowhere."""

    key: str
    paper: str
    repository: str


def add_lineage(
    paper: Paper, claim: NumberClaim | None, criteria: Sequence[Criterion], session: PaperSession
) -> tuple[Criterion, ...]:
    """The criteria that are open with what cited works state or have. A work that cannot be
    reached is noted. Raises Stopped.
    """
    if not any(row.verdict == "open" for row in criteria) or session.job.issue is not None:
        return tuple(criteria)
    works = list(related_works(paper, claim, criteria, session.job.cited))
    rows = list(criteria)
    for work in works:
        kinds = {row.kind for row in rows if row.verdict == "open" and row.inherited is None}
        if not kinds:
            break
        with session.stage("fingerprint", f"looking into the cited work [{work.key}]"):
            values = _values(work, session)
        rows = [
            row.model_copy(update={"inherited": values[row.kind]})
            if row.kind in kinds and row.kind in values
            else row
            for row in rows
        ]
    return tuple(rows)


# Which works.


def related_works(
    paper: Paper, claim: NumberClaim | None, criteria: Sequence[Criterion], at_hand: dict[str, str]
) -> Iterator[RelatedWork]:
    """The works that a paper builds on most: those that it leaves open details to, then baselines
    beside the claim, then what its experiment cites most. Those that everybody cites count only
    for the first.
    """
    weights = _weights(paper, claim, criteria)
    references = [row for row in paper.references if weights.get(row.key)]
    works = (
        _reachable(row, at_hand.get(row.key, ""))
        for row in sorted(references, key=lambda row: -weights[row.key])
        if weights[row.key] >= _LEFT_TO or not _UBIQUITOUS.search(row.text)
    )
    yield from [work for work in works if work is not None][:MOST_WORKS]


def _weights(
    paper: Paper, claim: NumberClaim | None, criteria: Sequence[Criterion]
) -> dict[str, float]:
    weights = defaultdict[str, float](float)
    for key in {row.cited for row in criteria if row.cited}:
        weights[key] += _LEFT_TO
    for table in paper.tables:
        if claim is not None and table.id == claim.quote.table:
            cells = " ".join(cell for row in table.rows for cell in row)
            for key in {row.key for row in paper.references if f"[{row.key}" in cells}:
                weights[key] += _BASELINE
    for sentence in paper.sentences:
        if not is_elsewhere(paper.section_of(sentence)):
            for key in sentence.cites:
                weights[key] += 1
    return weights


def _reachable(reference: PaperReference, at_hand: str) -> RelatedWork | None:
    """A work whose paper or code can be had: what a person gave for it, an arXiv id, a repository
    on a known host.
    """
    source = next(iter(arxiv_ids(f"{reference.text} {reference.url}")), "")
    url = reference.url
    is_known = urlsplit(url).hostname in _HOSTS and url.startswith("https://")
    repository = at_hand or (url if is_known and urlsplit(url).path.count("/") >= 2 else "")
    if not source and not repository:
        return None
    return RelatedWork(reference.key, source, repository)


# What they state and have.


def _values(work: RelatedWork, session: PaperSession) -> dict[str, InheritedValue]:
    """What a work states in its paper and, where that says nothing, has in its code."""
    values = dict[str, InheritedValue]()
    for what, reader in (("code", _of_repository), ("paper", _of_paper)):
        try:
            values |= reader(work, session)
        except Stopped:
            raise
        except RepriseError as error:
            reason = clip(one_line(str(error)), 160)
            session.note(f"the {what} of the cited work [{work.key}] cannot be read: {reason}")
    return values


def _of_paper(work: RelatedWork, session: PaperSession) -> dict[str, InheritedValue]:
    ports = session.ports
    if not work.paper or ports.papers is None:
        return {}
    other = read_paper(ports.papers.fetch(work.paper, cancel=ports.cancel), ports.cancel)
    claims = read_claims(other)
    rows = read_criteria(other, claims, choose_claim(claims, ""))
    return {
        row.kind: InheritedValue(
            value=row.stated,
            work=work.key,
            source=work.paper,
            where=(row.quote.sentence or row.quote.table) if row.quote is not None else "",
        )
        for row in rows
        if row.stated
    }


def _of_repository(work: RelatedWork, session: PaperSession) -> dict[str, InheritedValue]:
    if not work.repository:
        return {}
    tree = _tree(work.repository, session)
    script = choose_program(tree, None) or _likely_program(tree)
    if script is None:
        return {}
    sites = locate(script, tree)
    values = dict[str, InheritedValue]()
    for kind in dict.fromkeys(site.kind for site in sites):
        own = deciding(sites, kind)
        if (
            len(own) == 1 and own[0].located.value != UNREAD
        ):  # of several values only a run could say which one counts
            place = own[0].located
            values[kind] = InheritedValue(
                value=place.value, work=work.key, source=work.repository, where=place.at
            )
    return values


def _tree(repository: str, session: PaperSession) -> Tree:
    """The files of a repository, for which nothing is installed."""
    options = session.job.environment.model_copy(update={"repo": repository, "ref": None})
    bare = specify.in_place(specify.for_program(options, ""), options)
    bare = bare.model_copy(update={"requirements": (), "constraints": ()})
    return read_tree(session.build(session.matched(bare)).tree)


def _likely_program(tree: Tree) -> Script | None:
    """The program that a README without a command means: one that trains, nearest to the root."""
    paths = [path for path in tree if _STARTS.fullmatch(PurePosixPath(path).name)]
    path = min(paths, key=lambda path: (path.count("/"), "train" not in path, path), default="")
    if not path:
        return None
    text = tree[path].decode("utf-8", "replace")
    return Script(files={path: text}, entry=path, command=(path,))
