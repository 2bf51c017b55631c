"""The model's settings: which address and key belong together, what is refused, and what must
never be shown.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app
from bot.kernel.dialogue import Message, Question
from bot.kernel.errors import UserError
from bot.kernel.settings import Settings, load
from bot.model.chat import configured
from tests.support.endpoint import says
from tests.support.fakes import FakeEndpoint

NAMES = ("URL", "KEY", "READER", "WRITER", "TIMEOUT_S", "STALL_S", "PRICES", "STRUCTURED")
QUESTION = Question(
    role="reader", prompt="r@v1#0", messages=(Message(role="user", content="?"),), answer_schema={}
)
OWN, SHARED = "own-key-of-the-test", "shared-key-of-the-test"


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        *(f"REPRISE_MODEL_{each}" for each in NAMES),
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        "REPRISE_SECRETS_DIR",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        ({}, ("", "")),
        ({"REPRISE_MODEL_URL": "https://a.example/v1/"}, ("https://a.example/v1", "")),
        (
            {"REPRISE_MODEL_URL": "http://localhost:8000/v1", "REPRISE_MODEL_KEY": OWN},
            ("http://localhost:8000/v1", OWN),
        ),
        (
            {"OPENAI_BASE_URL": "https://b.example/v1", "OPENAI_API_KEY": SHARED},
            ("https://b.example/v1", SHARED),
        ),
        (
            {
                "OPENAI_BASE_URL": "https://b.example/v1",
                "REPRISE_MODEL_KEY": OWN,
                "OPENAI_API_KEY": SHARED,
            },
            ("https://b.example/v1", OWN),
        ),
        ({"OPENAI_API_KEY": SHARED}, ("https://api.openai.com/v1", SHARED)),
        (
            {"REPRISE_MODEL_URL": "https://a.example/v1", "OPENAI_API_KEY": SHARED},
            ("https://a.example/v1", ""),
        ),
        (
            {"REPRISE_MODEL_URL": "https://a.example/v1", "OPENAI_BASE_URL": "https://b.example"},
            ("https://a.example/v1", ""),
        ),
    ],
)
def test_a_key_goes_only_where_it_belongs(
    given: dict[str, str], endpoint: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load()
    assert settings.model_endpoint == endpoint
    assert {value for name, value in given.items() if name.endswith("KEY")} == set(settings.secrets)
    assert OWN not in repr(settings)
    assert SHARED not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "REPRISE_MODEL_URL",
            "http://models.example.com/v1",
            "REPRISE_MODEL_URL is invalid: .*https",
        ),
        (
            "REPRISE_MODEL_URL",
            "https://user:pass@models.example.com/v1",
            "REPRISE_MODEL_URL is invalid",
        ),
        ("REPRISE_MODEL_PRICES", '{"m": [1', "REPRISE_MODEL_PRICES is invalid: .*JSON such as"),
        ("REPRISE_MODEL_PRICES", '{"m": 1}', "REPRISE_MODEL_PRICES is invalid"),
        ("REPRISE_MODEL_PRICES", '{"m": [-1, 2]}', "REPRISE_MODEL_PRICES is invalid: .*USD"),
        ("REPRISE_MODEL_PRICES", '{"m": [NaN, 2]}', "REPRISE_MODEL_PRICES is invalid"),
        ("REPRISE_MODEL_STRUCTURED", "xml", "REPRISE_MODEL_STRUCTURED is invalid"),
        ("REPRISE_MODEL_TIMEOUT_S", "0", "REPRISE_MODEL_TIMEOUT_S is invalid"),
    ],
)
def test_what_is_no_use_is_named(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=said):
        load()


def test_an_address_for_other_programs_matters_only_when_a_model_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://10.0.0.5:8000/v1")
    assert configured(load()) is None
    with pytest.raises(UserError, match="OPENAI_BASE_URL is invalid"):
        configured(load(), "m")


def test_a_model_without_an_endpoint_says_what_to_set() -> None:
    with pytest.raises(UserError, match="no endpoint is set") as raised:
        configured(Settings(), "m")
    assert "REPRISE_MODEL_URL" in raised.value.fix


@pytest.mark.parametrize(
    ("given", "name", "asked"),
    [
        ({"model_reader": "cheap"}, "", ["cheap", "cheap"]),
        ({"model_writer": "strong"}, "", ["strong", "strong"]),
        ({"model_reader": "cheap", "model_writer": "strong"}, "", ["cheap", "strong"]),
        ({"model_reader": "cheap", "model_writer": "strong"}, "other", ["other", "other"]),
        ({"model_writer": " first , second,first"}, "", ["first", "first"]),
    ],
)
def test_each_role_is_asked_of_its_model(
    given: dict[str, str], name: str, asked: list[str]
) -> None:
    with FakeEndpoint([says("{}")]) as endpoint:
        settings = Settings(model_url=endpoint.url, model_prices={"strong": (1.0, 2.0)}, **given)
        model = configured(settings, name)
        assert model is not None
        for role in ("reader", "writer"):
            model.ask(QUESTION.model_copy(update={"role": role}))
    assert [each.body["model"] for each in endpoint.asked] == asked


def test_a_cascade_is_bounded_with_all_its_models() -> None:
    one, two = (
        configured(Settings(model_url="http://localhost:1", model_writer=each))
        for each in ("a", "a, b")
    )
    assert one is not None
    assert two is not None
    assert two.bound(QUESTION) == one.bound(QUESTION) + one.bound(QUESTION)


# --- reprise prompts ---------------------------------------------------------------------------------------------------------


def test_a_run_without_a_model_or_a_repair_does_not_wait_for_their_libraries() -> None:
    code = "import sys, bot.app.bootstrap; print({'openai', 'httpx2', 'libcst'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_command_lists_prompts_and_prints_one() -> None:
    listed = CliRunner().invoke(app.app, ["prompts"])
    assert listed.exit_code == 0
    (line,) = (line for line in listed.stdout.splitlines() if line.startswith("mend@v1#"))
    assert line.endswith("live")
    printed = CliRunner().invoke(app.app, ["prompts", "mend", "--version", "v1"])
    assert printed.stdout.startswith(line.split()[0])
    assert "Your last answer could not be used: {{problem}}" in printed.stdout
    told = json.loads(CliRunner().invoke(app.app, ["prompts", "mend", "--json"]).stdout)
    assert told["schema"]["type"] == "object"
    assert told["id"] in {
        each["id"] for each in json.loads(CliRunner().invoke(app.app, ["prompts", "--json"]).stdout)
    }


@pytest.mark.parametrize("argv", [["nothing"], ["mend", "--version", "v99"], ["../mend"]])
def test_a_prompt_that_is_not_there_is_a_mistake_of_the_user(argv: list[str]) -> None:
    done = CliRunner().invoke(app.app, ["prompts", *argv])
    assert done.exit_code == 2
    assert "There is no prompt" in done.stderr
