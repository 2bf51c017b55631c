"""The App: deliveries, the commands of comments, and the configuration of repositories."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from benchmarks.truth.stages.stage import Stage
from bot.app.configuration import parse
from bot.report import replies
from handlers import commands, events

_FILE = ".github/reprise.yml"
_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_IDENTITY = events.AppIdentity(app_id=7, slug="reprise")


def _delivery(case: tuple[str, Mapping[str, Any]]) -> object:
    event, payload = case
    found = events.parse_event(event, "guid", json.dumps(payload).encode(), _NOW, _IDENTITY)
    if isinstance(found, tuple):
        return {"taken": found}
    kind = "ignored" if isinstance(found, events.IgnoredDelivery) else "invalid"
    return {kind: found.reason}


def _commands(body: str) -> object:
    return commands.parse(body)


def _configuration(text: str) -> object:
    parsed = parse(text, _FILE)
    answer = replies.problems(parsed.problems) if parsed.problems else ""
    return {"parsed": parsed, "answer": answer}


STAGES = (
    Stage("deliveries", lambda inputs: inputs.deliveries, _delivery),
    Stage("commands", lambda inputs: inputs.comments, _commands),
    Stage("configuration", lambda inputs: inputs.configurations, _configuration),
)
