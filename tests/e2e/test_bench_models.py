"""`python -m benchmarks` with a model behind a real endpoint: recorded, replayed, and parts left out,
from the command line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.commands import app
from bot.kernel.dialogue import Exchange
from bot.kernel.files import read_exchanges
from tests.support.endpoint import Act, FakeEndpoint, says

ROOT = Path(__file__).parents[2]
CASSETTES = ROOT / "tests" / "cassettes"
CASE = "humanize-rounding"
BOX = ("--sandbox", "process")
UNPROVEN = ("--without", "bisect,minimize", *BOX)  # they ask no model
COMMAND = [sys.executable, "-m", "benchmarks"]


def reprise(folder: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("REPRISE_MODEL", "OPENAI_", "COV_"))
    }
    return subprocess.run(
        [*COMMAND, *argv],
        capture_output=True, text=True, cwd=folder, timeout=300, check=False, env={**kept, "PYTHONPATH": str(ROOT), **more},
    )  # fmt: skip


def endpoint() -> FakeEndpoint:
    """Answers each stage as the cassette does."""
    known = {
        each.question.messages[0].content: each.answer
        for each in read_exchanges(CASSETTES / f"{CASE}.jsonl", Exchange)
    }

    def answer(body: dict[str, Any]) -> Act:
        found = known[body["messages"][0]["content"]]
        assert found is not None
        return says(found.text, usage=(1_000, 100))

    return FakeEndpoint(answer)


@pytest.mark.index
@pytest.mark.nightly  # two whole benches
def test_a_bench_is_recorded_with_a_model_and_repeated_without(tmp_path: Path) -> None:
    with endpoint() as model:
        prices = {"REPRISE_MODEL_URL": model.url, "REPRISE_MODEL_PRICES": '{"m": [1, 10]}'}
        said = reprise(
            tmp_path, "issues", str(CASSETTES), "--only", CASE, "--model", "m", "--record", "kept", "--out", "one", "--json",
            *UNPROVEN, **prices,
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        assert len(model.asked) == 2
    (row,) = json.loads(said.stdout)["cases"]
    assert (row["verdict"], row["right"], row["author"], row["calls"]) == (
        "reproduced",
        True,
        "model",
        2,
    )
    assert row["tokens"] == 2_200
    assert row["usd"] == pytest.approx(0.004)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [f"{CASE}.jsonl"]
    assert {each.question.prompt.partition("@")[0] for each in read_exchanges(tmp_path / "kept" / f"{CASE}.jsonl", Exchange)} == {
        "refine", "act",
    }  # fmt: skip
    again = reprise(
        tmp_path,
        "issues",
        str(CASSETTES),
        "--only",
        CASE,
        "--replay",
        "kept",
        "--out",
        "two",
        "--json",
        *UNPROVEN,
    )
    assert again.returncode == 0, again.stderr
    (repeated,) = json.loads(again.stdout)["cases"]
    alike = ("verdict", "right", "author", "calls", "tokens", "usd", "runs", "missed")
    assert {name: repeated[name] for name in alike} == {name: row[name] for name in alike}


@pytest.mark.index
def test_a_replay_without_a_cassette_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with endpoint() as model:
        said = reprise(
            tmp_path, "issues", str(CASSETTES), "--only", CASE, "--replay", "empty", "--out", "one", "--json",
            REPRISE_MODEL_URL=model.url, REPRISE_MODEL_WRITER="m",
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        assert model.asked == []
    (row,) = json.loads(said.stdout)["cases"]
    assert (row["verdict"], row["calls"], row["cause"]) == ("inconclusive", 0, "not asked")


@pytest.mark.index
@pytest.mark.nightly  # two whole benches
def test_parts_are_left_out_and_what_is_not_recorded_is_said(tmp_path: Path) -> None:
    said = reprise(
        tmp_path, "ablation", str(CASSETTES), "--replay", str(CASSETTES), "--only", CASE, "--parts", "model,context,contrast",
        "--out", "out", "--json", *BOX,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    whole, model, context, contrast = json.loads(said.stdout)
    assert (whole["part"], whole["right"], whole["calls"], whole["not_recorded"]) == (
        "(nothing)",
        1,
        2,
        [],
    )
    assert (model["right"], model["undecided"], model["wrong"], model["calls"]) == (0, 1, 0, 0)
    assert (context["right"], context["undecided"], context["not_recorded"]) == (0, 0, [CASE])
    assert (contrast["right"], contrast["runs"]) == (1, whole["runs"] - 1)


def test_mistakes_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for argv, words in (
        (
            ("issues", str(CASSETTES), "--record", "a", "--replay", str(CASSETTES)),
            "exclude each other",
        ),
        (("issues", str(CASSETTES), "--replay", "nowhere"), "no folder of cassettes"),
        (("issues", str(CASSETTES), "--without", "luck"), "--without luck is not a part of a run"),
        (("ablation", str(CASSETTES), "--replay", str(tmp_path)), "holds no cassette"),
    ):
        said = CliRunner().invoke(app, argv)
        assert (said.exit_code, said.stdout) == (2, "")
        assert words in said.stderr
        assert "Traceback" not in said.stderr
