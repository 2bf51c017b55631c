"""Pull requests end to end: a delivery, the service, the real adapter and a GitHub with real git,
held to GitHub's description; what comes of it is cloned and tested with real pytest.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time
from typing import Any

import pytest

from bot.app.context import AppContext, HostPolicy
from bot.app.github.client import GitHubApp
from bot.app.github.writes import CredentialsAlarm, WriteLimit
from bot.app.ports import Task
from bot.app.worker import Service, reap
from bot.kernel.bug import Issue
from bot.kernel.run import Command, Delivery, Repository
from tests.contract.github.conftest import DESCRIPTION
from tests.integration.test_regression import FIXED, PROGRAM, made, report, runs_tests
from tests.support.fakes import InlineQueue, MemoryStore
from tests.support.stand_in import GitHubServer

NAME, NUMBER, BRANCH = "acme/lib", 12, "reprise/issue-12"
GRANTED = {"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write"}
FILES = {
    "lib/__init__.py": "",
    "lib/stats.py": "def mean(rows):\n    return sum(rows) / len(rows)\n",
    "tests/test_other.py": "def test_other():\n    assert True\n",
    "pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['.']\n",
}
QUIET = "triggers:\n  opened: bugs\ndefaults:\n  proofs: []\n"


class World:
    """A repository with an issue, and the App. Its engine finds what `report` says."""

    def __init__(self, server: GitHubServer) -> None:
        self.server, self.report = server, report()
        self.here = server.state.repository(NAME)
        self.base = server.commit(NAME, FILES)
        server.state.issue(NAME, "mean fails", PROGRAM, number=NUMBER)
        server.state.collaborator(NAME, "max", "write")
        installation = server.state.covering(NAME)
        assert installation is not None
        self.installation = installation
        installation.permissions = dict(GRANTED)
        app, self.ahead, self.guids = server.state.app, 0.0, 0
        self.github = GitHubApp(server.api_url, app.id, app.key, app.slug, timeout_s=5)
        self.store = MemoryStore(clock=lambda: time() + self.ahead, write_gap_s=0, notify_gap_s=0)
        self.queue = InlineQueue()
        self.service = self.another()

    def another(self) -> Service:
        """Another worker over the same store and queue, as the App builds it."""
        hub = self.github.hooked(WriteLimit(self.store), CredentialsAlarm(self.store))
        policy = HostPolicy(public_url="https://reprise.example", beat_s=0.02, lease_s=5.0)
        return Service(AppContext(self.store, self.queue, hub, self._engine, policy))

    def _engine(self, job: Any, **_: object):
        return self.report.model_copy(update={"issue": job.issue})

    def issue(self) -> Issue:
        """The issue as it is delivered."""
        return Issue(
            title="mean fails",
            body=f"```python\n{PROGRAM}```\n\n```\nZeroDivisionError: division by zero\n```\n",
            repository=NAME,
            number=NUMBER,
            author="reporter",
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
            url=f"{self.server.url}/{NAME}/issues/{NUMBER}",
        )

    def deliver(
        self, trigger: str = "comment", *verbs: str, sender: str = "max", argument: str = ""
    ) -> int | None:
        """A delivery is stored and handled; the id of its comment."""
        self.guids += 1
        state = self.server.state
        said = "\n".join(f"/reproduce {verb} {argument}".rstrip() for verb in verbs)
        comment = state.comment(NAME, NUMBER, sender, said).id if verbs else None
        kept = Delivery(
            guid=f"guid-{self.guids}",
            event="issues",
            action=trigger,
            trigger=trigger,
            installation=self.installation.id,
            repository=Repository(id=7, full_name=NAME, clone_url=f"{self.server.url}/{NAME}.git"),
            issue=self.issue(),
            sender=sender,
            comment=comment,
            commands=tuple(
                Command(text=f"/reproduce {verb}", verb=verb, argument=argument) for verb in verbs
            ),
            received_at=datetime.now(UTC) + timedelta(seconds=1),
        )
        assert self.store.claim([kept]) == ("new",)
        self.queue.offer(Task(kind="delivery", id=kept.guid))
        self.queue.drain(self.service.handle)
        return comment

    def asked(self, sender: str = "max") -> str:
        """Somebody asks for a pull request; what the App answers, "" for a reaction alone."""
        before = {each.id for each in self.server.state.ours(NAME, NUMBER)}
        self.deliver("comment", "pr", sender=sender)
        new = [each for each in self.server.state.ours(NAME, NUMBER) if each.id not in before]
        return new[0].body if new else ""

    def resume(self) -> None:
        """Time passes, and whatever waited for it is looked at by another worker."""
        self.ahead += 3600.0
        self.service = self.another()
        reap(self.service.context)
        self.queue.drain(self.service.handle)

    def pulls(self) -> list[tuple[int, str, bool]]:
        """Number, state and draft of every pull request."""
        return [
            (number, self.here.issues[number].state, pull.draft)
            for number, pull in sorted(self.here.pulls.items())
        ]

    def body(self) -> str:
        """The text of the newest pull request."""
        return self.here.issues[max(self.here.pulls)].body or ""

    def sticky(self) -> str:
        """The comment with the verdict."""
        ours = [each.body for each in self.server.state.ours(NAME, NUMBER)]
        return next(body for body in ours if body.startswith("<!-- reprise:run -->"))

    def changed(self) -> list[str]:
        """What the branch changes of the default branch, by git."""
        folder = self.server.git.folder(self.here)
        argv = ("git", "diff", "--name-status", f"main...{BRANCH}")
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[:-1]

    def cloned(self, to: Path, ref: str = BRANCH) -> Path:
        """A clone over HTTP."""
        quiet = {"PATH": os.environ["PATH"], "HOME": str(to.parent), "GIT_TERMINAL_PROMPT": "0"}
        argv = ("git", "clone", "-q", "-b", ref, f"{self.server.url}/{NAME}.git", str(to))
        subprocess.run(argv, check=True, env=quiet, timeout=60)
        return to


@pytest.fixture
def world() -> Iterator[World]:
    described = DESCRIPTION if DESCRIPTION.exists() else None
    with GitHubServer(openapi=described, echo=False) as server:
        made = World(server)
        yield made
        assert server.violations == []


@pytest.fixture
def found(world: World) -> World:
    """The same after a reproduced run."""
    world.deliver("comment", "reproduce")
    assert "**Reproduced**" in world.sticky()
    return world


def test_a_writer_gets_a_draft_with_a_test_that_fails_until_the_bug_is_fixed(found, tmp_path):
    assert found.asked() == ""
    assert found.pulls() == [(13, "open", True)]
    assert found.changed() == ["A\ttests/test_issue_12.py"]
    clone = found.cloned(tmp_path / "clone")
    code, said = runs_tests(clone)
    assert (code, "1 passed, 1 xfailed" in said) == (0, True), said
    (clone / "lib/stats.py").write_text(FIXED)
    code, said = runs_tests(clone)
    assert (code, "[XPASS(strict)] #12" in said) == (1, True), said
    body = found.body()
    assert "both confirming runs" in body
    assert f"[#12]({found.server.url}/acme/lib/issues/12)" in body
    assert "Measured in" in body
    assert "/pull/13)" in found.sticky()


def test_its_token_can_do_that_alone_and_ends_with_it(found):
    asked = len(found.server.requests)
    found.asked()
    code = ("/git/", "/pulls", "/compare/")
    made = [each for each in found.server.requests[asked:] if any(c in each.path for c in code)]
    assert {frozenset(each.permissions.items()) for each in made} == {
        frozenset({**GRANTED, "issues": "read"}.items())
    }
    assert {each.repositories for each in made} == {(NAME,)}
    alive = [token.permissions for token in found.server.state.tokens.values()]
    assert all("pull_requests" not in permissions for permissions in alive)
    assert any(each.path == "/installation/token" for each in found.server.requests)


def test_asking_again_updates_the_same_one(found):
    found.asked()
    first = found.server.git.resolve(found.here, BRANCH)
    assert found.asked() == ""
    assert found.server.git.resolve(found.here, BRANCH) == first
    found.report = report("import lib.stats\n\nlib.stats.mean([])\n")
    found.deliver("comment", "reproduce")
    found.server.commit(NAME, {"lib/new.py": "x = 1\n"})
    found.asked()
    head = found.server.git.resolve(found.here, BRANCH)
    assert found.server.git.log(found.here, first, f"^{head}") == [], "a fast-forward"
    assert found.pulls() == [(13, "open", True)]
    assert found.changed() == ["A\ttests/test_issue_12.py"]
    text = subprocess.run(
        ("git", "show", f"{BRANCH}:tests/test_issue_12.py"),
        cwd=found.server.git.folder(found.here), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "import lib.stats" in text
    assert "lib/new.py" in [each.path for each in found.server.git.tree(found.here, BRANCH)]


def test_commits_of_others_on_the_branch_are_left_alone(found):
    found.asked()
    theirs = found.server.commit(NAME, {"tests/test_issue_12.py": "# mine\n"}, branch=BRANCH)
    assert "Others have committed" in found.asked()
    assert found.server.git.resolve(found.here, BRANCH) == theirs


def test_a_branch_of_that_name_that_was_there_before_is_left_alone(found):
    theirs = found.server.commit(NAME, {"x.py": "x = 1\n"}, branch=BRANCH)
    assert "Others have committed" in found.asked()
    assert (found.server.git.resolve(found.here, BRANCH), found.pulls()) == (theirs, [])


def test_a_branch_that_cannot_be_made_is_said_so(found):
    found.server.commit(NAME, {"x.py": "x = 1\n"}, branch="reprise")
    answer = found.asked()
    assert "the branch reprise/issue-12" in answer
    assert "Reference update failed" in answer
    assert found.pulls() == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/git/trees$"),
        ("POST", "/git/commits$"),
        ("POST", "/git/refs$"),
        ("POST", "/pulls$"),
        ("GET", "/compare/"),
    ],
)
@pytest.mark.parametrize("kind", ["lose", "error"])
def test_broken_off_anywhere_it_ends_in_one(found, kind, method, path):
    found.server.fail(kind, method, path)
    found.asked()
    found.resume()
    assert found.pulls() == [(13, "open", True)]
    assert found.changed() == ["A\ttests/test_issue_12.py"]
    assert "/pull/13)" in found.sticky()


def test_a_worker_killed_after_it_was_opened_finds_it_again(found):
    found.asked()
    found.store.forget_comment(NAME, NUMBER, "pr")
    assert found.asked() == ""
    assert found.pulls() == [(13, "open", True)]


def test_nobody_else_gets_one(found):
    assert "write permission" in found.asked("passer-by")
    assert "write permission" in found.asked("reporter")
    assert (found.pulls(), found.server.git.resolve(found.here, BRANCH)) == ([], "")


def test_without_the_permissions_the_answer_says_how_to_grant_them(found):
    found.installation.permissions = {"metadata": "read", "contents": "read", "issues": "write"}
    answer = found.asked()
    assert "may not open pull requests" in answer
    assert "Contents and Pull requests" in answer
    assert found.pulls() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda world: setattr(world.here, "fork", True), "is a fork"),
        (lambda world: setattr(world.here, "archived", True), "is archived"),
        (lambda world: setattr(world.here, "drafts", False), "no draft pull requests"),
        (lambda world: setattr(world.here.issues[NUMBER], "state", "closed"), "issue is closed"),
    ],
    ids=["fork", "archived", "drafts", "closed"],
)
def test_where_there_can_be_none_the_answer_says_why(found, change, words):
    change(found)
    assert words in found.asked()
    assert found.pulls() == []


def test_without_a_reproduced_run_there_is_nothing_to_open(world):
    assert "No run has reproduced this issue or found a patch" in world.asked()
    assert world.pulls() == []


def test_it_is_closed_with_its_issue(found):
    found.asked()
    found.here.issues[NUMBER].state = "closed"
    found.deliver("closed", sender="reporter")
    assert found.pulls() == [(13, "closed", True)]
    writes = len(found.server.writes)
    found.deliver("closed", sender="reporter")
    assert len(found.server.writes) == writes
    found.here.issues[NUMBER].state = "open"
    found.asked()
    assert found.pulls() == [(13, "closed", True), (14, "open", True)]


def test_a_merged_one_is_not_made_again(found):
    found.asked()
    found.here.pulls[13].merged_at = datetime.now(UTC)
    found.here.issues[13].state = "closed"
    assert "has been merged" in found.asked()
    assert len(found.pulls()) == 1


@pytest.mark.parametrize(("sender", "opened"), [("max", 1), ("reporter", 0)])
def test_automatically_only_for_runs_that_a_writer_asked_for(world, sender, opened):
    world.server.commit(NAME, {".github/reprise.yml": f"pull_request: auto\n{QUIET}"})
    world.deliver("comment", "reproduce", sender=sender)
    assert "**Reproduced**" in world.sticky()
    assert len(world.pulls()) == opened
    assert ("/pull/13)" in world.sticky()) == bool(opened)
    if opened:
        world.here.issues[13].state = "closed"
        world.deliver("comment", "reproduce", sender=sender)
        assert world.pulls() == [(13, "closed", True)], "somebody closed it"


HOSTILE = {
    ".gitattributes": "* filter=evil merge=evil\n*.py filter=evil\n",
    ".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch /tmp/pwned"\n',
    ".husky/pre-commit": "touch pwned\n",
    "hooks/post-checkout": "touch pwned\n",
    ".github/workflows/ci.yml": "on: push\n",
    "tests/test_huge.py": "x = 1\n" * 400_000,
    "tests/conftest.py": "raise SystemExit\n",
    "pytest.ini": "[pytest]\npython_files = ../../.github/workflows/*.py test_*.py\ntestpaths = ../.. /etc tests\n",
}


def test_a_hostile_repository_gets_a_test_and_nothing_else(world):
    world.server.commit(NAME, HOSTILE)
    world.deliver("comment", "reproduce")
    world.asked()
    assert world.changed() == ["A\ttests/test_issue_12.py"]


def test_a_linked_tests_folder_is_not_written_through(world, tmp_path):
    git, here = world.server.git, world.here
    folder = git.folder(here)
    work = made(tmp_path / "work", {"lib/__init__.py": "", "lib/stats.py": FILES["lib/stats.py"]})
    (work / "tests").symlink_to(".github")
    (work / "test").write_text("a file\n")
    env = {**os.environ, "GIT_DIR": str(folder), "GIT_WORK_TREE": str(work)}
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for argv in (("read-tree", "--empty"), ("add", "-A"), (*who, "commit", "-qm", "Links")):
        subprocess.run(("git", *argv), env=env, cwd=work, check=True)
    world.deliver("comment", "reproduce")
    assert "no folder for tests" in world.asked()
    assert world.pulls() == []


def test_a_default_branch_of_any_name(world):
    world.server.commit(NAME, {"a.py": "a = 1\n"}, branch="release/2.x;$(id)'&|")
    world.here.default_branch = "release/2.x;$(id)'&|"
    world.deliver("comment", "reproduce")
    assert world.asked() == ""
    assert world.here.pulls[13].base == world.here.default_branch


def test_status_names_it(found):
    found.asked()
    before = {each.id for each in found.server.state.ours(NAME, NUMBER)}
    found.deliver("comment", "status")
    (said,) = [e.body for e in found.server.state.ours(NAME, NUMBER) if e.id not in before]
    assert "/pull/13)" in said
