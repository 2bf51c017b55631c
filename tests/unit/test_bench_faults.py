"""Fault codes are counted as the source study counts them."""

import json
from pathlib import Path

import pytest

from benchmarks.fault_runs import FIGURES, Bench, find, run
from benchmarks.faults import (
    FaultRow,
    Found,
    best,
    expanded,
    score,
    scored,
    summarise,
    truths_of,
)
from benchmarks.neutral_runs import run as neutral_rows
from benchmarks.repair_runs import RepairBenchRuns, run as repair_rows
from bot.kernel.job import JobOptions
from bot.kernel.settings import load
from tests.support.sandbox import FakeSandbox


def row(
    name: str, found: tuple[str, ...], *, healthy: bool = False, **tools: tuple[str, ...]
) -> FaultRow:
    return FaultRow(
        id=name, framework="torch", truth=(), found=found, recall=None, precision=None, f3=None,
        f3_alternatives=None, healthy=healthy, seconds=1.0, tools=tools,
    )  # fmt: skip


def test_a_code_with_several_layers_is_several_codes() -> None:
    assert expanded(["ACH(0,1)", "HLR", "ACH(1)"]) == ("ACH(0)", "ACH(1)", "HLR")
    with pytest.raises(ValueError, match="no fault code"):
        expanded(["sigmoid"])


def test_a_fault_that_is_code_is_hit_within_two_lines() -> None:
    true = ["graph-cut:17"]
    found = {"graph-cut:19": 1.0, "graph-cut:20": 0.0, "graph-cut": 0.0, "same-batch:17": 0.0}
    for code, recall in found.items():
        assert score([code], true).recall == recall
    assert score(["graph-cut:90"], ["graph-cut"]).recall == 1.0
    rows = (scored(row(code, (code,)), [true]) for code in found)
    summary = summarise(rows).summary
    figures = summary.code
    assert (figures.programs, figures.named, figures.in_line, figures.first) == (4, 3, 1, 3)
    assert summary.by_code["graph-cut"] == Found(true=4, found=1, wrong=2)


def test_wrong_code_is_right_by_its_line_alone() -> None:
    """It says nothing but where, so it is no hit where the key tells no line."""
    true = ["graph-cut:17"]
    found = {"wrong-code:19": 1.0, "wrong-code:20": 0.0, "wrong-code": 0.0}
    for code, recall in found.items():
        assert score([code], true).recall == recall
    assert score(["wrong-code:17"], ["graph-cut"]).recall == 0.0
    assert score(["wrong-code:17"], ["HLR"]).recall == 0.0
    assert score(["graph-cut:17"], ["wrong-code:17"]).recall == 0.0, "a wrong name is no hit"
    figures = summarise(scored(row(code, (code,)), [true]) for code in found).summary.code
    assert (figures.programs, figures.named, figures.in_line, figures.first) == (3, 1, 1, 1)


def test_a_fault_of_no_name_is_wrong_code_at_the_lines_of_its_key() -> None:
    key = {"ground_truth": ["other: divided by zero"], "lines": [24, 55],
           "alternative_ground_truths": [["norm-batch-of-one"], ["graph-cut"]]}  # fmt: skip
    truths = truths_of(key)
    assert truths == (
        ("wrong-code:24",), ("wrong-code:55",), ("graph-cut:24",), ("graph-cut:55",),
    )  # fmt: skip
    rows = [scored(row(code, (code,)), truths) for code in ("wrong-code:56", "graph-cut:1", "HLR")]
    assert [x.f3_alternatives for x in rows] == [1.0, 0.0, 0.0]
    figures = summarise(rows).summary.code
    assert (figures.named, figures.in_line, figures.first) == (1, 1, 1)
    assert truths_of({**key, "lines": []})[0] == ("other: divided by zero",)
    named = truths_of({"ground_truth": ["graph-cut"], "lines": [24]})
    assert named == (("graph-cut",), ("graph-cut:24",))
    figures = summarise([scored(row("a", ("graph-cut:60",)), named)]).summary.code
    assert (figures.named, figures.in_line) == (1, 0)
    figures = summarise([scored(row("a", ("HLR", "wrong-code:25")), named)]).summary.code
    assert (figures.named, figures.in_line, figures.first) == (1, 1, 0)


@pytest.mark.parametrize(
    ("found", "truth", "recall", "precision", "f3"),
    [
        (["HLR"], ["HLR"], 1.0, 1.0, 1.0),
        (["HLR", "OCH"], ["HLR"], 1.0, 0.5, 10 * 0.5 / 5.5),
        (["ACH(0)"], ["ACH(0,1)", "HLR"], 1 / 3, 1.0, 10 / 3 / (9 + 1 / 3)),
        (["ACH"], ["ACH(0)"], 0.0, 0.0, 0.0),  # the layer counts
        ([], ["HLR"], 0.0, 0.0, 0.0),
    ],
)
def test_f3(found: list[str], truth: list[str], recall: float, precision: float, f3: float) -> None:
    measured = score(found, truth)
    assert measured.recall == pytest.approx(recall)
    assert measured.precision == pytest.approx(precision)
    assert measured.f3 == pytest.approx(f3)


def test_of_several_truths_those_with_the_highest_recall_count() -> None:
    truths = [["ACH(2)", "LCH"], ["CPP"], ["HLR"]]
    measured = best(["CPP", "HLR", "HNE"], truths)
    assert (measured.recall, measured.precision) == (1.0, pytest.approx(1 / 3))
    assert measured.f3 == pytest.approx(score(["CPP", "HLR", "HNE"], ["CPP"]).f3)


def test_healthy_programs_and_tools_are_counted_apart() -> None:
    faulty = scored(row("a", ("HLR", "OCH"), umlaut=("HLR",)), [["HLR"], ["OCH"]])
    noisy, silent = (
        row("b", ("RAW",), healthy=True, umlaut=()),
        row("c", (), healthy=True, umlaut=("HLR",)),
    )
    summary = summarise([noisy, silent, faulty]).summary
    assert summary.f3 == pytest.approx(0.9091, abs=1e-4)
    assert summary.healthy_silent == 0.5
    assert summary.by_code["HLR"] == Found(true=1, found=1, wrong=0)
    assert summary.by_code["RAW"] == Found(true=0, found=0, wrong=1)
    assert summary.by_framework["torch"].f3 == summary.f3
    tool = summary.tools["umlaut"]
    assert (tool.f3, tool.healthy_silent) == (1.0, 0.5)


def test_families_have_figures_of_their_own() -> None:
    good, bad = (
        scored(row(name, (name,)).model_copy(update={"family": name}), [["HLR"]])
        for name in ("HLR", "OCH")
    )
    by = summarise([good, bad, row("c", ())]).summary.by_family
    assert {name: figures.f3 for name, figures in by.items()} == {"HLR": 1.0, "OCH": 0.0}


@pytest.mark.parametrize("codes", [["HLR", "no-such-fault"], ["ACH(x)"]])
def test_a_key_with_an_unknown_code_is_one_sentence(tmp_path: Path, codes: list[str]) -> None:
    """In every bench that reads keys; the other programs are scored."""
    for name, truth in (("A", codes), ("B", ["HLR"])):
        for folder, data in (("cases", {"program": ""}), ("keys", {"ground_truth": truth})):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.json").write_text(json.dumps(data))
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / FIGURES).write_text('{"seconds": 1.0, "error": ""}')
    cases, plain = find(tmp_path), FakeSandbox({})
    bench = Bench(load(), JobOptions(), plain, tmp_path / "out")
    rows = summarise(run(cases, bench, 1))
    assert [row.f3 for row in rows.cases] == [None, 0.0]
    assert rows.cases[0].error.startswith("the key of A is unclear: ")
    assert rows.summary.errors == ("A",)
    repairs = RepairBenchRuns(load(), JobOptions(), plain, tmp_path / "out")
    assert [row.error for row in repair_rows(cases[:1], repairs, 1)] == [rows.cases[0].error]
    assert [row.error for row in neutral_rows(cases[:1], repairs, 1)] == [rows.cases[0].error]
