"""A server's threads share one heap of the C library."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

HEAPS = """
import ctypes, threading
from bot.cli.serving import one_heap
{call}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
gate, places = threading.Barrier(8), []

def allocate():
    gate.wait()
    places.append(libc.malloc(4096))
    gate.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len({place >> 26 for place in places}))
"""


def heaps(call: str) -> int:
    """In how many heaps, each of 64 MiB of addresses, eight threads at once allocate."""
    argv = [sys.executable, "-c", HEAPS.replace("{call}", call)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has several heaps")
def test_threads_share_one_heap() -> None:
    assert heaps("one_heap()") <= 2 < heaps("")  # one heap may lie on both sides of a border
