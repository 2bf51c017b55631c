"""action.yml and the workflows: pinned, without a way for outside text into a shell, each job with
no more than it needs, and in step with the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.main import get_command

from bot.cli.app import app
from bot.kernel.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "action.yml"
REUSABLE = ROOT / ".github" / "workflows" / "reprise.yml"
FILES = (ACTION, *sorted((ROOT / ".github" / "workflows").glob("*.yml")))
OWN = "./.reprise"
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
OUTSIDE = re.compile(
    r"github\.(?:event(?!_name|_path|\.issue\.number\b)|head_ref|actor|triggering_actor)"
    r"|toJSON\(github"
)
EXAMPLES = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def load(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text(), yaml.BaseLoader)


def texts(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text of a document, with the keys that lead to it."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from texts(value, (*path, key))
    elif isinstance(node, list):
        for value in node:
            yield from texts(value, path)
    else:
        yield path, node


def injected(document: Any) -> list[str]:
    """Expressions in shell text, and outside text anywhere but under env."""
    found = []
    for path, text in texts(document):
        for expression in EXPRESSION.findall(text):
            shell = path[-1] in {"run", "script"}
            if shell or (OUTSIDE.search(expression) and "env" not in path):
                found.append(f"{'.'.join(path)}: {expression}")
    return found


def unpinned(document: Any) -> list[str]:
    uses = (text for path, text in texts(document) if path[-1:] == ("uses",))
    return [
        text for text in uses if text != OWN and not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", text)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_outside_text_reaches_a_shell_only_through_env(path: Path) -> None:
    assert injected({"run": "echo ${{ inputs.x }}"})
    assert injected({"with": {"title": "${{ github.event.issue.title }}"}})
    assert injected({"env": {"TITLE": "${{ github.event.issue.title }}"}}) == []
    assert injected({"group": "a-${{ github.event.issue.number }}"}) == []
    allowed = {"ci.yml": 1}.get(path.name, 0)  # --nightly or nothing, by the name of the event
    assert len(injected(load(path))) == allowed


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_of_others_are_pinned_by_their_whole_hash(path: Path) -> None:
    assert unpinned({"uses": "actions/checkout@v5"}) == ["actions/checkout@v5"]
    assert unpinned(load(path)) == []
    lines = [line for line in path.read_text().splitlines() if re.search(r"uses: [^.\s]", line)]
    assert lines
    assert [line for line in lines if not re.search(r" # v\d+\.\d+\.\d+$", line)] == []


def jobs() -> dict[str, Any]:
    return load(REUSABLE)["jobs"]


def test_the_job_that_runs_cannot_write_and_the_one_that_writes_does_not_run() -> None:
    assert load(REUSABLE)["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs().items()} == {
        "run": {"contents": "read"},
        "publish": {"contents": "read", "issues": "write"},
    }
    steps = {name: job["steps"][-1] for name, job in jobs().items()}
    assert steps["publish"]["with"] == {"job": "publish"}
    assert jobs()["publish"]["needs"] == "run"
    secrets = [path for path, text in texts(jobs()) if "secrets." in text]
    assert secrets == [("run", "steps", "with", "model-key")]


def action_steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = load(ACTION)["runs"]["steps"]
    return steps


def test_a_key_is_in_the_environment_of_the_engine_alone() -> None:
    keyed = [step for step in action_steps() if "inputs.model-key" in str(step)]
    assert [step["name"] for step in keyed] == ["Decide and run"]
    tokens = [step["name"] for step in action_steps() if "inputs.token" in str(step)]
    assert tokens == ["Decide and run", "Check and publish"]
    assert [path for path, text in texts(action_steps()) if "GITHUB_ENV" in text] == []


def test_every_checkout_leaves_no_token_behind() -> None:
    checkouts = [
        step
        for path in FILES
        for job in load(path).get("jobs", {}).values()
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert len(checkouts) >= 4
    assert all(step["with"]["persist-credentials"] == "false" for step in checkouts)


def test_one_run_an_issue_at_a_time_and_none_is_dropped() -> None:
    group = jobs()["run"]["concurrency"]
    assert "github.event.issue.number" in group["group"]
    assert group["queue"] == "max"
    assert "cancel-in-progress" not in group


def test_the_workflow_passes_every_input_that_the_action_has() -> None:
    known = set(load(ACTION)["inputs"])
    for job in jobs().values():
        assert set(job["steps"][-1]["with"]) <= known
    passed = set(jobs()["run"]["steps"][-1]["with"])
    assert known - passed == {"token"}, "the job's own token is the default"
    inputs = load(REUSABLE)["on"]["workflow_call"]["inputs"]
    assert set(inputs) | {"model-key", "job"} == passed | {"runs-on"}
    for name in set(inputs) - {"runs-on"}:
        assert inputs[name]["default"] == load(ACTION)["inputs"][name]["default"]


def test_commands_and_variables_are_those_of_the_program() -> None:
    runs = [step["run"] for step in action_steps() if "/reprise" in step.get("run", "")]
    commands = [run for run in runs if "bin/reprise" in run]
    assert len(commands) == 2
    for command in commands:
        name, *words = command.replace('"', "").split()[1:]
        words = ["comment" if word == "$PUBLISH" else word for word in words]
        assert (name, words[0]) in {("action", "run"), ("action", "publish")}
        known = get_command(app).commands[name]  # type: ignore[attr-defined]
        with typer.Context(known) as context:
            known.parse_args(context, words)
    variables = {
        key for step in action_steps() for key in step.get("env", {}) if key.startswith("REPRISE_")
    }
    assert variables <= {f"REPRISE_{field.upper()}" for field in Settings.model_fields}
    for script in re.findall(r"deploy/action/\w+\.sh", ACTION.read_text()):
        assert (ROOT / script).is_file()


def test_the_documented_examples_call_what_is_there() -> None:
    page = "\n".join((ROOT / name).read_text() for name in ("docs/action.md", "README.md"))
    examples = [yaml.load(text, yaml.BaseLoader) for text in EXAMPLES.findall(page)]
    called = [job for each in examples for job in each.get("jobs", {}).values() if "uses" in job]
    assert called
    workflow = load(REUSABLE)["on"]["workflow_call"]
    for job in called:
        assert job["uses"].endswith("/.github/workflows/reprise.yml@v0")
        assert set(job.get("with", {})) <= set(workflow["inputs"])
        assert set(job.get("secrets", {})) <= set(workflow["secrets"])
        assert job["permissions"] == {"contents": "read", "issues": "write"}
    first = EXAMPLES.findall(page)[0]
    assert len(first.strip().splitlines()) <= 10
    steps = [
        step
        for each in examples
        for job in each.get("jobs", {}).values()
        for step in job.get("steps", ())
    ]
    used = [step["with"] for step in steps if step.get("uses", "").endswith("/reprise@v0")]
    assert [values["job"] for values in used] == ["run", "publish"]
    for values in used:
        assert set(values) <= set(load(ACTION)["inputs"])
