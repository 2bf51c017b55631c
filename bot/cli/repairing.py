"""What `reprise repair` does; it returns the exit code."""

import json
import sys
from functools import partial
from pathlib import Path

from bot.adapters.files import write
from bot.adapters.run_folder import training
from bot.cli.error_boundary import OTHER
from bot.cli.training_work import TrainingWork, for_people, read, working
from bot.errors import UserError
from bot.models.job import JobOptions, RepairProgram
from bot.models.repair import Repair, RepairRequest
from bot.products import execute
from bot.render.repair_json import repair_text
from bot.render.sections.repair import document
from bot.text.sanitize import redact, rewritten

_PROVEN = 0


def repair(
    source: Path, arguments: tuple[str, ...], options: JobOptions, out: Path | None,
    request: RepairRequest, *, as_json: bool,
) -> int:  # fmt: skip
    """Repair a program."""
    program = read(source, arguments)
    job = RepairProgram(program=program, repair=request, **dict(options))
    with working(job, out, resumed=True) as work:
        return _show(work, execute(job, work.ports), source.name, as_json=as_json)


def kept_repair(folder: Path) -> Repair:
    """The repair that an earlier command wrote. Raises UserError when there is none."""
    try:
        written = json.loads((folder / "repair.json").read_bytes())
        program = {"entry": written["program"], "source_sha": written.get("program_sha", "")}
        kept = {**written["repair"], **program}
        return Repair.model_validate({**kept, "undecided": kept["undecided"] or ""})
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(
            f"{folder} is not the folder of a repair.", "Pass a folder that contains repair.json."
        ) from None


def _show(work: TrainingWork, found: Repair, name: str, *, as_json: bool) -> int:
    """Write the repair, print it for people or as JSON, and return the exit code."""
    hide = partial(redact, secrets=work.settings.secrets)
    found, folder = rewritten(found, hide), work.folder
    text = repair_text(found, program=name, hide=hide)
    write(folder / "repair.json", text)
    if found.diff:
        write(folder / "repair.diff", found.diff)
    training.keep_plot(folder / "repair.svg", found.curves)
    work.view.stop()
    whole = document(found, name=name, folder=str(folder))
    sys.stdout.write(text if as_json else for_people(whole))
    sys.stdout.flush()
    return _PROVEN if found.proven else OTHER
