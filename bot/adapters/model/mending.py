"""The adapter's own two prompts: a schema as text, and the error of an answer that does not fit."""

from __future__ import annotations

import json

import prompts
from bot.adapters.model.json_extract import Misfit
from bot.models.dialogue import Message, Question
from bot.text.sanitize import clean

_MOST_SHOWN = 40_000  # characters of an answer that did not fit
ROOM = 1_000  # tokens: more than the words around what is shown


def with_schema(question: Question) -> Question:
    """The question with its schema as text, for endpoints that take no schema."""
    system, _ = prompts.load("shape").render(schema=json.dumps(question.answer_schema))
    return _with(question, system)


def conversation(question: Question, text: str, misfit: Misfit) -> Question:
    """The question with the answer that did not fit, and what was wrong with it."""
    prompt = prompts.load("mend")
    system, user = prompt.render(
        problem=f"{misfit.sentence}.",
        error=prompts.fence("error", clean(misfit.error))
        if misfit.error
        else prompt.fragment("no_error"),
        schema=json.dumps(question.answer_schema),
        tokens=str(question.most_tokens),
    )
    content = text[:_MOST_SHOWN] or prompt.fragment("nothing_answered")
    answered = Message(role="assistant", content=content)
    return _with(question, system, answered, Message(role="user", content=user))


def _with(question: Question, system: str, *more: Message) -> Question:
    """The question with a longer system message and more turns."""
    head, *rest = question.messages
    if head.role == "system":
        head = head.model_copy(update={"content": f"{head.content}\n\n{system}"})
    else:
        head, rest = Message(role="system", content=system), list(question.messages)
    return question.model_copy(update={"messages": (head, *rest, *more)})
