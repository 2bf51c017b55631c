"""A paper without code on the command line: a scripted model behind a real endpoint writes the program
in a real sandbox, and the number of its runs decides."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bot.report import schema
from tests.e2e.test_cli import COMMAND, environment, reprise
from tests.support.endpoint import Act, FakeEndpoint, says
from tests.support.papers import CORPUS

pytestmark = [pytest.mark.index, pytest.mark.slow]
SOURCE = (CORPUS / "rff" / "repo" / "train.py").read_text(encoding="utf-8")
SETTINGS = (CORPUS / "rff" / "repo" / "config.json").read_text(encoding="utf-8")
PROGRAM = (
    SOURCE.replace('    parser.add_argument("--config", default="config.json")\n', "")
    .replace(
        "    args = parser.parse_args()\n",
        '    parser.add_argument("--dry-run", action="store_true")\n    args = parser.parse_args()\n',
    )
    .replace(
        "    with open(args.config) as file:\n        config = json.load(file)\n",
        "    config = CONFIG\n",
    )
    .replace("friedman(rng, 2000)", "friedman(rng, 200 if args.dry_run else 2000)")
    .replace("def friedman", f"CONFIG = {SETTINGS.strip()}\n\n\ndef friedman", 1)
)
TYPO = PROGRAM.replace("import numpy as np", "import numpy as mp")
LINE = TYPO.splitlines().index("import numpy as mp") + 1


def act(*actions: dict[str, Any]) -> dict[str, Any]:
    return {"thought": "next", "actions": list(actions)}


ANSWERS = [
    act(
        {"action": "write", "path": "requirements.txt", "text": "numpy\n"},
        {"action": "write", "path": "main.py", "text": TYPO},
        {"action": "run", "sampled": True},
    ),
    act(
        {
            "action": "edit",
            "path": "main.py",
            "start": LINE,
            "end": LINE,
            "text": "import numpy as np",
        },
        {"action": "shell", "command": "python -c 'import numpy; print(numpy.__name__)'"},
        {"action": "run", "sampled": True},
        {"action": "submit", "note": "the learning rate is my own choice"},
    ),
]


def author() -> Callable[[dict[str, Any]], Act]:
    """A model that reads nothing more, finds the cause, and writes by the list."""
    rest = iter(ANSWERS)

    def answer(body: dict[str, Any]) -> Act:
        words = body["messages"][0]["content"]
        if "list the hyperparameters" in words:
            return says(json.dumps({"criteria": []}))
        if "against what its paper states" in words:
            return says(json.dumps({"judgements": []}))
        if "cause of a failed run" in words:
            cause = {"cause": "np is not bound", "places": [], "plan": "import it as np"}
            return says(json.dumps(cause))
        return says(json.dumps(next(rest)))

    return answer


def words(*more: str) -> tuple[str, ...]:
    return (
        "paper", str(CORPUS / "rff" / "paper"), "--no-repo", "--model", "by-hand",
        "--sandbox", "process", "--out", "run", "--budget", "20m", "--runs", "3", *more,
    )  # fmt: skip


def test_the_code_is_written_run_and_compared_and_a_killed_run_goes_on(tmp_path: Path) -> None:
    kept = tmp_path / "run" / "steps.jsonl"
    with FakeEndpoint(author()) as endpoint:
        url = {"REPRISE_MODEL_URL": endpoint.url}
        killed = subprocess.Popen(
            [*COMMAND, *words()], cwd=tmp_path, env=environment(**url), stderr=subprocess.DEVNULL
        )
        while killed.poll() is None and not kept.exists():
            time.sleep(0.05)
        killed.kill()
        killed.wait()
        done = reprise(tmp_path, *words("--json"), **url)
        asked = len(endpoint.asked)
    assert done.returncode == 0, done.stdout + done.stderr
    # Two readings of the paper, two answers, one analysis, two readings of the code, and one that
    # the kill cut off.
    assert asked <= 8
    report = json.loads(done.stdout)
    Draft202012Validator(json.loads(schema.paper_schema_text())).validate(report)
    assert report["verdict"]["kind"] == "reproduced", report["verdict"]
    assert report["comparison"]["gap"] < 0.05
    assert report["code"]["files"]["main.py"] == PROGRAM
    assert (report["code"]["runs"], report["code"]["notes"]) == (
        2, ["the learning rate is my own choice"],
    )  # fmt: skip
    assert (tmp_path / "run" / "code" / "main.py").read_text() == PROGRAM
    steps = [json.loads(line) for line in kept.read_text().splitlines()]
    assert "name 'np' is not defined" in steps[0]["results"][2]["says"]
    assert steps[1]["analysis"]["cause"] == "np is not bound"
    assert [row["failed"] for row in steps[1]["results"]] == [False] * 4
    assert "A model wrote the program from the paper" in (tmp_path / "run/report.md").read_text()


def test_without_a_model_or_with_a_repository_it_is_one_sentence(tmp_path: Path) -> None:
    done = reprise(tmp_path, *words()[:3], "--sandbox", "process")
    assert done.returncode == 2
    assert "--no-repo needs a model, and none is set." in done.stderr
    done = reprise(tmp_path, *words(), "--repo", str(tmp_path))
    assert done.returncode == 2
    assert "--no-repo and --repo exclude each other." in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.nightly  # whole trainings, each over several seeds
@pytest.mark.parametrize(
    ("paper", "verdict", "most"),
    [
        ("digits", "reproduced", 0.05),
        ("momentum", "reproduced", 0.05),
        ("rff", "not_reproduced", 1.0),
        ("strides", "reproduced", 0.05),
    ],
)
def test_recorded_answers_write_a_program_whose_runs_decide(
    paper: str, verdict: str, most: float
) -> None:
    """A hand-answered model wrote these from the papers alone; rff misses the number by 12 %."""
    cassettes = CORPUS.parents[1] / "cassettes" / "papers"
    done = subprocess.run(
        [
            sys.executable, "-m", "benchmarks", "papers", str(CORPUS), "--no-repo", "--only", paper,
            "--minutes", "60", "--model", "by-hand", "--replay", str(cassettes), "--json",
        ],
        cwd=CORPUS.parents[2], env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["cases"]
    assert (row["verdict"], row["error"]) == (verdict, "")
    assert row["gap"] <= most
