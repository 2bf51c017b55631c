"""A failing program and its patched twin, both traced: what shows that the operation was not done as before."""

import ast
import subprocess
import sys
from importlib import resources

import pytest

from bot.models.bug import Frame
from bot.rules.patches import often
from bot.rules.patches import operation as operations
from bot.rules.patches.often import Reached

LIBRARY = """\
class Box:
    def __init__(self, *shape):
        self.shape = shape

def f(n):
    if n == 50:
        raise ValueError("no fifty")
    return n

def held(function):
    def inner(*more):
        try:
            return function(*more)
        except ValueError:
            return None
    return inner

class held_back:
    def __enter__(self): pass
    def __exit__(self, *of): return True

def box(x):
    if x.shape[0] != 0:
        raise ValueError("no boxes")
"""
LOOP = "import lib\nn = 100\nfor i in range(n):\n    lib.f(i)\nprint('end')\n"
FUNCTION = "import lib\ndef step(numbers):\n    for i in numbers:\n        lib.f(i)\nstep(range(100))\nprint('end')\n"
LISTED = "import lib\nrows = []\nfor i in range(100):\n    rows.append(i)\nout = [lib.f(each) for each in rows]\nprint('end')\n"
NATIVE = "import math\nfor i in range(9):\n    math.sqrt(5 - i)\nprint('end')\n"
SINGLE = "import lib\nx = lib.Box(3, 2)\nlib.box(x)\nprint('end')\n"


@pytest.fixture
def traced(tmp_path):
    (tmp_path / "lib.py").write_text(LIBRARY)
    probe = resources.files("sandbox").joinpath("probe", "reached.py")

    def start(source):
        (tmp_path / "repro.py").write_text(source)
        argv = [sys.executable, str(probe), "repro.py", "reached.json"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, Reached.model_validate_json((tmp_path / "reached.json").read_bytes())

    return start


@pytest.fixture
def objection(traced):
    def of(source, now, line, entered):
        old, new = ast.parse(source), ast.parse(now)
        operation = operations.raising(old, line, entered)
        (failed, failing), (ended, seen) = traced(source), traced(now)
        assert (failed, ended) == (1, 0)
        frame = Frame(path="lib.py", line=1, function=entered, code="") if entered else None
        return often.objection(old, new, operation, failing, seen, frame)

    return of


@pytest.mark.parametrize(
    ("source", "line", "entered", "was", "now", "said"),
    [
        (LOOP, 4, "f", "range(n)", "range(10)", "is done less often (10) than in the failing program up to its end (51)"),
        (LOOP, 4, "f", "n = 100", "n = 1", "is done less often (1)"),
        (LOOP, 4, "f", "range(n)", "range(0)", "is not reached"),
        (LOOP, 4, "f", "range(n)", "range(n)[::-1][60:]", "is done less often (40)"),
        (LOOP, 4, "f", "lib.f(i)", "lib.f(-i)", ""),
        (LOOP, 4, "f", "range(n)", "range(51, 151)", ""),
        (LOOP, 4, "f", "    lib.f(i)", "    with lib.held_back(): lib.f(i)", "is held back"),
        (FUNCTION, 4, "f", "step(range(100))", "step(range(10))", "is done less often (10)"),
        (FUNCTION, 4, "f", "step(range(100))", "step([0] * 51)", ""),
        (FUNCTION, 4, "f", "def step", "@lib.held\ndef step", "is held back"),
        (LISTED, 5, "f", "range(100)", "range(10)", "is done less often (10)"),
        (LISTED, 5, "f", "rows.append(i)", "rows.append(-i)", ""),
        (NATIVE, 3, "", "range(9)", "range(3)", "is done less often (3) than in the failing program up to its end (7)"),
        (NATIVE, 3, "", "5 - i", "9 - i", ""),
        (SINGLE, 3, "box", "lib.Box(3, 2)", "lib.Box(0, 2)", "`x` is empty"),
        (SINGLE, 3, "box", "lib.box(x)", "lib.box(\n    lib.Box(0, 2)\n)", ""),
    ],
)
def test_the_operation_is_done_as_often_and_on_as_much(objection, source, line, entered, was, now, said):
    assert was in source
    found = objection(source, source.replace(was, now), line, entered)
    assert said in found
    assert bool(said) == bool(found)


def test_what_is_printed_and_checked_is_reached_as_often(traced):
    before = "import lib\nfor i in range(3):\n    x = lib.f(i)\n    print(x)\n"
    after = "import lib\nfor i in range(3):\n    x = lib.f(i)\nfor i in [0]:\n    print(x)\n"
    old, new = ast.parse(before), ast.parse(after)
    operation = operations.named(old, ("lib.f",), {1, 2, 3, 4})
    failing, seen = (traced(each)[1] for each in (before, after))
    assert often.objection(old, old, operation, failing, failing, None) == ""
    assert "line 5 is not reached as often" in often.objection(old, new, operation, failing, seen, None)


def test_of_a_program_that_nothing_is_heard_of_only_what_runs_once_can_be_held_against(traced):
    for source, line, said in ((SINGLE, 3, ""), (LOOP, 4, "It cannot be seen how often")):
        tree = ast.parse(source)
        seen = Reached(lines={line: 1})
        assert often.objection(tree, tree, operations.raising(tree, line), None, seen, None).startswith(said)
        assert bool(said) == bool(often.objection(tree, tree, operations.raising(tree, line), None, seen, None))
