"""What a model is asked while it writes a program, and its answers as values. Pure."""

from typing import Any

from pydantic import TypeAdapter

from bot.models.dialogue import (
    Action,
    EditAction,
    Interpretation,
    Question,
    WriteAction,
)
from bot.models.signature import ObservationSignature, WarningSignature, members_of
from bot.pipeline.confirm import verdicts
from bot.pipeline.search import checks
from bot.pipeline.search.model_budget import question
from bot.rules.signatures import observed
from bot.rules.signatures.observed import MARK
from prompts import load, shared

_actions: TypeAdapter[tuple[Action, ...]] = TypeAdapter(tuple[Action, ...])


def action_question(
    report: str,
    refined: Interpretation,
    environment: str,
    sources: str,
    history: str,
    left: str,
    limit_s: float,
) -> Question:
    """What the writer is asked next. A run is stopped after `limit_s` seconds."""
    prompt = load("act")
    return question(
        "writer",
        "act",
        6_000,
        report=report,
        form=_form(refined),
        contexts=sources,
        history=history or prompt.fragment("no_history"),
        left=left,
        limit=f"{limit_s:g}",
        lines=str(checks.MOST_LINES),
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


def _failure(refined: Interpretation, environment: str) -> dict[str, str]:
    """The claim, what counts as the failure, and where the program will run."""
    assert refined.signature is not None
    return {
        "claim": refined.claim,
        "signature": verdicts.describe(refined.signature),
        "environment": environment,
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
