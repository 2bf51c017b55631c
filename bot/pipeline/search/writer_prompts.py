"""What a model is asked while it writes a program (a plan, its next actions, why a run did not show
the failure), and its answers as values. Pure.
"""

from typing import Any

from pydantic import TypeAdapter

from bot.models.dialogue import Question
from bot.models.environment import Context, Environment
from bot.models.plan import (
    Action,
    EditAction,
    Interpretation,
    Plan,
    ReadAction,
    SearchAction,
    WriteAction,
)
from bot.models.signature import ObservationSignature, WarningSignature, members_of
from bot.pipeline.confirm import verdicts
from bot.pipeline.search import prompt_text
from bot.pipeline.search.model_budget import question
from bot.rules.signatures import observed
from bot.rules.signatures.observed import MARK
from prompts import load, shared

Wish = SearchAction | ReadAction
_actions: TypeAdapter[tuple[Action, ...]] = TypeAdapter(tuple[Action, ...])
_wishes: TypeAdapter[tuple[Wish, ...]] = TypeAdapter(tuple[Wish, ...])


def plan_question(
    report: str, refined: Interpretation, environment: Environment, ranked: tuple[Context, ...]
) -> Question:
    """The writer's first question: a plan, before anything runs."""
    return question(
        "writer",
        "plan",
        2_000,
        report=report,
        contexts=prompt_text.contexts(ranked),
        **_failure(refined, environment),
        **_twin(refined),
    )


def parse_plan(data: dict[str, Any]) -> tuple[Plan, tuple[Wish, ...]]:
    """The plan, and what is to be looked up for it."""
    plan = Plan(
        hypothesis=" ".join(data["hypothesis"].split()),
        steps=tuple(" ".join(step.split()) for step in data["steps"]),
        counts=" ".join(data["counts"].split()),
        context=data["context"],
        prompt=load("plan").id,
    )
    return plan, _wishes.validate_python(data["needs"])


def action_question(
    report: str,
    refined: Interpretation,
    environment: Environment,
    plan: Plan | None,
    ranked: tuple[Context, ...],
    history: str,
    left: str,
) -> Question:
    """What the writer is asked next, with the context that the plan rests on; the first two while
    there is none.
    """
    prompt = load("act")
    chosen = [context for context in ranked if plan is not None and context.rank == plan.context]
    return question(
        "writer",
        "act",
        6_000,
        report=report,
        form=_form(refined),
        plan=_told(plan) if plan is not None else prompt.fragment("no_plan"),
        contexts=prompt_text.contexts(chosen or ranked[:2]),
        history=history or prompt.fragment("no_history"),
        left=left,
        **_failure(refined, environment),
        **_twin(refined),
    )


def parse_actions(data: dict[str, Any]) -> tuple[Action, ...]:
    """The actions, up to and with the first program."""
    actions = _actions.validate_python(data["actions"])
    programs = (at for at, one in enumerate(actions) if isinstance(one, WriteAction | EditAction))
    return actions[: next(programs, len(actions)) + 1]


def edited(text: str, edit: EditAction) -> str:
    """A program with lines replaced. An edit beyond its end is appended; lines are 1-based and
    inclusive.
    """
    lines = text.splitlines()
    start = min(edit.start, len(lines) + 1) - 1
    end = max(start, min(edit.end, len(lines)))
    return "\n".join([*lines[:start], *edit.text.rstrip("\n").splitlines(), *lines[end:]]) + "\n"


def analysis_question(refined: Interpretation, environment: Environment, attempts: str) -> Question:
    """What the reader is asked after runs that failed to show it: why, apart from the next
    program.
    """
    return question("reader", "analyse", 1_500, attempts=attempts, **_failure(refined, environment))


def parse_analysis(data: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The analysis as text, and identifiers to look up for the next program."""
    texts = {name: " ".join(data[name].split()) for name in ("kind", "cause", "advice")}
    return shared("analysis", **texts), tuple(data["look_up"])


def _failure(refined: Interpretation, environment: Environment) -> dict[str, str]:
    """The claim, what counts as the failure, and where the program will run."""
    assert refined.signature is not None
    return {
        "claim": refined.claim,
        "signature": verdicts.describe(refined.signature),
        "environment": verdicts.versions(environment),
    }


def _twin(refined: Interpretation) -> dict[str, str]:
    """What the twin has to do, and whether the model has to write one."""
    assert refined.signature is not None
    kinds = {type(member) for member in members_of(refined.signature)}
    warned = shared("twin_warning" if WarningSignature in kinds else "twin_crash")
    return {
        "twin": shared("twin_observation") if ObservationSignature in kinds else warned,
        "contrast_rule": shared("twin_required" if refined.needs_contrast else "twin_optional"),
    }


def _form(refined: Interpretation) -> str:
    """How the program has to show the failure."""
    assert refined.signature is not None
    prompt = load("act")
    lines = [
        prompt.fragment(
            "form_observation",
            mark=MARK,
            name=member.name,
            api=", ".join(member.api),
            right=observed.words(member.right),
        )
        for member in members_of(refined.signature)
        if isinstance(member, ObservationSignature)
    ]
    return "\n".join(lines) or prompt.fragment("form_escape")


def _told(plan: Plan) -> str:
    """The plan as text for the next prompt."""
    steps = (f"{at}. {step}" for at, step in enumerate(plan.steps, 1))
    return "\n".join([plan.hypothesis, *steps, plan.counts])
