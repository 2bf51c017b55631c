"""What `reprise diagnose`, `probe` and `rules` do; each returns the exit code or a text."""

import json
import sys
from functools import partial
from pathlib import Path

from bot import bootstrap
from bot.adapters.files import write
from bot.adapters.run_folder import training
from bot.adapters.run_folder.folder import kept_job, kept_report
from bot.cli.error_boundary import OTHER, say
from bot.cli.progress import shown_on
from bot.cli.runner import choose_sandbox, working_in
from bot.cli.training_work import errors, for_people, read, working
from bot.errors import UserError
from bot.models.diagnosis import DiagnosedRun
from bot.models.job import DiagnoseProgram, JobOptions, ReproduceIssue
from bot.pipeline.diagnosis import of_issue
from bot.pipeline.diagnosis.of_program import ProgramDiagnosis
from bot.products import execute
from bot.render.diagnosis_json import diagnosis_text
from bot.render.sections.diagnosis import document
from bot.rules.diagnosis import RULES
from bot.settings import Settings, load
from bot.text.sanitize import redact, rewritten
from sandbox.port import Sandbox

_DIAGNOSED = 0


def diagnose(
    source: Path,
    arguments: tuple[str, ...],
    options: JobOptions,
    out: Path | None,
    *,
    as_json: bool,
) -> int:
    """Diagnose a program, or the program of a finished run."""
    if source.is_dir():
        return _of_run(source, options, as_json=as_json)
    job = DiagnoseProgram(program=read(source, arguments), **dict(options))
    with working(job, out) as work:
        diagnosis = execute(job, work.ports)
        work.view.stop()
        return _show(
            diagnosis, source.name, work.folder, work.settings, work.ports.sandbox, as_json=as_json
        )


def probe(source: Path, arguments: tuple[str, ...], options: JobOptions, out: Path | None) -> int:
    """Record a program and print the path of its trace."""
    job = DiagnoseProgram(program=read(source, arguments), **dict(options))
    with working(job, out) as work:
        diagnosis = execute(job, work.ports)
        why = diagnosis.run.undecided
        if diagnosis.environment is None:
            raise UserError(why, "Choose other versions with --with or --python.")
        work.view.stop()
        sys.stdout.write(f"{work.folder / training.TRACE}\n")
        if why:
            say(f"The trace says nothing about training: {why}.")
        return OTHER if why else _DIAGNOSED


def _of_run(path: Path, options: JobOptions, *, as_json: bool) -> int:
    """Diagnose the program of a finished run in its own environment, and update its report."""
    settings, report, job = load(), kept_report(path), kept_job(path)
    job = _limited(job, options)
    sandbox = choose_sandbox(job)
    with working_in(path, settings) as (folder, cancel), shown_on(errors()) as listener:
        found = bootstrap.prove(
            report, job, settings, folder, of_issue.of_report,
            listener=listener, cancel=cancel, sandbox=sandbox,
        )  # fmt: skip
        notes = [note.text for note in found.notes if note not in report.notes]
        run = found.diagnosis if not notes else None
        run = run or DiagnosedRun(undecided="; ".join(notes) or "there is nothing to train")
        name = found.script.entry if found.script is not None else path.name
        listener.stop()
        diagnosis = ProgramDiagnosis(run, found.environment)
        return _show(diagnosis, name, path, settings, sandbox, as_json=as_json)


def _limited(job: ReproduceIssue, options: JobOptions) -> ReproduceIssue:
    """The job of a finished run with the limits of this command."""
    own = {name: getattr(options.environment, name) for name in ("sandbox", "device")}
    model = {name: getattr(options.model, name) for name in ("name", "max_cost", "max_tokens")}
    limits = {"timeout_s": options.limits.timeout_s, "training_timeout_s": None}
    update = {
        "environment": job.environment.model_copy(update=own),
        "limits": job.limits.model_copy(update=limits),
        "model": job.model.model_copy(update=model),
        "without": options.without,
    }
    return job.model_copy(update=update)


def rules(*, as_json: bool) -> str:
    """Every rule with the faults that it names, and its source."""
    fields = ("id", "severity", "faults", "sentence", "sources")
    rows = [{field: getattr(rule, field) for field in fields} for rule in RULES]
    if as_json:
        return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    return "\n".join(
        f"{row['id']} ({', '.join(row['faults'])})\n  {row['sentence']}\n  {row['sources']}\n"
        for row in rows
    )


def _show(
    diagnosis: ProgramDiagnosis,
    name: str,
    folder: Path,
    settings: Settings,
    sandbox: Sandbox,
    *,
    as_json: bool,
) -> int:
    """Write the diagnosis, print it for people or as JSON, and return the exit code."""
    hide = partial(redact, secrets=settings.secrets)
    run, built = rewritten(diagnosis.run, hide), diagnosis.environment
    training.keep_plot(folder / training.SVG, run.curves)
    text = diagnosis_text(run, program=name, environment=built, sandbox=sandbox.name, hide=hide)
    write(folder / training.JSON, text)
    whole = document(run, name=name, folder=str(folder))
    sys.stdout.write(text if as_json else for_people(whole))
    sys.stdout.flush()
    return OTHER if run.undecided else _DIAGNOSED
