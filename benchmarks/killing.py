"""Kills the real command line at random moments and looks at what it leaves behind."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.kernel.errors import UserError
from bot.kernel.values import Record

Containers = Callable[[int], tuple[str, ...]]

_BECOME_SUBREAPER = 36
_GRACE_S = 15.0
_LONGEST_S = 300.0


class Kill(Record):
    """One kill, and what was left of it when the grace was over; `next_run` is the exit code of
    the run after it.
    """

    sandbox: str
    after_s: float
    cold: bool
    containers: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    torn_report: str = ""
    next_run: int = 0
    gone_after_s: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether nothing was left and the next run succeeded."""
        return not (self.containers or self.processes or self.torn_report) and self.next_run == 0


def kill_runs(
    sandbox: str,
    times: int,
    containers: Containers,
    *,
    seed: int = 0,
    without: str = "",
    warm: Path | None = None,
) -> Iterator[Kill]:
    """Kill `times` runs of the bundled example in this sandbox, each in a later part of its run;
    every third one while it builds its environment anew. `without` names the proofs to leave out,
    with commas between, `warm` a cache for the other runs.
    """
    chance = random.Random(seed)
    with adopted_orphans(), tempfile.TemporaryDirectory(prefix="reprise-killing-") as folder:
        home = Path(folder)
        home.chmod(0o755)  # root's runs are given to another user, who must reach the cache in it
        run = _Example(sandbox, without)
        kept = warm or home / "cache"
        cold_s = run.whole(home, kept)
        warm_s = run.whole(home, kept)
        for number in range(times):
            cold = number % 3 == 2
            cache = home / f"cold-{number}" if cold else kept
            after_s = (cold_s if cold else warm_s) * (number + chance.random()) / times
            yield _kill(run, home / f"run-{number}", cache, max(0.05, after_s), cold, containers)
            if cold:
                shutil.rmtree(cache, ignore_errors=True)


@contextmanager
def adopted_orphans() -> Iterator[None]:
    """Be the parent of whatever our killed children leave, so that nothing can hide behind init."""
    control = ctypes.CDLL(None, use_errno=True).prctl
    if control(_BECOME_SUBREAPER, 1, 0, 0, 0) != 0:
        raise UserError(
            "This kernel cannot hand orphans over.", "Run the killing bench on Linux 3.4 or newer."
        )
    try:
        yield
    finally:
        control(_BECOME_SUBREAPER, 0, 0, 0, 0)


def descendants(root: int) -> dict[int, str]:
    """Every living process below `root`, with its command line; the dead ones that wait to be
    buried do not count.
    """
    parents: dict[int, int] = {}
    words: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            line = (
                (entry / "cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
                .strip()
            )
        except (OSError, ValueError):
            continue
        if state not in "ZX":
            parents[int(entry.name)] = int(parent)
            words[int(entry.name)] = line[:160]
    below: dict[int, str] = {}
    ring = {root}
    while ring:
        ring = {child for child, parent in parents.items() if parent in ring and child not in below}
        below |= {child: words[child] for child in ring}
    return below


def torn(report: Path) -> str:
    """What is wrong with a report that a killed run left, or "": it is whole, or it is not
    there.
    """
    if not report.exists():
        return ""
    try:
        json.loads(report.read_bytes())["verdict"]["kind"]
    except (ValueError, KeyError, TypeError) as error:
        return f"{report.name}: {error}"
    return ""


def _kill(
    run: _Example, out: Path, cache: Path, after_s: float, cold: bool, containers: Containers
) -> Kill:
    own = set(descendants(os.getpid()))
    child = run.start(out, cache)
    try:
        child.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
    child.wait()
    killed_at = time.monotonic()
    left, boxes = _left(own), containers(child.pid)
    while (left or boxes) and time.monotonic() - killed_at < _GRACE_S:
        time.sleep(0.1)
        left, boxes = _left(own), containers(child.pid)
    gone_after_s = time.monotonic() - killed_at
    return Kill(
        sandbox=run.sandbox,
        after_s=round(after_s, 2),
        cold=cold,
        containers=boxes,
        processes=tuple(left.values()),
        torn_report=torn(out / "report.json"),
        next_run=_finish(run.start(out, cache)),
        gone_after_s=round(gone_after_s, 2),
    )


def _left(own: set[int]) -> dict[int, str]:
    _bury()
    return {pid: line for pid, line in descendants(os.getpid()).items() if pid not in own}


def _bury() -> None:
    """Collect adopted children that have ended; the one child that is waited for by name is
    always ended before this.
    """
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def _finish(child: subprocess.Popen[bytes]) -> int:
    try:
        return child.wait(timeout=_LONGEST_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return -1


@dataclass(frozen=True, slots=True)
class _Example:
    """The run that is killed: the bundled example in one sandbox, without some of the proofs."""

    sandbox: str
    without: str

    def start(self, out: Path, cache: Path) -> subprocess.Popen[bytes]:
        """The installed command, as a person starts it; `env` passes the environment on with one
        variable changed.
        """
        program = str(Path(sys.executable).with_name("reprise"))
        argv = [
            "env",
            f"REPRISE_CACHE_DIR={cache}",
            program,
            "reproduce",
            "example",
            "--sandbox",
            self.sandbox,
        ]
        return subprocess.Popen(
            [*argv, "--without", self.without, "--out", str(out)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def whole(self, home: Path, cache: Path) -> float:
        """Seconds of a run that nobody kills."""
        started = time.monotonic()
        code = _finish(self.start(home / "whole", cache))
        if code != 0:
            raise UserError(
                f"The example does not reproduce in the {self.sandbox} sandbox (exit code {code}).",
                f"Look at: reprise reproduce example --sandbox {self.sandbox}",
            )
        return time.monotonic() - started
