"""A minimisation that is killed at any moment goes on from what was confirmed, and ends as it would have."""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.adapters.folder import Folder
from bot.models.attempt import Script
from bot.models.environment import Environment
from bot.models.issue import Issue
from bot.models.job import Job, Options
from bot.models.reduced import Reduced
from bot.models.signature import CrashSignature
from bot.pipeline.desk import Desk
from bot.pipeline.minimise import confirmed_reference, minimise
from bot.pipeline.trials import Trials
from bot.ports import Ports
from bot.rules.reduce.edits import size
from bot.testing import FakeBuilder, ListListener
from sandbox.cache import Cache
from sandbox.process import ProcessSandbox

HERE = Environment(id="here", python="3.11", interpreter="/usr/bin/python3")
JOB = Job(issue=Issue(title="t", body="b"), options=Options(timeout_s=30))
INDEX = CrashSignature(exception="IndexError", message="list index out of range")
SOURCE = "import time\n\ntime.sleep(0.1)\n\n\nclass Table:\n    def __init__(self, rows):\n        self.rows = rows\n\n" + "\n".join(
    f"    def step_{at}(self):\n        rows = self.rows\n        for row in rows:\n            self.last = row\n        return rows\n"
    for at in range(8)
) + '''
    def column(self, number):
        return [row[number + 3] for row in self.rows]


table = Table([[i * j for j in range(4)] for i in range(5)])
''' + "\n".join(f"table.step_{at}()" for at in range(8)) + "\nprint(table.column(0))\nprint(table.column(1))\n"  # fmt: skip
SCRIPT = Script(files={"repro.py": SOURCE})


def work(folder: Path, cache: Path) -> tuple[Desk, Reduced]:
    """One process's part: begin or go on."""
    with closing(Folder(folder)) as recorder:
        recorder.begin(JOB)
        return _worked(recorder, cache)


def _worked(recorder: Folder, cache: Path) -> tuple[Desk, Reduced]:
    ports = Ports(
        sandbox=ProcessSandbox(),
        builder=FakeBuilder(),
        recorder=recorder,
        clock=time.monotonic,
        listener=ListListener(),
        cache=cache,
    )
    desk = Desk(JOB, ports)
    desk.signature = INDEX
    for seed in (1, 2):
        desk.run(SCRIPT, HERE, seed, "confirm")
    found = confirmed_reference(desk, SCRIPT, HERE)
    assert found is not None
    held, seeds = found
    done = minimise(desk, SCRIPT, HERE, held, seeds=seeds, max_tests=1500)
    judged = desk.run(done.script, HERE, 9, "repeat")
    assert Trials(desk, HERE, held).holds(judged, done.script)
    return desk, done


def seen(folder: Path) -> list[tuple[int, str]]:
    """The lines of the programs that were run so far to minimise, in order, with what came of them."""
    lines = [json.loads(line) for line in (folder / "attempts.jsonl").read_bytes().split(b"\n")[:-1]]
    rows = [(row["script"][:12], row["judgement"]["match"]) for row in lines if row["purpose"] == "minimize"]
    texts = [((folder / "scripts" / digest / "repro.py").read_text(), match) for digest, match in rows]
    return [(size({"repro.py": text})[0], match) for text, match in texts]


@pytest.fixture
def cache() -> Iterator[Path]:
    """A cache folder that the run's user may read."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_killed_at_random_moments_it_goes_on_from_what_was_confirmed(tmp_path, cache):
    folder, chosen, gone_on = tmp_path / "run", random.Random(5), 0
    begun = time.monotonic()
    _, whole = work(tmp_path / "whole", cache)
    took = time.monotonic() - begun
    for _ in range(5):
        before = [lines for lines, match in (seen(folder) if folder.exists() else []) if match == "met"]
        child = subprocess.Popen([sys.executable, __file__, str(folder), str(cache)])
        time.sleep(chosen.uniform(0.3, 1.0) * took)
        child.kill()
        child.wait()
        if not (folder / "attempts.jsonl").exists() or (before and not seen(folder)):
            continue
        if before:
            assert seen(folder)[0][0] <= before[-1]
            gone_on += 1
    before = [lines for lines, match in seen(folder) if match == "met"]
    desk, done = work(folder, cache)
    tried = next(row for row in desk.attempts if row.purpose == "minimize")
    assert gone_on
    assert seen(folder)[0] == (before[-1], "met")
    assert tried.script != SCRIPT.digest
    assert done.ended == "complete"
    assert done.script == whole.script
    assert Cache(cache).sweep() >= 1  # what the killed ones handed their programs over in
    assert list((cache / "scratch").iterdir()) == []


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
