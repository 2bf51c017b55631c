"""What rules, and where one is asked a model, say of a recorded program of a diagnosis bench."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cassettes import Cassettes
from benchmarks.published_tools import TOOLS, codes
from bot.app import bootstrap
from bot.issues.reading import issue as reading_issue
from bot.issues.search.report_text import report_text
from bot.kernel.bug import Issue
from bot.kernel.job import DiagnoseProgram, JobOptions
from bot.kernel.ports import Model, Ports
from bot.kernel.session import Session
from bot.kernel.settings import Settings
from bot.kernel.training_code import CODE_FAULTS
from bot.kernel.training_types import (
    DiagnosedRun,
    Finding,
    SecondOpinion,
    TrainingProgram,
    TrainingTrace,
)
from bot.model.budget import ModelBudget
from bot.model.cassette import Recording
from bot.model.chat import configured
from bot.report.run_folder import Folder
from bot.training import phrases
from bot.training.diagnosis.rules import diagnose
from bot.training.opinion import second_opinion
from sandbox.port import Sandbox


class Asked(NamedTuple):
    """A recorded program: its trace, why that says nothing ("" when it does), and its folder."""

    id: str
    data: dict[str, Any]
    seen: TrainingTrace
    undecided: str
    folder: Path


def judged(
    asked: Asked,
    settings: Settings,
    options: JobOptions,
    sandbox: Sandbox,
    cassettes: Cassettes | None,
    confirm: Callable[[DiagnosedRun], DiagnosedRun] | None = None,
) -> dict[str, object]:
    """The codes that were found, by whom, and what a model said and used. `confirm` are trainings
    that confirm or refute them.
    """
    run = DiagnosedRun(diagnosis=diagnose(asked.seen), undecided=asked.undecided)
    ours = _codes(run.diagnosis.findings)
    tools = {name: codes(name, asked.seen) for name in TOOLS}
    figures: dict[str, object] = {}
    if cassettes is not None:
        run = _asked(run, asked, settings, options, sandbox, cassettes)
        opinion = run.opinion or SecondOpinion()
        told = (*run.diagnosis.findings, *run.diagnosis.advice)
        added = _codes(x for x in told if x.by == "model")
        tools |= {"rules": ours, "model": (*opinion.agreed, *added)}
        figures["usage"] = opinion.usage
    if confirm is not None:
        run = confirm(run)
        spent = run.interventions.seconds if run.interventions is not None else 0.0
        tools["rules"] = ours
        figures["trial_seconds"] = spent
    if cassettes is not None:
        figures["opinion"] = phrases.opinion(run)
    return {"found": _codes(run.diagnosis.findings), "tools": tools, **figures}


def _asked(
    run: DiagnosedRun,
    asked: Asked,
    settings: Settings,
    options: JobOptions,
    sandbox: Sandbox,
    cassettes: Cassettes,
) -> DiagnosedRun:
    """The run with a second opinion, whose exchange is kept."""
    with closing(Folder(asked.folder)) as folder:
        options = cassettes.options(asked.id, options)
        model = _model(asked.id, cassettes, settings, options, folder)
        ports = bootstrap.make_ports(
            settings, sandbox=sandbox, journal=folder, listener=_quiet, model=model
        )
        run = _with_opinion(run, asked, options, ports)
    cassettes.keep(asked.id, asked.folder)
    return run


def _model(
    case: str, cassettes: Cassettes, settings: Settings, options: JobOptions, folder: Folder
) -> Model | None:
    if cassettes.replay is not None:
        return cassettes.of(case)
    model = configured(settings, options.model.name or "")
    return Recording(model, folder) if model is not None else None


def _with_opinion(
    run: DiagnosedRun, asked: Asked, options: JobOptions, ports: Ports
) -> DiagnosedRun:
    """The run with a second opinion, as on an issue: a model also reads its text."""
    issue = Issue(title=asked.data.get("title", ""), body=asked.data.get("body", ""))
    report = report_text(issue, reading_issue.read_issue(issue), again=True) if issue.body else ""
    source = asked.data["program"].encode()
    program = TrainingProgram(files={"program.py": source}, entry="program.py")
    session = Session.begin(DiagnoseProgram(program=program, **dict(options)), ports)
    budget = ModelBudget(ports, options.model, ports.clock())
    kept = asked.folder / "output.txt"
    output = kept.read_text().partition("\n--- stderr\n")[0] if kept.exists() else ""
    return second_opinion(run, asked.seen, program, session, budget, report, output)


def _codes(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Their codes, those of faults that are code with their line."""
    codes = (
        f"{code}:{finding.line}" if code in CODE_FAULTS and finding.line else code
        for finding in findings
        for code in finding.codes
    )
    return tuple(dict.fromkeys(codes))


_quiet: Callable[[object], None] = lambda _: None  # noqa: E731
