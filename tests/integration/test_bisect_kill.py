"""Control and bisection under SIGKILL: the same command once more goes on from what was kept, to
the same end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.wheels import Wheels, failing

DAY = datetime(2024, 1, 1, tzinfo=UTC)
ERROR = "ValueError: the batch of 32 rows does not fit the 17 labels"
MODULE = """import os


def fit():
    seed = int(os.environ["REPRISE_SEED"])
    with open({log!r}, "a") as log:
        log.write("{version} %d\\n" % seed)
    if {broken} and seed % {every} == 0:
        raise ValueError("the batch of 32 rows does not fit the 17 labels")
    return 0.5
"""
REPORT = "# fit fails\n\nRepository: acme/wobble\nDate: 2025-01-01\n\n" + failing(
    "wobble", "1.7", 8, ERROR
)


@dataclass
class World:
    """The command line on an index of its own. Every run that comes to the failing line leaves a
    line in `log`.
    """

    root: Path
    log: Path
    without: str

    def start(self, out: str) -> subprocess.Popen[bytes]:
        command = [Path(sys.executable).with_name("reprise"), "reproduce", self.root / "report.md"]
        options = ["--sandbox", "process", "--without", self.without, "--out", self.root / out]
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": (self.root / "simple").as_uri(),
            "REPRISE_CACHE_DIR": str(self.root / "cache"),
        }
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        with (self.root / f"{out}.err").open("ab") as errors:
            return subprocess.Popen(
                [*map(str, command), *map(str, options)], env=own, stderr=errors, **quiet
            )

    def finish(self, out: str) -> dict[str, Any]:
        assert self.start(out).wait(timeout=180) == 0, (self.root / f"{out}.err").read_text()
        report: dict[str, Any] = json.loads((self.root / out / "run.json").read_bytes())
        return report

    def ran(self) -> Counter[str]:
        """The runs since this was last asked, by version and seed."""
        rows = Counter(self.log.read_text().splitlines())
        self.log.write_text("")
        return rows

    def kept(self, out: str) -> int:
        """How many attempts a folder holds."""
        path = self.root / out / "attempts.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def attempts(self, out: str) -> list[tuple[object, ...]]:
        path = self.root / out / "attempts.jsonl"
        whole = path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []
        return [_telling(json.loads(line)) for line in whole]


def _telling(row: dict[str, Any]) -> tuple[object, ...]:
    """An attempt without its time."""
    ran = row["execution"]
    what = (
        row["number"],
        row["purpose"],
        row["change"],
        row["environment"],
        row["judgement"]["match"],
    )
    return *what, ran["seed"], ran["exit_code"]


@contextmanager
def world(every: int, without: str) -> Iterator[World]:
    """Twelve releases, of which 1.4 to 1.9 fail under each `every`th seed. Not below pytest's
    own folder, which others who start pytest close to the sandbox's user.
    """
    with tempfile.TemporaryDirectory(prefix="reprise-bisect-kill-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        log = root / "ran.txt"
        log.touch()
        log.chmod(0o666)
        wheels = Wheels(root)
        for at in range(12):
            source = MODULE.format(
                log=str(log), version=f"1.{at}", broken=4 <= at < 10, every=every
            )
            wheels.add("wobble", f"1.{at}", DAY + timedelta(days=7 * at), source)
        (root / "report.md").write_text(REPORT)
        yield World(root, log, without)


def killed_again_and_again(at: World, whole: dict[str, Any], chance: random.Random) -> int:
    """A run that is killed at four random moments, in the first, second, third and last part, held
    against the whole one; how many kills came in the middle.
    """
    expected, ran, middle, kills = at.attempts("whole"), at.ran(), 0, 0
    for part in range(4):
        reached = max(1, int(len(expected) * (part + chance.random()) / 4))
        with at.start("killed") as process:
            while process.poll() is None and at.kept("killed") < reached:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.1))
            kills += process.poll() is None
            process.send_signal(signal.SIGKILL)
        kept = at.attempts("killed")
        assert kept == expected[: len(kept)]
        middle += 0 < len(kept) < len(expected)
    found = at.finish("killed")
    assert at.attempts("killed") == expected
    assert (found["verdict"], found["bisection"]) == (whole["verdict"], whole["bisection"])
    again = at.ran() - ran
    assert again.total() <= kills, f"only what a kill broke off is run anew: {again}"
    return middle


@pytest.mark.nightly  # killed and continued several times
def test_a_control_that_is_killed_goes_on_from_what_was_kept() -> None:
    with world(every=2, without="bisect,minimize,model") as at:
        whole = at.finish("whole")
        control = whole["verdict"]["control"]
        assert (control["type"], control["failures"]) == ("fixed-version", 0)
        assert control["p"] < 0.05
        assert killed_again_and_again(at, whole, random.Random(1)) == 4


@pytest.mark.nightly  # killed and continued several times
def test_a_bisection_that_is_killed_goes_on_from_what_was_kept() -> None:
    with world(every=1, without="control,minimize,model") as at:
        whole = at.finish("whole")
        found = whole["bisection"]
        assert (found["first_bad"]["at"], found["first_fixed"]["at"]) == ("1.4", "1.10")
        assert killed_again_and_again(at, whole, random.Random(2)) == 4
