"""The evidence: what counts as the failure, what the deciding run printed, what else came up."""

from bot.models.report import Claim, DifferentFailure, NotReproduced, Report
from bot.render.document import Block, BulletList, Code, Paragraph, Preformatted, Section
from bot.render.phrases import HOLDS, MATCHES, count, program as programs
from bot.render.phrases.signature import signature_rows
from bot.render.sections import program


def section(report: Report) -> Section | None:
    """The signature, the telling output, and the claims and notes."""
    blocks: list[Block] = []
    if report.signature is not None:
        rows = [(f"{what}: ", Code(value)) for what, value in signature_rows(report.signature)]
        blocks.append(BulletList("What counts as the reported failure:", rows))
    blocks += [*_output(report), *_lists(report)]
    wrong = sum(claim.holds is False for claim in report.claims)
    verb = "is" if wrong == 1 else "are"
    fold = f"Evidence ({count(wrong, 'claim')} in the report {verb} wrong)"
    return Section("evidence", "Evidence", details=blocks, fold=fold if wrong else "Evidence")


def _output(report: Report) -> list[Block]:
    verdict, attempt = report.verdict, programs.telling(report)
    if isinstance(verdict, DifferentFailure):
        pairs = [("Reported:", verdict.reported), ("Observed:", verdict.seen)]
    elif attempt is not None:
        judgement = attempt.judgement
        script = " of the minimal script" if attempt.purpose == "minimize" else ""
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
    lists = [BulletList("What the report says:", claims(report.claims))]
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
