"""A GitHub of each kind: in memory, on a server of its own, and one that answers by a script."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.app.github.client import GitHubApp, GitHubWithToken
from bot.app.ports import Hook, Permission, Target, Throttled
from bot.kernel.errors import TransientError
from tests.support.fakes import FakeGitHub
from tests.support.server.records import HookDelivery
from tests.support.stand_in import GitHubServer

TARGET = Target(installation=5, repository="octo/net")
APP, SLUG = 77, "reprise"
Reply = tuple[int, dict[str, str], Any]
NOW = datetime.now(UTC).replace(microsecond=0)
DESCRIPTION = (
    Path(__file__).parents[2] / "node/node_modules/@octokit/openapi/generated/api.github.com.json"
)


@dataclass(frozen=True)
class Request:
    """One request as it arrived. `path` is raw, with its query."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Script:
    """A server that answers by rules, the first that fits, and keeps what it was sent. It mints
    tokens by itself.
    """

    rules: list[tuple[str, Reply | Callable[[Request], Reply]]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    lives_s: float = 3600
    base: str = ""
    minted: int = 0

    def on(self, pattern: str, status: int = 200, data: Any = None, **headers: str) -> None:
        self.rules.append(
            (
                pattern,
                (status, {name.replace("_", "-"): text for name, text in headers.items()}, data),
            )
        )

    def call(self, pattern: str, answer: Callable[[Request], Reply]) -> None:
        self.rules.append((pattern, answer))

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        for pattern, reply in self.rules:
            if re.search(pattern, request.line):
                return reply(request) if callable(reply) else reply
        if request.line.endswith("/access_tokens"):
            self.minted += 1
            until = datetime.now(UTC) + timedelta(seconds=self.lives_s)
            token = f"ghs_minted{self.minted:04d}secretsecret"
            return 201, {}, {"token": token, "expires_at": until.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return 404, {}, {"message": "Not Found"}

    def sent(self, *, mints: bool = False) -> list[str]:
        return [each.line for each in self.requests if mints or "/access_tokens" not in each.path]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        request = Request(
            self.command, self.path, dict(self.headers.items()), json.loads(raw) if raw else None
        )
        status, headers, data = self.server.script.answer(request)  # type: ignore[attr-defined]
        if status == 0:  # hang up without a word
            self.close_connection = True
            return
        content = (
            data
            if isinstance(data, bytes)
            else json.dumps(data).encode()
            if data is not None
            else b""
        )
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_DELETE = serve

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def key() -> str:
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


class Server(ThreadingHTTPServer):
    request_queue_size = 64


@pytest.fixture
def script() -> Iterator[Script]:
    server = Server(("127.0.0.1", 0), Handler)
    server.script = Script(base=f"http://127.0.0.1:{server.server_address[1]}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.script  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def hub(script: Script, key: str) -> GitHubApp:
    return GitHubApp(script.base, APP, key, SLUG, timeout_s=5)


class FakeWorld:
    """A private repository with one issue, on the fake."""

    login = "reprise[bot]"
    target = Target(installation=5, repository="octo/net")
    number = 7

    def __init__(self) -> None:
        self.github = FakeGitHub()
        self._here = self.github.repository("octo/net", 5)
        self._issue = self.github.issue("octo/net", 7)

    def allow(self, login: str, role: Permission) -> None:
        self._here.permissions[login] = role

    def put_file(self, path: str, raw: bytes) -> None:
        self._here.files[path] = raw

    def say(self, author: str, body: str) -> int:
        return self.github.comment("octo/net", 7, author, body)

    def delete_comment(self, comment: int) -> None:
        del self.github.comments[comment]

    def comments(self) -> list[tuple[str, str]]:
        return [(each.author, each.body) for each in self.github.comments.values()]

    def reactions(self, comment: int | None) -> list[tuple[str, str]]:
        return sorted(
            self._issue.reactions if comment is None else self.github.comments[comment].reactions
        )

    def know_label(self, name: str, colour: str, description: str) -> None:
        self._here.labels[name] = (colour, description)

    def put_label(self, name: str) -> None:
        self._here.labels[name] = ("ededed", "")
        self._issue.labels.append(name)

    def labels(self) -> set[str]:
        return set(self._issue.labels)

    def known_labels(self) -> dict[str, tuple[str, str]]:
        return dict(self._here.labels)

    def tried(self, guid: str, status: int, at: datetime) -> int:
        made = Hook(
            id=len(guid) + len(self.github.deliveries),
            guid=guid,
            event="issues",
            ok=status < 300,
            at=at,
        )
        self.github.deliveries.append(made)
        return made.id

    def redelivered(self) -> list[int | None]:
        return [each.id for each in self.github.writes if each.what == "redeliver"]

    def writes(self) -> int:
        return len(self.github.writes)

    def tries(self) -> int:
        """How often a comment was asked for, whatever came of it."""
        return self.github.calls.count("create_comment")

    def throttle(self, seconds: int) -> None:
        self.github.fail(Throttled("wait", seconds))

    def break_down(self) -> None:
        self.github.fail(TransientError("broken"))

    def lose_answer(self) -> None:
        self.github.lose_answer(TransientError("no answer"))


class ServerWorld:
    """The same on a server, reached by the real adapter; what GitHub's description does not
    allow fails there.
    """

    login = "reprise[bot]"
    described = DESCRIPTION.exists()
    number = 7

    def __init__(self, server: GitHubServer) -> None:
        self.server, self.state = server, server.state
        self.state.repository("octo/net", private=True)
        self.state.repository("octo/other", private=True, installed=False)
        self._issue = self.state.issue("octo/net", number=7)
        app = self.state.app
        covering = self.state.covering("octo/net")
        assert covering is not None
        self.target = Target(installation=covering.id, repository="octo/net")
        self.github = GitHubApp(server.api_url, app.id, app.key, app.slug, timeout_s=5)

    def allow(self, login: str, role: Permission) -> None:
        self.state.collaborator("octo/net", login, role)

    def put_file(self, path: str, raw: bytes) -> None:
        self.server.commit("octo/net", {path: raw})

    def say(self, author: str, body: str) -> int:
        return self.state.comment("octo/net", 7, author, body).id

    def delete_comment(self, comment: int) -> None:
        del self.state.comments[comment]

    def comments(self) -> list[tuple[str, str]]:
        return [(each.author, each.body) for each in self.state.conversation("octo/net", 7)]

    def reactions(self, comment: int | None) -> list[tuple[str, str]]:
        every = self._issue.reactions if comment is None else self.state.comments[comment].reactions
        return sorted((each.user, each.content) for each in every)

    def know_label(self, name: str, colour: str, description: str) -> None:
        self.state.label("octo/net", name, colour, description)

    def put_label(self, name: str) -> None:
        self._issue.labels.append(self.state.label("octo/net", name).name)

    def labels(self) -> set[str]:
        return set(self._issue.labels)

    def known_labels(self) -> dict[str, tuple[str, str | None]]:
        return {
            each.name: (each.color, each.description)
            for each in self.state.repository("octo/net").labels.values()
        }

    def tried(self, guid: str, status: int, at: datetime) -> int:
        made = HookDelivery(
            self.state.new_id(), guid, "issues", {}, b"{}", at, status_code=status, status="done"
        )
        self.state.deliveries.append(made)
        return made.id

    def redelivered(self) -> list[int]:
        asked = [
            each.path.split("/")
            for each in self.server.requests
            if each.path.endswith("/attempts") and each.status == 202
        ]
        return [int(parts[-2]) for parts in asked]

    def writes(self) -> int:
        return len(self.server.writes)

    def tries(self) -> int:
        return sum(
            1
            for each in self.server.requests
            if each.method == "POST" and each.path.endswith("/comments")
        )

    def throttle(self, seconds: int) -> None:
        self.server.fail("secondary", "POST", "/comments$", seconds=seconds)

    def break_down(self) -> None:
        self.server.fail("error", "POST", "/comments$")

    def lose_answer(self) -> None:
        self.server.fail("lose", "POST", "/comments$")


class TokenWorld(ServerWorld):
    """The same with one token of the App, as a workflow's job has one."""

    def __init__(self, server: GitHubServer) -> None:
        super().__init__(server)
        granted = {"metadata": "read", "contents": "read", "issues": "write"}
        token = self.state.mint(self.target.installation, ["octo/net"], granted).value
        app = self.state.app
        self.github = GitHubWithToken(
            server.api_url, token, "octo/net", app.id, app.slug, timeout_s=5
        )


@pytest.fixture
def served() -> Iterator[ServerWorld]:
    """The real adapter alone."""
    with GitHubServer(
        openapi=DESCRIPTION if ServerWorld.described else None, webhook="http://127.0.0.1:9/"
    ) as server:
        yield ServerWorld(server)
        assert server.violations == []


@pytest.fixture
def with_token(served: ServerWorld) -> TokenWorld:
    return TokenWorld(served.server)


@pytest.fixture(params=["fake", "served"])
def app_world(request):
    """Every kind of GitHub that an App has."""
    return FakeWorld() if request.param == "fake" else request.getfixturevalue(request.param)


@pytest.fixture(params=["fake", "served", "with_token"])
def world(request):
    """Every kind of GitHub."""
    return FakeWorld() if request.param == "fake" else request.getfixturevalue(request.param)
