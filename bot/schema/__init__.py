"""The JSON Schema of report.json: shipped as a file, generated from the types that write the
report.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from bot.render.report_json import DIALECT, SCHEMA_ID, Published

_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}


def text() -> str:
    """The published schema, as shipped."""
    return files(__name__).joinpath("report.schema.json").read_text(encoding="utf-8")


def generate() -> str:
    """The schema that the types imply; a test holds the shipped file to it."""
    schema = Published.model_json_schema(mode="serialization", by_alias=True)
    head = {"$schema": DIALECT, "$id": SCHEMA_ID, "title": "Reprise report, schema 1"}
    return (
        json.dumps(
            head | {key: value for key, value in _opened(schema).items() if key != "title"},
            indent=2,
        )
        + "\n"
    )


def _opened(node: Any) -> Any:
    """Objects stay open, because fields may be added within a version; a number may be NaN or
    infinite, written as a string.
    """
    if isinstance(node, list):
        return [_opened(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "number":
        return {key: value for key, value in node.items() if key not in ("type", "title")} | _NUMBER
    return {
        key: _opened(value)
        for key, value in node.items()
        if not (key == "additionalProperties" and value is False)
        and not (key == "title" and isinstance(value, str))
    }
