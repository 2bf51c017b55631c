"""The model port over an OpenAI-compatible endpoint: roles, the cascade of models, one mending call, and the bill."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event
from time import monotonic

from bot.adapters.model import mending
from bot.adapters.model.counting import Price, Prices, careful, careful_schema, priced
from bot.adapters.model.endpoint import Asked, Endpoint
from bot.adapters.model.finding import fitted
from bot.adapters.model.halts import Halted, Lost, Refused
from bot.adapters.model.watch import Watch
from bot.errors import ModelUnavailable
from bot.models.dialogue import Answer, Question, Role, Usage

_CALLS = 2  # that may cost something, for each model: the question, and once more to mend an answer or in place of a lost one
_FIX = "Check the REPRISE_MODEL_* settings, or run without a model."


class ChatModel:
    """Asks the models of a role in turn until one answers as asked. `timeout_s` is for a whole question, shared among the
    models that are left: retries and mending take place inside it. `prices` holds USD for a million tokens; a model without
    one is counted as free and its usage marked as estimated.
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

    def bound(self, question: Question) -> Usage:
        """What asking uses when every model of the role is asked, answers at full length, does not fit and is mended. Tokens of
        what is asked are estimated with care; no tokenizer is known for sure.
        """
        most = Usage()
        once = careful(question)
        shown = question.most_tokens + careful_schema(question) + mending.ROOM
        for model in self._models[question.role]:
            used = Usage(
                calls=_CALLS,
                input_tokens=_CALLS * once + shown,
                output_tokens=_CALLS * question.most_tokens,
            )
            most += priced(used, self._prices.get(model))
        return most

    def ask(self, question: Question, *, cancel: Event | None = None) -> Answer:
        """An answer that fits. Raises ModelUnavailable, with what was used, when no model gives one; Stopped at most a second
        after `cancel` is set; UserError when the endpoint refuses the key or has moved.
        """
        started = monotonic()
        models = self._models[question.role]
        used, reasons = Usage(), []
        for index, model in enumerate(models):
            left = max(0.0, started + self._timeout_s - monotonic())
            watch = Watch(left / (len(models) - index), cancel or Event())
            conversation = _Conversation(self._endpoint, model, self._prices.get(model), watch)
            try:
                answer = conversation.answer(question)
            except Halted as error:
                reasons.append(f"{model}: {error}")
                used += conversation.used
                continue
            return answer.model_copy(update={"usage": used + answer.usage, "seconds": monotonic() - started})
        said = "; ".join(dict.fromkeys(reasons)) or "none is set"
        raise ModelUnavailable(f"No model answers as asked ({said}).", _FIX, used)


class _Conversation:
    """One question to one model; `used` is kept whatever comes of it."""

    def __init__(self, endpoint: Endpoint, model: str, price: Price | None, watch: Watch) -> None:
        self._endpoint, self._model, self._price, self._watch = endpoint, model, price, watch
        self.used = Usage()

    def answer(self, question: Question) -> Answer:
        """An answer that fits, mended at most once. Raises Halted."""
        messages, mended, reason = question.messages, False, ""
        for _ in range(_CALLS):
            asked = Asked(self._model, messages, question.answer_schema, question.most_tokens)
            try:
                reply = self._endpoint.complete(asked, self._watch)
            except Halted as error:
                self._count(error.usage)
                if not isinstance(error, Lost):
                    raise
                reason = str(error)
                continue
            self._count(reply.usage)
            found = fitted(reply.text, question.answer_schema, cut_at=question.most_tokens if reply.cut else 0)
            if isinstance(found, dict):
                return Answer(data=found, text=reply.text, model=self._model, usage=self.used, mended=mended)
            messages, mended = mending.conversation(question, reply.text, found), True
            reason = f"its answer could not be used: {found.sentence}"
        raise Refused(reason)

    def _count(self, usage: Usage) -> None:
        if usage.calls:
            self.used += priced(usage, self._price)
