"""A command that fails in a repository, down to one file that fails in the same way without it."""

import time
from threading import Event

import pytest

from bot.issues.proof.proofs import resume_proof
from bot.kernel.bug import Issue
from bot.kernel.environment import Environment
from bot.kernel.ports import Ports
from bot.products.engine import execute
from bot.report.comment import comment
from bot.report.report_json import published
from bot.report.terminal import terminal
from sandbox.process import ProcessSandbox
from tests.support.fakes import FakeBuilder, ListListener, MemoryJournal
from tests.support.jobs import issue_job

TRAIN = '''"""Trains a model."""
from __future__ import annotations

import argparse
import json
import os

from lib import Model
from lib.data import load, rows as read_rows
import lib.report as report


def parse():
    parser = argparse.ArgumentParser(description="train")
    parser.add_argument("data")
    parser.add_argument("--width", type=int, default=4, help="of the layer")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--config", default="config.json")
    return parser.parse_args()


def schedule(lr, step):
    if step > 100:
        return lr / 10
    return lr


def main():
    args = parse()
    with open(args.config) as file:
        config = json.load(file)
    model = Model(args.width, config["depth"])
    report.start(args.verbose)
    for step, row in enumerate(load(args.data)):
        rate = schedule(args.lr, step)
        model.update(row, rate)


if __name__ == "__main__":
    main()
'''
FILES = {
    "tools/train.py": TRAIN,
    "tools/config.json": '{"depth": 3, "names": ["a", "b"], "unused": {"x": 1}}\n',
    "tools/data.csv": "1,2,3\n4,5,6\n7,8,9\n",
    "tools/lib/__init__.py": 'from .model import Model\nfrom .other import unused\n\n__all__ = ["Model"]\n',
    "tools/lib/model.py": '''from . import report
from .layers.dense import Dense as Layer, check


class Model:
    """A model."""

    def __init__(self, width, depth):
        self.layers = [Layer(width) for _ in range(depth)]
        self.total = 0

    def save(self, path):
        with open(path, "w") as file:
            file.write(str(self.total))

    def update(self, row, rate):
        report.log(row)
        for layer in self.layers:
            check(layer, row)
            self.total += rate * layer.apply(row)
''',
    "tools/lib/layers/__init__.py": "",
    "tools/lib/layers/dense.py": '''import statistics


class Dense:
    def __init__(self, width):
        self.width = width

    def apply(self, row):
        names = [str(cell) for cell in row]
        spread = statistics.stdev(row[: self.width])
        return spread * len(names)


def check(layer, row):
    """Whether a row fits."""
    size = len(row)
    label = f"{size} cells"
    if layer.width > 2 * size:
        raise ValueError(f"a layer of width {layer.width} cannot read {label} of a row")
    return label
''',
    "tools/lib/other.py": "def unused():\n    return 1\n",
    "tools/lib/report.py": "LINES = []\n\n\ndef start(verbose):\n    LINES.append(verbose)\n\n\ndef log(row):\n    LINES.append(row)\n",
    "tools/lib/data.py": '''import csv


def load(path):
    with open(path) as file:
        for row in csv.reader(file):
            yield [float(cell) for cell in row]


def rows(path):
    return sum(1 for _ in load(path))
''',
    "scripts/json.py": "raise SystemExit(7)",
    "tools/.reprise/sitecustomize.py": "raise SystemExit(8)",
}  # fmt: skip
RAISES = """Traceback (most recent call last):
  File "/home/me/repo/tools/train.py", line 50, in <module>
    main()
  File "/home/me/repo/tools/train.py", line 45, in main
    model.update(row, rate)
  File "/home/me/repo/tools/lib/model.py", line 19, in update
    check(layer, row)
  File "/home/me/repo/tools/lib/layers/dense.py", line 18, in check
    raise ValueError(f"a layer of width {layer.width} cannot read {label} of a row")
ValueError: a layer of width 7 cannot read 3 cells of a row"""
REACHES = """Traceback (most recent call last):
  File "/home/me/repo/tools/train.py", line 50, in <module>
    main()
  File "/usr/lib/python3.11/statistics.py", line 900, in stdev
    raise StatisticsError('stdev requires at least two data points')
statistics.StatisticsError: variance requires at least two data points"""


@pytest.fixture
def tree(tmp_path):
    return _tree(tmp_path / "tree", FILES)


def _tree(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def ports_of(home, tree):
    here = Environment(
        id="here",
        python="3",
        interpreter=f"{home}/bin/python",
        mounts=(str(home), str(tree)),
        variables={"LD_LIBRARY_PATH": f"{home}/lib", "PYTHONPATH": f"{tree}:{tree}/src"},
        commit="a" * 40,
        tree=str(tree),
    )
    return Ports(
        sandbox=ProcessSandbox(),
        builder=FakeBuilder(on_build=lambda _: here),
        journal=MemoryJournal(),
        clock=time.monotonic,
        listener=ListListener(),
        cancel=Event(),
    )


def of_command(home, tree, command, shown, **options):
    body = f"```\n{command}\n```\n\n```\n{shown}\n```\n"
    issue = Issue(title="It fails", body=body, repository="acme/repo")
    return execute(issue_job(issue, timeout_s=30, repo=str(tree), **options), ports_of(home, tree))


COMMAND = "cd tools\npython train.py data.csv --lr 0.5 --width 7 --verbose"


def same_failure(report, words):
    """The small script's own runs show what the command's did, without the tree."""
    last = [row for row in report.attempts if row.script == report.script.digest]
    assert last
    assert all(row.judgement.match == "matched" for row in last)
    assert words in last[-1].judgement.failure.message
    assert report.reduced.confirmed


def test_what_the_repository_raises_stands_in_one_file_with_its_own_lines(interpreter, tree):
    report = of_command(interpreter, tree, COMMAND, RAISES)
    script, source = report.script, report.script.source
    assert report.verdict.kind == "reproduced"
    assert not report.verdict.doubt
    assert (list(script.files), script.command) == (["repro.py"], ())
    assert report.reduced.lines_after <= 12 < report.reduced.lines_before
    assert report.reduced.before.command[:2] == ("train.py", "data.csv")
    assert "import lib" not in source
    assert "from lib" not in source
    assert "--lr" not in source
    assert "if layer.width > 2 * size:" in source
    assert (
        'raise ValueError(f"a layer of width {layer.width} cannot read {label} of a row")' in source
    )
    same_failure(report, "cannot read")
    for text in (terminal(report, width=160), comment(report)):
        assert "python train.py data.csv --lr 0.5 --width 7 --verbose" in text
        assert (
            f"{report.reduced.lines_before} lines that ran \u2192 {report.reduced.lines_after}"
            in text
        )
        assert "copied from" in text
        assert "lib/layers/dense.py" in text
    assert report.command.endswith("python repro.py")
    minimized = published(report).minimized
    assert (minimized.lines_before, minimized.lines_after) == (
        report.reduced.lines_before,
        report.reduced.lines_after,
    )
    assert not report.command_needs


def test_a_failure_in_a_library_needs_no_code_of_the_repository(interpreter, tree):
    site = next(interpreter.glob("lib/python3*")) / "site-packages"
    library = _tree(site, {"tinylib/__init__.py": LIBRARY}) / "tinylib/__init__.py"
    dense = tree / "tools/lib/layers/dense.py"
    dense.write_text(dense.read_text().replace("statistics.stdev", "tinylib.spread").replace("import statistics", "import tinylib"))  # fmt: skip
    shown = f"""Traceback (most recent call last):
  File "/home/me/repo/tools/lib/layers/dense.py", line 10, in apply
    spread = tinylib.spread(row[: self.width])
  File "{library}", line 3, in spread
    raise ValueError(f"spread needs two values, got {{len(values)}}")
ValueError: spread needs two values, got 1"""
    report = of_command(interpreter, tree, COMMAND.replace("7", "1"), shown)
    assert report.verdict.kind == "reproduced"
    assert report.script.fault_code is None
    assert report.reduced.lines_after <= 4
    assert "class" not in report.script.source
    same_failure(report, "spread needs two values")


LIBRARY = """def spread(values):
    if len(values) < 2:
        raise ValueError(f"spread needs two values, got {len(values)}")
    return max(values) - min(values)
"""


@pytest.mark.parametrize("name", ["calendar", "batch_child", "repro"])
def test_a_module_may_be_called_like_one_of_python_or_of_ours(interpreter, tmp_path, name):
    shown = f"""Traceback (most recent call last):
  File "/home/me/repo/{name}.py", line 3, in draw
    raise KeyError(f"no {{count}}")
KeyError: 'no 3'"""
    module = 'def draw(count):\n    if count > 2:\n        raise KeyError(f"no {count}")\n    return count\n'
    files = {
        "train.py": f"import {name}\nprint({name}.draw(3))\n",
        f"{name}.py": module,
        "unused.py": "",
    }
    report = of_command(interpreter, _tree(tmp_path / "tree", files), "python train.py", shown)
    assert report.verdict.kind == "reproduced"
    assert not report.script.command
    assert report.reduced.lines_after <= 6


def test_a_program_that_needs_its_tree_keeps_its_command_with_fewer_words(interpreter, tmp_path):
    shown = """Traceback (most recent call last):
  File "/home/me/repo/train.py", line 4, in <module>
    raise ValueError(f"{len(data)} bytes")
ValueError: 3 bytes"""
    text = "import sys\nwith open('weights.bin', 'rb') as file:\n    data = file.read()\nif len(data) % 2: raise ValueError(f\"{len(data)} bytes\")\n"
    tree = _tree(tmp_path / "tree", {"train.py": text})
    (tree / "weights.bin").write_bytes(b"\xff\xfe\xfd")
    report = of_command(interpreter, tree, "python train.py --fast --lr 1", shown)
    assert report.verdict.kind == "reproduced"
    assert report.script.command == ("train.py",)
    assert report.reduced.before.command == ("train.py", "--fast", "--lr", "1")
    assert "python train.py" in terminal(report, width=160)
    assert "no script was found that fails in the same way without the repository" in str(
        report.notes
    )


@pytest.mark.nightly  # `test_proving` continues finished runs by commands
def test_a_finished_run_is_made_smaller_later(interpreter, tree):
    report = of_command(interpreter, tree, COMMAND, RAISES, without=("minimize",))
    assert report.reduced is None
    assert report.script.command
    job = issue_job(report.issue, timeout_s=30, repo=str(tree))
    later = resume_proof(report, job, ports_of(interpreter, tree), "minimize")
    assert later.reduced.before == report.script
    assert later.reduced.lines_after <= 12


LEARNS = {
    "train.py": '''"""Trains a model."""
import argparse
import json

from lib.model import Model, seeds as first_seed
from lib.data import load


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.json")
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    with open(args.config) as file:
        config = json.load(file)
    model = Model(config["rate"], first_seed())
    for epoch in range(args.epochs):
        model.update(load())
        print(f"epoch {epoch} test accuracy: {model.accuracy(load()):.3f}")


if __name__ == "__main__":
    main()
''',
    "config.json": '{"rate": 0.0}\n',
    "lib/__init__.py": "",
    "lib/data.py": "def load():\n    return [(x, 3.0 * x) for x in range(1, 9)]\n",
    "lib/model.py": '''import random


def seeds():
    return random.random()


def unused():
    return 1


class Model:
    """One weight."""

    def __init__(self, rate, start):
        self.rate, self.weight = rate, start

    def update(self, rows):
        for x, y in rows:
            self.weight -= self.rate * (self.weight * x - y) / x

    def accuracy(self, rows):
        near = [abs(self.weight * x - y) < 0.5 * x for x, y in rows]
        return sum(near) / len(near)
''',
}
LEARNS_TOO_LITTLE = """The README says 97 % test accuracy, I get 0 % with

```
python train.py --epochs 4
```
"""


def of_training(home, tree):
    issue = Issue(title="Accuracy stays at 0 %", body=LEARNS_TOO_LITTLE, repository="acme/repo")
    return execute(issue_job(issue, timeout_s=30, repo=str(tree)), ports_of(home, tree))


def test_a_training_that_learns_too_little_is_merged_and_loses_nothing_that_ran(
    interpreter, tmp_path
):
    report = of_training(interpreter, _tree(tmp_path / "tree", LEARNS))
    source = report.script.source
    assert report.verdict.kind == "reproduced"
    assert sorted(report.script.files) == ["config.json", "repro.py"]
    assert "from lib" not in source
    assert "first_seed = seeds" in source
    assert "self.weight -= self.rate" in source
    assert "return 1" not in source
    assert "--epochs" in source
    last = [row for row in report.attempts if row.script == report.script.digest]
    assert [row.judgement.value for row in last] == [0.0, 0.0]


def test_modules_with_names_in_common_stay_apart(interpreter, tmp_path):
    load = "def load():\n    return [(x, 3.0 * x) for x in range(1, 9)]\n\n\ndef main():\n    return 1\n\n\nVALUES = main()\n"
    report = of_training(interpreter, _tree(tmp_path / "tree", LEARNS | {"lib/data.py": load}))
    assert report.verdict.kind == "reproduced"
    assert "lib/data.py" in report.script.files
    assert report.reduced.confirmed
