"""Helper programs of the prepare phase, with real ones."""

import gc
import os

import pytest

from sandbox import subprocesses
from sandbox.port import SandboxError


def test_no_pipe_stays_open_where_a_watch_stops_a_helper_that_has_just_ended() -> None:
    def watch(pid: int) -> None:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        raise SandboxError("enough")

    with pytest.raises(SandboxError, match="enough"):
        subprocesses.run(["/bin/sleep", "0.2"], env={}, watch=watch)
    gc.collect()  # a pipe that is still open warns now, which is an error here


def test_a_helper_that_a_watch_stops_is_gone() -> None:
    pids = []

    def watch(pid: int) -> None:
        pids.append(pid)
        raise SandboxError("enough")

    with pytest.raises(SandboxError, match="enough"):
        subprocesses.run(["/bin/sleep", "300"], env={}, watch=watch)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
