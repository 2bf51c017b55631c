"""A schema in words, for endpoints that take none."""

from __future__ import annotations

import json
import re

import pytest

import prompts
from bot.model.json_answer import in_words

NAME = {"type": "string", "maxLength": 9}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (NAME, "string (maxLength 9)"),
        ({"type": ["number", "null"]}, "number | null"),
        ({"enum": ["a", 1]}, '"a" | 1'),
        ({"type": "array", "maxItems": 2, "items": {"const": "a"}}, '["a", ...] (maxItems 2)'),
        (
            {
                "type": "object",
                "$defs": {"x": NAME},
                "additionalProperties": False,
                "required": ["a", "b"],
                "properties": {
                    "a": {"$ref": "#/$defs/x"},
                    "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/x"}]},
                },
            },
            '{"a": string (maxLength 9), "b": null | string (maxLength 9)}',
        ),
    ],
)
def test_a_schema_is_an_outline_of_the_answer(schema: dict[str, object], words: str) -> None:
    assert in_words(schema) == words


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": NAME}, "required": ["a"]},  # other keys may follow
        {"type": "object", "properties": {"a": NAME}, "additionalProperties": False},  # optional
        {"type": "integer", "multipleOf": 2},
    ],
)
def test_what_an_outline_cannot_say_stays_a_schema(schema: dict[str, object]) -> None:
    assert in_words(schema) == json.dumps(schema)


def test_the_schemas_of_the_prompts_are_half_as_long_in_words() -> None:
    for entry in prompts.list_entries():
        schema = prompts.load(entry.stage).schema
        if schema.get("properties"):
            names = sum(map(len, re.findall(r'"enum": \[([^\]]*)\]', json.dumps(schema))))
            words, full = len(in_words(schema)) - names, len(json.dumps(schema)) - names
            assert words < 0.6 * full, entry.id
