"""A pytest of the report's day that this Python cannot start gives way to a later one."""

from datetime import UTC, datetime

import pytest

from bot.issues.runner import judging
from bot.issues.search import recovery
from bot.kernel.attempt import Failure, Judgement, Match, Script
from bot.kernel.bug import BugReport, CrashSignature, Frame, Release, ReportKind
from bot.kernel.environment import Environment, EnvironmentSpec, Package, PinSource, Requirement
from bot.kernel.session import Session
from tests.support.fakes import FakeBuilder
from tests.support.jobs import issue_job
from tests.unit.test_pipeline import report, world

PYTEST = Package(name="pytest", version="5.4.3", rung=PinSource.DATE)
HISTORY = tuple(
    Release(version=version, uploaded_at=datetime(year, 1, 1, tzinfo=UTC))
    for version, year in (("5.4.3", 2020), ("7.0", 2022), ("7.2.1", 2023), ("8.0", 2024))
)
INSIDE = Frame(path="/e/_pytest/code.py", package="pytest", code="import py")
OWN = Frame(path="tests/test_a.py", code="go()")


def fixed(frames, command=("-m", "pytest", "tests/test_a.py"), rung=PinSource.DATE):
    job, ports = issue_job(report()), world(None, FakeBuilder(released={"pytest": HISTORY}))
    bug, signature = BugReport(kind=ReportKind.BUG), CrashSignature(exception="ValueError")
    specifier = "==5.4.3" if rung is PinSource.ISSUE else ""
    spec = EnvironmentSpec(
        python="3.11",
        requirements=(Requirement(name="pytest", specifier=specifier, rung=rung, reason="x"),),
    )
    environment = Environment(id="e", python="3.11.7", interpreter="python", packages=(PYTEST,))
    script = Script(files={"tests/test_a.py": ""}, entry="tests/test_a.py", command=command)
    failure = Failure(exception="AttributeError", message="__spec__", frames=frames)
    judgement = Judgement(match=Match.OTHER, reason="x", failure=failure)
    runner = judging(Session.begin(job, ports), bug, signature)
    fix = recovery._for_python(runner, spec, environment, script, judgement)
    return fix and {one.name: one.specifier for one in fix.spec.requirements}["pytest"]


def test_one_that_ends_before_the_first_test_is_replaced():
    assert fixed((INSIDE,)) == "==7.2.1"


@pytest.mark.parametrize(
    "case",
    [
        ((INSIDE, OWN),),
        ((),),
        ((INSIDE,), ("tests/test_a.py",)),
        ((INSIDE,), ("-m", "pytest"), PinSource.ISSUE),
    ],
)
def test_what_a_test_raised_or_the_report_states_stays(case):
    assert fixed(*case) is None
