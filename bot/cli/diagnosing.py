"""What `reprise diagnose`, `probe`, `rules` and `repair` do: each returns its exit code or text."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bot.app import bootstrap
from bot.cli.error_boundary import OTHER, say
from bot.cli.runner import (
    TrainingWork,
    choose_sandbox,
    errors,
    for_people,
    read_training,
    shown_on,
    working,
    working_in,
)
from bot.kernel.errors import UserError
from bot.kernel.files import write
from bot.kernel.job import (
    DiagnoseProgram,
    JobOptions,
    RepairProgram,
    ReproduceIssue,
    TrainingOptions,
)
from bot.kernel.outside_text import rewritten
from bot.kernel.redaction import redact
from bot.kernel.report import RepairReport, RunReport
from bot.kernel.settings import Settings, load
from bot.kernel.training_types import DiagnosedRun, Repair, RepairRequest
from bot.products import issue_training
from bot.products.engine import execute
from bot.report import run_folder
from bot.report.report_json import diagnosis_text, repair_text
from bot.report.run_folder import kept_job, kept_report
from bot.training.diagnosis.rule import Rule
from bot.training.diagnosis.rules import RULES
from bot.training.sections import diagnosis_document, repair_document

_DIAGNOSIS = 0


def run_diagnosis(
    source: Path,
    arguments: tuple[str, ...],
    options: JobOptions,
    out: Path | None,
    budget: float,
    *,
    as_json: bool,
) -> int:
    """Diagnose a program, or the program of a finished run."""
    if source.is_dir():
        return _of_run(source, options, budget, as_json=as_json)
    program = read_training(source, arguments)
    job = DiagnoseProgram(program=program, budget=budget, **dict(options))
    with working(job, out) as work:
        report = execute(job, work.ports)
        work.view.stop()
        return _show(
            report.result, report, source.name, work.folder, work.settings, as_json=as_json
        )


def run_probe(
    source: Path, arguments: tuple[str, ...], options: JobOptions, out: Path | None
) -> int:
    """Record a program and print the path of its trace."""
    job = DiagnoseProgram(program=read_training(source, arguments), **dict(options))
    with working(job, out) as work:
        report = execute(job, work.ports)
        why = report.result.undecided
        if report.environment is None:
            raise UserError(why, "Choose other versions with --with or --python.")
        work.view.stop()
        sys.stdout.write(f"{work.folder / run_folder.TRACE}\n")
        if why:
            say(f"The trace says nothing about training: {why}.")
        return OTHER if why else _DIAGNOSIS


def _of_run(path: Path, options: JobOptions, budget: float, *, as_json: bool) -> int:
    """Diagnose the program of a finished run in its own environment, and update its report."""
    settings, report, job = load(), kept_report(path), kept_job(path)
    job = _with_limits(job, options, budget)
    sandbox = choose_sandbox(job)
    with working_in(path, settings) as (folder, cancel), shown_on(errors()) as listener:
        report_of_run = bootstrap.prove(
            report, job, settings, folder, issue_training.of_report,
            listener=listener, cancel=cancel, sandbox=sandbox,
        )  # fmt: skip
        notes = [note.text for note in report_of_run.notes if note not in report.notes]
        run = report_of_run.diagnosis if not notes else None
        run = run or DiagnosedRun(undecided="; ".join(notes) or "there is nothing to train")
        name = report_of_run.script.entry if report_of_run.script is not None else path.name
        listener.stop()
        draft = report_of_run.draft()
        draft.sandbox = sandbox.name  # that of the diagnosis: the verdict may have needed no run
        return _show(run, draft, name, path, settings, as_json=as_json)


def _with_limits(job: ReproduceIssue, options: JobOptions, budget: float) -> ReproduceIssue:
    """The job of a finished run with the limits of this command."""
    own = {name: getattr(options.environment, name) for name in ("sandbox", "device")}
    model = {name: getattr(options.model, name) for name in ("name", "max_cost", "max_tokens")}
    limits = {"timeout_s": options.limits.timeout_s, "training_timeout_s": None}
    update = {
        "environment": job.environment.model_copy(update=own),
        "limits": job.limits.model_copy(update=limits),
        "model": job.model.model_copy(update=model),
        "without": options.without,
        "training": TrainingOptions(budget=budget),
    }
    return job.model_copy(update=update)


_FEW = 2


def list_rules(*, as_json: bool) -> str:
    """Every rule with the faults that it names, and its source."""
    fields = ("id", "severity", "faults", "sentence", "sources")
    rows = [{field: getattr(rule, field) for field in fields} for rule in RULES]
    if as_json:
        return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    groups: dict[str, list[Rule]] = {}
    for rule in RULES:
        groups.setdefault(rule.sources, []).append(rule)
    return "\n".join(entry for rules in groups.values() for entry in _entries(rules))


def _entries(rules: list[Rule]) -> Iterator[str]:
    """Rules of one source; a source of many is named once, above them."""
    sources, is_shared = rules[0].sources, len(rules) > _FEW
    if is_shared:
        yield f"The next {len(rules)} rules are from: {sources}\n"
    for rule in rules:
        own = "" if is_shared else f"  {sources}\n"
        yield f"{rule.id}{_faults_named(rule)}\n  {rule.sentence}\n{own}"


def _faults_named(rule: Rule) -> str:
    """The faults that a rule names, unless its name is theirs."""
    return "" if rule.faults == (rule.id,) else f" ({', '.join(rule.faults)})"


def _show(
    run: DiagnosedRun,
    report: RunReport,
    name: str,
    folder: Path,
    settings: Settings,
    *,
    as_json: bool,
) -> int:
    """Write the diagnosis, print it for people or as JSON, and return the exit code."""
    hide = partial(redact, secrets=settings.secrets)
    run = rewritten(run, hide)
    run_folder.keep_plot(folder / run_folder.SVG, run.curves)
    text = diagnosis_text(
        run, program=name, environment=report.environment, sandbox=report.sandbox, hide=hide
    )
    write(folder / run_folder.JSON, text)
    whole = diagnosis_document(run, name=name, folder=str(folder))
    sys.stdout.write(text if as_json else for_people(whole))
    sys.stdout.flush()
    return OTHER if run.undecided else _DIAGNOSIS


_PROVEN = 0


def run_repair(
    source: Path, arguments: tuple[str, ...], options: JobOptions, out: Path | None,
    request: RepairRequest, *, as_json: bool,
) -> int:  # fmt: skip
    """Repair a program."""
    program = read_training(source, arguments)
    job = RepairProgram(program=program, repair=request, **dict(options))
    with working(job, out, resumed=True) as work:
        return _show_repair(work, execute(job, work.ports), source.name, as_json=as_json)


def kept_repair(folder: Path) -> Repair:
    """The repair that an earlier command wrote. Raises UserError when there is none."""
    try:
        document = json.loads((folder / "repair.json").read_bytes())
        program = {"entry": document["program"], "source_sha": document.get("program_sha", "")}
        fields = {**document["repair"], **program}
        return Repair.model_validate({**fields, "undecided": fields["undecided"] or ""})
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{folder} is not the folder of a repair.", "Pass a folder that contains repair.json."
        ) from None


def _show_repair(work: TrainingWork, report: RepairReport, name: str, *, as_json: bool) -> int:
    """Write the repair, print it for people or as JSON, and return the exit code."""
    hide = partial(redact, secrets=work.settings.secrets)
    repair_result, folder = rewritten(report.result, hide), work.folder
    text = repair_text(repair_result, program=name, hide=hide)
    write(folder / "repair.json", text)
    if repair_result.diff:
        write(folder / "repair.diff", repair_result.diff)
    run_folder.keep_plot(folder / "repair.svg", repair_result.curves)
    work.view.stop()
    whole = repair_document(repair_result, name=name, folder=str(folder))
    sys.stdout.write(text if as_json else for_people(whole))
    sys.stdout.flush()
    return _PROVEN if repair_result.proven else OTHER
