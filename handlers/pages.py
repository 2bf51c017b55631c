"""What the App shows in a browser: a run's page with its files, the front page, the figures. Reads the store and nothing else.

A run's address cannot be guessed and is its only key, so no page tells it on: no referrer, no index, no cache, no list.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from importlib import metadata
from threading import Lock

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import TransientError
from bot.models.attempt import Script
from bot.models.report import Report
from bot.models.run import Run, RunState
from bot.render import proof
from bot.render.comment import scrubbed
from bot.render.html import page
from bot.render.html.view import view
from bot.render.report_json import report_text
from bot.render.sanitize import redact
from bot.service.ports import Store
from bot.settings import Settings

_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")
_MOST_NUMBER = 100_000
_FRESH_S = 5.0
_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}
_FILE = _HEADERS | {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox"}
_LASTING = _HEADERS | {"Cache-Control": "public, max-age=31536000, immutable"}
_PLAIN = "text/plain; charset=utf-8"

Answer = Callable[[Request], Response]


def routes(store: Store, settings: Settings) -> list[BaseRoute]:
    """The pages, to be put behind the App's own routes: the last one answers whatever is left."""
    pages = Pages(store, settings)
    return [
        Route("/", _told(pages.landing)),
        Route("/metrics", _told(pages.metrics)),
        Route("/static/style.css", lambda _: _asset(page.STYLE, "text/css; charset=utf-8")),
        Route("/static/icon.svg", lambda _: _asset(page.ICON, "image/svg+xml")),
        Route("/runs/{run}", _told(pages.run)),
        Route("/runs/{run}/repro.py", _told(pages.script)),
        Route("/runs/{run}/original.py", _told(pages.original)),
        Route("/runs/{run}/report.json", _told(pages.report)),
        Route("/runs/{run}/logs/{number}", _told(pages.log)),
        Route("/{rest:path}", _elsewhere),
    ]


class Pages:
    """The pages over a store. The endpoints are plain functions: the store is asked in a thread."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._github_url = settings.github_url
        self._secrets = settings.secrets
        rooms = "apps" if settings.github_url == "https://github.com" else "github-apps"
        self._app = f"{settings.github_url}/{rooms}/{settings.app_slug}" if settings.app_slug else ""
        self._version = metadata.version("reprise")
        self._figures = _Recent(lambda: (store.counts(), store.switches()), clock)

    def landing(self, _request: Request) -> Response:
        """What this place is, and how it is."""
        counts, switches = self._figures()
        off = redact(switches.get("all") or "by the host.", self._secrets) if "all" in switches else ""
        return HTMLResponse(page.landing(counts, off=off, app=self._app, version=self._version), headers=_HEADERS)

    def metrics(self, _request: Request) -> Response:
        """Prometheus' text format."""
        counts, switches = self._figures()
        text = page.metrics(counts, len(switches), self._version)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8", headers=_FILE)

    def run(self, request: Request) -> Response:
        """The page of a run."""
        run = self._run(request)
        if run is None:
            return _missing()
        report = self._store.report(run.id)
        shown = view(
            run,
            report,
            self._store.attempts(run.id) if report is None else (),
            github_url=self._github_url,
            now=datetime.now(UTC),
            ahead=self._store.ahead(run.id) if run.state is RunState.QUEUED else 0,
            secrets=self._secrets,
        )
        return HTMLResponse(page.run_page(shown), headers=_HEADERS)

    def script(self, request: Request) -> Response:
        """The script as it stands on the page, to be saved."""
        report = self._report(request)
        return self._program(report.script if report is not None else None, "repro.py")

    def original(self, request: Request) -> Response:
        """The script as it was before it was made smaller."""
        report = self._report(request)
        smaller = proof.smaller(report.reduced) if report is not None else None
        return self._program(smaller.before if smaller is not None else None, "original.py")

    def _program(self, script: Script | None, name: str) -> Response:
        if script is None:
            return _missing()
        text = scrubbed(script, self._secrets).source
        return Response(text, media_type="text/x-python; charset=utf-8", headers=_FILE | _saved(name))

    def report(self, request: Request) -> Response:
        """The report for programs."""
        report = self._report(request)
        if report is None:
            return _missing()
        return Response(report_text(report, secrets=self._secrets), media_type="application/json", headers=_FILE)

    def log(self, request: Request) -> Response:
        """What one run of the program printed, as text and nothing else."""
        run, number = self._run(request), request.path_params["number"]
        if run is None or not re.fullmatch("[0-9]{1,6}", number) or not 0 < int(number) <= _MOST_NUMBER:
            return _missing()
        text = self._store.log(run.id, int(number))
        return Response(redact(text, self._secrets), media_type=_PLAIN, headers=_FILE) if text else _missing()

    def _run(self, request: Request) -> Run | None:
        name = request.path_params["run"]
        return self._store.run(name) if _ID.fullmatch(name) else None

    def _report(self, request: Request) -> Report | None:
        run = self._run(request)
        return self._store.report(run.id) if run is not None else None


Figures = tuple[dict[str, int], dict[str, str]]


class _Recent:
    """Figures that are read at most every few seconds, however many ask for them."""

    def __init__(self, read: Callable[[], Figures], clock: Callable[[], float]) -> None:
        self._read, self._clock, self._lock = read, clock, Lock()
        self._at = float("-inf")
        self._held: Figures = ({}, {})

    def __call__(self) -> Figures:
        with self._lock:
            if self._clock() - self._at > _FRESH_S:
                self._held, self._at = self._read(), self._clock()
            return self._held


def _told(answer: Answer) -> Answer:
    """A page that says so when the store does not answer."""

    @wraps(answer)
    def told(request: Request) -> Response:
        try:
            return answer(request)
        except TransientError:
            text = "The store does not answer right now. Nothing is lost; try again in a minute."
            return HTMLResponse(page.missing("Out of reach", text), 503, _HEADERS | {"Retry-After": "30"})

    return told


def _elsewhere(_request: Request) -> Response:
    return _missing()


def _missing() -> Response:
    text = "There is no page at this address. A run's page goes when the run is older than this host keeps them."
    return HTMLResponse(page.missing("Nothing here", text), 404, _HEADERS)


def _asset(content: bytes, media: str) -> Response:
    return Response(content, media_type=media, headers=_LASTING)


def _saved(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}
