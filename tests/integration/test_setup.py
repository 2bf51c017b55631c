"""The setup page over real HTTP, beside a GitHub that trades codes for credentials: the whole
flow, and everyone it turns away.
"""

from __future__ import annotations

import json
import re
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from bot.app.github.registration import RegistrationFiles
from bot.kernel.settings import Settings, load
from handlers.pages import reachable
from handlers.server import address, bind, make
from handlers.setup import MAX_STATES, STATE_S, Setup

PEM = "-----BEGIN RSA PRIVATE KEY-----\nTU9DSw==\n-----END RSA PRIVATE KEY-----\n"
SECRET = "b7f3c0ffee5ec2e7of-the-app"


@dataclass
class Hub:
    """The two pages of GitHub that the flow touches; `answer` replaces the credentials."""

    url: str = ""
    codes: dict[str, dict[str, object]] = field(default_factory=dict)
    posted: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    answer: tuple[int, bytes] | None = None

    def register(self, path: str, form: dict[str, list[str]]) -> str:
        """What happens after a person's click: a code, and the way back."""
        manifest = json.loads(form["manifest"][0])
        code = f"c0de{len(self.codes)}"
        self.codes[code] = manifest
        self.posted.append(urlsplit(path).path)
        state = parse_qs(urlsplit(path).query)["state"][0]
        return f"{manifest['redirect_url']}?{urlencode({'code': code, 'state': state})}"

    def convert(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        if self.answer is not None:
            return self.answer
        found = re.fullmatch(r"/api/v3/app-manifests/([^/]+)/conversions", path)
        manifest = self.codes.pop(found.group(1), None) if found else None
        if manifest is None:
            return 404, b'{"message": "Not Found"}'
        slug = str(manifest["name"]).lower()
        made = {
            "id": 4711,
            "slug": slug,
            "node_id": "A_1",
            "client_id": "Iv1.1",
            "client_secret": "cl1ent",
            "name": manifest["name"],
        }
        made |= {"pem": PEM, "webhook_secret": SECRET, "html_url": f"{self.url}/github-apps/{slug}"}
        return 201, json.dumps(made).encode()


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            if self.path.startswith("/api/"):
                status, answer = hub.convert(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                return
            self.send_response(302)
            self.send_header("Location", hub.register(self.path, parse_qs(body)))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield hub
        server.shutdown()


@dataclass
class Site:
    setup: Setup
    url: str
    settings: Settings
    done: list[RegistrationFiles]
    clock: list[float]

    def get(self, path: str, **query: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", params=query or None)

    def form(self, **more: str) -> httpx.Response:
        given = {
            "key": self.setup.key,
            "name": "Reprise-t1",
            "organisation": "",
            "hook": "https://r.example.com/webhook",
            **more,
        }
        return httpx.post(f"{self.url}/setup", data=given)

    def consent(self, **more: str) -> str:
        """Go as far as GitHub, click there, and return where it sends the browser."""
        action, manifest = sent(self.form(**more))
        answer = httpx.post(action, data={"manifest": manifest})
        assert answer.status_code == 302
        return answer.headers["Location"]


@pytest.fixture
def site(tmp_path: Path, hub: Hub) -> Iterator[Site]:
    clock, done = [1000.0], list[RegistrationFiles]()
    with bind("127.0.0.1", 0) as sock:
        url = address(sock)
        settings = Settings(
            github_url=hub.url,
            github_api_url=f"{hub.url}/api/v3",
            app_file=tmp_path / "reprise-app.env",
            public_url=url,
        )
        setup = Setup(settings, done.append, now=lambda: clock[0])
        server = make(setup.app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock.dup()]})
        thread.start()
        yield Site(setup, url, settings, done, clock)
        server.should_exit = True
        thread.join(10)


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.actions: list[str] = []
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.actions.append(found["action"])
        if tag == "input":
            self.fields[found["name"]] = found.get("value", "")


def sent(page: httpx.Response) -> tuple[str, str]:
    """What a browser would post, and where to."""
    assert page.status_code == 200, page.text
    fields = _Fields()
    fields.feed(page.text)
    assert len(fields.actions) == 1
    assert set(fields.fields) == {"manifest"}, "the key must not travel to GitHub"
    return fields.actions[0], fields.fields["manifest"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_whole_flow_for_ones_own_account(
    site: Site, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site.get("/setup", key=site.setup.key).status_code == 200
    back = site.consent()
    assert hub.posted == ["/settings/apps/new"]
    page = httpx.get(back)
    assert page.status_code == 200
    assert f"{hub.url}/github-apps/reprise-t1/installations/new" in page.text
    file = site.settings.app_file
    key = file.with_name("reprise-app.private-key.pem")
    assert str(file) in page.text
    assert str(key) in page.text
    assert (mode(file), mode(key)) == (0o600, 0o600)
    assert SECRET not in page.text
    assert "PRIVATE KEY-----" not in page.text
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, key.name]
    monkeypatch.setenv("REPRISE_APP_FILE", str(file))
    settings = load()
    assert settings.webhook_secret is not None
    assert (settings.app_id, settings.app_slug, settings.webhook_secret.get_secret_value()) == (
        4711,
        "reprise-t1",
        SECRET,
    )
    assert (settings.key, settings.registered) == (PEM, True)
    until = time.monotonic() + 5
    while not site.done and time.monotonic() < until:
        time.sleep(0.01)
    assert [kept.app_file for kept in site.done] == [file]
    assert site.get("/setup", key=site.setup.key).status_code == 403, "one registration a key"


def test_the_manifest_asks_for_no_more_than_is_needed(site: Site) -> None:
    plain = json.loads(sent(site.form())[1])
    assert plain["default_permissions"] == {
        "metadata": "read",
        "contents": "read",
        "issues": "write",
    }
    assert plain["default_events"] == ["issues", "issue_comment", "repository"]
    assert plain["public"] is False
    assert plain["hook_attributes"] == {"url": "https://r.example.com/webhook", "active": True}
    assert plain["redirect_url"] == f"{site.url}/setup/callback"


def test_pull_requests_are_asked_for_only_on_request(site: Site) -> None:
    page = site.form(pull_requests="yes")
    assert json.loads(sent(page)[1])["default_permissions"] == {
        "metadata": "read",
        "contents": "write",
        "issues": "write",
        "pull_requests": "write",
    }
    assert "to open a draft pull request" in page.text
    assert "to open a draft pull request" not in site.form().text


def test_an_organisation_has_its_own_address(site: Site, hub: Hub) -> None:
    assert httpx.get(site.consent(organisation="deep-lab")).status_code == 200
    assert hub.posted == ["/organizations/deep-lab/settings/apps/new"]


@pytest.mark.parametrize("organisation", ["../../logout", "a/b", "x y", "-a", "a" * 101, "é"])
def test_no_other_address_of_github_can_be_posted_to(site: Site, organisation: str) -> None:
    page = site.form(organisation=organisation)
    assert page.status_code == 400
    assert "cannot be an organisation" in page.text


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"hook": "javascript:alert(1)"}, {"hook": "no address"}, {"hook": ""}]
)
def test_a_mistake_in_the_form_is_said_and_the_rest_is_kept(
    site: Site, wrong: dict[str, str]
) -> None:
    page = site.form(organisation="kept-org", **wrong)
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert "kept-org" in page.text


@pytest.mark.parametrize("key", ["", "wrong", "ключ"])
def test_without_the_key_nothing_is_shown_and_nothing_is_made(site: Site, key: str) -> None:
    for answer in (site.get("/setup", key=key), site.get("/setup"), site.form(key=key)):
        assert answer.status_code == 403
        assert "manifest" not in answer.text
        assert site.setup.key not in answer.text
    assert len(site.setup.states) == 0


def test_a_form_of_another_kind_is_not_read(site: Site) -> None:
    body = urlencode({"key": site.setup.key, "name": "x", "hook": "https://r.example.com"})
    assert (
        httpx.post(
            f"{site.url}/setup", content=body, headers={"Content-Type": "text/plain"}
        ).status_code
        == 403
    )
    assert site.form(name="x" * 20_000).status_code == 403


def test_a_state_is_good_once(site: Site, hub: Hub) -> None:
    back = site.consent()
    hub.answer = (500, b"{}")
    assert httpx.get(back).status_code == 502
    hub.answer = None
    assert httpx.get(back).status_code == 403
    assert len(hub.asked) == 1
    assert not site.settings.app_file.exists()
    assert httpx.get(site.consent()).status_code == 200, "after a failure the page is still there"


def test_a_state_grows_old(site: Site, hub: Hub) -> None:
    back = site.consent()
    site.clock[0] += STATE_S + 1
    assert httpx.get(back).status_code == 403
    assert hub.asked == []


@pytest.mark.parametrize("state", [{}, {"state": ""}, {"state": "invented"}, {"state": "ключ"}])
def test_a_state_that_was_not_made_here_is_refused(
    site: Site, hub: Hub, state: dict[str, str]
) -> None:
    site.consent()
    assert site.get("/setup/callback", code="c0de0", **state).status_code == 403
    assert hub.asked == []


def test_many_forms_do_not_pile_up(site: Site) -> None:
    for _ in range(MAX_STATES + 5):
        site.setup.states.new()
    assert len(site.setup.states) == MAX_STATES


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, b"{}"), "does not accept this code"),
        ((302, b""), "answered 302"),
        ((201, b"not json"), "answered without"),
        (
            (201, json.dumps({"id": 1, "slug": "a", "pem": PEM, "webhook_secret": None}).encode()),
            "webhook_secret",
        ),
        (
            (
                201,
                json.dumps(
                    {"id": 1, "slug": "../x", "pem": PEM, "webhook_secret": SECRET}
                ).encode(),
            ),
            "slug",
        ),
        ((201, b" " * 300_000), "too long"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value[0]),
)
def test_what_github_may_answer_instead(
    site: Site, hub: Hub, answer: tuple[int, bytes], said: str
) -> None:
    back = site.consent()
    hub.answer = answer
    page = httpx.get(back)
    assert page.status_code == 502
    assert said in page.text
    assert SECRET not in page.text
    assert list(site.settings.app_file.parent.iterdir()) == []


@pytest.mark.parametrize("code", ["", "a/../../user", "x?y=1", "a" * 300])
def test_a_code_is_never_part_of_another_address(site: Site, hub: Hub, code: str) -> None:
    state = site.setup.states.new()
    assert site.get("/setup/callback", code=code, state=state).status_code == 502
    assert hub.asked == []


def test_a_github_that_does_not_answer(site: Site, hub: Hub) -> None:
    gone = Settings(
        github_url=hub.url, github_api_url="http://127.0.0.1:9/api", app_file=site.settings.app_file
    )
    site.setup._settings = gone
    page = site.get("/setup/callback", code="c0de", state=site.setup.states.new())
    assert page.status_code == 502
    assert "does not answer" in page.text
    assert "c0de" not in page.text


def test_files_that_stand_there_are_moved_aside_and_named(site: Site) -> None:
    file = site.settings.app_file
    file.write_text("# of another App\n")
    page = httpx.get(site.consent())
    (aside,) = file.parent.glob("reprise-app.env.*")
    assert aside.read_text() == "# of another App\n"
    assert str(aside) in page.text
    assert "REPRISE_APP_ID=4711" in file.read_text()


def test_every_page_is_closed_to_scripts_frames_and_caches(site: Site, hub: Hub) -> None:
    for page in (
        site.get("/"),
        site.get("/setup", key=site.setup.key),
        site.form(),
        site.get("/setup/callback"),
    ):
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert f"form-action 'self' {hub.url};" in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["Referrer-Policy"] == "strict-origin"
        assert "<script" not in page.text


def test_what_is_typed_is_shown_as_text(site: Site) -> None:
    page = site.form(name='<b>"x', organisation="<script>")
    assert page.status_code == 400
    assert "<script>" not in page.text
    assert "<b>" not in page.text


def test_until_there_is_an_app_github_is_asked_to_come_back(site: Site) -> None:
    answer = httpx.post(f"{site.url}/webhook", json={"action": "opened"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")
    assert site.get("/healthz").status_code == 200
    assert site.get("/").status_code == 404


@pytest.mark.parametrize(
    ("where", "github", "expected"),
    [
        ("http://localhost:8000/webhook", "https://github.com", False),
        ("http://127.0.0.1:8000/webhook", "https://ghes.example.com", False),
        ("http://[::1]/webhook", "https://github.com", False),
        ("https://10.0.0.5/webhook", "https://github.com", False),
        ("https://10.0.0.5/webhook", "https://ghes.example.com", True),
        ("https://reprise.example.com/webhook", "https://github.com", True),
    ],
)
def test_an_address_that_github_cannot_reach_is_known(
    where: str, github: str, expected: bool
) -> None:
    assert reachable(where, github) is expected


def test_the_warning_stands_where_it_is_needed(site: Site) -> None:
    assert "smee-client" in site.get("/setup", key=site.setup.key).text
    assert "cannot reach" in site.form(hook="http://localhost:8000/webhook").text
    assert "cannot reach" not in site.form().text
