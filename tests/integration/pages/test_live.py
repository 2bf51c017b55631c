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
from bot.kernel.dialogue import Usage
from bot.kernel.journal import LOGS, LOSSES, USAGE, RunLog
from bot.kernel.training_types import Curve
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


def trained(pages: Site, run: str, steps: int) -> None:
    points = tuple((float(step), 2.3 / (1 + step / 9)) for step in range(steps))
    curve = Curve(panel="loss", name="training", points=points)
    assert pages.store.append_entry(run, "worker", LOSSES, curve)


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
        tab.value("window.runs = [...document.querySelectorAll('main > section')].at(-1), 0")
        trained(pages, run, 30)
        wait_until(lambda: "Loss so far" in tab.value("document.body.innerText"))
        drawn = tab.value("document.querySelector('svg[aria-labelledby^=training]').outerHTML")
        tab.shot(tmp_path / "live.png", whole=True)
        trained(pages, run, 60)
        wait_until(
            lambda: (
                tab.value("document.querySelector('svg[aria-labelledby^=training]').outerHTML")
                != drawn
            )
        )
        assert tab.value("window.runs.isConnected"), "what has not changed was replaced"
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


def test_the_page_shows_the_loss_and_what_models_used_while_the_run_is_live(pages: Site) -> None:
    run = begin(pages, 204)
    address = f"/runs/{run}"
    before = pages.get(address).text
    assert "Loss so far" not in before
    assert "Models so far" not in before
    trained(pages, run, 30)
    usage = Usage(calls=4, input_tokens=12_000, output_tokens=345)
    assert pages.store.append_entry(run, "worker", USAGE, usage)
    page = pages.get(address).text
    assert "<h2>Loss so far</h2>" in page
    assert "loss of training from 2.3 to" in page
    assert "Models so far: 4 calls, 12,345 tokens.</p>" in page
    paid = usage.model_copy(update={"usd": 0.031})
    assert pages.store.append_entry(run, "worker", USAGE, paid)
    assert "Models so far: 4 calls, 12,345 tokens, 0.03 USD.</p>" in pages.get(address).text
    end(pages, run)
    ended = pages.get(address).text
    assert "so far" not in ended
    assert "loss of training" not in ended


def test_a_run_that_failed_shows_no_loss_so_far(pages: Site) -> None:
    run = begin(pages, 205)
    trained(pages, run, 30)
    pages.store.finish_run(run, "worker", "ValueError")
    assert "so far" not in pages.get(f"/runs/{run}").text


def test_new_points_and_new_calls_are_sent_to_the_page(pages: Site) -> None:
    run = begin(pages, 206)
    threading.Timer(1.0, lambda: trained(pages, run, 30)).start()
    threading.Timer(4.0, lambda: trained(pages, run, 60)).start()
    usage = Usage(calls=4, input_tokens=12_000)
    threading.Timer(7.0, lambda: pages.store.append_entry(run, "worker", USAGE, usage)).start()
    threading.Timer(10.0, lambda: end(pages, run)).start()
    with urllib.request.urlopen(f"{pages.url}/runs/{run}/live", timeout=30) as answer:
        text = answer.read().decode()
    events = [part for part in text.split("\n\n") if "<h1>" in part]
    assert ["Loss so far" in each for each in events][:3] == [False, True, True]
    assert "Models so far" in events[-1]


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
