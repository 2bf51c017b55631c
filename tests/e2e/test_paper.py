"""A paper and its repository on the command line: the verdict, the files, the exit code, and going
on after a kill.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from bot.report import schema
from tests.e2e.test_cli import COMMAND, environment, reprise
from tests.support.papers import CORPUS

pytestmark = [pytest.mark.index, pytest.mark.slow]


def clone(folder: Path, name: str) -> Path:
    """A git repository of one of our own papers."""
    target = folder / "repo"
    shutil.copytree(CORPUS / name / "repo", target)
    for argv in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(("git", *identity, *argv), cwd=target, check=True)
    return target


def arguments(folder: Path, name: str, *more: str) -> tuple[str, ...]:
    repo = str(clone(folder, name))
    return (
        "paper", str(CORPUS / name / "paper"), "--repo", repo, "--sandbox", "process",
        "--out", "run", "--budget", "20m", *more,
    )  # fmt: skip


def test_a_number_is_reproduced_and_a_killed_run_goes_on(tmp_path: Path) -> None:
    words = arguments(tmp_path, "rff")
    kept = tmp_path / "run" / "attempts.jsonl"  # the last that is written of a run
    killed = subprocess.Popen(
        [*COMMAND, *words], cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL
    )
    while killed.poll() is None and (not kept.exists() or kept.read_bytes().count(b"\n") < 2):
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    before = kept.read_bytes().splitlines()[:2]
    done = reprise(tmp_path, *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert kept.read_bytes().splitlines()[:2] == before
    report = json.loads(done.stdout)
    Draft202012Validator(json.loads(schema.paper_schema_text())).validate(report)
    assert report == json.loads((tmp_path / "run" / "report.json").read_text())
    assert (report["kind"], report["verdict"]["kind"]) == ("paper", "reproduced")
    assert report["comparison"]["gap"] < 0.05
    assert len(report["runs"]) == 5
    page, text = ((tmp_path / "run" / f"report.{end}").read_text() for end in ("html", "md"))
    assert "Number reproduced" in page
    assert "<script" not in page
    assert text.startswith("**Number reproduced: Table 1, RidgeMix (ours), Friedman**")
    assert len([line for line in text.partition("<details>")[0].splitlines() if line]) <= 25
    assert "numpy" in (tmp_path / "run" / "environment.lock").read_text()


@pytest.mark.nightly  # some thirty trainings
def test_three_contradictions_and_the_one_that_costs_the_number(tmp_path: Path) -> None:
    done = reprise(tmp_path, *arguments(tmp_path, "momentum", "--json"))
    assert done.returncode == 3, done.stdout + done.stderr
    report = json.loads(done.stdout)
    expected = json.loads((CORPUS / "momentum" / "expected.json").read_text())
    assert report["verdict"]["kind"] == expected["verdict"]
    rows = [row for row in report["criteria"] if row["verdict"] == "contradicts"]
    assert {row["kind"] for row in rows} == set(expected["contradictions"])
    assert {row["evidence"] for row in rows} == {"observed"}
    assert [row["kind"] for row in rows if row["effect"]["explains"]] == expected["explains"]
    assert rows[0]["kind"] == "learning_rate"
    stated = {row["kind"]: row["stated"] for row in report["criteria"] if row["stated"]}
    assert stated == expected["criteria"]


def test_a_paper_that_cannot_be_read_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "paper.md").write_text("# A\n\nNo number.\n")
    done = reprise(tmp_path, "paper", "paper.md", "--claim", "Table 2", "--sandbox", "process")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "The paper does not state 'Table 2'. The paper states no number."
    )
    done = reprise(tmp_path, "paper", "gone.pdf", "--sandbox", "process")
    assert done.returncode == 2
    assert "There is no file gone.pdf." in done.stderr
    assert not any((tmp_path / "reprise-runs").glob("*"))


@pytest.mark.nightly  # whole trainings, each over several seeds
@pytest.mark.parametrize(
    ("paper", "read", "inherited"),
    [
        ("digits", 2, []),
        ("momentum", 1, []),
        ("rff", 7, ["batch_size: 16", "epochs: 60", "learning_rate: 0.05"]),
        ("strides", 5, []),
    ],
)
def test_recorded_readings_leave_nothing_unknown_and_runs_decide(
    paper: str, read: int, inherited: list[str]
) -> None:
    """A hand-answered model read paper and code from its questions alone; a git server has the
    repository of the cited work.
    """
    done = subprocess.run(
        [
            sys.executable, "-m", "benchmarks", "papers", str(CORPUS), "--only", paper,
            "--minutes", "60", "--model", "by-hand", "--json",
            "--replay", str(CORPUS.parents[1] / "cassettes" / "papers" / "repositories"),
        ],
        cwd=CORPUS.parents[2], env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["cases"]
    expected = json.loads((CORPUS / paper / "expected.json").read_text())
    assert (row["verdict"], row["error"]) == (expected["verdict"], "")
    assert row["gap"] <= 0.05 or expected["verdict"] == "not_reproduced"
    assert (row["unknown"], row["read"], row["calls"]) == ([], read, 4)
    assert sorted(row["inherited"]) == inherited
    assert row["explained"] == expected.get("explains", [])
    assert row["contradictions"]["precision"] in {1.0, None}
    assert row["contradictions"]["recall"] in {1.0, None}
