"""A report as one document, its sections in reading order."""

from bot.issues import program_phrases, sections
from bot.kernel.document import Code, Document, Section, Text
from bot.kernel.report import IssueReport, PaperReport, RequestedReport
from bot.papers.sections import paper_document
from bot.training import sections as training_sections


def document(
    report: RequestedReport,
    *,
    run: str = "",
    elsewhere: str = "",
    ends: tuple[Text, ...] = (),
    page: str = "",
) -> Document:
    """The document of a report. `run` is the name of the run, `ends` close the footer, and
    `elsewhere` says where the runs are that a table has no room for. `page` is the address of the
    run's page, "" for none.
    """
    if isinstance(report, PaperReport):
        whole = paper_document(report)
        return Document(whole.sections, (*whole.footer, *ends))
    parts = (
        *_answer(report, page),
        sections.comparison(report),
        sections.program_section(report),
        sections.model_section(report),
        sections.environment_section(report),
        sections.evidence(report),
        sections.attempts_section(report.attempts, elsewhere),
    )
    run_text: Text = ("run ", Code(run)) if run else ""
    footer = (*_footer(report), run_text, *ends)
    return Document(tuple(filter(None, parts)), tuple(filter(None, footer)))


def _answer(report: IssueReport, page: str) -> tuple[Section | None, ...]:
    """The verdict and what follows from it. Where a repair is the answer, it stands first and
    nothing is asked of the reporter.
    """
    verdict = sections.verdict(report), sections.proofs_section(report)
    trained = (
        training_sections.diagnosis_section(report, page),
        training_sections.repair_section(report),
    )
    if report.repaired_instead:
        return (*trained, *verdict)
    return (*verdict, sections.requests(report), *trained)


def _footer(report: IssueReport) -> tuple[str, ...]:
    record = (
        f"failure signature `{report.signature_hash[:12]}` recorded before the runs that it judges"
    )
    return (
        program_phrases.provenance(report).rstrip("."),
        record if report.signature_hash and report.attempts else "",
        f"Reprise {report.version}".strip(),
        program_phrases.cost(report),
        f"took {took}" if (took := program_phrases.duration(report)) else "",
    )
