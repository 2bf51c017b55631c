"""`reprise serve` and `reprise worker` as a host starts them: real processes, from the first
start without credentials on.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
import yaml

from bot.app.store import SqlStore
from bot.kernel.run import Delivery
from tests.support.postgres import postgres_server
from tests.support.stand_in import GitHubServer

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from bot.cli.app import main; main()"]


class Process:
    """A running `reprise`, with what it said on standard error so far."""

    command = COMMAND

    def __init__(self, folder: Path, *argv: str, **more: str) -> None:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("REPRISE_", "COV_"))
        }
        env = (
            kept
            | {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", "REPRISE_SANDBOX": "process"}
            | more
        )
        self.process = subprocess.Popen(
            [*self.command, *argv], cwd=folder, env=env, stderr=subprocess.PIPE, text=True
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def said(self) -> str:
        return "".join(self._lines)

    def waits(self, pattern: str, seconds: float = 40.0) -> re.Match[str]:
        until = time.monotonic() + seconds
        while (found := re.search(pattern, self.said)) is None:
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.said}"
            assert time.monotonic() < until, f"{pattern} was not said: {self.said}"
            time.sleep(0.02)
        return found

    def ended(self, number: int | None = signal.SIGTERM, seconds: float = 40.0) -> int:
        if number is not None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        finally:
            self._reader.join(5)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.append(line)
        self.process.stderr.close()


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start programs in a folder of the test; those that still run at its end are killed."""
    running: list[Process] = []

    def begin(*argv: str, **more: str) -> Process:
        running.append(Process(tmp_path, *argv, **more))
        return running[-1]

    yield begin
    for each in running:
        if each.process.poll() is None:
            each.ended(signal.SIGKILL)


@pytest.fixture
def hub() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        yield server


def lives_at(hub: GitHubServer) -> dict[str, str]:
    return {"REPRISE_GITHUB_URL": hub.url, "REPRISE_GITHUB_API_URL": hub.api_url}


class _Form(HTMLParser):
    action = manifest = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = found["action"]
        if found.get("name") == "manifest":
            self.manifest = found["value"]


class Caller:
    """Knocks all the time; what it was told, in order. A refused connection would be a gap."""

    def __init__(self, url: str) -> None:
        self.told: list[int | str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._call, args=(url,))
        self._thread.start()

    def _call(self, url: str) -> None:
        while not self._stop.is_set():
            try:
                self.told.append(httpx.post(url, content=b"{}", timeout=30).status_code)
            except httpx.ConnectError as error:
                self.told.append(type(error).__name__)
            except httpx.HTTPError:
                # a connection that was open when the server changed; GitHub's deliveries are asked
                # for again
                pass
            self._stop.wait(0.05)

    def end(self) -> list[int | str]:
        self._stop.set()
        self._thread.join(60)
        return self.told


def register(url: str, key: str) -> httpx.Response:
    """What a person does in a browser."""
    assert httpx.get(f"{url}/setup", params={"key": key}).status_code == 200
    fields = {
        "key": key,
        "name": "Reprise-e2e",
        "hook": f"{url}/webhook",
        "organisation": "octo-org",
    }
    review = httpx.post(f"{url}/setup", data=fields)
    form = _Form()
    form.feed(review.text)
    consent = httpx.post(form.action, data={"manifest": form.manifest})
    return httpx.get(consent.headers["location"])


def test_a_first_start_registers_the_app_and_goes_on_serving(
    start: Start, hub: GitHubServer, tmp_path: Path
) -> None:
    first = start("serve", "--embedded", "--port", "0", **lives_at(hub))
    found = first.waits(r"open (http://localhost:\d+)/setup\?key=(\S+)")
    url, key = found[1].replace("localhost", "127.0.0.1"), found[2]
    caller = Caller(f"{url}/webhook")
    done = register(found[1], key)
    assert done.status_code == 200, done.text
    assert "/installations/new" in done.text
    first.waits(r"GitHub delivers to http://localhost:\d+/webhook")
    until = time.monotonic() + 20
    while 401 not in caller.told and time.monotonic() < until:
        time.sleep(0.05)
    told = caller.end()
    assert set(told) == {503, 401}, (
        "GitHub is asked to come back, then unsigned deliveries are refused; nobody is turned away"
    )
    assert told == sorted(told, reverse=True)
    assert httpx.get(f"{url}/setup", params={"key": key}).status_code == 404
    assert hub.deliver("ping", {"zen": "Keep it logically awesome.", "hook_id": 1}).status == "OK"
    assert first.ended() == 0
    again = start("serve", "--embedded", "--port", "0", **lives_at(hub))
    again.waits("GitHub delivers to")
    assert "/setup" not in again.said
    assert again.ended(signal.SIGINT) == 0
    for secret in (hub.state.app.secret, hub.state.app.key.splitlines()[1]):
        assert secret not in first.said + again.said
    assert {path.name for path in tmp_path.glob("reprise-app*")} == {
        "reprise-app.env",
        "reprise-app.private-key.pem",
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"REPRISE_APP_ID": "7"},
            "Missing: REPRISE_PRIVATE_KEY_FILE, REPRISE_WEBHOOK_SECRET.",
        ),
        (
            {"REPRISE_WEBHOOK_SECRET": "of-the-test"},
            "Missing: REPRISE_APP_ID, REPRISE_PRIVATE_KEY_FILE.",
        ),
        ({"REPRISE_GITHUB_URL": "https://ghes.example.com"}, "REPRISE_GITHUB_API_URL"),
        ({"REPRISE_APP_FILE": "absent/app.env"}, "REPRISE_APP_FILE"),
        ({"REPRISE_BIND": "192.0.2.1"}, "Nothing can listen on 192.0.2.1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_served_is_refused_in_a_sentence(
    start: Start, given: dict[str, str], said: str
) -> None:
    program = start("serve", "--embedded", "--port", "0", **given)
    assert program.ended(None) == 2
    assert said in program.said
    assert "Traceback" not in program.said
    assert "of-the-test" not in program.said


def test_a_worker_waits_for_the_app_and_leaves_when_it_is_told_to(
    start: Start, tmp_path: Path
) -> None:
    worker = start("worker")
    worker.waits("waiting for .*reprise-app.env")
    assert worker.ended() == 0


class Open(Process):
    """One that tells at its end what it had loaded."""

    command = [
        sys.executable,
        "-c",
        (
            "import atexit, gc, sys; "
            "atexit.register(lambda: print('loaded', *sys.modules, file=sys.stderr)); "
            "atexit.register(lambda: print('spared', gc.get_freeze_count(), file=sys.stderr)); "
            "from bot.cli.app import main; main()"
        ),
    ]


def test_the_web_process_carries_nothing_of_the_engine(tmp_path: Path) -> None:
    """The command itself, registered, on tables that are there: what keeps a delivery and shows
    a page, and no more. The collector of cycles passes over that, or deliveries wait for it.
    """
    SqlStore(f"sqlite:///{tmp_path}/reprise.db").close()
    key = "\n".join(f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END")).replace(
        "\n", "\nMA==\n"
    )
    app = {
        "REPRISE_APP_ID": "1",
        "REPRISE_PRIVATE_KEY": key,
        "REPRISE_WEBHOOK_SECRET": "of-the-test",
    }
    app |= {"REPRISE_DATABASE_URL": f"sqlite:///{tmp_path}/reprise.db"}
    web = Open(tmp_path, "serve", "--port", "0", **app)
    try:
        url = web.waits(r"Listening on (http://\S+)")[1]
        assert httpx.get(f"{url}/readyz", timeout=20).status_code == 200
        assert httpx.post(f"{url}/webhook", content=b"{}").status_code == 401
        assert httpx.get(f"{url}/").status_code == 200
        status = Path(f"/proc/{web.process.pid}/status").read_text()
    finally:
        code = web.ended()
    assert code == 0
    loaded = set(re.findall(r"loaded (.*)", web.said)[0].split())
    assert {
        "handlers.app",
        "handlers.pages",
        "bot.app.store",
        "bot.app.queue.redis",
        "uvloop",
    } <= loaded
    heavy = (
        "docker",
        "githubkit",
        "httpx",
        "jsonschema",
        "requests",
        "alembic",
        "bot.issues.reproduce",
        "bot.app.bootstrap",
        "bot.app.worker",
    )
    heavy += (
        "bot.environment.builder",
        "bot.app.github",
        "bot.model.endpoint",
        "benchmarks.runner",
        "benchmarks.webhook.measure",
    )
    heavy += ("sandbox.docker", "sandbox.select", "bot.issues.reading", "bot.issues.search")
    assert {
        name
        for name in loaded
        if name.startswith(tuple(f"{each}." for each in heavy)) or name in heavy
    } == set()
    assert int(re.findall(r"spared (\d+)", web.said)[0]) > 50_000
    assert int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024 < 150


def test_what_a_killed_process_left_waiting_is_looked_at_at_once_and_in_order(
    start: Start, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path}/reprise.db"
    key = "\n".join(f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END")).replace(
        "\n", "\nMA==\n"
    )
    app = {
        "REPRISE_APP_ID": "1",
        "REPRISE_PRIVATE_KEY": key,
        "REPRISE_WEBHOOK_SECRET": "of-the-test",
    }
    began, guids = datetime.now(UTC), [f"g{number * 7 % 12}" for number in range(12)]
    with closing(SqlStore(database)) as store:
        for number, guid in enumerate(guids):
            when = began + timedelta(milliseconds=number)
            gone = {
                "event": "installation",
                "action": "deleted",
                "trigger": "uninstalled",
                "installation": 1,
            }
            store.claim([Delivery.model_validate({"guid": guid, "received_at": when, **gone})])
            store.take_delivery(guid, "killed", 60)
            store.defer_delivery(guid, "killed", 0)
    program = start("serve", "--embedded", "--port", "0", REPRISE_DATABASE_URL=database, **app)
    program.waits("worker started device=cpu")
    for guid in guids:
        program.waits(f"task done kind=delivery id={guid} ", seconds=5)
    taken = re.findall(r"task taken kind=delivery id=(\w+) turn=(\d)", program.said)
    assert {turn for _, turn in taken} == {"1"}
    order = [guid for guid, _ in taken]
    assert sorted(order) == sorted(guids)
    assert max(abs(order.index(guid) - place) for place, guid in enumerate(guids)) < 4, order
    assert program.ended() == 0


def test_a_stranger_sees_no_form(start: Start, hub: GitHubServer) -> None:
    program = start("serve", "--embedded", "--port", "0", **lives_at(hub))
    url = program.waits(r"open (http://\S+)/setup")[1]
    answers = [
        httpx.get(f"{url}{path}")
        for path in ("/", "/setup", "/setup?key=guess", "/setup/callback?code=a&state=b")
    ]
    assert [each.status_code for each in answers] == [404, 403, 403, 403]
    with suppress(httpx.HTTPError):
        assert (
            httpx.post(
                f"{url}/setup", data={"key": "guess", "name": "x", "hook": "https://x.example"}
            ).status_code
            == 403
        )
    assert program.ended() == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@pytest.fixture
def services(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What compose.yaml's Redis and PostgreSQL are to the App, as the files of secrets that
    deploy/secrets.sh would make.
    """
    port, password = _free_port(), "pa55word-of-redis"
    (tmp_path / "redis.conf").write_text(
        f"port {port}\nbind 127.0.0.1\nrequirepass {password}\nsave ''\nappendonly no\n"
    )
    redis = subprocess.Popen(
        ["redis-server", str(tmp_path / "redis.conf")], stdout=subprocess.DEVNULL
    )
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "reprise_redis_url").write_text(f"redis://default:{password}@127.0.0.1:{port}/0")
    with postgres_server() as cluster:
        (folder / "reprise_database_url").write_text(cluster.fresh())
        yield {
            "REPRISE_SECRETS_DIR": str(folder),
            "REPRISE_APP_FILE": str(tmp_path / "state" / "reprise-app.env"),
        }
    redis.kill()
    redis.wait()


@pytest.mark.redis
@pytest.mark.postgres
def test_the_processes_of_the_compose_file_work_together(
    start: Start, hub: GitHubServer, services: dict[str, str], tmp_path: Path
) -> None:
    """Web and worker with the commands and settings of compose.yaml, on a real Redis and
    PostgreSQL.
    """
    (tmp_path / "state").mkdir()
    compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    words = {
        name: [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in compose[name]["command"]]
        for name in ("web", "worker-cpu")
    }
    port = str(_free_port())
    settings = (
        services
        | lives_at(hub)
        | {"REPRISE_PORT": port, "REPRISE_PUBLIC_URL": f"http://localhost:{port}"}
    )
    worker = start(*words["worker-cpu"], **settings)
    web = start(*words["web"], **settings)
    found = web.waits(r"open (http://localhost:\d+)/setup\?key=(\S+)")
    assert register(found[1], found[2]).status_code == 200
    web.waits("GitHub delivers to")
    worker.waits(r"App .* on http://127")
    assert "redis://default@127.0.0.1" in web.said
    hub.state.repository("octo-org/nets")
    hub.state.collaborator("octo-org/nets", "ann", "write")
    issue = hub.state.issue("octo-org/nets", "Loss is NaN", "It fails", "ann")
    told = hub.deliver(
        hub.events.issue_comment("octo-org/nets", issue.number, "ann", "/reproduce help")
    )
    assert told.status_code == 202
    until = time.monotonic() + 60
    while not hub.state.ours("octo-org/nets", issue.number) and time.monotonic() < until:
        time.sleep(0.1)
    assert [comment.body for comment in hub.state.ours("octo-org/nets", issue.number)], worker.said
    assert worker.ended() == 0
    assert web.ended() == 0
    for secret in (hub.state.app.secret, "pa55word-of-redis", hub.state.app.key.splitlines()[1]):
        assert secret not in web.said + worker.said
