"""The other doors of the fake GitHub: webhooks, git, pages, failures on demand, and control from
another process.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.integration.fake_github.conftest import DESCRIPTION, HOME, Caller
from tests.support.stand_in import GitHubServer, gaps


class Ear(ThreadingHTTPServer):
    """Hears deliveries and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hearing)
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.status = 202

    def wait(self, count: int) -> None:
        until = time.monotonic() + 10
        while len(self.heard) < count and time.monotonic() < until:
            time.sleep(0.01)
        assert len(self.heard) == count


class Hearing(BaseHTTPRequestHandler):
    server: Ear

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.heard.append(
            ({name.lower(): value for name, value in self.headers.items()}, body)
        )
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        pass


@pytest.fixture
def ear(hub: GitHubServer) -> Iterator[Ear]:
    with Ear() as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        hub.state.app.webhook = f"http://127.0.0.1:{server.server_port}/webhook"
        yield server
        server.shutdown()


def test_a_delivery_is_signed_and_remembered(hub: GitHubServer, ear: Ear) -> None:
    tried = hub.deliver(hub.events.issue_opened("octo-org/nets", 1))
    ((headers, raw),) = ear.heard
    digest = hmac.new(hub.state.app.secret.encode(), raw, hashlib.sha256).hexdigest()
    assert headers["x-hub-signature-256"] == f"sha256={digest}"
    assert (headers["x-github-event"], headers["x-github-delivery"]) == ("issues", tried.guid)
    assert headers["user-agent"].startswith("GitHub-Hookshot/")
    assert headers["x-github-hook-id"] == str(hub.state.app.id)
    assert json.loads(raw)["issue"]["title"] == "Loss is NaN"
    assert (tried.status_code, tried.status) == (202, "OK")


def test_failed_deliveries_are_listed_by_cursor_and_sent_again_under_their_id(
    hub: GitHubServer, ear: Ear, caller: Caller
) -> None:
    ear.status = 500
    guids = [hub.deliver("ping", {"zen": str(number)}).guid for number in range(5)]
    hub.state.app.webhook, where = "http://127.0.0.1:9/", hub.state.app.webhook
    guids.append(hub.deliver("ping", {"zen": "nobody"}).guid)
    seen: list[tuple[str, int, str]] = []
    with caller(app=True) as app:
        answer = app.get("/app/hook/deliveries", params={"per_page": 4})
        for _ in range(9):
            seen += [(each["guid"], each["status_code"], each["id"]) for each in answer.json()]
            if "next" not in answer.links:
                break
            answer = app.get(answer.links["next"]["url"])
        assert [guid for guid, _, _ in seen] == guids[::-1]
        assert [code for _, code, _ in seen] == [502] + [500] * 5
        assert app.get(f"/app/hook/deliveries/{seen[1][2]}").json()["request"]["payload"] == {
            "zen": "4"
        }
        hub.state.app.webhook, ear.status = where, 200
        assert app.post(f"/app/hook/deliveries/{seen[-1][2]}/attempts").status_code == 202
        assert app.post("/app/hook/deliveries/1/attempts").status_code == 404
        ear.wait(6)
        assert ear.heard[-1][0]["x-github-delivery"] == guids[0]
        assert ear.heard[-1][1] == ear.heard[0][1]
        first = app.get("/app/hook/deliveries").json()[0]
        assert (first["guid"], first["redelivery"], first["status_code"]) == (guids[0], True, 200)


def test_the_apps_own_writes_come_back_unless_switched_off(
    hub: GitHubServer, ear: Ear, caller: Caller
) -> None:
    with caller() as app:
        app.post(f"{HOME}/issues/1/comments", json={"body": "hi"})
        ear.wait(1)
        payload = json.loads(ear.heard[0][1])
        assert (payload["action"], payload["sender"]["type"]) == ("created", "Bot")
        assert payload["comment"]["performed_via_github_app"]["id"] == hub.state.app.id
        app.post(f"{HOME}/issues/1/labels", json={"labels": ["new"]})
        ear.wait(2)
        hub.echo = False
        app.patch(f"{HOME}/issues/comments/{payload['comment']['id']}", json={"body": "ho"})
        time.sleep(0.1)
        ear.wait(2)


def clone(url: str, to: Path, token: str = "") -> subprocess.CompletedProcess[str]:
    address = url.replace("://", f"://x-access-token:{token}@") if token else url
    argv = ("git", "-c", "credential.helper=", "clone", "--quiet", address, str(to))
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        env={"GIT_TERMINAL_PROMPT": "0", "PATH": "/usr/bin:/bin"},
    )


def test_git_clones_what_is_public_and_with_a_token_what_is_private(
    hub: GitHubServer, caller: Caller, tmp_path: Path
) -> None:
    then = datetime(2023, 5, 4, 12, tzinfo=UTC)
    hub.commit("octo-org/open", {"net.py": "lr = 1\n", "old.py": ""}, then)
    sha = hub.commit(
        "octo-org/open",
        {"net.py": "lr = 2\n", "old.py": None},
        datetime(2024, 1, 1, tzinfo=UTC),
        tag="v1",
    )
    hub.commit("octo-org/nets", {"secret.py": "x = 1\n"})
    tokens = {}
    for name, asked in (
        ("right", {}),
        ("blind", {"issues": "write"}),
        ("other", {"repository": "other"}),
    ):
        with caller(**asked) as app:
            tokens[name] = app.headers["authorization"].split()[1]
    assert clone(f"{hub.url}/octo-org/open", tmp_path / "open").returncode == 0
    log = subprocess.run(
        ("git", "log", "--format=%H %aI"), cwd=tmp_path / "open", capture_output=True, text=True
    ).stdout
    assert log.splitlines()[0] == f"{sha} 2024-01-01T00:00:00+00:00"
    assert log.splitlines()[1].endswith("2023-05-04T12:00:00+00:00")
    assert sorted(path.name for path in (tmp_path / "open").glob("*.py")) == ["net.py"]
    private = f"{hub.url}/octo-org/nets.git"
    assert clone(private, tmp_path / "right", tokens["right"]).returncode == 0
    assert (tmp_path / "right" / "secret.py").read_text() == "x = 1\n"
    with_token = [each for each in hub.clones if each.installation]
    assert {
        (each.repositories, each.permissions["contents"], each.status) for each in with_token
    } == {(("octo-org/nets",), "read", 200)}
    for name in ("", "blind", "other", "made-up"):
        assert clone(private, tmp_path / "no", tokens.get(name, name)).returncode != 0, name
    hub.fail("error", path="octo-org/open", status=503)
    assert [
        clone(f"{hub.url}/octo-org/open", tmp_path / str(each)).returncode == 0 for each in range(2)
    ] == [False, True]


def test_failures_come_when_asked_for_and_as_often(hub: GitHubServer, caller: Caller) -> None:
    with caller() as app:
        hub.fail("error", "POST", "/comments$", times=2, status=500)
        hub.fail("throttle", path="/issues/1$", seconds=7)
        hub.fail("secondary", path="/issues/1$", seconds=60)
        hub.fail("limit", path="/issues/1$", seconds=60)
        codes = [
            app.post(f"{HOME}/issues/1/comments", json={"body": "x"}).status_code for _ in range(3)
        ]
        assert codes == [500, 500, 201]
        assert len(hub.state.ours("octo-org/nets", 1)) == 1
        answers = [app.get(f"{HOME}/issues/1") for _ in range(4)]
        assert [each.status_code for each in answers] == [429, 403, 403, 200]
        assert [each.headers.get("retry-after") for each in answers] == ["7", "60", None, None]
        assert "secondary rate limit" in answers[1].json()["message"]
        assert answers[2].headers["x-ratelimit-remaining"] == "0"


def test_an_answer_is_lost_and_a_connection_hangs(hub: GitHubServer, caller: Caller) -> None:
    with caller() as app:
        hub.fail("lose", "POST")
        with pytest.raises(httpx.RemoteProtocolError):
            app.post(f"{HOME}/issues/1/comments", json={"body": "x"})
        assert [each.body for each in hub.state.ours("octo-org/nets", 1)] == ["x"]
        hub.fail("hang", "GET", seconds=0.6)
        with pytest.raises(httpx.ReadTimeout):
            app.get(HOME, timeout=0.2)
        assert app.get(HOME).status_code == 200
    lost, hung, read = hub.requests[-3:]
    assert [(each.status, each.done_status, each.fault) for each in (lost, read)] == [
        (0, 201, "lose"),
        (200, 200, ""),
    ]
    assert (hung.status, hung.fault) == (0, "hang")
    assert gaps([lost, hung, read])[1] >= 0.15  # the caller's clock began before the request came
    assert len(hub.writes) == 1


def test_an_issue_page_shows_comments_and_runs_nothing(hub: GitHubServer) -> None:
    hub.state.comment(
        "octo-org/nets",
        1,
        "reprise[bot]",
        "**bold** <script>alert(1)</script>\n\n| a |\n|---|\n| b |",
        app=True,
    )
    page = httpx.get(f"{hub.url}/octo-org/nets/issues/1")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert all(
        words in page.text
        for words in ("Loss is NaN", "<strong>bold</strong>", "<td>b</td>", "reprise</b>", "bot")
    )
    assert httpx.get(f"{hub.url}/octo-org/nets/issues/9").status_code == 404


def test_a_manifest_becomes_an_app_once(hub: GitHubServer) -> None:
    manifest = {
        "name": "Mine",
        "url": "https://reprise.example",
        "redirect_url": "http://localhost:8000/setup/done",
        "hook_attributes": {"url": "https://reprise.example/webhook"},
        "default_permissions": {"issues": "write"},
        "default_events": ["issues"],
    }
    where = f"{hub.url}/organizations/octo-org/settings/apps/new?state=abc"
    back = urlsplit(httpx.post(where, data={"manifest": json.dumps(manifest)}).headers["location"])
    assert (back.path, parse_qs(back.query)["state"]) == ("/setup/done", ["abc"])
    code = parse_qs(back.query)["code"][0]
    answers = [httpx.post(f"{hub.api_url}/app-manifests/{code}/conversions") for _ in range(2)]
    assert [each.status_code for each in answers] == [201, 404]
    made = answers[0].json()
    assert (made["id"], made["pem"], made["webhook_secret"]) == (
        hub.state.app.id,
        hub.state.app.key,
        hub.state.app.secret,
    )
    assert (made["name"], made["permissions"], hub.state.app.webhook) == (
        "Mine",
        {"issues": "write"},
        "https://reprise.example/webhook",
    )
    assert httpx.post(where, data={"manifest": "{}"}).status_code == 422


def test_it_runs_as_a_process_and_is_steered_over_http(ear: Ear, tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "tests.support.server.main",
        "--settings",
        str(tmp_path / "app"),
        "--state",
        str(tmp_path / "end"),
    ]
    argv += ["--openapi", str(DESCRIPTION)] if DESCRIPTION.exists() else []
    webhook = f"http://127.0.0.1:{ear.server_port}/"
    with subprocess.Popen(
        [*argv, "--webhook", webhook], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            settings = json.loads((tmp_path / "app").read_text())
            assert settings["REPRISE_PRIVATE_KEY"].startswith("-----BEGIN")
            assert (tmp_path / "app").stat().st_mode & 0o077 == 0

            def tell(what: str, **arguments: object) -> httpx.Response:
                return httpx.post(f"{url}/-/{what}", json=arguments)

            assert tell("state/repository", name="o/n").json()["full_name"] == "o/n"
            assert tell(
                "commit", repository="o/n", files={"a": "b"}, date="2023-01-02T03:04:05+00:00"
            ).json()["sha"]
            assert (
                tell(
                    "state/issue",
                    repository="o/n",
                    title="T",
                    created_at="2023-01-02T03:04:05+00:00",
                ).json()["number"]
                == 1
            )
            assert (
                tell("deliver/issue_opened", repository="o/n", number=1, guid="g-1").json()["guid"]
                == "g-1"
            )
            assert ear.heard[0][0]["x-github-delivery"] == "g-1"
            assert (
                tell("state/mint", installation=1).status_code
                == tell("nonsense").status_code
                == 400
            )
            tell("fail", kind="error", status=503)
            assert [httpx.get(f"{url}/rate_limit").status_code for _ in range(2)] == [503, 200]
            assert [each["status"] for each in httpx.get(f"{url}/-/state").json()["requests"]] == [
                503,
                200,
            ]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
    assert (
        json.loads((tmp_path / "end").read_text())["repositories"]["o/n"]["issues"]["1"]["title"]
        == "T"
    )
