"""Hyperparameters that rules do not read, from a model: each with a quotation that is checked, out
of two readings that are merged. The code and the run judge them as any other.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bot.kernel.dialogue import Question
from bot.kernel.errors import ModelUnavailable
from bot.kernel.markdown import contains
from bot.kernel.outside_text import clean, clip, one_line
from bot.kernel.paper import (
    Criterion,
    CriterionKind,
    NumberClaim,
    Paper,
    PaperQuote,
    PaperSentence,
)
from bot.kernel.redaction import redact
from bot.model.budget import BudgetExceeded, ModelBudget, question
from bot.papers.comparison import paper_text
from bot.papers.criteria import is_elsewhere
from bot.papers.criterion_kinds import KINDS, ROWS, share
from bot.papers.passages import choose_passages, stems
from bot.papers.runs import PaperSession
from prompts import load
from prompts.catalog import fence

_QUANTITY = re.compile(
    r"\d|\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|sixteen|twenty|thirty|"
    r"sixty|hundred|thousand|half|halves|third|quarter|fifth|tenth|percent|once|twice|thrice|double|"
    r"single|pair|dozen|no|none|without)s?\b",
    re.IGNORECASE,
)
_MOST_TOKENS, _MOST_CHARACTERS = 4_000, 20_000
_READINGS = 2
_MOST_STATEMENTS, _LONGEST_NAME = 12, 60


class _Reading(NamedTuple):
    """What a model says that a sentence states; `name` is its own for a statement that no kind
    covers.
    """

    kind: CriterionKind
    value: str
    sentence: str
    name: str = ""


def add_readings(
    paper: Paper,
    claim: NumberClaim | None,
    criteria: Sequence[Criterion],
    session: PaperSession,
    budget: ModelBudget,
) -> tuple[Criterion, ...]:
    """The criteria with those that a model reads where rules read none, in the order of the kinds;
    as they are where no model is configured. Raises Stopped.
    """
    if session.ports.model is None or "model" in session.job.without or claim is None:
        return tuple(criteria)
    readings = list[set[_Reading]]()
    with session.stage("fingerprint", "asking a model for hyperparameters"):
        for number in range(_READINGS):
            try:
                request = ask(paper, claim, criteria, number)
                readings.append(set(parse(budget.ask(request).data, paper)))
            except (BudgetExceeded, ModelUnavailable) as error:
                session.note(f"a model was not asked for more hyperparameters: {error}")
                break
    return merge(paper, criteria, readings)


def ask(paper: Paper, claim: NumberClaim, criteria: Sequence[Criterion], number: int) -> Question:
    """What a model is asked. The second reading goes through the sentences from the end."""
    readings = [f"{row.kind}: {row.stated}" for row in criteria if row.stated]
    stated = "\n".join(readings) or load("fingerprint").fragment("nothing")
    rows_to_read = list(relevant_sentences(paper, claim))
    sentences = [one_line(redact(f"[{row.id}] {row.text}")) for row in rows_to_read]
    ordered = sentences[::-1] if number % 2 else sentences
    return question(
        "reader",
        "fingerprint",
        _MOST_TOKENS,
        claim=fence("number", f"{claim.title}: {claim.metric} {paper_text(claim)}"),
        stated=fence("keywords", stated),
        paper=fence("paper", "\n".join(ordered)),
    )


def relevant_sentences(paper: Paper, claim: NumberClaim) -> Iterator[PaperSentence]:
    """The sentences of the sections that speak of the kinds, or of the claim's data and method."""
    sections = dict[str, list[PaperSentence]]()
    for row in paper.sentences:
        if not is_elsewhere(paper.section_of(row)):
            sections.setdefault(row.id.rpartition(".")[0], []).append(row)
    titles = {section.id: section.title for section in paper.sections}
    texts = [
        f"{titles.get(key, '')} {' '.join(row.text for row in rows)}"
        for key, rows in sections.items()
    ]
    query = " ".join((*(kind.name for kind in KINDS), claim.dataset, claim.method, claim.metric))
    parts = [*sections.values()]
    for at in choose_passages(texts, stems(query), _MOST_CHARACTERS):
        room = _MOST_CHARACTERS
        for row in parts[at]:
            if room > 0:
                yield row
            room -= len(row.text)


def parse(data: dict[str, object], paper: Paper) -> Iterator[_Reading]:
    """What an answer says, as far as its quotations stand in the sentences that it names, and its
    values are of their kinds.
    """
    texts = {row.id: row.text for row in paper.sentences}
    rows = data.get("criteria")
    for item in rows if isinstance(rows, list) else []:
        row, text = ROWS[item["kind"]], texts.get(item["sentence"], "")
        if not contains(text, item["quote"]):
            continue
        if row.kind == "method":
            name = clip(one_line(clean(item["value"])), _LONGEST_NAME)
            yield _Reading(row.kind, one_line(item["quote"]), item["sentence"], name)
            continue
        if not row.words and not _QUANTITY.search(item["quote"]):
            continue  # words without any quantity state no number
        value = row.canonical(item["value"])
        if value := share(value) if row.kind == "split" else value:
            yield _Reading(row.kind, value, item["sentence"])


def merge(
    paper: Paper, criteria: Sequence[Criterion], readings: Sequence[set[_Reading]]
) -> tuple[Criterion, ...]:
    """The criteria with what was read of kinds that rules did not read. What all readings have
    comes before what only one has; of several values of a kind none is taken.
    """
    texts = {row.id: row.text for row in paper.sentences}
    rows = {row.kind: row for row in criteria}
    for kind in KINDS:
        if kind.kind == "method" or (kind.kind in rows and rows[kind.kind].stated):
            continue
        counts = dict[str, int]()
        sentences = dict[str, str]()
        for reading in readings:
            for value in {row.value for row in reading if row.kind == kind.kind}:
                counts[value] = counts.get(value, 0) + 1
            sentences |= {row.value: row.sentence for row in reading if row.kind == kind.kind}
        most = max(counts.values(), default=0)
        values = [value for value, count in counts.items() if count == most]
        if len(values) == 1:
            sentence = sentences[values[0]]
            rows[kind.kind] = Criterion(
                kind=kind.kind,
                name=kind.name,
                stated=values[0],
                quote=PaperQuote(text=texts[sentence], sentence=sentence),
                by="model",
                readings=most,
            )
    stated = [rows[kind.kind] for kind in KINDS if kind.kind in rows and rows[kind.kind].stated]
    statements = list(_statements(paper, readings))[:_MOST_STATEMENTS]
    return (*stated, *statements, *(row for row in rows.values() if not row.stated))


def _statements(paper: Paper, readings: Sequence[set[_Reading]]) -> Iterator[Criterion]:
    """What no kind covers, by the sentences from which every reading takes some of it."""
    by_sentence = [
        {row.sentence: row for row in sorted(reading) if row.kind == "method"}
        for reading in readings
    ]
    for sentence in paper.sentences:
        if len(by_sentence) == _READINGS and all(sentence.id in rows for rows in by_sentence):
            row = by_sentence[0][sentence.id]
            yield Criterion(
                kind="method",
                name=row.name,
                stated=row.value,
                quote=PaperQuote(text=sentence.text, sentence=sentence.id),
                by="model",
                readings=_READINGS,
            )
