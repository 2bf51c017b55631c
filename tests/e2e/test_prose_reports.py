"""Reports that name their program and their failure in prose, in the tree of their repository."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e.test_verdicts import of_tree

FIT = """import argparse
from lib.parts import halve
parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=4)
parser.add_argument("--mode", choices=["a", "b"], default="a")
args = parser.parse_args()
print("half", halve(args.size))
"""
PARTS = """def halve(size):
    if size % 2:
        raise ValueError(f"size {size} is odd")
    return size // 2
"""


@pytest.fixture
def tree(tmp_path):
    for name, text in {
        "fit.py": FIT, "lib/__init__.py": "", "lib/parts.py": PARTS, "scripts/odd.sh": "python fit.py --size 5\n",
    }.items():  # fmt: skip
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("python fit.py --size 5\n\nends in `ValueError: size 5 is odd`", "reproduced"),
        ("When I run python fit.py --size 7 I get ValueError: size 7 is odd", "reproduced"),
        ("**bash scripts/odd.sh**\n\nValueError: size 5 is odd", "reproduced"),
        ("I ran: python fit.py --size 6\n\nValueError: size 6 is odd", "not_reproduced"),
        ("python fit.py --width 5\n\n**fit.py: error: unrecognized arguments: --width 5**", "reproduced"),
        ("`python fit.py --mode c` says `fit.py: error: argument --mode: invalid choice: 'c' (choose from a, b)`.", "reproduced"),
        ("python fit.py --size 4\n\nfit.py: error: unrecognized arguments: --size 4", "not_reproduced"),
        ("python fit.py --size 4\n\nfit.py: error: unrecognized arguments: --local-rank=0", "inconclusive"),
    ],
)  # fmt: skip
def test_a_command_in_prose_is_run(interpreter, tree, body, kind):
    report = of_tree(interpreter, tree, body)
    assert report.verdict.kind == kind


SH = "bash scripts/odd.sh"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("I ran the file: **repo/scripts/odd.sh**\n\n`ValueError: size 5 is odd`", "reproduced"),
        ("When I run bad.py I get ValueError: size 3 is odd", "reproduced"),
        ("When I run fit.py I get ValueError: size 3 is odd", "inconclusive"),
        ("When I run needy.py I get `needy.py: error: the following arguments are required: --x`", "inconclusive"),
        ("When I run bad.py I get ValueError: the tensor has no elements at all", "inconclusive"),
    ],
)  # fmt: skip
def test_a_script_that_prose_names_is_run_and_its_passing_refutes_nothing(
    interpreter, tree, body, kind
):
    (tree / "bad.py").write_text("from lib.parts import halve\nhalve(3)\n")
    (tree / "needy.py").write_text(FIT.replace('"--mode"', '"--x", required=True'))
    report = of_tree(interpreter, tree, body)
    assert report.verdict.kind == kind
    assert report.script.command


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("`from lib.parts import halve, third` gives an import error, I can't see third in the file.", "reproduced"),
        ("In fit.py `from lib.parts import halve` fails with an import error.", "inconclusive"),
        ("`from lib.absent import halve` fails with an import error in use.py.", "reproduced"),
        ("`from absent import halve` fails with an import error in top.py.", "setup_failed"),
    ],
)  # fmt: skip
def test_an_import_that_fails_by_the_words_of_a_report_is_run(interpreter, tree, body, kind):
    (tree / "use.py").write_text("from lib.absent import halve\n")
    (tree / "top.py").write_text("from absent import halve\n")
    report = of_tree(interpreter, tree, body)
    assert report.verdict.kind in {kind, "inconclusive" if kind == "setup_failed" else kind}


LOOK = """{"cells": [
 {"cell_type": "code", "source": ["from lib.parts import halve\\n", "size = 9"]},
 {"cell_type": "code", "source": ["halve(size)"]}
]}"""
CELL = """```
ValueError                                Traceback (most recent call last)
[/home/me/repo/nb/look.ipynb](vscode-notebook-cell:/home/me/repo/nb/look.ipynb) Cell 2 line 1
----> [1](vscode-notebook-cell:/home/me/repo/nb/look.ipynb#X2?line=0) halve(size)

ValueError: size 9 is odd
```"""
FLAT = 'I get Traceback (most recent call last): File "D:\\\\work/repo-main\\\\bad.py", line 2, in <module> halve(3) ValueError: size 3 is odd'


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (CELL, "reproduced"),
        (FLAT, "reproduced"),
        (FLAT.replace("ValueError: size 3 is odd", "KeyError: 'size'"), "inconclusive"),
    ],
)
def test_a_traceback_in_any_dress_leads_to_its_program(interpreter, tree, body, kind):
    (tree / "nb").mkdir()
    (tree / "nb" / "look.ipynb").write_text(
        LOOK.replace('"from', '"import sys; sys.path.insert(0, \'..\')\\n", "from')
    )
    (tree / "bad.py").write_text("from lib.parts import halve\nhalve(3)\n")
    assert of_tree(interpreter, tree, body).verdict.kind == kind


TESTS = """from lib.parts import halve
def test_odd(): assert halve(6) == 4
def test_even(): assert halve(6) == 3
def test_raises(): assert halve(5) == 2
"""


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("`test_odd` in `test_parts.py` fails.", "reproduced"),
        ("`test_even` in `test_parts.py` fails.", "not_reproduced"),
        ("`test_raises` in `test_parts.py` fails.", "inconclusive"),
        ("`test_odd` in `test_parts.py` fails at `assert halve(8) == 5`.", "different_failure"),
    ],
)  # fmt: skip
def test_a_test_that_fails_by_the_words_of_a_report_is_run(interpreter, tree, body, kind):
    (tree / "tests").mkdir()
    (tree / "tests" / "test_parts.py").write_text(TESTS)
    site = Path(find_spec("pytest").origin).parent.parent
    for name in (
        "pytest",
        "pytest-*",
        "_pytest",
        "pluggy*",
        "iniconfig",
        "packaging",
        "pygments",
        "py.py",
    ):
        for path in site.glob(name):  # what no index offers here lies beside the tests
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, tree / path.name)
    report = of_tree(interpreter, tree, body)
    assert report.verdict.kind in {kind, "inconclusive" if kind == "different_failure" else kind}
