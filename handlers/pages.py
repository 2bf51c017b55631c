"""The pages of the App: a run with its files, the front page, the metrics, the health checks,
the setup pages. They only read the store.
"""

import asyncio
import hmac
import ipaddress
import re
import secrets
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import APIRouter, Header, HTTPException, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from bot.app.ports import ALARM_S, CREDENTIALS_ALARM, PULL_REQUEST
from bot.kernel.attempt import Script
from bot.kernel.dialogue import Usage
from bot.kernel.errors import RepriseError
from bot.kernel.journal import ATTEMPTS, LOGS, LOSSES, USAGE
from bot.kernel.outside_text import scrubbed
from bot.kernel.redaction import redact
from bot.kernel.report import IssueReport, RequestedReport
from bot.kernel.run import LIVE, Run, RunState
from bot.kernel.settings import Settings
from bot.report import html
from bot.report.html import LiveDetails, view
from bot.report.paper_json import requested_text
from bot.report.svg import png, standalone, training
from handlers.state import RequestedRun, Web, WebState, without_folders

# The setup flow's pages as HTML, its form, and the manifest of the App.

GITHUB = "https://github.com"
DESCRIPTION = (
    "Reproduces deep-learning bug reports by running them: a verdict with numbers, the script "
    "and the logs."
)
PERMISSIONS = {"metadata": "read", "contents": "read", "issues": "write"}
PULL_REQUESTS = {"contents": "write", "pull_requests": "write"}
"""What `/reproduce pr` needs beyond that; asked for only on request."""

EVENTS = ("issues", "issue_comment", "repository")  # installation events are always sent
WHY = {
    "metadata: read": "GitHub requires it of every App",
    "contents: read": "to read .github/reprise.yml and clone the code under test",
    "issues: write": "to post verdicts, plans and replies, to react, and to set labels",
    "contents: write": "to push a branch reprise/issue-N for /reproduce pr, and to read as above",
    "pull_requests: write": "to open a draft pull request for /reproduce pr",
}
_MAX_NAME = 34  # GitHub's limit
_ORGANISATION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?", re.ASCII)


def manifest(
    name: str, public_url: str, *, hook_url: str = "", pull_requests: bool = False
) -> dict[str, Any]:
    """The manifest of an App served at `public_url`; `hook_url` where deliveries go through a
    tunnel. `pull_requests`: it may open them.
    """
    return {
        "name": name[:_MAX_NAME],
        "description": DESCRIPTION,
        "url": public_url,
        "hook_attributes": {"url": hook_url or f"{public_url}/webhook", "active": True},
        "redirect_url": f"{public_url}/setup/callback",
        "public": False,
        "default_permissions": PERMISSIONS | (PULL_REQUESTS if pull_requests else {}),
        "default_events": list(EVENTS),
    }


def registration_page(github_url: str, organisation: str, state: str) -> str:
    """Where a browser posts the manifest to. Raises ValueError for a name that no organisation
    can have.
    """
    path = "settings/apps/new"
    if organisation:
        if not _ORGANISATION.fullmatch(organisation):
            raise ValueError(organisation)
        path = f"organizations/{organisation}/{path}"
    return f"{github_url}/{path}?state={quote(state, safe='')}"


def app_page(github_url: str, slug: str) -> str:
    """The App's public page; GitHub Enterprise has another path for it."""
    return f"{github_url}/{'apps' if github_url == GITHUB else 'github-apps'}/{slug}"


MAX_FORM_BYTES = 16_384
_FORM_TYPE = "application/x-www-form-urlencoded"
_templates = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)


def setup_page(settings: Settings, page: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of the setup flow; scripts, frames and caching are forbidden."""
    nonce, github = secrets.token_urlsafe(16), settings.github_url
    html = _templates.get_template("setup.html").render(
        page=page,
        nonce=nonce,
        events=EVENTS,
        github=urlsplit(github).netloc,
        port=settings.port,
        app_file=settings.app_file,
        permissions=reasons(values["asked"]["default_permissions"] if "asked" in values else {}),
        **values,
    )
    return HTMLResponse(html, status, _headers(nonce, github))


def reasons(permissions: dict[str, str]) -> list[tuple[str, str]]:
    """Permissions with what they are for; those that every App gets where none are given."""
    levels = permissions or PERMISSIONS
    return [(name, WHY[name]) for name in (f"{what}: {level}" for what, level in levels.items())]


def _headers(nonce: str, github: str) -> dict[str, str]:
    return {
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self' {origin(github)}; "
            "frame-ancestors 'none'; base-uri 'none'"
        ),
        "Referrer-Policy": "strict-origin",  # the address holds the key
    }


def reachable(address: str, github_url: str) -> bool:
    """Whether GitHub may be able to deliver to an address, as far as the address shows."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return True
    return not ip.is_loopback and not ip.is_unspecified and (github_url != GITHUB or ip.is_global)


def origin(address: str) -> str:
    """Scheme, host and port of an address."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


async def read_form(request: Request) -> dict[str, str] | None:
    """The fields of a posted form, None when the body is no form or too long."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM_TYPE:
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            return None
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=16, errors="strict")
    except ValueError:
        return None
    return {name: values[-1].strip() for name, values in fields.items()}


# The pages of the App: a run with its files, the front page, the metrics, the health checks. They
# only read the store.
#
# A run's address cannot be guessed and is its only key. So no page leaks it: no referrer, no
# index, no cache, no list.

READY_S = 2.0
_SHOWN_ATTEMPTS = 100
PAGE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
}
_LIVE_PAGE = {
    "Content-Security-Policy": f"{PAGE['Content-Security-Policy']}; script-src 'self'; "
    "connect-src 'self'"
}
_TAIL = 20  # lines
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
    text = html.landing(
        counts,
        off=redact(reason, settings.strong_secrets) if "all" in switches else "",
        app=app_page(settings.github_url, settings.app_slug) if settings.app_slug else "",
        version=VERSION,
    )
    return HTMLResponse(text, headers=PAGE)


@_get("/metrics")
def metrics(web: Web, authorization: Annotated[str, Header()] = "") -> Response:
    """Figures in Prometheus' text format, for those who have the token."""
    token = web.settings.metrics_token
    if token is None or not token.get_secret_value():
        raise HTTPException(404)
    expected_header = f"Bearer {token.get_secret_value()}"
    if not hmac.compare_digest(authorization.encode(), expected_header.encode()):
        return PlainTextResponse("A token is required.\n", 401, {"WWW-Authenticate": "Bearer"})
    counts, switches = web.counts.read()
    has_refusal = bool(web.store.shared(CREDENTIALS_ALARM, ALARM_S))
    text = html.metrics(counts, len(switches), VERSION, has_refusal=has_refusal)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@_get("/static/style.css")
async def style() -> Response:
    """The style sheet of every page."""
    return Response(html.STYLE, media_type="text/css; charset=utf-8", headers=_ASSET)


@_get("/static/icon.svg")
async def icon() -> Response:
    """The icon of every page."""
    return Response(html.ICON, media_type="image/svg+xml", headers=_ASSET)


@_get("/static/live.js")
async def live_script() -> Response:
    """The script of a run's page while the run is live."""
    return Response(html.LIVE_JS, media_type="text/javascript; charset=utf-8", headers=_ASSET)


@_get("/runs/{run}")
def run_page(run: RequestedRun, web: Web, request: Request) -> Response:
    """The page of a run."""
    text = render_run(run, web, request.path_params["run"])
    return HTMLResponse(text, headers=_LIVE_PAGE if run.state in LIVE else PAGE)


def render_run(run: Run, web: WebState, name: str) -> str:
    """The page of a run as it is now; `name` is what the address calls the run."""
    report = web.store.report(run.id)
    run_view = view(
        run,
        report,
        web.store.entries(run.id, ATTEMPTS, last=_SHOWN_ATTEMPTS) if report is None else (),
        github_url=web.settings.github_url,
        now=datetime.now(UTC),
        ahead=web.store.ahead(run.id) if run.state is RunState.QUEUED else 0,
        secrets=web.settings.strong_secrets,
        name=name,
        pull=pull_number(run, web),
        so_far=_details(run, web) if run.state in LIVE and report is None else None,
    )
    return html.run_page(run_view)


def _details(run: Run, web: WebState) -> LiveDetails:
    return LiveDetails(
        output=_last_output(run, web),
        usage=sum(web.store.entries(run.id, USAGE, last=1), Usage()),
        curves=web.store.entries(run.id, LOSSES, last=1),
    )


def _last_output(run: Run, web: WebState) -> str:
    """The end of what the newest run of the program printed."""
    logs = web.store.entries(run.id, LOGS, last=1)
    text = "\n".join(logs[0].text.rstrip().splitlines()[-_TAIL:]) if logs else ""
    return without_folders(web.settings, text)


def pull_number(run: Run, web: WebState) -> int | None:
    """The number of the pull request of a run's issue, None when we opened none."""
    where, number = run.request.repository.full_name, run.request.number
    comment = web.store.comment(where, number, PULL_REQUEST)
    return comment.comment if comment is not None else None


@_get("/runs/{run}/repro.py")
def script(run: RequestedRun, web: Web) -> Response:
    """The script shown on the page."""
    return _download(_issue_report(run, web).script, "repro.py", web)


@_get("/runs/{run}/original.py")
def original(run: RequestedRun, web: Web) -> Response:
    """The script before minimization."""
    reduced = _issue_report(run, web).reduced
    is_shorter = reduced is not None and reduced.is_smaller
    return _download(reduced.before if reduced and is_shorter else None, "original.py", web)


@_get("/runs/{run}/report.json")
def report_file(run: RequestedRun, web: Web) -> Response:
    """The report for programs."""
    hide = partial(without_folders, web.settings)
    text = requested_text(_report(run, web), secrets=web.settings.strong_secrets, hide=hide)
    return Response(text, media_type="application/json")


@_get("/runs/{run}/plot.png")
def plot(run: RequestedRun, web: Web) -> Response:
    """The curves of the training run that was diagnosed, or of the paper's command."""
    report = _report(run, web)
    if isinstance(report, IssueReport):
        curves = report.diagnosis.curves if report.diagnosis is not None else ()
    else:
        curves = report.result.curves
    svg = training(curves) if curves else ""
    if not svg:
        raise HTTPException(404)
    return Response(png(standalone(svg)), media_type="image/png")


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
    return HTMLResponse(html.missing("Not found", text), 404, PAGE)


async def expired(_request: Request, error: Exception) -> Response:
    """The page for a link to a private run that no longer counts."""
    text = getattr(error, "detail", "")
    return HTMLResponse(html.missing("Link expired", text), 403, PAGE)


async def unavailable(_request: Request, _error: Exception) -> Response:
    """The page shown while the store does not answer."""
    text = "The database does not answer right now. Nothing is lost; try again in a minute."
    return HTMLResponse(html.missing("Unavailable", text), 503, PAGE | {"Retry-After": "30"})


def _report(run: RequestedRun, web: Web) -> RequestedReport:
    report = web.store.report(run.id)
    if report is None:
        raise HTTPException(404)
    return report


def _issue_report(run: RequestedRun, web: Web) -> IssueReport:
    report = _report(run, web)
    if not isinstance(report, IssueReport):
        raise HTTPException(404)
    return report


def _download(program: Script | None, name: str, web: Web) -> Response:
    if program is None:
        raise HTTPException(404)
    text = scrubbed(program, web.settings.strong_secrets).source
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/x-python; charset=utf-8", headers=headers)
