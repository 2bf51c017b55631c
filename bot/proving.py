"""`reprise control`, `bisect` and `minimize`: more proof of a run that lies in its folder."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bot import exits
from bot.errors import Stopped, UserError
from bot.settings import load, secrets

if TYPE_CHECKING:
    from bot.adapters.folder import Folder
    from bot.models.attempt import Script
    from bot.models.job import Job, Proof
    from bot.models.report import Report
    from bot.ports import Ports

    Work = Callable[[Report, Job, Ports], Report]

_Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that was reproduced.", show_default=False)]
_Minutes = Annotated[float, typer.Option(help="Ends after so many minutes with what there is.", min=0.1, metavar="M")]
_Sandbox = Annotated[
    Literal["auto", "docker", "bwrap", "process"],
    typer.Option(help="What runs the code; auto takes the strongest that works and never process, which isolates nothing."),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON, and nothing else, on standard output.")]
_MOST_BYTES = 1_000_000
_USUAL = 30


def control(run: _Run, minutes: _Minutes = _USUAL, sandbox: _Sandbox = "auto", as_json: _Json = False) -> None:
    """Look for a version in which the program of a run passes, and run both in turn. The run's report then tells of it."""
    with exits.boundary(secrets=secrets):
        from bot.pipeline import later

        def work(report: Report, job: Job, ports: Ports) -> Report:
            return later.prove(report, job, ports, "control")

        raise typer.Exit(_proved(_Asked("control", run, minutes, sandbox), work, as_json=as_json))


def bisect(
    run: _Run,
    package: Annotated[
        str | None, typer.Option(help="What to bisect; default the package under test.", metavar="NAME", show_default=False)
    ] = None,
    repo: Annotated[str | None, typer.Option(help="Bisect the commits of this clone instead.", metavar="PATH|URL")] = None,
    good: Annotated[str | None, typer.Option(help="With --repo: a commit where it passes.", metavar="REF")] = None,
    bad: Annotated[str | None, typer.Option(help="With --repo: a commit where it fails.", metavar="REF")] = None,
    minutes: _Minutes = _USUAL,
    sandbox: _Sandbox = "auto",
    as_json: _Json = False,
) -> None:
    """Find the release, or the commit, that brought the failure of a run, and the one that took it away. Exit 3 when no commit
    can be named, as when the two that are given do not do as is said of them.
    """
    with exits.boundary(secrets=secrets):
        from bot.pipeline import claimed, later
        from bot.render.sanitize import one_line
        from bot.rules.packages.imports import normalise

        ends = _ends(repo, good, bad, package)
        named = normalise(package) if package else None
        untold, shown = "", False

        def work(report: Report, job: Job, ports: Ports) -> Report:
            if ends is None:
                _installed(named, report)
                job = job.model_copy(update={"options": job.options.model_copy(update={"package": named})})
                return later.prove(report, job, ports, "bisect")
            nonlocal untold, shown
            source = claimed.clone(job.options.model_copy(update={"repo": ends[0]}))
            assert source is not None
            report, found = later.bisect(report, job, ports, source, *ends[1:])
            untold = "" if found.bounded else found.ends or found.stopped or "nothing between the two could be tested"
            shown = bool(found.ends) and not as_json
            return report

        said = [("--package", package), ("--repo", repo), ("--good", good), ("--bad", bad)]
        more = tuple(word for option, value in said if value is not None for word in (option, value))
        swapped = ("--repo", repo or "", "--good", ends[2], "--bad", ends[1]) if ends else ()
        code = _proved(_Asked("bisect", run, minutes, sandbox, more, swapped), work, as_json=as_json, package=named or "")
        if untold:
            exits.say(one_line(f"No commit could be named{'' if shown else f': {untold}'}."))
        raise typer.Exit(exits.OTHER if untold else code)


def minimize(
    script: Annotated[
        Path,
        typer.Argument(
            metavar="SCRIPT", help="A program, a folder of files with repro.py, or the folder of a run.", show_default=False
        ),
    ],
    signature: Annotated[
        Path | None,
        typer.Option(help="The folder of a run: what counts as the failure, and where it fails.", metavar="RUN"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where the result is kept; default reprise-runs/<name>-<time>.", metavar="DIR")
    ] = None,
    minutes: _Minutes = _USUAL,
    sandbox: _Sandbox = "auto",
    as_json: _Json = False,
) -> None:
    """Make a failing program as small as it can be while it still fails in the very same way."""
    with exits.boundary(secrets=secrets):
        from bot.adapters.folder import STATE, kept_report
        from bot.pipeline import later

        run = signature or script
        given: Script | None = None
        if signature is not None:
            given = _program(script)
        elif not (script / STATE).is_file():
            raise UserError(
                f"What counts as the failure of {script} is not known.",
                "Name the folder of a run with --signature; reprise reproduce makes one.",
            )

        if out is not None and _done(out, kept_report(run), given):
            exits.say(f"{out} holds the result of this very job: it is gone on with.")
            run, out, given = out, None, None
        into = _into(given, script, out)

        def work(report: Report, job: Job, ports: Ports) -> Report:
            return later.prove(report, job, ports, "minimize", script=given)

        raise typer.Exit(_proved(_Asked("minimize", run, minutes, sandbox), work, as_json=as_json, into=into, given=given))


def _ends(repo: str | None, good: str | None, bad: str | None, package: str | None) -> tuple[str, str, str] | None:
    """The clone and the two commits, None when releases are to be bisected."""
    from bot import choices

    if repo is None and good is None and bad is None:
        return None
    if package is not None:
        raise UserError("Releases and commits cannot be bisected at once.", "Leave out --package, or --repo, --good and --bad.")
    where = choices.repo(repo)
    if where is None or good is None or bad is None:
        raise UserError("Commits are bisected between two that are known.", "Give --repo, --good and --bad together.")
    for option, each in (("--good", good), ("--bad", bad)):
        choices.ref(each, repo, option)
    return where, good, bad


def _installed(package: str | None, report: Report) -> None:
    from bot.pipeline import claimed

    if package and report.environment is not None and not claimed.installed(package, report.environment):
        near = ", ".join(each.name for each in report.environment.packages[:6])
        raise UserError(f"{package} is not installed where the program failed.", f"Installed there: {near}.")


def _program(path: Path) -> Script:
    """A program from a file, or from all files of a folder that a program can be made of."""
    from bot.models.attempt import Script

    if path.is_file():
        return Script(files={"repro.py": _text(path)}, origin=path.name)
    entry = "repro.py" if (path / "repro.py").is_file() else "main.py"
    if not (path / entry).is_file():
        raise UserError(f"{path} is no program.", "Give a Python file, or a folder with repro.py or main.py in it.")
    found = {each.relative_to(path): each for each in sorted(path.rglob("*.py"))}
    files = {name.as_posix(): _text(each) for name, each in found.items() if not any(part[0] == "." for part in name.parts)}
    return Script(files=files, entry=entry, origin=path.name)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if len(data) > _MOST_BYTES:
            raise UserError(f"{path} is larger than a program may be ({_MOST_BYTES:,} bytes).", "Give the program alone.")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text.", "Give a Python program.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).", "Check the path.") from None


def _done(out: Path, report: Report, given: Script | None) -> bool:
    """Whether a folder holds a result of making this program smaller for this failure. Raises UserError for another result."""
    from bot.adapters.folder import REPORT, kept_report, not_ours
    from bot.pipeline import later

    if not (out / REPORT).exists():
        return False
    kept, ours = kept_report(out), given or later.program(report)
    theirs = later.program(kept)
    same = theirs is not None and ours is not None and theirs.digest == ours.digest
    if same and (kept.signature_hash, kept.spec) == (report.signature_hash, report.spec):
        return True
    raise not_ours(out)


def _into(given: Script | None, path: Path, out: Path | None) -> Path | None:
    """A folder of its own for a program that came from elsewhere; None: the folder of the run."""
    if given is None and out is None:
        return None
    name = f"{path.stem or 'program'}-minimized-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    return out or load().runs_dir / name


@dataclass(frozen=True)
class _Asked:
    """A proof of the run in a folder, its limits, and the options that are the command's own."""

    proof: Proof
    run: Path
    minutes: float
    sandbox: str
    more: tuple[str, ...] = ()
    swapped: tuple[str, ...] = ()

    def again(self, folder: Path, why: str) -> str:
        """The command that goes on with it in a folder; with more time, where that was up."""
        return self._command(folder, self.minutes * (1 if why.startswith("stopped") else 2), self.more)

    def other_way_round(self, folder: Path) -> str:
        """The command with its two commits swapped; "" for one that has none."""
        return self._command(folder, self.minutes, self.swapped) if self.swapped else ""

    def _command(self, folder: Path, minutes: float, more: tuple[str, ...]) -> str:
        limits = [] if minutes == _USUAL else ["--minutes", f"{minutes:g}"]
        limits += ["--sandbox", self.sandbox] if self.sandbox != "auto" else []
        return shlex.join(["reprise", self.proof, str(folder), *more, *limits])


def _proved(
    asked: _Asked,
    work: Work,
    *,
    as_json: bool,
    into: Path | None = None,
    given: Script | None = None,
    package: str = "",
) -> int:
    """Work on a run and write its report anew, in its folder or in another one; the exit code."""
    from rich.console import Console

    from bot import bootstrap
    from bot.adapters.folder import kept_job, kept_report
    from bot.progress import shown_on
    from bot.render.found import Telling
    from bot.showing import chosen, show

    settings, report, job = load(), kept_report(asked.run), kept_job(asked.run)
    options = job.options.model_copy(update={"proof_minutes": asked.minutes, "sandbox": asked.sandbox})
    job = job.model_copy(update={"options": options})
    runs_in = chosen(options)
    folder: Folder = exits.opened(into or asked.run)
    copied = asked.run if into is not None and given is None else None
    cancel = Event()
    with closing(folder), exits.boundary(lambda: folder.path, lambda: settings.secrets), exits.stoppable(cancel):
        with shown_on(Console(stderr=True)) as listener:
            try:
                found = bootstrap.prove(
                    report, job, settings, folder, work,
                    listener=listener, cancel=cancel, sandbox=runs_in, given=given, run=copied,
                )  # fmt: skip
            except (UserError, Stopped):
                folder.discard()
                raise
        why = found.cut_short.get(asked.proof, "")
        told = Telling(
            proof=asked.proof,
            run=str(folder.path),
            again=asked.again(folder.path, why),
            swapped=asked.other_way_round(folder.path),
            notes=found.proof_notes.get(asked.proof, ()),
            before=report if given is None else None,
            package=package,
        )
        show(found, settings, folder, as_json=as_json, told=told)
        if asked.proof in found.defects:
            return exits.DEFECT
        return exits.OTHER if why else exits.code(found)
