"""Issue → BugReport: blocks of the body with their kinds, and the report's claims with their
quotes.
"""

from collections.abc import Iterator

from bot.models.bug import MOST_BODY, BugReport, FenceKind, Issue, Role
from bot.rules.intake import (
    device_os_api,
    document,
    kinds,
    names,
    reading,
    symptoms,
    text,
    unfenced_code,
    versions,
)
from bot.rules.intake.document import MOST_BLOCKS, ReportDocument
from bot.rules.intake.sentences import sentences


def read(issue: Issue) -> BugReport:
    """Read an issue. Pure, linear in the size of the body, and never raises on any text."""
    issue = issue.model_copy(
        update={"title": text.line(issue.title), "labels": tuple(map(text.line, issue.labels))}
    )
    paper = unfenced_code.lift(document.parse(issue.body))
    words = tuple(sentences(paper.prose))
    blocks = reading.blocks(paper, names.import_home(issue.repository))
    fences = tuple(block.fence for block in blocks)
    found = reading.tracebacks(issue, paper, words, blocks)
    shown = reading.shown(paper, words, blocks)
    warnings = reading.warnings(paper, words, blocks)
    failing = any(t.message or t.frames for t in found) or any(
        output.role == "observed" for output in shown
    )
    runnable = any(
        fence.kind is FenceKind.PROGRAM and fence.role in {Role.REPRODUCER, Role.UNSTATED}
        for fence in fences
    )
    kind, kind_quote = kinds.kind(issue, words, failing=failing, runnable=runnable)
    symptom, symptom_quote = symptoms.symptom(issue, words, found, warnings, shown, paper.lines)
    used, works_in = versions.find(issue, paper, words, fences, found)
    return BugReport(
        kind=kind,
        kind_quote=kind_quote,
        symptom=symptom,
        symptom_quote=symptom_quote,
        fences=fences,
        tracebacks=found,
        warnings=warnings,
        outputs=shown,
        versions=used,
        works_in=works_in,
        device=device_os_api.device(issue, words, fences),
        api=device_os_api.api(issue, words),
        missing=device_os_api.missing(paper),
        unread=tuple(_unread(issue, paper)),
    )


def _unread(issue: Issue, paper: ReportDocument) -> Iterator[str]:
    """Sentences on what is beyond the limits of a reader."""
    if len(issue.body) > MOST_BODY:
        yield f"Only the first {MOST_BODY:,} characters of the bug report were read."
    if len(paper.lines) >= text.MOST_LINES:
        yield f"Only the first {text.MOST_LINES:,} lines of the bug report were read."
    if paper.blocks > MOST_BLOCKS:
        read = f"only the first {MOST_BLOCKS} were read"
        yield f"The bug report has {paper.blocks:,} blocks of code; {read}."
