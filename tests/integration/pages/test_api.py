"""The JSON API for runs: typed answers, errors as JSON, and nobody finds a run without its id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.app.ports import PULL_REQUEST, OurComment
from bot.kernel.errors import TransientError
from bot.kernel.outside_text import shorten_paths
from bot.report.report_json import report_json
from handlers.app import create
from tests.golden.stages import REPORTS
from tests.integration.pages.site import SECRET, SETTINGS, Site, served
from tests.support.fakes import InlineQueue, MemoryStore


def asked(site: Site, path: str, status: int = 200) -> Any:
    answer = site.get(path)
    assert answer.status == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    return json.loads(answer.body)


@pytest.mark.parametrize("name", REPORTS)
def test_a_run_is_its_state_and_what_report_json_holds(pages: Site, name: str) -> None:
    run = asked(pages, f"/api/runs/{pages.runs[name]}")
    assert (run["state"], run["verdict"]) == ("finished", REPORTS[name].verdict.kind)
    assert (run["repository"], run["requester"]) == ("acme/pool", "octocat")
    assert run["url"].endswith(f"/runs/{run['id']}")
    assert run["report"] == report_json(REPORTS[name], secrets=[SECRET], hide=shorten_paths)


def test_the_pull_request_of_the_issue_is_linked(pages: Site) -> None:
    run = pages.runs["reproduced"]
    assert asked(pages, f"/api/runs/{run}")["pull_request"] == ""
    request = pages.store.run(run).request
    opened = OurComment(repository="acme/pool", number=request.number, key=PULL_REQUEST, comment=7)
    pages.store.put_comment(opened)
    address = "https://github.com/acme/pool/pull/7"
    assert asked(pages, f"/api/runs/{run}")["pull_request"] == address
    assert f'href="{address}"' in pages.get(f"/runs/{run}").text
    assert 'reprise_pull_requests{state="opened"}' in pages.get("/metrics").text
    pages.store.forget_comment("acme/pool", request.number, PULL_REQUEST)


def test_a_live_run_has_no_report_yet(pages: Site) -> None:
    run = asked(pages, f"/api/runs/{pages.runs['live']}")
    assert (run["state"], run["stage"], run["report"]) == ("running", "confirm", None)
    assert run["finished_at"] is None


def test_a_defect_is_not_told_to_strangers(pages: Site) -> None:
    run = asked(pages, f"/api/runs/{pages.runs['broken']}")
    assert run["state"] == "failed"
    assert "internal" not in json.dumps(run)


def test_runs_are_looked_up_by_id(pages: Site) -> None:
    live, queued = pages.runs["live"], pages.runs["queued"]
    found = asked(pages, f"/api/runs?id={live}&id={queued}&id={'0' * 32}&id=x&id={live}")
    assert [run["id"] for run in found["runs"]] == [live, queued]
    asked(pages, "/api/runs", 422)
    asked(pages, "/api/runs?" + "&".join(f"id={number:032}" for number in range(51)), 422)


@pytest.mark.parametrize("path", ["/api/runs/" + "0" * 32, "/api/runs/x", "/api/nothing"])
def test_what_is_not_there_is_said_in_json(pages: Site, path: str) -> None:
    assert set(asked(pages, path, 404)) == {"detail"}


def test_an_answer_is_cached_and_indexed_by_nobody(pages: Site) -> None:
    headers = pages.get(f"/api/runs/{pages.runs['live']}").headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Robots-Tag"].startswith("noindex")
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_api_describes_itself(pages: Site) -> None:
    description = asked(pages, "/api/openapi.json")
    assert set(description["paths"]) == {"/runs", "/runs/{run}", "/runs/{run}/repository"}
    schemas = description["components"]["schemas"]
    assert {"RunWithReport", "RunStatuses", "Published", "ApiError"} <= set(schemas)
    assert 'href="/api/openapi.json"' in pages.get("/").text
    assert pages.get("/openapi.json").status == 404


@pytest.mark.parametrize("path", ["/api/docs", "/api/docs/oauth2-redirect", "/api/redoc"])
def test_no_page_of_the_api_brings_scripts_from_elsewhere(pages: Site, path: str) -> None:
    assert set(asked(pages, path, 404)) == {"detail"}


class Away(MemoryStore):
    """A store that has lost its database."""

    def run(self, run: str) -> None:
        raise TransientError("The database does not answer: password=hunter2.")


def test_a_store_that_is_away_is_said_in_json() -> None:
    store = Away()
    with served(create(SETTINGS, store, InlineQueue())) as url:
        answer = Site(url, store, {}).get("/api/runs/" + "0" * 32)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "30")
    assert "hunter2" not in answer.text
    assert set(json.loads(answer.body)) == {"detail"}
