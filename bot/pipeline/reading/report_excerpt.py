"""The report's text as a model is shown it, and whether something that the model calls a quote is
in the report.
"""

import re

from bot.models.bug import BugReport, FenceKind, Issue
from bot.rules.intake import hidden_html, text
from bot.text.sanitize import redact
from prompts import fence

_MOST_BODY = 12_000
_MOST_AGAIN = 5_000
_MOST_BLOCK = 3_000
_DUMPS = {FenceKind.ENVIRONMENT, FenceKind.REQUIREMENTS}
_LOOSE = re.compile(r"[\W_]+")


def report(issue: Issue, bug: BugReport, *, again: bool = False) -> str:
    """The report for a prompt: what a reader of the issue sees, dumps of environments left out
    (their versions are known), inside the fence for outside text; shorter for a model that has
    read it.
    """
    body = hidden_html.visible(issue.body)
    for block in bug.fences:
        most = 0 if block.kind in _DUMPS else _MOST_BLOCK
        if len(block.raw) > max(most, 200) and block.raw in body:
            body = body.replace(block.raw, cut(block.raw, most), 1)
    body = cut(body, _MOST_AGAIN if again else _MOST_BODY)
    return (
        fence("issue title", redact(text.line(issue.title)))
        + "\n"
        + fence("issue body", redact(body))
    )


def cut(text: str, most: int) -> str:
    """A text with its middle left out: a traceback says most at its end."""
    if len(text) <= most:
        return text
    head, tail = text[: most // 3], text[len(text) - most * 2 // 3 :]
    return f"{head}\n[{len(text) - most:,} characters left out]\n{tail}"


def quoted(words: str, issue: Issue) -> bool:
    """Whether the title or body of the issue contains these words, whatever the punctuation and
    blanks between them.
    """
    return contains(f"{issue.title}\n{text.readable(issue.body)}", words)


def contains(text: str, words: str) -> bool:
    """Whether a text contains these words, whatever the punctuation and blanks between them."""
    wanted = _loose(words)
    return len(wanted) >= 2 and wanted in _loose(text)


def mentions(name: str, issue: Issue) -> bool:
    """Whether the issue contains a name as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", f"{issue.title}\n{issue.body}") is not None


def _loose(words: str) -> str:
    return _LOOSE.sub(" ", words).strip().lower()
