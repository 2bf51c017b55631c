"""The report's text as a model is shown it, and whether something that the model calls a quote is
in the report.
"""

import re

from bot.models.bug import BugReport, FenceKind, Issue
from bot.rules.intake import hidden_html, text
from bot.text.sanitize import redact
from prompts import fence

_MOST_BODY = 12_000
_MOST_BLOCK = 3_000
_DUMPS = {FenceKind.ENVIRONMENT, FenceKind.REQUIREMENTS}
_LOOSE = re.compile(r"[\W_]+")


def report(issue: Issue, bug: BugReport) -> str:
    """The report for a prompt: what a reader of the issue sees, dumps of environments left out
    (their versions are known), inside the fence for outside text.
    """
    body = hidden_html.visible(issue.body)
    for block in bug.fences:
        dumped = block.kind in _DUMPS or len(block.raw) > _MOST_BLOCK
        if dumped and len(block.raw) > 200 and block.raw in body:
            kept = block.raw[: _MOST_BLOCK // 3] if block.kind not in _DUMPS else ""
            body = body.replace(block.raw, f"{kept}\n[{len(block.raw):,} characters left out]", 1)
    if len(body) > _MOST_BODY:
        body = f"{body[: _MOST_BODY * 2 // 3]}\n[…]\n{body[-_MOST_BODY // 3 :]}"
    return (
        fence("issue title", redact(text.line(issue.title)))
        + "\n"
        + fence("issue body", redact(body))
    )


def quoted(words: str, issue: Issue) -> bool:
    """Whether the title or body of the issue contains these words, whatever the punctuation and
    blanks between them.
    """
    wanted = _loose(words)
    return len(wanted) >= 2 and wanted in _loose(f"{issue.title}\n{text.readable(issue.body)}")


def mentions(name: str, issue: Issue) -> bool:
    """Whether the issue contains a name as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", f"{issue.title}\n{issue.body}") is not None


def _loose(words: str) -> str:
    return _LOOSE.sub(" ", words).strip().lower()
