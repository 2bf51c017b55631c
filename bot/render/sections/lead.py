"""The answer: the verdict with its numbers, what is asked of the reader, reported and observed;
and the evidence for it: what counts as the failure, what the deciding run printed, what else came
up.
"""

from bot.models.report import (
    Claim,
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
    Block,
    BulletList,
    Code,
    DataTable,
    Figures,
    Headline,
    Paragraph,
    Preformatted,
    Section,
    Text,
)
from bot.render.phrases import (
    HOLDS,
    MATCHES,
    control as controls,
    count,
    program as programs,
    verdict as verdicts,
)
from bot.render.phrases.signature import signature_rows
from bot.render.sections import program, proofs
from bot.rules.verdicts import KINDS

Counted = Reproduced | NotReproduced | Inconclusive | DifferentFailure


def verdict(report: Report) -> Section:
    """The verdict line, its reason, and where the failure came from."""
    kind, figures = report.verdict.kind, verdicts.figures(report)
    line = [f"{figures}." if figures else "", verdicts.standing(report)]
    title = "No failure to reproduce" if report.repaired_instead else KINDS[kind].title
    headline = Headline(title, " ".join(filter(None, line)), kind)
    reason = "" if _in_table(report) else verdicts.reason(report)
    texts: list[Text] = [reason, verdicts.unconfirmed(report), proofs.where(report.bisection)]
    paragraphs = [Paragraph(text) for text in texts if text]
    return Section("verdict", blocks=[headline, *paragraphs, _figures(report)])


def _in_table(report: Report) -> bool:
    """Whether the table of reported and observed says why already."""
    why = report.verdict.reason
    seen = any(row.observed == why for row in report.comparison)
    return seen or (report.verdict.kind == "reproduced" and bool(report.comparison))


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
    rows += [("program", shorter)] if (shorter := programs.reduced_line(report.reduced)) else []
    rows += [("took", took)] if (took := programs.duration(report)) else []
    return Figures(rows, interval)


def requests(report: Report) -> Section | None:
    """What the reporter or the host has to add."""
    match report.verdict:
        case NeedsInfo(items=items) if items:
            asks = any(item.rstrip().endswith("?") for item in items)
            title = "Please add or answer:" if asks else "Please add:"
            rows = [item[:1].upper() + item[1:] for item in items]
            return Section("requests", blocks=[BulletList(title, rows)])
        case NeedsHardware(needs=needs) if needs:
            return Section("requests", blocks=[BulletList("Hardware needed:", needs[:4])])
        case NotABug(sentence=quote) if quote:
            return Section("requests", blocks=[BulletList("The bug report says:", [quote])])
    return None


def comparison(report: Report) -> Section | None:
    """Reported and observed, side by side."""
    claim, verdict = programs.model_claim(report), report.verdict
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
    return Section("comparison", "Reported and observed", [*blocks, table]) if rows else None


def _cell(text: str) -> Text:
    return Code(text) if text.strip() else "not stated"


def evidence(report: Report) -> Section:
    """The signature, the telling output, and the claims and notes."""
    blocks: list[Block] = []
    if report.signature is not None:
        rows = [(f"{what}: ", Code(value)) for what, value in signature_rows(report.signature)]
        blocks.append(BulletList("What counts as the reported failure:", rows))
    blocks += [*_output(report), *_lists(report)]
    wrong = sum(claim.holds is False for claim in report.claims)
    verb = "is" if wrong == 1 else "are"
    fold = f"Evidence ({count(wrong, 'claim')} in the bug report {verb} wrong)"
    return Section("evidence", "Evidence", details=blocks, fold=fold if wrong else "Evidence")


def _output(report: Report) -> list[Block]:
    verdict, attempt = report.verdict, programs.telling(report)
    if isinstance(verdict, DifferentFailure):
        pairs = [("Reported:", verdict.reported), ("Observed:", verdict.seen)]
    elif attempt is not None:
        judgement = attempt.judgement
        script = " with the minimal script" if attempt.purpose == "minimize" else ""
        label = f"Run {attempt.number}{script} ({MATCHES[judgement.match]}: {judgement.reason}):"
        pairs = [(label, judgement.evidence)]
    else:
        return []
    blocks = [
        block for label, text in pairs if text for block in (Paragraph(label), Preformatted(text))
    ]
    compared = programs.weighed(attempt.judgement) if attempt is not None else ""
    return [*blocks, *([Paragraph(f"Compared: {compared}.")] if compared else [])]


def _lists(report: Report) -> list[Block]:
    verdict = report.verdict
    lists = [BulletList("What the bug report says:", claims(report.claims))]
    lists += [program.changes(report.script)] if report.script is not None else []
    lists += [BulletList("Notes:", report.notes_on())]
    if isinstance(verdict, NotReproduced):
        checked = [item for item in verdict.checked if item != verdict.reason]
        lists += [BulletList("Checked:", checked)]
        lists += [BulletList("Versions tried:", verdict.versions_tried)]
    return [block for block in lists if block.items]


def claims(of: tuple[Claim, ...]) -> list[str]:
    """What a report says and whether it holds; what does not hold comes first."""
    order = {False: 0, True: 1, None: 2}
    ordered = sorted(of, key=lambda claim: order[claim.holds])
    return [
        f"'{claim.text}': {HOLDS[claim.holds]}" + (f" ({claim.evidence})" if claim.evidence else "")
        for claim in ordered
    ]
