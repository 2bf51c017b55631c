"""Jobs of every kind: how they are stored, run, and what they are not."""

import ast
import json
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.kernel.bug import Issue
from bot.kernel.engine import Engine, JobKind
from bot.kernel.environment import Environment, EnvironmentSpec
from bot.kernel.errors import BuildError
from bot.kernel.job import (
    DiagnoseProgram,
    EnvironmentOptions,
    Job,
    JobOptions,
    ModelLimits,
    Note,
    ProofOptions,
    RepairProgram,
    ReproduceIssue,
    RunLimits,
    TrainingOptions,
)
from bot.kernel.report import AnyReport, Cancelled, IssueReport, RepairReport
from bot.kernel.training_types import Repair, RepairRequest, TrainingProgram
from bot.products.engine import ENGINE, execute
from tests.support.engine import FakeBuilder
from tests.support.model import ScriptedModel
from tests.unit.test_diagnosed_run import OK, TRAINS, world

ROOT = Path(__file__).parents[2]
ISSUE = Issue(title="NaN", body="loss is nan", repository="acme/pool", number=7)
PROGRAM = TrainingProgram(
    files={"train.py": TRAINS.encode(), "data.bin": b"\xff\0"}, entry="train.py"
)
JOBS = (
    ReproduceIssue(issue=ISSUE, training=TrainingOptions(), without=("bisect",)),
    DiagnoseProgram(program=PROGRAM, limits=RunLimits(timeout_s=5)),
    RepairProgram(program=PROGRAM, repair=RepairRequest(budget=3)),
)
FLAT = {
    "python": "3.9", "pins": ["torch==2.1.0"], "repo": "https://example.com/a.git", "ref": "v1",
    "device": "gpu", "sandbox": "docker", "timeout_s": 30.0, "training_timeout_s": 600.0,
    "max_runs": 9, "seed": 3, "model": "m", "max_cost": 0.5, "max_tokens": 7, "max_calls": 2,
    "max_attempts": 4, "minutes": 5.0, "proof_minutes": 6.0, "package": "torch", "diagnose": True,
    "repair": {"metric": "acc", "budget": 4.0, "jobs": 1}, "repair_minutes": 11.0,
    "without": ["model"],
}  # fmt: skip
"""The options of an earlier release, each with a value of its own."""


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.kind)
def test_a_stored_job_is_read_as_its_own_kind(job: Job) -> None:
    read: TypeAdapter[Job] = TypeAdapter(Job)
    assert read.validate_json(job.model_dump_json()) == job


def test_an_unknown_kind_of_job_is_refused() -> None:
    with pytest.raises(ValidationError, match="kind"):
        TypeAdapter(Job).validate_python({"kind": "paint", "issue": ISSUE.model_dump()})


def test_a_job_of_an_earlier_release_keeps_every_option() -> None:
    assert ReproduceIssue.model_validate({"issue": ISSUE.model_dump(), "options": FLAT}) == (
        ReproduceIssue(
            issue=ISSUE,
            environment=EnvironmentOptions(
                python="3.9", pins=("torch==2.1.0",), repo="https://example.com/a.git", ref="v1",
                device="gpu", sandbox="docker",
            ),
            limits=RunLimits(timeout_s=30, training_timeout_s=600, max_runs=9, seed=3),
            model=ModelLimits(
                name="m", max_cost=0.5, max_tokens=7, max_calls=2, max_attempts=4, minutes=5
            ),
            proof=ProofOptions(minutes=6, package="torch"),
            training=TrainingOptions(
                repair=RepairRequest(metric="acc", budget=4), repair_minutes=11
            ),
            without=("model",),
        )
    )  # fmt: skip
    alone = FLAT | {"repair": None}
    read = ReproduceIssue.model_validate({"issue": ISSUE.model_dump(), "options": alone})
    assert read.training == TrainingOptions(repair_minutes=11)
    neither = FLAT | {"repair": None, "diagnose": False}
    read = ReproduceIssue.model_validate({"issue": ISSUE.model_dump(), "options": neither})
    assert read.training is None


def test_every_kind_of_job_has_one_row() -> None:
    union, _ = get_args(Job)
    assert set(ENGINE.kinds) == set(get_args(union))
    row = JobKind(RepairProgram, lambda job, ports: RepairReport(job=job, result=Repair()))
    with pytest.raises(AssertionError, match="one row"):
        Engine(row, row)


def test_each_kind_of_job_has_a_kind_of_report() -> None:
    asked, told = (get_args(get_args(union)[0]) for union in (Job, AnyReport))
    assert [each.model_fields["kind"].default for each in asked] == [
        each.model_fields["kind"].default for each in told
    ]


def test_a_program_is_diagnosed_and_repaired_without_an_issue() -> None:
    ports = world(lambda spec: OK)
    report = execute(JOBS[1], ports)
    assert report.environment is not None
    assert report.result.diagnosis.findings[0].fault == "HLR"
    (spec,) = ports.sandbox.specs
    assert (spec.limits.wall_s, spec.files["data.bin"]) == (5, b"\xff\0")
    repair = execute(JOBS[2], world(lambda spec: OK))
    assert repair.environment is not None
    assert repair.result.undecided.startswith("the program prints no metric")


@pytest.mark.parametrize("job", JOBS)
def test_every_report_says_how_the_run_went_and_can_be_stored(job: JobOptions) -> None:
    report = execute(job, world(lambda spec: OK))
    assert "total" in report.seconds
    assert report.version == metadata.version("reprise")
    stored = report.model_dump_json()
    read = TypeAdapter(AnyReport).validate_json(stored)
    assert type(read) is type(report)
    assert read.model_dump_json() == stored
    if job is not JOBS[0]:
        assert {"environment", "diagnose"} <= report.seconds.keys()
        assert (report.job, report.sandbox) == (job, "fake")


def test_a_report_says_what_a_second_opinion_cost() -> None:
    model = ScriptedModel([{"purpose": "It fits a line.", "faults": []}], name="small")
    report = execute(JOBS[1], replace(world(lambda spec: OK), model=model))
    assert report.result.opinion is not None
    assert (report.cost, report.models) == (report.result.opinion.usage, ("small",))
    assert report.cost.calls == 1
    assert report.prompts == {"opinion": report.result.opinion.prompt}


def test_an_environment_that_cannot_be_built_is_no_result() -> None:
    def fails(spec: EnvironmentSpec) -> Environment:
        raise BuildError("no wheel for lib", ())

    ports = replace(world(lambda spec: OK), builder=FakeBuilder(on_build=fails))
    for job in JOBS[1:]:
        report = execute(job, ports)
        assert report.environment is None
        assert "no wheel" in report.result.undecided


def _within(new: object, old: object) -> object:
    """What a value has of the fields that an older one had."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {name: _within(new[name], old[name]) for name in old if name in new}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_within(one, other) for one, other in zip(new, old, strict=True)]
    return new


def test_a_report_of_the_first_release_opens() -> None:
    """Every field was stored with a value of its own; none is lost."""
    stored = json.loads((ROOT / "tests" / "golden" / "stored" / "report.json").read_bytes())
    report = IssueReport.model_validate(stored)
    written = json.loads(report.model_dump_json())
    assert written.pop("kind") == "reproduce_issue"
    assert _within(written, stored) == stored
    fields = set(IssueReport.model_fields) - {"bug", "kind"}
    assert fields == stored.keys()
    assert all(stored.values())


def test_a_draft_changes_and_the_report_that_it_began_from_does_not() -> None:
    report = IssueReport(issue=ISSUE, verdict=Cancelled(reason="stopped"), seconds={"total": 1.0})
    draft = report.draft()
    draft.notes += (Note(kind="run", text="more"),)
    draft.seconds = {"total": 2.0}
    finished = draft.finish()
    assert (report.notes, report.seconds) == ((), {"total": 1.0})
    assert (type(finished), finished.notes_on(), finished.seconds) == (
        IssueReport, ("more",), {"total": 2.0}
    )  # fmt: skip
    with pytest.raises(ValidationError, match="frozen"):
        finished.notes = ()
    draft.verdict = None
    with pytest.raises(ValidationError, match="verdict"):
        draft.finish()


@pytest.mark.parametrize(
    ("name", "makers"),
    [
        ("Issue", {"bot/cli/sources.py", "handlers/events.py"}),
        ("BugReport", {"bot/issues/reading/issue.py"}),
    ],
)
def test_nobody_invents_an_issue(name: str, makers: set[str]) -> None:
    """A job that no issue is about has none: only sources of issues make one."""
    found = set()
    for path in (*(ROOT / "bot").rglob("*.py"), *(ROOT / "handlers").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found |= {str(path.relative_to(ROOT))} if node.func.id == name else set()
    assert found == makers
