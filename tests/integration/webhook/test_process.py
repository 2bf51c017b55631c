"""The web process itself: what it loads, what it weighs, and how it ends."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from handlers.webhook import sign
from tests.integration.webhook.test_app import GUID, opened

SERVER = """
import signal
import sys
from typing import cast
from pydantic import SecretStr
from bot.app.ports import AppStore
from bot.app.ports import Queue
from bot.kernel.settings import Settings
from handlers.app import create
from handlers.server import address, bind, make
class Nothing:
    def claim(self, deliveries): return tuple("new" for _ in deliveries)
    def offer(self, task, delay_s=0.0): pass
    def switches(self): return {}
nothing = Nothing()
app = create(Settings(webhook_secret=SecretStr("s")), cast(AppStore, nothing), cast(Queue, nothing))
signal.signal(signal.SIGTERM, lambda *_: None)
with bind("127.0.0.1", 0) as sock:
    print(address(sock), flush=True)
    make(app).run(sockets=[sock])
print(*sorted(sys.modules), flush=True)
"""


def test_the_web_process_is_light_and_ends_when_told() -> None:
    with subprocess.Popen(
        (sys.executable, "-c", SERVER), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            loaded = served(process, int(process.stdout.readline().rsplit(":", 1)[1]))
        finally:
            process.kill()
    assert {"handlers.app", "bot.kernel.settings", "uvloop"} <= loaded
    engine = ("bot.issues.reproduce", "bot.issues.reading", "bot.environment.builder", "bot.model.")
    engine = ("bot.issues.reproduce", "bot.issues.reading", "bot.environment.builder", "bot.model.")
    heavy = {"githubkit", "docker", "typer", "rich", "jsonschema", "arq", "httpx"}
    assert {
        name for name in loaded if name.partition(".")[0] in heavy or name.startswith(engine)
    } == set()


def served(process: subprocess.Popen[str], port: int) -> set[str]:
    """What the process had loaded after 200 deliveries."""
    body = opened()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": GUID,
        "X-Hub-Signature-256": sign("s", body),
    }
    for _ in range(200):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("POST", "/webhook", body, headers)
        assert connection.getresponse().status == 202
        connection.close()
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert (
        int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
        / 1024
        < 150
    )
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    loaded = set(process.stdout.read().split())
    assert process.wait(10) == 0
    assert time.monotonic() - begun < 5
    return loaded


def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    from bot.kernel.errors import UserError
    from handlers.server import bind

    with (
        bind("127.0.0.1", 0) as held,
        pytest.raises(UserError, match=r"Nothing can listen on 127\.0\.0\.1 port \d+"),
    ):
        bind("127.0.0.1", held.getsockname()[1])
