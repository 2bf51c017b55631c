"""`reprise bisect RUN`: releases of a package, or commits of a clone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import error_boundary
from bot.cli.arguments import DEFAULT_PROOF_MINUTES, Json, Minutes, Run, Sandbox, SandboxName
from bot.errors import UserError
from bot.settings import secrets

if TYPE_CHECKING:
    from bot.models.bisect import Bisection
    from bot.models.job import Job
    from bot.models.report import Report
    from bot.ports import Ports


@error_boundary.boundary(secrets=secrets)
def bisect(
    run: Run,
    package: Annotated[
        str | None,
        typer.Option(help="Package to bisect. Default: the package under test.", metavar="NAME"),
    ] = None,
    repo: Annotated[
        str | None, typer.Option(help="Bisect the commits of this clone.", metavar="PATH|URL")
    ] = None,
    good: Annotated[
        str | None, typer.Option(help="With --repo: a commit that passes.", metavar="REF")
    ] = None,
    bad: Annotated[
        str | None, typer.Option(help="With --repo: a commit that fails.", metavar="REF")
    ] = None,
    minutes: Minutes = DEFAULT_PROOF_MINUTES,
    sandbox: Sandbox = "auto",
    as_json: Json = False,
) -> None:
    """Find the release or commit that introduced the failure. Also finds the one that fixed it.

    Exit code 3: no first bad or first fixed commit was found, for example because --good fails
    or --bad passes.
    """
    if repo is None and good is None and bad is None:
        code = _releases(run, package, minutes, sandbox, as_json=as_json)
    else:
        clone, good, bad = _commit_range(repo, good, bad, package)
        code = _commits(run, clone, repo or "", good, bad, minutes, sandbox, as_json=as_json)
    raise typer.Exit(code)


def _releases(
    run: Path, package: str | None, minutes: float, sandbox: SandboxName, *, as_json: bool
) -> int:
    from packaging.utils import canonicalize_name

    from bot.cli.runner import ProofCommand, run_proof
    from bot.pipeline.proof import resume

    name = canonicalize_name(package) if package else None

    def work(report: Report, job: Job, ports: Ports) -> Report:
        _check_installed(name, report)
        options = job.options.model_copy(update={"package": name})
        return resume.prove(report, job.model_copy(update={"options": options}), ports, "bisect")

    more = ("--package", package) if package else ()
    command = ProofCommand("bisect", run, minutes, sandbox, more)
    return run_proof(command, work, as_json=as_json, package=name or "")


def _commits(
    run: Path,
    clone: str,
    repo: str,
    good: str,
    bad: str,
    minutes: float,
    sandbox: SandboxName,
    *,
    as_json: bool,
) -> int:
    from bot.cli.runner import ProofCommand, run_proof
    from bot.models.environment import RepoSource
    from bot.pipeline.proof import resume
    from bot.text.sanitize import one_line

    bisections: list[Bisection] = []

    def work(report: Report, job: Job, ports: Ports) -> Report:
        report, bisection = resume.bisect(report, job, ports, RepoSource.of(clone), good, bad)
        bisections.append(bisection)
        return report

    command = ProofCommand(
        "bisect", run, minutes, sandbox,
        more=("--repo", repo, "--good", good, "--bad", bad),
        swapped=("--repo", repo, "--good", bad, "--bad", good),
    )  # fmt: skip
    code = run_proof(command, work, as_json=as_json)
    if not bisections or bisections[0].bounded:
        return code
    found = bisections[0]
    reason = found.ends or found.stopped or "no commit between the two could be tested"
    detail = "" if found.ends and not as_json else f": {reason}"  # the report has just said it
    error_boundary.say(one_line(f"No commit was identified{detail}."))
    return error_boundary.OTHER


def _commit_range(
    repo: str | None, good: str | None, bad: str | None, package: str | None
) -> tuple[str, str, str]:
    """The clone and the two commits. Raises UserError when one is missing or malformed."""
    from bot.cli import option_parsing

    if package is not None:
        raise UserError(
            "Releases and commits cannot be bisected in one command.",
            "Drop --package, or drop --repo, --good and --bad.",
        )
    where = option_parsing.repo(repo)
    if where is None or good is None or bad is None:
        raise UserError(
            "A commit bisection needs a clone and two known commits.",
            "Give --repo, --good and --bad together.",
        )
    for option, commit in (("--good", good), ("--bad", bad)):
        option_parsing.ref(commit, repo, option)
    return where, good, bad


def _check_installed(package: str | None, report: Report) -> None:
    from bot.pipeline.proof import version_claims

    if package is None or report.environment is None:
        return
    if not version_claims.installed(package, report.environment):
        known = ", ".join(installed.name for installed in report.environment.packages[:6])
        raise UserError(
            f"{package} is not installed in the environment of this run.",
            f"Installed packages include: {known}.",
        )
