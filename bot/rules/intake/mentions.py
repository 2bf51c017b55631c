"""Exceptions in running text: a whole traceback without a fence, a ticked last line, a name in
the title.
"""

import re
from collections.abc import Iterator, Sequence

from bot.models.bug import Issue, Traceback
from bot.rules.intake import tracebacks
from bot.rules.intake.document import ProseLine
from bot.rules.intake.exceptions import INLINE, NAMED, could_be, likely, lone, named
from bot.rules.intake.sentences import Sentence
from bot.rules.intake.signals import WORDS

_TICKED = re.compile(r"`{1,3}\s*([^`\n]{1,2000}?)\s*`{1,3}")  # short ones too: ticks go in pairs
_RAISED = re.compile(
    r"\b(?:rais(?:es|ed|ing)|throws?|thrown|fails? with|failed with|failing with|crash(?:es|ed)? "
    r"with|gets?|got"
    r"|results? in|ends? (?:up )?(?:in|with)|leads? to|gives?|causes?|produces?)"
    r"\s+(?:an?\s+|the\s+)?(?:\w+\s+){0,3}?"
    r"`?((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception))\b`?",
)

_LINK = re.compile(r"<?https?://\S+")
_SAID = (
    r"\b(?:rais(?:es|ed|ing)|throws?|thrown|(?:fail|crash|die)(?:s|d|ed|es)? "
    r"with|error|exception):?\s+(?:an?\s+|the\s+)?"
)
_CALLED_ERROR = re.compile(
    r"\b(?:gets?|got|getting|gives?|gave|see|seeing|throws?|raises?|raised"
    r"|fails? with|following|this|with)"
    r"\s+(?:me\s+)?(?:the\s+|an\s+|this\s+|following\s+|with\s+)*error(?:\s+message)?:?\s*$",
    re.I,
)
_BEFORE = re.compile(rf"{_SAID}$", re.I)
_NAMED = re.compile(
    rf"(?P<said>{_SAID})?(?<![\w./`'\"])(?P<exc>(?:[a-z_]\w{{0,60}}\.){{0,8}}[A-Z]\w{{0,80}}): "
    rf"(?P<msg>\S.{{0,2000}})"
)


def in_lines(prose: Sequence[ProseLine], home: str) -> Iterator[Traceback]:
    """Tracebacks in the text itself."""
    lines = [re.sub(r"^\s{0,3}>\s?", "", line.text) for line in prose]
    for span in tracebacks.find(lines, home=home, tight=True, loose=True):
        found, line = span.traceback, prose[span.start]
        telling = found.frames or found.message or found.exception.startswith("SIG")
        if telling and (named(found.exception) or not line.heading):
            yield found.model_copy(update={"line": line.number})


def without_class(words: Sequence[Sentence]) -> Iterator[Traceback]:
    """Messages in ticks that the words before them call an error, without its class."""
    before = ""
    for sentence in words:
        for ticked in _TICKED.finditer(sentence.text):
            said = f"{before} {sentence.text[: ticked.start()]}"
            message = ticked[1].strip()
            if _CALLED_ERROR.search(said) and len(message.split()) > 3 and " " in message[:40]:
                yield Traceback(
                    exception="", message=message, line=sentence.line_at(ticked.start(1))
                )
        before = sentence.text[-80:]


def in_words(words: Sequence[Sentence]) -> Iterator[Traceback]:
    """Last lines quoted within a sentence, each with its line in the body."""
    for sentence in words:
        if ": " not in sentence.text:
            continue
        quoted = [
            (match["exc"], match["msg"].strip(), ticked.start(1))
            for ticked in _TICKED.finditer(sentence.text)
            if (match := _ticked(ticked[1], sentence.text[: ticked.start()]))
            and match["msg"]
            and "Warning" not in match["exc"]
        ]
        plain = None if quoted else INLINE.search(sentence.text) or _plain(sentence.text)
        if plain:
            quoted = [(plain["exc"], _unquoted(plain["msg"]), plain.start("exc"))]
        for exception, message, start in quoted:
            if _LINK.fullmatch(message):  # "ends in a TypeError: <where the check stands>"
                continue
            yield Traceback(exception=exception, message=message, line=sentence.line_at(start))


def _ticked(text: str, before: str) -> re.Match[str] | None:
    """A piece of code that is the last line of an exception, by itself or by the words before
    it.
    """
    match = NAMED.match(text) if _BEFORE.search(before) else None
    return lone(text) or likely(text) or (match if match and could_be(match["exc"]) else None)


def _plain(text: str) -> re.Match[str] | None:
    """A class before its message, where the name or the words before it say that it was raised."""
    for match in _NAMED.finditer(text):
        if named(match["exc"]) or (match["said"] and could_be(match["exc"])):
            return match
    return None


def _unquoted(words: str) -> str:
    """A message without the marks around it; quotes that belong to it come in pairs."""
    words = words.strip(" `*")
    for mark in "\"'":
        words = words.strip(mark) if words.count(mark) % 2 else words
    return words.strip()


def makes(programs: str, name: str) -> bool:
    """Whether programs call what has this name, as they do with a class that they use: then a
    line `pkg.Thing: words` is about it. A name that can be nothing but an exception's stays one.
    """
    called = rf"(?<!raise )\b(?:[a-z_]\w*\.)*{re.escape(name.rpartition('.')[2])}\s*\("
    only = named(name) or name.startswith("SIG")
    return not only and re.search(called, programs) is not None


def in_title(issue: Issue, words: Sequence[Sentence]) -> Iterator[Traceback]:
    """The title's exception; without one, a class that the title says was raised, without its
    message.
    """
    match = lone(issue.title.strip(" `")) or INLINE.search(issue.title)
    if match and match["msg"]:
        yield Traceback(exception=match["exc"], message=match["msg"].strip(" `"), line=0)
        return
    for text, line in [(issue.title, 0), *((row.text, row.line) for row in words[:40])]:
        raised = _RAISED.search(text)
        if raised or WORDS.search(text):
            yield Traceback(exception=raised[1] if raised else "SIGSEGV", message="", line=line)
            return
