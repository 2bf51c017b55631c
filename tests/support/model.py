"""A model for tests that says what it was told to say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from jsonschema import Draft202012Validator

from bot.kernel.dialogue import ModelAnswer, Question, Usage
from bot.kernel.errors import ModelUnavailable, Stopped
from bot.model.usage import careful, estimated, join_messages

Answers = Callable[[Question], dict[str, Any]] | Sequence[dict[str, Any] | Exception]


@dataclass
class ScriptedModel:
    """Answers from a function of the question, or from a list in order; an exception in the list
    (or raised by the function) is raised. Tokens are four characters; `usd` is what a call
    costs. `asked` keeps the questions, those that failed included.

    A list that is used up raises ModelUnavailable. An answer that does not fit its question's
    schema is a mistake of the test and raises ValueError.
    """

    answers: Answers
    usd: float = 0.0
    name: str = "scripted"
    asked: list[Question] = field(default_factory=list)

    def bound(self, question: Question) -> Usage:
        """One call with the longest answer."""
        return Usage(
            calls=1,
            input_tokens=careful(question),
            output_tokens=question.most_tokens,
            usd=self.usd,
        )

    def ask(self, question: Question, *, cancel: Event | None = None) -> ModelAnswer:
        """The next answer at once."""
        if cancel is not None and cancel.is_set():
            raise Stopped("asking was cancelled")
        self.asked.append(question)
        data = self._next(question)
        for misfit in Draft202012Validator(question.answer_schema).iter_errors(data):
            raise ValueError(
                f"the scripted answer to {question.prompt} does not fit: {misfit.message}"
            )
        text = json.dumps(data)
        tokens = {
            "input_tokens": estimated(join_messages(question.messages)),
            "output_tokens": estimated(text),
        }
        return ModelAnswer(
            data=data, text=text, model=self.name, usage=Usage(calls=1, usd=self.usd, **tokens)
        )

    def _next(self, question: Question) -> dict[str, Any]:
        if callable(self.answers):
            return self.answers(question)
        if len(self.asked) > len(self.answers):
            raise ModelUnavailable(
                f"only {len(self.answers)} answers were scripted; {question.prompt} asks for one more"
            )
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer
