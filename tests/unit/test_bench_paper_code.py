"""The benchmark of code blocks on a paper of our own: blocks are masked, a scripted model writes them,
and unit tests that it does not see decide."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paper_code import (
    CodeBench,
    CodeBlock,
    CodeRow,
    blocks_of,
    code_summary,
    passes,
    published,
    visible_files,
    write_block,
)
from bot.kernel.environment import Environment
from bot.kernel.errors import UserError
from bot.kernel.job import ModelLimits
from tests.support.model import ScriptedModel
from tests.support.papers import paper_ports, run_here
from tests.support.sandbox import FakeSandbox
from tests.unit.test_agent import SAMPLED, SUBMIT, act, edit, write

CODE = """import helper


def scale(values):
    # <paper2code name="whole">
    low = min(values)
    # <paper2code name="the shift">
    # by the least value
    shifted = [value - low for value in values]
    # </paper2code name="the shift">
    # </paper2code name="whole">
    return [helper.half(value) for value in shifted]
"""
TEST = """import unittest
from scale import scale
from scale_ref import scale as reference


class TestScale(unittest.TestCase):
    def test_it(self):
        self.assertEqual(scale([3, 5]), reference([3, 5]))


if __name__ == "__main__":
    unittest.main()
"""
HERE = Environment(id="here", python="3", interpreter=sys.executable, variables={"PYTHONPATH": ""})


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy with one paper of three files and another that is never opened."""
    home = tmp_path / "pset"
    (home / "scale").mkdir(parents=True)
    rows = "- id: scale\n  annotated_file_paths: scale.py\n  context_file_paths: data.py\n- id: other\n  annotated_file_paths: x.py\n"
    (home / "papers.yaml").write_text(rows)
    for name, text in {
        "scale.py": CODE,
        "scale_ref.py": CODE,
        "data.py": "VALUES = [3, 5]\n",
        "helper.py": "def half(value):\n    return value / 2\n",
        "paper2code_test.py": TEST,
        "paper2code_paper.md": "# Scale\n\nEvery value is shifted by the least one, then halved.\n",
    }.items():
        (home / "scale" / name).write_text(text)
    return tmp_path


def block(copy: Path, name: str = "the shift") -> CodeBlock:
    return next(row for row in blocks_of(copy) if row.name == name)


def written(copy: Path, *actions: dict[str, Any]) -> tuple[str | None, CodeRow]:
    model = ScriptedModel([act(*actions)])
    ports = paper_ports(None, model=model, sandbox=FakeSandbox(run_here))
    folder, one = copy / "pset" / "scale", block(copy)
    return write_block(one, folder, "the paper", ports, HERE, ModelLimits(max_tokens=900_000))


def test_blocks_are_masked_one_at_a_time_and_counted_as_the_benchmark_does(copy: Path) -> None:
    whole, shift = blocks_of(copy)
    assert (whole.id, whole.lines, shift.id, shift.lines) == (
        "scale/whole", 2, "scale/the-shift", 1,
    )  # fmt: skip
    assert "paper2code" not in whole.masked + shift.masked
    assert '    # TODO: Implement block "the shift"\n    return' in shift.masked
    assert "low = min(values)" in shift.masked
    assert "low = min(values)" not in whole.masked
    assert blocks_of(copy, "scale/the") == [shift]
    assert blocks_of(copy, "other") == []
    with pytest.raises(UserError):
        blocks_of(copy / "pset" / "scale")


def test_the_agent_sees_neither_tests_nor_references(copy: Path) -> None:
    files = visible_files(copy / "pset" / "scale", block(copy))
    assert set(files) == {"scale.py", "helper.py", "data.py"}
    assert "shifted = [" not in files["scale.py"]


@pytest.mark.parametrize(
    ("body", "right"),
    [("    shifted = [one - low for one in values]", True), ("    shifted = values", False)],
)
def test_the_tests_decide(copy: Path, body: str, right: bool) -> None:
    at = block(copy).masked.splitlines().index(block(copy).mark) + 1
    code, row = written(copy, edit(at, at, body, "scale.py"), SAMPLED, SUBMIT)
    assert (row.end, row.answers, row.error) == ("submitted", 1, "")
    assert code is not None
    folder = copy / "pset" / "scale"
    assert passes(folder, {"scale.py": code}, HERE, FakeSandbox(run_here)) is right


def test_a_block_that_is_missing_or_a_file_that_changed_elsewhere_is_not_tested(copy: Path) -> None:
    code, row = written(copy, SUBMIT)
    assert code is None
    assert row.error == "the block is not there, or other lines changed"
    text = CODE.replace("min(values)", "0").replace("# <", "# ").replace("# </", "# ")
    assert written(copy, write(text, "scale.py"), SUBMIT)[0] is None


def test_tests_that_count_none_do_not_pass(copy: Path) -> None:
    code = f"import sys\nsys.exit(0)\n{CODE}"
    folder = copy / "pset" / "scale"
    assert not passes(folder, {"scale.py": code}, HERE, FakeSandbox(run_here))


def test_rates_count_blocks_and_lines_beside_published_ones(copy: Path) -> None:
    def tries(*passed: bool) -> dict[str, Any]:
        names = ("whole", "the shift", "not asked")
        rows = zip(names, (2, 1, 9), passed, strict=True)
        return {
            "results": {
                name: [{"snippet_code_line_count": count, "passed": right}]
                for name, count, right in rows
            }
        }

    models = {"GOOD": tries(True, False, False), "BAD": tries(False, True, True)}
    (copy / "outputs").mkdir()
    stats = copy / "outputs" / "overall_stats.json"
    stats.write_text(json.dumps({"results": {"scale": {"results": models}}}))
    rows = (
        CodeRow(id="scale/whole", lines=2, passed=True),
        CodeRow(id="scale/the-shift", lines=1),
    )
    bench = CodeBench(rows=rows, published=tuple(published(copy, {row.id for row in rows})))
    assert list(code_summary(bench)) == [
        "pass@1: 1 of 2 blocks (50.0%), 66.7% of lines",
        "scale: 1 of 2 blocks (50.0%), 66.7% of lines",
        "published, GOOD: 50.0% of blocks, 66.7% of lines",
        "published, BAD: 50.0% of blocks, 33.3% of lines",
    ]
