"""Warnings that a report quotes."""

import re
from collections.abc import Iterable, Iterator, Sequence

from bot.models.bug import Quote, WarningText
from bot.rules.intake.sentences import Sentence

_PRINTED = re.compile(
    r"(?:^|[\s(`\[])(?:(?P<path>[^\s`:]{1,300}\.py):(?P<line>\d{1,6}): "
    r"?)?(?P<category>(?:[a-z_]\w*\.){0,5}[A-Z]\w{0,40}Warning): ?(?P<message>[^\n]{3,2000})"
)
_QUOTED = re.compile(
    r"(?<!\w)(?:`(?P<a>[^`\n]{12,400})`|\"(?P<b>[^\"\n]{12,400})\"|\u201c(?P<c>[^\u201d\n]{12,400})\u201d)"
)


def find(lines: Iterable[tuple[int, str]]) -> Iterator[WarningText]:
    """Warnings as Python prints them, with the lines that their message runs over."""
    rows = list(lines)
    for at, (number, text) in enumerate(rows):
        match = _PRINTED.search(text) if "Warning" in text and len(text) <= 20_000 else None
        if not match:
            continue
        message = match["message"].strip()
        closing = message.find("`") if "`" in text[: match.start("category")] else -1
        message = message[:closing] if closing > 0 else message
        for place, (following, more) in enumerate(rows[at + 1 : at + 12], number + 1):
            if following != place or message.endswith(".") or not _goes_on(more):
                break
            message += "\n" + more.strip()
        quote = Quote(text=text.strip()[:600], line=number)
        yield WarningText(category=match["category"], message=message.strip(), quote=quote)


def _goes_on(line: str) -> bool:
    """Whether a line can continue the message of the warning above it."""
    other = _PRINTED.search(line) or re.match(r"```|Traceback|#|\w+Error", line)
    return not other and re.match(r"[A-Z\"'`(]?[a-z\"'`(]", line) is not None


def stated(words: Sequence[Sentence]) -> Iterator[WarningText]:
    """Words in quotation marks that a sentence calls a warning."""
    for sentence in words:
        called = re.search(r"\bwarn(?:ing|ings|s)?\b", sentence.text, re.I)
        for match in _QUOTED.finditer(sentence.text) if called else ():
            message = match["a"] or match["b"] or match["c"]
            if message.count(" ") >= 3 and "Warning:" not in message and "(" not in message[:20]:
                yield WarningText(category="", message=message.strip(), quote=sentence.quote)
