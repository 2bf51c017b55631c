"""The web application: the webhook, health checks, run pages and the JSON API, behind
headers that keep every answer private.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.app.ports import AppStore, Queue
from bot.app.telemetry import Telemetry
from bot.kernel.errors import TransientError, UserError
from bot.kernel.settings import Settings
from handlers import api, live, pages, run_list
from handlers.events import AppIdentity
from handlers.state import UNTRACED, RecentCounts, WebState
from handlers.webhook import Webhook

# The headers of every answer: nothing is cached, indexed, framed or told to other sites, and
# nothing is loaded or run.

PRIVATE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
}


def with_private_headers(app: ASGIApp) -> ASGIApp:
    """The application with these headers in all its answers, errors included; a header that a
    route sets itself stays.
    """

    async def private(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_private(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in PRIVATE.items():
                    headers.setdefault(name, value)
            await send(message)

        await app(scope, receive, send_private)

    return private


def create(
    settings: Settings, store: AppStore, queue: Queue, telemetry: Telemetry | None = None
) -> FastAPI:
    """The application. Raises UserError without a secret to verify deliveries with."""
    web = WebState(settings, store, RecentCounts(store))
    identity = AppIdentity(settings.app_id, settings.app_slug)
    webhook = Webhook(_secret(settings), identity, store, queue, telemetry)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(webhook.close)

    app = FastAPI(
        title="Reprise",
        openapi_url=None,
        redirect_slashes=False,
        telemetry=UNTRACED,
        lifespan=lifespan,
        exception_handlers={
            403: pages.expired,
            404: pages.not_found,
            TransientError: pages.unavailable,
        },
    )
    app.state.web = web
    app.add_route("/webhook", webhook.receive, methods=["POST"])
    app.include_router(pages.router)
    app.include_router(live.router)
    app.include_router(run_list.router)
    app.mount("/api", api.create(web))
    return app


def _secret(settings: Settings) -> str:
    secret = settings.webhook_secret.get_secret_value().strip() if settings.webhook_secret else ""
    if not secret:
        raise UserError(
            "There is no webhook secret, so Reprise cannot tell forged deliveries from real ones.",
            "Set REPRISE_WEBHOOK_SECRET to the secret of the App, or register the App on the "
            "setup page.",
        )
    return secret
