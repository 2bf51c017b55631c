"""The number of a paper that an issue means: "the README says 94 %, I get 72 %"."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bot.kernel.bug import Issue
from bot.kernel.paper import NumberClaim
from bot.papers.numbers import METRIC, metric_in

_LONGEST = 20_000
_CLAUSE = re.compile(
    r"[;\n]|[.!?,:](?=\s|$)|\s[-–—]\s|"
    r"\b(?:but|while|whereas|however|instead of|rather than|vs\.?)\b",
    re.IGNORECASE,
)
_PAPERS = re.compile(
    r"\b(?:paper|readme|table|tab\.|report(?:s|ed)?|claim(?:s|ed)?|states?|stated|publish(?:ed)?|"
    r"authors?|expect(?:ed)?|should|supposed|says?|instead of)\b",
    re.IGNORECASE,
)
_READERS = re.compile(
    r"\b(?:i|we|my|mine)\b.{0,30}?\b(?:get|got|obtain(?:ed)?|see|saw|reach(?:ed)?|have|run|only|"
    r"result)|\b(?:get|getting|got|obtain(?:ed)?|only) ",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"(?<![\w./-])(?P<value>\d{1,6}(?:\.\d{1,6})?)(?:\s*(?P<percent>%|percent\b))?(?![\w%]|\.\d)"
)
_TABLE = re.compile(r"\b(?:table|tab\.?)\s*(\d{1,3})\b", re.IGNORECASE)
_MOST_VALUES = 60


class StatedNumber(NamedTuple):
    """A number of an issue. `weight` is 2 where the words around it are about the paper, 0 where
    they are about the reader's own run.
    """

    value: float
    decimals: int
    is_percent: bool
    weight: int


def claim_of_issue(claims: Sequence[NumberClaim], issue: Issue) -> NumberClaim | None:
    """The claim that an issue is about: by a number that it repeats, then by the table, the data
    set, the method and the metric that it names; None where it repeats none and names no table.
    """
    text = f"{issue.title}\n{issue.body[:_LONGEST]}"
    numbers = list(_numbers(text))
    tables = set(_TABLE.findall(text))
    best, most = None, 0
    for claim in claims:
        value = max((row.weight for row in numbers if _repeats(row, claim)), default=0)
        table = re.match(r"Table (\d+)", claim.title)
        is_named = table is not None and table[1] in tables
        score = 10 * value + 6 * is_named
        if not score:
            continue
        score += sum(_mentions(text, words) for words in (claim.dataset, claim.method))
        score += metric_in(text) == claim.metric
        if score > most:
            best, most = claim, score
    return best


def _numbers(text: str) -> Iterator[StatedNumber]:
    """The numbers that may be results, each with what its own clause says of it."""
    count = 0
    for clause in _clauses(text):
        for match in _VALUE.finditer(clause):
            decimals = len(match["value"].partition(".")[2])
            if not (decimals or match["percent"] or re.search(METRIC, clause, re.IGNORECASE)):
                continue
            weight = 2 if _PAPERS.search(clause) else 0 if _READERS.search(clause) else 1
            count += 1
            if count > _MOST_VALUES:
                return
            yield StatedNumber(float(match["value"]), decimals, bool(match["percent"]), weight)


def _clauses(text: str) -> Iterator[str]:
    start = 0
    for match in _CLAUSE.finditer(text):
        yield text[start : match.start()]
        # What a word opens belongs to the clause after it.
        start = match.start() if match[0][:1].isalpha() else match.end()
    yield text[start:]


def _repeats(stated: StatedNumber, claim: NumberClaim) -> bool:
    """Whether a number of an issue is that of a claim, as far as the issue writes it out."""
    values = [claim.value]
    if stated.is_percent and not claim.is_percent:
        values.append(100 * claim.value)
    if claim.is_percent and not stated.is_percent and stated.value <= 1:
        values.append(claim.value / 100)
    return any(
        abs(round(value, stated.decimals) - stated.value) < 1e-9
        or abs(value - stated.value) < 0.5 * 10.0**-stated.decimals
        for value in values
    )


def _mentions(text: str, words: str) -> bool:
    plain = re.sub(r"\(ours?\)|\W+", " ", words).strip().lower()
    return len(plain) > 2 and plain in re.sub(r"\W+", " ", text).lower()
