"""A report as one document, its sections in reading order."""

from bot.models.report import Report
from bot.render.document import Code, Document, Section, Text
from bot.render.phrases import program as programs
from bot.render.sections import (
    attempts,
    diagnosis,
    environment,
    lead,
    model_section,
    program,
    proofs,
    repair,
)


def document(
    report: Report,
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
    parts = (
        *_answer(report, page),
        lead.comparison(report),
        program.section(report),
        model_section.section(report),
        environment.section(report),
        lead.evidence(report),
        attempts.section(report.attempts, elsewhere),
    )
    named: Text = ("run ", Code(run)) if run else ""
    footer = (*_footer(report), named, *ends)
    return Document(tuple(filter(None, parts)), tuple(filter(None, footer)))


def _answer(report: Report, page: str) -> tuple[Section | None, ...]:
    """The verdict and what follows from it. Where a repair is the answer, it stands first and
    nothing is asked of the reporter.
    """
    verdict = lead.verdict(report), proofs.section(report)
    trained = diagnosis.section(report, page), repair.section(report)
    if report.repaired_instead:
        return (*trained, *verdict)
    return (*verdict, lead.requests(report), *trained)


def _footer(report: Report) -> tuple[str, ...]:
    recorded = (
        f"failure signature `{report.signature_hash[:12]}` recorded before the runs that it judges"
    )
    return (
        programs.provenance(report).rstrip("."),
        recorded if report.signature_hash and report.attempts else "",
        f"Reprise {report.version}".strip(),
        programs.cost(report),
        f"took {took}" if (took := programs.duration(report)) else "",
    )
