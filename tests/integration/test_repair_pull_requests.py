"""A report of bad training, end to end: diagnosis, proven patch, draft pull request. The repository's
own train.py is at fault; a landscape answers for its trainings, and in one slow test PyTorch does.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bot.app import bootstrap
from bot.kernel.ports import Ports
from bot.kernel.report import IssueReport
from bot.kernel.run import RunState
from bot.kernel.settings import load
from bot.products.engine import execute
from bot.report.comment import LINES_UNFOLDED
from bot.training.repair.repair import FRESH
from sandbox.port import RunResult
from sandbox.select import choose
from tests.contract.github.conftest import DESCRIPTION
from tests.integration.test_pull_requests import BRANCH, NAME, NUMBER, QUIET, World
from tests.support.fakes import FakeBuilder, FrozenClock
from tests.support.sandbox import FakeSandbox
from tests.support.stand_in import GitHubServer
from tests.unit.test_repair import FAULTY, Landscape, by_rate, rate

FILES = {"train.py": FAULTY, "README.md": "# Digits\n", "tests/test_other.py": "x = 1\n"}


class Trainings(Landscape):
    """The landscape of an issue's program, in which no fork can be made. `dies_at` is the training
    in which the worker is killed, `trials` are those but for runs with the probe; `lucky`: what the search finds is no better on fresh seeds.
    """

    dies_at, lucky = 0, False

    def __init__(self, metric):
        super().__init__(metric)
        self.trials = []

    def __call__(self, spec):
        if any("batch" in word for word in spec.argv):
            return RunResult(exit_code=1)
        if len(self.runs) + 1 == self.dies_at:
            self.dies_at = 0
            raise SystemExit  # nobody catches it, as nobody hears of a kill
        if self.lucky:
            luck = 0.2 if int(spec.env["REPRISE_SEED"]) not in FRESH else 0.0
            self.metric = lambda text: 0.5 + (luck if rate(text) != 50 else 0.0)
        name = next(name for name in spec.files if not name.startswith(".reprise"))
        if "REPRISE_TRAINING" not in spec.env:
            self.trials.append(
                (spec.files[name], spec.env["REPRISE_TRIAL"], spec.env["REPRISE_SEED"])
            )
        return super().__call__(replace(spec, files={**spec.files, "a.py": spec.files[name]}))


def engine(trainings: Trainings) -> Any:
    """The pipeline over a landscape."""

    def work(job: Any, *, journal: Any, listener: Any, cancel: Any, **_: object) -> IssueReport:
        ports = Ports(
            FakeSandbox(trainings), FakeBuilder(), journal, FrozenClock(step=0.1), listener, cancel
        )
        return execute(job, ports)

    return work


class TrainingWorld(World):
    """A repository whose train.py is at fault, and an App whose runs are trainings."""

    def __init__(self, server: GitHubServer, program: str = FAULTY) -> None:
        super().__init__(server)
        self.base = server.commit(NAME, {**FILES, "train.py": program})
        self.text = f"The test accuracy stays low whatever I do.\n\n```python\n{program}```\n"
        here = self.here.issues[NUMBER]
        here.title, here.body = "The accuracy stays low", self.text
        self.trainings = Trainings(by_rate)
        self.pipeline = True

    def issue(self):
        return (
            super()
            .issue()
            .model_copy(update={"title": "The accuracy stays low", "body": self.text})
        )

    def _engine(self, job: Any, **world: Any) -> IssueReport:
        if not self.pipeline:
            return self.report.model_copy(update={"issue": job.issue})
        return engine(self.trainings)(job, **world)

    def head(self) -> str:
        return self.server.git.resolve(self.here, BRANCH)

    def show(self, path: str, ref: str = BRANCH) -> str:
        """The text of a file in the repository, by git."""
        argv, folder = ("git", "show", f"{ref}:{path}"), self.server.git.folder(self.here)
        return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True).stdout

    def ours(self) -> list[str]:
        return [each.body for each in self.server.state.ours(NAME, NUMBER)]


@pytest.fixture
def world() -> Iterator[TrainingWorld]:
    described = DESCRIPTION if DESCRIPTION.exists() else None
    with GitHubServer(openapi=described, echo=False) as server:
        yield TrainingWorld(server)
        assert server.violations == []


@pytest.fixture
def repaired(world: TrainingWorld) -> TrainingWorld:
    """The same after a repair that somebody with write permission asked for."""
    world.deliver("comment", "repair")
    return world


def visible(body: str) -> int:
    """The lines that a reader sees before opening anything."""
    shown, depth = 0, 0
    for line in body.splitlines():
        shown += bool(line.strip()) and not depth and not line.startswith("<!--")
        shown += line.startswith("<details>")
        depth += line.count("<details>") - line.count("</details>")
    return shown


def test_the_comment_has_diagnosis_and_patch_and_says_how_to_get_it(repaired):
    body = repaired.sticky()
    assert "Diagnosis:" in body
    assert "**1 change proven to help:** accuracy 0.30" in body
    assert "-optimizer = torch.optim.SGD(model.parameters(), lr=50.0)" in body
    assert "this change of `train.py` as a draft pull request" in body
    assert "6 of 6 runs failed, but 0 of 6 failed with the patch" in body
    assert "Please add" not in body
    assert visible(body) <= LINES_UNFOLDED


def test_the_pull_request_is_the_proven_patch_alone(repaired):
    assert repaired.asked() == ""
    assert repaired.pulls() == [(13, "open", True)]
    assert repaired.changed() == ["M\ttrain.py"]
    assert "/pull/13)" in repaired.sticky()
    assert "someone with write permission comments" not in repaired.sticky()
    body = repaired.body()
    assert repaired.here.issues[13].title == "Repair the training for #12"
    assert "**A repair of the training**: for [#12]" in body
    assert "| learning rate | 50 | " in body
    assert "over 6 fresh seeds (p = 0.031)" in body
    assert "12 for the proof" in body
    assert "`reprise repair train.py --metric accuracy`" in body


def test_what_it_changes_learns_better_on_seeds_that_nobody_has_used(repaired):
    repaired.asked()
    before, after = repaired.show("train.py", "main"), repaired.show("train.py")
    assert before == FAULTY
    assert by_rate(after) > by_rate(before)
    changed = [a for a, b in zip(before.split("\n"), after.split("\n"), strict=True) if a != b]
    assert changed == ["optimizer = torch.optim.SGD(model.parameters(), lr=50.0)"]
    assert rate(after) != rate(before)


def test_asking_again_changes_nothing(repaired):
    repaired.asked()
    head, body, sticky = repaired.head(), repaired.body(), repaired.sticky()
    assert repaired.asked() == ""
    assert (repaired.head(), repaired.body(), repaired.sticky()) == (head, body, sticky)
    assert repaired.pulls() == [(13, "open", True)]


def test_without_permission_a_plan_with_the_budget_waits_and_runs_once_approved(world):
    world.deliver("comment", "repair", sender="passer-by")
    assert world.trainings.runs == []
    (plan,) = world.ours()
    assert "Waiting for approval" in plan
    assert "a search of at most 10 times its own time, and a proof" in plan
    run = world.store.runs(states=(RunState.WAITING,))[0]
    world.deliver("comment", "approve", sender="max", argument=run.plan)
    assert "proven to help" in world.sticky()
    assert "write permission" in world.asked("passer-by")
    assert world.pulls() == []


def test_a_worker_killed_in_the_middle_goes_on_and_trains_nothing_twice(world):
    world.trainings.dies_at = 9
    with pytest.raises(SystemExit):
        world.deliver("comment", "repair")
    assert len(world.trainings.trials) == 7
    world.resume()
    assert "proven to help" in world.sticky()
    trials = world.trainings.trials
    assert len(set(trials)) == len(trials)
    whole = Trainings(by_rate)
    with GitHubServer(echo=False) as server:
        other = TrainingWorld(server)
        other.trainings = whole
        other.deliver("comment", "repair")
    assert set(whole.trials) == set(trials)


def test_a_repair_goes_into_the_pull_request_of_an_older_reproduced_run(world):
    world.pipeline = False
    world.deliver("comment", "reproduce")
    world.asked()
    assert world.changed() == ["A\ttests/test_issue_12.py"]
    world.pipeline = True
    world.deliver("comment", "repair")
    assert "this change of `train.py` as a draft pull request" in world.sticky()
    assert world.asked() == ""
    assert world.changed() == ["A\ttests/test_issue_12.py", "M\ttrain.py"]
    body = world.body()
    assert world.here.issues[13].title == "Add a regression test for #12 and repair its training"
    assert "both confirming runs" in body
    assert "| learning rate | 50 | " in body
    assert body.count("all details of the run") == 2
    assert "strict=False" in world.show("tests/test_issue_12.py")


def test_a_repair_of_another_text_of_the_issue_stays_apart(world):
    world.pipeline = False
    world.deliver("comment", "reproduce")
    world.pipeline, world.text = True, world.text.replace("whatever I do", "all the time")
    world.deliver("comment", "repair")
    world.asked()
    assert world.changed() == ["M\ttrain.py"]


def test_an_unproven_patch_is_never_proposed(world):
    world.trainings.lucky = True
    world.deliver("comment", "repair")
    assert "proven to help:" not in world.sticky()
    assert "not proven to help" in world.asked()
    assert world.pulls() == []


def test_a_test_goes_without_an_unproven_patch_and_the_answer_says_so(world):
    world.pipeline = False
    world.deliver("comment", "reproduce")
    world.pipeline = True
    world.trainings.lucky = True
    world.deliver("comment", "repair")
    assert "not proven to help" in world.asked()
    assert world.changed() == ["A\ttests/test_issue_12.py"]


def test_a_program_that_the_repository_does_not_have(world):
    world.server.commit(NAME, {"train.py": FAULTY.replace("lr=50.0", "lr=RATE")})
    world.deliver("comment", "repair")
    assert "proven to help" in world.sticky()
    assert "draft pull request" not in world.sticky()
    answer = world.asked()
    assert "The program in this issue is not a file of this repository" in answer
    assert world.pulls() == []


def test_without_the_permissions_the_comment_offers_nothing(world):
    world.installation.permissions = {"metadata": "read", "contents": "read", "issues": "write"}
    world.deliver("comment", "repair")
    assert "proven to help" in world.sticky()
    assert "draft pull request" not in world.sticky()


@pytest.mark.parametrize(("sender", "opened"), [("max", 1), ("passer-by", 0)])
def test_automatically_for_a_repair_that_a_writer_asked_for(world, sender, opened):
    world.server.commit(NAME, {".github/reprise.yml": f"pull_request: auto\n{QUIET}"})
    world.deliver("comment", "repair", sender=sender)
    assert len(world.pulls()) == opened


DIGITS = """\
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X = (X / 16).astype("float32")
parts = train_test_split(X, y, test_size=0.4, random_state=0)
X_train, X_test, y_train, y_test = map(torch.tensor, parts)

model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=5.0, momentum=0.9)
for epoch in range(5):
    for batch in torch.randperm(len(X_train)).split(32):
        optimizer.zero_grad()
        loss = criterion(model(X_train[batch]), y_train[batch])
        loss.backward()
        optimizer.step()

with torch.no_grad():
    right = model(X_test).argmax(1) == y_test
print(f"test accuracy: {right.float().mean():.3f}")
"""


class RealWorld(TrainingWorld):
    """The same with PyTorch."""

    def _engine(self, job: Any, *, journal: Any, listener: Any, cancel: Any, **_: object):
        ports = bootstrap.make_ports(
            load(), sandbox=choose("process"), journal=journal, listener=listener, cancel=cancel
        )
        self.found = execute(job, ports)
        return self.found


@pytest.mark.index
@pytest.mark.nightly  # sixty trainings
def test_digits_that_are_not_learned_are_repaired_and_proposed(tmp_path):
    with GitHubServer(echo=False) as server:
        world = RealWorld(server, DIGITS)
        world.deliver("comment", "repair", argument="budget=2x")
        assert "proven to help:** accuracy" in world.sticky()
        assert world.asked() == ""
        assert world.changed() == ["M\ttrain.py"]
        clone = world.cloned(tmp_path / "clone")
        (tmp_path / "before.py").write_text(DIGITS)
        python = world.found.environment.interpreter
        before, after = tmp_path / "before.py", clone / "train.py"
        assert learned(python, after, 71) > learned(python, before, 71) + 0.2


def learned(python: str, program: Any, seed: int) -> float:
    """What a program prints as its accuracy, with another seed."""
    text = program.read_text().replace("manual_seed(0)", f"manual_seed({seed})")
    argv = (python, "-c", text)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    return float(done.stdout.split()[-1])
