"""The text of a report as a model is shown it."""

import re
from itertools import pairwise

from bot.kernel import plain_text
from bot.kernel.bug import BugReport, FenceKind, Issue
from bot.kernel.markdown import block_tokens, cut, visible
from bot.kernel.redaction import redact
from prompts.catalog import fence

_MOST_BODY = 12_000
_MOST_AGAIN = 5_000
_MOST_BLOCK = 3_000
_MOST_PRINTED_AGAIN = 1_200
_DUMPS = {FenceKind.ENVIRONMENT, FenceKind.REQUIREMENTS}
_PRINTED = {FenceKind.TRACEBACK, FenceKind.OUTPUT, FenceKind.LOG}
_TASK = re.compile(r"\s*[-*+] \[([ xX])\] ")
_UNANSWERED = re.compile(r"(?:_No response_|n/?a|none|```\w*|~~~\w*)?", re.I)


def report_text(issue: Issue, bug: BugReport, *, again: bool = False) -> str:
    """The report for a prompt: what a reader of the issue sees, dumps of environments left out
    (their versions are known), and so what a form has put there and nobody filled in, inside the
    fence for outside text; shorter for a model that has read it.
    """
    body = _answered(visible(issue.body))
    for block in bug.fences:
        is_old = again and block.kind in _PRINTED
        most = 0 if block.kind in _DUMPS else _MOST_PRINTED_AGAIN if is_old else _MOST_BLOCK
        if len(block.raw) > max(most, 200) and block.raw in body:
            body = body.replace(block.raw, cut(block.raw, most), 1)
    body = cut(body, _MOST_AGAIN if again else _MOST_BODY)
    return (
        fence("issue title", redact(plain_text.line(issue.title)))
        + "\n"
        + fence("issue body", redact(body))
    )


def _answered(body: str) -> str:
    """A body without the sections of its form that were left empty, the boxes that were not
    ticked, and lists in which every box is: those only confirm that the form was read.
    """
    lines = body.split("\n")
    tokens = block_tokens(body)
    headings = [
        (token.map[0], token.tag) for token in tokens if token.type == "heading_open" and token.map
    ]
    visible_rows = list(range(headings[0][0] if headings else len(lines)))
    for (start, level), (end, next_level) in pairwise([*headings, (len(lines), "")]):
        rest = range(start + 1, end)
        boxes = [match[1] for at in rest if (match := _TASK.match(lines[at]))]
        has_choice = " " in boxes
        answers = [
            at
            for at in rest
            if (match := _TASK.match(lines[at])) is None or (has_choice and match[1] != " ")
        ]
        if next_level > level or any(
            not _UNANSWERED.fullmatch(lines[at].strip()) for at in answers
        ):
            visible_rows += [start, *answers]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines[at] for at in visible_rows))
