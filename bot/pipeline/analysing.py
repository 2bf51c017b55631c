"""Runs that did not show it → why, apart from the next program. `build` and `parse` are pure."""

from __future__ import annotations

from typing import Any

from bot.models.dialogue import Message, Question
from bot.models.environment import Environment
from bot.models.plan import Refined
from bot.pipeline import conclude, refine
from prompts import load


def build(refined: Refined, environment: Environment, attempts: str) -> Question:
    """What the reader is asked after a run that failed to show it."""
    prompt = load("analyse")
    system, user = prompt.render(
        claim=refined.claim,
        signature=refine.fixed(refined),
        environment=conclude.versions(environment),
        attempts=attempts,
    )
    messages = (Message(role="system", content=system), Message(role="user", content=user))
    return Question(role="reader", prompt=prompt.id, messages=messages, answer_schema=prompt.schema, most_tokens=1_500)


def parse(data: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The analysis as text, and identifiers to look up for the next program."""
    said = f"Analysis ({data['kind']}): {' '.join(data['cause'].split())} Advice: {' '.join(data['advice'].split())}"
    return said, tuple(data["look_up"])
