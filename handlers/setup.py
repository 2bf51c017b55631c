"""The setup page: registers the App by GitHub's manifest flow, for whoever holds the key that the server's console shows."""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.adapters import registration
from bot.adapters.registration import Kept, Registration
from bot.errors import TransientError, UserError
from bot.settings import Settings
from handlers.manifest import ALWAYS, EVENTS, FOR_PULL_REQUESTS, WHY, destination, manifest

STATE_S = 3600.0  # GitHub's own limit on the code
MOST_STATES = 64
MOST_FORM_BYTES = 16_384
_GITHUB = "https://github.com"
_log = logging.getLogger("reprise.setup")
_pages = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)


class Setup:
    """One registration, from the form to the files. `done` is called once the last answer is on its way."""

    def __init__(self, settings: Settings, done: Callable[[Kept], None], now: Callable[[], float] = time.monotonic) -> None:
        self.key = secrets.token_urlsafe(32)
        self._settings = settings
        self._done = done
        self._now = now
        self._states: dict[str, float] = {}
        self._finished = False

    @property
    def app(self) -> Starlette:
        """What is served until the App is registered; GitHub is asked to come back later."""
        return Starlette(
            routes=[
                Route("/setup", self.form, methods=["GET"]),
                Route("/setup", self.review, methods=["POST"]),
                Route("/setup/callback", self.callback, methods=["GET"]),
                Route("/healthz", _healthy),
                Route("/{rest:path}", self.elsewhere, methods=["GET", "POST"]),
            ]
        )

    async def form(self, request: Request) -> Response:
        """Ask where the App shall live."""
        if not self._admits(request.query_params.get("key", "")):
            return self._page("locked", 403)
        return self._form({"name": f"Reprise-{secrets.token_hex(2)}", "hook": f"{self._settings.public_url}/webhook"})

    async def review(self, request: Request) -> Response:
        """Show what will be asked of GitHub, in a form that a browser sends there."""
        given = await _form(request)
        if given is None or not self._admits(given.get("key", "")):
            return self._page("locked", 403)
        name, organisation = given.get("name", ""), given.get("organisation", "")
        hook, pull_requests = given.get("hook", ""), given.get("pull_requests", "") == "on"
        if not name:
            return self._form(given, "Give the App a name.")
        if urlsplit(hook).scheme not in {"http", "https"} or not urlsplit(hook).hostname:
            return self._form(given, "Deliveries need an address such as https://reprise.example.com/webhook.")
        try:
            action = destination(self._settings.github_url, organisation, self._new_state())
        except ValueError:
            return self._form(given, f"“{organisation}” is no organisation's name: give the name in its address.")
        asked = manifest(name, self._settings.public_url, hook_url=hook, pull_requests=pull_requests)
        permissions = [f"{what}: {level}" for what, level in asked["default_permissions"].items()]
        return self._page(
            "review",
            action=action,
            manifest=json.dumps(asked),
            asked=asked,
            organisation=organisation,
            permissions=[(each, WHY[each]) for each in permissions],
            unreachable=self._unreachable(hook),
        )

    async def callback(self, request: Request) -> Response:
        """GitHub sends the browser back here, with a code that is good for one exchange."""
        if not self._spend(request.query_params.get("state", "")):
            return self._failed("This link was used before, is older than an hour, or was not made here.", "", 403)
        self._finished = True  # nobody else may register one meanwhile
        try:
            made = await run_in_threadpool(registration.convert, request.query_params.get("code", ""), self._settings)
            kept = await run_in_threadpool(registration.keep, made, self._settings.app_file)
        except (UserError, TransientError) as error:
            self._finished = False
            _log.warning("The App was not registered: %s", error)
            return self._failed(str(error), error.fix, 502)
        except OSError as error:
            self._finished = False
            _log.error("The App's credentials could not be written to %s: %s", self._settings.app_file, error.strerror)
            fix = "GitHub has made the App, but tells its key only once: delete it in its settings there and start again."
            return self._failed(f"The credentials could not be written ({error.strerror}).", fix, 500)
        _log.info("The App %s (id %d) is registered; its credentials are in %s", made.slug, made.id, kept.app_file.resolve())
        page = self._page("done", made=made, kept=kept, install=self._install(made))
        page.background = BackgroundTask(self._done, kept)
        return page

    async def elsewhere(self, request: Request) -> Response:
        """Any other address, until there is an App."""
        if request.method == "POST":
            return PlainTextResponse("No App is registered here yet.\n", 503, {"Retry-After": "60"})
        return self._page("locked", 404)

    def _form(self, given: dict[str, str], wrong: str = "") -> Response:
        names = ("name", "organisation", "hook", "pull_requests")
        return self._page(
            "form",
            400 if wrong else 200,
            key=self.key,
            given={each: given.get(each, "") for each in names},
            wrong=wrong,
            unreachable=self._unreachable(given.get("hook", "")),
            always=[(f"{name}: {level}", WHY[f"{name}: {level}"]) for name, level in ALWAYS.items()],
            more=[(f"{name}: {level}", WHY[f"{name}: {level}"]) for name, level in FOR_PULL_REQUESTS.items()],
        )

    def _failed(self, message: str, fix: str, status: int) -> Response:
        return self._page("failed", status, message=message, fix=fix or "Start again at the address that the console shows.")

    def _page(self, page: str, status: int = 200, **values: Any) -> HTMLResponse:
        nonce, github = secrets.token_urlsafe(16), self._settings.github_url
        values = {"github": urlsplit(github).netloc, "port": self._settings.port, "app_file": self._settings.app_file} | values
        html = _pages.get_template("setup.html").render(page=page, nonce=nonce, events=EVENTS, **values)
        policy = (
            f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self' {_origin(github)}; "
            "frame-ancestors 'none'; base-uri 'none'"
        )
        headers = {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "strict-origin",  # the address holds the key
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        return HTMLResponse(html, status, headers)

    def _admits(self, key: str) -> bool:
        return not self._finished and hmac.compare_digest(key.encode(), self.key.encode())

    def _new_state(self) -> str:
        """A state that one callback may spend; the oldest go when there are many."""
        state = secrets.token_urlsafe(32)
        self._states[state] = self._now() + STATE_S
        while len(self._states) > MOST_STATES:
            del self._states[next(iter(self._states))]
        return state

    def _spend(self, given: str) -> bool:
        """Whether a state is ours, fresh and unspent; it is spent now. Every known one is compared, in constant time."""
        known = [state for state in self._states if hmac.compare_digest(state.encode(), given.encode())]
        return any(self._states.pop(state) >= self._now() for state in known) and not self._finished

    def _unreachable(self, hook: str) -> bool:
        return not reachable(hook, self._settings.github_url)

    def _install(self, made: Registration) -> str:
        """Where the new App is installed; only ever on the GitHub that was asked."""
        github = self._settings.github_url
        ours = _origin(made.html_url) == _origin(github)
        rooms = "apps" if github == _GITHUB else "github-apps"
        return f"{made.html_url if ours else f'{github}/{rooms}/{made.slug}'}/installations/new"


def reachable(address: str, github_url: str) -> bool:
    """Whether GitHub may be able to deliver to an address, as far as the address tells."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        place = ipaddress.ip_address(host)
    except ValueError:
        return True
    return not place.is_loopback and not place.is_unspecified and (github_url != _GITHUB or place.is_global)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


async def _form(request: Request) -> dict[str, str] | None:
    """A posted form's fields, None when it is none."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        return None
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_FORM_BYTES:
            return None
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=16, errors="strict")
    except ValueError:
        return None
    return {name: values[-1].strip() for name, values in fields.items()}


async def _healthy(_request: Request) -> Response:
    return PlainTextResponse("ok\n")
