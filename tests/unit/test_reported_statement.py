"""The statement of an error about names is run alone, where nothing before it can decide it."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.reproduce import proofs_for
from bot.issues.search.reported_statement import (
    ALONE,
    points_at_names,
    run_alone,
    run_snippet_alone,
    takes_every_name,
)
from bot.issues.signature import freeze
from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.bug import Issue
from tests.support.jobs import issue_job

MAIN = """import sys
import no_such_package
from models.net import build
from helpers import *

sizes = [1, 2]


def main(path, *, depth=3):
    data = open(path).read()
    for row in data:
        import models.net as nets
        if depth:
            width = len(row)
            net = build(
                width,
                T=depth,
            )
            nets.missing(net)
            undefined_name(net, width)
    return main


if __name__ == "__main__":
    values = open("data.csv").read()
    size = len(values)
    for value in values:
        other = build(size, K=sizes[0])
    main(*sys.argv[1:])
"""
NET = """class Block:
    def __init__(self, width):
        self.width = width


def build(width, **words):
    return Block(width, **words)
"""
TREE = {
    "src/main.py": MAIN.encode(),
    "src/models/__init__.py": b"",
    "src/models/net.py": NET.encode(),
    "src/helpers.py": b"HELP = 1\n",
    "vit.py": b"class Rollout:\n    def __init__(self, model):\n        pass\n",
}


def report(error: str, *frames: tuple[str, int, str, str]) -> Issue:
    rows = [
        f'  File "{path}", line {line}, in {name}\n    {code}' for path, line, name, code in frames
    ]
    trace = "\n".join(["```", "Traceback (most recent call last):", *rows, error, "```"])
    return Issue(title="it fails", body=f"python src/main.py\n\n{trace}", repository="acme/nets")


def alone(issue: Issue) -> Script | None:
    bug = read_issue(issue)
    signature = freeze.freeze(bug)
    assert signature is not None
    programs = tree_programs.propose(tree_programs.commands(bug), TREE)
    return run_alone(bug, issue, signature, TREE, programs[0] if programs else None)


def last_lines(script: Script, folder: Path, tree: dict[str, bytes] = TREE) -> str:
    for path, text in {
        **{name: data.decode() for name, data in tree.items()},
        **script.files,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    done = subprocess.run(
        [sys.executable, *script.command], cwd=folder / script.folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    return done.stderr


UNEXPECTED = "TypeError: __init__() got an unexpected keyword argument 'K'"


@pytest.mark.parametrize(
    ("issue", "line", "message"),
    [
        (report(UNEXPECTED, ("src/main.py", 28, "<module>", "other = build(size, K=sizes[0])"),
                ("src/models/net.py", 7, "build", "return Block(width, **words)")),
         28, "got an unexpected keyword argument 'K'"),
        (report("TypeError: __init__() got an unexpected keyword argument 'T'",
                ("src/main.py", 15, "main", "net = build(")),
         15, "got an unexpected keyword argument 'T'"),
        (report("AttributeError: module 'models.net' has no attribute 'missing'",
                ("src/main.py", 29, "<module>", "main(*sys.argv[1:])"),
                ("src/main.py", 19, "main", "nets.missing(net)")),
         19, "module 'models.net' has no attribute 'missing'"),
        (report("NameError: name 'undefined_name' is not defined",
                ("src/main.py", 20, "main", "undefined_name(net, width)")),
         20, "name 'undefined_name' is not defined"),
    ],
)  # fmt: skip
def test_the_error_arises_on_its_line_without_what_runs_before(
    issue: Issue, line: int, message: str, tmp_path: Path
) -> None:
    script = alone(issue)
    assert script is not None
    assert script.fixes[-1].why == ALONE
    assert script.edited == ("src/main.py",)
    errors = last_lines(script, tmp_path)
    assert message in errors.splitlines()[-1]
    assert f'main.py", line {line}, in' in errors
    kept = script.files["src/main.py"].splitlines()
    assert kept[line - 1].strip() == MAIN.splitlines()[line - 1].strip()
    assert "no_such_package" not in script.files["src/main.py"]


def test_a_line_that_words_name_needs_no_program(tmp_path: Path) -> None:
    body = "NameError: name 'undefined_name' is not defined, on line 20 of `src/main.py`."
    script = alone(Issue(title="it fails", body=body, repository="acme/nets"))
    assert script is not None
    assert "name 'undefined_name' is not defined" in last_lines(script, tmp_path)


def test_a_name_or_a_function_alone_is_looked_for(tmp_path: Path) -> None:
    title = "name 'undefined_name' is not defined"
    script = alone(Issue(title=title, body="Please fix it.", repository="acme/nets"))
    assert script is not None
    assert title in last_lines(script, tmp_path)
    title = "missing() got an unexpected keyword argument 'net'"
    assert alone(Issue(title=title, body="Please fix it.", repository="acme/nets")) is None


def test_a_quoted_call_of_a_class_of_the_repository_is_made(tmp_path: Path) -> None:
    body = "`r = Rollout(net, head='max')` causes `TypeError: __init__() got an unexpected keyword argument 'head'`."
    issue = Issue(title="it fails", body=body, repository="acme/nets")
    script = alone(issue)
    assert script is not None
    assert script.command == ("reprise_statement.py",)
    assert "unexpected keyword argument 'head'" in last_lines(script, tmp_path)


@pytest.mark.parametrize(
    "issue",
    [
        # The name is bound somewhere, so that it depends on what ran.
        report("NameError: name 'width' is not defined", ("src/main.py", 20, "main", "undefined_name(net, width)")),
        # The keyword is not written in the call.
        report("TypeError: build() got an unexpected keyword argument 'Z'", ("src/main.py", 15, "main", "net = build(")),
        # What is called is a value of the run.
        report("TypeError: net() got an unexpected keyword argument 'T'", ("src/main.py", 19, "main", "nets.missing(net)")),
        report("AttributeError: 'Namespace' object has no attribute 'x'", ("src/main.py", 19, "main", "nets.missing(net)")),
        report("ValueError: bad", ("src/main.py", 19, "main", "nets.missing(net)")),
    ],
)  # fmt: skip
def test_an_error_that_may_depend_on_values_is_left_to_the_program(issue: Issue) -> None:
    assert alone(issue) is None


def test_only_an_error_about_names_with_a_place_points_at_one() -> None:
    rows = {
        "`f(x=1)` gives TypeError: f() got an unexpected keyword argument 'x'": True,
        "`f(x=1)` gives ValueError: bad value of x": False,
        "TypeError: f() got an unexpected keyword argument 'x'": False,
    }
    for body, points in rows.items():
        issue = Issue(title="it fails", body=body)
        bug = read_issue(issue)
        signature = freeze.freeze(bug)
        assert signature is not None
        assert points_at_names(bug, issue, signature) is points


TRAIN = """import argparse
import options
from helpers import describe

parser = argparse.ArgumentParser()
group = parser.add_argument_group("model")
group.add_argument("--model", default="small")
parser.add_argument("--size", type=int, default=options.SIZE)


def main(args):
    weights = open("weights.bin").read()
    with open("log.txt", "w") as log:
        if "large" in args.model:
            net = weights
        elif args.size > 9:
            net = log
        for _ in weights:
            late = weights
        print(net.size, late)
        print(describe(args))
    for epoch in weights:
        options.save(weights, "best.bin")
        options.save(net, args.model + "/epoch_" + str(epoch) + ".bin")


if __name__ == "__main__":
    args = parser.parse_args()
    main(args)
"""
DESCRIBE = """def describe(config):
    text = [str(config.model),
            config.seed]
    return text
"""
TRAINING = {
    "train.py": TRAIN.encode(),
    "options.py": b"SIZE = 3\ndef save(net, path):\n    open(path, 'wb').write(net)\n",
    "helpers.py": DESCRIBE.encode(),
    "other.py": b"def other(args):\n    return args.seed\n",
}
NO_SEED = "AttributeError: 'Namespace' object has no attribute 'seed'"
NO_FOLDER = "FileNotFoundError: [Errno 2] No such file or directory: 'small/epoch_3.bin'"
UNBOUND = "UnboundLocalError: local variable 'net' referenced before assignment"
PRINTS = ("train.py", 19, "main", "print(net.size, late)")


def training(error: str, *frames: tuple[str, int, str, str], options: str = "") -> Issue:
    issue = report(error, ("train.py", 28, "<module>", "main(args)"), *frames)
    body = issue.body.replace("src/main.py", f"train.py{options}", 1)
    return issue.model_copy(update={"body": body})


def alone_in(tree: dict[str, bytes], issue: Issue) -> Script | None:
    bug = read_issue(issue)
    signature = freeze.freeze(bug)
    assert signature is not None
    programs = tree_programs.propose(tree_programs.commands(bug), tree)
    return run_alone(bug, issue, signature, tree, programs[0] if programs else None)


@pytest.mark.parametrize(
    ("issue", "path", "words"),
    [
        (training(NO_SEED, ("helpers.py", 3, "describe", "config.seed]")), "helpers.py", "no attribute 'seed'"),
        (Issue(title=NO_SEED, body="I run `python train.py`."), "helpers.py", "no attribute 'seed'"),
        (Issue(title=NO_FOLDER, body="I run `python train.py`."), "train.py", 'small/epoch_'),
        (training(UNBOUND, PRINTS), "train.py", "local variable 'net'"),
        (training(UNBOUND, PRINTS, options=" --model tiny"), "train.py", "local variable 'net'"),
    ],
)  # fmt: skip
def test_what_the_command_line_decides_is_made_of_the_command_line(
    issue: Issue, path: str, words: str, tmp_path: Path
) -> None:
    script = alone_in(TRAINING, issue)
    assert script is not None
    assert path in script.edited
    assert words in last_lines(script, tmp_path, TRAINING)


@pytest.mark.parametrize("options", [" --model larger", " --size 10"])
def test_a_command_line_that_gives_a_value_does_not_fail(options: str, tmp_path: Path) -> None:
    script = alone_in(TRAINING, training(UNBOUND, PRINTS, options=options))
    assert script is not None
    assert "Error" not in last_lines(script, tmp_path, TRAINING)


@pytest.mark.parametrize(
    ("change", "issue"),
    [
        # The program may give its arguments what they lack.
        ({"options.py": b"def fill(args):\n    args.seed = 1\n"}, training(NO_SEED)),
        ({"options.py": b"def fill(args, k):\n    setattr(args, k, 1)\n"}, training(NO_SEED)),
        # It parses them, and then takes others.
        ({"train.py": TRAIN.replace("    main(args)", "    args = options.load(args)\n    main(args)").encode()}, training(NO_SEED)),
        # The statement asks other arguments.
        ({"helpers.py": b"def describe(config):\n    saved = open(config).read()\n    return saved.seed\n"}, training(NO_SEED)),
        ({"helpers.py": b"from options import load\nargs = load()\ndef describe(_):\n    return args.seed\n"}, training(NO_SEED)),
        # The reporter names the folder.
        ({}, training(NO_FOLDER, options=" --model ./small")),
        ({}, training(NO_FOLDER.replace("small", "."))),
        # The folder is there, or the program makes it, or the file is read.
        ({"small/note.txt": b""}, training(NO_FOLDER)),
        ({"options.py": b"import os\ndef make(path):\n    os.makedirs(path)\n"}, training(NO_FOLDER)),
        ({"train.py": TRAIN.replace("options.save", "options.load").encode()}, training(NO_FOLDER)),
        # Data decide whether the loop has a round.
        ({}, training(UNBOUND.replace("net", "late"), PRINTS)),
        # Files decide the branch, or nothing does.
        ({"train.py": TRAIN.replace("args.size > 9", "weights").encode()}, training(UNBOUND, PRINTS)),
        ({"train.py": TRAIN.replace("elif args.size > 9", "else").encode()}, training(UNBOUND.replace("net", "log"), PRINTS)),
        # The program parses no command line.
        ({"train.py": TRAIN.replace("parser.parse_args()", "load()").encode()}, training(NO_SEED)),
    ],
)  # fmt: skip
def test_what_more_than_the_command_line_decides_is_left_to_the_program(
    change: dict[str, bytes], issue: Issue
) -> None:
    assert alone_in({**TRAINING, **change}, issue) is None


CALLS = b"""import numpy as np

def fit(net, rounds, *, rate=np.pi, **words):
    return np.zeros(net) * rounds

def again(net):
    return fit(net, 1)

if __name__ == "__main__":
    net = open("net")
    fit(net, rate=1)
"""


def test_of_several_calls_the_one_that_cannot_be_bound_is_made(tmp_path: Path) -> None:
    title = "TypeError: fit() missing 1 required positional argument: 'rounds'"
    script = alone_in({"main.py": CALLS}, Issue(title=title, body="I run `python main.py`."))
    assert script is not None
    assert "ran line 11 of" in script.fixes[-1].what
    assert last_lines(script, tmp_path, {"main.py": CALLS}).splitlines()[-1] == title
    # What only the body of the function needs is not imported.
    bare = {"main.py": CALLS.replace(b"rate=np.pi", b"rate=1")}
    script = alone_in(bare, Issue(title=title, body="I run `python main.py`."))
    assert script is not None
    assert "numpy" not in script.source
    whole = {"main.py": CALLS.replace(b", rate=1)", b", 1)")}
    assert alone_in(whole, Issue(title=title, body="I run `python main.py`.")) is None


OBJECTS = {
    "main.py": b"from parts.net import Net\n\ndef run(path):\n    net = open(path)\n    state = {'best': net.best_loss,\n"
    b"             'own': self.net.best_loss}\n",
    "parts/__init__.py": b"",
    "parts/net.py": b"import collections\n\nclass Net(collections.UserDict):\n    def __init__(self, path):\n"
    b"        self.data = open(path)\n\n    def best(self):\n        return self.best_loss\n\n"
    b"def show(net):\n    print(net.best_loss)\n",
}
NO_MEMBER = "AttributeError: 'Net' object has no attribute 'best_loss'"


def objects(*frame: object) -> Issue:
    issue = report(NO_MEMBER, frame)  # type: ignore[arg-type]
    return issue.model_copy(update={"body": issue.body.replace("src/main.py", "main.py", 1)})


@pytest.mark.parametrize(
    ("path", "frame"),
    [
        ("main.py", ("main.py", 5, "run", "state = {'best': net.best_loss,")),
        ("parts/net.py", ("parts/net.py", 8, "best", "return self.best_loss")),
        ("parts/net.py", ("parts/net.py", 11, "show", "print(net.best_loss)")),
    ],
)
def test_what_no_object_of_a_class_can_have_is_asked_of_an_empty_one(
    path: str, frame: tuple[object, ...], tmp_path: Path
) -> None:
    script = alone_in(OBJECTS, objects(*frame))
    assert script is not None
    assert path in script.edited
    last = last_lines(script, tmp_path, OBJECTS).splitlines()[-1]
    assert last.startswith(NO_MEMBER)


@pytest.mark.parametrize(
    "change",
    [
        {"other.py": b"def fill(net):\n    net.best_loss = 1\n"},
        {"other.py": b"NAMES = ['best_loss']\n"},
        {"other.py": b"class Base:\n    best_loss = 1\n"},
        {"other.py": b"class Base:\n    def best_loss(self): ...\n"},
        {"other.py": b"class Net: ...\n"},
        {"parts/net.py": OBJECTS["parts/net.py"] + b"    setattr(net, input(), 1)\n"},
        {"parts/net.py": b"from other import Net\n"},
    ],
)
def test_what_some_object_may_have_is_left_to_the_program(change: dict[str, bytes]) -> None:
    frame = ("main.py", 5, "run", "state = {'best': net.best_loss,")
    assert alone_in(OBJECTS, objects(*frame)) is not None
    assert alone_in({**OBJECTS, **change}, objects(*frame)) is None


def test_what_a_star_import_would_give_is_not_known() -> None:
    frame = ("src/main.py", 20, "main", "undefined_name(net, width)")
    script = alone(report("NameError: name 'undefined_name' is not defined", frame))
    assert script is not None
    assert takes_every_name(script, "helpers")
    assert not takes_every_name(script, "help")
    assert not takes_every_name(script.model_copy(update={"fixes": ()}), "helpers")


def test_no_other_commit_is_tried_with_a_statement_of_this_one() -> None:
    frame = ("src/main.py", 20, "main", "undefined_name(net, width)")
    issue = report("NameError: name 'undefined_name' is not defined", frame)
    script, bug = alone(issue), read_issue(issue)
    signature = freeze.freeze(bug)
    assert script is not None
    assert signature is not None
    job = issue_job(issue)
    assert proofs_for(job, bug, signature, script) == ("minimize",)
    whole = script.model_copy(update={"fixes": ()})
    assert proofs_for(job, bug, signature, whole) == ("bisect", "minimize")


@pytest.mark.parametrize(("end", "runs"), [("", True), ("lost = 1\n", False)])
def test_a_hostile_file_takes_no_long_time(end: str, runs: bool) -> None:
    """Many definitions that need one another, and the reported line as often: the first of them is
    run, or none of them can be.
    """
    count = 3_000
    names = [f"f{at}" for at in range(count)]
    chain = "".join(f"def {one}():\n    return {other}()\n" for one, other in pairwise(names))
    lines = "        lost(f0(), row)\n" * count
    source = f"{chain}def main(rows):\n    for row in rows:\n{lines}{end}"
    issue = Issue(
        title="It fails",
        body="```\nTraceback (most recent call last):\n"
        '  File "main.py", line 9000, in main\n    lost(f0(), row)\n'
        "NameError: name 'lost' is not defined\n```",
    )
    bug = read_issue(issue)
    signature = freeze.freeze(bug)
    assert signature is not None
    started = process_time()
    script = run_alone(bug, issue, signature, {"main.py": source.encode()}, None)
    assert (script is not None) is runs
    assert process_time() - started < 10


def _snippet(source, error, code=""):
    frame = f'  File "a.py", line 3, in <module>\n    {code}\n' if code else ""
    body = f"```\nTraceback (most recent call last):\n{frame}{error}\n```\n"
    bug = read_issue(Issue(title="x", body=body, repository="acme/nets"))
    program = Script(files={"repro.py": source})
    return run_snippet_alone(bug, freeze.freeze(bug), program)


READS = "import librosa\ny, sr = librosa.load('a.mp3')\ny = librosa.resample(y, sr, 8)\n"


@pytest.mark.parametrize(
    ("source", "error", "code", "last", "lacks"),
    [
        (
            READS,
            "TypeError: resample() takes 1 positional argument but 3 were given",
            "",
            None,
            "a.mp3",
        ),
        (
            READS,
            "TypeError: resample() takes 1 positional argument but 2 were given",
            "y = librosa.resample(sr, 8)",
            "y = librosa.resample(sr, 8)",
            "a.mp3",
        ),
        (
            "import networkx as nx\npos = nx.no_layout(G)\nprint(pos)\n",
            "AttributeError: module 'networkx' has no attribute 'no_layout'",
            "",
            "pos = nx.no_layout(G)",
            "print",
        ),
    ],
)
def test_the_statement_of_a_snippet_is_run_with_stand_ins(source, error, code, last, lacks):
    alone = _snippet(source, error, code)
    assert alone is not None
    assert alone.source.rstrip().split("\n")[-1] == (last or "y = librosa.resample(y, sr, 8)")
    assert "MagicMock" in alone.source
    assert lacks not in alone.source
    assert alone.fixes[-1].why == ALONE


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (READS, "ValueError: sr must be positive"),
        (READS, "TypeError: other() takes 1 positional argument but 3 were given"),
        (
            "import lib\nnet = lib.Net(3)\nnet.fit(x, y)\n",
            "TypeError: fit() takes 1 positional argument but 3 were given",
        ),
        (
            "import torch\ntorch.save(net, 'out/net.pt')\n",
            "FileNotFoundError: [Errno 2] No such file or directory: 'out/net.pt'",
        ),
    ],
)
def test_a_statement_of_a_snippet_is_not_run_alone_where_values_decide(source, error):
    assert _snippet(source, error) is None
