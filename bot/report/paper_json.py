"""report.json of a paper: its published form, schema 1. Within a version fields are only ever
added.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import Field

from bot.kernel.attempt import Attempt
from bot.kernel.paper import (
    Criterion,
    NumberClaim,
    NumberComparison,
    PaperFormat,
    PaperRun,
    PaperVerdict,
    WrittenCode,
)
from bot.kernel.redaction import redact
from bot.kernel.report import PaperReport, RequestedReport
from bot.kernel.training_types import Curve
from bot.report.report_json import (
    Absent,
    CostOut,
    PublishedData,
    VersionsOut,
    json_text,
    report_json,
    report_text,
)

SCHEMA_ID = "urn:reprise:paper-report:1"


class PaperOut(PublishedData):
    """Which paper. `source` is what was asked for."""

    source: str
    title: str
    format: PaperFormat | None
    repositories: tuple[str, ...] = Field(description="Addresses of code that its text names.")


class PaperEnvironmentOut(PublishedData):
    """The environment of the runs."""

    python: str
    packages: dict[str, str]
    lock: str


class PublishedPaper(PublishedData):
    """The result of reproducing one number of a paper."""

    schema_: Literal[1] = Field(1, alias="schema")
    kind: Literal["paper"] = "paper"
    paper: PaperOut
    verdict: PaperVerdict
    claim: NumberClaim | None = Field(description="The number that was looked at.")
    comparison: NumberComparison
    criteria: tuple[Criterion, ...] = Field(description="Contradictions first.")
    claims: tuple[NumberClaim, ...] = Field(description="The main result first.")
    command: Absent
    commit: Absent
    code: WrittenCode | None = Field(
        None, description="What a model wrote, where no repository ran."
    )
    runs: tuple[PaperRun, ...]
    attempts: tuple[Attempt, ...] = Field(description="Every run, also of changed programs.")
    curves: tuple[Curve, ...]
    environment: PaperEnvironmentOut | None
    notes: tuple[str, ...]
    seconds: dict[str, float] = Field(description='"total" and one entry per stage.')
    sandbox: str
    cost: CostOut
    versions: VersionsOut


def published_paper(report: PaperReport) -> PublishedPaper:
    """The published form, typed."""
    result, environment = report.result, report.environment
    packages = {one.name: one.version for one in environment.packages} if environment else {}
    return PublishedPaper(
        paper=PaperOut(
            source=report.job.source,
            title=result.title,
            format=result.format,
            repositories=result.repositories,
        ),
        verdict=result.verdict,
        claim=result.claim,
        comparison=result.comparison,
        criteria=result.criteria,
        claims=result.claims,
        command=result.command or None,
        commit=result.commit or None,
        code=result.code,
        runs=result.runs,
        attempts=report.attempts,
        curves=result.curves,
        environment=PaperEnvironmentOut(
            python=environment.python, packages=packages, lock=environment.lock
        )
        if environment is not None
        else None,
        notes=(*result.problems, *report.notes_on()),
        seconds=report.seconds,
        sandbox=report.sandbox,
        cost=CostOut.model_validate(report.cost),
        versions=VersionsOut(reprise=report.version, prompts=report.prompts, models=report.models),
    )


def paper_text(
    report: PaperReport, *, secrets: Iterable[str] = (), hide: Callable[[str], str] = str
) -> str:
    """report.json of a paper as it is written."""
    return json_text(paper_json(report, secrets=secrets, hide=hide))


def paper_json(
    report: PaperReport, *, secrets: Iterable[str] = (), hide: Callable[[str], str] = str
) -> dict[str, Any]:
    """report.json of a paper as data."""
    hidden = tuple(secrets)
    data: dict[str, Any] = published_paper(report).to_json(lambda text: redact(hide(text), hidden))
    return data


def requested_text(
    report: RequestedReport, *, secrets: Iterable[str] = (), hide: Callable[[str], str] = str
) -> str:
    """report.json of what was asked for on an issue, of either kind."""
    if isinstance(report, PaperReport):
        return paper_text(report, secrets=secrets, hide=hide)
    return report_text(report, secrets=secrets, hide=hide)


def requested_json(
    report: RequestedReport, *, secrets: Iterable[str] = (), hide: Callable[[str], str] = str
) -> dict[str, Any]:
    """The same as data."""
    if isinstance(report, PaperReport):
        return paper_json(report, secrets=secrets, hide=hide)
    return report_json(report, secrets=secrets, hide=hide)
