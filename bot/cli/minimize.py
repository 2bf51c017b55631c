"""`reprise minimize SCRIPT`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.arguments import DEFAULT_PROOF_MINUTES, Json, Minutes, Sandbox
from bot.cli.error_boundary import boundary, say
from bot.errors import UserError
from bot.settings import load, secrets

if TYPE_CHECKING:
    from bot.models.attempt import Script
    from bot.models.report import Report

_MAX_BYTES = 1_000_000


@boundary(secrets=secrets)
def minimize(
    script: Annotated[
        Path,
        typer.Argument(
            metavar="SCRIPT", help="A program, a folder with repro.py or main.py, or a run folder."
        ),
    ],
    signature: Annotated[
        Path | None,
        typer.Option(
            help="Run folder that defines the failure and its environment.", metavar="RUN"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Result folder. Default: reprise-runs/<name>-<time>.", metavar="DIR"),
    ] = None,
    minutes: Minutes = DEFAULT_PROOF_MINUTES,
    sandbox: Sandbox = "auto",
    as_json: Json = False,
) -> None:
    """Make a failing program as small as possible. The result still fails in the same way."""
    from bot.adapters.run_folder.folder import kept_report
    from bot.cli.runner import ProofCommand, run_proof
    from bot.pipeline.proof import resume

    run, given = _inputs(script, signature)
    if out is not None and _has_result(out, kept_report(run), given):
        say(f"{out} already holds this result. Continuing from it.")
        run, out, given = out, None, None
    command = ProofCommand("minimize", run, minutes, sandbox)
    raise typer.Exit(
        run_proof(
            command,
            lambda report, job, ports: resume.prove(report, job, ports, "minimize", script=given),
            as_json=as_json,
            into=_destination(given, script, out),
            given=given,
        )
    )


def _inputs(script: Path, signature: Path | None) -> tuple[Path, Script | None]:
    """The run folder that defines the failure, and the program when it is not that run's own."""
    from bot.adapters.run_folder.folder import STATE

    if signature is not None:
        return signature, _program(script)
    if not (script / STATE).is_file():
        raise UserError(
            f"Reprise does not know what counts as the failure of {script}.",
            "Name a run folder with --signature; reprise reproduce creates one.",
        )
    return script, None


def _program(path: Path) -> Script:
    """A program from a file, or from the Python files of a folder."""
    from bot.models.attempt import Script

    if path.is_file():
        return Script(files={"repro.py": _text(path)}, origin=path.name)
    entry = "repro.py" if (path / "repro.py").is_file() else "main.py"
    if not (path / entry).is_file():
        raise UserError(
            f"{path} is not a program.",
            "Give a Python file, or a folder that contains repro.py or main.py.",
        )
    names = (file.relative_to(path) for file in sorted(path.rglob("*.py")))
    visible = [name for name in names if not any(part[0] == "." for part in name.parts)]
    files = {name.as_posix(): _text(path / name) for name in visible}
    return Script(files=files, entry=entry, origin=path.name)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > _MAX_BYTES:
            raise UserError(
                f"{path} is too large: a program may have {_MAX_BYTES:,} bytes.",
                "Give only the program.",
            )
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text.", "Give a Python program.") from None
    except OSError as error:
        raise UserError(f"Cannot read {path} ({error.strerror}).", "Check the path.") from None


def _has_result(out: Path, report: Report, given: Script | None) -> bool:
    """Whether `out` holds a result for this program and failure. Raises UserError for another."""
    from bot.adapters.run_folder.folder import REPORT, kept_report, not_ours
    from bot.pipeline.proof import resume

    if not (out / REPORT).exists():
        return False
    kept, ours = kept_report(out), given or resume.program(report)
    theirs = resume.program(kept)
    same = theirs is not None and ours is not None and theirs.digest == ours.digest
    if same and (kept.signature_hash, kept.spec) == (report.signature_hash, report.spec):
        return True
    raise not_ours(out)


def _destination(given: Script | None, path: Path, out: Path | None) -> Path | None:
    """A new folder for a program from elsewhere; None: the folder of the run."""
    if given is None and out is None:
        return None
    name = f"{path.stem or 'program'}-minimized-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    return out or load().runs_dir / name
