"""Report + ranked contexts → the plan, told before anything runs. `build` and `parse` are pure."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from bot.models.context import Context
from bot.models.dialogue import Message, Question
from bot.models.environment import Environment
from bot.models.plan import Interpretation, Plan, ReadAction, SearchAction
from bot.pipeline.confirm import verdicts
from bot.pipeline.search import checks, interpretation, source_listing
from prompts import load

_wishes: TypeAdapter[tuple[SearchAction | ReadAction, ...]] = TypeAdapter(
    tuple[SearchAction | ReadAction, ...]
)


def build(
    report: str, refined: Interpretation, environment: Environment, ranked: tuple[Context, ...]
) -> Question:
    """What the writer is asked first."""
    prompt = load("plan")
    system, user = prompt.render(
        report=report,
        claim=refined.claim,
        signature=interpretation.fixed(refined),
        environment=verdicts.versions(environment),
        contexts=source_listing.contexts(ranked),
        twin=checks.twin(refined),
        contrast_rule=checks.twin_wanted(refined),
    )
    messages = (Message(role="system", content=system), Message(role="user", content=user))
    return Question(
        role="writer",
        prompt=prompt.id,
        messages=messages,
        answer_schema=prompt.schema,
        most_tokens=2_000,
    )


def parse(data: dict[str, Any], prompt: str) -> tuple[Plan, tuple[SearchAction | ReadAction, ...]]:
    """The plan, and what is to be looked up for it."""
    plan = Plan(
        hypothesis=" ".join(data["hypothesis"].split()),
        steps=tuple(" ".join(step.split()) for step in data["steps"]),
        counts=" ".join(data["counts"].split()),
        context=data["context"],
        prompt=prompt,
    )
    return plan, _wishes.validate_python(data["needs"])


def told(plan: Plan) -> str:
    """The plan as text for the next prompt."""
    return "\n".join(
        [plan.hypothesis, *(f"{at}. {step}" for at, step in enumerate(plan.steps, 1)), plan.counts]
    )
