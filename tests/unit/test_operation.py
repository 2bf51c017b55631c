"""What a run must reach before its good end says anything about a report."""

import pytest

from bot.issues.observe import operation
from bot.issues.reading.issue import read_issue
from bot.kernel.attempt import Script
from bot.kernel.bug import (
    BugReport,
    CrashSignature,
    Frame,
    Issue,
    ObservationSignature,
    Predicate,
    ReportKind,
    Traceback,
)

CRASH = CrashSignature(exception="ValueError", message="no")
SOURCE = """import os
import lib
from lib import load as fetch
from json import dumps


def helper(x):
    return lib.scale(x)


model = fetch("a")
print(os.getcwd(), dumps(1))
model.fit(1)
helper(2)
"""


def frame(path, function, code="", package=None):
    top = path.partition("/")[0] if package is None else package
    return Frame(
        path=path, package=top, module_path=path if top else "", function=function, code=code
    )


def found(*tracebacks, members=(CRASH,), source=SOURCE, api=(), failed=False):
    bug = BugReport(kind=ReportKind.BUG, tracebacks=tracebacks, api=api)
    return operation(bug, members, Script(files={"repro.py": source}), failed=failed)


def traceback(*frames, exception="ValueError"):
    return Traceback(exception=exception, message="no", frames=frames)


def test_the_frames_next_to_the_failure_are_what_is_wanted():
    path = ("trainer", "fit", "step", "check")
    rows = [frame("repro.py", "<module>", "model.fit(1)", package="")]
    rows += [frame("lib/core.py", f"Model.{name}") for name in path]
    rows += [frame("/usr/lib/python3.11/json/x.py", "dumps", package="<stdlib>")]
    wanted = found(traceback(*rows))
    assert wanted.functions == (
        ("lib/core.py", "fit"),
        ("lib/core.py", "step"),
        ("lib/core.py", "check"),
    )
    assert wanted.says == "`check` in lib/core.py"
    assert wanted.reached((("lib/core.py", "step"),), frozenset())
    assert not wanted.reached((("lib/core.py", "trainer"),), frozenset(range(20)))


def test_a_traceback_of_another_error_says_nothing():
    other = traceback(frame("lib/core.py", "check"), exception="KeyError")
    assert found(other).functions == ()


def test_without_a_library_the_quoted_line_of_the_program_is_wanted():
    wanted = found(traceback(frame("mine.py", "<module>", "model.fit(1)", package="")))
    assert (wanted.lines, wanted.says) == (frozenset({13}), "the line `model.fit(1)`")
    assert wanted.reached((), frozenset({13}))
    assert not wanted.reached((), frozenset({11, 12}))


def test_without_a_traceback_the_named_call_is_wanted():
    assert found(api=("lib.scale()", "lib.other")).lines == {8}
    claim = ObservationSignature(
        name="v",
        says="it is wrong",
        wrong=Predicate(op="nan"),
        right=Predicate(op="finite"),
        api=("lib.Model.fit",),
    )
    assert found(members=(claim,)).lines == {13}


@pytest.mark.parametrize(
    ("lines", "failed", "reached"),
    [
        ({11, 13}, False, True),
        ({11}, False, False),
        ({8, 11}, True, False),
        ({13}, True, True),
    ],
)
def test_with_nothing_named_half_the_calls_or_the_last_one_are_wanted(lines, failed, reached):
    wanted = found(failed=failed)
    assert wanted.lines == ({13} if failed else {8, 11, 13})
    assert wanted.reached((), frozenset(lines)) is reached


def test_a_program_that_only_defines_things_reaches_nothing():
    wanted = found(source="def test_a():\n    import lib\n    lib.fit()\n")
    assert not wanted.reached((), frozenset({1}))
    nothing = found(source="import json\n\nclass A:\n    x = json.dumps(1)\n")
    assert not nothing.reached((), frozenset({1, 2, 3, 4}))


def test_a_program_that_calls_no_library_reaches_its_own_statements():
    wanted = found(source="import math\nx = 4.0\nprint('loss', math.sqrt(x))\n", failed=True)
    assert wanted.lines == {3}
    assert found(source="x = 1\nprint(x)\n").reached((), frozenset({1, 2}))


TREE = {
    "nn/train_model.py": b"import os\nos.system('python nn/model.py &')\n",
    "nn/model.py": b"import sys\nfrom utils import features\n",
    "utils.py": b"features = 1\n",
}


def of_tree(path, code, entry="nn/train_model.py"):
    frame = Frame(path=path, line=2, function="<module>", code=code)
    row = Traceback(exception="ImportError", message="No module named 'utils'", frames=(frame,))
    bug = read_issue(Issue(title="It fails", body="")).model_copy(update={"tracebacks": (row,)})
    script = Script(files={entry: TREE[entry].decode()}, entry=entry, command=(entry,))
    member = CrashSignature(exception="ImportError", message="No module named 'utils'")
    return operation(bug, (member,), script, TREE, failed=False)


def test_the_line_of_another_file_of_the_tree_must_run_where_the_traceback_is_in_it():
    reach = of_tree("/home/me/repo/nn/model.py", "from utils import features")
    assert (reach.file, reach.lines) == ("nn/model.py", {2})
    assert not reach.reached((), frozenset())
    assert reach.reached((), frozenset({2}))
    changed = of_tree("/home/me/repo/nn/model.py", "from utils import other")
    assert not changed.reached((), frozenset({1, 2}))


def test_the_file_that_is_started_and_installed_ones_are_looked_at_as_before():
    assert of_tree("/home/me/repo/nn/train_model.py", "import os").file == ""
    assert of_tree("/home/me/lib/site-packages/utils.py", "features = 1").file == ""
