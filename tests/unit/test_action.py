"""The App within a workflow: the job that runs, the handover, and the job that publishes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.app import action as workflow
from bot.app.action import HANDOVER, ArtifactRefused
from bot.app.ports import Permission, Throttled
from bot.cli.action import Ending, WorkflowEvent, publish_event, read_event, run_event
from bot.cli.app import app
from bot.kernel.errors import UserError
from bot.kernel.ports import Ports
from bot.kernel.settings import Settings, WorkflowSettings
from bot.products.engine import execute
from sandbox.port import RunResult
from tests.support.fakes import FakeBuilder, FakeGitHub, FrozenClock
from tests.support.sandbox import FakeSandbox

MESSAGE = "mat1 and mat2 shapes cannot be multiplied (14x7 and 16x4)"
BODY = (
    "It fails:\n\n```python\nimport lib\nlib.fit()\n```\n\n"
    f"Error:\n\n```\nRuntimeError: {MESSAGE}\n```\n"
)
TRACE = (
    'Traceback (most recent call last):\n  File "repro.py", line 2, in <module>\n    lib.fit()\n'
    '  File "/e/lib/python3.11/site-packages/lib/core.py", line 9, in fit\n'
    f"    return f()\nRuntimeError: {MESSAGE}\n"
)
OPENED = "2026-01-01T00:00:00Z"
SETTINGS = Settings(write_gap_s=0, notify_gap_s=0, model_key="a-model-key-of-this-test")
PLACE = ("acme/lib", 3)


def payload(
    body: str = BODY, comment: str = "", sender: str = "reporter", **issue: Any
) -> dict[str, Any]:
    """An event as a workflow gets it: without an installation."""
    event: dict[str, Any] = {
        "action": "created" if comment else "opened",
        "sender": {"login": sender, "type": "User"},
        "repository": {
            "id": 7,
            "full_name": "acme/lib",
            "private": False,
            "default_branch": "main",
            "clone_url": "https://github.com/acme/lib.git",
        },
        "issue": {
            "number": 3,
            "title": "fit fails",
            "body": body,
            "user": {"login": "reporter", "type": "User"},
            "created_at": OPENED,
            "updated_at": OPENED,
            "html_url": "https://github.com/acme/lib/issues/3",
            **issue,
        },
    }
    if comment:
        event["comment"] = {"id": 1001, "body": comment, "user": event["sender"]}
    return event


class Actions:
    """A repository with a workflow, whose two jobs are called one after the other."""

    def __init__(self, folder: Path, program: Callable[[Any], RunResult] | None = None) -> None:
        self.folder, self.out = folder, folder / "artifact"
        self.hub = FakeGitHub(slug="github-actions")
        self.hub.repository("acme/lib", installation=0).files[".github/reprise.yml"] = (
            "defaults:\n  proofs: []\n"
        )
        self.hub.repository("acme/lib").permissions.update(max="write", tria="triage")
        self.hub.issue(*PLACE)
        self.program = program or (lambda spec: RunResult(exit_code=1, stderr=TRACE, seconds=0.1))
        self.jobs: list[Any] = []

    def config(self, text: str) -> None:
        self.hub.repository("acme/lib").files[".github/reprise.yml"] = text

    def engine(self, settings: Settings) -> Any:
        def run(job, *, journal, listener, cancel, clone, earlier=None):
            self.jobs.append(job)
            sandbox, clock = FakeSandbox(self.program), FrozenClock(step=0.1)
            return execute(job, Ports(sandbox, FakeBuilder(), journal, clock, listener, cancel))

        return run

    def event(self, data: dict[str, Any], run: int = 9) -> WorkflowEvent:
        if "comment" in data:
            self.hub.comments[1001] = self._comment(data)
        path = self.folder / "event.json"
        path.write_text(json.dumps(data))
        event = read_event("", path, SETTINGS, run)
        assert isinstance(event, WorkflowEvent)
        return WorkflowEvent(event.delivery, run, f"https://github.com/acme/lib/actions/runs/{run}")

    def _comment(self, data: dict[str, Any]) -> Any:
        made = self.hub.comment(*PLACE, data["sender"]["login"], data["comment"]["body"])
        comment = self.hub.comments.pop(made)
        comment.id = 1001
        return comment

    def run(self, event: WorkflowEvent) -> Ending:
        before = len(self.hub.writes)
        ending = run_event(event, SETTINGS, self.hub, self.out, self.engine)
        assert self.hub.writes[before:] == [], "the job that runs writes nothing to GitHub"
        return ending

    def publish(self, event: WorkflowEvent) -> None:
        publish_event(event, SETTINGS, self.hub, self.out)

    def both(self, data: dict[str, Any]) -> Ending:
        event = self.event(data)
        ending = self.run(event)
        if ending.has_answer:
            self.publish(event)
        return ending

    @property
    def bodies(self) -> list[str]:
        return [comment.body for comment in self.hub.ours(*PLACE)]


@pytest.fixture
def actions(tmp_path: Path) -> Actions:
    return Actions(tmp_path)


@pytest.fixture(scope="module")
def handover(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the first job hands over, for tests that change it."""
    actions = Actions(tmp_path_factory.mktemp("first-job"))
    actions.run(actions.event(payload()))
    return (actions.out / HANDOVER).read_text()


def test_a_new_bug_report_ends_in_one_comment_that_links_the_workflows_run(
    actions: Actions,
) -> None:
    ending = actions.both(payload())
    (body,) = actions.bodies
    assert "**Reproduced**" in body
    assert "https://github.com/acme/lib/actions/runs/9" in body
    assert actions.hub.issue(*PLACE).labels == ["reprise: reproduced"]
    assert ending.comments == (body,), "what is rehearsed is what is posted"
    outputs = ending.outputs(actions.event(payload()), actions.out, "comment")
    assert outputs["verdict"] == "reproduced"
    assert json.loads(Path(outputs["report"]).read_text())["verdict"]["kind"] == "reproduced"
    assert (outputs["answer"], outputs["artifact"]) == ("true", "true")


def test_another_run_edits_the_same_comment(actions: Actions) -> None:
    actions.both(payload())
    actions.both(payload(comment="/reproduce runs=4", sender="max"))
    (body,) = actions.bodies
    assert "Requested by `max`" in body


def test_a_command_runs_for_people_with_write_permission_only(actions: Actions) -> None:
    refused = actions.both(payload(comment="/reproduce runs=4", sender="stranger"))
    assert (actions.jobs, refused.reports) == ([], ())
    (reply,) = actions.bodies
    assert "You need write permission" in reply
    allowed = actions.both(payload(comment="/reproduce runs=4", sender="max"))
    assert [report.verdict.kind for report in allowed.reports] == ["reproduced"]
    assert actions.jobs[0].limits.max_runs == 4


def test_a_comment_on_a_pull_request_from_a_fork_starts_nothing_for_its_author(
    actions: Actions,
) -> None:
    fork = {"pull_request": {"url": "https://api.github.com/repos/acme/lib/pulls/3"}}
    said = payload(comment="/reproduce ref=refs/pull/3/head", sender="stranger", **fork)
    actions.both(said)
    assert actions.jobs == []
    assert "`ref=` takes a branch" in actions.bodies[0]
    actions.both(payload(comment="/reproduce", sender="stranger", **fork))
    assert actions.jobs == []


@pytest.mark.parametrize("verb", ["status", "cancel", "pr", f"approve {'a' * 32}"])
def test_what_needs_a_store_is_answered_with_what_to_do_instead(
    actions: Actions, verb: str
) -> None:
    actions.both(payload(comment=f"/reproduce {verb}", sender="max"))
    (reply,) = actions.bodies
    assert "Not done" in reply
    assert any(word in reply for word in ("Actions tab", "artifact", "No plans are kept"))


def test_help_lists_only_what_works_in_a_workflow(actions: Actions) -> None:
    actions.both(payload(comment="/reproduce help", sender="stranger"))
    (reply,) = actions.bodies
    assert "/reproduce bisect" in reply
    assert "/reproduce cancel" not in reply


def test_what_takes_a_reader_stays_silent_and_the_summary_says_what_was_tried(
    actions: Actions,
) -> None:
    body = (
        "Training on my data set stalls when I use two layers with dropout and then resume it from "
        "a checkpoint: RuntimeError: size mismatch for layer.weight. I use torch 2.1.0, Python "
        "3.11 on Linux."
    )
    ending = actions.both(payload(body=body))
    assert [report.needs_reader for report in ending.reports] == [True]
    assert actions.hub.writes == []
    assert ending.has_answer is False
    summary = ending.summary(actions.event(payload(body=body)), comment=True)
    assert "Nothing is posted on acme/lib#3" in summary
    assert "Inconclusive" in summary


def test_what_is_no_command_of_a_person_leaves_no_trace(actions: Actions, tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload(comment="Thanks!", sender="max")))
    assert read_event("issue_comment", path, SETTINGS, 9) == "the comment contains no command"
    path.write_text(json.dumps({**payload(), "action": "closed"}))
    assert "opened and labelled" in str(read_event("issues", path, SETTINGS, 9))
    assert "issue_comment only" in str(read_event("push", path, SETTINGS, 9))


@pytest.mark.parametrize(("minutes", "runs"), [(1, 0), (9, 1)])
def test_a_label_that_came_with_the_issue_starts_no_second_run(
    actions: Actions, minutes: int, runs: int
) -> None:
    actions.config("triggers:\n  labels: [bug]\ndefaults:\n  proofs: []\n")
    at = datetime.fromisoformat(OPENED) + timedelta(minutes=minutes)
    labelled = payload(sender="tria", updated_at=at.isoformat()) | {
        "action": "labeled",
        "label": {"name": "bug"},
    }
    actions.both(labelled)
    assert len(actions.jobs) == runs


def test_a_defect_of_ours_is_said_and_is_no_verdict(tmp_path: Path) -> None:
    def breaks(spec: Any) -> RunResult:
        raise ValueError("a defect")

    actions = Actions(tmp_path, breaks)
    ending = actions.both(payload())
    assert (ending.defects, ending.reports) == (1, ())
    (body,) = actions.bodies
    assert "Reprise failed" in body
    assert "a defect" not in body


def test_a_limit_of_a_person_holds_within_one_comment(actions: Actions) -> None:
    actions.config("quota:\n  person: 1\ndefaults:\n  proofs: []\n")
    actions.both(payload(comment="/reproduce runs=4\n/reproduce runs=5", sender="max"))
    assert len(actions.jobs) == 1
    assert any("limit of 1 runs a day" in body for body in actions.bodies)


def test_the_handover_holds_no_secret_of_the_job(tmp_path: Path) -> None:
    secret = "a-model-key-of-this-test"
    actions = Actions(
        tmp_path, lambda spec: RunResult(exit_code=1, stdout=secret, stderr=TRACE, seconds=0.1)
    )
    actions.run(actions.event(payload()))
    written = [path.read_text() for path in actions.out.rglob("*") if path.is_file()]
    assert any("[redacted]" in text for text in written)
    assert all(secret not in text for text in written)


HOSTILE = (
    f"{BODY}\n@acme/everyone fixes #1\n::set-output name=verdict::reproduced\n"
    "##[set-env name=LD_PRELOAD]/tmp/x.so\n<!-- reprise:run -->\n<script>alert(1)</script>\n"
    "[click](https://evil.example)"
)


def test_a_hostile_body_writes_no_output_and_no_markup(actions: Actions) -> None:
    title = "x\nverdict=reproduced ::stop-commands::x @acme/everyone <img src=x>"
    ending = actions.both(payload(body=HOSTILE, title=title))
    event = actions.event(payload(body=HOSTILE, title=title))
    outputs = ending.outputs(event, actions.out, "comment")
    assert all("\n" not in value for value in outputs.values())
    for text in (*actions.bodies, ending.summary(event, comment=True)):
        assert "<script" not in text
        assert "<img" not in text
        assert "@acme" not in text
        assert not [line for line in text.splitlines() if line.startswith(("::", "##["))]


# Tampering: each of these artifacts is refused, and nothing is written.


def result(data: dict[str, Any]) -> dict[str, Any]:
    return data["results"][0]["report"]


def other_number(data: dict[str, Any]) -> None:
    data["number"] = 4


def other_repository(data: dict[str, Any]) -> None:
    data["repository"] = "acme/other"


def other_event(data: dict[str, Any]) -> None:
    data["event"] = "0" * 64


def other_run(data: dict[str, Any]) -> None:
    data["workflow_run"] = 8


def other_schema(data: dict[str, Any]) -> None:
    data["schema"] = 2


def unknown_field(data: dict[str, Any]) -> None:
    data["comment"] = "# Markdown of a stranger"


def unknown_field_within(data: dict[str, Any]) -> None:
    result(data)["markdown"] = "# Markdown of a stranger"


def unknown_verdict(data: dict[str, Any]) -> None:
    result(data)["verdict"]["kind"] = "confirmed"


def other_text(data: dict[str, Any]) -> None:
    result(data)["issue"]["body"] = "Another text."


def other_issue(data: dict[str, Any]) -> None:
    result(data)["issue"]["number"] = 4


def more_failures(data: dict[str, Any]) -> None:
    result(data)["verdict"]["failures"] = 1_000


def endless_runs(data: dict[str, Any]) -> None:
    result(data)["verdict"] |= {"runs": 10**9, "failures": 10**9}


def other_interval(data: dict[str, Any]) -> None:
    result(data)["verdict"]["interval"] = [0.9, 1.0]


def no_failure(data: dict[str, Any]) -> None:
    low_high = workflow.interval(0, 2)
    result(data)["verdict"] |= {"runs": 2, "failures": 0, "interval": list(low_high)}


def other_signature(data: dict[str, Any]) -> None:
    result(data)["signature"]["message"] = "anything"


def unasked_run(data: dict[str, Any]) -> None:
    data["results"].append(copy.deepcopy(data["results"][0]) | {"ordinal": 1})


def twice(data: dict[str, Any]) -> None:
    data["results"].append(copy.deepcopy(data["results"][0]))


def too_many(data: dict[str, Any]) -> None:
    data["results"] *= 6


def no_result(data: dict[str, Any]) -> None:
    data["results"] = []


TAMPERED = (
    (other_number, "another issue"),
    (other_repository, "another repository"),
    (other_event, "another event"),
    (other_run, "another run of the workflow"),
    (other_schema, "schema"),
    (unknown_field, "schema"),
    (unknown_field_within, "schema"),
    (unknown_verdict, "schema"),
    (other_text, "another text"),
    (other_issue, "of another issue"),
    (more_failures, "do not agree"),
    (endless_runs, "do not agree"),
    (other_interval, "do not agree"),
    (no_failure, "in no run"),
    (other_signature, "frozen"),
    (unasked_run, "other runs"),
    (twice, "two reports"),
    (too_many, "schema"),
    (no_result, "other runs"),
)


@pytest.mark.parametrize(
    ("tamper", "reason"), TAMPERED, ids=[change.__name__ for change, _ in TAMPERED]
)
def test_a_tampered_artifact_is_refused_before_anything_is_written(
    actions: Actions, handover: str, tamper: Callable[[dict[str, Any]], None], reason: str
) -> None:
    event = actions.event(payload())
    data = json.loads(handover)
    tamper(data)
    actions.out.mkdir()
    (actions.out / HANDOVER).write_text(json.dumps(data))
    with pytest.raises(ArtifactRefused, match=reason) as refusal:
        actions.publish(event)
    assert "Markdown" not in str(refusal.value)
    assert actions.hub.writes == []


def test_a_file_that_is_none_is_refused(actions: Actions, tmp_path: Path) -> None:
    event = actions.event(payload())
    actions.run(event)
    path = actions.out / HANDOVER
    text = path.read_text()
    (tmp_path / "elsewhere").write_text(text)
    for spoil in (
        path.unlink,
        lambda: path.symlink_to(tmp_path / "elsewhere"),
        lambda: (path.unlink(), path.write_text(text[:-20])),
        lambda: path.write_bytes(b"[" * 100_000),
        lambda: path.write_bytes(b"\xff\xfe"),
        lambda: path.write_bytes(b" " * (workflow.MOST_BYTES + 1)),
    ):
        spoil()
        with pytest.raises(ArtifactRefused):
            actions.publish(event)
    assert actions.hub.writes == []


def test_a_permission_that_was_taken_meanwhile_publishes_no_run(actions: Actions) -> None:
    event = actions.event(payload(comment="/reproduce runs=4", sender="max"))
    actions.run(event)
    permissions: dict[str, Permission] = {"max": "read"}
    actions.hub.repository("acme/lib").permissions.update(permissions)
    with pytest.raises(ArtifactRefused, match="other runs"):
        actions.publish(event)
    assert actions.hub.writes == []


def test_the_markdown_beside_a_handover_is_never_looked_at(actions: Actions) -> None:
    event = actions.event(payload())
    actions.run(event)
    for path in (actions.out / "run-1").rglob("*"):
        if path.is_file():
            path.write_text("PWNED")
    actions.publish(event)
    (body,) = actions.bodies
    assert "**Reproduced**" in body
    assert "PWNED" not in body


def test_texts_of_a_report_are_printed_again_and_made_safe(actions: Actions) -> None:
    event = actions.event(payload())
    actions.run(event)
    path = actions.out / HANDOVER
    data = json.loads(path.read_text())
    evil = "</details> @acme/everyone fixes #1 [x](https://evil.example) <img src=x>"
    result(data)["verdict"]["reason"] = evil
    result(data)["notes"] = [{"kind": "run", "text": evil}]
    path.write_text(json.dumps(data))
    actions.publish(event)
    (body,) = actions.bodies
    assert "<img" not in body
    assert "@acme" not in body
    assert "](https://evil" not in body


def test_github_is_asked_again_when_it_asks_to_wait(actions: Actions) -> None:
    event = actions.event(payload())
    actions.run(event)
    actions.hub.fail(Throttled("Wait.", 0.01), "create_comment")
    actions.publish(event)
    assert len(actions.bodies) == 1


def test_the_page_of_a_run_is_known_from_the_variables_of_a_job() -> None:
    job = WorkflowSettings(repository="acme/lib", run_id=9, server_url="https://ghe.example")
    assert job.run_url == "https://ghe.example/acme/lib/actions/runs/9"
    assert WorkflowSettings(repository="", run_id=0).run_url == ""


def test_an_event_that_is_none_is_the_users_error(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    for text in ("[]", "{", '{"issue": 3}'):
        path.write_text(text)
        with pytest.raises(UserError):
            read_event("issues", path, SETTINGS, 9)


def test_a_rehearsal_prints_what_both_jobs_would_write(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload(comment="/reproduce help", sender="stranger")))
    done = CliRunner().invoke(app, ["action", "--dry-run", str(path), "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert [write["what"] for write in told["writes"]] == ["comment", "reaction"]
    assert "/reproduce bisect" in told["writes"][0]["text"]


SILENT = (
    "Training of ResNet-50 is slow since the update\n\nEach epoch takes 40 minutes, it was 25. "
    "I use `train.py` of the examples with the default settings on two GPUs.\n"
)


def test_an_issue_is_rehearsed_as_if_it_was_just_opened(tmp_path: Path) -> None:
    path = tmp_path / "issue.md"
    path.write_text("# It fails\n\nI got an error when I ran it. Please help.\n")
    words = ["action", "--dry-run", str(path), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    writes = json.loads(done.stdout)["writes"]
    assert [write["what"] for write in writes] == ["reaction", "comment", "label", "reaction"]
    assert writes[1]["where"] == "owner/repository#1"
    assert "**More information needed**" in writes[1]["text"]
    assert "Started when `reporter` opened the issue" in writes[1]["text"]


def test_a_rehearsal_that_writes_nothing_shows_what_the_summary_would_say(tmp_path: Path) -> None:
    path = tmp_path / "issue.json"
    title, body = SILENT.split("\n\n", 1)
    path.write_text(json.dumps({"title": title, "body": body, "number": 3}))
    done = CliRunner().invoke(app, ["action", "--dry-run", str(path), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["writes"] == []
    assert "The job's summary would say:" in result["outcome"]
    assert "**Inconclusive**" in result["outcome"]


@pytest.mark.parametrize(
    ("words", "variables", "says"),
    [
        (["--dry-run", "no-such-file.md"], {}, "no-such-file.md"),
        (["--dry-run", "no-such-file.json"], {}, "no-such-file.json"),
        ([], {}, "Name one job, run or publish"),
        (["run", "--dry-run", "x"], {}, "Name one job, run or publish"),
        (["run"], {}, "Pass --out DIR"),
        (["run", "--out", "x"], {"GITHUB_EVENT_PATH": ""}, "GITHUB_EVENT_PATH is not set"),
        (["run", "--out", "x"], {"GITHUB_REPOSITORY": "acme/other"}, "of another repository"),
        (["run", "--out", "x"], {"REPRISE_GITHUB_TOKEN": ""}, "REPRISE_GITHUB_TOKEN is not set"),
        (["publish", "--out", "x"], {}, "it has no plain file handover.json"),
    ],
)
def test_what_is_missing_for_a_job_is_said_in_one_sentence(
    tmp_path: Path, words: list[str], variables: dict[str, str], says: str
) -> None:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload(comment="/reproduce help", sender="stranger")))
    job = {
        "GITHUB_EVENT_NAME": "issue_comment",
        "GITHUB_EVENT_PATH": str(path),
        "GITHUB_REPOSITORY": "acme/lib",
        "GITHUB_RUN_ID": "9",
        "GITHUB_OUTPUT": "",
        "REPRISE_GITHUB_TOKEN": "a-token-of-this-test",
    }
    done = CliRunner().invoke(app, ["action", *words], env=job | variables)
    assert done.exit_code == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
