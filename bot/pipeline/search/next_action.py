"""Where a reconstruction stands → the model's next actions. `build` and `parse` are pure."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from bot.models.context import Context
from bot.models.dialogue import Message, Question
from bot.models.environment import Environment
from bot.models.plan import Action, EditAction, Interpretation, Plan, WriteAction
from bot.pipeline.confirm import verdicts
from bot.pipeline.search import checks, interpretation, planning, source_listing
from prompts import load

_actions: TypeAdapter[tuple[Action, ...]] = TypeAdapter(tuple[Action, ...])


def build(
    report: str,
    refined: Interpretation,
    environment: Environment,
    plan: Plan | None,
    ranked: tuple[Context, ...],
    history: str,
    left: str,
) -> Question:
    """What the writer is asked next."""
    prompt = load("act")
    system, user = prompt.render(
        contrast_rule=checks.twin_wanted(refined),
        twin=checks.twin(refined),
        report=report,
        claim=refined.claim,
        signature=interpretation.fixed(refined),
        form=checks.form(refined),
        environment=verdicts.versions(environment),
        plan=planning.told(plan) if plan is not None else prompt.fragment("no_plan"),
        contexts=source_listing.contexts(_chosen(plan, ranked)),
        history=history or prompt.fragment("no_history"),
        left=left,
    )
    messages = (Message(role="system", content=system), Message(role="user", content=user))
    return Question(
        role="writer",
        prompt=prompt.id,
        messages=messages,
        answer_schema=prompt.schema,
        most_tokens=6_000,
    )


def _chosen(plan: Plan | None, ranked: tuple[Context, ...]) -> tuple[Context, ...]:
    """The context that the plan rests on; the first two while there is none."""
    named = tuple(
        context for context in ranked if plan is not None and context.rank == plan.context
    )
    return named or ranked[:2]


def parse(data: dict[str, Any]) -> tuple[Action, ...]:
    """The actions, up to and with the first program."""
    actions = _actions.validate_python(data["actions"])
    ends = next(
        (at for at, action in enumerate(actions) if isinstance(action, WriteAction | EditAction)),
        len(actions) - 1,
    )
    return actions[: ends + 1]


def edited(text: str, edit: EditAction) -> str:
    """A program with lines replaced. An edit beyond its end is appended; lines are 1-based and
    inclusive.
    """
    lines = text.splitlines()
    start = min(edit.start, len(lines) + 1) - 1
    end = max(start, min(edit.end, len(lines)))
    return "\n".join([*lines[:start], *edit.text.rstrip("\n").splitlines(), *lines[end:]]) + "\n"
