"""The doors of the fake: REST, git, pages and control, behind one ASGI application."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import Any, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.support.server.access import basic, check_token
from tests.support.server.api import Api
from tests.support.server.call import Call, Refusal, Reply, World
from tests.support.server.control import Control
from tests.support.server.faults import Fault, failed
from tests.support.server.git import SERVICES
from tests.support.server.log import SILENT, Entry
from tests.support.server.pages import issue_page, new_app

PREFIX = "/api/v3"
_GIT = re.compile(
    r"/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?/(?:info/refs|(?P<service>git-upload-pack))"
)
_ISSUE = re.compile(r"/([\w.-]+)/([\w.-]+)/(?:issues|pull)/(\d+)")
_NEW_APP = re.compile(r"(?:/organizations/[\w.-]+)?/settings/apps/new")


class Web:
    """The application."""

    def __init__(self, world: World, api: Api, control: Control) -> None:
        self._world = world
        self._api = api
        self._control = control
        self.clones: list[Entry] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        body = await request.body()
        reply, fault = await run_in_threadpool(self._answer, request, body)
        if fault is not None and fault.kind in SILENT:
            await asyncio.sleep(fault.seconds if fault.kind == "hang" else 0)
            cast(
                "Any", send
            ).__self__.transport.abort()  # uvicorn's own cycle: the only way to say nothing at all
            return
        raw = (
            reply.raw
            if reply.raw is not None
            else b""
            if reply.status == 204
            else json.dumps(reply.body).encode()
        )
        response = Response(
            raw, reply.status, reply.headers, None if reply.status == 204 else reply.media
        )
        await response(scope, receive, send)

    def _answer(self, request: Request, body: bytes) -> tuple[Reply, Fault | None]:
        path = request.scope["raw_path"].decode("ascii", "replace")
        if path.startswith("/-/"):
            return self._control.answer(request.method, path, body), None
        page = None
        if not path.startswith((f"{PREFIX}/", "/repos/")):
            if match := _GIT.fullmatch(path):
                return self._cloned(request, match, body)
            page = self._page(request, path, body)
        if page is not None:
            return page, None
        bare = path.removeprefix(PREFIX) if path.startswith(f"{PREFIX}/") else path
        url = f"{self._world.bodies.web}{path}"
        call = Call(request.method, bare, {}, dict(request.query_params), request.headers, url=url)
        return self._api.answer(call, body)

    def _page(self, request: Request, path: str, body: bytes) -> Reply | None:
        if request.method == "GET" and (match := _ISSUE.fullmatch(path)):
            with self._world.state.lock:
                return issue_page(self._world, *match.groups())
        if request.method == "POST" and _NEW_APP.fullmatch(path):
            return new_app(
                self._world, body.decode("utf-8", "replace"), request.query_params.get("state", "")
            )
        return None

    def _cloned(
        self, request: Request, match: re.Match[str], body: bytes
    ) -> tuple[Reply, Fault | None]:
        entry = Entry(request.method, match.group(), dict(request.query_params), time.monotonic())
        self.clones.append(entry)
        fault = self._api.faults.take(request.method, match.group())
        if fault is not None and fault.kind != "lose":
            reply = failed(fault)
        else:
            try:
                reply = self._git(
                    request, f"{match['owner']}/{match['name']}", match["service"], body, entry
                )
            except Refusal as refusal:
                headers = (
                    {"www-authenticate": 'Basic realm="GitHub"'}
                    if refusal.reply.status == 401
                    else {}
                )
                reply = Reply(
                    refusal.reply.status,
                    raw=str(refusal).encode(),
                    headers=headers,
                    media="text/plain",
                )
        entry.answered(reply.status, fault.kind if fault is not None else "")
        return reply, fault

    def _git(
        self, request: Request, name: str, service: str | None, body: bytes, entry: Entry
    ) -> Reply:
        state = self._world.state
        token = basic(state, request.headers.get("authorization", ""))
        entry.asked_with(token)
        here = state.repositories.get(name.lower())
        if here is None or (here.private and token is None):
            raise Refusal(401 if token is None else 404, "Repository not found.")
        if here.private and token is not None:
            check_token(state, token, here, (("contents", "read"),), {})
        asked = service or request.query_params.get("service", "")
        if asked not in SERVICES:
            raise Refusal(403, "This repository is read only.")
        protocol = request.headers.get("git-protocol", "")
        if service is None:
            answer, kind = self._world.git.advertise(here, asked, protocol), "advertisement"
        else:
            encoding = request.headers.get("content-encoding", "")
            answer, kind = self._world.git.answer(here, asked, protocol, body, encoding), "result"
        return Reply(
            200,
            raw=answer,
            headers={"cache-control": "no-cache"},
            media=f"application/x-{asked}-{kind}",
        )
