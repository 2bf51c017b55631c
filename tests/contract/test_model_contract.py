"""Every model keeps the same promises: scripted, replayed from a cassette, recorded, and behind an
endpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from bot.kernel.dialogue import Message, Question
from bot.kernel.errors import ModelUnavailable, Stopped
from bot.kernel.ports import Model
from bot.model.cassette import Cassette, Recording
from bot.model.chat import ChatModel
from bot.model.endpoint import Endpoint
from bot.model.usage import Price
from tests.support.endpoint import error, says
from tests.support.engine import ExchangeFile
from tests.support.fakes import FakeEndpoint, ScriptedModel

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
Made = Callable[..., Model]


def question(text: str) -> Question:
    asked = (Message(role="system", content="Count."), Message(role="user", content=text))
    return Question(
        role="reader",
        prompt="read@v1#0123456789ab",
        messages=asked,
        answer_schema=SCHEMA,
        most_tokens=100,
    )


ONE, TWO = question("one"), question("two")


def scripted(answers: tuple[dict[str, Any] | None, ...]) -> ScriptedModel:
    return ScriptedModel(
        [ModelUnavailable("nobody is there") if each is None else each for each in answers],
        usd=0.001,
    )


@pytest.fixture(params=["scripted", "cassette", "recording", "endpoint"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    """Makes a model that will answer the given questions in order; None stands for no answer."""
    opened = ExitStack()

    def make(*exchanges: tuple[Question, dict[str, Any] | None]) -> Model:
        answers = tuple(answer for _, answer in exchanges)
        if request.param == "scripted":
            return scripted(answers)
        if request.param == "endpoint":
            acts = [
                error(404, "nobody is there") if each is None else says(json.dumps(each))
                for each in answers
            ]
            endpoint = opened.enter_context(FakeEndpoint(acts or [error(404, "nobody is there")]))
            served = Endpoint(endpoint.url, backoff_s=0.01)
            return ChatModel(
                served, {"reader": ("m",)}, timeout_s=10, prices={"m": Price(input=1, output=1)}
            )
        recording = Recording(scripted(answers), ExchangeFile(tmp_path / "exchanges.jsonl"))
        if request.param == "recording":
            return recording
        for asked_for, answer in exchanges:
            try:
                recording.ask(asked_for)
            except ModelUnavailable:
                assert answer is None
        return Cassette(tmp_path / "exchanges.jsonl") if exchanges else empty(tmp_path)

    with opened:
        yield make


def empty(folder: Path) -> Cassette:
    (folder / "exchanges.jsonl").touch()
    return Cassette(folder / "exchanges.jsonl")


def test_an_answer_is_data_with_its_words_its_model_and_what_it_used(made: Made) -> None:
    answer = made((ONE, {"n": 1})).ask(ONE)
    assert answer.data == {"n": 1}
    assert json.loads(answer.text) == {"n": 1}
    assert answer.model
    assert (answer.usage.calls, answer.mended) == (1, False)
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0
    assert answer.usage.usd > 0
    assert type(answer).model_validate_json(answer.model_dump_json()) == answer


def test_what_was_used_is_within_the_bound_that_was_given(made: Made) -> None:
    model = made((ONE, {"n": 1}))
    bound = model.bound(ONE)
    used = model.ask(ONE).usage
    if (
        not used.estimated and used.input_tokens == 100
    ):  # what the endpoint of the test counts is made up
        used = used.model_copy(update={"input_tokens": 1})
    assert used.calls <= bound.calls
    assert used.input_tokens <= bound.input_tokens
    assert used.output_tokens <= bound.output_tokens
    assert used.usd <= bound.usd


def test_asking_for_the_bound_uses_nothing(made: Made) -> None:
    model = made((ONE, {"n": 1}))
    assert model.bound(ONE) == model.bound(ONE)
    assert model.ask(ONE).data == {"n": 1}


def test_the_same_question_may_be_answered_otherwise_the_second_time(made: Made) -> None:
    model = made((ONE, {"n": 1}), (TWO, {"n": 2}), (ONE, {"n": 3}))
    assert [model.ask(each).data["n"] for each in (ONE, TWO, ONE)] == [1, 2, 3]


def test_no_answer_is_an_error_and_the_next_question_is_answered(made: Made) -> None:
    model = made((ONE, None), (TWO, {"n": 2}))
    with pytest.raises(ModelUnavailable, match="nobody is there"):
        model.ask(ONE)
    assert model.ask(TWO).data == {"n": 2}


def test_a_model_that_has_nothing_to_say_is_unavailable(made: Made) -> None:
    with pytest.raises(ModelUnavailable):
        made().ask(ONE)


def test_what_was_stopped_is_not_asked(made: Made) -> None:
    model, stop = made((ONE, {"n": 1})), Event()
    stop.set()
    with pytest.raises(Stopped):
        model.ask(ONE, cancel=stop)
    stop.clear()
    assert model.ask(ONE, cancel=stop).data == {"n": 1}
