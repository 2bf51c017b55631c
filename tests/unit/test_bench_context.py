"""Which files a case is about, read off its key, and the figures of a small tree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import context
from benchmarks.scoring import touched
from bot.kernel.errors import UserError


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ({"fix_files": ["a/b.py"], "expected": {"frame": "x/y.py"}}, ("a/b.py",)),
        ({"expected": {"frame": "x/y.py:forward -> z.load"}}, ("x/y.py",)),
        ({"verified_output": 'File "/v/site-packages/x/y.py", line 3, in f\n  File "/v/site-packages/torch/a.py", line 9, in g'}, ("x/y.py",)),
        ({"expected": {"frame": None}, "verified_output": 'File "a.py", line 1'}, ()),
    ],
)  # fmt: skip
def test_a_key_tells_the_file(
    key: dict[str, object], wanted: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/A-1.json").write_text(json.dumps(key))
    assert touched(tmp_path, "A-1") == wanted
    (tmp_path / "answers.json").write_text('{"A-1": ["said.py"]}')
    assert touched(tmp_path, "A-1", tmp_path / "answers.json") == ("said.py",)


def test_a_tree_in_figures(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.11/site-packages"
    (site / "pkg").mkdir(parents=True)
    (site / "pkg-1.0.dist-info").mkdir()
    (site / "pkg-1.0.dist-info/RECORD").write_text("pkg/a.py,,\n")
    (site / "pkg/a.py").write_text(
        "def layer(x):\n    return x\n\n\ndef other(x):\n    return layer(x)\n"
    )
    figures = context.indexed(tmp_path, ["pkg"], queries=3)
    assert (figures.files, figures.pieces) == (1, 2)
    assert "1 files" in context.told(figures)
    with pytest.raises(UserError):
        context.indexed(tmp_path, ["nothing"])


def test_places_are_counted_apart_for_reports_that_name_the_file() -> None:
    def place(rank: int, *, named: bool) -> context.Place:
        return context.Place(
            id="A", wanted=("a.py",), named=named, rank=rank, shown=rank == 1, seconds=0.1, lines=9
        )

    told = context.told_places(
        [
            place(1, named=True),
            place(11, named=False),
            place(10, named=False),
            place(0, named=False),
        ]
    )
    assert told.splitlines()[-2:] == [
        "among the first ten: 1 of 1 reports that name it; shown: 1",
        "among the first ten: 1 of 3 reports that do not name it; shown: 0",
    ]
