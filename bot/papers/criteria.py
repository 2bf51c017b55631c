"""The hyperparameters that a paper states, read by rules from its sentences and tables, each with
its quotation; and those that it leaves open.
"""

import re
from collections.abc import Iterator, Sequence

from bot.kernel.paper import (
    Criterion,
    CriterionKind,
    NumberClaim,
    Paper,
    PaperQuote,
    PaperSentence,
    PaperTable,
)
from bot.papers.claims import LONGEST_SENTENCE, is_own
from bot.papers.criterion_kinds import KINDS, KindRow, is_settings_table, labelled, share

_ELSEWHERE = re.compile(r"related work|background|prior work|limitations|future|abstract", re.I)
_SETTINGS = re.compile(
    r"experiment|implementation|training|setup|settings|details|hyper-?parameter|appendix", re.I
)
_SEARCHED = re.compile(
    r"\b(?:grid|sweep|search(?:ed)?|selected from|chosen from|tuned (?:over|in)|range[sd]? from|"
    r"ablat\w+|would|could|instead of|we also tried|compared (?:to|with))\b",
    re.I,
)
_CITED = re.compile(
    r"\b(?:follow(?:s|ed|ing)?|same|identical|adopt\w*|borrow\w*|taken from|inherit\w*|"
    r"as (?:in|described|given)|defaults? (?:of|from|settings?|values?|hyper\w+))\b",
    re.I,
)
_DETAILS = re.compile(
    r"hyper-?parameters?|settings?\b|set-?up|protocols?|configurations?|recipe|"
    r"training (?:details|procedure|schedule)|optimi[sz]er|learning rate|batch(?:es| size)|"
    r"initiali[sz]\w+|splits?\b|epochs",
    re.I,
)
_MEASURED = re.compile(
    r"throughput|latency|(?:images|tokens|samples) per second|inference (?:time|speed)", re.I
)
_BY_CONDITION = re.compile(
    r"\s*+%?\s*+(?:[(\[][^)\]]{0,40}[)\]]\s*+)?(?:for|on)\b[^.;]{1,60}?(?:,|\band)\s++(?:an?\s|of\s)?"
    r"(?:\d[\d.,]*(?:e-?\d+)?|\.\d+)\s*+%?\s*+(?:[(\[][^)\]]{0,40}[)\]]\s*+)?(?:for|on)\b"
)
"""What follows a value that holds for one of several data sets or models."""
_OF_OTHERS = re.compile(
    r"\[[^\]]{2,200}\]\s+(?:also\s+|further\s+|first\s+)?(?:discover|propos|show|prov|introduc|observ|f[io]und|"
    r"present|us|report|stud|analy|train|appl)(?:e|es|ed|s|y|ies|ied|ze|zed)?\b",
    re.I,
)
"""A citation that does something."""
_FIGURE = re.compile(
    r"(?:as\s+)?(?:shown|illustrated|seen|depicted)?(?:\s*in\s+)?(?:figures?|fig\.|tables?)\s+\S+"
    r"(?:,\s+we\b|\s+(?:shows?|illustrates?|compares?|reports?|depicts?|plots?|presents?)\b)",
    re.I,
)
"""A sentence on what a figure or a table shows."""
_CONTRAST = re.compile(r",?\s+\b(?:whereas|while)\b\s+", re.I)
_ON_TASK = re.compile(r"(?:in|for|on)\b", re.I)
_CLAUSE = re.compile(r"[.;:,(]\s")
_OWN_TABLE = 5
"""The rank of what the caption of the claim's own table states."""
_BEFORE = 70
_TRAINED: frozenset[CriterionKind] = frozenset(
    ("optimizer", "learning_rate", "batch_size", "epochs", "steps", "schedule")
)
_TOPICS: tuple[tuple[str, CriterionKind], ...] = (
    (r"optimi", "optimizer"), (r"learning rate", "learning_rate"), (r"batch", "batch_size"),
    (r"epoch", "epochs"), (r"initiali", "initialisation"), (r"split", "split"),
)  # fmt: skip


def read_criteria(
    paper: Paper, claims: Sequence[NumberClaim], claim: NumberClaim | None
) -> tuple[Criterion, ...]:
    """What a paper states of the experiment behind a claim, in the order of the kinds. One value a
    kind: a table of hyperparameters comes before a section on training, and that before others.
    """
    of_tables = _of_tables(paper, claim)
    ranked = [row for row in of_tables if row[0]]
    split = {row.kind for _, row in of_tables} - {row.kind for _, row in ranked}
    ranked += _of_sentences(paper, claim, _rivals(claims))
    best = dict[CriterionKind, tuple[int, Criterion]]()
    for rank, row in ranked:
        # Where tables of several experiments differ, a sentence may be of any of them.
        is_usable = row.kind not in split or rank == _OWN_TABLE
        if is_usable and (row.kind not in best or rank > best[row.kind][0]):
            best[row.kind] = rank, row
    stated = [best[kind.kind][1] for kind in KINDS if kind.kind in best]
    return (*stated, *_left_open(paper, {row.kind for row in stated}))


def _rivals(claims: Sequence[NumberClaim]) -> set[str]:
    """What the tables call the methods that are compared with."""
    own = {claim.method.lower() for claim in claims if is_own(claim.method, set())}
    names = {re.sub(r"\[[^\]]*\]", "", claim.method).strip().lower() for claim in claims}
    return {name for name in names if len(name) > 2 and name not in own}


# Sentences.


def _of_sentences(
    paper: Paper, claim: NumberClaim | None, rivals: set[str]
) -> Iterator[tuple[int, Criterion]]:
    own, others = _experiments(paper, claim)
    for sentence in paper.sentences:
        section = paper.section_of(sentence)
        is_long = len(sentence.text) > LONGEST_SENTENCE
        if is_long or is_elsewhere(section) or _is_about_others(sentence.text, rivals):
            continue
        if _names_any(sentence.text, others) and not _names_any(sentence.text, own):
            continue
        if _is_history(sentence, section) or _FIGURE.match(sentence.text):
            continue
        own_table = claim.quote.table if claim is not None else ""
        is_caption = bool(own_table) and sentence.id.startswith(f"{own_table}.")
        rank = _OWN_TABLE if is_caption else 2 if _SETTINGS.search(section) else 1
        text = _part_for(sentence.text, claim)
        for row in KINDS:
            if value := _value(row, text):
                quote = PaperQuote(text=sentence.text, sentence=sentence.id)
                yield rank, Criterion(kind=row.kind, name=row.name, stated=value, quote=quote)


def is_elsewhere(section: str) -> bool:
    """Whether a section is not about the paper's own experiment, by its title."""
    return bool(_ELSEWHERE.search(section))


def _experiments(paper: Paper, claim: NumberClaim | None) -> tuple[set[str], set[str]]:
    """What the columns of tables of hyperparameters are called that have one of the claim's own:
    that one, and the others.
    """
    dataset = claim.dataset.lower() if claim is not None else ""
    own, others = set[str](), set[str]()
    for table in paper.tables:
        if is_settings_table(table) and table.rows:
            heads = {table.column(at).lower() for at in range(1, len(table.rows[0]))} - {""}
            matches = {head for head in heads if head in dataset}
            own |= matches
            others |= heads - matches if matches else set()
    return own, others - own


def _names_any(text: str, names: set[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I) for name in names)


def _is_history(sentence: PaperSentence, section: str) -> bool:
    """Whether a sentence of the introduction is about cited work."""
    is_own = re.search(r"\b(?:we|our)\b", sentence.text, re.IGNORECASE)
    return bool(sentence.cites) and "introduction" in section.lower() and not is_own


def _part_for(text: str, claim: NumberClaim | None) -> str:
    """A sentence, of one that tells two tasks apart the part on the claim's; "" for none."""
    parts = _CONTRAST.split(text)
    if len(parts) == 1 or not all(_ON_TASK.match(part.strip()) for part in parts):
        return text
    words = claim.dataset.lower().partition(":")[0] if claim is not None else ""
    return next((part for part in parts if words and words in part.lower()), "")


def _is_about_others(text: str, rivals: set[str]) -> bool:
    lowered = text.lower()
    if (
        _SEARCHED.search(text)
        or (_OF_OTHERS.search(text) and not re.search(r"\b(?:we|our)\b", lowered))
        or _MEASURED.search(text)
        or re.search(r"\b(?:baselines?|competitors?)\b", lowered)
    ):
        return True
    names_rival = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", lowered) for name in rivals)
    return names_rival and not re.search(r"\b(?:we|our|ours|all|both|proposed)\b", lowered)


def _value(row: KindRow, text: str) -> str:
    """The value of a kind that a sentence states, "" for none, or for several of conditions of
    their own ("12 on COCO, 31 on ADE20K").
    """
    values = list(dict.fromkeys(_values(row, text)))
    return values[0] if values and not (row.is_sole and len(values) > 1) else ""


def _values(row: KindRow, text: str) -> Iterator[str]:
    for phrase in row.phrases:
        for match in phrase.finditer(text):
            clause = _CLAUSE.split(text[max(0, match.start() - _BEFORE) : match.start()])[-1]
            around = (
                clause + text[match.start() : match.start(1)] + text[match.end(1) : match.end()]
            )
            if row.unless is not None and row.unless.search(around):
                continue
            value = row.canonical(match[1].rstrip("."))
            value = share(value) if row.kind == "split" else value
            is_plain = not (row.is_count and not _whole(value))
            if value and is_plain and not _BY_CONDITION.match(text, match.end(1)):
                yield value


def _whole(value: str) -> bool:
    return all(re.fullmatch(r"\d+(?:e\+\d+)?", part) for part in value.split(", "))


# Tables of hyperparameters.


def _of_tables(paper: Paper, claim: NumberClaim | None) -> list[tuple[int, Criterion]]:
    """What the tables of hyperparameters state: those of the section that names the claim's data
    set before others. Values that differ between other sections have rank 0: none is taken.
    """
    titles = {section.id: section.title.lower() for section in paper.sections}
    words = claim.dataset.lower() if claim is not None else ""
    rows = [(table.section, row) for table in paper.tables for row in _of_table(table, claim)]
    ranked = list[tuple[int, Criterion]]()
    for section, row in rows:
        values = {other.stated for _, other in rows if other.kind == row.kind}
        places = {at for at, other in rows if other.kind == row.kind}
        is_one = len(values) == 1 or len(places) == 1
        ranked.append((4 if words and words in titles.get(section, "") else 3 * is_one, row))
    return ranked


def _of_table(table: PaperTable, claim: NumberClaim | None) -> Iterator[Criterion]:
    if not is_settings_table(table):
        return
    column, row_at = _choose_values(table, claim)
    for at, row in enumerate(table.rows):
        if column < len(row):
            yield from _of_cell(table, row[0], at, column)
    if row_at is not None:
        for at in range(len(table.rows[row_at])):
            yield from _of_cell(table, table.column(at), row_at, at)


def _of_cell(table: PaperTable, label: str, row: int, column: int) -> Iterator[Criterion]:
    text = table.rows[row][column]
    for kind in labelled(label):
        numbers = re.findall(r"(?:\d|\.\d)[\d.,]*(?:e-?\d+)?", text)
        if len(numbers) > 1 and not kind.is_list and not kind.words:
            continue  # alternatives of a search
        value = kind.canonical(text) or kind.canonical(numbers[0] if numbers else "")
        if value:
            value = share(value) if kind.kind == "split" else value
            quote = PaperQuote(text=text, table=table.id, row=row, column=column)
            yield Criterion(kind=kind.kind, name=kind.name, stated=value, quote=quote)


def _choose_values(table: PaperTable, claim: NumberClaim | None) -> tuple[int, int | None]:
    """The column of values that is meant, and of a table that lists across the row: those of the
    claim's data set or method, else the only or first ones.
    """
    words = {claim.dataset.lower(), claim.method.lower()} - {""} if claim is not None else set()
    width = len(table.rows[0]) if table.rows else 0
    heads = [table.column(at).lower() for at in range(width)]
    fits = (at for at in range(1, width) if heads[at] and any(heads[at] in word for word in words))
    column = next(fits, 1)
    across = sum(any(True for _ in labelled(table.column(at))) for at in range(width))
    if across < 2:
        return column, None
    rows = range(len(table.rows))
    return width, next((at for at in rows if table.rows[at][0].lower() in words), 0)


# What the paper does not say.


def _left_open(paper: Paper, stated: set[CriterionKind]) -> Iterator[Criterion]:
    """The essential kinds that a paper which trains does not state, with the work that it refers to
    for them.
    """
    if not stated & _TRAINED:
        referring = [row for row in paper.sentences if _refers(row)]
        if not referring:
            return
    for row in KINDS:
        covered = row.kind in stated or (row.kind == "epochs" and "steps" in stated)
        if row.is_essential and not covered:
            sentence = _reference_for(paper, row.kind)
            yield Criterion(
                kind=row.kind,
                name=row.name,
                cited=next(iter(sentence.cites), "") if sentence else "",
                quote=PaperQuote(text=sentence.text, sentence=sentence.id) if sentence else None,
                verdict="open",
            )


def _refers(sentence: PaperSentence) -> bool:
    text = sentence.text
    return bool(sentence.cites and _CITED.search(text) and _DETAILS.search(text))


def _reference_for(paper: Paper, kind: CriterionKind) -> PaperSentence | None:
    """The sentence that leaves a kind to a cited work: one that names it, else one on all
    details.
    """
    keys = {row.key for row in paper.references}
    rows = [
        row
        for row in paper.sentences
        if _refers(row) and (not keys or keys & {*row.cites})
        and not _ELSEWHERE.search(paper.section_of(row))
    ]  # fmt: skip
    topics = [pattern for pattern, topic in _TOPICS if topic == kind]
    by_topic = [row for row in rows if any(re.search(topic, row.text, re.I) for topic in topics)]
    general = [
        row for row in rows if not any(re.search(pattern, row.text, re.I) for pattern, _ in _TOPICS)
    ]
    return next(iter((*by_topic, *general)), None)
