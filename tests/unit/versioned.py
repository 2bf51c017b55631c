"""A world in which what a program does hangs on the installed version of one package, or on the
commit.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event

from bot.issues.proof.bisection import bisect_commits, bisect_releases
from bot.issues.proof.outcome import Failing
from bot.issues.runner import judging
from bot.kernel.attempt import Attempt
from bot.kernel.bug import Commit, Issue, Release
from bot.kernel.environment import (
    Environment,
    EnvironmentSpec,
    Package,
    PinSource,
    RepoSource,
    Requirement,
)
from bot.kernel.journal import ATTEMPTS
from bot.kernel.ports import Ports
from bot.kernel.report import IssueReport, Reproduced
from bot.kernel.session import Session
from bot.products.engine import plan
from sandbox.port import RunResult
from tests.support.fakes import FakeBuilder, FakeCommits, FrozenClock, ListListener, MemoryJournal
from tests.support.jobs import issue_job
from tests.support.sandbox import FakeSandbox

REPRODUCED = Reproduced(
    runs=2, failures=2, interval=(0.3, 1.0), reason="it failed", determinism="deterministic"
)
DAY = datetime(2024, 1, 1, tzinfo=UTC)
MESSAGE = "mat1 and mat2 shapes cannot be multiplied (14x7 and 16x4)"
BODY = f"It fails:\n\n```python\nimport lib\nlib.fit()\n```\n\nError:\n\n```\nRuntimeError: {MESSAGE}\n```\n"
OK = RunResult(exit_code=0, stdout="done\n", seconds=1.0)


def raised(exception: str, message: str) -> RunResult:
    place = '  File "/e/lib/python3.11/site-packages/lib/core.py", line 9, in fit\n    return f()\n'
    top = 'Traceback (most recent call last):\n  File "repro.py", line 2, in <module>\n    lib.fit()\n'
    return RunResult(exit_code=1, stderr=f"{top}{place}{exception}: {message}\n", seconds=1.0)


FAILS = raised("RuntimeError", MESSAGE)
DECOY = raised("ModuleNotFoundError", "No module named 'lib.extras'")
OTHER = raised("AttributeError", "module 'lib' has no attribute 'fit'")


def released(count: int) -> tuple[Release, ...]:
    return tuple(
        Release(version=f"1.{at}", uploaded_at=DAY + timedelta(days=7 * at)) for at in range(count)
    )


def built(spec: EnvironmentSpec) -> Environment:
    """An environment that tells its programs what is installed and which commit it is of."""
    packages = tuple(
        Package(name=each.name, version=each.specifier.removeprefix("==") or "1.0", rung=each.rung)
        for each in (*spec.requirements, *spec.constraints)
    )
    commit = spec.repo.commit if spec.repo else ""
    versions = {each.name: each.version for each in packages}
    return Environment(
        id=f"{commit}-{sorted(versions.items())}",
        python=spec.python,
        interpreter="python3",
        packages=packages,
        variables={"LIB": versions.get("lib", ""), "COMMIT": commit},
    )


class World:
    """A runner where the failure of `lib` is confirmed at one version; `program` says what a run
    does at each.
    """

    def __init__(
        self,
        program: Callable[[str], RunResult],
        history: tuple[Release, ...] = (),
        bad: str = "1.0",
        body: str = BODY,
        build: Callable[[EnvironmentSpec], Environment] = built,
        commits: FakeCommits | None = None,
        earlier: tuple[Attempt, ...] = (),
        step: float = 0.0,
        **options: object,
    ) -> None:
        issue = Issue(
            title="fit fails",
            body=body,
            repository="acme/lib",
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        job = issue_job(issue, **options)
        self.sandbox = FakeSandbox(lambda spec: program(spec.env["COMMIT"] or spec.env["LIB"]))
        links = {"lib": "https://lib.example/changes"}
        self.builder = FakeBuilder(on_build=build, released={"lib": history}, changelogs=links)
        self.cancel = Event()
        ports = Ports(
            sandbox=self.sandbox,
            builder=self.builder,
            journal=MemoryJournal().fill(ATTEMPTS, earlier),
            clock=FrozenClock(step=step),
            listener=ListListener(),
            cancel=self.cancel,
            commits=commits,
        )
        draft = plan(job)
        self.runner = judging(Session.begin(job, ports), draft.bug, draft.signature)
        self.script = draft.script
        requirement = Requirement(
            name="lib", specifier=f"=={bad}", rung=PinSource.ISSUE, reason="reported"
        )
        self.spec = EnvironmentSpec(
            python="3.11", requirements=(requirement,), exclude_newer=DAY + timedelta(days=900)
        )
        self.built = self.runner.build(self.spec)

    def failing(self, report=None, **more):
        """The failure of the world's program, as a proof takes it up."""
        known = report or IssueReport(issue=self.runner.job.issue, verdict=REPRODUCED)
        return Failing(self.script, self.spec, self.built, known.draft(), **more)

    def releases(self, package="lib", **more):
        return bisect_releases(self.failing(), self.runner, package, **more)

    def commits(self, good, bad):
        source = RepoSource(url="", path="/somewhere")
        return bisect_commits(self.failing(), self.runner, source, good, bad)


def number(version: str) -> int:
    return int(version.partition(".")[2])


def broken(
    first: int, last: int, elsewhere: dict[int, RunResult] | None = None
) -> Callable[[str], RunResult]:
    """Fails from one release to another; `elsewhere` says what else happens at some."""
    others = elsewhere or {}
    return lambda at: others.get(number(at), FAILS if first <= number(at) <= last else OK)


def history(count):
    return tuple(
        Commit(id=f"{at:040x}", subject=f"change {at}", date=DAY + timedelta(days=at))
        for at in range(count)
    )
