"""What endpoints take and refuse: the form of answers, streams, limits; and what they leave in
their answers.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.kernel.dialogue import Usage
from bot.kernel.errors import ModelUnavailable
from bot.model.json_answer import in_words
from bot.model.usage import Price, estimated, join_messages
from tests.integration.model.questions import PRICE, QUESTION, RIGHT, SAID, model
from tests.support.endpoint import Act, FakeEndpoint, error, says, status


def form(body: dict[str, Any]) -> str:
    asked = body.get("response_format") or {"type": "plain"}
    strict = asked["type"] == "json_schema" and asked["json_schema"]["strict"]
    return "strict" if strict else str(asked["type"])


def taking(*forms: str, code: int = 400, words: str = "response_format is not supported") -> Any:
    return lambda body: says(SAID) if form(body) in forms else error(code, words)


def asked(acts: Any, times: int = 1, **options: Any) -> list[dict[str, Any]]:
    with FakeEndpoint(acts) as endpoint:
        asking = model(endpoint.url, **options)
        for _ in range(times):
            answer = asking.ask(QUESTION)
            assert (answer.data, answer.mended, answer.usage.calls) == (RIGHT, False, 1)
    return [each.body for each in endpoint.asked]


def test_the_schema_and_the_limit_are_sent() -> None:
    (body,) = asked([says(SAID)])
    sent = body["response_format"]
    assert sent == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": QUESTION.answer_schema, "strict": True},
    }
    assert (body["model"], body["max_tokens"], body["stream"]) == ("m", 500, True)
    assert body["stream_options"] == {"include_usage": True}
    assert body["messages"] == [each.model_dump() for each in QUESTION.messages]


@pytest.mark.parametrize("code", [400, 422])
@pytest.mark.parametrize(
    ("takes", "forms"),
    [
        ("json_object", ["strict", "json_object"]),
        ("plain", ["strict", "json_object", "plain"]),
    ],
)
def test_a_form_that_is_refused_gives_way_and_that_is_remembered(
    code: int, takes: str, forms: list[str]
) -> None:
    bodies = asked(taking(takes, code=code), times=2)
    assert [form(body) for body in bodies] == [*forms, takes]


@pytest.mark.parametrize("takes", ["json_object", "plain"])
def test_where_no_schema_is_taken_it_is_said_in_words(takes: str) -> None:
    last = asked(taking(takes))[-1]["messages"]
    assert [each["role"] for each in last] == ["system", "user"]
    assert in_words(QUESTION.answer_schema) in last[0]["content"]
    assert last[0]["content"].startswith("You read.")


def test_what_is_remembered_is_of_one_model() -> None:
    acts = {"old": taking("plain"), "new": taking("strict")}
    with FakeEndpoint(lambda body: acts[body["model"]](body)) as endpoint:
        asking = model(endpoint.url, "old", writer="new")
        asking.ask(QUESTION)
        asking.ask(QUESTION.model_copy(update={"role": "writer"}))
    assert [form(each.body) for each in endpoint.asked][-2:] == ["plain", "strict"]


@pytest.mark.parametrize("structured", ["json_schema", "json_object", "plain"])
def test_the_form_that_the_host_sets_is_kept_to(structured: Any) -> None:
    with (
        FakeEndpoint([error(400, "response_format is not supported")]) as endpoint,
        pytest.raises(ModelUnavailable),
    ):
        model(endpoint.url, structured=structured).ask(QUESTION)
    assert [form(each.body) for each in endpoint.asked] == [
        "strict" if structured == "json_schema" else structured
    ]


def test_a_schema_that_leaves_things_open_is_not_held_to_strictly() -> None:
    loose = QUESTION.model_copy(
        update={"answer_schema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    )
    with FakeEndpoint([says(SAID)]) as endpoint:
        model(endpoint.url).ask(loose)
    assert form(endpoint.asked[0].body) == "json_schema"


@pytest.mark.parametrize(
    ("refuses", "words", "missing"),
    [
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        ("stream_options", "unknown field stream_options", "stream_options"),
        ("stream", "streaming is not supported", "stream"),
    ],
)
def test_a_parameter_that_is_refused_is_left_out_and_that_is_remembered(
    refuses: str, words: str, missing: str
) -> None:
    bodies = asked(lambda body: error(400, words) if refuses in body else says(SAID), times=2)
    assert [missing in body for body in bodies] == [True, False, False]
    assert all(form(body) == "strict" for body in bodies)
    assert bodies[-1].get("max_completion_tokens", bodies[-1].get("max_tokens")) == 500


def test_an_endpoint_that_takes_hardly_anything() -> None:
    def strict(body: dict[str, Any]) -> Act:
        extra = sorted(body.keys() - {"model", "messages", "max_completion_tokens"})
        return error(400, f"unsupported parameter: {extra[0]}") if extra else says(SAID)

    bodies = asked(strict, times=2)
    assert len(bodies) == 6
    assert bodies[-1].keys() == {"model", "messages", "max_completion_tokens"}


def test_a_refusal_that_is_about_something_else_ends_it() -> None:
    with (
        FakeEndpoint([error(400, "maximum context length is 4096 tokens")]) as endpoint,
        pytest.raises(ModelUnavailable, match="maximum context length"),
    ):
        model(endpoint.url).ask(QUESTION)
    assert len(endpoint.asked) == 1


def test_an_endpoint_that_does_not_stream_though_asked_to() -> None:
    whole = {
        "choices": [{"message": {"content": SAID}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    with FakeEndpoint(
        [status(200, json.dumps(whole).encode(), {"Content-Type": "application/json"})]
    ) as endpoint:
        answer = model(endpoint.url).ask(QUESTION)
    assert answer.usage == Usage(calls=1, input_tokens=7, output_tokens=3, usd=PRICE.of(7, 3))


def test_a_stream_under_the_wrong_name() -> None:
    chunk = {"choices": [{"delta": {"content": SAID}, "finish_reason": "stop"}]}
    stream = b"data: " + json.dumps(chunk).encode() + b"\r\n\r\ndata: [DONE]\r\n\r\n"
    with FakeEndpoint([status(200, stream, {"Content-Type": "text/plain"})]) as endpoint:
        assert model(endpoint.url).ask(QUESTION).data == RIGHT


def test_content_in_parts() -> None:
    whole = {
        "choices": [
            {
                "message": {
                    "content": [
                        {"type": "text", "text": SAID[:5]},
                        {"type": "text", "text": SAID[5:]},
                    ]
                }
            }
        ]
    }
    with FakeEndpoint(
        [status(200, json.dumps(whole).encode(), {"Content-Type": "application/json"})]
    ) as endpoint:
        assert model(endpoint.url).ask(QUESTION).data == RIGHT


# --- thoughts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "act",
    [
        says(SAID, thoughts='Perhaps {"name": "wrong"}?'),
        says('<think>Perhaps {"name": "wrong"}?</think>\n' + SAID),
        says('Perhaps {"name": "wrong"}?</think>\n' + SAID),
    ],
    ids=["field", "marks", "half-marks"],
)
def test_thoughts_are_no_answer(act: Act, streamed: bool) -> None:
    def maybe(body: dict[str, Any]) -> Act:
        return act if streamed or not body.get("stream") else error(400, "no stream")

    asked(maybe)


def test_thoughts_are_counted_where_the_provider_counts_nothing() -> None:
    with FakeEndpoint([says(SAID, thoughts="x" * 400, usage=None)]) as endpoint:
        usage = model(endpoint.url).ask(QUESTION).usage
    words = estimated(join_messages(QUESTION.messages))
    assert usage == Usage(
        calls=1,
        input_tokens=words,
        output_tokens=100 + estimated(SAID),
        usd=PRICE.of(words, 100 + estimated(SAID)),
        estimated=True,
    )


# --- usage -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("usage", [(-5, 3), (10**12, 3), ("7", 3), (None, None), (True, 3)])
def test_figures_that_cannot_be_are_not_believed(usage: Any) -> None:
    with FakeEndpoint([says(SAID, usage=usage)]) as endpoint:
        counted = model(endpoint.url).ask(QUESTION).usage
    assert counted.estimated
    assert 0 < counted.input_tokens < 100


def test_a_model_without_a_price_is_free_and_marked() -> None:
    with FakeEndpoint([says(SAID)]) as endpoint:
        asking = model(endpoint.url, prices={"other": Price(input=1, output=1)})
        assert asking.ask(QUESTION).usage == Usage(
            calls=1, input_tokens=100, output_tokens=20, estimated=True
        )
        bound = asking.bound(QUESTION)
    assert (bound.usd, bound.estimated) == (0, True)
