"""Recorded exchanges: written as they happen, and replayed in place of a model."""

import re
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from threading import Event, Lock

from typing_extensions import override

from bot.kernel.dialogue import Exchange, ModelAnswer, Question, Usage
from bot.kernel.errors import ModelUnavailable, Stopped
from bot.kernel.files import read_exchanges
from bot.kernel.journal import EXCHANGES
from bot.kernel.ports import Journal, Model
from bot.model.usage import careful

_VOLATILE = re.compile(
    r"\b\d+ minutes\b|(?<=, )\d+\.\d s\b|\b0x[0-9a-fA-F]{6,}\b"
    r"|(?<=\bPython 3\.\d\d)\.\d+\b|(?<=\bsetuptools )\d[\w.]*"
    r"|(?<![\w.])/(?:[\w.-]+/)+(?=repro\.py\b|site-packages/|python3\.\d+/)"
)


def match_key(question: Question) -> str:
    """Equal for questions that share a recorded answer: a hash of the whole question without the
    time left, durations, memory addresses, paths of this machine, and the patch release of Python
    and setuptools.
    """
    messages = tuple(
        message.model_copy(update={"content": _VOLATILE.sub("?", message.content)})
        for message in question.messages
    )
    return question.model_copy(update={"messages": messages}).digest


class _Waiting:
    """Exchanges by question, each used once, in their order. Thread-safe."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._lock = Lock()
        self._queues: dict[str, deque[Exchange]] = defaultdict(deque)
        for exchange in exchanges:
            self._queues[match_key(exchange.question)].append(exchange)

    def next(self, question: Question, *, use: bool = False) -> Exchange | None:
        with self._lock:
            queue = self._queues.get(match_key(question))
            if not queue:
                return None
            return queue.popleft() if use else queue[0]

    def left(self) -> set[int]:
        with self._lock:
            return {exchange.number for queue in self._queues.values() for exchange in queue}


class Recording(Model):
    """A model whose every exchange is stored before its answer is returned. What a killed process
    was answered is neither asked nor paid for again; each stored answer is used once.
    """

    def __init__(self, model: Model, log: Journal) -> None:
        self._model = model
        self._log = log
        self._lock = Lock()
        earlier = log.read(EXCHANGES)
        self._number = max((exchange.number for exchange in earlier), default=0)
        self._answered = _Waiting(exchange for exchange in earlier if exchange.answer is not None)

    @override
    def bound(self, question: Question) -> Usage:
        """The bound of the model, or what the stored answer used."""
        exchange = self._answered.next(question)
        answer = exchange.answer if exchange is not None else None
        return answer.usage if answer is not None else self._model.bound(question)

    @override
    def ask(self, question: Question, *, cancel: Event | None = None) -> ModelAnswer:
        exchange = self._answered.next(question, use=True)
        if exchange is not None and exchange.answer is not None:
            return exchange.answer
        try:
            answer = self._model.ask(question, cancel=cancel)
        except ModelUnavailable as error:
            self._store(Exchange(number=0, question=question, error=str(error), used=error.usage))
            raise
        self._store(Exchange(number=0, question=question, answer=answer))
        return answer

    def _store(self, exchange: Exchange) -> None:
        with self._lock:
            self._number += 1
            self._log.append(EXCHANGES, exchange.model_copy(update={"number": self._number}))


class Cassette(Model):
    """Answers from recorded exchanges: equal questions get their answers in the order in which
    they were recorded. An unrecorded question raises ModelUnavailable.
    """

    def __init__(self, path: Path) -> None:
        self._exchanges = read_exchanges(path, Exchange)
        self._missed: list[str] = []
        self._waiting = _Waiting(self._exchanges)

    @override
    def bound(self, question: Question) -> Usage:
        """What the recorded exchange used, so that a budget that sufficed then suffices now."""
        exchange = self._waiting.next(question)
        if exchange is not None:
            return exchange.answer.usage if exchange.answer is not None else exchange.used
        return Usage(
            calls=1,
            input_tokens=careful(question),
            output_tokens=question.most_tokens,
            estimated=True,
        )

    @override
    def ask(self, question: Question, *, cancel: Event | None = None) -> ModelAnswer:
        if cancel is not None and cancel.is_set():
            raise Stopped("The question to the model was cancelled.")
        exchange = self._waiting.next(question, use=True)
        if exchange is None:
            self._missed.append(question.prompt)
            raise ModelUnavailable(self._unrecorded(question), "Record again with a model.")
        if exchange.answer is None:
            raise ModelUnavailable(exchange.error, usage=exchange.used)
        return exchange.answer

    def unused(self) -> tuple[Exchange, ...]:
        """Recorded exchanges that were not asked for, in order."""
        unread = self._waiting.left()
        return tuple(exchange for exchange in self._exchanges if exchange.number in unread)

    def missed(self) -> tuple[str, ...]:
        """The prompts of the unrecorded questions: after the first a run is no replay."""
        return tuple(self._missed)

    def _unrecorded(self, question: Question) -> str:
        stage = question.prompt.partition("@")[0]
        prompts = {exchange.question.prompt for exchange in self._exchanges}
        prompts_of_stage = sorted(prompt for prompt in prompts if prompt.partition("@")[0] == stage)
        keys = {match_key(exchange.question) for exchange in self._exchanges}
        if prompts_of_stage and question.prompt not in prompts_of_stage:
            before = ", ".join(prompts_of_stage)
            reason = f"the prompt changed: recorded with {before}, asked with {question.prompt}"
        elif match_key(question) in keys:
            reason = f"{question.prompt} asks it more often than was recorded"
        else:
            reason = f"the run diverged from the recorded one at {question.prompt}"
        return f"There is no recorded answer at stage {stage}: {reason}."
