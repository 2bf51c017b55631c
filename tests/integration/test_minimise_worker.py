"""A worker as in `deploy/compose.yaml`: its temporary folder is its own, and of its files the
daemon sees the cache only.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bot.app import bootstrap
from bot.issues.proof.minimise import confirmed_identity, minimise
from bot.issues.reading import issue
from bot.issues.runner import judging
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature, Issue
from bot.kernel.environment import Environment
from bot.kernel.job import ReproduceIssue
from bot.kernel.session import Session
from bot.kernel.settings import load
from sandbox.docker import GUARD_PYTHON, DockerSandbox
from tests.support.fakes import ListListener, MemoryJournal
from tests.support.jobs import job_options

SOURCE = "import math\n\nrows = [1, 2]\nprint(math.pi)\nprint(rows[4])\n"
IN_ITS_OWN_MOUNTS = 'mount -t tmpfs none "$TMPDIR" && exec "$@"'


def work() -> None:
    """The worker's part: say how the trials were run, and what became of the program."""
    options, settings = job_options(timeout_s=20, sandbox="docker"), load()
    world = bootstrap.make_ports(
        settings,
        journal=MemoryJournal(),
        listener=ListListener(),
        sandbox=DockerSandbox(),
    )
    job = ReproduceIssue(issue=Issue(title="t", body="b"), **dict(options))
    runner = judging(
        Session.begin(job, world),
        issue.read_issue(job.issue),
        CrashSignature(exception="IndexError", message="list index out of range"),
    )
    here = Environment(id="here", python="3", interpreter=GUARD_PYTHON)
    script = Script(files={"repro.py": SOURCE})
    runner.run(script, here, 1, "confirm")
    found = confirmed_identity(runner, script, here)
    assert found is not None
    done = minimise(runner, script, here, found[0], seeds=found[1], max_tests=20)
    left = [path.name for path in settings.cache_dir.glob("scratch/*")]
    sys.stdout.write(json.dumps([done.mode, done.lines_before, done.lines_after, left]))


@pytest.fixture
def places():
    """A folder that the daemon sees, with a cache and a place for the worker's own temporary
    folder.
    """
    folder = Path(tempfile.mkdtemp(prefix="reprise-worker-"))
    (folder / "tmp").mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.mark.docker
def test_programs_are_tried_together_where_the_daemon_does_not_see_the_temporary_folder(places):
    env = {**os.environ, "TMPDIR": str(places / "tmp"), "REPRISE_CACHE_DIR": str(places / "cache")}
    argv = [
        "unshare",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        IN_ITS_OWN_MOUNTS,
        "sh",
        sys.executable,
        __file__,
    ]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=True)
    mode, before, after, left = json.loads(done.stdout)
    assert (mode, before, left) == ("fork", 4, [])
    assert after < before
    assert list((places / "tmp").iterdir()) == []  # what the worker wrote there was never here


if __name__ == "__main__":
    work()
