"""The numbers that a paper claims, read by rules from its tables and sentences: which of them is
the main result, and which one a person means.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from bot.kernel.bug import Issue
from bot.kernel.errors import UserError
from bot.kernel.outside_text import clip
from bot.kernel.paper import NumberClaim, Paper, PaperQuote, PaperSentence, PaperTable
from bot.papers.criterion_kinds import is_settings_table
from bot.papers.numbers import (
    COUNT,
    METRIC,
    NUMBER,
    is_percentage,
    is_share,
    metric_in,
    number,
    read_cell,
    without_metric,
)

_MOST, LONGEST_SENTENCE = 2_000, 1_200
_OURS = re.compile(r"\b(?:ours?|proposed|this (?:work|paper))\b", re.IGNORECASE)
_PROPOSED_NAME = re.compile(
    r"\b(?:propose|introduce|present|call(?:ed)?|name(?:d)?)\s+(?:the\s+|it\s+|our\s+)?([A-Z][\w-]{2,30})"
)
_ACRONYM = re.compile(
    r"\b(?:propose|introduce|present)\b[^.;()]{0,80}\(([A-Z][\w-]{1,20})\)", re.IGNORECASE
)
_TITLED = re.compile(r".*:\s+(?:the\s+)?([A-Za-z]+-\w{1,2})\s+[A-Z]")
"""A name that a title gives after its colon: "Turning Up the Heat: Min-p Sampling for …"."""
_SEEDS = re.compile(
    rf"(?:(?:over|across|of|from|with|on|for)\s+)({COUNT})\s+(?:\w+\s+)?"
    r"(?:seeds|runs|trials|repetitions|repeats|initiali[sz]ations|splits)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"param|time|flops|memory|speed|\bsize\b|epochs?|\blr\b|learning rate|batch|year|seeds?|"
    r"latency|\bfps\b|throughput|^#|\bn\b|samples|features|classes|dim",
    re.IGNORECASE,
)
"""Heads of columns that hold no result."""
_METHOD_HEAD = re.compile(r"method|model|approach|algorithm|system|variant", re.IGNORECASE)
_DATA_HEAD = re.compile(r"data|task|benchmark|corpus|domain", re.IGNORECASE)
_WORDS_FIRST = re.compile(
    rf"(?<![A-Za-z])(?P<metric>{METRIC})(?![A-Za-z])(?P<between>[^.;\d]{{0,40}}?)"
    rf"(?P<value>{NUMBER})\s*(?P<percent>%|percent)?\s*(?:±\s*(?P<spread>{NUMBER})\s*(?P<late>%)?)?",
    re.IGNORECASE,
)
_NUMBER_FIRST = re.compile(
    rf"(?<![\w.])(?P<value>{NUMBER})(?:\s*+(?P<percent>%|percent))?"
    rf"(?:\s*+±\s*+(?P<spread>{NUMBER})(?:\s*+(?P<late>%))?)?"
    rf"(?P<between>\s++(?:[\w-]++\s++){{0,2}}?)(?P<metric>{METRIC})(?![A-Za-z])",
    re.IGNORECASE,
)
_NO_RESULT = re.compile(
    r"\b(?:by|improv\w*|gain\w*|points?|higher|lower|drops?|decreas\w*|increas\w*|than|epochs?|"
    r"batch|rate of|threshold|weight|smoothing|tables?|figures?|fig|sections?|equations?|"
    r"appendix)\b",
    re.IGNORECASE,
)
_SUMMARY = re.compile(r"abstract|conclusion|introduction", re.IGNORECASE)
_BOLD = 0.05
"""Less than an earlier table: bold is the best of its own table alone."""
_ELSEWHERE = re.compile(r"related work|background|prior work", re.IGNORECASE)
_TRAINING_PART = re.compile(r"\btrain(?:ing)?\b|\bval(?:idation)?\b|\bdev\b", re.IGNORECASE)


def read_claims(paper: Paper) -> tuple[NumberClaim, ...]:
    """The numbers of a paper, the main result first."""
    names = method_names(paper)
    tables = [table for table in paper.tables if not is_settings_table(table)]
    of_tables = (claim for table in tables for claim in _of_table(table, names))
    of_sentences = (claim for row in paper.sentences for claim in _of_sentence(row, paper))
    claims = _merged(list(islice(of_tables, _MOST)), list(islice(of_sentences, _MOST)), names)
    return tuple(sorted(claims, key=lambda claim: -claim.weight))


def choose_claim(claims: Sequence[NumberClaim], words: str) -> NumberClaim | None:
    """The claim that words mean, such as "Table 2, ours, digits" or "94 % accuracy"; the main
    result without words. Raises UserError where the paper has no such number.
    """
    if not words.strip():
        return claims[0] if claims else None
    parts = [part.strip().lower() for part in re.split(r"[,;]", words) if part.strip()]
    scores = [(sum(_says(claim, part) for part in parts), -at) for at, claim in enumerate(claims)]
    best, at = max(scores, default=(0, 0))
    if best < len(parts):
        nearest = sorted(range(len(scores)), key=lambda row: scores[row], reverse=True)[:3]
        titles = "; ".join(f"{claims[row].title}: {claims[row].text}" for row in nearest)
        fix = f"The nearest are: {titles}." if titles else "The paper states no number."
        raise UserError(f"The paper does not state {clip(words, 100)!r}.", fix)
    return claims[-at]


def _says(claim: NumberClaim, part: str) -> bool:
    """Whether a part of what a person wrote fits a claim: a table, a value or words of it."""
    if match := re.fullmatch(r"(?:table|tab\.?)\s*(\d{1,3})", part):
        return claim.title.lower().startswith(f"table {match[1]},")
    match = re.search(rf"(?<![\w.])({NUMBER})(?![\w.])", part)
    words = set(re.findall(r"[a-z][a-z0-9_-]+", part)) - {
        "the",
        "of",
        "on",
        "in",
        "percent",
        "says",
    }
    texts = f"{claim.title} {claim.metric} {claim.dataset} {claim.method}".lower()
    fits = all(re.search(rf"(?<![a-z0-9]){re.escape(word)}", texts) for word in words)
    labels = f"{claim.dataset} {claim.method}".split()
    if match and match[1] not in labels:
        value, decimals = number(match[1]), len(match[1].partition(".")[2])
        return fits and value is not None and round(claim.value, decimals) == value
    return fits and bool(words or match)


def method_names(paper: Paper) -> set[str]:
    """What the paper calls its own method."""
    head, colon, _ = paper.title.partition(":")
    names = {head.strip().lower()} if colon and len(head.split()) <= 2 else set[str]()
    if (match := _TITLED.match(paper.title)) is not None:
        names.add(match[1].lower())
    texts = [row.text for row in paper.sentences[:60]]
    names |= {match[1].lower() for text in texts for match in _ACRONYM.finditer(text)}
    return names | {match[1].lower() for text in texts for match in _PROPOSED_NAME.finditer(text)}


def is_own(label: str, names: set[str]) -> bool:
    """Whether a label of a table is the paper's own method."""
    words = re.sub(r"\[[^\]]*\]|\(ours?\)", "", label).strip().lower()
    plain = re.sub(r"-\s+", "-", words)
    return bool(_OURS.search(label)) or not names.isdisjoint((words, plain))


# Tables.


@dataclass(frozen=True)
class _Layout:
    """Which columns are labels, and what the caption says for all cells."""

    labels: int
    metric: str
    is_percent: bool
    seeds: int | None


def seeds_in(text: str) -> int | None:
    """Over how many runs a text says that a number is a mean."""
    match = _SEEDS.search(text)
    count = number(match[1]) if match else None
    return int(count) if count and count < 1_000 else None


def _layout(table: PaperTable) -> _Layout:
    def is_label(column: int) -> bool:
        cells = [row[column] for row in table.rows if row[column]]
        numeric = sum(read_cell(cell) is not None for cell in cells)
        return 2 * numeric < len(cells) or not cells

    width = len(table.rows[0]) if table.rows else 0
    labels = next((column for column in range(width) if not is_label(column)), width)
    caption = table.caption
    percent = "%" in caption or "percent" in caption.lower()
    return _Layout(max(labels, min(1, width)), metric_in(caption), percent, seeds_in(caption))


def _method_label(table: PaperTable, labels: Sequence[str]) -> str:
    """The label of a row that names a method: by the head of its column, else the first that no
    head calls a data set.
    """
    heads = [table.column(at) for at in range(len(labels))]
    of_methods = [
        text for text, head in zip(labels, heads, strict=True) if _METHOD_HEAD.search(head)
    ]
    others = [text for text, head in zip(labels, heads, strict=True) if not _DATA_HEAD.search(head)]
    return next((without_metric(text) for text in (*of_methods, *others) if text), "")


def _of_table(table: PaperTable, names: set[str]) -> Iterator[NumberClaim]:
    layout = _layout(table)
    for at, row in enumerate(table.rows):
        for column in range(layout.labels, len(row)):
            cell = read_cell(row[column])
            head = table.column(column)
            if cell is None or _ASIDE.search(head) or _ASIDE.search(" ".join(row[: layout.labels])):
                continue
            labels = [text for text in row[: layout.labels] if text]
            names_of_metrics = (metric_in(head), metric_in(" ".join(labels)), layout.metric)
            # A percentage is no squared or absolute error: "MAE" is then a method.
            fits = (
                row for row in names_of_metrics if row and (is_share(row) or not cell.is_percent)
            )
            metric = next(fits, "")
            if not metric:
                continue
            marked = cell.is_percent or layout.is_percent or "%" in f"{head}{' '.join(labels)}"
            own = [text for text in (*map(without_metric, labels), without_metric(head)) if text]
            whole_head = [head] if head and not without_metric(head) else []
            usual = _method_label(table, row[: layout.labels])
            method = next((text for text in own if is_own(text, names)), usual)
            dataset = next((text for text in own[::-1] if text != method), "")
            weight = 2.0 + 3 * is_own(method, names) + _BOLD * ((at, column) in table.bold)
            weight -= 2 * bool(_TRAINING_PART.search(head)) + 0.1 * table.number
            yield NumberClaim(
                title=", ".join([f"Table {table.number or table.id}", *own, *whole_head]),
                metric=metric,
                value=cell.value,
                text=cell.text,
                is_percent=is_percentage(metric, cell.value, marked=marked),
                spread=cell.spread,
                seeds=layout.seeds,
                dataset=dataset,
                method=method,
                quote=PaperQuote(text=row[column], table=table.id, row=at, column=column),
                weight=weight + (metric not in {"loss", "error"}),
            )


# Sentences.


def _of_sentence(row: PaperSentence, paper: Paper) -> Iterator[NumberClaim]:
    section = paper.section_of(row)
    if _ELSEWHERE.search(section) or len(row.text) > LONGEST_SENTENCE:
        return
    positions = set[int]()
    for pattern in (_WORDS_FIRST, _NUMBER_FIRST):
        for match in pattern.finditer(row.text):
            before = row.text[max(0, match.start("value") - 24) : match.start("value")]
            is_other = _NO_RESULT.search(f"{before}{match['between']}")
            if match.start("value") in positions or (is_other and not before.endswith(" to ")):
                continue
            if re.search(r"[A-Za-z]-$", before):
                continue  # of a name, such as ResNet-50
            positions.add(match.start("value"))
            if (claim := _sentence_claim(match, row, section)) is not None:
                yield claim


def _sentence_claim(match: re.Match[str], row: PaperSentence, section: str) -> NumberClaim | None:
    value, metric = number(match["value"]), metric_in(match["metric"])
    after = row.text[match.end("value") : match.end("value") + 12]
    if value is None or not metric or re.match(r"\s*(?:×|x\b|[a-z]+s\b)", after):
        return None
    percent = bool(match["percent"] or match["late"])
    is_plain = "." not in match["value"] and not percent
    if is_plain and (is_share(metric) or metric in {"loss", "r2"}):
        return None
    if value > (100 if is_share(metric) else 1 if metric == "r2" else math.inf):
        return None
    where = "Abstract" if section == "Abstract" else section or "text"
    own = bool(re.search(r"\b(?:we|our|ours|proposed)\b", row.text, re.IGNORECASE))
    return NumberClaim(
        title=f"{where}, {metric}",
        metric=metric,
        value=value,
        text=match["value"].replace(",", ""),
        is_percent=is_percentage(metric, value, marked=percent),
        spread=number(match["spread"] or ""),
        seeds=seeds_in(row.text),
        dataset=_dataset(row.text, match.end()),
        quote=PaperQuote(text=row.text, sentence=row.id),
        weight=1.0 + own + 2 * bool(_SUMMARY.search(section)) + (metric not in {"loss", "error"}),
    )


def _dataset(text: str, at: int) -> str:
    match = re.match(r"[^.;]{0,40}?\b(?:on|for)\s+(?:the\s+)?([\w-]{2,30})", text[at:])
    return match[1] if match else ""


def _merged(
    of_tables: Sequence[NumberClaim], of_sentences: Sequence[NumberClaim], names: set[str]
) -> Iterator[NumberClaim]:
    """A number of a table that a sentence repeats is one claim; a weightier one where abstract,
    introduction or conclusion repeat it, and it is no other method's than the paper's own.
    """
    repeated = set[int]()
    has_own = any(is_own(claim.method, names) for claim in of_tables)
    for claim in of_tables:
        twins = [
            at
            for at, other in enumerate(of_sentences)
            if other.metric == claim.metric and abs(other.value - claim.value) <= other.rounding
            and other.is_percent == claim.is_percent
        ]  # fmt: skip
        repeated.update(twins)
        rows = [of_sentences[at] for at in twins]
        counts = is_own(claim.method, names) or not has_own
        weights = [row.weight for row in rows if counts and _SUMMARY.search(row.title)]
        gain = max(weights, default=0.0)
        seeds = next((row.seeds for row in rows if row.seeds), None)
        update = {"weight": claim.weight + gain, "seeds": claim.seeds or seeds}
        yield claim.model_copy(update=update)
    distinct = {(row.metric, row.value, row.title): row for row in reversed(of_sentences)}
    rest = [row for at, row in enumerate(of_sentences) if at not in repeated]
    yield from (row for row in rest if distinct.get((row.metric, row.value, row.title)) is row)


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
