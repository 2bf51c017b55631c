"""The object in a model's words: wherever it stands, and nothing that is none."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bot.model.endpoint import closed
from bot.model.json_answer import Misfit, fit

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"s": {"type": "string"}},
    "required": ["s"],
}
SCRIPT = 'x = {"a": 1}\nprint(f"{x}")\n```\n</think>\n'


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "  {}\n\n",
        "```json\n{}\n```",
        "```\n{}\n```\nThat is it.",
        "Here you are:\n\n{}",
        "Here you are: {} I hope it helps {{smile}}.",
        'I first thought of {{"t": 1}}, but no:\n{}',
        "The set {{1, 2}} is not it.\n```json\n{}\n```",
        '<think>{{"s": "not this"}}</think>{}',
        'Hm, {{"s": "not this"}}.</think>\n\n```json\n{}\n```',
        "[{}]",
        "{}{{",
        '{} {{"s": "a second one"}}',
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_an_object_is_found_wherever_it_stands(around: str, indent: int | None) -> None:
    wanted = {"s": SCRIPT}
    assert (
        fit(
            around.replace("{}", json.dumps(wanted, indent=indent))
            .replace("{{", "{")
            .replace("}}", "}"),
            SCHEMA,
        )
        == wanted
    )


def test_line_ends_inside_strings_are_taken_as_they_are() -> None:
    assert fit('{"s": "a\n\tb"}', SCHEMA) == {"s": "a\n\tb"}


def test_the_first_object_that_fits_is_taken() -> None:
    assert fit('{"t": 1} {"s": "right"} {"s": "later"}', SCHEMA) == {"s": "right"}
    assert fit('{"t": {"s": "inside"}}', SCHEMA) == Misfit(
        "it does not fit the schema", "at $: 's' is a required property"
    )


@pytest.mark.parametrize(
    ("text", "sentence", "error"),
    [
        ("", "it is empty", ""),
        ("<think>{}</think>", "it is empty", ""),
        ("<think>it never ends {", "it is empty", ""),
        ("No.", "it holds no JSON object", "Expecting value at line 1, column 1"),
        (
            'x\n{"s": "a",}',
            "it holds no JSON object",
            "Illegal trailing comma before end of object at line 2, column 10",
        ),
        ('{"s": 1}', "it does not fit the schema", "at $.s: 1 is not of type 'string'"),
        ('{"s": Infinity}', "it holds no JSON object", "Infinity is not JSON"),
        ('{"s": ' + "1" * 5_000 + "}", "it holds no JSON object", None),
    ],
)
def test_why_there_is_none(text: str, sentence: str, error: str | None) -> None:
    found = fit(text, SCHEMA)
    assert isinstance(found, Misfit)
    assert found.sentence == sentence
    if error is not None and "comma" not in error:  # newer versions of Python word that one
        assert found.error == error


def test_a_cut_answer_that_is_whole_is_one_and_another_is_not() -> None:
    assert fit('{"s": "a"} and', SCHEMA, cut_at=9) == {"s": "a"}
    assert fit('{"s": "a', SCHEMA, cut_at=9) == Misfit(
        "it was cut off", "It did not end within 9 tokens. Be shorter."
    )


@given(
    st.text(),
    st.dictionaries(st.text(), st.text() | st.integers() | st.none()),
    st.text(alphabet="`}\n a]"),
)
def test_any_object_that_begins_the_answer_is_found(
    script: str, more: dict[str, Any], behind: str
) -> None:
    wanted = {**more, "s": script}
    assert fit(json.dumps(wanted) + behind, SCHEMA) == wanted


@given(st.text(alphabet='{}[]":,`\n \\ntrue0<think>/'))
def test_nothing_breaks_it(text: str) -> None:
    assert isinstance(fit(text, {"type": "object"}), dict | Misfit)


@pytest.mark.parametrize("piece", ["{", '{"a":', '{"a', "[", "```json\n{", "<think>", '{"s": "'])
def test_hostile_text_costs_little(piece: str) -> None:
    started = process_time()
    assert isinstance(fit(piece * (1_000_000 // len(piece)), SCHEMA), Misfit)
    assert process_time() - started < 5


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (SCHEMA, False),
        ({**SCHEMA, "additionalProperties": False}, True),
        ({**SCHEMA, "additionalProperties": False, "required": []}, False),
        ({"type": "array", "items": SCHEMA}, False),
        ({"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": False}]}, True),
        ({"type": "object"}, False),
    ],
)
def test_which_schemas_may_be_held_to_strictly(schema: dict[str, Any], strict: bool) -> None:
    assert closed(schema) is strict
