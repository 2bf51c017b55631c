"""Runs that did not show it → why, apart from the next program. `build` and `parse` are pure."""

from __future__ import annotations

from typing import Any

from bot.models.dialogue import Message, Question
from bot.models.environment import Environment
from bot.models.plan import Interpretation
from bot.pipeline.confirm import verdicts
from bot.pipeline.search import interpretation
from prompts import load, shared


def build(refined: Interpretation, environment: Environment, attempts: str) -> Question:
    """What the reader is asked after a run that failed to show it."""
    prompt = load("analyse")
    system, user = prompt.render(
        claim=refined.claim,
        signature=interpretation.fixed(refined),
        environment=verdicts.versions(environment),
        attempts=attempts,
    )
    messages = (Message(role="system", content=system), Message(role="user", content=user))
    return Question(
        role="reader",
        prompt=prompt.id,
        messages=messages,
        answer_schema=prompt.schema,
        most_tokens=1_500,
    )


def parse(data: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The analysis as text, and identifiers to look up for the next program."""
    texts = {name: " ".join(data[name].split()) for name in ("kind", "cause", "advice")}
    return shared("analysis", **texts), tuple(data["look_up"])
