"""The regression net over pure stages: what is recorded, and what a check tells of a change."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner, Result

from benchmarks.commands import app
from benchmarks.truth import compare, plain as plains, record as records
from benchmarks.truth.compare import Difference, Expectation, compared, differences
from benchmarks.truth.inputs import Inputs
from benchmarks.truth.plain import canonical, plain
from benchmarks.truth.stages import STAGES, Stage

CASES = {"b/1": 3, "a/1": -1}


def inverse(number: int) -> dict[str, object]:
    if number < 0:
        raise ValueError("a negative number\nand more")
    return {"inverse": 1 / number, "digits": {"0", "3"}}


def stage(make: Any = inverse, cases: Mapping[str, Any] = CASES) -> Stage:
    return Stage("numbers", lambda inputs: cases, make)


def lines(made: Stage, jobs: int = 1) -> dict[str, str]:
    (record,) = records.results([made], Inputs(), jobs)
    return record.lines


def test_results_are_kept_by_case_and_read_back(tmp_path: Path) -> None:
    (record,) = records.results([stage()], Inputs(), 1)
    records.write(tmp_path, record)
    assert list(record.lines) == ["a/1", "b/1"]
    assert records.read(tmp_path, "numbers") == record.lines
    assert records.kept_stages(tmp_path) == ["numbers"]
    header = (tmp_path / "numbers.jsonl.gz").read_bytes()[:8]
    assert header[4:] == bytes(4), "the same record is the same file at any time"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer versions of Python warn of forks
def test_several_processes_make_the_same() -> None:
    assert lines(stage(), jobs=2) == lines(stage())


def test_how_a_stage_raises_is_its_result() -> None:
    assert json.loads(lines(stage())["a/1"]) == {"raised": "ValueError: a negative number"}
    again = stage(lambda number: number)
    (found,) = compared("numbers", lines(stage()), lines(again)).cases["a/1"]
    assert found.after == "-1"


def test_equal_results_are_no_difference() -> None:
    found = compared("numbers", lines(stage()), lines(stage()))
    assert not found.cases
    assert list(compare.lines(found)) == ["numbers: equal (2 cases)"]


def test_a_changed_result_is_shown_by_case_and_path() -> None:
    changed = stage(lambda number: {"inverse": 0.5, "digits": {"0"}} if number > 0 else None)
    found = compared("numbers", lines(stage()), lines(changed))
    assert found.cases["b/1"] == (
        Difference("/digits/1", '"3"', "absent"),
        Difference("/inverse", "0.3333333333333333", "0.5"),
    )
    shown = "\n".join(compare.lines(found))
    assert "numbers: 2 of 2 cases differ" in shown
    assert "    /inverse: 0.3333333333333333 → 0.5" in shown
    assert "  1 of them at /digits/*" in shown


def test_cases_that_come_and_go_are_differences() -> None:
    found = compared("numbers", {"old": "1"}, {"new": "2"})
    assert found.cases == {
        "new": (Difference("/", "absent", "2"),),
        "old": (Difference("/", "1", "absent"),),
    }


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ([1, 2, 3], [0, 1, 2, 3], ["/0"]),
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 3}], ["/1/a"]),
        ([1, 2], [1], ["/1"]),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}, "c": 0}, ["/c"]),
        ({"a": 1}, [1], ["/"]),
        (1, True, ["/"]),
        ({"a": "x\ny\nz"}, {"a": "x\nw\nz"}, ["/a/1"]),
        ("x\ny", "x\nnew\ny", ["/1"]),
        (1.0, 1.0, []),
    ],
)
def test_a_difference_is_the_smallest_value_that_differs(
    before: Any, after: Any, paths: list[str]
) -> None:
    assert [each.path for each in differences(before, after)] == paths


def test_of_long_texts_the_place_is_shown_where_they_part() -> None:
    (found,) = differences("x" * 500 + "old" + "y" * 500, "x" * 500 + "new" + "y" * 500)
    assert len(found.shown) < 150
    assert "old" in found.shown
    assert "new" in found.shown


def test_only_wanted_differences_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "wanted.txt"
    file.write_text(
        '# renamed\nnum* b/* /digits/*\nnumbers a/1 /raised "Value*" => absent\nx y /z\n'
    )
    wanted, used = compare.expectations(file), set[Expectation]()
    changed = stage(lambda number: {"inverse": 0.5, "digits": {"0"}} if number > 0 else {})
    found = compared("numbers", lines(stage()), lines(changed), wanted, used)
    assert found.wanted == 2
    assert {case: [each.path for each in several] for case, several in found.cases.items()} == {
        "b/1": ["/inverse"]
    }
    assert [one.stage for one in wanted if one not in used] == ["x"]


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    colour: Colour = Colour.RED
    empty: str = ""
    found: bool = False
    none: None = None
    zero: int = 0


@dataclass
class Data:
    at: datetime
    raw: bytes
    rows: frozenset[str]
    value: float


def test_values_become_plain_json_that_no_hash_seed_changes() -> None:
    assert plain(Model()) == {"colour": "red", "zero": 0}
    made = Data(datetime(2026, 1, 1, tzinfo=UTC), b"\xff", frozenset("cab"), math.nan)
    assert plain(made) == {
        "at": "2026-01-01T00:00:00+00:00",
        "raw": "\\xff",
        "rows": ["a", "b", "c"],
        "value": "nan",
    }
    assert plain({Colour.RED: (PurePosixPath("a/b"), "")}) == {"red": ["a/b", ""]}
    assert canonical({"b": 1, "a": 2}) == '{"a":2,"b":1}'
    with pytest.raises(TypeError):
        plain(object())


def test_a_renamed_field_keeps_its_recorded_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plains.RECORDED_NAMES, ("Model", "zero"), "nought")
    assert plain(Model()) == {"colour": "red", "nought": 0}


def truth(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["truth", *map(str, arguments)])


def recorded(folder: Path) -> Path:
    made = truth(
        "record", folder, "--only", "configuration", "--cases", "written/0[01]", "--jobs", 1
    )
    assert made.exit_code == 0, made.output
    assert "configuration: 2 cases, 0 raise" in made.output
    return folder


def test_a_check_tells_whether_anything_changed(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "record")
    same = truth("check", folder, "--jobs", 1)
    assert (same.exit_code, same.output) == (0, "configuration: equal (2 cases)\n")
    path = folder / "configuration.jsonl.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    path.write_bytes(gzip.compress(text.replace('"off":true', '"off":false').encode()))
    other = truth("check", folder, "--jobs", 1)
    assert other.exit_code == 1
    assert "  written/01\n    /parsed/off: false → true" in other.output
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("configuration written/* /parsed/off false => true\n")
    expected = truth("check", folder, "--jobs", 1, "--expect", wanted)
    assert expected.exit_code == 0
    assert "equal (2 cases, 1 wanted difference)" in expected.output


def test_a_record_of_a_stage_that_is_gone_differs(tmp_path: Path) -> None:
    folder = recorded(tmp_path)
    (folder / "old.jsonl.gz").write_bytes(gzip.compress(b""))
    made = truth("check", folder, "--jobs", 1)
    assert made.exit_code == 1
    assert "old: the stage is gone" in made.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "."),
        ("record", "docs", "--only", "commands", "--cases", "none"),
        ("record", "reprise-runs/none", "--only", "nothing"),
    ],
)
def test_a_mistake_is_told(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert truth(*arguments).exit_code == 2


KEPT = {"diagnosis", "report-of-training"}
"""Stages whose inputs are not in the repository."""


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_every_stage_makes_something_of_its_cases(stage: Stage) -> None:
    cases = stage.cases(INPUTS)
    assert bool(cases) == (stage.name not in KEPT)
    for name in [name for name in cases if name.startswith(SAMPLE)][:3] or list(cases)[:2]:
        made = stage.result(cases[name])
        assert not isinstance(made, dict) or "raised" not in made, (name, made)


INPUTS = Inputs()
SAMPLE = ("kind/crash-shapes/same", "golden/reproduced/", "example")
