"""An endpoint that fails in every way it can: the right outcome, in time, with what was used
counted and no request too many.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Event, Thread, Timer
from time import monotonic, sleep
from traceback import walk_tb

import pytest

from bot.kernel.dialogue import Usage
from bot.kernel.errors import ModelUnavailable, Stopped, UserError
from bot.model.endpoint import Endpoint, event_loop
from bot.model.json_answer import in_words
from bot.model.usage import AnswerLost, Deadline
from tests.integration.model.questions import (
    KEY,
    PRICE,
    QUESTION,
    RIGHT,
    SAID,
    by_model,
    model,
    within,
)
from tests.support.endpoint import (
    Act,
    Exchanged,
    FakeEndpoint,
    after,
    begins,
    error,
    event,
    resets,
    says,
    silent,
    status,
)

ONE = Usage(calls=1, input_tokens=100, output_tokens=20, usd=PRICE.of(100, 20))
HTML = b"<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>"
JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream"}


def gives_up(acts: Sequence[Act], requests: int, said: str, **options: float) -> ModelUnavailable:
    with (
        FakeEndpoint(acts) as endpoint,
        within(4),
        pytest.raises(ModelUnavailable, match=said) as raised,
    ):
        model(endpoint.url, **options).ask(QUESTION)  # type: ignore[arg-type]
    assert len(endpoint.asked) == requests
    assert KEY not in str(raised.value) + raised.value.fix
    return raised.value


def comes_through(
    acts: Sequence[Act], requests: int, usage: Usage = ONE, **options: float
) -> FakeEndpoint:
    with FakeEndpoint(acts) as endpoint, within(4):
        answer = model(endpoint.url, **options).ask(QUESTION)  # type: ignore[arg-type]
    assert answer.data == RIGHT
    assert len(endpoint.asked) == requests
    assert answer.usage == usage
    assert 0 < answer.seconds < 4
    return endpoint


# --- nothing was said yet: tried again, and nothing counted -------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        error(429, "slow down"),
        error(500, "oops"),
        status(502, HTML, {"Content-Type": "text/html"}),
        error(503, "loading"),
        error(408, "late"),
        status(500, b"\xff\xfe garbage"),
        status(200, json.dumps({"error": {"code": 429, "message": "upstream"}}).encode(), JSON),
        resets,
        lambda _: None,
    ],
    ids=["429", "500", "502-page", "503", "408", "500-bytes", "200-error", "reset", "hangs-up"],
)
def test_a_refusal_that_may_pass_is_tried_again_and_not_counted(fault: Act) -> None:
    comes_through([fault, fault, says(SAID)], 3)


def test_it_is_tried_again_so_often_and_no_more() -> None:
    assert (
        gives_up([error(500, "oops")], 8, "m: the endpoint answered with status 500: oops").usage
        == Usage()
    )


@pytest.mark.parametrize("form", ["1", "1.0", "date"])
def test_retry_after_is_waited_for(form: str) -> None:
    value = (
        format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
        if form == "date"
        else form
    )
    with within(4, least=0.9):
        comes_through([error(429, "slow down", {"Retry-After": value}), says(SAID)], 2)


def test_a_wait_longer_than_the_time_left_is_not_begun() -> None:
    with within(1):
        gives_up([error(429, "slow down", {"Retry-After": "60"})], 1, "429")


def test_an_account_without_money_is_not_asked_again() -> None:
    gives_up(
        [error(429, "You exceeded your current quota, please check your plan and billing details")],
        1,
        "quota",
    )


def test_where_nobody_listens_it_ends_in_time() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        with within(4), pytest.raises(ModelUnavailable, match="no connection"):
            model(url).ask(QUESTION)


def test_all_retries_share_one_deadline() -> None:
    late = after(0.4, error(500, "oops"))
    with within(1.6, least=0.5), FakeEndpoint([late]) as endpoint, pytest.raises(ModelUnavailable):
        model(endpoint.url, timeout_s=1.0).ask(QUESTION)
    assert 2 <= len(endpoint.asked) <= 3


# --- time --------------------------------------------------------------------------------------------------------------------


def test_an_answer_that_is_too_late_is_not_waited_for() -> None:
    gone = gives_up([after(30, says(SAID))], 1, "no answer within 0.6 s", timeout_s=0.6)
    assert (gone.usage.calls, gone.usage.output_tokens, gone.usage.estimated) == (1, 0, True)
    assert gone.usage.input_tokens > 0


def test_an_endpoint_that_says_nothing_is_asked_once_more() -> None:
    gone = gives_up([silent], 2, "nothing arrived for 0.3 s", stall_s=0.3)
    assert gone.usage.calls == 2


def test_a_stream_that_stalls_is_left_and_asked_once_more() -> None:
    with FakeEndpoint([begins('{"name"', silent), says(SAID)]) as endpoint, within(2):
        answer = model(endpoint.url, stall_s=0.4).ask(QUESTION)
    assert (answer.data, answer.mended, len(endpoint.asked)) == (RIGHT, False, 2)
    assert answer.usage.calls == 2
    assert answer.usage.output_tokens == 2 + 20
    assert answer.usage.estimated


def test_signs_of_life_without_a_word_are_a_stall() -> None:
    def comments(asked: Exchanged) -> None:
        for _ in range(100):
            asked.send(b": still here\n\n")
            if asked.ended.wait(0.05):
                return

    gives_up([begins("{", comments)], 2, "nothing arrived for 0.4 s", stall_s=0.4)


def test_a_slow_stream_is_no_stall() -> None:
    def slowly(asked: Exchanged) -> None:
        for part in ('{"na', 'me": "Conv', '2d"}'):
            sleep(0.25)
            asked.send(event({"choices": [{"delta": {"content": part}}]}))
        asked.send(event({"choices": [{"delta": {}, "finish_reason": "stop"}]}))
        asked.ended.wait(5)

    with FakeEndpoint([begins("", slowly)]) as endpoint, within(3):
        answer = model(endpoint.url, stall_s=0.5).ask(QUESTION)
    assert (answer.data, len(endpoint.asked)) == (RIGHT, 1)


@pytest.mark.parametrize(
    "act",
    [
        silent,
        begins("{", silent),
        error(429, "slow down", {"Retry-After": "20"}),
        after(20, says(SAID)),
    ],
    ids=["silent", "mid-stream", "waiting", "late"],
)
def test_cancelling_is_heard_within_a_second(act: Act) -> None:
    cancel = Event()
    with FakeEndpoint([act]) as endpoint:
        Timer(0.4, cancel.set).start()
        with within(1.4, least=0.3), pytest.raises(Stopped):
            model(endpoint.url, timeout_s=30, stall_s=30).ask(QUESTION, cancel=cancel)
        until = monotonic() + 3
        while left := asyncio.all_tasks(event_loop()):
            assert monotonic() < until, f"{left} still waits for an answer nobody wants"
            sleep(0.05)
    assert len(endpoint.asked) == 1


def test_a_question_that_was_cancelled_before_is_not_asked() -> None:
    cancel = Event()
    cancel.set()
    with FakeEndpoint([says(SAID)]) as endpoint, pytest.raises(Stopped):
        model(endpoint.url).ask(QUESTION, cancel=cancel)


# --- answers that broke off, and answers that are none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        begins('{"name": "Con', lambda _: None),
        begins('{"name": "Con', resets),
        begins(
            '{"name": "Con', lambda asked: asked.send(event({"error": {"message": "overloaded"}}))
        ),
        status(
            200, b'{"choices": [{"message": {"content": "{\\"na', {**JSON, "Content-Length": "400"}
        ),
        status(200, b'{"choices": [{"message": {"content": "{\\"na', JSON),
        begins("", lambda asked: asked.send(b"data: garbage\n\n\xff\xfe\n\n")),
        begins("x" * 9_000_000, silent),
    ],
    ids=["ends", "reset", "error", "short-body", "half-json", "garbage", "huge"],
)
def test_an_answer_that_broke_off_is_counted_and_asked_for_once_more(fault: Act) -> None:
    with FakeEndpoint([fault, says(SAID)]) as endpoint, within(3):
        answer = model(endpoint.url).ask(QUESTION)
    assert (answer.data, answer.mended, len(endpoint.asked)) == (RIGHT, False, 2)
    assert (answer.usage.calls, answer.usage.estimated) == (2, True)
    assert answer.usage.input_tokens > 100
    assert gives_up([fault], 2, "answer").usage.calls == 2


def test_the_error_of_a_call_keeps_nothing_of_its_stream() -> None:
    fault = begins("x" * 9_000_000, silent)
    deadline = Deadline(4, Event())
    with FakeEndpoint([fault]) as endpoint, pytest.raises(AnswerLost) as raised:
        Endpoint(endpoint.url, KEY).complete("m", QUESTION, deadline)
    frames = [frame.f_code.co_name for frame, _ in walk_tb(raised.value.__traceback__)]
    assert "_once" in frames
    assert "_read" not in frames
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    "page",
    [
        status(200, HTML, {"Content-Type": "text/html"}),
        status(200, b""),
        status(200, b"[1]", JSON),
        status(200, b'"no"', JSON),
    ],
)
def test_what_is_no_endpoint_is_asked_once(page: Act) -> None:
    assert gives_up([page], 1, "not an OpenAI-compatible endpoint").usage == Usage()


def test_bytes_that_are_no_text_do_not_break_the_answer() -> None:
    body = json.dumps(
        {"choices": [{"message": {"content": '{"name": "?"}'}, "finish_reason": "stop"}]}
    ).encode()
    with FakeEndpoint([status(200, body.replace(b"?", b"\xff\xc3"), JSON)]) as endpoint:
        answer = model(endpoint.url).ask(QUESTION)
    assert answer.data == {"name": "\ufffd\ufffd"}
    answer.model_dump_json()


def test_half_a_character_does_not_break_the_answer() -> None:
    with FakeEndpoint([says('{"name": "\\ud800x"}'), says('{"name": "\ud800x"}')]) as endpoint:
        for _ in range(2):
            answer = model(endpoint.url).ask(QUESTION)
            assert answer.data == {"name": "?x"}
            assert json.loads(answer.model_dump_json())["data"] == answer.data


# --- answers that do not fit -------------------------------------------------------------------------------------------------

MISFITS = {
    "prose": (says("I would rather not."), "holds no JSON object"),
    "empty": (says(""), "is empty"),
    "thoughts only": (says("<think>{} so far", finish="length"), "was cut off"),
    "wrong schema": (says('{"title": "Conv2d"}'), "does not fit the schema"),
    "wrong type": (says('{"name": 3}'), "does not fit the schema"),
    "cut": (says('{"name": "Conv', finish="length"), "was cut off"),
    "malformed": (says('{"name": "Conv2d",,}'), "holds no JSON object"),
    "not a number": (says('{"name": NaN}'), "holds no JSON object"),
    "a list": (says("[1, 2]"), "holds no JSON object"),
    "deep": (says('{"name": ' * 5_000), "holds no JSON object"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_an_answer_that_does_not_fit_is_mended_once_by_showing_the_error(name: str) -> None:
    act, said = MISFITS[name]
    with FakeEndpoint([act, says(SAID)]) as endpoint:
        answer = model(endpoint.url).ask(QUESTION)
    assert (answer.data, answer.mended, answer.usage) == (RIGHT, True, ONE + ONE)
    first, second = (each.body["messages"] for each in endpoint.asked)
    assert [each["role"] for each in second] == ["system", "user", "assistant", "user"]
    assert second[1] == first[1]
    assert second[0]["content"].startswith(first[0]["content"])
    assert f"could not be used: it {said}." in second[3]["content"]
    assert in_words(QUESTION.answer_schema) in second[3]["content"]
    assert gives_up([act], 2, f"its answer could not be used: it {said}").usage == ONE + ONE


def test_the_error_that_is_shown_says_where() -> None:
    with FakeEndpoint([says('{"name": 3}'), says(SAID)]) as endpoint:
        model(endpoint.url).ask(QUESTION)
    assert (
        "at $.name: 3 is not of type 'string'" in endpoint.asked[1].body["messages"][3]["content"]
    )


# --- the cascade -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "calls", "requests"),
    [
        (error(404, "The model `cheap` does not exist"), 1, 2),
        (says("no"), 3, 3),
        (silent, 3, 3),
        (error(402, "pay"), 1, 2),
    ],
    ids=["404", "misfit", "silent", "402"],
)
def test_the_next_model_is_asked_when_one_fails(bad: Act, calls: int, requests: int) -> None:
    with FakeEndpoint(by_model({"cheap": bad, "strong": says(SAID)})) as endpoint, within(3):
        answer = model(endpoint.url, "cheap", "strong", stall_s=0.3).ask(QUESTION)
    assert (answer.model, answer.data, answer.usage.calls) == ("strong", RIGHT, calls)
    assert len(endpoint.asked) == requests


def test_a_model_that_takes_all_its_time_leaves_the_next_one_its_share() -> None:
    with (
        FakeEndpoint(by_model({"slow": after(30, says(SAID)), "quick": says(SAID)})) as endpoint,
        within(2, least=0.9),
    ):
        answer = model(endpoint.url, "slow", "quick", timeout_s=2).ask(QUESTION)
    assert (answer.model, answer.usage.calls) == ("quick", 2)


def test_when_all_fail_each_is_named_with_its_reason() -> None:
    with (
        FakeEndpoint(by_model({"a": error(404, "no such model"), "b": says("no")})) as endpoint,
        pytest.raises(
            ModelUnavailable,
            match=r"a: the endpoint answered with status 404: no such model; b: its answer",
        ) as raised,
    ):
        model(endpoint.url, "a", "b").ask(QUESTION)
    assert raised.value.usage == ONE + ONE


@pytest.mark.parametrize("act", [says("no"), silent, begins("{", silent)])
def test_what_is_used_stays_within_the_bound(act: Act) -> None:
    with FakeEndpoint([act]) as endpoint:
        asking = model(endpoint.url, "a", "b", stall_s=0.3)
        with pytest.raises(ModelUnavailable) as raised:
            asking.ask(QUESTION)
    most, used = asking.bound(QUESTION), raised.value.usage
    assert used.calls == most.calls == len(endpoint.asked) == 4
    assert used.input_tokens <= most.input_tokens
    assert used.output_tokens <= most.output_tokens == 4 * QUESTION.most_tokens
    assert 0 < used.usd <= most.usd


# --- the key -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_names_the_setting_and_never_the_key(code: int) -> None:
    with (
        FakeEndpoint([error(code, f"Incorrect API key provided: {KEY}")]) as endpoint,
        pytest.raises(UserError, match=rf"refuses the key \({code}\)") as raised,
    ):
        model(endpoint.url, "a", "b").ask(QUESTION)
    assert "REPRISE_MODEL_KEY" in raised.value.fix
    assert KEY not in str(raised.value) + raised.value.fix
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(code: int) -> None:
    with FakeEndpoint([says(SAID)]) as elsewhere:
        moved = status(code, b"", {"Location": f"{elsewhere.url}/chat/completions"})
        with (
            FakeEndpoint([moved]) as endpoint,
            pytest.raises(UserError, match="redirects are not followed") as raised,
        ):
            model(endpoint.url).ask(QUESTION)
    assert "REPRISE_MODEL_URL" in raised.value.fix
    assert (len(endpoint.asked), len(elsewhere.asked)) == (1, 0)


def test_a_key_that_is_echoed_is_not_shown() -> None:
    assert "echo" in str(gives_up([error(400, f"echo of {KEY}")], 1, "400"))


def test_the_key_is_sent_and_without_one_nothing_is() -> None:
    with FakeEndpoint([says(SAID)]) as endpoint:
        model(endpoint.url).ask(QUESTION)
        model(endpoint.url, key="").ask(QUESTION)
    assert [each.headers.get("authorization") for each in endpoint.asked] == [f"Bearer {KEY}", None]
    assert {each.path for each in endpoint.asked} == {"/v1/chat/completions"}


def test_variables_of_the_sdk_reach_no_other_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-host")
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer another-key\nX-Own: yes")
    with FakeEndpoint([says(SAID)]) as endpoint:
        model(endpoint.url).ask(QUESTION)
        model(endpoint.url, key="").ask(QUESTION)
    assert [each.headers.get("authorization") for each in endpoint.asked] == [f"Bearer {KEY}", None]
    for each in endpoint.asked:
        assert not {"x-own", "openai-organization", "x-stainless-os"} & each.headers.keys()


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(UserError) as raised:
        model("http://127.0.0.1:9/v1", key=key)
    assert key not in str(raised.value) + raised.value.fix


def test_a_proxy_is_not_told_what_is_meant_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeEndpoint([says(SAID)]) as proxy, FakeEndpoint([says(SAID)]) as endpoint:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        model(endpoint.url).ask(QUESTION)
    assert (len(endpoint.asked), len(proxy.asked)) == (1, 0)


def test_many_questions_at_once_do_not_mix() -> None:
    def echo(body: dict[str, object]) -> Act:
        return says(json.dumps({"name": body["messages"][1]["content"]}))  # type: ignore[index]

    got: dict[int, str] = {}
    with FakeEndpoint(echo) as endpoint:
        asking = model(endpoint.url)

        def ask(number: int) -> None:
            turn = QUESTION.messages[1].model_copy(update={"content": f"q{number}"})
            question = QUESTION.model_copy(update={"messages": (QUESTION.messages[0], turn)})
            got[number] = asking.ask(question).data["name"]

        each = [Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in each:
            thread.start()
        for thread in each:
            thread.join()
    assert got == {number: f"q{number}" for number in range(12)}
