"""A run's page follows the run: in a real browser, and for whoever reads the stream of events."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.issues.verdicts import KINDS
from bot.kernel.journal import LOGS, RunLog
from handlers import live
from tests.golden.stages import REPORTS
from tests.integration.pages.chromium import browser
from tests.integration.pages.site import Site, new, worked

REPORT = REPORTS["inconclusive"]
TITLE = KINDS[REPORT.verdict.kind].title


def begin(pages: Site, number: int) -> str:
    run, _ = pages.store.add_run(new(f"followed {number}", REPORT, number))
    worked(pages.store, run, REPORT, REPORT.attempts[:1])
    return run.id


def end(pages: Site, run: str) -> None:
    assert pages.store.put_report(run, "worker", REPORT)
    pages.store.finish_run(run, "worker")


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.browser
def test_a_page_shows_what_changes_without_being_loaded_again(pages: Site, tmp_path: Path) -> None:
    run = begin(pages, 201)
    with browser(tmp_path / "profile") as tab:
        tab.look(1280, 800)
        tab.open(f"{pages.url}/runs/{run}")
        tab.value(
            "window.mark = 1; document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        pages.store.beat(run, "worker", 600, "confirm", "confirm: run 7 of at most 40", 20.0)
        wait_until(lambda: "run 7 of at most 40" in tab.value("document.body.innerText"))
        pages.store.append_entry(
            run, "worker", LOGS, RunLog(number=2, text="epoch 3 <b>loss</b> 0.4")
        )
        pages.store.beat(run, "worker", 600, "confirm", "confirm: run 8 of at most 40", 20.0)
        wait_until(lambda: "epoch 3 <b>loss</b> 0.4" in tab.value("document.body.innerText"))
        assert tab.value("window.mark") == 1, "the page was loaded again"
        assert tab.value("document.querySelector('details')?.open ?? true")
        assert tab.complaints == []
        end(pages, run)
        wait_until(lambda: tab.value("document.querySelectorAll('script').length") == 0)
        assert tab.value("document.querySelector('h1').innerText") == TITLE
        # The stream that the page has closed itself.
        assert set(tab.complaints) <= {"not loaded: net::ERR_ABORTED "}


def test_the_events_end_with_the_run(pages: Site) -> None:
    run = begin(pages, 202)
    threading.Timer(2.0, lambda: end(pages, run)).start()
    with urllib.request.urlopen(f"{pages.url}/runs/{run}/live", timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        text = answer.read().decode()
    assert "<h1>" in text
    assert "event: end" in text


def test_nothing_is_followed_that_is_no_run_or_has_ended(pages: Site) -> None:
    assert pages.get("/runs/nothing-that-there-is/live").status == 404
    ended = pages.get(f"/runs/{pages.runs['reproduced']}/live")
    assert "event: end" in ended.text
    assert "<h1>" not in ended.text


def test_one_listener_too_many_is_turned_away(pages: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(pages, 203)
    monkeypatch.setattr(live, "_listeners", threading.BoundedSemaphore(1))
    address = f"{pages.url}/runs/{run}/live"
    with urllib.request.urlopen(address, timeout=30) as first:
        assert first.read(5) == b"data:"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(address, timeout=30)
        assert refused.value.code == 503
        refused.value.close()
    wait_until(lambda: live._listeners.acquire(blocking=False))
    live._listeners.release()
    end(pages, run)
