"""Failing programs of repositories made one small script that fails in the same way without the
repository.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from time import monotonic

from benchmarks.minimise import Say, runner_for, still_fails
from bot.issues.proof.minimise import confirmed_identity
from bot.issues.proof.standalone import minimise_program, without_tree
from bot.issues.reading import issue as reading_issue
from bot.issues.reduce.edits import size
from bot.issues.signature import freeze
from bot.kernel import tree_programs
from bot.kernel.attempt import Match
from bot.kernel.bug import Issue, ScriptFix
from bot.kernel.environment import EnvironmentSpec, PinSource, RepoSource, Requirement
from bot.kernel.errors import UserError
from bot.kernel.ports import Builder
from bot.kernel.trees import read_tree
from bot.kernel.values import Record
from sandbox.port import Sandbox

_MAX_TESTS = 4_000


class ProgramCase(Record):
    """A command that fails in a repository: what was shown, what it needs, and the small data files
    that it reads. The newest commit of the clone is used where none is named.
    """

    repository: str
    command: str
    shown: str
    commit: str = ""
    python: str = "3.11"
    requirements: dict[str, str] = {}
    files: dict[str, str] = {}


class ProgramResult(Record):
    """One program made smaller. `repository_lines` are all Python lines of the tree that are not
    blank, `ran` those that the program executed. `same` is whether the result shows the confirmed
    failure in a fresh run without the tree, `why` why there is none.
    """

    case: str
    repository: str
    repository_lines: int = 0
    ran: int = 0
    after: int = 0
    files: int = 0
    tests: int = 0
    seconds: float = 0.0
    same: bool = False
    copied: str = ""
    why: str = ""


def find_programs(folder: Path, only: list[str]) -> dict[str, ProgramCase]:
    """The cases of a folder by their names. Raises UserError where there is none."""
    cases = {
        path.stem: ProgramCase.model_validate_json(path.read_bytes())
        for path in sorted(folder.glob("*.json"))
        if not only or path.stem in only
    }
    if not cases:
        raise UserError(f"{folder} contains no case.", "Name a folder of NAME.json files.")
    return cases


def minimise_case(
    name: str,
    case: ProgramCase,
    clones: Path,
    world: tuple[Sandbox, Builder],
    say: Say,
    *,
    seconds: float,
) -> ProgramResult:
    """One case: confirmed by two runs, then made smaller within a limit of time."""
    draft = ProgramResult(case=name, repository=case.repository)
    body = f"```\n{case.command}\n```\n\n```\n{case.shown}\n```\n"
    bug = reading_issue.read_issue(Issue(title=name, body=body, repository=case.repository))
    signature = freeze.freeze(bug)
    environment = world[1].build(_spec(case, clones))
    tree = read_tree(environment.tree)
    scripts = tree_programs.propose(tree_programs.commands(bug), tree)
    if signature is None or not scripts:
        return draft.model_copy(update={"why": "no command or no failure was read"})
    files = {**scripts[0].files, **case.files}
    fixes = (ScriptFix(what="small data files", why="the benchmark brings them"),)
    script = scripts[0].model_copy(
        update={
            "files": files,
            "fixes": fixes if case.files else (),
            "edited": tuple(case.files),
        }
    )
    runner = runner_for(world, signature)
    runs = [runner.run(script, environment, seed, "confirm") for seed in (1, 2)]
    confirmed = confirmed_identity(runner, script, environment)
    if confirmed is None or any(run.match is not Match.MATCHED for run in runs):
        return draft.model_copy(update={"why": f"not confirmed: {runs[-1].judgement.reason}"})
    reference, seeds = confirmed
    began = monotonic()
    reduced = minimise_program(
        runner, script, environment, reference,
        seeds=seeds, earlier=None, max_tests=_MAX_TESTS, seconds=seconds,
    )  # fmt: skip
    small = reduced.script
    say(f"{name}: {reduced.lines_before} → {reduced.lines_after} lines ({reduced.ended})")
    for path, text in small.files.items():
        say(f"--- {path}\n{text}")
    python = {path: data.decode("utf-8", "replace") for path, data in tree.items()}
    whole = {path: text for path, text in python.items() if path.endswith(".py")}
    is_alone = not small.command
    return draft.model_copy(
        update={
            "repository_lines": size(whole)[0],
            "ran": reduced.lines_before,
            "after": reduced.lines_after,
            "files": len(small.files),
            "tests": reduced.tests,
            "seconds": monotonic() - began,
            "same": is_alone and still_fails(runner, small, without_tree(environment)),
            "copied": small.fault_code.path if small.fault_code is not None else "",
            "why": "" if is_alone else "it still needs the repository",
        }
    )


def _spec(case: ProgramCase, clones: Path) -> EnvironmentSpec:
    below = clones / case.repository.replace("/", "+")
    places = (below / "repo", below / "repo" / ".git", below)
    clone = next((place for place in places if (place / "HEAD").is_file()), None)
    if clone is None:
        raise UserError(f"{below} is no clone.", "Clone it to OWNER+NAME below --clones.")
    requirements = tuple(
        Requirement(name=name, specifier=specifier, rung=PinSource.OPTION, reason="benchmark")
        for name, specifier in case.requirements.items()
    )
    source = RepoSource(url="", path=str(clone), commit=case.commit, in_place=True)
    return EnvironmentSpec(python=case.python, requirements=requirements, repo=source)


def describe_programs(rows: list[ProgramResult]) -> str:
    """The table, with the median length of the scripts."""
    lines = [
        (
            f"{'case':14} {'repository':34} {'lines':>7} {'ran':>6} {'after':>6} {'files':>5} "
            f"{'tests':>6} {'seconds':>8}  same failure"
        )
    ]
    for row in rows:
        same = "yes" if row.same else f"NO: {row.why}"
        copied = f", its code copied from {row.copied}" if row.copied else ""
        lines.append(
            f"{row.case:14} {row.repository:34} {row.repository_lines:7} {row.ran:6} {row.after:6} "
            f"{row.files:5} {row.tests:6} {row.seconds:8.1f}  {same}{copied}"
        )
    after = [row.after for row in rows if row.same]
    if after:
        lines.append(f"median of {len(after)} of {len(rows)}: {statistics.median(after):g} lines")
    return "\n".join(lines)
