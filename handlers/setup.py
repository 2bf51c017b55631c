"""The setup page: registers the App by GitHub's manifest flow, for anyone with the key that the
server's console shows.
"""

import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.app.github import registration
from bot.app.github.registration import Registration, RegistrationFiles
from bot.kernel.errors import TransientError, UserError
from bot.kernel.settings import Settings
from handlers.pages import (
    app_page,
    healthz,
    manifest,
    origin,
    reachable,
    read_form,
    registration_page,
    setup_page,
)
from handlers.state import UNTRACED

STATE_S = 3600.0  # GitHub's own limit on the code
MAX_STATES = 64
_FIELDS = ("name", "organisation", "hook", "pull_requests")
_AGAIN = "Start again at the address that the console shows."
_log = logging.getLogger("reprise.setup")


class States:
    """The `state` values of forms sent to GitHub; each is good for one callback."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._expiries: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._expiries)

    def new(self) -> str:
        """A fresh state. When there are many, the oldest are dropped."""
        state = secrets.token_urlsafe(32)
        self._expiries[state] = self._now() + STATE_S
        while len(self._expiries) > MAX_STATES:
            del self._expiries[next(iter(self._expiries))]
        return state

    def spend(self, state_value: str) -> bool:
        """Whether a state is known, fresh and unspent; it is spent now. Every known one is
        compared, in constant time.
        """
        matches = [state for state in self._expiries if _same(state, state_value)]
        return any(self._expiries.pop(state) >= self._now() for state in matches)


class Setup:
    """One registration, from the form to the files. `done` is called after the last response."""

    def __init__(
        self,
        settings: Settings,
        on_registration: Callable[[RegistrationFiles], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key = secrets.token_urlsafe(32)
        self.states = States(now)
        self._settings = settings
        self._page = partial(setup_page, settings)
        self._done = on_registration
        self._finished = False

    @property
    def app(self) -> FastAPI:
        """The application until the App is registered; GitHub is told to retry later."""
        app = FastAPI(title="Reprise setup", openapi_url=None, telemetry=UNTRACED)
        app.add_route("/setup", self.form, methods=["GET"])
        app.add_route("/setup", self.review, methods=["POST"])
        app.add_route("/setup/callback", self.callback, methods=["GET"])
        app.add_api_route("/healthz", healthz)
        app.add_route("/{rest:path}", self.elsewhere, methods=["GET", "POST"])
        return app

    async def form(self, request: Request) -> Response:
        """Ask for the App's name, owner and address."""
        if not self._admits(request.query_params.get("key", "")):
            return self._page("locked", 403)
        name, hook = f"Reprise-{secrets.token_hex(2)}", f"{self._settings.public_url}/webhook"
        return self._form({"name": name, "hook": hook})

    async def review(self, request: Request) -> Response:
        """Show what GitHub will be asked for, in a form that a browser posts there."""
        form = await read_form(request)
        if form is None or not self._admits(form.get("key", "")):
            return self._page("locked", 403)
        name, organisation = form.get("name", ""), form.get("organisation", "")
        hook = form.get("hook", "")
        if problem := _problem(name, hook):
            return self._form(form, problem)
        try:
            target = registration_page(self._settings.github_url, organisation, self.states.new())
        except ValueError:
            problem = f"“{organisation}” cannot be an organisation: use the name in its address."
            return self._form(form, problem)
        pulls = form.get("pull_requests") == "yes"
        manifest_data = manifest(
            name, self._settings.public_url, hook_url=hook, pull_requests=pulls
        )
        return self._page(
            "review",
            action=target,
            manifest=json.dumps(manifest_data),
            asked=manifest_data,
            organisation=organisation,
            unreachable=self._unreachable(manifest_data["hook_attributes"]["url"]),
        )

    async def callback(self, request: Request) -> Response:
        """GitHub sends the browser back here, with a code that is good for one exchange."""
        if not self.states.spend(request.query_params.get("state", "")) or self._finished:
            reason = "This link was used before, is older than an hour, or was not made here."
            return self._page("failed", 403, message=reason, fix=_AGAIN)
        self._finished = True  # no second registration meanwhile
        try:
            code = request.query_params.get("code", "")
            app, files = await run_in_threadpool(self._register, code)
        except (UserError, TransientError) as error:
            self._finished = False
            _log.warning("The App was not registered: %s", error)
            return self._page("failed", 502, message=str(error), fix=error.fix or _AGAIN)
        except OSError as error:
            self._finished = False
            return self._not_written(error)
        page = self._page("done", made=app, kept=files, install=self._installation_page(app))
        page.background = BackgroundTask(self._done, files)
        return page

    async def elsewhere(self, request: Request) -> Response:
        """Any other address, until there is an App."""
        if request.method == "POST":
            return PlainTextResponse("No App is registered here yet.\n", 503, {"Retry-After": "60"})
        return self._page("locked", 404)

    def _form(self, form: dict[str, str], problem: str = "") -> Response:
        return self._page(
            "form",
            400 if problem else 200,
            key=self.key,
            given={name: form.get(name, "") for name in _FIELDS},
            wrong=problem,
            unreachable=self._unreachable(form.get("hook", "")),
        )

    def _unreachable(self, hook: str) -> bool:
        return not reachable(hook, self._settings.github_url)

    def _register(self, code: str) -> tuple[Registration, RegistrationFiles]:
        """Trade the code for the App's credentials and write them to their files."""
        app = registration.convert(code, self._settings)
        files = registration.keep(app, self._settings.app_file)
        where = files.app_file.resolve()
        _log.info("The App %s (id %d) is registered; credentials: %s", app.slug, app.id, where)
        return app, files

    def _not_written(self, error: OSError) -> Response:
        path, reason = self._settings.app_file, error.strerror
        _log.error("The App's credentials could not be written to %s: %s", path, reason)
        fix = (
            "GitHub has created the App but shows its key only once. Delete the App in its GitHub "
            "settings and start again."
        )
        message = f"The credentials could not be written ({reason})."
        return self._page("failed", 500, message=message, fix=fix)

    def _admits(self, key: str) -> bool:
        return not self._finished and _same(key, self.key)

    def _installation_page(self, app: Registration) -> str:
        """Where the new App is installed; always on the GitHub that was asked."""
        github = self._settings.github_url
        ours = origin(app.html_url) == origin(github)
        return f"{app.html_url if ours else app_page(github, app.slug)}/installations/new"


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _problem(name: str, hook: str) -> str:
    if not name:
        return "Give the App a name."
    if urlsplit(hook).scheme not in {"http", "https"} or not urlsplit(hook).hostname:
        return "Give a webhook address such as https://reprise.example.com/webhook."
    return ""
