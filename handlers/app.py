"""The web application: GitHub's deliveries, two questions about health, and the pages that others add."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.errors import UserError
from bot.service.ports import Queue, Store
from bot.settings import Settings
from handlers.inbox import Inbox
from handlers.policy import Us
from handlers.receiving import Webhook

READY_S = 2.0
YOUNG = 20_000  # objects between two looks for garbage; a delivery leaves none behind that counting does not find
SWITCH_S = 0.0005  # threads here work in slices shorter than Python's own 5 ms, and answers wait for them


class App(Starlette):
    """Routes as usual, but for deliveries: nothing stands between the server and what receives them."""

    webhook: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's request, or the process's beginning and end."""
        if scope["type"] == "http" and scope["path"] == "/webhook" and scope["method"] == "POST":
            await self.webhook(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create(settings: Settings, store: Store, queue: Queue, *, extra_routes: Sequence[BaseRoute] = ()) -> App:
    """The application. Raises UserError when there is no secret to verify deliveries with: nothing is served without."""
    secret = settings.webhook_secret.get_secret_value().strip() if settings.webhook_secret else ""
    if not secret:
        raise UserError(
            "There is no webhook secret, so no delivery could be told from a forged one.",
            "Set REPRISE_WEBHOOK_SECRET to the secret of the App, or register the App on the setup page.",
        )
    inbox = Inbox(store, queue)
    webhook = Webhook(secret, Us(settings.app_id, settings.app_slug), inbox)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        gc.collect()
        sys.setswitchinterval(SWITCH_S)
        gc.set_threshold(YOUNG, 20, 50)
        gc.freeze()  # what lives as long as the process is not walked again while a delivery waits
        yield
        await asyncio.to_thread(inbox.close)

    app = App(
        routes=[
            Route("/webhook", webhook, methods=["POST"]),
            Route("/healthz", healthy),
            Route("/readyz", Readiness(store).answer),
            *extra_routes,
        ],
        lifespan=lifespan,
    )
    app.webhook = webhook
    return app


async def healthy(_request: Request) -> Response:
    """The process answers."""
    return PlainTextResponse("ok\n")


class Readiness:
    """Whether the store answers, asked once for all who want to know at the same time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asking: asyncio.Task[dict[str, str]] | None = None

    async def answer(self, _request: Request) -> Response:
        """200, or 503 when the store fails or takes longer than two seconds."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(self._store.switches))
        done, _ = await asyncio.wait({self._asking}, timeout=READY_S)
        if done and self._asking.exception() is None:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "waiting", "reason": "the store does not answer"}, 503)
