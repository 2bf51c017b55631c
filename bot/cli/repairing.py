"""What `reprise repair` does; it returns the exit code."""

import json
import sys
from functools import partial
from pathlib import Path

from bot.cli.error_boundary import OTHER
from bot.cli.runner import TrainingWork, for_people, read_training, working
from bot.kernel.errors import UserError
from bot.kernel.files import write
from bot.kernel.job import JobOptions, RepairProgram
from bot.kernel.outside_text import rewritten
from bot.kernel.redaction import redact
from bot.kernel.report import RepairReport
from bot.kernel.training_types import Repair, RepairRequest
from bot.products.engine import execute
from bot.report import run_folder
from bot.report.report_json import repair_text
from bot.training.sections import repair_document

_PROVEN = 0


def run_repair(
    source: Path, arguments: tuple[str, ...], options: JobOptions, out: Path | None,
    request: RepairRequest, *, as_json: bool,
) -> int:  # fmt: skip
    """Repair a program."""
    program = read_training(source, arguments)
    job = RepairProgram(program=program, repair=request, **dict(options))
    with working(job, out, resumed=True) as work:
        return _show(work, execute(job, work.ports), source.name, as_json=as_json)


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


def _show(work: TrainingWork, report: RepairReport, name: str, *, as_json: bool) -> int:
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
