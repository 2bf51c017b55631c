"""Warnings that a report quotes."""

from __future__ import annotations

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
        if "Warning" not in text or len(text) > 20_000:
            continue
        match = _PRINTED.search(text)
        if not match:
            continue
        message = match["message"].strip()
        closing = message.find("`") if "`" in text[: match.start("category")] else -1
        message = message[:closing] if closing > 0 else message
        for following, more in rows[at + 1 : at + 12]:
            if (
                following != number + 1
                or not more.strip()
                or more[:1].isspace()
                or _PRINTED.search(more)
                or re.match(r"^(?:```|Traceback|#|\w+Error)", more)
                or message.endswith(".")
            ):
                break
            if re.match(r"^[A-Z\"'`(]?[a-z\"'`(]", more) is None:
                break
            number = following
            message += "\n" + more.strip()
        yield WarningText(
            category=match["category"],
            message=message.strip(),
            quote=Quote(text=text.strip()[:600], line=rows[at][0]),
        )


def stated(words: Sequence[Sentence]) -> Iterator[WarningText]:
    """Words in quotation marks that a sentence calls a warning."""
    for sentence in words:
        if not re.search(r"\bwarn(?:ing|ings|s)?\b", sentence.text, re.I):
            continue
        for match in _QUOTED.finditer(sentence.text):
            message = match["a"] or match["b"] or match["c"]
            if message.count(" ") >= 3 and "Warning:" not in message and "(" not in message[:20]:
                yield WarningText(category="", message=message.strip(), quote=sentence.quote)
