"""What the commands for proofs do; each returns the exit code."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from packaging.utils import canonicalize_name

from bot.cli import options
from bot.cli.error_boundary import OTHER, say
from bot.cli.runner import ProofCommand, run_proof
from bot.issues.proof import outcome, proofs
from bot.kernel.attempt import Script
from bot.kernel.bug import Bisection
from bot.kernel.environment import RepoSource
from bot.kernel.errors import UserError
from bot.kernel.job import ReproduceIssue
from bot.kernel.outside_text import one_line
from bot.kernel.ports import Ports
from bot.kernel.report import IssueReport
from bot.kernel.settings import load
from bot.report.run_folder import REPORT, STATE, kept_report, not_ours

_MAX_BYTES = 1_000_000


def run_control(command: ProofCommand, *, as_json: bool) -> int:
    """Find a version in which the program passes."""
    return run_proof(command, partial(proofs.resume_proof, proof="control"), as_json=as_json)


def bisect_releases(command: ProofCommand, package: str | None, *, as_json: bool) -> int:
    """Bisect the releases of a package; None: the one under test."""
    name = canonicalize_name(package) if package else None

    def work(report: IssueReport, job: ReproduceIssue, ports: Ports) -> IssueReport:
        _check_installed(name, report)
        proof = job.proof.model_copy(update={"package": name})
        return proofs.resume_proof(report, job.model_copy(update={"proof": proof}), ports, "bisect")

    command = replace(command, more=("--package", package) if package else ())
    return run_proof(command, work, as_json=as_json, package=name or "")


def _check_installed(package: str | None, report: IssueReport) -> None:
    if package is None or report.environment is None:
        return
    if not outcome.installed_name(package, report.environment):
        package_names = ", ".join(package.name for package in report.environment.packages[:6])
        raise UserError(
            f"{package} is not installed in the environment of this run.",
            f"Installed packages include: {package_names}.",
        )


def bisect_commits(
    command: ProofCommand, repo: str, clone: str, good: str, bad: str, *, as_json: bool
) -> int:
    """Bisect the commits of a clone, which the user wrote as `repo`."""
    bisections: list[Bisection] = []

    def work(report: IssueReport, job: ReproduceIssue, ports: Ports) -> IssueReport:
        report, bisection = proofs.bisect(report, job, ports, RepoSource.of(clone), good, bad)
        bisections.append(bisection)
        return report

    more = ("--repo", repo, "--good", good, "--bad", bad)
    swapped_arguments = ("--repo", repo, "--good", bad, "--bad", good)
    code = run_proof(replace(command, more=more, swapped=swapped_arguments), work, as_json=as_json)
    if not bisections or bisections[0].bounded:
        return code
    bisection = bisections[0]
    reason = bisection.ends or bisection.stopped or "no commit between the two could be tested"
    detail = "" if bisection.ends and not as_json else f": {reason}"  # the report has just said it
    say(one_line(f"No commit was identified{detail}."))
    return OTHER


def commit_range(
    repo: str | None, good: str | None, bad: str | None, package: str | None
) -> tuple[str, str, str]:
    """The clone and the two commits. Raises UserError when one is missing or malformed."""
    if package is not None:
        raise UserError(
            "Releases and commits cannot be bisected in one command.",
            "Drop --package, or drop --repo, --good and --bad.",
        )
    where = options.repo(repo)
    if where is None or good is None or bad is None:
        raise UserError(
            "A commit bisection needs a clone and two known commits.",
            "Give --repo, --good and --bad together.",
        )
    for option, commit in (("--good", good), ("--bad", bad)):
        options.ref(commit, repo, option)
    return where, good, bad


def run_minimize(
    command: ProofCommand, program: Script | None, script: Path, out: Path | None, *, as_json: bool
) -> int:
    """Make the program of the command's run smaller, or the one given, which came from `script`."""
    if program is None and not (command.run / STATE).is_file():
        raise UserError(
            f"Reprise does not know what counts as the failure of {script}.",
            "Name a run folder with --signature; reprise reproduce creates one.",
        )
    if out is not None and _has_result(out, kept_report(command.run), program):
        say(f"{out} already contains this result. Continuing from it.")
        command, out, program = replace(command, run=out), None, None
    work = partial(proofs.resume_proof, proof="minimize", script=program)
    into = _destination(program, script, out)
    return run_proof(command, work, as_json=as_json, into=into, script=program)


def program(path: Path) -> Script:
    """A program from a file, or from the Python files of a folder."""
    if path.is_file():
        return Script(files={"repro.py": _text(path)}, origin=path.name)
    entry = "repro.py" if (path / "repro.py").is_file() else "main.py"
    if not (path / entry).is_file():
        raise UserError(
            f"{path} is not a program.",
            "Pass a Python file, or a folder that contains repro.py or main.py.",
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
                "Pass only the program.",
            )
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text.", "Pass a Python program.") from None
    except OSError as error:
        raise UserError(f"Cannot read {path} ({error.strerror}).", "Check the path.") from None


def _has_result(out: Path, report: IssueReport, program: Script | None) -> bool:
    """Whether `out` holds a result for this program and failure. Raises UserError for another."""
    if not (out / REPORT).exists():
        return False
    report_before, ours = kept_report(out), program or proofs.program(report)
    theirs = proofs.program(report_before)
    same = theirs is not None and ours is not None and theirs.digest == ours.digest
    if same and (report_before.signature_hash, report_before.spec) == (
        report.signature_hash,
        report.spec,
    ):
        return True
    raise not_ours(out)


def _destination(program: Script | None, path: Path, out: Path | None) -> Path | None:
    """A new folder for a program from elsewhere; None: the folder of the run."""
    if program is None and out is None:
        return None
    name = f"{path.stem or 'program'}-minimized-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    return out or load().runs_dir / name
