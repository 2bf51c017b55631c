"""The App whole and real: Redis, a database, Docker, git over HTTP; GitHub alone is a stand-in
that GitHub's own description judges.
"""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.deliveries import _BODY as MEAN
from benchmarks.supervised import Supervised, free_port, reachable, redis
from bot.kernel.settings import host
from tests.support.postgres import postgres_server
from tests.support.stand_in import GitHubServer

NODE = Path(__file__).resolve().parents[1] / "node" / "node_modules" / "@octokit" / "openapi"
REPOSITORY = "acme/widgets"
SLEEPS = """With Python 3.11 this never ends, it just hangs:

```python
import threading

threading.Event().wait()
```

It hangs forever in `threading.Event().wait()`.
"""

pytestmark = [pytest.mark.docker, pytest.mark.node, pytest.mark.redis, pytest.mark.postgres]


@dataclass
class Whole:
    """A running App with its GitHub."""

    hub: GitHubServer
    logs: Path
    programs: Supervised

    def containers(self, label: str) -> set[str]:
        """The containers that this App's worker runs now; other tests run theirs meanwhile."""
        form = '{{.ID}}\t{{.Label "reprise.owner"}}\t{{.Label "reprise.label"}}'
        done = subprocess.run(
            ["docker", "ps", "--format", form], capture_output=True, text=True, check=True
        )
        rows = (line.split("\t") for line in done.stdout.splitlines())
        worker = f"/{self.programs.pid('worker')}/"
        return {name for name, owner, kind in rows if worker in owner and kind.startswith(label)}

    def issue(
        self, body: str = MEAN.format(number=0), title: str = "mean fails on an empty list", **more
    ) -> int:
        return self.hub.state.issue(more.pop("repository", REPOSITORY), title, body, **more).number

    def opened(self, number: int, repository: str = REPOSITORY, guid: str | None = None):
        delivery = self.hub.deliver(self.hub.events.issue_opened(repository, number), guid=guid)
        assert delivery.status_code == 202, delivery.answer
        return delivery

    def says(self, number: int, author: str, body: str, repository: str = REPOSITORY):
        event = self.hub.events.issue_comment(repository, number, author, body)
        delivery = self.hub.deliver(event)
        assert 200 <= delivery.status_code < 300, delivery.answer
        return self.hub.state.comments[event.payload["comment"]["id"]]

    def ours(self, number: int, repository: str = REPOSITORY) -> list[str]:
        return [each.body for each in self.hub.state.ours(repository, number)]

    def until(self, seen: Callable[[], object], what: str, within_s: float = 60.0) -> float:
        began = time.monotonic()
        while not seen():
            if time.monotonic() - began > within_s:
                logs = "\n".join(
                    f"--- {path.name}\n{path.read_text()[-3000:]}"
                    for path in self.logs.glob("*.log")
                )
                pytest.fail(f"{what} did not happen within {within_s:g} s\n{logs}")
            time.sleep(0.05)
        return time.monotonic() - began

    def verdict(
        self, number: int, words: str, repository: str = REPOSITORY, within_s: float = 90.0
    ) -> str:
        self.until(
            lambda: any(words in body for body in self.ours(number, repository)), words, within_s
        )
        return next(body for body in self.ours(number, repository) if words in body)


def reactions(thing) -> set[str]:
    return {each.content for each in thing.reactions if each.user.endswith("[bot]")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """Web, Redis, PostgreSQL and a worker on Docker, with GitHub's own pace."""
    logs, web, queue = tmp_path_factory.mktemp("app"), free_port(), free_port()
    logs.chmod(0o755)
    script = str(Path(sys.executable).with_name("reprise"))
    openapi = NODE / "generated" / "api.github.com.json"
    with ExitStack() as stack:
        hub = stack.enter_context(
            GitHubServer(webhook=f"http://127.0.0.1:{web}/webhook", openapi=openapi)
        )
        database = stack.enter_context(postgres_server()).fresh()
        hub.state.repository(REPOSITORY)
        hub.state.collaborator(REPOSITORY, "max", "write")
        kept = {
            name: text for name, text in host().items() if not name.startswith(("REPRISE_", "COV_"))
        }
        env = {
            **kept,
            **hub.settings(),
            "REPRISE_DATABASE_URL": database,
            "REPRISE_REDIS_URL": f"redis://127.0.0.1:{queue}/0",
            "REPRISE_PUBLIC_URL": f"http://127.0.0.1:{web}",
            "REPRISE_APP_FILE": str(logs / "app.env"),
            "REPRISE_SANDBOX": "docker",
        }
        stack.enter_context(
            Supervised({"redis": redis(queue, logs, shutil.which("redis-server"))}, env, logs)
        )
        programs = {
            "web": [script, "serve", "--port", str(web)],
            "worker": [script, "worker", "--slots", "2"],
        }
        supervised = stack.enter_context(Supervised(programs, env, logs))
        assert reachable(web, 60)
        yield Whole(hub, logs, supervised)
        assert hub.violations == [], "every request is one that GitHub describes"


def test_an_opened_issue_ends_in_one_comment_with_its_verdict(whole):
    number = whole.issue()
    whole.opened(number)
    body = whole.verdict(number, "**Reproduced**")
    issue = whole.hub.state.repository(REPOSITORY).issues[number]
    whole.until(lambda: reactions(issue) == {"eyes", "+1"}, "both reactions")
    assert issue.labels == ["reprise: reproduced"]
    assert "both confirming runs" in body
    assert len(whole.ours(number)) == 1
    assert len(body) < 60_000


def test_a_redelivery_runs_once(whole):
    number = whole.issue()
    first = whole.opened(number)
    again = whole.hub.deliver(whole.hub.events.issue_opened(REPOSITORY, number), guid=first.guid)
    assert again.status_code in {200, 202}
    whole.verdict(number, "**Reproduced**")
    edits = len(whole.hub.state.ours(REPOSITORY, number)[0].history)
    time.sleep(3)
    assert len(whole.ours(number)) == 1
    assert len(whole.hub.state.ours(REPOSITORY, number)[0].history) == edits


def test_what_the_app_writes_is_told_to_it_and_leads_to_nothing(whole):
    number = whole.issue()
    whole.opened(number)
    whole.verdict(number, "**Reproduced**")
    comment = whole.hub.state.ours(REPOSITORY, number)[0].id

    def told():
        rows = [each for each in whole.hub.state.deliveries if each.event == "issue_comment"]
        return [
            each for each in rows if each.payload["comment"]["id"] == comment and each.status_code
        ]

    whole.until(told, "GitHub telling of the App's comment")
    assert all("wrote it itself" in each.answer for each in told())
    assert len(whole.ours(number)) == 1


def test_a_writer_may_choose_an_outsider_waits_for_approval(whole):
    number = whole.issue(author="reporter")
    asked = whole.says(number, "passer-by", "/reproduce python=3.11")
    plan = whole.verdict(number, "/reproduce approve")
    assert "Reproduced" not in plan
    whole.until(lambda: "eyes" in reactions(asked), "the reaction")
    hash_ = re.search(r"/reproduce approve ([0-9a-f]{8,64})", plan)[1]
    refused = whole.says(number, "passer-by", f"/reproduce approve {hash_}")
    whole.until(lambda: "confused" in reactions(refused), "the refusal")
    assert not any("**Reproduced**" in body for body in whole.ours(number))
    approved = whole.says(number, "max", f"I had a look.\n\n/reproduce approve {hash_}")
    whole.verdict(number, "**Reproduced**")
    whole.until(lambda: "+1" in reactions(approved), "the approval's reaction")


def test_commands_in_code_and_quotes_are_no_commands(whole):
    number = whole.issue()
    body = (
        "> /reproduce\n\n```\n/reproduce\n```\n\n<!--\n/reproduce\n-->\n\nuse `/reproduce` please"
    )
    event = whole.hub.events.issue_comment(REPOSITORY, number, "max", body)
    assert "no command" in whole.hub.deliver(event).answer
    unknown = whole.says(number, "max", "/reproduce pyton=3.10")
    whole.until(lambda: "confused" in reactions(unknown), "the answer")
    assert any("python" in body for body in whole.ours(number))


def test_cancel_ends_the_container_within_five_seconds(whole):
    number = whole.issue(SLEEPS, "Event.wait hangs forever")
    whole.says(number, "max", "/reproduce timeout=300")
    whole.until(lambda: whole.containers("run "), "a container")
    mine = whole.containers("run ")
    stopped = whole.says(number, "max", "/reproduce cancel")
    took = whole.until(lambda: not mine & whole.containers(""), "the end of the container", 10)
    assert took < 5.0
    whole.verdict(number, "Cancelled", within_s=20)
    whole.until(lambda: "+1" in reactions(stopped), "the reaction")


PARAMETERS = """With Python 3.11 and typing_extensions 4.6.0:

```python
from typing_extensions import ParamSpec, Protocol

P = ParamSpec("P")


class Callback(Protocol[P]):
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None: ...


print("defined")
```

```
TypeError: Parameters to Protocol[...] must all be type variables. Parameter 1 is ~P
```

It works in typing_extensions 4.5.0.
"""


@pytest.mark.index
@pytest.mark.slow  # every proof in containers
def test_a_verdict_is_followed_by_its_control_the_releases_and_a_smaller_program(whole):
    name, day = "acme/typing_extensions", datetime(2023, 5, 24, tzinfo=UTC)
    whole.hub.state.repository(name)
    whole.hub.state.collaborator(name, "max", "write")
    number = whole.issue(
        PARAMETERS, "Protocol generic over a ParamSpec", repository=name, created_at=day
    )
    whole.opened(number, name)
    body = whole.verdict(number, "**Reproduced", name, 300)
    assert "Bug confirmed" in body
    assert "typing-extensions 4.5.0" in body
    assert "introduced in 4.6.0 (2023-05-23), fixed in 4.6.1 (2023-05-24)" in body
    shown = body.partition("```python\n")[2].partition("```")[0]
    assert "Protocol[" in shown
    assert "print" not in shown, "the smaller program is the one in sight"
    whole.says(number, "max", "/reproduce bisect package=typing_extensions", name)
    asked = "as `/reproduce bisect` with `package=typing-extensions`"
    whole.until(
        lambda: any(asked in text and "**Reproduced" in text for text in whole.ours(number, name)),
        asked,
        300,
    )
    (body,) = whole.ours(number, name)
    assert "introduced in 4.6.0 (2023-05-23), fixed in 4.6.1 (2023-05-24)" in body
    assert "Bug confirmed" in body, "what was proven before is still shown"
    assert whole.hub.state.repository(name).issues[number].labels == ["reprise: reproduced"]


def test_cancel_in_the_middle_of_a_proof_keeps_the_verdict(whole):
    number = whole.issue(SLOW, "mean fails after a while")
    whole.says(number, "max", "/reproduce minimize")
    whole.until(lambda: whole.containers("minimise"), "a container of the minimiser")
    mine = whole.containers("minimise")
    stopped = whole.says(number, "max", "/reproduce cancel")
    took = whole.until(lambda: not mine & whole.containers(""), "the end of the container", 10)
    assert took < 5.0
    body = whole.verdict(number, "**Reproduced", within_s=20)
    assert "stopped by max: the verdict is final" in body
    whole.until(lambda: "+1" in reactions(stopped), "the reaction")


def test_a_private_repository_is_cloned_with_a_token_of_its_own(whole):
    name = "acme/gizmo"
    whole.hub.state.repository(name, private=True)
    whole.hub.commit(
        name,
        {
            "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n\n'
            '[project]\nname = "gizmo"\nversion = "1.2.0"\n',
            "gizmo/__init__.py": "def spin(speed):\n    raise ValueError(f'speed {speed} is not supported yet')\n",
        },
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    body = (
        "Main branch:\n\n```python\nimport gizmo\n\ngizmo.spin(3)\n```\n\n```\nTraceback (most recent call last):\n"
        '  File "a.py", line 3, in <module>\n    gizmo.spin(3)\n  File "/x/site-packages/gizmo/__init__.py", line 2, in spin\n'
        "    raise ValueError(f'speed {speed} is not supported yet')\nValueError: speed 3 is not supported yet\n```\n"
    )
    number = whole.issue(body, "spin fails", repository=name)
    whole.opened(number, name)
    report = whole.verdict(number, "**Reproduced**", name, 180)
    tokens = [
        token for token in whole.hub.state.tokens.values() if token.permissions.get("contents")
    ]
    assert tokens
    assert all(
        token.permissions == {"contents": "read", "metadata": "read"}
        or set(token.permissions) == {"contents"}
        for token in tokens
    )
    written = report + "".join(path.read_text() for path in whole.logs.glob("*.log"))
    assert not any(value in written for value in whole.hub.state.tokens)


SLOW = """With Python 3.11:

```python
import statistics
import time

end = time.monotonic() + 2
while time.monotonic() < end:
    statistics.mean([1, 2, 3])
print(statistics.mean([]))
```

```
Traceback (most recent call last):
  File "repro.py", line 7, in <module>
    print(statistics.mean([]))
  File "/usr/lib/python3.11/statistics.py", line 327, in mean
    raise StatisticsError('mean requires at least one data point')
statistics.StatisticsError: mean requires at least one data point
```
"""


@pytest.mark.slow  # killed in the middle of a run
def test_one_process_on_sqlite_is_killed_in_the_middle_and_goes_on_where_it_was(tmp_path):
    web = free_port()
    with GitHubServer(webhook=f"http://127.0.0.1:{web}/webhook") as hub:
        kept = {
            name: text for name, text in host().items() if not name.startswith(("REPRISE_", "COV_"))
        }
        env = {
            **kept,
            **hub.settings(),
            "REPRISE_DATABASE_URL": f"sqlite:///{tmp_path / 'reprise.db'}",
            "REPRISE_PUBLIC_URL": f"http://127.0.0.1:{web}",
            "REPRISE_APP_FILE": str(tmp_path / "app.env"),
            "REPRISE_SANDBOX": "docker",
            "REPRISE_LEASE_S": "3",
        }
        script = str(Path(sys.executable).with_name("reprise"))
        with Supervised(
            {"app": [script, "serve", "--embedded", "--port", str(web)]}, env, tmp_path
        ) as app:
            assert reachable(web, 60)
            one = Whole(hub, tmp_path, app)
            hub.commit(
                REPOSITORY,
                {".github/reprise.yml": "defaults:\n  proofs: []\n"},
                datetime(2026, 1, 1, tzinfo=UTC),
            )
            number = one.issue(SLOW, repository=REPOSITORY)
            one.opened(number)
            one.until(lambda: attempts(tmp_path / "reprise.db"), "the first attempt")
            app.kill(random.Random(0))
            done = attempts(tmp_path / "reprise.db")
            body = one.verdict(number, "**Reproduced**", within_s=120)
    assert app.starts["app"] == 2
    assert done >= 1
    assert attempts(tmp_path / "reprise.db") == 3, (
        "those that were made before the kill were not made again"
    )
    assert "both confirming runs" in body
    assert len(one.ours(number)) == 1


def attempts(database: Path) -> int:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        query = "SELECT count(*) FROM journal WHERE kind = 'attempts'"
        return connection.execute(query).fetchone()[0]
