"""The line that runs a report's program elsewhere: it must install what ran here, and nothing
else of that name.
"""

import json
import shlex
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from bot.issues.build_report import draft, finish, within_limit
from bot.issues.confirm import Decision
from bot.issues.program_phrases import cut_off, package_rows
from bot.kernel.attempt import Judgement, Match
from bot.kernel.environment import (
    Claimed,
    Environment,
    EnvironmentSpec,
    Package,
    PinSource,
    RepoSource,
)
from bot.kernel.report import AnyVerdict, Cancelled, IssueReport, SetupFailed
from bot.kernel.session import CompletedRun, SearchResult
from bot.model.budget import ModelBudget
from bot.report.comment import comment
from bot.report.report_json import report_text
from bot.report.terminal import terminal
from tests.contract.samples import attempt
from tests.unit.versioned import OK, World

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PUBLIC = "https://github.com/acme/lib.git"


OWN = Package(name="tinystat", version="0.1.0", rung=PinSource.REPOSITORY)
NUMPY = Package(name="numpy", version="1.19.5", rung=PinSource.ISSUE)
STOPPED = Cancelled(reason="stopped")


def told(
    *packages: Package,
    repo: RepoSource | None = None,
    verdict: AnyVerdict = STOPPED,
    roots: str = "",
    **more: object,
) -> IssueReport:
    """The report of a world in which just these packages were built."""
    world = World(lambda _: OK)
    runner, day = world.runner, datetime(2020, 8, 1, tzinfo=UTC)
    variables = {"PYTHONPATH": roots} if roots else {}
    built = Environment(
        id="e", python="3.8.20", interpreter="p", packages=packages, variables=variables
    )
    spec = EnvironmentSpec(python="3.8", exclude_newer=day, undated=("torch",), repo=repo)
    judgement = Judgement(match=Match.MATCHED, reason="it failed")
    run = CompletedRun(attempt().model_copy(update={"judgement": judgement}))
    result = SearchResult(world.script, spec, built.model_copy(update=more), run)
    decision = Decision(verdict, runner.bug, runner.signature, result)
    budget = ModelBudget(runner.ports, runner.job.model, 0.0)
    return finish(draft(runner, decision, budget), runner, 0.0)


def after(found: IssueReport, option: str) -> list[str]:
    words = shlex.split(found.command)
    return [word for before, word in pairwise(words) if before == option]


def test_a_package_of_a_public_clone_is_had_from_its_commit():
    found = told(
        NUMPY,
        OWN,
        repo=RepoSource(url=PUBLIC),
        commit=COMMIT,
        cloned="tinystat",
        undated=("numpy", "tinystat"),
    )
    assert after(found, "--with") == [f"tinystat @ git+{PUBLIC}@{COMMIT}", "numpy==1.19.5"]
    assert after(found, "--exclude-newer-package") == ["numpy=false"]
    assert found.command_needs == ""
    assert COMMIT in comment(found), "not taken for a credential"


@pytest.mark.parametrize(
    "repo",
    [
        RepoSource(url="", path="/home/me/clones/tinystat"),
        RepoSource(url="http://localhost:8000/tinystat.git"),
        RepoSource(url="https://git.example.internal/tinystat.git"),
        RepoSource(url="https://me:secret@github.com/acme/tinystat.git"),
    ],
)
def test_a_clone_that_is_not_public_is_named_by_its_commit_alone(repo):
    """An index may have anything under that name, and the way to the clone is nobody's business."""
    found = told(NUMPY, OWN, repo=repo, commit=COMMIT, cloned="tinystat")
    assert after(found, "--with") == ["numpy==1.19.5"]
    needs = f"The command does not install tinystat: add --with and the folder of its clone at commit {COMMIT[:12]}."
    assert found.command_needs == needs
    assert needs in " ".join(terminal(found).split())
    assert needs in comment(found).replace("`", "")
    assert json.loads(report_text(found))["command_needs"] == needs
    assert not any(
        (repo.url or repo.path) in text
        for text in (found.command, found.command_needs, terminal(found))
    )


def test_a_clone_on_the_path_is_asked_for_too():
    found = told(NUMPY, repo=RepoSource(url=PUBLIC), roots="/c/tree:/c/tree/src", commit=COMMIT)
    assert after(found, "--with") == ["numpy==1.19.5"]
    assert found.command_needs.endswith(f"put its clone at commit {COMMIT[:12]} on PYTHONPATH.")


def test_what_is_newer_than_the_report_is_let_in():
    """A pin of after the date, and a dependency that something newer needs; both would be hidden
    from uv otherwise.
    """
    drawn = Package(name="newer", version="2.0", rung=PinSource.DEPENDENCY)
    beside = Package(name="alpha", version="1.0", rung=PinSource.DEPENDENCY)
    tools = Package(name="setuptools", version="80.0", rung=PinSource.REPAIR)
    found = told(NUMPY, drawn, beside, tools, undated=("newer", "numpy", "setuptools"))
    assert after(found, "--exclude-newer") == ["2020-08-01T00:00:00Z"]
    assert after(found, "--exclude-newer-package") == ["newer=false", "numpy=false"]
    assert after(found, "--with") == ["numpy==1.19.5", "newer==2.0"]
    assert "before 2020-08-01 that fit, except for newer 2.0." in comment(found)
    assert (
        "setuptools",
        "80.0",
        "added to make it build: may be newer than the cut-off date",
    ) in package_rows(found)
    assert cut_off(found).endswith("before 2020-08-01 that fit, except for newer 2.0.")


def test_a_date_that_had_to_be_given_up_is_not_asked_for():
    given_up = Claimed(
        name="date", claimed="", resolved="", note="the cut-off 2020-08-01 left no solution"
    )
    assert "--exclude-newer" not in told(NUMPY, claims=(given_up,)).command


def test_there_is_no_command_where_no_environment_was_had():
    assert told(NUMPY).command
    found = told(NUMPY, verdict=SetupFailed(reason="nothing fits"))
    assert (found.command, found.command_needs) == ("", "")
    assert "Run it anywhere" not in terminal(found)


def test_what_was_built_from_a_clone_is_told_as_that():
    found = told(NUMPY, OWN, repo=RepoSource(url=PUBLIC), commit=COMMIT, cloned="tinystat")
    row = ("tinystat", "0.1.0", f"built from a clone of the repository at commit {COMMIT[:12]}")
    assert row in package_rows(found)
    assert f"| {' | '.join(row)} |" in comment(found).replace("`", "")


def test_evidence_beyond_what_a_report_may_hold_is_left_out_but_no_run_is() -> None:
    evidence = Judgement(match=Match.MATCHED, reason="met", evidence="a" * 1_000_000)
    runs = tuple(attempt(number).model_copy(update={"judgement": evidence}) for number in range(9))
    kept = within_limit(runs)
    assert [run.number for run in kept] == list(range(9))
    assert [bool(run.judgement.evidence) for run in kept] == [True] * 3 + [False] * 6
    assert {run.judgement.match for run in kept} == {Match.MATCHED}
