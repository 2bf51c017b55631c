"""Control and bisection on the real thing: a known regression of a small package, and commits of
a repository.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.environment.builder import UvBuilder
from bot.environment.commits import GitCommits
from bot.environment.git import Git
from bot.issues.phrases import bisection_line, control_line
from bot.issues.proof.bisection import bisect_commits, bisect_releases
from bot.issues.proof.control import control
from bot.issues.proof.outcome import Failing
from bot.issues.reading import issue as reading_issue
from bot.issues.runner import Runner, judging
from bot.issues.signature import freeze
from bot.kernel.attempt import Script
from bot.kernel.bug import Issue, Provided
from bot.kernel.environment import EnvironmentSpec, PinSource, RepoSource, Requirement
from bot.kernel.errors import UserError
from bot.kernel.ports import Ports
from bot.kernel.report import ReportDraft, Reproduced
from bot.kernel.session import Session
from sandbox.cache import Cache
from sandbox.process import ProcessSandbox
from tests.integration.test_builder import open_to_the_sandbox
from tests.support.fakes import ListListener, MemoryJournal
from tests.support.jobs import issue_job

HOST = f"{sys.version_info.major}.{sys.version_info.minor}"
PROGRAM = """from typing_extensions import ParamSpec, Protocol

P = ParamSpec("P")


class Callback(Protocol[P]):
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None: ...


print("defined")
"""
ERROR = "TypeError: Parameters to Protocol[...] must all be type variables. Parameter 1 is ~P"


def prepared(
    body: str, cache: Path, title: str = "Protocol generic over a ParamSpec", **options: object
) -> Runner:
    """A runner with the report read and its signature frozen, on this machine's builder, sandbox
    and git.
    """
    issue = Issue(
        title=title,
        body=body,
        repository="python/typing_extensions",
        created_at=datetime(2023, 5, 24, tzinfo=UTC),
    )
    environ = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1"}
    ports = Ports(
        sandbox=ProcessSandbox(),
        builder=UvBuilder(cache, ProcessSandbox(), torch_index=False),
        journal=MemoryJournal(),
        clock=time.monotonic,
        listener=ListListener(),
        commits=GitCommits(Git(Cache(cache), environ)),
    )
    bug = reading_issue.read_issue(issue)
    signature = freeze.freeze(bug)
    assert signature is not None
    return judging(Session.begin(issue_job(issue, **options), ports), bug, signature)


def failing(at: Runner, script: Script, spec: EnvironmentSpec) -> Failing:
    verdict = Reproduced(
        runs=2, failures=2, interval=(0.158, 1.0), reason="", determinism="deterministic"
    )
    known = ReportDraft(issue=at.job.issue, verdict=verdict)
    return Failing(script, spec, at.build(spec), known)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that the sandbox's own user may look into, with one copy of each Python."""
    root = tmp_path_factory.mktemp("cache")
    open_to_the_sandbox(root)
    return root / "cache"


@pytest.mark.index
@pytest.mark.slow  # a dozen environments
def test_a_known_regression_is_followed_to_the_releases_that_brought_and_mended_it(
    cache: Path,
) -> None:
    body = f"With typing_extensions 4.6.0:\n\n```python\n{PROGRAM}```\n\n```\n{ERROR}\n```\n\nIt works in typing_extensions 4.5.0.\n"
    at = prepared(body, cache)
    script = Script(files={"repro.py": PROGRAM})
    wanted = Requirement(
        name="typing-extensions", specifier="==4.6.0", rung=PinSource.ISSUE, reason="reported"
    )
    spec = EnvironmentSpec(
        python=HOST, requirements=(wanted,), exclude_newer=at.job.issue.created_at
    )
    built = at.build(spec)
    assert [at.run(script, built, seed, "confirm").match for seed in (1, 2)] == [
        "matched",
        "matched",
    ]
    controlled = control(failing(at, script, spec), at)
    assert controlled.control.type == "last-good-version", controlled.notes
    assert [(each.text, each.holds) for each in controlled.claims] == [
        ("typing-extensions 4.5.0 works", True)
    ]
    found = bisect_releases(failing(at, script, spec), at, "typing-extensions")
    assert found is not None
    assert bisection_line(found) == "introduced in 4.6.0 (2023-05-23), fixed in 4.6.1 (2023-05-24)"
    assert found.last_good is not None
    assert found.last_good.at == "4.5.0"
    assert found.changelog.startswith("https://")
    verdict = Reproduced(
        runs=2,
        failures=2,
        interval=(0.158, 1.0),
        reason="",
        determinism="deterministic",
        control=controlled.control,
    )
    assert control_line(verdict) == (
        "5 of 5 runs failed, but 0 of 5 failed with typing-extensions 4.5.0 (p = 0.004)"
    )


def git(where: Path, *argv: str, day: str = "2024-01-10T00:00:00Z") -> str:
    """One git command with a name, a day and no configuration."""
    env = {"PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = (
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.invalid",
        "-c",
        "commit.gpgsign=false",
    )
    done = subprocess.run(
        ["git", *identity, *argv],
        cwd=where,
        env={**env, "GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, list[str]]:
    """Twelve commits of one module, tagged every third, that breaks in the eighth, and a branch
    that is merged.
    """
    where = tmp_path / "net"
    where.mkdir()
    git(where, "init", "-q", "-b", "main")
    ids = []
    for number in range(12):
        fit = (
            "raise ValueError('fourteen by sixteen is no size of a batch')"
            if number >= 8
            else f"return {number}"
        )
        (where / "net.py").write_text(f"def fit():\n    {fit}\n", encoding="utf-8")
        git(where, "add", ".")
        if number == 5:
            git(where, "checkout", "-q", "-b", "side")
            (where / "side.py").write_text("", encoding="utf-8")
            git(where, "add", ".")
            git(where, "commit", "-qm", "side work")
            git(where, "checkout", "-q", "main")
            git(where, "merge", "-q", "--no-ff", "-m", "merge side", "side")
        git(
            where,
            "commit",
            "-q",
            "--allow-empty",
            "-am",
            f"change {number}",
            day=f"2024-01-{number + 1:02d}T00:00:00Z",
        )
        ids.append(git(where, "rev-parse", "HEAD"))
        if number % 3 == 0:
            git(where, "tag", f"v0.{number}")
    return where, ids


def test_the_history_of_a_clone(repository: tuple[Path, list[str]], tmp_path: Path) -> None:
    where, ids = repository
    source, commits = (
        RepoSource(url="", path=str(where)),
        GitCommits(Git(Cache(tmp_path / "cache"), dict(os.environ))),
    )
    line = commits.line(source, "v0.3", "main")
    assert [each.subject for each in line] == [
        "change 4",
        "merge side",
        *(f"change {each}" for each in range(5, 12)),
    ]
    assert (line[-1].id, line[0].date) == (ids[-1], datetime(2024, 1, 5, tzinfo=UTC))
    assert commits.line(source, "main", "v0.3") == ()
    assert commits.commit(source, "").id == ids[-1]
    between = [each.subject for each in commits.between(source, "0.3", "0.6")]
    assert between[:2] == ["change 6", "change 5"]
    assert sorted(between) == ["change 4", "change 5", "change 6", "side work"]
    assert commits.between(source, "0.3", "9.9") == ()
    assert commits.between(source, "3", "6") == (), "0.3 is not 3"
    assert len(commits.between(source, "0.3", "0.9", limit=2)) == 2
    assert commits.tags(source, ids[10]) == ("", "v0.9")
    git(where, "tag", "nightly", ids[11])
    git(where, "tag", "nightly-too", ids[4])
    again = GitCommits(Git(Cache(tmp_path / "cache"), dict(os.environ)))
    assert again.tags(source, ids[4]) == ("v0.6", "v0.3"), (
        "a release, not what is tagged every night"
    )
    assert again.tags(source, ids[10]) == ("nightly", "v0.9"), "for want of a release"
    assert again.provides(source, ids[4]) == Provided(on_path=("net",))


@pytest.mark.parametrize(
    "ref", ["--output=/tmp/x", "-x", "a..b", "main; id", "no-such-branch", "HEAD:net.py"]
)
def test_a_name_that_is_no_commit(
    repository: tuple[Path, list[str]], tmp_path: Path, ref: str
) -> None:
    commits = GitCommits(Git(Cache(tmp_path / "cache"), dict(os.environ)))
    with pytest.raises(UserError):
        commits.commit(RepoSource(url="", path=str(repository[0])), ref)


@pytest.mark.index
def test_the_commit_that_broke_a_module_is_named(
    repository: tuple[Path, list[str]], cache: Path
) -> None:
    where, ids = repository
    program = "import net\n\nnet.fit()\n"
    error = "ValueError: fourteen by sixteen is no size of a batch"
    at = prepared(
        f"It fails:\n\n```python\n{program}```\n\n```\n{error}\n```\n", cache, "fit fails"
    )
    script, source = Script(files={"repro.py": program}), RepoSource(url="", path=str(where))
    spec = EnvironmentSpec(python=HOST, repo=source)
    found = bisect_commits(failing(at, script, spec), at, source, "v0.0", "main")
    assert found.first_bad is not None, found
    assert (found.first_bad.subject, found.first_bad.at) == ("change 8", ids[8])
    assert found.last_good is not None
    assert found.last_good.subject == "change 7"
    assert len(found.probes) <= 7
