"""A GitHub of one's own over HTTP, in a thread: its state, its faults, and what it was asked."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

import uvicorn

from tests.support.server.api import Api
from tests.support.server.bodies import Bodies
from tests.support.server.call import World
from tests.support.server.control import Control
from tests.support.server.events import Event, Events
from tests.support.server.faults import Fault, FaultKind
from tests.support.server.git import Git
from tests.support.server.hooks import Hooks
from tests.support.server.log import Entry
from tests.support.server.openapi import OpenApi
from tests.support.server.records import HookDelivery, Json
from tests.support.server.state import State
from tests.support.server.web import PREFIX, Web

_START_S = 20.0


class GitHubServer:
    """`with GitHubServer() as hub:` serves on a free port of this machine.

    `openapi` is the file api.github.com.json of @octokit/openapi: with it, requests and answers
    that GitHub would not know become a 500 and a line in `violations`. `webhook` is where events
    go; with `echo` the App's own writes are told too.
    """

    def __init__(
        self, *, openapi: Path | None = None, webhook: str = "", port: int = 0, echo: bool = True
    ) -> None:
        self.state = State()
        self.state.app.webhook = webhook
        self.echo = echo
        self._port = port
        self._folder = Path(tempfile.mkdtemp(prefix="github-"))
        self._bodies = Bodies(self.state, "", "")
        self.events = Events(self.state, self._bodies)
        self.git = Git(self._folder)
        self.hooks = Hooks(self.state)
        world = World(
            self.state, self._bodies, self.events, self.git, self._announce, self.hooks.again
        )
        self._api = Api(world, OpenApi(openapi) if openapi is not None else None)
        self.control = Control(world, self._api, self.hooks)
        self._web = Web(world, self._api, self.control)
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """The web address, from where git clones."""
        return self._bodies.web

    @property
    def api_url(self) -> str:
        """The REST API, as on a GitHub Enterprise Server; it answers under `url` as well."""
        return self._bodies.api

    @property
    def requests(self) -> list[Entry]:
        """Every REST request, in order."""
        return self._api.requests

    @property
    def clones(self) -> list[Entry]:
        """Every request of git, in order."""
        return self._web.clones

    @property
    def writes(self) -> list[Entry]:
        """The requests that changed something people see."""
        return [each for each in self.requests if each.writes]

    @property
    def violations(self) -> list[str]:
        """What GitHub's description does not allow."""
        return self._api.violations

    def fail(
        self,
        kind: FaultKind,
        method: str | None = None,
        path: str = "",
        *,
        times: int = 1,
        status: int = 502,
        seconds: float = 1.0,
    ) -> None:
        """The next requests whose path (without /api/v3) holds this pattern fail; see `Fault`."""
        self._api.faults.add(Fault(kind, method, path, times, status, seconds))

    def clear_faults(self) -> None:
        """No more failures."""
        self._api.faults.clear()

    def deliver(
        self, event: Event | str, payload: Json | None = None, *, guid: str | None = None
    ) -> HookDelivery:
        """Deliver an event of `events`, or any name and payload, and wait for the answer."""
        one = Event(event, payload or {}) if isinstance(event, str) else event
        return self.hooks.deliver(one, guid)

    def commit(
        self,
        repository: str,
        files: Mapping[str, str | bytes | None],
        date: datetime | None = None,
        **more: Any,
    ) -> str:
        """Commit to a repository (made when there is none); `more` as of `Git.commit`. The
        commit's id.
        """
        return self.git.commit(self.state.repository(repository), files, date, **more)

    def settings(self) -> dict[str, str]:
        """The environment variables of an App that lives here."""
        app = self.state.app
        return {
            "REPRISE_GITHUB_URL": self.url,
            "REPRISE_GITHUB_API_URL": self.api_url,
            "REPRISE_APP_ID": str(app.id),
            "REPRISE_APP_SLUG": app.slug,
            "REPRISE_PRIVATE_KEY": app.key,
            "REPRISE_WEBHOOK_SECRET": app.secret,
        }

    def start(self) -> None:
        """Begin to serve, and return once it does."""
        config = uvicorn.Config(
            self._web, loop="asyncio", http="httptools", ws="none", lifespan="off", log_level="error", access_log=False,
            proxy_headers=False, server_header=False, timeout_graceful_shutdown=1,
        )  # fmt: skip
        listener = socket.create_server(("127.0.0.1", self._port))
        listener.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # asyncio does not see that it is TCP: 40 ms an answer
        self._bodies.web = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._bodies.api = self._bodies.web + PREFIX
        self._server = uvicorn.Server(config)
        self._thread = Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name="github", daemon=True
        )
        self._thread.start()
        until = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > until or not self._thread.is_alive():
                raise RuntimeError("the fake GitHub does not start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop serving and forget the repositories on disk."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_START_S)
        self.hooks.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> GitHubServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _announce(self, event: Event) -> None:
        if self.echo and event.name in self.state.app.events:
            self.hooks.later(event)
