"""Recorded exchanges: kept as they happen, and asked in a model's place."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from threading import Event, Lock
from typing import Protocol

from bot.adapters.exchanges import recorded
from bot.adapters.model.counting import careful
from bot.errors import ModelUnavailable, Stopped
from bot.models.dialogue import Answer, Exchange, Question, Usage
from bot.ports import Model


class Keeper(Protocol):
    """Where exchanges are kept: `bot.ports.Recorder`, as far as they are concerned."""

    def exchange(self, exchange: Exchange) -> None:
        """Keep one."""
        ...

    def exchanges(self) -> tuple[Exchange, ...]:
        """Those that were kept before, in order."""
        ...


class Recording:
    """A model whose every exchange is kept before its answer is handed on: nothing is lost when the process is killed. What a
    killed process was told is neither asked nor paid for again, each answer once.
    """

    def __init__(self, model: Model, keeper: Keeper) -> None:
        self._model = model
        self._keeper = keeper
        self._lock = Lock()
        earlier = keeper.exchanges()
        self._number = max((each.number for each in earlier), default=0)
        self._told = _by_question(each for each in earlier if each.answer is not None)

    def bound(self, question: Question) -> Usage:
        """That of the model, or what the answer that is kept used."""
        with self._lock:
            kept = next(iter(self._told.get(likeness(question), ())), None)
        return kept.answer.usage if kept is not None and kept.answer is not None else self._model.bound(question)

    def ask(self, question: Question, *, cancel: Event | None = None) -> Answer:
        """The model's answer, or its error. What was stopped on request is no exchange."""
        with self._lock:
            waiting = self._told.get(likeness(question))
            kept = waiting.popleft().answer if waiting else None
        if kept is not None:
            return kept
        try:
            answer = self._model.ask(question, cancel=cancel)
        except ModelUnavailable as error:
            self._keep(question, error=str(error), used=error.usage)
            raise
        self._keep(question, answer=answer)
        return answer

    def _keep(self, question: Question, *, answer: Answer | None = None, error: str = "", used: Usage | None = None) -> None:
        with self._lock:
            self._number += 1
            said = Exchange(number=self._number, question=question, answer=answer, error=error, used=used or Usage())
            self._keeper.exchange(said)


_CHANCE = re.compile(
    r"\b\d+ minutes\b|(?<=, )\d+\.\d s\b|\b0x[0-9a-fA-F]{6,}\b"
    r"|(?<=\bPython 3\.\d\d)\.\d+\b|(?<=\bsetuptools )\d[\w.]*"
    r"|(?<![\w.])/(?:[\w.-]+/)+(?=repro\.py\b|site-packages/|python3\.\d+/)"
)


def likeness(question: Question) -> str:
    """What makes two questions the same in a replay: all that is said but for the time that is left or a run took, addresses
    in memory, where on this machine a file lies, and which patch of Python and which setuptools it has.
    """
    messages = (each.model_copy(update={"content": _CHANCE.sub("?", each.content)}) for each in question.messages)
    return question.model_copy(update={"messages": tuple(messages)}).digest


class Tape:
    """Answers from recorded exchanges: like questions get their answers in the order in which they were recorded. What was not
    recorded raises ModelUnavailable.
    """

    def __init__(self, path: Path) -> None:
        self._exchanges = recorded(path)
        self._missed: list[str] = []
        self._lock = Lock()
        self._waiting = _by_question(self._exchanges)

    def bound(self, question: Question) -> Usage:
        """What the recorded exchange used, so that a budget that allowed it then allows it now."""
        with self._lock:
            waiting = self._waiting.get(likeness(question))
            if waiting:
                return waiting[0].answer.usage if waiting[0].answer is not None else waiting[0].used
        return Usage(calls=1, input_tokens=careful(question), output_tokens=question.most_tokens, estimated=True)

    def ask(self, question: Question, *, cancel: Event | None = None) -> Answer:
        """The next recorded answer, or the recorded error."""
        if cancel is not None and cancel.is_set():
            raise Stopped("asking the model was cancelled")
        with self._lock:
            waiting = self._waiting.get(likeness(question))
            found = waiting.popleft() if waiting else None
            if found is None:
                self._missed.append(question.prompt)
        if found is None:
            raise ModelUnavailable(*self._unknown(question))
        if found.answer is None:
            raise ModelUnavailable(found.error, usage=found.used)
        return found.answer

    def unused(self) -> tuple[Exchange, ...]:
        """Recorded exchanges that nobody asked for, in order."""
        with self._lock:
            left = {each.number for waiting in self._waiting.values() for each in waiting}
        return tuple(each for each in self._exchanges if each.number in left)

    def missed(self) -> tuple[str, ...]:
        """The prompts of what was asked and had not been recorded: from the first of them on a run is no replay."""
        with self._lock:
            return tuple(self._missed)

    def _unknown(self, question: Question) -> tuple[str, str]:
        stage = question.prompt.partition("@")[0]
        known = {each.question.prompt for each in self._exchanges if each.question.prompt.partition("@")[0] == stage}
        if known and question.prompt not in known:
            why = f"the prompt changed: recorded with {', '.join(sorted(known))}, asked with {question.prompt}"
        elif any(likeness(each.question) == likeness(question) for each in self._exchanges):
            why = f"{question.prompt} asks it more often than it was recorded"
        else:
            why = f"the run went another way than the recorded one, at {question.prompt}"
        return f"There is no recorded answer at stage {stage}: {why}.", "Record again with a model."


def _by_question(exchanges: Iterable[Exchange]) -> dict[str, deque[Exchange]]:
    """Exchanges in their order, by what makes their questions the same."""
    waiting: dict[str, deque[Exchange]] = defaultdict(deque)
    for each in exchanges:
        waiting[likeness(each.question)].append(each)
    return waiting
