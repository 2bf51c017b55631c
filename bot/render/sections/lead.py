"""The answer: the verdict with its numbers, what is asked of the reader, reported and observed."""

from bot.models.report import (
    DifferentFailure,
    Inconclusive,
    NeedsHardware,
    NeedsInfo,
    NotABug,
    NotReproduced,
    Report,
    Reproduced,
)
from bot.render.document import (
    BulletList,
    Code,
    DataTable,
    Figures,
    Headline,
    Paragraph,
    Section,
    Text,
)
from bot.render.phrases import control as controls, count, program, verdict as verdicts
from bot.render.sections import proofs

Counted = Reproduced | NotReproduced | Inconclusive | DifferentFailure


def verdict(report: Report) -> Section:
    """The verdict line, its reason, and where the failure came from."""
    kind, figures = report.verdict.kind, verdicts.figures(report)
    line = [f"{figures}." if figures else "", verdicts.standing(report)]
    headline = Headline(verdicts.TITLES[kind], " ".join(filter(None, line)), kind)
    shown = kind == "reproduced" and report.comparison  # the table says what occurred
    reason = "" if shown else verdicts.reason(report)
    texts: list[Text] = [reason, proofs.where(report.bisection)]
    paragraphs = [Paragraph(text) for text in texts if text]
    return Section("verdict", blocks=[headline, *paragraphs, _figures(report)])


def _figures(report: Report) -> Figures:
    verdict, control = report.verdict, controls.of(report)
    rows, interval = [], None
    if isinstance(verdict, Counted) and verdict.runs:
        rows.append(("failed as reported", f"{verdict.failures} of {count(verdict.runs, 'run')}"))
        interval = (*verdict.interval, verdict.failures, verdict.runs)
    if isinstance(verdict, Reproduced):
        rows.append(("determinism", verdicts.DETERMINISM[verdict.determinism]))
        rows.append(("control", "none"))
    if control.type != "none":
        chance = f", p {controls.chance(control.p)}" if control.p is not None else ""
        failed = f"{control.failures} of {control.runs} failed{chance}"
        rows[-1] = (f"control ({control.type})", failed)
    rows += [("program", shorter)] if (shorter := program.reduced_line(report.reduced)) else []
    took = report.seconds.get("total", 0.0) >= 0.1
    return Figures([*rows, *([("took", program.duration(report))] if took else [])], interval)


def requests(report: Report) -> Section | None:
    """What the reporter or the host has to add."""
    match report.verdict:
        case NeedsInfo(items=items) if items:
            return Section("requests", blocks=[BulletList("Please add:", items)])
        case NeedsHardware(needs=needs) if needs:
            return Section("requests", blocks=[BulletList("It needs:", needs[:4])])
        case NotABug(sentence=quote) if quote:
            return Section("requests", blocks=[BulletList("The report says:", [quote])])
    return None


def comparison(report: Report) -> Section | None:
    """Reported and observed, side by side."""
    claim, verdict = program.model_claim(report), report.verdict
    reasons = {attempt.judgement.reason for attempt in report.attempts}
    rows = [
        (
            row.what,
            _cell(row.reported),
            row.observed if row.observed in reasons else _cell(row.observed),
        )
        for row in report.comparison
    ]
    if not rows and isinstance(verdict, DifferentFailure):
        rows = [("failure", _cell(verdict.reported), _cell(verdict.seen))]
    blocks = [Paragraph(f"Claim: {claim}")] if claim else []
    table = DataTable(("", "Reported", "Observed"), rows)
    title = "Reported and observed"
    return Section("comparison", title, [*blocks, *([table] if rows else [])]) if rows else None


def _cell(text: str) -> Text:
    return Code(text) if text.strip() else "not stated"
