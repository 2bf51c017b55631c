"""The two prompts that the adapter itself says: the schema in words, and the error of an answer that did not fit."""

from __future__ import annotations

import json
from typing import Any

import prompts
from bot.adapters.model.finding import Misfit
from bot.models.dialogue import Message, Question
from bot.render.sanitize import clean

_MOST_SHOWN = 40_000  # characters of an answer that did not fit
ROOM = 1_000  # tokens: more than the words around what is shown


def with_schema(messages: tuple[Message, ...], schema: dict[str, Any]) -> tuple[Message, ...]:
    """The conversation with its schema said in words, for endpoints that do not take one."""
    system, _ = prompts.load("shape").render(schema=json.dumps(schema))
    return _instructed(messages, system)


def conversation(question: Question, text: str, misfit: Misfit) -> tuple[Message, ...]:
    """The question with the answer that did not fit, and what was wrong with it."""
    system, user = prompts.load("mend").render(
        problem=f"{misfit.sentence}.",
        error=prompts.fence("error", clean(misfit.error)) if misfit.error else "There is nothing more to say about it.",
        schema=json.dumps(question.answer_schema),
        tokens=str(question.most_tokens),
    )
    answered = Message(role="assistant", content=text[:_MOST_SHOWN] or "(nothing)")
    return (*_instructed(question.messages, system), answered, Message(role="user", content=user))


def _instructed(messages: tuple[Message, ...], more: str) -> tuple[Message, ...]:
    head, *rest = messages
    if head.role != "system":
        return (Message(role="system", content=more), *messages)
    return (head.model_copy(update={"content": f"{head.content}\n\n{more}"}), *rest)
