"""Real programs in the process sandbox, from the text of a report to its verdict."""

import json
import shutil
import tempfile
import time
from pathlib import Path
from threading import Event

import pytest

from bot.environment.operator_files import Shelf
from bot.issues.signature import freeze
from bot.kernel.bug import Issue
from bot.kernel.environment import Environment, OperatorFiles
from bot.kernel.job import PROOFS
from bot.kernel.ports import Ports
from bot.products.engine import execute as run
from bot.report.comment import comment
from bot.report.terminal import terminal
from sandbox.cache import Cache
from sandbox.process import ProcessSandbox
from tests.support.fakes import FakeBuilder, ListListener, MemoryJournal, ScriptedModel
from tests.support.jobs import issue_job


@pytest.fixture
def decide(interpreter):
    return lambda *args, **options: _decide(interpreter, *args, **options)


NO_FILES = OperatorFiles()


def _decide(home, program, shown="", title="It fails", body="", **options):
    body = (
        body
        or f"Please see below.\n\n### To reproduce\n\n```python\n{program}\n```\n\n### Actual output\n\n```\n{shown}\n```\n"
    )
    here = Environment(
        id="here",
        python="3",
        interpreter=f"{home}/bin/python",
        mounts=(str(home),),
        variables={"LD_LIBRARY_PATH": f"{home}/lib"},
    )
    ports = Ports(
        sandbox=ProcessSandbox(),
        builder=FakeBuilder(on_build=lambda spec: here),
        journal=MemoryJournal(),
        clock=time.monotonic,
        listener=ListListener(),
        cancel=Event(),
    )
    return run(
        issue_job(Issue(title=title, body=body), timeout_s=30, without=PROOFS, **options),
        ports,
    )


@pytest.mark.parametrize(
    ("program", "shown", "kind"),
    [
        ('import json\njson.loads("{")', "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", "reproduced"),
        ('import json\nprint(json.loads("{}"))', "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", "not_reproduced"),
        ("import math\nmath.sqrt(-1)", "IndexError: list index out of range", "different_failure"),
        ("import math\nx = math.inf\nprint('loss', x - x)", "loss nan", "reproduced"),
        ("import math\nx = 4.0\nprint('loss', math.sqrt(x))", "loss nan", "not_reproduced"),
        ("import math\nfor x in range(3)\n    print(math.sqrt(x))", "IndexError: list index out of range", "inconclusive"),
        ('print("loss nan")', "loss nan", "inconclusive"),
        ('raise IndexError("list index out of range")', "IndexError: list index out of range", "inconclusive"),
        ("import os\nos.abort()", "Aborted (core dumped)", "inconclusive"),
        ("import math\nassert math.hypot(3, 4) == 6", "AssertionError", "reproduced"),
        ("try:\n    [][3]\nexcept IndexError as e:\n    print('IndexError:', e)", "IndexError: list index out of range", "reproduced"),
    ],
)  # fmt: skip
def test_verdicts(decide, program, shown, kind):
    assert decide(program, shown).verdict.kind == kind


def test_a_flaky_failure_says_how_often(decide):
    verdict = decide(
        "import os\nassert os.urandom(1)[0] > 127, 'low byte'", "AssertionError: low byte"
    ).verdict
    assert verdict.kind == "reproduced"
    assert 0 < verdict.failures < verdict.runs or verdict.runs == verdict.failures
    low, high = verdict.interval
    assert low < verdict.failures / verdict.runs <= high


def test_a_failure_that_hangs_on_the_seed_says_so(decide):
    verdict = decide(
        "import random\nassert random.random() > 0.5, 'small draw'", "AssertionError: small draw"
    ).verdict
    assert verdict.kind == "reproduced"
    assert verdict.determinism == "seed-dependent"


@pytest.mark.slow  # each run ends by the clock
def test_a_deadlock_is_not_waited_for_as_long_as_the_reporter_did(decide, monkeypatch):
    assert freeze.IDLE_BOUND_S <= 20
    monkeypatch.setattr(freeze, "IDLE_BOUND_S", 6.0)
    program = "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"
    started = time.monotonic()
    found = decide(program, "(nothing, I waited 20 minutes, 0 % CPU)", "Deadlock: hangs forever")
    assert found.verdict.kind == "reproduced"
    assert time.monotonic() - started < 60


TRAIN = """import argparse
from lib.model import build
parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=4)
print("built", build(parser.parse_args().size))
"""
MODEL = """def build(size):
    if size % 2:
        raise ValueError(f"size {size} is not even")
    with open("written.txt", "x") as file:
        file.write("once")
    return size
"""
SHELL = """#!/bin/bash
cd "$(dirname "$0")"
SCRIPT=train.py
python $SCRIPT --size $1
"""
CELLS = [["%matplotlib inline\n", "from lib.model import build\n"], ["build(5)"]]
NOTEBOOK = json.dumps(
    {"cells": [{"cell_type": "markdown", "source": ["# It"]}]
    + [{"cell_type": "code", "source": cell} for cell in CELLS]}
)  # fmt: skip
LEARN = """import sys
def step(): ...
for epoch in range(3):
    print("epoch", epoch, "accuracy:", 0.1 + 0.01 * len(sys.argv))
"""
PLACE = """Traceback (most recent call last):
  File "/home/me/repo/tools/train.py", line 5, in <module>
    print("built", build(parser.parse_args().size))
  File "/home/me/repo/tools/lib/model.py", line 3, in build
    raise ValueError(f"size {size} is not even")
ValueError: size 5 is not even"""


@pytest.fixture
def tree(tmp_path):
    for name, text in {
        "tools/run.sh": SHELL, "tools/look.ipynb": NOTEBOOK,
        "tools/train.py": TRAIN, "tools/lib/model.py": MODEL, "learn.py": LEARN, "setup.py": "exit(1)",
        ".reprise/json.py": "raise SystemExit(7)", ".reprise/sitecustomize.py": "raise SystemExit(8)",
    }.items():  # fmt: skip
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "tree" / "link.py").symlink_to("/etc/hostname")
    return tmp_path / "tree"


def of_tree(interpreter, tree, body, model=None, files=NO_FILES, **options):
    here = _here(interpreter, tree).model_copy(update={"operator_files": files})
    ports = Ports(
        sandbox=ProcessSandbox(),
        builder=FakeBuilder(on_build=lambda _: here),
        journal=MemoryJournal(),
        clock=time.monotonic,
        listener=ListListener(),
        cancel=Event(),
        model=model,
    )
    issue = Issue(title="It fails", body=body, repository="acme/repo")
    options = {"timeout_s": 30, "without": PROOFS, "repo": str(tree), **options}
    return run(issue_job(issue, **options), ports)


def _here(home, tree):
    return Environment(
        id="here",
        python="3",
        interpreter=f"{home}/bin/python",
        mounts=(str(home),),
        variables={"LD_LIBRARY_PATH": f"{home}/lib"},
        commit="a" * 40,
        tree=str(tree),
    )


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cd repo/tools\npython train.py --size 5", "reproduced"),
        ("python tools/train.py --size 5", "reproduced"),
        ("cd tools; python -m train --size 5", "reproduced"),
        ("cd tools\npython train.py --size 4", "not_reproduced"),
        ("cd tools\npython train.py --sizes x", "different_failure"),
        ("bash tools/run.sh 5", "reproduced"),
        ("cd tools\n./run.sh 4", "not_reproduced"),
        ("jupyter nbconvert --execute tools/look.ipynb", "reproduced"),
    ],
)
def test_a_command_of_the_report_is_run_in_the_tree_of_its_repository(
    interpreter, tree, command, kind
):
    """Each run starts with the tree as it was committed: a file that is written stays in its run."""
    report = of_tree(interpreter, tree, f"```\n{command}\n```\n\n```\n{PLACE}\n```\n")
    assert report.verdict.kind in {kind, "inconclusive" if kind != "reproduced" else kind}
    assert report.verdict.failures == (report.verdict.runs if kind == "reproduced" else 0)
    assert report.script.command
    assert not (tree / "tools" / "written.txt").exists()
    last = report.attempts[-1].judgement
    assert "FileExistsError" not in str(last)


def test_a_training_command_whose_metric_stays_low_is_a_failure(interpreter, tree):
    body = "The accuracy stays around 10 %, the README says 94 %.\n\n```\npython learn.py\n```\n"
    report = of_tree(interpreter, tree, body)
    assert report.verdict.kind == "reproduced"
    assert report.signature.kind == "training"


READER = """import os
def total(path):
    with open(path) as file:
        numbers = [int(word) for word in file.read().split()]
    return sum(numbers) // numbers[-1]
print("total", total("data/numbers.txt"), os.listdir("data"))
"""
DIVISION = """The total cannot be computed.

```
python read.py
```

```
Traceback (most recent call last):
  File "/home/me/repo/read.py", line 6, in <module>
    print("total", total("data/numbers.txt"), os.listdir("data"))
  File "/home/me/repo/read.py", line 5, in total
    return sum(numbers) // numbers[-1]
ZeroDivisionError: integer division or modulo by zero
```
"""
PROVIDE = "an operator can provide it with `data:` in .github/reprise.yml"


@pytest.fixture
def shelf(tmp_path):
    """An operator's folder, whose data makes the program fail as reported."""
    with tempfile.TemporaryDirectory(prefix="reprise-data-") as place:
        folder = Path(place) / "digits"
        folder.mkdir()
        (folder / "numbers.txt").write_text("1 2 0")
        for path in (Path(place), folder):
            path.chmod(0o755)
        yield Shelf(Cache(tmp_path / "cache"), Path(place))


def test_a_program_reads_what_the_operator_keeps_for_it(interpreter, tree, shelf):
    (tree / "read.py").write_text(READER)
    report = of_tree(interpreter, tree, DIVISION)
    assert report.verdict.kind == "needs_info"
    assert report.needs_reader
    assert (
        report.verdict.reason == "the program opens `data/numbers.txt`, which the repository does "
        f"not contain; {PROVIDE}"
    )
    assert "Pass the file or folder with --data" in terminal(report, width=200)
    assert "Missing here:" in comment(report)
    assert "Please add" not in comment(report)
    report = of_tree(interpreter, tree, DIVISION, files=shelf.files({"data": "digits"}))
    assert report.verdict.kind == "reproduced"
    assert not (tree / "data").exists()
    for text in (comment(report), terminal(report, width=200)):
        assert "digits" in text


def test_a_model_is_told_of_data_that_is_not_in_the_tree(interpreter, tree, shelf):
    model = acting({"action": "run", "command": "python tools/train.py --size 5"}, READS)
    of_tree(interpreter, tree, PROSE, model, shelf.files({"data": "digits"}), max_attempts=1)
    assert "data (data, not in git)" in model.asked[-1].messages[-1].content


def test_a_program_whose_data_this_worker_lacks_says_which(interpreter, tree, shelf):
    (tree / "read.py").write_text(READER)
    report = of_tree(interpreter, tree, DIVISION, files=shelf.files({"data": "letters"}))
    assert report.needs_reader
    assert "names `letters` for it, which this worker lacks" in report.verdict.reason
    assert any("does not contain it" in note.text for note in report.notes)


def test_data_that_would_hide_a_file_of_the_tree_is_left_out_and_listed(interpreter, tree, shelf):
    (tree / "read.py").write_text(READER)
    (tree / "data").mkdir()
    (tree / "data" / "numbers.txt").write_text("4 5 6")
    report = of_tree(interpreter, tree, DIVISION, files=shelf.files({"data": "digits"}))
    assert report.verdict.kind != "reproduced"
    assert any("the repository has files at `data`" in note.text for note in report.notes)


PROSE = "Building a model of size 5 with train.py ends in `ValueError: size 5 is not even`."
READS = {
    "claim": "build(5) raises", "kind": "crash", "sign_if_right": False, "needs": "", "packages": [], "pins": [], "warning": None,
    "quotes": ["size 5 is not even"], "api": ["lib.model.build"], "observation": None, "training": None, "questions": [],
    "crash": {"exception": "ValueError", "message": "size 5 is not even", "in_file": "tools/lib/model.py"},
}  # fmt: skip
DRIVES = """import runpy, sys
sys.path.insert(0, "tools")
sys.argv = ["train.py", "--size", "5"]
runpy.run_path("tools/train.py", run_name="__main__")
"""
IMPORTS = """import sys
sys.path.insert(0, "tools")
from lib.model import build
build(5)
"""
COPIES = """def build(size):
    if size % 2:
        raise ValueError(f"size {size} is not even")
import sys
sys.path.insert(0, "tools")
import lib.model
build(5)
"""


def acting(action, reading):
    """A model that reads the report so and does one thing."""
    acts = {"thought": "", "context": 0, "actions": [{"change": "", "contrast": "", **action}]}
    if action["action"] != "write":
        del acts["actions"][0]["contrast"]
    return ScriptedModel(lambda asked: reading if asked.prompt.startswith("refine") else acts)


@pytest.mark.parametrize(
    ("action", "shows"),
    [
        ({"action": "run", "command": "cd tools && python train.py --size 5"}, True),
        ({"action": "run", "command": "python tools/train.py --size 4"}, False),
        ({"action": "run", "command": "rm -rf tools"}, False),
        ({"action": "write", "program": DRIVES}, True),
        ({"action": "write", "program": IMPORTS}, True),
        ({"action": "write", "program": COPIES}, False),
    ],
)
@pytest.mark.parametrize("message", ["size 5 is not even", ""])
def test_a_model_runs_what_a_repository_has_or_a_program_beside_it(
    interpreter, tree, action, shows, message
):
    """A copy of the repository's code in the program shows nothing."""
    crash = {**READS["crash"], "message": message}
    twin = {"contrast": IMPORTS.replace("(5)", "(4)")} if action["action"] == "write" else {}
    model = acting({**action, **twin}, {**READS, "crash": crash})
    report = of_tree(interpreter, tree, PROSE, model, max_attempts=1)
    assert (report.verdict.kind == "reproduced") is shows
    asked = model.asked[-1].messages[-1].content
    assert "run.sh (4), train.py (5)" in asked
    assert "commit aaaaaaaaaaaa" in asked


def test_what_the_command_of_the_report_did_is_told_to_a_model(interpreter, tree):
    body = f"```\npython tools/train.py --size 4\n```\n\n```\n{PLACE}\n```\n"
    reading = {**READS, "crash": {**READS["crash"], "message": "", "in_file": "tools/train.py"}}
    model = acting({"action": "run", "command": "python tools/train.py --size 5"}, reading)
    of_tree(interpreter, tree, body, model, max_attempts=1)
    assert "python tools/train.py --size 4" in model.asked[-1].messages[-1].content


def test_a_model_reads_the_other_files_of_a_repository(interpreter, tree):
    (tree / "config.yaml").write_text("size: 5\n")
    look = {"action": "read", "path": "config.yaml", "start": 1, "end": 9}
    acts = [{"thought": "", "context": 0, "actions": [look]}] * 2
    model = ScriptedModel(lambda q: READS if q.prompt.startswith("refine") else acts[0])
    of_tree(interpreter, tree, PROSE, model, max_attempts=1, max_calls=3)
    assert "size: 5" in model.asked[-1].messages[-1].content


SNIPPET = """import sys
from lib.model import build
build(5)
"""


@pytest.mark.parametrize(("module", "uses"), [("lib", True), ("json", False)])
def test_a_clone_for_commands_serves_a_snippet_that_imports_its_modules(
    interpreter, tree, module, uses
):
    shutil.copytree(tree / "tools" / "lib", tree / "src" / "lib")
    program = SNIPPET.replace("lib.model", module).replace("build", "dumps" * (not uses) or "build")
    body = f"```python\n{program}\n```\n\n```\nValueError: size 5 is not even\n```\n"
    report = of_tree(interpreter, tree, body, for_commands=True)
    assert (report.spec.repo is not None) is uses


LOOP = """import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10_000)
args = parser.parse_args()
for epoch in range(args.epochs):
    time.sleep(0.05)
{}
"""
TOO_FAR = """Traceback (most recent call last):
  File "learn.py", line 7, in <module>
    print([][3])
IndexError: list index out of range"""


@pytest.mark.parametrize(
    ("last", "kind"),
    [("print([][3])", "reproduced"), ("print('done')", "inconclusive")],
)
def test_a_training_that_takes_too_long_is_run_with_fewer_epochs(interpreter, tree, last, kind):
    (tree / "learn.py").write_text(LOOP.format(last))
    shown = f"```\npython learn.py\n```\n\n```\n{TOO_FAR}\n```\n"
    report = of_tree(interpreter, tree, shown, timeout_s=8)
    assert report.verdict.kind == kind
    assert report.script.command == ("learn.py", "--epochs", "1")
    assert [fix.what for fix in report.script.fixes] == ["--epochs 1 instead of 10000"]
    assert "Changed from the bug report: --epochs 1 instead of 10000." in terminal(report)


TORCH = """class Tensor:
    def cuda(self, device=None):
        raise AssertionError("Torch not compiled with CUDA enabled")
    def to(self, device):
        return self.cuda() if "cuda" in device else self
    is_cuda = False
class nn:
    class Module: ...
class cuda:
    class nvtx: ...
    is_available = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 0)
class jit: ...
"""
ON_GPU = """import sys, torch
{}
torch.Tensor().to("cuda").cuda()
{}
"""
CHECKED = "if not torch.cuda.is_available(): raise SystemExit('No GPU found')"
ANSWERED = "CUDA calls are answered on the CPU"


@pytest.mark.parametrize(
    ("check", "last", "kind"),
    [
        ("", "print([][3])", "reproduced"),
        (CHECKED, "print([][3])", "reproduced"),
        ("assert torch.cuda.device_count()", "print([][3])", "reproduced"),
        ("", "print('done')", "needs_hardware"),
        ("", "raise KeyError(1)", "needs_hardware"),
        ("raise ImportError('libcudart.so.12: no such file')", "", "needs_hardware"),
    ],
)
def test_what_a_program_of_a_repository_asks_of_cuda_is_answered_on_the_cpu(
    interpreter, tree, check, last, kind
):
    (tree / "torch").mkdir()
    (tree / "torch" / "__init__.py").write_text(TORCH)
    (tree / "learn.py").write_text(ON_GPU.format(check, last))
    text = TOO_FAR.replace("line 7", "line 4")
    report = of_tree(interpreter, tree, f"```\npython learn.py\n```\n\n```\n{text}\n```\n")
    assert report.verdict.kind == kind
    assert f"Changed from the bug report: {ANSWERED}" in " ".join(terminal(report).split())
    whats = [fix.what for fix in report.script.fixes]
    assert (
        whats
        == [ANSWERED, "`torch.cuda.is_available()` answers True to the program"][: 1 + bool(check)]
    )


@pytest.mark.parametrize(
    ("last", "error"),
    [
        ("raise ValueError('x must be a CUDA tensor')", "ValueError: x must be a CUDA tensor"),
        ("assert torch.Tensor().is_cuda", "AssertionError"),
    ],
)
def test_a_failure_that_is_about_the_gpu_is_not_confirmed_on_the_cpu(
    interpreter, tree, last, error
):
    """The very answers may bring it about."""
    (tree / "torch.py").write_text(TORCH)
    (tree / "learn.py").write_text(ON_GPU.format("", last))
    lines = (
        TOO_FAR.splitlines()[0],
        '  File "learn.py", line 4, in <module>',
        f"    {last}",
        error,
    )
    shown = "\n".join(lines)
    report = of_tree(interpreter, tree, f"```\npython learn.py\n```\n\n```\n{shown}\n```\n")
    assert report.verdict.kind == "needs_hardware"
    assert "without a GPU" in report.verdict.reason


BESIDE_IT = """import argparse
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", action="store_true")
"""


def test_an_option_that_the_program_refuses_is_taken_back(interpreter, tree):
    (tree / "torch.py").write_text(TORCH)
    (tree / "beside.py").write_text(BESIDE_IT)
    text = ON_GPU.format(
        "import argparse, beside; argparse.ArgumentParser().parse_args()", "print([][3])"
    )
    (tree / "learn.py").write_text(text)
    text = TOO_FAR.replace("line 7", "line 4")
    report = of_tree(interpreter, tree, f"```\npython learn.py\n```\n\n```\n{text}\n```\n")
    assert report.verdict.kind == "reproduced"
    assert report.script.command == ("learn.py",)
    assert [fix.what for fix in report.script.fixes] == [ANSWERED]
    assert (
        "with --cpu" in str(report.attempts[1].change) or report.attempts[1].judgement.setup_failure
    )


def test_a_shorter_training_says_nothing_of_how_the_whole_one_ends(interpreter, tree):
    text = LEARN.replace("range(3)", "range(epochs)").replace(
        "import sys", "import sys, time\nepochs = 9000"
    )
    (tree / "learn.py").write_text(f"{text}    time.sleep(0.05)\n")
    body = "The accuracy stays around 10 %, the README says 94 %.\n\n```\npython learn.py\n```\n"
    report = of_tree(interpreter, tree, body, timeout_s=3)
    assert report.verdict.kind == "inconclusive"
    assert not report.script.fixes


def test_without_the_clone_a_command_is_no_question_to_the_reporter(decide):
    body = f"```\npython train.py\n```\n\n```\n{PLACE}\n```\n"
    report = run(
        issue_job(Issue(title="It fails", body=body), without=PROOFS),
        Ports(
            sandbox=ProcessSandbox(),
            builder=FakeBuilder(),
            journal=MemoryJournal(),
            clock=time.monotonic,
            listener=ListListener(),
            cancel=Event(),
        ),
    )
    assert report.verdict.kind == "inconclusive"
    assert report.needs_reader


BESIDE = (
    "import math\nexpected = math.inf - math.inf\nprint(expected)\nprint(math.sqrt(float({!r})))"
)


@pytest.mark.parametrize(("number", "kind"), [("4", "inconclusive"), ("nan", "reproduced")])
def test_a_nan_that_is_expected_does_not_count_and_one_beside_it_does(decide, number, kind):
    body = f"See below.\n\n```python\n{BESIDE.format(number)}\n```\n"
    assert decide("", title="The loss is NaN", body=body).verdict.kind == kind


@pytest.mark.parametrize(
    ("program", "shown", "kind"),
    [
        ("import math\nmath.sqrt(len(device))", "IndexError: list index out of range", "inconclusive"),
        ("import json\njson.loads(device[:0])", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "reproduced"),
    ],
)  # fmt: skip
def test_a_program_with_a_filled_in_value_shows_the_failure_or_nothing(
    decide, program, shown, kind
):
    assert decide(program, shown).verdict.kind == kind


TWO = """Two things are wrong.

```python
import json
json.loads("")
```

```
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
```

And

```python
import statistics
{second}
```

```
statistics.StatisticsError: mean requires at least one data point
```
"""


@pytest.mark.parametrize(
    ("second", "outcome"),
    [
        ("statistics.mean([])", "reproduced as well, in 2 of 2 runs"),
        ("statistics.mean([1])", "the reported exception did not occur"),
    ],
)
def test_each_complaint_of_a_report_has_a_line(decide, second, outcome):
    report = decide("", body=TWO.format(second=second), title="json and statistics")
    assert report.verdict.kind == "reproduced"
    rows = [row for row in report.comparison if row.what in {"failure", "also reported"}]
    assert [row.what for row in rows] == ["failure", "also reported"]
    assert outcome in {row.observed for row in rows}
