"""Exceptions in running text: a whole traceback without a fence, a ticked last line, a name in the title."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bot.models.bug import Traceback
from bot.models.issue import Issue
from bot.rules.intake import tracebacks
from bot.rules.intake.document import Prose
from bot.rules.intake.exceptions import INLINE, LONE
from bot.rules.intake.sentences import Sentence
from bot.rules.intake.signals import WORDS

_TICKED = re.compile(r"`{1,3}\s*([^`\n]{4,2000}?)\s*`{1,3}")
_RAISED = re.compile(
    r"\b(?:rais(?:es|ed|ing)|throws?|thrown|fails? with|failed with|failing with|crash(?:es|ed)? with|gets?|got"
    r"|results? in|leads? to|gives?|causes?|produces?)\s+(?:an?\s+|the\s+)?(?:\w+\s+){0,3}?"
    r"`?((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b`?",
)


def in_lines(prose: Sequence[Prose], home: str) -> Iterator[Traceback]:
    """Tracebacks that stand in the text itself."""
    lines = [re.sub(r"^\s{0,3}>\s?", "", line.text) for line in prose]
    numbers = [line.number for line in prose]
    for span in tracebacks.find(lines, home=home, tight=True):
        if span.traceback.frames or span.traceback.message or span.traceback.exception.startswith("SIG"):
            yield span.traceback.model_copy(update={"line": numbers[span.start]})


def in_words(words: Sequence[Sentence]) -> Iterator[Traceback]:
    """Last lines quoted within a sentence, at the line on which they stand."""
    for sentence in words:
        if not re.search(r"Error|Exception", sentence.text):
            continue
        found = False
        for ticked in _TICKED.finditer(sentence.text):
            match = LONE.match(ticked[1])
            if match and match["msg"] and "Warning" not in match["exc"]:
                found = True
                yield Traceback(exception=match["exc"], message=match["msg"].strip(), line=sentence.line_at(ticked.start(1)))
        plain = None if found else INLINE.search(sentence.text)
        if plain:
            yield Traceback(
                exception=plain["exc"], message=plain["msg"].strip(" `*\"'"), line=sentence.line_at(plain.start("exc"))
            )


def in_title(issue: Issue, words: Sequence[Sentence]) -> Iterator[Traceback]:
    """The title's exception; when there is none, a class of which it is said that it was raised, without its message."""
    match = LONE.match(issue.title.strip(" `")) or INLINE.search(issue.title)
    if match and match["msg"]:
        yield Traceback(exception=match["exc"], message=match["msg"].strip(" `"), line=0)
        return
    for text, line in [(issue.title, 0), *((sentence.text, sentence.line) for sentence in words[:40])]:
        raised = _RAISED.search(text)
        if raised:
            yield Traceback(exception=raised[1], message="", line=line)
            return
        if WORDS.search(text):
            yield Traceback(exception="SIGSEGV", message="", line=line)
            return
