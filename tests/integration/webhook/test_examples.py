"""Every example that GitHub publishes of the events around an App, through the real application."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.webhook.conftest import World, examples

EVENTS = (
    "issues",
    "issue_comment",
    "installation",
    "installation_repositories",
    "pull_request",
    "ping",
    "repository",
)
KEPT = {
    ("issues", "opened"): "opened", ("issues", "labeled"): "labeled", ("issues", "deleted"): "gone", ("issues", "transferred"): "gone",
    ("installation", "deleted"): "uninstalled", ("installation", "suspend"): "uninstalled", ("installation_repositories", "removed"): "gone",
}  # fmt: skip

pytestmark = pytest.mark.node


def expected(event: str, payload: dict[str, Any]) -> str:
    """What becomes of an example: none of them is written by a bot, and no comment in them holds
    a command.
    """
    trigger = KEPT.get((event, payload.get("action", "")), "ignored")
    return trigger if "installation" in payload else "ignored"


async def outcome(world: World, event: str, payload: dict[str, Any]) -> str:
    guid, body = str(uuid4()), json.dumps(payload).encode()
    answer = await world.post(body, event, guid)
    assert (answer.status, answer.says["status"]) in {(202, "accepted"), (200, "ignored")}, answer
    assert (guid in world.store.kept) == (answer.status == 202)
    return world.store.kept[guid].trigger if answer.status == 202 else answer.says["status"]


def test_every_example_is_handled_as_it_was_recorded_and_as_an_app_would_get_it(
    world: World,
) -> None:
    async def all_of_them() -> dict[str, int]:
        seen: dict[str, int] = {}
        for event, payload in examples(*EVENTS):
            for form in (payload, {"installation": {"id": 1, "node_id": "x"}} | payload):
                became = await outcome(world, event, form)
                assert became == expected(event, form), (event, form.get("action"), became)
                seen[became] = seen.get(became, 0) + 1
        return seen

    seen = asyncio.run(all_of_them())
    assert {"opened", "labeled", "gone", "uninstalled", "ignored"} <= seen.keys()
    assert sum(seen.values()) >= 2 * 90


def test_an_example_comment_with_a_command_brings_it(world: World) -> None:
    async def all_of_them() -> int:
        count = 0
        for event, payload in examples("issue_comment"):
            if payload["action"] not in {"created", "edited"}:
                continue
            payload["comment"]["body"] = "/reproduce torch=2.1.0"
            assert await outcome(world, event, {"installation": {"id": 1}} | payload) == "comment"
            count += 1
        return count

    count = asyncio.run(all_of_them())
    assert count >= 5
    kept = world.store.kept.values()
    assert [each.commands[0].choices.pins for each in kept] == [("torch==2.1.0",)] * count


def test_all_other_events_of_github_are_answered_too(world: World) -> None:
    async def all_of_them() -> int:
        others = [(event, payload) for event, payload in examples() if event not in EVENTS]
        for event, payload in others:
            assert await outcome(world, event, payload) == "ignored"
        return len(others)

    assert asyncio.run(all_of_them()) > 100


def test_no_example_is_taken_for_another_event(world: World) -> None:
    """The signature covers the body alone: whoever sends one again may name another event."""
    ours = ("issues", "issue_comment", "repository", "installation", "installation_repositories")
    every = [(event, body) for event, body in examples() if body.get("action")]

    async def all_of_them() -> int:
        for event, body in every:
            form = {"installation": {"id": 1, "node_id": "x"}} | body
            for name in ours:
                if name == event:
                    continue
                answer = await world.post(json.dumps(form).encode(), name, str(uuid4()))
                assert answer.status in {200, 400}, (event, form["action"], name)
        return len(every)

    assert asyncio.run(all_of_them()) > 200
    assert world.store.kept == {}
