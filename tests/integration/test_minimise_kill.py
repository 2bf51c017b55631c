"""A minimisation that is killed at any moment goes on from what was confirmed, and ends as it
would have.
"""

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

from bot.issues.proof.minimise import confirmed_identity, minimise, oracle_of
from bot.issues.reading import issue
from bot.issues.reduce.edits import size
from bot.issues.runner import Runner, judging
from bot.kernel.attempt import Reduced, Script
from bot.kernel.bug import CrashSignature, Issue
from bot.kernel.environment import Environment
from bot.kernel.ports import Ports
from bot.kernel.session import Session
from bot.report.run_folder import Folder
from sandbox.cache import Cache
from sandbox.process import ProcessSandbox
from tests.support.fakes import FakeBuilder, ListListener
from tests.support.jobs import issue_job

HERE = Environment(id="here", python="3.11", interpreter="/usr/bin/python3")
JOB = issue_job(Issue(title="t", body="b"), timeout_s=30)
INDEX = CrashSignature(exception="IndexError", message="list index out of range")
SOURCE = (
    (
        "import time\n\n"
        "time.sleep(0.1)\n\n\n"
        "class Table:\n"
        "    def __init__(self, rows):\n"
        "        self.rows = rows\n\n"
    )
    + "\n".join(
        (
            f"    def step_{at}(self):\n"
            f"        rows = self.rows\n"
            f"        for row in rows:\n"
            f"            self.last = row\n"
            f"        return rows\n"
        )
        for at in range(8)
    )
    + """
    def column(self, number):
        return [row[number + 3] for row in self.rows]


table = Table([[i * j for j in range(4)] for i in range(5)])
"""
    + "\n".join(f"table.step_{at}()" for at in range(8))
    + ("\nprint(table.column(0))\nprint(table.column(1))\n")
)
SCRIPT = Script(files={"repro.py": SOURCE})


def work(folder: Path, cache: Path) -> tuple[Runner, Reduced]:
    """One process's part: begin or go on."""
    with closing(Folder(folder)) as journal:
        journal.begin(JOB)
        return _worked(journal, cache)


def _worked(journal: Folder, cache: Path) -> tuple[Runner, Reduced]:
    ports = Ports(
        sandbox=ProcessSandbox(),
        builder=FakeBuilder(),
        journal=journal,
        clock=time.monotonic,
        listener=ListListener(),
        cache=cache,
    )
    runner = judging(Session.begin(JOB, ports), issue.read_issue(JOB.issue), INDEX)
    for seed in (1, 2):
        runner.run(SCRIPT, HERE, seed, "confirm")
    found = confirmed_identity(runner, SCRIPT, HERE)
    assert found is not None
    held, seeds = found
    done = minimise(runner, SCRIPT, HERE, held, seeds=seeds, max_tests=1500)
    judged = runner.run(done.script, HERE, 9, "repeat").judgement
    assert oracle_of(runner, HERE, held).test.shows(judged, done.script)
    return runner, done


def seen(folder: Path) -> list[tuple[int, str]]:
    """The lines of the programs that were run so far to minimise, in order, with what came of
    them.
    """
    lines = [
        json.loads(line) for line in (folder / "attempts.jsonl").read_bytes().split(b"\n")[:-1]
    ]
    rows = [
        (row["script"][:12], row["judgement"]["match"])
        for row in lines
        if row["purpose"] == "minimize"
    ]
    texts = [
        ((folder / "scripts" / digest / "repro.py").read_text(), match) for digest, match in rows
    ]
    return [(size({"repro.py": text})[0], match) for text, match in texts]


def confirmed(folder: Path) -> list[int]:
    """The lines of the programs that were found to fail alike so far."""
    if not (folder / "attempts.jsonl").exists():
        return []
    return [lines for lines, match in seen(folder) if match == "matched"]


@pytest.fixture
def cache() -> Iterator[Path]:
    """A cache folder that the run's user may read."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.nightly  # killed and continued five times
def test_killed_at_random_moments_it_goes_on_from_what_was_confirmed(tmp_path, cache):
    folder, chosen, gone_on = tmp_path / "run", random.Random(5), 0
    begun = time.monotonic()
    _, whole = work(tmp_path / "whole", cache)
    took = time.monotonic() - begun
    for _ in range(5):
        before = confirmed(folder)
        child = subprocess.Popen([sys.executable, __file__, str(folder), str(cache)])
        begun = time.monotonic()
        # A busy machine takes longer to start Python than to minimise: wait for its first step.
        while child.poll() is None and confirmed(folder) == before:
            assert time.monotonic() < begun + 120
            time.sleep(0.02)
        time.sleep(chosen.uniform(0.0, 0.3) * took)
        child.kill()
        child.wait()
        if before:
            assert seen(folder)[0][0] <= before[-1]
            gone_on += 1
    before = confirmed(folder)
    runner, done = work(folder, cache)
    tried = next(row for row in runner.attempts if row.purpose == "minimize")
    assert gone_on == 4
    assert seen(folder)[0] == (before[-1], "matched")
    assert tried.script != SCRIPT.digest
    assert done.ended == "complete"
    assert done.script == whole.script
    Cache(cache).sweep()
    assert list((cache / "scratch").iterdir()) == []  # where the killed handed over their programs
    assert list((cache / "scratch").iterdir()) == []


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
