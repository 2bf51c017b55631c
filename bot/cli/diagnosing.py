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
from bot.cli.training_work import TrainingWork, errors, for_people, read, working
from bot.errors import BuildError, UserError
from bot.models.diagnosis import DiagnosedRun
from bot.models.environment import Environment
from bot.models.job import Options
from bot.pipeline.diagnosis import endings, of_issue
from bot.pipeline.execution.runner import Session
from bot.render.diagnosis_json import diagnosis_text
from bot.render.sections.diagnosis import document
from bot.rules.diagnosis import RULES
from bot.settings import load
from bot.text.sanitize import redact, rewritten

_DIAGNOSED = 0


def diagnose(
    source: Path, arguments: tuple[str, ...], options: Options, out: Path | None, *, as_json: bool
) -> int:
    """Diagnose a program, or the program of a finished run."""
    if source.is_dir():
        return _of_run(source, options, as_json=as_json)
    program, environment = read(source, arguments), None
    with working(source.stem, options, out) as work:
        try:
            recorded = work.record(program)
            environment, run = recorded.environment, work.judge(program, recorded)
        except BuildError as error:
            run = DiagnosedRun(undecided=str(error))
        return _show(work, run, source.name, environment, as_json=as_json)


def probe(source: Path, arguments: tuple[str, ...], options: Options, out: Path | None) -> int:
    """Record a program and print the path of its trace."""
    program = read(source, arguments)
    with working(source.stem, options, out) as work:
        try:
            recorded = work.record(program)
        except BuildError as error:
            raise UserError(str(error), "Choose other versions with --with or --python.") from None
        undecided = endings.undecided(recorded.result, recorded.trace)
        work.view.stop()
        sys.stdout.write(f"{work.folder.path / training.TRACE}\n")
        if undecided:
            say(f"The trace says nothing about training: {undecided}.")
        return OTHER if undecided else _DIAGNOSED


def _of_run(path: Path, options: Options, *, as_json: bool) -> int:
    """Diagnose the program of a finished run in its own environment, and update its report."""
    settings, report, job = load(), kept_report(path), kept_job(path)
    job = job.model_copy(update={"options": _limited(job.options, options)})
    sandbox = choose_sandbox(job.options)
    with working_in(path, settings) as (folder, cancel), shown_on(errors()) as listener:
        found = bootstrap.prove(
            report, job, settings, folder, of_issue.of_report,
            listener=listener, cancel=cancel, sandbox=sandbox,
        )  # fmt: skip
        notes = [note.text for note in found.notes if note not in report.notes]
        run = found.diagnosis if not notes else None
        run = run or DiagnosedRun(undecided="; ".join(notes) or "there is nothing to train")
        ports = bootstrap.ports(job.options, settings, journal=folder, listener=listener,
                                cancel=cancel, sandbox=sandbox)  # fmt: skip
        work = TrainingWork(folder, Session.begin(job, ports), settings, listener)
        name = found.script.entry if found.script is not None else path.name
        return _show(work, run, name, found.environment, as_json=as_json)


def _limited(kept: Options, options: Options) -> Options:
    """The options of a finished run with the limits of this command."""
    names = ("sandbox", "timeout_s", "device", "model", "max_cost", "max_tokens", "without")
    limits = {name: getattr(options, name) for name in names}
    return kept.model_copy(update={**limits, "training_timeout_s": None})


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
    work: TrainingWork,
    run: DiagnosedRun,
    name: str,
    environment: Environment | None,
    *,
    as_json: bool,
) -> int:
    """Write the diagnosis, print it for people or as JSON, and return the exit code."""
    hide = partial(redact, secrets=work.settings.secrets)
    run, folder = rewritten(run, hide), work.folder.path
    training.keep_plot(folder / training.SVG, run.curves)
    sandbox = work.session.ports.sandbox.name
    work.view.stop()
    text = diagnosis_text(run, program=name, environment=environment, sandbox=sandbox, hide=hide)
    write(folder / training.JSON, text)
    whole = document(run, name=name, folder=str(folder))
    sys.stdout.write(text if as_json else for_people(whole))
    sys.stdout.flush()
    return OTHER if run.undecided else _DIAGNOSED
