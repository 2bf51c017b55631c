"""A process of its own over a shared store: `python -m tests.contract.store_process race|stream
URL NAME`.
"""

from __future__ import annotations

import sys
import time

from bot.app.store import SqlStore
from tests.contract.samples import delivery, new_run

SHARED = 30
GAP_S, NOTIFY_GAP_S, PACED_S = 0.05, 0.2, 1.5


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def wait_for_the_start() -> None:
    say("ready")
    sys.stdin.readline()


def race(url: str, name: str) -> None:
    """Want everything that the others want; tell what was got."""
    wait_for_the_start()
    store = SqlStore(
        url, write_gap_s=GAP_S, notify_gap_s=NOTIFY_GAP_S
    )  # all at once, over an empty database
    wait_for_the_start()  # and nobody is ahead because it made the tables
    for n in range(SHARED):
        for word, guid in zip(
            store.claim([delivery(f"d{n}"), delivery(f"e{n}")]), (f"d{n}", f"e{n}"), strict=True
        ):
            if word == "new":
                say("claimed", guid)
        if store.take_delivery(f"d{n}", name, 60) is not None:
            say("took", f"d{n}")
        run, new = store.add_run(new_run(f"r{n}", n % 3))
        if new:
            say("added", n)
        if store.take_run(run.id, name, 60) is not None:
            say("leased", n % 3)
        time.sleep(0.005)  # SQLite's lock is not fair: who has it gets it again
    end = time.monotonic() + PACED_S
    while time.monotonic() < end:
        for notifies in (True, False):
            if store.reserve_write(1, name, notifies=notifies) == 0:
                store.end_write(1, name)
                say("wrote", notifies)
        time.sleep(0.002)
    store.close()


def reap(url: str, _: str) -> None:
    """Find what is overdue, once everybody is ready."""
    store = SqlStore(url)
    wait_for_the_start()
    for task in store.overdue(1000):
        say("found", f"{task.id}/{task.turn}")
    store.close()


def stream(url: str, name: str) -> None:
    """Keep deliveries until killed; tell of each batch that it is kept."""
    store, batch = SqlStore(url), 0
    while True:
        guids = [f"{name}-{batch}-{n}" for n in range(1 + batch % 5)]
        made = [delivery(guid) for guid in guids]
        store.claim(made)
        say(*guids)
        batch += 1


if __name__ == "__main__":
    {"race": race, "reap": reap, "stream": stream}[sys.argv[1]](*sys.argv[2:])
