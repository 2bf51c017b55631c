"""The JSON Schema of report.json: shipped as a file, generated from the types that write the
report.
"""

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
    schema = json.dumps(Published.model_json_schema(mode="serialization", by_alias=True))
    head = {"$schema": DIALECT, "$id": SCHEMA_ID, "title": "Reprise report, schema 1"}
    return json.dumps(head | json.loads(schema, object_hook=_opened), indent=2) + "\n"


def untitled(node: dict[str, Any]) -> dict[str, Any]:
    """Titles that only repeat the name of a key say nothing to who reads them in an editor."""
    return {
        key: value for key, value in node.items() if not (key == "title" and isinstance(value, str))
    }


def _opened(node: dict[str, Any]) -> dict[str, Any]:
    """Objects stay open, because fields may be added within a version; a number may be NaN or
    infinite, written as a string.
    """
    node = untitled(node)
    if node.get("type") == "number":
        return {key: value for key, value in node.items() if key != "type"} | _NUMBER
    if node.get("additionalProperties") is False:
        del node["additionalProperties"]
    return node
