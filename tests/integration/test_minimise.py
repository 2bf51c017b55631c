"""The minimiser on real processes: what it ends with, what it never ends with, and what a kill
leaves.
"""

import random
import tempfile
import time
from pathlib import Path

import pytest

from benchmarks.minimise import environment as torch_environment
from bot.environment.builder import UvBuilder
from bot.issues.proof import minimise as proof_minimise
from bot.issues.proof.minimise import confirmed_identity, minimise, oracle_of
from bot.issues.reading import issue
from bot.issues.reduce.edits import size
from bot.issues.reduce.failure_identity import difference
from bot.issues.runner import judging
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature, Issue, NonFiniteSignature, OutputSignature
from bot.kernel.environment import Environment
from bot.kernel.ports import Ports
from bot.kernel.session import Session
from bot.kernel.settings import load
from sandbox.process import ProcessSandbox
from tests.support.fakes import FakeBuilder, ListListener, MemoryJournal
from tests.support.jobs import issue_job

HERE = Environment(id="here", python="3.11", interpreter="/usr/bin/python3")
INDEX = CrashSignature(exception="IndexError", message="list index out of range")
DEEP = '''"""Choose a column."""
import json
import math

SETTINGS = {"columns": 4, "shift": 3}


class Table:
    def __init__(self, rows):
        self.rows = rows

    def column(self, number):
        # the failure
        return [row[number + 3] for row in self.rows]


def build(count):
    rows = [[i * j for j in range(SETTINGS["columns"])] for i in range(count)]
    first = rows[0]
    print(json.dumps(first))
    return Table(rows)


def main():
    table = build(5)
    total = 0
    for number in range(3):
        total += math.fsum(table.column(number))
    print(total)


main()
'''


def confirmed(source, signature, runs=2, files=None, here=HERE):
    """A runner on which the confirming runs were made, the script, what they showed, and the
    seeds.
    """
    ports = Ports(
        sandbox=ProcessSandbox(),
        builder=FakeBuilder(),
        journal=MemoryJournal(),
        clock=time.monotonic,
        listener=ListListener(),
    )
    job = issue_job(Issue(title="t", body="b"), timeout_s=30)
    runner = judging(Session.begin(job, ports), issue.read_issue(job.issue), signature)
    script = Script(files={"repro.py": source, **(files or {})})
    for seed in range(1, runs + 1):
        runner.run(script, here, seed, "confirm")
    found = confirmed_identity(runner, script, here)
    assert found is not None
    return runner, script, found[0], found[1]


def test_a_failure_deep_inside_is_made_small_and_stays_the_statement_that_failed():
    runner, script, held, seeds = confirmed(DEEP, INDEX)
    done = minimise(runner, script, HERE, held, seeds=seeds, max_tests=1500)
    assert done.ended == "complete"
    assert done.mode == "fork"
    assert done.lines_after <= 9
    assert (
        "for row in self.rows]" in done.script.source
    )  # an index into another list would say the same words
    assert done.confirmed
    assert runner.attempts[-1].script == done.script.digest
    assert [step.lines for step in done.history] == sorted(
        (step.lines for step in done.history), reverse=True
    )


def test_a_stop_half_way_gives_what_was_confirmed_last_and_says_that_it_was_not_tested_again():
    runner, script, held, seeds = confirmed(DEEP, INDEX)

    def passes(_):
        runner.ports.cancel.set()
        return True

    done = minimise(runner, script, HERE, held, seeds=seeds, control=passes, max_tests=1500)
    assert done.ended == "stopped"
    assert 0 < done.lines_after < done.lines_before
    assert not done.confirmed


@pytest.mark.parametrize("each_s", [pytest.param(0.3, marks=pytest.mark.nightly), 1.5])
def test_the_time_limit_holds_and_leaves_room_for_the_last_test(each_s):
    source = f"import time\ntime.sleep({each_s})\n" + "".join(
        f"name_{at} = {at}\nprint(name_{at})\n" for at in range(300)
    )
    runner, script, held, seeds = confirmed(source + "rows = []\nrows[4]\n", INDEX)
    began, seconds = time.monotonic(), 18.0
    with runner.proving("minimize", seconds) as limited:
        done = minimise(
            limited, script, HERE, held, seeds=seeds, max_tests=5000, seconds=0.9 * seconds
        )
    assert time.monotonic() - began < seconds + 2.4
    assert done.confirmed
    assert done.lines_after < done.lines_before


def test_a_limit_of_tests_holds_and_the_result_is_confirmed():
    runner, script, held, seeds = confirmed(DEEP, INDEX)
    done = minimise(runner, script, HERE, held, seeds=seeds, max_tests=20)
    assert done.ended == "tests"
    assert done.tests <= 22
    assert oracle_of(runner, HERE, held).test.shows(
        runner.run(done.script, HERE, 5, "repeat").judgement, done.script
    )


def test_a_program_of_several_files_becomes_one():
    files = {
        "lib.py": "import helper\n\ndef pick(rows):\n    return rows[helper.at()]\n",
        "helper.py": "def at():\n    return 7\n",
    }
    runner, script, held, seeds = confirmed(
        "from lib import pick\n\nrows = [1, 2]\nprint(pick(rows))\n", INDEX, files=files
    )
    done = minimise(runner, script, HERE, held, seeds=seeds, max_tests=800)
    assert list(done.script.files) == ["repro.py"]
    assert done.lines_after <= 4


def test_the_control_must_still_pass_and_takes_back_what_broke_it():
    runner, script, held, seeds = confirmed(DEEP, INDEX)
    done = minimise(
        runner,
        script,
        HERE,
        held,
        seeds=seeds,
        control=lambda each: "SETTINGS" in each.source,
        max_tests=1500,
    )
    assert "SETTINGS" in done.script.source
    assert done.lines_after < done.lines_before


def test_a_failure_that_no_forked_child_shows_is_reduced_in_processes_of_their_own():
    source = (
        "import sys\n"
        "rows = []\n"
        "unused = 3\n"
        "print(unused)\n"
        "if sys.orig_argv[-1] == 'repro.py':\n"
        "    rows[4]\n"
    )
    runner, script, held, seeds = confirmed(source, INDEX)
    done = minimise(runner, script, HERE, held, seeds=seeds, max_tests=150)
    assert done.mode == "fresh"
    assert done.lines_after <= 3


def test_a_failure_that_is_not_seen_again_leaves_the_program_as_it_was():
    runner, _, held, _ = confirmed("[][1]\n", INDEX)
    other = Script(files={"repro.py": "print(1)\n"})
    done = minimise(runner, other, HERE, held)
    assert done.ended == "unseen"
    assert done.script == other


def test_a_candidate_that_ends_the_server_takes_no_other_with_it():
    runner, script, held, seeds = confirmed("x = 1\n[][1]\n", INDEX)
    killer = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n[][1]\n"
    texts = [
        "[][1]\n",
        killer,
        "print(1)\n",
        "y = 2\n[][1]\n",
        "[][1]  # last\n",
        "while True:\n    pass\n",
    ]
    with oracle_of(runner, HERE, held, seeds) as oracle:
        assert oracle.settle(script)
        oracle.runner.limit_s = 1.0
        met = oracle.fails([Script(files={"repro.py": text}) for text in texts])
    assert [met[place] for place in (0, 2, 3, 4, 5)] == [True, False, True, True, False]


def test_a_candidate_without_end_is_ended_by_the_work_it_does_and_one_that_waits_is_not():
    """On a busy machine a wall clock runs for everybody, a processor clock for those who work."""
    runner, script, held, seeds = confirmed("x = 1\n[][1]\n", INDEX)
    wait = "import time\ntime.sleep(1.5)\n[][1]\n"
    with oracle_of(runner, HERE, held, seeds) as oracle:
        assert oracle.settle(script)
        assert oracle.runner.limit_cpu_s < 1.2
        oracle.runner.limit_s = 60.0
        began = time.monotonic()
        assert oracle.fails(
            [Script(files={"repro.py": text}) for text in ("while True:\n    pass\n", wait)]
        ) == [False, True]
    assert time.monotonic() - began < 20


def test_a_new_server_gives_the_first_program_the_time_to_import_what_the_old_one_had():
    """Seen with torch.optim: the look at a smaller program was cut off at the limit of the
    larger one, and every later program imported a second's worth of modules by itself.
    """
    lead = "try:\n    import other\nexcept ImportError:\n    pass\n"
    rest = "import time\ntime.sleep(1)\nimport colorsys\n[][1]\n"
    runner, script, held, seeds = confirmed(lead + rest, INDEX)
    with oracle_of(runner, HERE, held, seeds) as oracle:
        assert oracle.settle(script)
        oracle.runner.limit_s = 0.5
        oracle.refresh(Script(files={"repro.py": rest}))
        assert "colorsys" in oracle.runner.late_imports


def test_a_program_that_fails_under_one_seed_alone_is_told_apart():
    chance = "import random\nrows = [0] * 5\nprint(rows[random.randrange(10)])\n"
    fails, passes = (
        next(s for s in range(99) if (random.Random(s).randrange(10) > 4) is bad)
        for bad in (True, False)
    )
    runner, script, held, _ = confirmed("rows = [0] * 5\nprint(rows[5])\n", INDEX)
    held = held.model_copy(update={"statement": ("print", "rows", "random", "randrange", "10")})
    other = Script(files={"repro.py": chance})
    with oracle_of(runner, HERE, held, (fails, passes)) as oracle:
        oracle.runner.base = script
        assert oracle.fails([other]) == [True]
        oracle.use_several_seeds()
        assert oracle.fails([other]) == [False]


@pytest.mark.parametrize(
    ("failures", "runs", "said"),
    [(0, 12, "passes"), (12, 12, "passes"), (6, 20, "fails"), (1, 1, "undecided")],
)
def test_a_failure_that_comes_and_goes_must_come_about_as_often(failures, runs, said):
    runner, _, held, _ = confirmed("[][1]\n", INDEX)
    assert (
        oracle_of(runner, HERE, held.model_copy(update={"rate": 0.3})).test.decide(failures, runs)
        == said
    )


def test_printed_values_stay_those_that_the_program_computed():
    source = (
        "import math\n"
        "scale = 4\n"
        "noise = [i for i in range(9)]\n"
        "print('values', noise[0])\n"
        "loss = math.sqrt(scale)\n"
        "print('loss', loss)\n"
    )
    runner, script, held, seeds = confirmed(source, OutputSignature(observed=(("loss 2.0",),)))
    done = minimise(runner, script, HERE, held, seeds=seeds, max_tests=400)
    assert done.ended == "complete"
    assert "math.sqrt(" in done.script.source
    assert done.lines_after <= 3


@pytest.mark.nightly  # each try takes several runs
def test_a_failure_in_three_of_ten_runs_ends_right():
    source = (
        "import os\n"
        "rows = list(range(180))\n"
        "name = 'run'\n"
        "print(name)\n"
        "extra = {}\n"
        "extra['at'] = rows[os.urandom(1)[0]]\n"
        "print(extra)\n"
    )
    runner, script, held, _ = confirmed(source, INDEX, runs=12)
    held = held.model_copy(update={"rate": 0.3})
    done = minimise(runner, script, HERE, held, max_tests=120, seconds=120)
    assert "urandom" in done.script.source
    assert done.lines_after <= 5


def test_where_the_end_result_does_not_hold_the_one_before_it_does(monkeypatch):
    """What is confirmed by a run or two may still not stand the sequential test at the end."""
    runner, script, held, seeds = confirmed(
        "rows = [0] * 400\nprint(1)\nprint(rows[500 + len(rows)])\n", INDEX
    )
    fails, asked = proof_minimise.Minimisation._fails, []

    def doubted(work, each, *, final=False):
        if final:
            asked.append(each)
        return fails(work, each, final=final) and not (final and each is asked[0])

    monkeypatch.setattr(proof_minimise.Minimisation, "_fails", doubted)
    done = minimise(runner, script, HERE, held, seeds=seeds)
    assert len(asked) == 2
    assert done.ended == "complete"
    assert done.script == asked[1] != asked[0]
    assert size(asked[0].files) < size(done.script.files) < size(script.files)


def test_the_last_test_counts_the_run_that_a_program_was_taken_by():
    runner, script, held, seeds = confirmed("x = 1\n[][1]\n", INDEX)
    done = minimise(runner, script, HERE, held, seeds=seeds)
    rows = [
        row
        for row in runner.attempts
        if row.purpose == "minimize" and row.script == done.script.digest
    ]
    assert len({row.execution.seed for row in rows}) == len(rows) > 1


LIBRARY = """
def mix(a, b):
    if len(a) != len(b):
        raise ValueError(f"shapes ({len(a)},2) and ({len(b)},2) do not fit")
    return [x + y for x, y in zip(a, b)]


def join(a, b):
    if len(a) != len(b):
        raise ValueError(f"shapes ({len(a)},2) and ({len(b)},2) do not fit")
    return a + b


def rows(count):
    return [(at, at) for at in range(count)]
"""
MIXED = """
from tiny import join, mix, rows

flag = True
first, second = rows(3), rows(7)
print(len(first), len(second))
if not flag:
    join(first, second)
if flag:
    more = rows(2)
    print(mix(more, rows(2)))
print(mix(first, second))
print(mix(first, rows(8)))
"""
UNFIT = CrashSignature(exception="ValueError", message="do not fit")


@pytest.fixture
def tiny():
    """An environment with a library of other people in it."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "site-packages", "tiny")
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(LIBRARY)
        Path(folder).chmod(0o755)
        variables = {"PYTHONPATH": str(package.parent)}
        yield Environment(
            id="tiny", python="3.11", interpreter="/usr/bin/python3", variables=variables
        )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("from tiny import join, rows\njoin(rows(3), rows(7))\n", "another location"),
        ("from tiny import mix, rows\nmix(rows(3), rows(8))\n", "other shapes"),
        ("from tiny import mix, rows\nmix(rows(1), rows(0))\n", "other shapes"),
    ],
)
def test_a_failure_with_the_same_words_from_elsewhere_or_of_other_shapes_is_another(
    tiny, source, why
):
    runner, _, held, _ = confirmed(MIXED, UNFIT, here=tiny)
    cheat = Script(files={"repro.py": source})
    judgement = runner.run(cheat, tiny, 5, "repeat").judgement
    assert judgement.match == "matched"  # the signature alone does not tell them apart
    assert difference(held, judgement, cheat).startswith(why)


def test_the_result_fails_where_the_program_failed_and_with_its_shapes(tiny):
    runner, script, held, seeds = confirmed(MIXED, UNFIT, here=tiny)
    done = minimise(runner, script, tiny, held, seeds=seeds, max_tests=1500)
    assert done.ended == "complete"
    judgement = runner.run(done.script, tiny, 9, "repeat").judgement
    assert judgement.failure is not None
    assert judgement.failure.message == "shapes (3,2) and (7,2) do not fit"
    assert [frame.function for frame in judgement.failure.frames][-1] == "mix"
    assert done.lines_after <= 3


MASKED = """import torch

torch.manual_seed(0)
scores = torch.randn(2, 3)
mask = torch.tensor([[0, 0, 0], [1, 1, 0]])
weights = torch.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=1)
extra = torch.ones(4).sum()
loss = (weights * 2).mean() + extra
print("loss:", loss.item())
"""


@pytest.mark.index
@pytest.mark.nightly  # each try imports numpy
def test_nan_stays_that_of_the_operation_it_came_from():
    """The mean of an empty tensor is NaN as well, and shorter."""
    builder = UvBuilder(load().cache_dir)  # as long as it lives, its environments stay
    built = torch_environment(builder)
    runner, script, held, seeds = confirmed(
        MASKED, NonFiniteSignature(values=("nan",), labels=("loss",)), here=built
    )
    found = minimise(runner, script, built, held, seeds=seeds)
    assert "softmax" in found.script.source
    assert "extra" not in found.script.source
    assert found.lines_after < found.lines_before


def test_a_computed_value_is_not_written_down():
    source = (
        "class Foo:\n"
        "    baz = 'foobaz'\n\n"
        "    def bar(self):\n"
        "        return 'wrong'\n\n\n"
        "foo = Foo()\n"
        "print(foo.baz, foo.bar())\n"
    )
    signature = OutputSignature(observed=(("foobaz wrong",),))
    runner, script, held, seeds = confirmed(source, signature)
    found = minimise(runner, script, HERE, held, seeds=seeds)
    assert "print('" not in found.script.source.replace('"', "'")


def test_a_generator_keeps_its_seed():
    source = (
        "import random\n\n"
        "generator = random.Random(3)\n"
        "rows = [1, 2]\n"
        "print(rows[generator.randrange(5) + 2])\n"
    )
    runner, script, held, seeds = confirmed(source, INDEX)
    found = minimise(runner, script, HERE, held, seeds=seeds)
    assert "Random()" not in found.script.source


WRITING = """import os
import tempfile

rows = [1, 2]
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "rows.txt")
    with open(path, "w") as out:
        out.write(str(rows))
    print(rows[os.path.getsize(path)])
"""
LEAVING = WRITING.replace("folder, ", "")
REMOVING = LEAVING.replace("print(rows[", "size = ").replace(
    "(path)])", "(path)\n    os.remove(path)"
)


@pytest.mark.parametrize("mode", ["fork", "fresh", "single"])
def test_a_smaller_program_leaves_no_file_where_the_larger_one_left_none(mode):
    runner, script, held, seeds = confirmed(WRITING, INDEX)
    leaving = Script(files={"repro.py": LEAVING})
    removing = Script(files={"repro.py": REMOVING + "    print(rows[size])\n"})
    held = held.model_copy(
        update={"statement": ("print", "rows", "os", "path", "getsize", "path", "size")}
    )
    with oracle_of(runner, HERE, held, seeds) as oracle:
        assert oracle._settles(script, mode, "")
        assert oracle.fails([leaving, removing]) == [False, True]
    with oracle_of(runner, HERE, held, seeds) as oracle:
        assert oracle._settles(leaving, mode, "")
        assert oracle.fails([script]) == [True]
