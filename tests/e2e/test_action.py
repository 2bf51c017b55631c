"""The GitHub Action, job by job: the steps of action.yml as a runner executes them, on GitHub's own
example events, against a stand-in that checks what each token may do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.stand_in import GitHubServer

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / "tests" / "node" / "node_modules" / "@octokit"
EXAMPLES = NODE / "webhooks-examples" / "api.github.com" / "index.json"
REPOSITORY = "Codertocat/Hello-World"
STEPS = {
    step["name"]: step
    for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    if "name" in step
}
FAILS = (
    "It fails:\n\n```python\nlast = [].pop()\n```\n\n```\nTraceback (most recent call last):\n"
    '  File "a.py", line 1, in <module>\n    last = [].pop()\nIndexError: pop from empty list\n```\n'
)
KEY = "canary5f0e9a1c-model-key"
LOOK = f"""Printing what it can see, then it fails:

```python
import glob, os

marks, seen, places, paths = ("{KEY[:14][::-1]}", "=NEKOT_BUHTIG_ESIRPER"), 0, [], []
marks = [mark[::-1].encode() for mark in marks]
for pattern in ("/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline", "/tmp/*canary*/*", "/home/*/.*", "/root/.*"):
    paths += glob.glob(pattern)
for path in paths:
    try:
        with open(path, "rb") as file:
            data = file.read(1 << 20)
    except OSError:
        continue
    seen += 1
    if any(mark in data for mark in marks) and not path.endswith(".py"):
        places.append(path)
if any(mark.decode() in f"{{name}}={{value}}" for mark in marks for name, value in os.environ.items()):
    places.append("environment")
print("looked into", seen, "files, and saw the secret in", len(places), "of them")
last = [].pop()
```

```
Traceback (most recent call last):
  File "a.py", line 23, in <module>
    last = [].pop()
IndexError: pop from empty list
```
"""

pytestmark = [pytest.mark.node, pytest.mark.bwrap, pytest.mark.slow]


def example(name: str, action: str, **parts: dict[str, Any]) -> dict[str, Any]:
    """One of GitHub's example events, with parts of it replaced."""
    events = json.loads(EXAMPLES.read_text())
    event = next(
        event
        for row in events
        if row["name"] == name
        for event in row["examples"]
        if event.get("action") == action and "installation" not in event
    )
    for part, values in parts.items():
        event[part] = {**event.get(part, {}), **values}
    return event


class Runner:
    """A machine that executes jobs of one run of a workflow."""

    def __init__(self, folder: Path, hub: GitHubServer) -> None:
        self.folder, self.hub, self.sandbox = folder, hub, "bwrap"
        self.summary, self.log = "", ""
        program = folder / "reprise" / "environment" / "bin" / "reprise"
        program.parent.mkdir(parents=True)
        start = "from bot.cli.app import main; main()"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
        program.chmod(0o755)

    def token(self, **permissions: str) -> str:
        """The token of a job with these permissions."""
        covering = self.hub.state.covering(REPOSITORY)
        assert covering is not None
        granted = {"metadata": "read", **permissions}
        return self.hub.state.mint(covering.id, [REPOSITORY], granted).value

    def step(
        self, name: str, event: dict[str, Any], *, token: str, run_id: int = 77, **inputs: str
    ) -> tuple[int, dict[str, str]]:
        """Execute one step of action.yml; its exit code and its outputs."""
        output, summary = self.folder / "output", self.folder / "summary"
        payload = self.folder / "event.json"
        payload.write_text(json.dumps(event))
        for file in (output, summary):
            file.write_text("")
        contexts = {f"inputs.{key}": value for key, value in inputs.items()} | {
            "inputs.token": token,
            "github.server_url": self.hub.url,
            "github.api_url": self.hub.api_url,
        }
        step = STEPS[name]
        values = {key: self._value(text, contexts) for key, text in step["env"].items()}
        runner = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_EVENT_NAME": "issue_comment" if "comment" in event else "issues",
            "GITHUB_EVENT_PATH": str(payload),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_SERVER_URL": self.hub.url,
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "REPRISE_SANDBOX": self.sandbox,
            "REPRISE_CACHE_DIR": os.environ.get("REPRISE_CACHE_DIR", "/var/cache/reprise"),
            # The stand-in's App is not called github-actions.
            "REPRISE_APP_ID": str(self.hub.state.app.id),
            "REPRISE_APP_SLUG": self.hub.state.app.slug,
            "REPRISE_WRITE_GAP_S": "0",
            "REPRISE_NOTIFY_GAP_S": "0",
            **{key: value for key, value in os.environ.items() if key.startswith(("PIP_", "UV_"))},
        }
        caps = {"REPRISE_ENVIRONMENTS_GB": "20", "REPRISE_CLONES_GB": "10"}  # this machine's cache
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            env=runner | values | caps,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        self.log, self.summary = done.stdout + done.stderr, summary.read_text()
        lines = output.read_text().splitlines()
        return done.returncode, dict(line.split("=", 1) for line in lines)

    def _value(self, text: str, contexts: dict[str, str]) -> str:
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: contexts.get(match[1], ""), text)

    def run(self, event: dict[str, Any], **inputs: str) -> tuple[int, dict[str, str]]:
        """The job that runs, with a token that can only read."""
        asked = {"publish": "comment", "run-minutes": "10", **inputs}
        return self.step("Decide and run", event, token=self.token(contents="read"), **asked)

    def publish(self, event: dict[str, Any], **more: Any) -> int:
        """The job that publishes."""
        token = self.token(contents="read", issues="write")
        return self.step("Check and publish", event, token=token, **more)[0]

    @property
    def artifact(self) -> Path:
        return self.folder / "reprise-artifact"

    def bodies(self) -> list[str]:
        return [comment.body for comment in self.hub.state.ours(REPOSITORY, 1)]


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    tmp_path.chmod(0o755)
    with GitHubServer(openapi=NODE / "openapi/generated/api.github.com.json") as hub:
        hub.state.repository(REPOSITORY)
        hub.state.collaborator(REPOSITORY, "Codertocat", "write")
        hub.state.issue(REPOSITORY, "Spelling error", "", "Codertocat", number=1)
        config = "defaults:\n  proofs: []\n  clone: never\n"
        hub.commit(REPOSITORY, {".github/reprise.yml": config})
        yield Runner(tmp_path, hub)
        assert hub.violations == []


def said(runner: Runner, body: str, login: str, **more: Any) -> dict[str, Any]:
    """A comment that the stand-in has too."""
    comment = runner.hub.state.comment(REPOSITORY, 1, login, body)
    account = {"login": login, "type": "User"}
    parts = {"comment": {"id": comment.id, "body": body, "user": account}, "sender": account}
    return example("issue_comment", "created", **{"issue": {"body": FAILS}, **parts, **more})


def test_an_opened_issue_is_run_by_one_job_and_answered_by_the_other(runner: Runner) -> None:
    event = example("issues", "opened", issue={"body": FAILS})
    code, outputs = runner.run(event)
    assert (code, outputs["verdict"], outputs["answer"]) == (0, "reproduced", "true"), runner.log
    assert outputs["run-url"] == f"{runner.hub.url}/{REPOSITORY}/actions/runs/77"
    report = json.loads(Path(outputs["report"]).read_text())
    assert report["verdict"]["kind"] == "reproduced"
    assert runner.hub.writes == []
    assert "### Posted on Codertocat/Hello-World#1" in runner.summary
    other = example("issues", "opened", issue={"body": f"{FAILS}\nEdited."})
    assert runner.publish(other) == 2
    assert "The artifact is refused: it is of another event." in runner.log
    assert runner.publish(event, run_id=78) == 2
    assert "another run of the workflow" in runner.log
    reader = runner.token(contents="read")
    assert runner.step("Check and publish", event, token=reader)[0] == 2, "it could not write"
    assert runner.bodies() == []
    assert runner.publish(event) == 0, runner.log
    (body,) = runner.bodies()
    assert "**Reproduced**" in body
    assert outputs["run-url"] in body


@pytest.mark.nightly  # a whole run; unit tests change a report in twenty-five ways
def test_a_report_that_was_changed_on_its_way_is_not_published(runner: Runner) -> None:
    event = example("issues", "opened", issue={"body": FAILS})
    assert runner.run(event)[1]["verdict"] == "reproduced", runner.log
    path = runner.artifact / "handover.json"
    text = path.read_text()
    forged = json.loads(text)
    verdict = forged["results"][0]["report"]["verdict"]
    verdict["failures"] = verdict["runs"] = verdict["runs"] + 20
    path.write_text(json.dumps(forged))
    assert runner.publish(event) == 2
    assert "The artifact is refused" in runner.log
    assert runner.bodies() == []
    path.write_text(text)
    assert runner.publish(event) == 0, runner.log
    assert len(runner.bodies()) == 1


def test_a_command_of_a_stranger_is_refused_and_of_a_maintainer_runs(runner: Runner) -> None:
    stranger = said(runner, "/reproduce runs=3", "mallory")
    assert runner.run(stranger)[1]["verdict"] == ""
    assert runner.publish(stranger) == 0, runner.log
    assert "You need write permission" in runner.bodies()[0]
    maintainer = said(runner, "/reproduce runs=3", "Codertocat")
    assert runner.run(maintainer)[1]["verdict"] == "reproduced", runner.log
    assert runner.publish(maintainer) == 0, runner.log
    assert "**Reproduced**" in runner.bodies()[-1]


def test_a_comment_on_a_pull_request_of_a_fork_gets_no_code_of_the_fork(runner: Runner) -> None:
    fork = {"body": FAILS, "pull_request": {"url": f"{runner.hub.api_url}/pulls/1"}}
    for command in ("/reproduce ref=pull/1/head", "/reproduce command=python evil.py"):
        event = said(runner, command, "mallory", issue=fork)
        code, outputs = runner.run(event)
        assert (code, outputs["verdict"]) == (0, ""), runner.log
    assert runner.hub.clones == []


def test_a_hostile_body_reaches_neither_outputs_nor_commands_of_the_runner(runner: Runner) -> None:
    evil = "\n::set-output name=verdict::reproduced\n##[set-env name=X]y\n$(touch pwned) `touch pwned`\n"
    event = example(
        "issues",
        "opened",
        issue={"title": f"$(touch pwned) x{evil}", "body": f"{evil}{FAILS}{evil}"},
    )
    code, outputs = runner.run(event)
    assert code == 0, runner.log
    assert set(outputs) == {"verdict", "report", "run-url", "artifact", "answer"}
    assert list(runner.folder.rglob("pwned")) == []
    lines = runner.log.splitlines()
    (start,) = (line for line in lines if line.startswith("::stop-commands::"))
    word = start.rpartition(":")[2]
    counted = lines[: lines.index(start)] + lines[lines.index(f"::{word}::") + 1 :]
    assert not [line for line in counted if line.startswith("::") or "##[" in line]
    assert not [line for line in runner.summary.splitlines() if line.startswith(("::", "##["))]


@pytest.mark.parametrize(("mode", "answer", "words"), [("never", "false", ""), ("summary", "false", "Would be posted"), ("comment", "true", "Posted on")])  # fmt: skip
def test_shadow_modes(runner: Runner, mode: str, answer: str, words: str) -> None:
    event = said(runner, "/reproduce help", "mallory")
    _, outputs = runner.run(event, publish=mode)
    assert outputs["answer"] == answer
    assert words in runner.summary
    assert bool(runner.summary) is bool(words)
    assert runner.hub.writes == []


@pytest.mark.parametrize(("sandbox", "sees"), [("bwrap", False), ("process", True)])
def test_a_report_that_looks_for_the_jobs_secrets_sees_none(
    runner: Runner, request: pytest.FixtureRequest, sandbox: str, sees: bool
) -> None:
    """The plain process shows that the program would see one where nothing contains it."""
    runner.sandbox = sandbox
    folder = Path(tempfile.mkdtemp(prefix="reprise-canary-", dir="/tmp"))
    request.addfinalizer(partial(shutil.rmtree, folder))
    folder.chmod(0o755)
    (folder / "credentials").write_text(KEY)
    secrets = {"model-url": "https://127.0.0.1:9/v1", "model-key": KEY}
    code, outputs = runner.run(example("issues", "opened", issue={"body": LOOK}), **secrets)
    assert (code, outputs["verdict"]) == (0, "reproduced"), runner.log
    logs = "".join(path.read_text() for path in runner.artifact.rglob("*.log"))
    counts = re.findall(r"looked into (\d+) files, and saw the secret in (\d+) of them", logs)
    assert counts
    assert all(int(files) > 0 for files, _ in counts)
    assert any(int(places) for _, places in counts) is sees
    everything = [path.read_text() for path in runner.artifact.rglob("*") if path.is_file()]
    assert all(KEY not in text for text in [*everything, runner.log, runner.summary])
