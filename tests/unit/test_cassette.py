"""Recorded exchanges: every one is kept as it happens, and a replay asks for the same or says
what is different.
"""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from bot.kernel.dialogue import Exchange, Message, Question, Usage
from bot.kernel.errors import ModelUnavailable, Stopped, UserError
from bot.kernel.files import read_exchanges
from bot.model.cassette import Cassette, Recording
from tests.support.engine import ExchangeFile
from tests.support.fakes import ScriptedModel


def question(text: str, prompt: str = "read@v1#0123456789ab") -> Question:
    return Question(
        role="reader",
        prompt=prompt,
        messages=(Message(role="user", content=text),),
        answer_schema={},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "exchanges.jsonl"


def test_every_exchange_is_a_line_before_its_answer_is_handed_on(path: Path) -> None:
    lost = ModelUnavailable("no words", usage=Usage(calls=2, input_tokens=9))
    model = Recording(ScriptedModel([{"a": 1}, lost, Stopped("no")]), ExchangeFile(path))
    model.ask(question("x"))
    assert len(read_exchanges(path, Exchange)) == 1
    with pytest.raises(ModelUnavailable):
        model.ask(question("y"))
    with pytest.raises(Stopped):
        model.ask(question("z"))
    first, second = read_exchanges(path, Exchange)
    assert (first.number, first.question, first.answer and first.answer.data, first.error) == (
        1,
        question("x"),
        {"a": 1},
        "",
    )
    assert (second.number, second.answer, second.error, second.used.calls) == (
        2,
        None,
        "no words",
        2,
    )
    with pytest.raises(ModelUnavailable, match="no words") as raised:
        Cassette(path).ask(question("y"))
    assert raised.value.usage == lost.usage


def test_a_killed_recording_is_gone_on_with(path: Path) -> None:
    Recording(ScriptedModel([{"a": 1}, {"a": 2}]), ExchangeFile(path)).ask(question("x"))
    with path.open("ab") as file:
        file.write(b'{"number": 2, "quest')
    assert [each.number for each in read_exchanges(path, Exchange)] == [1]
    Recording(ScriptedModel([{"a": 2}]), ExchangeFile(path)).ask(question("y"))
    assert [each.number for each in read_exchanges(path, Exchange)] == [1, 2]
    assert [Cassette(path).ask(question(text)).data for text in "xy"] == [{"a": 1}, {"a": 2}]


def test_what_a_killed_process_was_told_is_not_asked_again(path: Path) -> None:
    lost = ModelUnavailable("no words", usage=Usage(calls=1))
    first = Recording(ScriptedModel([{"a": 1}, {"a": 2}, lost], usd=0.5), ExchangeFile(path))
    told = [first.ask(question("x")), first.ask(question("x"))]
    with pytest.raises(ModelUnavailable):
        first.ask(question("y"))
    model = ScriptedModel([{"a": 3}, {"a": 4}], usd=0.1)
    again = Recording(model, ExchangeFile(path))
    assert again.bound(question("x")).usd == 0.5
    assert [again.ask(question("x")) for _ in range(2)] == told, (
        "with what they cost, for the same job's purse"
    )
    assert model.asked == []
    assert again.ask(question("x")).data == {"a": 3}, "each answer counts once"
    assert again.ask(question("y")).data == {"a": 4}, "an error is no answer"
    assert [each.number for each in read_exchanges(path, Exchange)] == [1, 2, 3, 4, 5]


def test_exchanges_of_several_threads_stay_whole(path: Path) -> None:
    model = Recording(
        ScriptedModel(lambda asked: {"said": asked.messages[0].content}), ExchangeFile(path)
    )
    threads = [
        Thread(target=model.ask, args=(question(f"{number}" * 3_000),)) for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.number for each in read_exchanges(path, Exchange)] == list(range(1, 9))
    cassette = Cassette(path)
    assert all(
        cassette.ask(question(f"{number}" * 3_000)).data == {"said": f"{number}" * 3_000}
        for number in range(8)
    )
    assert cassette.unused() == ()


def test_what_nobody_asked_for_is_listed(path: Path) -> None:
    model = Recording(ScriptedModel([{"a": 1}, {"a": 2}, {"a": 3}]), ExchangeFile(path))
    for text in "xyx":
        model.ask(question(text))
    cassette = Cassette(path)
    cassette.ask(question("x"))
    assert [(each.number, each.question) for each in cassette.unused()] == [
        (2, question("y")),
        (3, question("x")),
    ]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (
            question("x", "read@v2#ba9876543210"),
            r"the prompt changed: recorded with read@v1#\w+, asked with read@v2#\w+",
        ),
        (question("other"), "the run diverged from the recorded one at read@v1#"),
        (question("x"), "asks it more often than was recorded"),
        (question("x", "plan@v1#0123456789ab"), "the run diverged"),
    ],
)
def test_what_was_not_recorded_names_the_stage_and_the_reason(
    path: Path, asked: Question, why: str
) -> None:
    Recording(ScriptedModel([{"a": 1}]), ExchangeFile(path)).ask(question("x"))
    cassette = Cassette(path)
    cassette.ask(question("x"))
    stage = asked.prompt.partition("@")[0]
    with pytest.raises(ModelUnavailable, match=rf"no recorded answer at stage {stage}: .*{why}"):
        cassette.ask(asked)


def test_the_bound_of_a_cassette_is_what_was_used(path: Path) -> None:
    used = (
        Recording(ScriptedModel([{"a": 1}], usd=0.5), ExchangeFile(path)).ask(question("x")).usage
    )
    cassette = Cassette(path)
    assert cassette.bound(question("x")) == used
    assert cassette.bound(question("y")).output_tokens == question("y").most_tokens


@pytest.mark.parametrize(
    "line", [b"nonsense\n", b"{}\n", b"\xff\n", json.dumps({"number": 1}).encode() + b"\n"]
)
def test_a_file_that_holds_something_else_is_refused(path: Path, line: bytes) -> None:
    Recording(ScriptedModel([{"a": 1}]), ExchangeFile(path)).ask(question("x"))
    with path.open("ab") as file:
        file.write(line)
    with pytest.raises(UserError, match="Line 2 of"):
        Cassette(path)


def test_a_file_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        Cassette(path)


def test_a_scripted_answer_that_does_not_fit_is_a_mistake_of_the_test() -> None:
    schema: dict[str, Any] = {"type": "object", "required": ["n"]}
    asked = question("x").model_copy(update={"answer_schema": schema})
    with pytest.raises(ValueError, match="'n' is a required property"):
        ScriptedModel([{}]).ask(asked)
    model = ScriptedModel(({"n": 1},))
    assert model.ask(asked).data == {"n": 1}
    with pytest.raises(ModelUnavailable, match="only 1 answers were scripted"):
        model.ask(asked)
    assert model.asked == [asked, asked]


@pytest.mark.parametrize(
    ("recorded_as", "asked_as"),
    [
        ("12 calls, 19 minutes", "12 calls, 3 minutes"),
        ("(exit code 1, 0.5 s) did not count", "(exit code 1, 12.4 s) did not count"),
        ("<acme.Layer object at 0x7f3a12bc9d10>", "<acme.Layer object at 0x55d0aabbccdd>"),
        ('File "/tmp/r-1x/work/repro.py", line 3', 'File "/work/repro.py", line 3'),
        (
            "Installed: Python 3.11.7, acme 1.2.0, setuptools 80.10.2",
            "Installed: Python 3.11.14, acme 1.2.0, setuptools 75.0",
        ),
        (
            "/var/cache/reprise/e1/lib/python3.11/site-packages/acme/nn.py",
            "/c/lib/python3.11/site-packages/acme/nn.py",
        ),
    ],
)
def test_what_chance_decides_does_not_tell_questions_apart(
    path: Path, recorded_as: str, asked_as: str
) -> None:
    Recording(ScriptedModel([{"a": 1}]), ExchangeFile(path)).ask(question(recorded_as))
    cassette = Cassette(path)
    assert cassette.ask(question(asked_as)).data == {"a": 1}
    assert (cassette.missed(), cassette.unused()) == ((), ())


@pytest.mark.parametrize(
    ("recorded_as", "asked_as"),
    [
        ("12 calls, 19 minutes", "11 calls, 19 minutes"),
        ("acme/nn.py, line 3", "acme/nn.py, line 4"),
        ("exit code 1", "exit code 2"),
        ("Python 3.11.7, acme 1.2.0", "Python 3.12.7, acme 1.2.0"),
        ("Python 3.11.7, acme 1.2.0", "Python 3.11.7, acme 1.2.1"),
        ("site-packages/acme/nn.py", "site-packages/other/nn.py"),
    ],
)
def test_what_a_run_did_does(path: Path, recorded_as: str, asked_as: str) -> None:
    Recording(ScriptedModel([{"a": 1}]), ExchangeFile(path)).ask(question(recorded_as))
    cassette = Cassette(path)
    with pytest.raises(ModelUnavailable, match="diverged from the recorded one"):
        cassette.ask(question(asked_as))
    assert cassette.missed() == (question(asked_as).prompt,)
