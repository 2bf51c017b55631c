"""The list of a repository's runs: what it shows, who may see it, and what a link that leaks gives
away.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from bot.app import context
from bot.issues.verdicts import KINDS
from bot.kernel.report import IssueReport
from bot.kernel.run import NewRun, Repository, VerdictCount
from bot.report.run_list import timeline
from handlers.app import create
from handlers.run_list import PAGE_RUNS
from tests.corpus.hostile.corpus import Hostile, load
from tests.golden.stages import REPORTS
from tests.integration.pages.reading import words, wrong
from tests.integration.pages.site import SECRET, SETTINGS, Site, new, served
from tests.support.fakes import FrozenClock, InlineQueue, MemoryStore

OPEN = Repository(id=5, full_name="acme/open")
SECRETIVE = Repository(id=6, full_name="acme/secret", private=True)
NAMES = ("reproduced", "not_reproduced", "needs_info", "reproduced-with-proof", "inconclusive")
RUNS = 60
BEFORE = f"before {SECRET} the end"


def titled(name: str, number: int, where: Repository, title: str) -> tuple[IssueReport, NewRun]:
    report = REPORTS[name]
    issue = report.issue.model_copy(update={"title": title, "repository": where.full_name})
    report = report.model_copy(update={"issue": issue})
    return report, new(f"{where.full_name} {number} {title}", report, number, repository=where)


def ended(store: MemoryStore, name: str, number: int, where: Repository, title: str) -> str:
    report, request = titled(name, number, where, title)
    run, _ = store.add_run(request)
    assert store.take_run(run.id, "worker", 600) is not None
    store.beat(run.id, "worker", 600, seconds=30.0 * number)
    assert store.put_report(run.id, "worker", report)
    store.finish_run(run.id, "worker")
    return run.id


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Sixty runs of a public repository in as many days, two of a private one, one of neither."""
    clock = FrozenClock(time.time() - RUNS * 86_400)
    store = MemoryStore(clock=clock)
    ids = {}
    for number in range(1, RUNS + 1):
        name = NAMES[number % len(NAMES)]
        title = f"Loss <b>is</b> nan {BEFORE} \u202e{number}"
        ids[str(number)] = ended(store, name, number, OPEN, title)
        clock.advance(86_000)
    ids["private"] = ended(store, "reproduced", 7, SECRETIVE, "Private words")
    was_open = SECRETIVE.model_copy(update={"private": False})
    ids["before"] = ended(store, "reproduced", 8, was_open, "Once public")
    under_way = titled("inconclusive", 99, OPEN, "Under way")[1]
    ids["live"] = store.add_run(under_way)[0].id
    with served(create(SETTINGS, store, InlineQueue())) as url:
        yield Site(url, store, ids)


def asked(site: Site, path: str) -> Any:
    answer = site.get(path)
    assert answer.status == 200, answer.text
    return json.loads(answer.body)


def rows(page: str) -> list[str]:
    return re.findall(r'<th scope="row" class="title"><a href="([^"]+)">', page)


def test_a_run_leads_to_all_runs_of_its_repository(site: Site) -> None:
    run = site.get(f"/runs/{site.runs['1']}").text
    (address,) = re.findall(r'href="([^"]+)">All runs of this repository', run)
    page = site.get(address)
    assert (page.status, wrong(page.text)) == (200, [])
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "script" not in page.headers["Content-Security-Policy"]
    text = words(page.text)
    assert "acme/open" in text
    assert f"All {RUNS + 1}" in text
    assert f"Reproduced {RUNS // 5 * 2}" in text
    assert "#99 Under way" in text
    assert "Queued" in text
    assert "#60 Loss <b>is</b> nan before [redacted] the end 60" in text
    assert "acme/secret" not in text
    addresses = rows(page.text)
    assert len(addresses) == PAGE_RUNS
    assert addresses[0] == f"/runs/{site.runs['live']}"
    assert all(site.get(each).status == 200 for each in addresses[:3])


def test_older_pages_lead_to_every_run_once(site: Site) -> None:
    address, seen = f"/runs/{site.runs['1']}/repository", list[str]()
    for _ in range(4):
        page = site.get(address).text
        assert wrong(page) == []
        seen += rows(page)
        older = re.findall(r'href="([^"]+)">Older<', page)
        if not older:
            break
        address = older[0].replace("&amp;", "&")
    assert len(seen) == len(set(seen)) == RUNS + 1


def test_a_verdict_is_filtered_by(site: Site) -> None:
    page = site.get(f"/runs/{site.runs['1']}/repository?verdict=needs_info").text
    assert len(rows(page)) == RUNS // 5
    assert '?verdict=needs_info" aria-current="true">' in page
    assert page.count('aria-current="true"') == 1
    much = site.get(f"/runs/{site.runs['1']}/repository?verdict=reproduced").text
    assert "?verdict=reproduced&amp;before=" not in much, "they fit one page"
    assert len(rows(much)) == RUNS // 5 * 2
    none = site.get(f"/runs/{site.runs['1']}/repository?verdict=cancelled")
    assert "No run is listed here." in words(none.text)
    for query in ("verdict=nothing", "verdict=%00", "verdict=%27%20OR%201"):
        assert site.get(f"/runs/{site.runs['1']}/repository?{query}").status == 404
    for query in ("before=%00", "before=" + "0" * 32):
        assert rows(site.get(f"/runs/{site.runs['1']}/repository?{query}").text) == []


def test_a_link_to_a_private_run_opens_this_run_alone(site: Site) -> None:
    run = site.store.run(site.runs["private"])
    assert run is not None
    now = time.time()
    one = context.run_name(run, site.store, now, 30)
    page = site.get(f"/runs/{one}")
    assert page.status == 200
    assert "/repository" not in page.text
    assert "comment /reproduce status on the issue" in words(page.text)
    for name in (one, run.id, context.run_name(run, site.store, now - 32 * 86_400, 30, "list")):
        for path in (f"/runs/{name}/repository", f"/api/runs/{name}/repository"):
            refused = site.get(path)
            assert refused.status == 403, path
            assert "acme/secret" not in refused.text


def test_the_list_of_a_private_repository_has_a_link_of_its_own_that_ends(site: Site) -> None:
    run = site.store.run(site.runs["private"])
    assert run is not None
    name = context.run_name(run, site.store, time.time(), 3, "list")
    page = site.get(f"/runs/{name}/repository")
    assert (page.status, wrong(page.text)) == (200, [])
    once_public, private = rows(page.text)
    assert once_public == f"/runs/{site.runs['before']}"
    assert private.split(".")[:2] == [f"/runs/{run.id}", name.split(".")[1]], "no longer than that"
    assert site.get(private).status == 200
    assert site.get(f"/runs/{name}").status == 403, "it opens the list, not the run"
    page = site.get(f"/runs/{site.runs['before']}/repository").text
    assert rows(page) == [once_public], "what was private since is not listed for the public"


def test_the_api_lists_the_same(site: Site) -> None:
    path = f"/api/runs/{site.runs['1']}/repository"
    first = asked(site, path)
    assert first["repository"] == "acme/open"
    assert sum(row["runs"] for row in first["counts"]) == RUNS + 1
    runs = first["runs"]
    assert [run["number"] for run in runs[:2]] == [99, 60]
    assert SECRET not in json.dumps(first)
    rest = asked(site, f"{path}?verdict=reproduced&before={first['older']}")
    assert all(run["verdict"] == "reproduced" for run in rest["runs"])
    assert rest["older"] == ""
    assert site.get(f"{path}?verdict=nothing").status == 404


@pytest.mark.parametrize("hostile", [each for each in load("outgoing") if not each.fill][:40], ids=lambda each: each.id)  # fmt: skip
def test_hostile_titles_are_only_shown(hostile: Hostile) -> None:
    store = MemoryStore()
    run, _ = store.add_run(titled("reproduced", 1, OPEN, hostile.text)[1])
    with served(create(SETTINGS, store, InlineQueue())) as url:
        page = Site(url, store, {}).get(f"/runs/{run.id}/repository")
    assert (page.status, wrong(page.text)) == (200, [])


# --- the picture ---------------------------------------------------------------------------------

TODAY = date(2024, 5, 31)


def bars(svg: str) -> list[str]:
    return re.findall(r"<title>([^<]+)</title><rect", svg)


@pytest.mark.parametrize(
    ("ago", "unit", "first"),
    [(20, "a day", 20), (45, "a week", 45), (200, "a week", 200), (900, "four weeks", 900)],
)
def test_a_bar_is_as_long_as_the_time_needs(ago: int, unit: str, first: int) -> None:
    start = TODAY - timedelta(days=first)
    rows = (
        VerdictCount(day=start, verdict="reproduced", runs=2),
        VerdictCount(day=start + timedelta(days=ago), verdict="needs_info", runs=1),
        VerdictCount(day=start, verdict="", runs=5),
    )
    svg = str(timeline(rows, TODAY))
    assert f"A bar is {unit}." in svg
    assert "2 Reproduced, 1 More information needed" in svg
    assert bars(svg)[0] == f"Reproduced, {start}: 2 runs"
    assert len(bars(svg)) == 2


def test_without_a_verdict_there_is_no_picture() -> None:
    assert not timeline((VerdictCount(day=TODAY, verdict="", runs=1),), TODAY)
    assert not timeline((), TODAY)


def test_a_verdict_of_tomorrow_stays_in_the_picture() -> None:
    """The clock of the page may be behind that of the database."""
    rows = [VerdictCount(day=TODAY + timedelta(days=1), verdict=kind, runs=1) for kind in KINDS]
    assert len(bars(str(timeline(rows, TODAY)))) == len(KINDS)
