"""Jobs of every kind: how they are stored, run, and what they are not."""

import ast
from pathlib import Path
from typing import get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.kernel.bug import Issue
from bot.kernel.engine import Engine, JobKind
from bot.kernel.job import (
    DiagnoseProgram,
    EnvironmentOptions,
    Job,
    ModelLimits,
    ProofOptions,
    RepairProgram,
    ReproduceIssue,
    RunLimits,
    TrainingOptions,
)
from bot.kernel.training_types import Repair, RepairRequest, TrainingProgram
from bot.products import ENGINE, execute
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
    row = JobKind(RepairProgram, lambda job, ports: Repair())
    with pytest.raises(AssertionError, match="one row"):
        Engine(row, row)


def test_a_program_is_diagnosed_and_repaired_without_an_issue() -> None:
    ports = world(lambda spec: OK)
    diagnosis = execute(JOBS[1], ports)
    assert diagnosis.environment is not None
    assert diagnosis.run.diagnosis.findings[0].fault == "HLR"
    (spec,) = ports.sandbox.specs
    assert (spec.limits.wall_s, spec.files["data.bin"]) == (5, b"\xff\0")
    repair = execute(JOBS[2], world(lambda spec: OK))
    assert repair.undecided.startswith("the program prints no metric")


@pytest.mark.parametrize(
    ("name", "makers"),
    [
        ("Issue", {"bot/cli/sources.py", "handlers/events.py"}),
        ("BugReport", {"bot/issues/reading/report.py"}),
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
