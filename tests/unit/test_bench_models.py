"""What a model's part is worth, in figures: causes, cassettes, parts left out, and the lines
under the table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.ablation import WHOLE, ablate, ablation_table, left
from benchmarks.cassettes import Cassettes
from benchmarks.causes import TOLD, cause
from benchmarks.summary import Row, summarise
from benchmarks.tables import issues_table
from bot.kernel.errors import UserError
from bot.kernel.job import PARTS
from tests.support.jobs import job_options

PLAN = {
    "claim": "it drops the bias",
    "hypothesis": "line 3",
    "changes": ["first"],
    "contexts": ["acme.nn.Layer: named"],
}


def report(kind: str = "inconclusive", **more: Any) -> dict[str, Any]:
    return {
        "verdict": {"kind": kind},
        "plan": PLAN,
        "signature": {"kind": "observation"},
        "notes": [],
        **more,
    }


@pytest.mark.parametrize(
    ("said", "more", "expected"),
    [
        (report(), {}, "program"),
        (report(), {"touched": ("acme/nn.py",)}, "program"),
        (report(), {"touched": ("acme/nn/__init__.py",)}, "program"),
        (report(), {"touched": ("acme/nn_other.py",)}, "index"),
        (report(plan=PLAN | {"contexts": []}), {"touched": ("acme/nn.py",)}, "index"),
        (report("reproduced"), {"false": True}, "signature"),
        (report(signature=None, plan=PLAN | {"hypothesis": "", "changes": []}), {}, "signature"),
        (report("budget_reached"), {}, "limits"),
        (report("setup_failed"), {}, "environment"),
        (
            report(notes=["the environment for a written program could not be built: x"]),
            {},
            "environment",
        ),
        (report(plan=None), {}, "not asked"),
        (report(), {"missed": 1}, "not recorded"),
    ],
)
def test_a_wrong_verdict_has_a_cause(
    said: dict[str, Any], more: dict[str, Any], expected: str
) -> None:
    found = cause(said, **{"right": False, "false": False, **more})
    assert found == expected
    assert found in TOLD


@pytest.mark.parametrize("right", [True, None])
def test_what_is_not_wrong_has_none(right: bool | None) -> None:
    assert cause(report("budget_reached"), right=right, false=False, missed=3) == ""


def test_exchanges_are_kept_whole_and_found_again(tmp_path: Path) -> None:
    run, kept = tmp_path / "run", tmp_path / "kept"
    run.mkdir()
    (run / "exchanges.jsonl").write_text("")
    Cassettes(record=kept).keep("a", run)
    assert [path.name for path in kept.iterdir()] == ["a.jsonl"]
    back = Cassettes(replay=kept)
    assert back.of("a") is not None
    assert back.of("b") is None
    assert back.options("a", job_options()).without == ()
    assert back.options("b", job_options(without=("checks",))).without == ("model", "checks")
    assert back.options("b", job_options(without=("model",))).without == ("model",)
    (run / "exchanges.jsonl").unlink()
    Cassettes(record=kept).keep("a", run)
    assert list(kept.iterdir()) == [], "a run that asked nothing leaves no old answers behind"


def test_without_a_replay_everyone_asks_who_is_set(tmp_path: Path) -> None:
    assert Cassettes().of("a") is None
    assert Cassettes(record=tmp_path).options("a", job_options()).without == ()


def test_recording_a_replay_and_replaying_nothing_are_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exclude each other"):
        Cassettes(record=tmp_path, replay=tmp_path)
    with pytest.raises(UserError, match="no folder of cassettes"):
        Cassettes(replay=tmp_path / "none")


ROWS = (
    Row(id="a", verdict="reproduced", right=True, calls=4, runs=3, author="model"),
    Row(id="b", verdict="reproduced", right=None, calls=3, runs=3, author="model"),
    Row(id="c", verdict="needs_info", right=False, calls=9, runs=2, cause="program"),
    Row(
        id="d",
        verdict="reproduced",
        right=False,
        calls=2,
        runs=2,
        cause="signature",
        author="model",
    ),
    Row(id="e", verdict="needs_info", right=False, calls=1, missed=1, cause="not recorded"),
)


def test_a_part_left_out_is_judged_by_the_cases_whose_answers_fit() -> None:
    found = left("checks", ROWS)
    assert (found.right, found.needs_eyes, found.undecided, found.wrong) == (1, 1, 1, 1)
    assert (found.not_recorded, found.calls, found.runs) == (("e",), 18, 10)


def test_every_part_is_left_out_once_each_in_a_place_of_its_own(tmp_path: Path) -> None:
    asked: list[tuple[tuple[str, ...], str]] = []
    found = ablate(lambda without, place: asked.append((without, place.name)) or ROWS, tmp_path)
    assert asked == [((), "whole"), *(((part,), part) for part in PARTS)]
    assert [each.part for each in found] == [WHOLE, *PARTS]
    console = Console(width=120, no_color=True)
    with console.capture() as captured:
        console.print(ablation_table(found))
    assert "checks" in captured.get()
    assert "not recorded" in captured.get()


def test_the_figures_of_a_model_stand_under_the_table() -> None:
    priced = tuple(
        row.model_copy(update={"tokens": 1_000 * row.calls, "usd": 0.01 * row.calls})
        for row in ROWS
    )
    bench = summarise((*priced, Row(id="f", verdict="not_a_bug", right=True)))
    asked = bench.summary.model
    assert asked is not None
    assert (asked.cases, asked.calls, asked.tokens, asked.usd) == (5, 19, 19_000, 0.19)
    assert (asked.calls_median, asked.tokens_median, asked.usd_median) == (3, 3_000, 0.03)
    assert (asked.by_model.right, asked.by_model.needs_eyes, asked.by_model.total) == (1, 1, 3)
    assert asked.causes == {"not recorded": ("e",), "program": ("c",), "signature": ("d",)}
    console = Console(width=220, no_color=True)
    with console.capture() as captured:
        console.print(issues_table(bench))
    text = captured.get()
    assert "4 calls, 4,000 tokens, 0.0400 USD, its program" in text
    assert "1 calls, 1,000 tokens, 0.0100 USD, not recorded further" in text
    assert (
        "models: asked in 5 cases, 19 calls (median 3), 19,000 tokens (median 3,000), 0.1900 USD (median 0.0300)"
        in text
    )
    assert "wrong for signature (what was to count was missing or wrong): d" in text
    assert json.loads(bench.model_dump_json())["summary"]["model"]["calls"] == 19


def test_without_a_model_nothing_is_said_of_one() -> None:
    bench = summarise((Row(id="a", verdict="needs_info", right=False, cause="not asked"),))
    assert bench.summary.model is None
    console = Console(width=120, no_color=True)
    with console.capture() as captured:
        console.print(issues_table(bench))
    assert "model" not in captured.get()
