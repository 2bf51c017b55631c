"""A training that learns badly, with PyTorch itself: as a program on the command line with a model
beside it, and as an issue with `/reproduce diagnose`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.supervised import Supervised, free_port, reachable
from bot.kernel.settings import host
from tests.e2e.test_app import REPOSITORY, Whole, reactions
from tests.e2e.test_cli import COMMAND, environment, reprise
from tests.support.endpoint import FakeEndpoint, says
from tests.support.stand_in import GitHubServer
from tests.support.training_programs import FAULTY

pytestmark = [pytest.mark.index, pytest.mark.slow]

TRAINS = """\
import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(256, 8)
labels = inputs[:, :4].argmax(1)[torch.randperm(256)]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for _ in range(200):
    optimizer.zero_grad()
    loss = loss_of(model(inputs), labels)
    loss.backward()
    optimizer.step()
"""
OPINION = {
    "purpose": "Four classes from eight numbers.",
    "faults": [
        {"fault": "HLR", "layers": [], "file": "", "line": 0, "before": "", "after": "", "quote": "lr=1e-6", "reason": "It crawls.", "change": "lr=0.1"},
        {"fault": "CPP", "layers": [], "file": "", "line": 0, "before": "", "after": "", "quote": "[torch.randperm(256)]",
         "reason": "Labels are shuffled apart from their inputs.", "change": "Leave that out."},
    ],
}  # fmt: skip


def test_a_program_is_diagnosed_with_a_model_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    with FakeEndpoint([says(json.dumps(OPINION))]) as endpoint:
        done = reprise(
            tmp_path, "diagnose", "train.py", "--sandbox", "process", "--out", "run", "--json",
            "--model", "by-hand", REPRISE_MODEL_URL=endpoint.url,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["diagnosis"]
    assert [each["by"] for each in told["findings"]].count("model") == 1
    assert told["findings"][-1]["codes"] == ["CPP"]
    assert "HLR" in {each["fault"] for each in told["findings"]}
    assert told["opinion"]["agreed"] == ["HLR"]
    (exchange,) = (tmp_path / "run" / "exchanges.jsonl").read_text().splitlines()
    assert "torch.randperm(256)" in exchange


@pytest.mark.bwrap
def test_diagnose_on_an_issue_ends_in_one_comment_with_its_findings(tmp_path: Path) -> None:
    web, cache = free_port(), os.environ.get("REPRISE_CACHE_DIR")
    with GitHubServer(webhook=f"http://127.0.0.1:{web}/webhook") as hub:
        kept = {
            name: text for name, text in host().items() if not name.startswith(("REPRISE_", "COV_"))
        }
        env = {
            **kept,
            **hub.settings(),
            "REPRISE_DATABASE_URL": f"sqlite:///{tmp_path / 'reprise.db'}",
            "REPRISE_PUBLIC_URL": f"http://127.0.0.1:{web}",
            "REPRISE_APP_FILE": str(tmp_path / "app.env"),
            "REPRISE_SANDBOX": "bwrap",
            **({"REPRISE_CACHE_DIR": cache} if cache else {}),
        }
        script = str(Path(sys.executable).with_name("reprise"))
        command = [script, "serve", "--embedded", "--port", str(web)]
        with Supervised({"app": command}, env, tmp_path) as app:
            assert reachable(web, 60)
            whole = Whole(hub, tmp_path, app)
            hub.state.repository(REPOSITORY)
            hub.state.collaborator(REPOSITORY, "max", "write")
            file = {".github/reprise.yml": "triggers:\n  opened: 'off'\n"}
            hub.commit(REPOSITORY, file, datetime(2026, 1, 1, tzinfo=UTC))
            body = f"The loss stays flat whatever I do.\n\n```python\n{TRAINS}```\n"
            number = whole.issue(body, "My network does not learn")
            asked = whole.says(number, "max", "/reproduce diagnose")
            posted = whole.verdict(number, "Diagnosis: ", within_s=400)
            whole.until(lambda: "+1" in reactions(asked), "the reaction")
    assert "HLR (learning rate)" in posted
    assert "PyTorch 2" in posted
    assert "/plot.png" in posted
    assert "Requested by `max` as `/reproduce diagnose`" in posted
    assert len(whole.ours(number)) == 1


def test_a_finding_is_confirmed_by_trainings_that_a_repair_does_not_make_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(FAULTY)
    options = ("train.py", "--sandbox", "process", "--out", "run", "--json")
    done = reprise(tmp_path, "diagnose", *options)
    assert done.returncode == 0, done.stderr
    diagnosis = json.loads(done.stdout)["diagnosis"]
    first = diagnosis["findings"][0]
    assert (first["fault"], first["status"]) == ("HLR", "confirmed")
    assert diagnosis["interventions"]["trainings"] >= 7
    kept = tmp_path / "run" / "trials.jsonl"
    before = kept.read_bytes().splitlines()
    assert reprise(tmp_path, "repair", *options).returncode == 0
    after = kept.read_bytes().splitlines()
    trials = [json.loads(line)["trial"] for line in after]
    made = [(str(trial["patch"]), trial["seed"], trial["part"]) for trial in trials]
    assert after[: len(before)] == before
    assert len(made) == len(set(made))


def test_a_killed_repair_goes_on_and_ends_in_a_proven_patch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAULTY)
    arguments = ("repair", "train.py", "--sandbox", "process", "--out", "run", "--budget", "3x")
    kept = tmp_path / "run" / "trials.jsonl"
    killed = subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL
    )
    while killed.poll() is None and (not kept.exists() or kept.read_bytes().count(b"\n") < 4):
        time.sleep(0.1)
    killed.kill()
    killed.wait()
    before = kept.read_bytes().splitlines()[:4]
    done = reprise(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert "1 change proven to help in train.py" in done.stdout
    assert "learning rate" in done.stdout
    after = [json.loads(line)["trial"] for line in kept.read_bytes().splitlines()]
    assert kept.read_bytes().splitlines()[:4] == before
    made = [(str(trial["patch"]), trial["seed"], trial["part"]) for trial in after]
    assert len(made) == len(set(made))
    told = json.loads((tmp_path / "run" / "repair.json").read_bytes())["repair"]
    assert told["proven"]
    applied = subprocess.run(["git", "apply", "run/repair.diff"], cwd=tmp_path, check=False)
    assert applied.returncode == 0
    assert (tmp_path / "run" / "repair.png").read_bytes().startswith(b"\x89PNG")
