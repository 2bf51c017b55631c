"""The model port over an OpenAI-compatible endpoint: roles, the cascade of models, one mending
call, and the usage.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from typing_extensions import override

from bot.kernel.dialogue import ModelAnswer, Question, Role, Usage
from bot.kernel.errors import ModelUnavailable, UserError
from bot.kernel.ports import Model
from bot.kernel.settings import Settings
from bot.model.json_answer import CORRECTION_TOKENS, correction, fit
from bot.model.usage import (
    AnswerLost,
    CallFailed,
    Deadline,
    ModelRefused,
    Price,
    Prices,
    careful,
    careful_schema,
    priced,
)

if TYPE_CHECKING:
    from bot.model.endpoint import Endpoint

# Calls of one model that may cost something: the question, and one more to mend the answer or to
# replace a lost one.
_CALLS = 2
_FIX = "Check the REPRISE_MODEL_* settings, or run without a model."


class ChatModel(Model):
    """Asks the models of a role in turn until one gives a valid answer. `timeout_s` is for a whole
    question, with retries and mending, and is shared among the models that are left. `prices` are
    in USD for a million tokens; a model without one counts as free, its usage as estimated.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        models: Mapping[Role, tuple[str, ...]],
        *,
        timeout_s: float = 600.0,
        prices: Prices | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._models = models
        self._timeout_s = timeout_s
        self._prices: Prices = prices or {}

    @override
    def bound(self, question: Question) -> Usage:
        """The usage when every model of the role is asked, answers at full length, and its answer
        needs mending. Input tokens are a high estimate: no tokenizer is known for sure.
        """
        most = Usage()
        tokens_sent_again = question.most_tokens + careful_schema(question) + CORRECTION_TOKENS
        usage = Usage(
            calls=_CALLS,
            input_tokens=_CALLS * careful(question) + tokens_sent_again,
            output_tokens=_CALLS * question.most_tokens,
        )
        for model in self._models[question.role]:
            most += priced(usage, self._prices.get(model))
        return most

    @override
    def ask(self, question: Question, *, cancel: Event | None = None) -> ModelAnswer:
        """A valid answer. Raises ModelUnavailable with the usage when no model gives one; Stopped
        at most a second after `cancel` is set; UserError when the endpoint refuses the key or
        redirects.
        """
        started = monotonic()
        models = self._models[question.role]
        usage, reasons = Usage(), []
        for index, model in enumerate(models):
            remaining = max(0.0, started + self._timeout_s - monotonic())
            deadline = Deadline(remaining / (len(models) - index), cancel or Event())
            try:
                answer = self._answer(model, question, deadline)
            except CallFailed as error:
                reasons.append(f"{model}: {error}")
                usage += error.usage
                continue
            total = {"usage": usage + answer.usage, "seconds": monotonic() - started}
            return answer.model_copy(update=total)
        why = "; ".join(dict.fromkeys(reasons)) or "none is set"
        raise ModelUnavailable(f"No model gave a valid answer ({why}).", _FIX, usage)

    def _answer(self, model: str, question: Question, deadline: Deadline) -> ModelAnswer:
        """A valid answer of one model, mended at most once. Raises CallFailed with all usage."""
        attempt, reason, usage = question, "", Usage()
        for _ in range(_CALLS):
            try:
                buffer = self._endpoint.complete(model, attempt, deadline)
            except CallFailed as error:
                usage += priced(error.usage, self._prices.get(model))
                if not isinstance(error, AnswerLost):
                    error.usage = usage
                    raise
                reason = str(error)
                continue
            usage += priced(buffer.usage(), self._prices.get(model))
            cut_at = question.most_tokens if buffer.finish == "length" else 0
            data = fit(buffer.text, question.answer_schema, cut_at=cut_at)
            if isinstance(data, dict):
                mended = attempt is not question
                return ModelAnswer(
                    data=data, text=buffer.text, model=model, usage=usage, mended=mended
                )
            attempt = correction(question, buffer.text, data)
            reason = f"its answer could not be used: {data.sentence}"
        raise ModelRefused(reason, usage)


# Settings → the model they name.


def configured(settings: Settings, name: str = "") -> ChatModel | None:
    """The model of the settings; `name` (one, or a cascade with commas) replaces both of its
    roles. None when no model is named; UserError when one is, but no endpoint.
    """
    readers, writers = names(name or settings.model_reader), names(name or settings.model_writer)
    if not readers and not writers:
        return None
    url, key = settings.model_endpoint
    if not url:
        raise UserError(
            "A model is named, but no endpoint is set.",
            "Set REPRISE_MODEL_URL, and REPRISE_MODEL_KEY if it needs a key.",
        )
    # Importing the SDK takes more than a second, which runs without a model need not wait for.
    from bot.model.endpoint import Endpoint

    return ChatModel(
        Endpoint(url, key, stall_s=settings.model_stall_s, structured=settings.model_structured),
        {"reader": readers or writers, "writer": writers or readers},
        timeout_s=settings.model_timeout_s,
        prices={
            model: Price(input=input_price, output=output_price)
            for model, (input_price, output_price) in (settings.model_prices or {}).items()
        },
    )


def names(text: str) -> tuple[str, ...]:
    """The models of a cascade, written with commas between."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
