"""What a process that lives for weeks does about its memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
from pathlib import Path
from bot.app.memory import give_back, one_heap

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

one_heap()
texts = [bytes([number % 256]) * 3000 for number in range(20_000)]
kept = texts[::50]
del texts
before = resident_mb()
give_back()
print(before - resident_mb())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps what is free")
def test_what_is_free_between_small_things_that_stay_goes_back() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) > 30


def test_a_worker_gives_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr("bot.app.worker.give_back", lambda: calls.append("memory"))
    from tests.unit.test_service import App

    (tick,) = [tick for tick in App().service.ticks() if tick.name == "memory"]
    tick.do()
    assert calls == ["memory"]
