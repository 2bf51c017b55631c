"""Which paper an issue or a repository is about, and whether a repository is that of a paper."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from bot.kernel.bug import Issue
from bot.kernel.paper import NumberClaim, Paper
from bot.kernel.trees import Tree
from bot.papers.numbers import metric_in
from bot.papers.repository import readme_of

_ID = r"(?P<id>\d{4}\.\d{4,5}|[a-z-]{2,12}(?:\.[A-Z]{2})?/\d{7})(?:v\d{1,2})?(?![\w/])"
_ARXIV = re.compile(
    rf"(?:arxiv\.org/(?:abs|pdf|html|e-print|src)/|\barxiv[-:.\s]\s?){_ID}", re.IGNORECASE
)
_EPRINT = re.compile(rf"\beprint\s*=\s*[{{\"]\s*{_ID}", re.IGNORECASE)
"""The field of a BibTeX entry."""
_CITATION = re.compile(r"citation(?:\.(?:cff|bib|md|txt))?", re.IGNORECASE)
_LONGEST = 400_000
_README = re.compile(r"readme|citation", re.IGNORECASE)
_TEXTS = (".md", ".rst", ".txt", ".py", ".cff", ".bib", ".toml", ".yaml", ".yml", ".json", ".ipynb")
_USUAL = {
    "the", "and", "for", "with", "from", "via", "using", "towards", "toward", "learning", "deep",
    "neural", "network", "networks", "model", "models", "method", "methods", "training", "data",
    "paper", "approach",
}  # fmt: skip
_MOST_NAMES, _LEAST_WORDS = 40, 3
_WORD = re.compile(r"[A-Za-z]{3,}")
_FENCE = re.compile(
    r"^[^\S\n]*(`{3,}|~{3,}).*?(?:^[^\S\n]*\1|\Z)|^ {4}[^\n]*$", re.DOTALL | re.MULTILINE
)


class NamedPaper(NamedTuple):
    """A paper by its arXiv id, as a source of papers takes it, and what names it."""

    source: str
    where: str


def named_paper(issue: Issue | None) -> str:
    """The paper whose arXiv id an issue gives, "" for none."""
    text = f"{issue.title}\n{issue.body[:_LONGEST]}" if issue is not None else ""
    return next(arxiv_ids(text), "")


def paper_of_tree(tree: Tree) -> NamedPaper | None:
    """The paper that the README or the citation file of a repository names. Of several in one file
    it is the one that is named most often: a repository cites its own in a badge and in BibTeX.
    """
    citations = sorted(path for path in tree if _CITATION.fullmatch(path))
    texts = [(path, tree[path][:_LONGEST].decode("utf-8", "replace")) for path in citations]
    for where, text in (("the README", readme_of(tree)), *texts):
        counts = Counter(arxiv_ids(text))
        if counts:
            return NamedPaper(max(counts, key=lambda name: counts[name]), where)
    return None


def arxiv_ids(text: str) -> Iterator[str]:
    """The arXiv ids that a text gives, each as a source of papers takes it."""
    matches = [*_ARXIV.finditer(text), *_EPRINT.finditer(text)]
    yield from (f"arXiv:{row['id']}" for row in sorted(matches, key=lambda row: row.start()))


def is_of_paper(
    tree: Tree, paper: Paper, source: str, repo: str, claim: NumberClaim | None, names: set[str]
) -> bool:
    """Whether anything says that a repository is that of a paper: the paper gives its address, or
    its files have the paper's id, most words of its title, the name of its method, or the claim's
    data set with its metric. A README of hardly a word says nothing against it.
    """
    readme = readme_of(tree)
    says = _WORD.findall(_FENCE.sub(" ", readme))
    if len(says) < _LEAST_WORDS or _address(repo) in {_address(url) for url in paper.repositories}:
        return True
    text = _all_text(tree)
    identity = next(arxiv_ids(source), "")
    if identity and identity in set(arxiv_ids(text)):
        return True
    words = set(re.findall(r"[a-z0-9]{3,}", paper.title.lower())) - _USUAL
    is_titled = 2 * sum(word in text for word in words) > len(words) or not words
    plain = re.sub(r"[^a-z0-9]", "", text)
    own = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in sorted(names)[:_MOST_NAMES]]
    is_named = any(len(name) > 2 and name in plain for name in own)
    return is_titled or is_named or _is_claimed(claim, text)


def _is_claimed(claim: NumberClaim | None, text: str) -> bool:
    """Whether a text has the data set of a claim and its metric."""
    words = re.findall(r"[a-z0-9]{3,}", claim.dataset.lower()) if claim is not None else []
    return (
        claim is not None
        and bool(words)
        and all(word in text for word in words)
        and claim.metric in {metric_in(line) for line in text.splitlines()}
    )


def _all_text(tree: Tree) -> str:
    """The names of the files of a repository, and what stands in its texts and programs."""
    parts, room = sorted(tree), _LONGEST
    for path in sorted(tree, key=lambda path: (not _README.search(path), path.count("/"), path)):
        if room > 0 and path.lower().endswith(_TEXTS):
            parts.append(tree[path][:room].decode("utf-8", "replace"))
            room -= len(tree[path])
    return "\n".join(parts).lower()


def _address(url: str) -> str:
    plain = re.sub(r"^(?:https?://|git@)(?:www\.)?|\.git/?$|/+$", "", url.strip().lower())
    return plain.replace(":", "/")
