"""What the command line says where nothing runs: of a wrong option, and of the rules."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from bot.cli.app import app
from bot.training.diagnosis.rules import RULES


@pytest.mark.parametrize(
    "words",
    [
        ["reproduce", "x", "--sandbox", "podman"],
        ["reproduce", "x", "--device", "tpu"],
        ["action", "run", "--publish", "loudly"],
    ],
)
def test_a_wrong_choice_is_said_without_the_words_of_a_library(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert f"Error: Invalid value for '{words[-2]}': '{words[-1]}' is not one of" in done.stderr
    assert "Value error" not in done.stderr


def test_rules_name_a_source_of_many_once() -> None:
    text = CliRunner().invoke(app, ["rules"]).stdout
    assert all(f"{rule.id}" in text and rule.sentence in text for rule in RULES)
    assert all(rule.sources in text for rule in RULES)
    assert text.count("public questions; TrainCheck") == 1
    assert len(json.loads(CliRunner().invoke(app, ["rules", "--json"]).stdout)) == len(RULES)
