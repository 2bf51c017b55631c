"""Every answer of every route, whatever the method and whatever goes wrong: nothing is cached,
indexed, framed, guessed or told to other sites, and no script runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import httpx
import pytest
from starlette.routing import BaseRoute, Mount, Route

from bot.kernel.errors import TransientError
from handlers import api, pages
from handlers.app import create
from handlers.setup import Setup
from tests.integration.pages.site import METRICS, SETTINGS, Site, served
from tests.support.fakes import InlineQueue, MemoryStore

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
CONSTANT = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}
ONCE = (*CONSTANT, "cache-control", "content-security-policy", "referrer-policy")
OTHERS = ("/nothing", "/api", "/api/", "/api/runs/", "/api/docs", "/api/nothing", "/api/runs?id=x")
NAMES = ("0" * 32, "x", "%00", "a" * 5_000)


class Failing(MemoryStore):
    """A store in which everything that a page asks for raises one error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def run(self, run: str) -> None:
        raise self.error

    def counts(self) -> dict[str, int]:
        raise self.error

    def shared(self, name: str, within_s: float | None = None) -> str:
        raise self.error


def templates(routes: list[BaseRoute], at: str = "") -> Iterator[str]:
    """The paths of routes and of the applications mounted among them, with their parameters."""
    for route in routes:
        if isinstance(route, Mount):
            yield from templates(route.routes, at + route.path)
        elif isinstance(route, Route):
            yield at + route.path


def addresses(names: tuple[str, ...]) -> list[str]:
    """Every path of the App, with each of these names of runs."""
    app = create(SETTINGS, MemoryStore(), InlineQueue())
    written = [*templates(app.routes), *templates(pages.router.routes)]
    written += templates(api.router.routes, "/api")
    assert {"/webhook", "/runs/{run}/repro.py", "/api/runs/{run}", "/metrics"} <= set(written)
    numbered = [path.replace("{number:int}", "1") for path in written]
    filled = [path.replace("{run}", name) for path, name in product(numbered, names)]
    return list(dict.fromkeys([*filled, *OTHERS]))


def walk(url: str, paths: list[str]) -> tuple[list[str], Counter[int]]:
    """What is wrong with the answers to every method at these paths, and how often each status
    was answered.
    """
    problems, statuses = list[str](), Counter[int]()
    token = {"Authorization": f"Bearer {METRICS}"}
    fresh = httpx.Limits(max_keepalive_connections=0)  # the server closes one after a defect
    with httpx.Client(base_url=url, headers=token, limits=fresh) as client:
        for path, method in product(paths, METHODS):
            answer = client.request(method, path)
            statuses[answer.status_code] += 1
            wrong = sorted(_wrong(answer, path))
            problems += [f"{method} {path[:60]}: {answer.status_code}: {wrong}"] if wrong else []
    return problems, statuses


def _wrong(answer: httpx.Response, path: str) -> Iterator[str]:
    headers = answer.headers
    yield from (name for name in ONCE if len(headers.get_list(name)) != 1)
    yield from (name for name, value in CONSTANT.items() if headers.get(name) != value)
    asset = answer.status_code == 200 and path.startswith("/static/")
    if not asset and headers.get("cache-control") != "no-store":
        yield "cache-control is not no-store"
    if headers.get("referrer-policy") not in {"no-referrer", "strict-origin"}:
        yield "referrer-policy"
    policy = headers.get("content-security-policy", "")
    if not policy.startswith("default-src 'none'") or re.search(r"script|unsafe|\*", policy):
        yield "content-security-policy"
    if headers.get("content-type", "").startswith("text/html") and "<script" in answer.text:
        yield "a script"


def test_every_answer_of_the_app(pages: Site) -> None:
    problems, statuses = walk(pages.url, addresses((*NAMES, pages.runs["reproduced"])))
    assert problems == []
    assert {200, 307, 401, 404, 405, 422} <= set(statuses)


@pytest.mark.parametrize(
    ("error", "status"), [(TransientError("The database is away."), 503), (ValueError("x"), 500)]
)
def test_every_answer_while_the_store_fails(error: Exception, status: int) -> None:
    app = create(SETTINGS, Failing(error), InlineQueue())
    with served(app) as url:
        problems, statuses = walk(url, addresses(("0" * 32,)))
    assert problems == []
    assert statuses[status] > 10


def test_an_expired_link_and_a_missing_token_too(pages: Site) -> None:
    for path in ("/metrics", f"/runs/{pages.runs['reproduced']}.1.{'0' * 32}"):
        answer = httpx.get(pages.url + path)
        assert answer.status_code in {401, 404, 403}
        assert sorted(_wrong(answer, path)) == []


def test_every_answer_of_the_setup_page(tmp_path: Path) -> None:
    settings = SETTINGS.model_copy(update={"app_file": tmp_path / "reprise-app.env"})
    setup = Setup(settings, lambda _kept: None)
    paths = [*templates(setup.app.routes), f"/setup?key={setup.key}", "/webhook", "/nothing"]
    with served(setup.app) as url:
        problems, statuses = walk(url, [path.replace("{rest:path}", "x") for path in paths])
    assert problems == []
    assert {200, 403, 404, 405, 503} <= set(statuses)
