"""The pages of the App: a run with its files, the front page, the metrics, the health checks.
They only read the store.

A run's address cannot be guessed and is its only key. So no page leaks it: no referrer, no
index, no cache, no list.
"""

import asyncio
import hmac
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from bot.errors import RepriseError
from bot.models.attempt import Script
from bot.models.journal import ATTEMPTS, LOGS
from bot.models.report import Report
from bot.models.run import Run, RunState
from bot.render.html import page
from bot.render.html.svg.training import standalone, training
from bot.render.html.view import view
from bot.render.phrases.program import smaller
from bot.render.raster import png
from bot.render.report_json import report_text
from bot.service.ports.store import ALARM_S, CREDENTIALS_ALARM, PULL_REQUEST
from bot.text.sanitize import redact, scrubbed
from handlers.setup_pages import app_page
from handlers.state import RequestedRun, Web, WebState, without_folders

READY_S = 2.0
_SHOWN_ATTEMPTS = 100
_PAGE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
}
_ASSET = {"Cache-Control": "public, max-age=31536000, immutable"}
VERSION = metadata.version("reprise")

router = APIRouter()
_get = partial(router.api_route, methods=["GET", "HEAD"])


@_get("/")
def landing(web: Web) -> Response:
    """The front page: what Reprise is, and its current state."""
    counts, switches = web.counts.read()
    settings = web.settings
    reason = switches.get("all") or "by the operator."
    text = page.landing(
        counts,
        off=redact(reason, settings.strong_secrets) if "all" in switches else "",
        app=app_page(settings.github_url, settings.app_slug) if settings.app_slug else "",
        version=VERSION,
    )
    return HTMLResponse(text, headers=_PAGE)


@_get("/metrics")
def metrics(web: Web, authorization: Annotated[str, Header()] = "") -> Response:
    """Figures in Prometheus' text format, for those who have the token."""
    token = web.settings.metrics_token
    if token is None or not token.get_secret_value():
        raise HTTPException(404)
    wanted = f"Bearer {token.get_secret_value()}"
    if not hmac.compare_digest(authorization.encode(), wanted.encode()):
        return PlainTextResponse("A token is required.\n", 401, {"WWW-Authenticate": "Bearer"})
    counts, switches = web.counts.read()
    refused = bool(web.store.shared(CREDENTIALS_ALARM, ALARM_S))
    text = page.metrics(counts, len(switches), VERSION, refused=refused)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@_get("/static/style.css")
async def style() -> Response:
    """The style sheet of every page."""
    return Response(page.STYLE, media_type="text/css; charset=utf-8", headers=_ASSET)


@_get("/static/icon.svg")
async def icon() -> Response:
    """The icon of every page."""
    return Response(page.ICON, media_type="image/svg+xml", headers=_ASSET)


@_get("/runs/{run}")
def run_page(run: RequestedRun, web: Web, request: Request) -> Response:
    """The page of a run."""
    report = web.store.report(run.id)
    shown = view(
        run,
        report,
        web.store.entries(run.id, ATTEMPTS, last=_SHOWN_ATTEMPTS) if report is None else (),
        github_url=web.settings.github_url,
        now=datetime.now(UTC),
        ahead=web.store.ahead(run.id) if run.state is RunState.QUEUED else 0,
        secrets=web.settings.strong_secrets,
        name=request.path_params["run"],
        pull=pull_number(run, web),
    )
    return HTMLResponse(page.run_page(shown), headers=_PAGE)


def pull_number(run: Run, web: WebState) -> int | None:
    """The number of the pull request of a run's issue, None when we opened none."""
    where, number = run.request.repository.full_name, run.request.number
    known = web.store.comment(where, number, PULL_REQUEST)
    return known.comment if known is not None else None


@_get("/runs/{run}/repro.py")
def script(run: RequestedRun, web: Web) -> Response:
    """The script shown on the page."""
    return _download(_report(run, web).script, "repro.py", web)


@_get("/runs/{run}/original.py")
def original(run: RequestedRun, web: Web) -> Response:
    """The script before minimization."""
    less = smaller(_report(run, web).reduced)
    return _download(less.before if less is not None else None, "original.py", web)


@_get("/runs/{run}/report.json")
def report_file(run: RequestedRun, web: Web) -> Response:
    """The report for programs."""
    hide = partial(without_folders, web.settings)
    text = report_text(_report(run, web), secrets=web.settings.strong_secrets, hide=hide)
    return Response(text, media_type="application/json")


@_get("/runs/{run}/plot.png")
def plot(run: RequestedRun, web: Web) -> Response:
    """The curves of the training run that was diagnosed."""
    diagnosed = _report(run, web).diagnosis
    drawn = training(diagnosed.curves) if diagnosed is not None else ""
    if not drawn:
        raise HTTPException(404)
    return Response(png(standalone(drawn)), media_type="image/png")


@_get("/runs/{run}/logs/{number:int}")
def log(run: RequestedRun, number: int, web: Web) -> Response:
    """What one run of the program printed, as plain text."""
    logs = web.store.entries(run.id, LOGS, key=str(number))
    if not logs:
        raise HTTPException(404)
    text = redact(without_folders(web.settings, logs[0].text), web.settings.strong_secrets)
    return Response(text, media_type="text/plain; charset=utf-8")


@router.get("/healthz")
async def healthz() -> PlainTextResponse:
    """The process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz")
async def readyz(web: Web) -> JSONResponse:
    """200; or 503 when the store fails or takes longer than two seconds, or while GitHub refuses
    the App's credentials.
    """
    try:
        alarm = asyncio.to_thread(web.store.shared, CREDENTIALS_ALARM, ALARM_S)
        reason = await asyncio.wait_for(alarm, READY_S)
    except (RepriseError, TimeoutError):
        reason = "the database does not answer"
    if reason:
        reason = redact(reason, web.settings.strong_secrets)
        return JSONResponse({"status": "waiting", "reason": reason}, 503)
    return JSONResponse({"status": "ready"})


async def not_found(_request: Request, _error: Exception) -> Response:
    """The page for an unknown address."""
    text = "There is no page at this address. Pages of old runs are deleted."
    return HTMLResponse(page.missing("Not found", text), 404, _PAGE)


async def expired(_request: Request, error: Exception) -> Response:
    """The page for a link to a private run that no longer counts."""
    text = getattr(error, "detail", "")
    return HTMLResponse(page.missing("Link expired", text), 403, _PAGE)


async def unavailable(_request: Request, _error: Exception) -> Response:
    """The page shown while the store does not answer."""
    text = "The database does not answer right now. Nothing is lost; try again in a minute."
    return HTMLResponse(page.missing("Unavailable", text), 503, _PAGE | {"Retry-After": "30"})


def _report(run: RequestedRun, web: Web) -> Report:
    report = web.store.report(run.id)
    if report is None:
        raise HTTPException(404)
    return report


def _download(program: Script | None, name: str, web: Web) -> Response:
    if program is None:
        raise HTTPException(404)
    text = scrubbed(program, web.settings.strong_secrets).source
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/x-python; charset=utf-8", headers=headers)
