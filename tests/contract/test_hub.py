"""The adapter of GitHub on the wire: what it sends and how often, and how it reads answers that a GitHub rarely gives."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import threading
import time
import traceback
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.adapters.hub import Hub
from bot.errors import TransientError, UserError
from bot.service.ports import Gone, Target, Throttled
from bot.testing import FrozenClock

TARGET = Target(installation=5, repository="octo/net")
APP, SLUG = 77, "reprise"
Reply = tuple[int, dict[str, str], Any]


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
    """A server that answers by rules, the first that fits, and keeps what it was sent. It mints tokens by itself."""

    rules: list[tuple[str, Reply | Callable[[Request], Reply]]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    lives_s: float = 3600
    base: str = ""
    minted: int = 0

    def on(self, pattern: str, status: int = 200, data: Any = None, **headers: str) -> None:
        self.rules.append((pattern, (status, {name.replace("_", "-"): text for name, text in headers.items()}, data)))

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
        request = Request(self.command, self.path, dict(self.headers.items()), json.loads(raw) if raw else None)
        status, headers, data = self.server.script.answer(request)  # type: ignore[attr-defined]
        if status == 0:  # hang up without a word
            self.close_connection = True
            return
        content = data if isinstance(data, bytes) else json.dumps(data).encode() if data is not None else b""
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
def hub(script: Script, key: str) -> Hub:
    return Hub(script.base, APP, key, SLUG, timeout_s=5)


def claims(request: Request) -> dict[str, Any]:
    """What the App says of itself in its JWT."""
    kind, _, token = request.headers["Authorization"].partition(" ")
    assert kind == "Bearer"
    middle = token.split(".")[1]
    return dict(json.loads(urlsafe_b64decode(middle + "=" * (-len(middle) % 4))))


COMMENTS = "/repos/octo/net/issues/7/comments"


def test_a_token_is_asked_for_one_repository_and_one_permission_and_kept(script, hub):
    script.on(f"POST {COMMENTS}", 201, {"id": 3})
    script.on("PATCH /repos/octo/net/issues/comments/3", 200, {"id": 3})
    assert hub.create_comment(TARGET, 7, "text") == 3
    hub.update_comment(TARGET, 3, "other")
    mint, first, second = script.requests
    assert mint.line == "POST /app/installations/5/access_tokens"
    assert mint.body == {"repositories": ["net"], "permissions": {"issues": "write"}}
    assert claims(mint)["iss"] == str(APP)
    assert claims(mint)["exp"] - claims(mint)["iat"] <= 600
    assert {each.headers["Authorization"] for each in (first, second)} == {"token ghs_minted0001secretsecret"}
    assert first.headers["X-GitHub-Api-Version"] == "2022-11-28"
    assert first.body == {"body": "text"}


def test_each_step_has_a_token_of_its_own(script, hub):
    script.on("/permission$", 200, {"permission": "write", "role_name": "maintain"})
    hub.permission(TARGET, "mona")
    hub.file(TARGET, "a.yml")
    hub.clone_token(TARGET)
    script.on("POST .*/reactions", 201, {"id": 1})
    hub.react(TARGET, 7, None, "eyes")
    asked = [each.body["permissions"] for each in script.requests if each.path.endswith("/access_tokens")]
    assert asked == [{"metadata": "read"}, {"contents": "read"}, {"issues": "write"}]


def test_a_token_is_minted_anew_five_minutes_before_it_runs_out(script, key):
    clock = FrozenClock(time.time())
    hub = Hub(script.base, APP, key, SLUG, now=clock)
    first = hub.clone_token(TARGET).token
    clock.advance(3600 - 320)
    assert hub.clone_token(TARGET).token == first
    clock.advance(40)
    assert hub.clone_token(TARGET).token != first
    assert script.minted == 2


def test_a_revoked_token_is_minted_anew_once(script, hub):
    hub.clone_token(TARGET)

    def file(request: Request) -> Reply:
        if "minted0001" in request.headers["Authorization"]:
            return 401, {}, {"message": "Bad credentials"}
        return 200, {}, {"type": "file", "size": 2, "encoding": "base64", "content": b64encode(b"hi").decode()}

    script.call("GET .*/contents/", file)
    assert hub.file(TARGET, "a.txt") == "hi"
    assert script.minted == 2
    script.rules.clear()
    script.on("GET .*/contents/", 401, {"message": "Bad credentials"})
    with pytest.raises(UserError, match="Bad credentials"):
        hub.file(TARGET, "a.txt")
    assert script.minted == 3


def test_an_enterprise_server_is_reached_below_its_own_path(script, key):
    hub = Hub(f"{script.base}/api/v3", APP, key, SLUG)
    script.on(f"POST /api/v3{COMMENTS}", 201, {"id": 3})
    script.on("GET /api/v3/app/hook/deliveries", 200, [])
    assert hub.create_comment(TARGET, 7, "text") == 3
    assert hub.hooks(datetime.now(UTC)) == ()
    assert [each.path for each in script.requests] == [
        "/api/v3/app/installations/5/access_tokens", f"/api/v3{COMMENTS}", "/api/v3/app/hook/deliveries?per_page=100",
    ]  # fmt: skip
    assert claims(script.requests[2])["iss"] == str(APP)


SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}


@pytest.mark.parametrize(
    ("status", "headers", "data", "least", "most"),
    [
        (403, {"retry_after": "17"}, SECONDARY, 17, 17),
        (429, {"retry_after": "17"}, None, 17, 17),
        (403, {"retry_after": "0"}, SECONDARY, 1, 1),
        (403, {"retry_after": "999999"}, SECONDARY, 3600, 3600),
        (403, {"retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"}, SECONDARY, 60, 60),
        (403, {}, SECONDARY, 60, 60),
        (429, {}, None, 60, 60),
        (403, {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "+90"}, {"message": "API rate limit exceeded"}, 80, 91),
        (403, {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "+99999"}, None, 3600, 3600),
        (403, {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "-90"}, None, 1, 1),
        (403, {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "99999999999999999999"}, None, 60, 60),
        (403, {"x_ratelimit_remaining": "0"}, None, 60, 60),
        (403, {"x_ratelimit_remaining": "4000", "x_ratelimit_reset": "+3000"}, SECONDARY, 60, 60),
    ],
)
def test_a_limit_is_told_with_its_seconds_and_nothing_is_sent_again(script, hub, status, headers, data, least, most):
    reset = headers.get("x_ratelimit_reset", "")
    if reset[:1] in {"+", "-"}:
        headers = {**headers, "x_ratelimit_reset": str(int(time.time()) + int(reset))}
    script.on(f"POST {COMMENTS}", status, data, **headers)
    began = time.monotonic()
    with pytest.raises(Throttled) as caught:
        hub.create_comment(TARGET, 7, "text")
    assert least <= caught.value.after_s <= most
    assert time.monotonic() - began < 1
    assert script.sent() == [f"POST {COMMENTS}"]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_post_is_sent_once_whatever_the_server_says(script, hub, status):
    script.on(f"POST {COMMENTS}", status, b"<html>")
    with pytest.raises(TransientError) as caught:
        hub.create_comment(TARGET, 7, "text")
    assert not isinstance(caught.value, Throttled | Gone)
    assert script.sent() == [f"POST {COMMENTS}"]


def test_a_post_without_an_answer_is_sent_once(script, key):
    script.on(f"POST {COMMENTS}", 0)
    hub = Hub(script.base, APP, key, SLUG, timeout_s=0.3)
    with pytest.raises(TransientError, match="reached"):
        hub.create_comment(TARGET, 7, "text")
    script.rules.clear()
    waiting = threading.Event()
    script.call(f"POST {COMMENTS}", lambda _: (201 if waiting.wait(5) else 500, {}, {"id": 1}))
    with pytest.raises(TransientError, match=r"within 0\.3 s"):
        hub.create_comment(TARGET, 7, "text")
    waiting.set()
    assert script.sent() == [f"POST {COMMENTS}"] * 2


def test_nobody_listens(key):
    hub = Hub("http://127.0.0.1:9", APP, key, SLUG, timeout_s=2)
    with pytest.raises(TransientError, match="reached"):
        hub.permission(TARGET, "mona")


def test_a_redirect_is_not_followed(script, hub):
    script.on(f"POST {COMMENTS}", 307, None, Location=f"{script.base}/elsewhere")
    with pytest.raises(Gone):
        hub.create_comment(TARGET, 7, "text")
    assert script.sent() == [f"POST {COMMENTS}"]


def test_a_success_that_github_never_gave_is_no_success(script, hub):
    script.on(f"POST {COMMENTS}", 200, b"<html>Sign in to the proxy</html>")
    with pytest.raises(TransientError, match="not understood"):
        hub.create_comment(TARGET, 7, "text")
    script.on("/permission$", 200, ["surprise"])
    with pytest.raises(TransientError, match="not understood"):
        hub.permission(TARGET, "mona")


def test_a_missing_permission_is_named(script, hub):
    words = {"message": "Resource not accessible by integration"}
    script.on(f"POST {COMMENTS}", 403, words, X_Accepted_GitHub_Permissions="issues=write; pull_requests=write")
    with pytest.raises(UserError, match="not accessible by integration") as caught:
        hub.create_comment(TARGET, 7, "text")
    assert "issues=write" in caught.value.fix
    script.rules.clear()
    asked = {"message": "The permissions requested are not granted to this installation."}
    script.on("/access_tokens$", 422, asked)
    with pytest.raises(UserError, match="contents=read"):
        hub.clone_token(TARGET)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "Not Found"),
        (403, "This installation has been suspended"),
        (422, "There is at least one repository that does not exist or is not accessible to the parent installation."),
    ],
)
def test_what_the_installation_no_longer_covers_is_gone(script, hub, status, message):
    script.on("/access_tokens$", status, {"message": message})
    with pytest.raises(Gone):
        hub.clone_token(TARGET)
    assert hub.file(TARGET, "a.yml") is None


@pytest.mark.parametrize(
    ("status", "message"), [(404, "Integration not found"), (401, "A JSON web token could not be decoded")]
)
def test_a_wrong_app_id_is_not_taken_for_a_missing_repository(script, hub, status, message):
    script.on("^[A-Z]+ /app/", status, {"message": message})
    with pytest.raises(UserError) as caught:
        hub.file(TARGET, "a.yml")
    assert "REPRISE_APP_ID" in caught.value.fix
    with pytest.raises(UserError):
        hub.hooks(datetime.now(UTC))


def test_a_repository_of_the_same_name_elsewhere_is_not_taken_for_it(script, hub):
    until = "2099-01-01T00:00:00Z"
    script.on("/access_tokens$", 201, {"token": "t", "expires_at": until, "repositories": [{"full_name": "other/net"}]})
    with pytest.raises(Gone):
        hub.clone_token(TARGET)


@pytest.mark.parametrize(
    ("answer", "role"),
    [
        ({"permission": "admin", "role_name": "admin"}, "admin"),
        ({"permission": "write", "role_name": "maintain"}, "maintain"),
        ({"permission": "read", "role_name": "triage"}, "triage"),
        ({"permission": "write", "role_name": "release-captain"}, "write"),
        ({"permission": "none", "role_name": ""}, "none"),
        ({"permission": "write"}, "write"),
        ({"permission": "root", "role_name": "root"}, "none"),
    ],
)
def test_a_role_is_read(script, hub, answer, role):
    script.on("/permission$", 200, answer)
    assert hub.permission(TARGET, "mona") == role


@pytest.mark.parametrize(
    "login", ["", ".", "..", "a/b", "../..", "mona?x=1", "mona#", "mona%2f..", "mona\n", "mö", "a b", "-x"]
)
def test_a_login_that_nobody_can_have_is_not_even_asked_about(script, hub, login):
    script.on(".*", 200, {"permission": "admin", "role_name": "admin", "token": "t", "expires_at": "2099-01-01T00:00:00Z"})
    assert hub.permission(TARGET, login) == "none"
    assert script.requests == []


@pytest.mark.parametrize(
    "repository", ["octo", "octo/..", "../net", "octo/a/b", "octo/a?b", "octo/", "/net", "octo/n%65t", "o c/n"]
)
def test_a_repository_that_cannot_be_is_gone(script, hub, repository):
    odd = Target(installation=5, repository=repository)
    with pytest.raises(Gone):
        hub.create_comment(odd, 7, "text")
    assert hub.file(odd, "a.yml") is None
    assert script.requests == []


@pytest.mark.parametrize("path", ["", "/", "..", "../a", "a/../../b", "a//b", "a/.", "/etc/passwd", "a\0b"])
def test_a_path_that_leads_elsewhere_is_no_file(script, hub, path):
    assert hub.file(TARGET, path) is None
    assert script.requests == []


@pytest.mark.parametrize(
    ("path", "quoted"),
    [("a?ref=evil", "a%3Fref%3Devil"), ("a#b", "a%23b"), ("a%2e%2e/b", "a%252e%252e/b"), ("ä b/\\", "%C3%A4%20b/%5C")],
)
def test_outside_text_stays_one_part_of_a_path(script, hub, path, quoted):
    assert hub.file(TARGET, path) is None
    assert script.sent() == [f"GET /repos/octo/net/contents/{quoted}"]


def encoded(raw: bytes, **more: Any) -> dict[str, Any]:
    return {"type": "file", "size": len(raw), "encoding": "base64", "content": b64encode(raw).decode(), **more}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (encoded(b"caf\xc3\xa9"), "café"),
        (encoded(b""), ""),
        (encoded(b"\xff\xfe"), None),
        (encoded(b"a\0b"), None),
        (encoded(b"x" * 101), None),
        (encoded(b"x" * 101, size=1), None),
        (encoded(b"x", size=2_000_000, encoding="none"), None),
        ({"type": "dir", "size": 0, "entries": []}, None),
        (encoded(b"x", type="symlink"), None),
        ({"type": "submodule", "size": 0}, None),
    ],
)
def test_only_small_text_is_a_file(script, hub, data, text):
    script.on("GET .*/contents/", 200, data)
    assert hub.file(TARGET, "a", most_bytes=100) == text


def test_a_file_that_github_finds_too_large_is_none_and_a_refusal_is_not(script, hub):
    script.on("GET .*/contents/huge", 403, {"message": "too big", "errors": [{"code": "too_large"}]})
    script.on("GET .*/contents/closed", 403, {"message": "Resource not accessible by integration"})
    assert hub.file(TARGET, "huge") is None
    with pytest.raises(UserError):
        hub.file(TARGET, "closed")


def page(number: int, last: int, comments: list[dict[str, Any]], base: str) -> Reply:
    links = f'<{base}{COMMENTS}?per_page=100&page={last}>; rel="last"'
    return 200, {"Link": links} if number < last else {}, comments


def said(number: int, body: str, login: str = f"{SLUG}[bot]", kind: str = "Bot", via: int | None = None) -> dict[str, Any]:
    through = None if via is None else {"id": via}
    return {"id": number, "body": body, "user": {"login": login, "type": kind}, "performed_via_github_app": through}


def test_our_comment_is_told_from_everybody_elses(script, hub):
    comments = [
        {"id": 1, "body": "<!-- m -->", "user": None},
        said(2, "<!-- m -->", "mona", "User"),
        said(3, "<!-- m -->", "mona", "User", via=APP),
        said(4, "<!-- m -->", "other[bot]", via=78),
        said(5, "quoted: <!-- m -->"),
        said(6, "<!-- m --> the one", "renamed[bot]", via=APP),
        said(7, "<!-- m --> a later one"),
    ]
    script.on(f"GET {COMMENTS}", 200, comments)
    assert hub.find_comment(TARGET, 7, "<!-- m -->") == 6
    assert hub.find_comment(TARGET, 7, "<!-- n -->") is None


def test_a_long_conversation_is_read_from_both_ends(script, hub):
    asked: list[int] = []

    def answer(request: Request) -> Reply:
        number = int(re.search(r"[?&]page=(\d+)", request.path).group(1))  # type: ignore[union-attr]
        asked.append(number)
        return page(number, 400, [said(number, "<!-- m -->")] if number in {200, 397, 399} else [], script.base)

    script.call(f"GET {COMMENTS}", answer)
    assert hub.find_comment(TARGET, 7, "<!-- m -->") == 397
    assert asked == [*range(1, 11), *range(391, 398)]


def test_labels_are_written_only_where_something_changes(script, hub):
    here = "/repos/octo/net/issues/7/labels"
    script.on(f"GET {here}", 200, [{"name": "bug"}, {"name": "Reprise: inconclusive"}])
    script.on("POST /repos/octo/net/labels", 422, {"message": "Validation Failed", "errors": [{"code": "already_exists"}]})
    script.on(f"POST {here}", 200, [])
    hub.labels(TARGET, 7, "reprise: reproduced", ["reprise: inconclusive", "reprise: needs info", "", ".."], "#d73a4a", "ran")
    name = "reprise%3A%20"
    assert script.sent() == [
        f"GET {here}?per_page=100", f"GET /repos/octo/net/labels/{name}reproduced", "POST /repos/octo/net/labels",
        f"POST {here}", f"DELETE {here}/{name}inconclusive",
    ]  # fmt: skip
    assert script.requests[3].body == {"name": "reprise: reproduced", "color": "d73a4a", "description": "ran"}


def test_each_write_is_announced_before_it_is_sent(script, hub):
    script.on("GET /repos/octo/net/issues/7/labels", 200, [{"name": "old"}])
    script.on("POST ", 201, {"id": 1})
    script.rules.insert(0, ("/access_tokens$", (201, {}, {"token": "t", "expires_at": "2099-01-01T00:00:00Z"})))
    asked: list[tuple[int, bool, int]] = []
    slow = hub.paced(lambda installation, notifies: asked.append((installation, notifies, len(script.sent()))))
    slow.labels(TARGET, 7, "new", ["old"], "ffffff", "")
    assert [each[:2] for each in asked] == [(5, False)] * 3
    assert [each[2] for each in asked] == [2, 3, 4]
    slow.create_comment(TARGET, 7, "text")
    hub.create_comment(TARGET, 7, "text")
    assert asked[3:] == [(5, True, 5)]


def test_deliveries_are_read_page_by_page_until_the_moment(script, hub):
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def answer(request: Request) -> Reply:
        at = int((re.search(r"cursor=v1_(\d+)", request.path) or [0, "0"])[1])
        tried = {
            "id": 900 - at, "guid": f"guid-{at}", "event": "issues", "status_code": 500 if at else 202, "redelivery": False,
            "delivered_at": (now - timedelta(hours=at)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }  # fmt: skip
        link = f'<http://evil.example/app/hook/deliveries?per_page=100&cursor=v1_{at + 1}>; rel="next"'
        return 200, {"Link": link}, [tried]

    script.call("GET /app/hook/deliveries", answer)
    hooks = hub.hooks(now - timedelta(hours=1))
    assert [(each.id, each.guid, each.ok) for each in hooks] == [(900, "guid-0", True), (899, "guid-1", False)]
    assert len(script.requests) == 3
    assert len(hub.hooks(now - timedelta(days=900))) == 5
    script.on("POST /app/hook/deliveries/899/attempts", 202, {})
    hub.redeliver(899)
    assert script.requests[-1].line == "POST /app/hook/deliveries/899/attempts"
    script.on("POST /app/hook/deliveries/1/attempts", 422, {"message": "Validation Failed"})
    with pytest.raises(Gone):
        hub.redeliver(1)


def test_text_that_is_no_text_is_sent_all_the_same(script, hub):
    script.on(f"POST {COMMENTS}", 201, {"id": 3})
    assert hub.create_comment(TARGET, 7, "a\ud800b \U0001f600") == 3
    assert script.requests[-1].body == {"body": "a?b \U0001f600"}


def test_an_unusable_key_is_told_without_being_shown(script):
    key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
    with pytest.raises(UserError, match="private key") as caught:
        Hub(script.base, APP, key, SLUG).clone_token(TARGET)
    assert "c2VjcmV0" not in everything(caught.value)
    assert script.requests == []


def everything(error: BaseException) -> str:
    """All that a log could show of an error, and of the errors it holds."""
    told, seen = "", error
    while seen is not None:
        told += "".join(traceback.format_exception(seen)) + repr(seen) + repr(vars(seen))
        seen = seen.__cause__ or seen.__context__  # type: ignore[assignment]
    return told


@pytest.mark.parametrize("status", [0, 302, 401, 403, 404, 422, 429, 500])
def test_errors_and_logs_hold_no_secret_and_no_request(script, hub, key, caplog, status):
    caplog.set_level(logging.DEBUG)
    script.on(f"POST {COMMENTS}", status, {"message": "Bad ghs_minted0001secretsecret"}, retry_after="soon")
    with pytest.raises((TransientError, UserError)) as caught:
        hub.create_comment(TARGET, 7, "text")
    told = everything(caught.value) + caplog.text
    jwt = next(each for each in script.requests if "/access_tokens" in each.path).headers["Authorization"].split()[1]
    assert caught.value.__context__ is None
    for secret in ("ghs_minted", jwt, jwt.split(".")[2], key.splitlines()[1]):
        assert secret not in told


def test_nothing_of_githubkit_is_imported_before_the_first_request():
    code = (
        "import sys; from bot.adapters.hub import Hub; Hub('https://api.github.com', 1, 'k', 's'); import bot.service.pacing;"
        "print(sorted({'githubkit', 'hishel', 'jwt', 'httpx'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_threads_share_one_hub(script, hub):
    script.on(f"POST {COMMENTS}", 201, {"id": 3})
    threads = [threading.Thread(target=hub.create_comment, args=(TARGET, 7, f"text {n}")) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bodies = sorted(each.body["body"] for each in script.requests if each.path == COMMENTS)
    assert bodies == sorted(f"text {n}" for n in range(16))
