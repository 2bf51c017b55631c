"""The JSON Schemas of report.json and of `.github/reprise.yml`: shipped as files, generated from
the types.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bot.kernel.config import Config
from bot.report import paper_json
from bot.report.paper_json import PublishedPaper
from bot.report.report_json import DIALECT, SCHEMA_ID, Published, PublishedData

# The JSON Schema of report.json: shipped as a file, generated from the types that write the
# report.

_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}


def text() -> str:
    """The published schema, as shipped."""
    return files("bot.report").joinpath("report.schema.json").read_text(encoding="utf-8")


def generate() -> str:
    """The schema that the types imply; a test holds the shipped file to it."""
    return _generated(Published, SCHEMA_ID, "Reprise report, schema 1")


def paper_schema_text() -> str:
    """The published schema of a paper's report, as shipped."""
    return files("bot.report").joinpath("paper.schema.json").read_text(encoding="utf-8")


def generate_paper_schema() -> str:
    """The schema that the types of a paper's report imply."""
    return _generated(PublishedPaper, paper_json.SCHEMA_ID, "Reprise report of a paper, schema 1")


def _generated(published: type[PublishedData], name: str, title: str) -> str:
    schema = json.dumps(published.model_json_schema(mode="serialization", by_alias=True))
    head = {"$schema": DIALECT, "$id": name, "title": title}
    return json.dumps(head | json.loads(schema, object_hook=_open_objects), indent=2) + "\n"


def untitled(node: dict[str, Any]) -> dict[str, Any]:
    """Titles that only repeat the name of a key say nothing to who reads them in an editor."""
    return {
        key: value for key, value in node.items() if not (key == "title" and isinstance(value, str))
    }


def _open_objects(node: dict[str, Any]) -> dict[str, Any]:
    """Objects stay open, because fields may be added within a version; a number may be NaN or
    infinite, written as a string.
    """
    node = untitled(node)
    if node.get("type") == "number":
        return {key: value for key, value in node.items() if key != "type"} | _NUMBER
    if node.get("additionalProperties") is False:
        del node["additionalProperties"]
    return node


CONFIGURATION_SCHEMA_ID = "urn:reprise:configuration:1"
_EXTENDS = (
    "A repository of the same owner whose .github/reprise.yml this file extends: name, owner/name "
    "or owner/name:path. "
    "Mappings are merged; lists are replaced."
)
_HEAD = """\
# Every key of .github/reprise.yml with its default. Set only the keys that you change.
# Reprise reads the file from the default branch. If a repository has no such file, the one in
# the organisation's .github repository applies instead.
# Reprise ignores an invalid file and comments once, with the line and the reason.
# JSON Schema: reprise schema --config
# Written by: python -m bot.report.schema
"""


def configuration_text() -> str:
    """The published schema, as shipped."""
    return files("bot.report").joinpath("config.schema.json").read_text(encoding="utf-8")


def generate_configuration() -> str:
    """The schema that the model implies; a test holds the shipped file to it."""
    schema = json.dumps(Config.model_json_schema())
    extends = {"_extends": {"type": "string", "minLength": 1, "description": _EXTENDS}}
    head = {
        "$schema": DIALECT,
        "$id": CONFIGURATION_SCHEMA_ID,
        "title": "Reprise configuration, .github/reprise.yml",
    }
    body = json.loads(schema, object_hook=untitled)
    body["properties"] = extends | body["properties"]
    return json.dumps(head | body, indent=2) + "\n"


def configuration_example() -> str:
    """A configuration file with every key, its description and its default."""
    return "\n".join([_HEAD, f"# {_EXTENDS}", "# _extends: .github", *_keys(Config())]) + "\n"


def _keys(values: BaseModel, indent: str = "") -> list[str]:
    lines: list[str] = []
    for name, field in type(values).model_fields.items():
        value = getattr(values, name)
        lines += [""] if not indent else []
        lines.append(f"{indent}# {field.description}{_choices(field)}")
        if isinstance(value, BaseModel):
            lines += [f"{indent}{name}:", *_keys(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name}: {json.dumps(value)}")
    return lines


def _choices(field: FieldInfo) -> str:
    """What the value may be, as a sentence; "" when that is no short list and no range."""
    choices = get_args(field.annotation) if get_origin(field.annotation) is not None else ()
    if choices and all(isinstance(choice, str) for choice in choices):
        return f" One of: {', '.join(choices)}."
    low = next((constraint.ge for constraint in field.metadata if hasattr(constraint, "ge")), None)
    high = next((constraint.le for constraint in field.metadata if hasattr(constraint, "le")), None)
    return "" if low is None or high is None else f" {low} to {high}."


def write() -> None:
    """Write the schema files and the example configuration anew: `python -m bot.report.schema`."""
    here = Path(__file__)
    here.with_name("report.schema.json").write_text(generate(), encoding="utf-8")
    here.with_name("paper.schema.json").write_text(generate_paper_schema(), encoding="utf-8")
    here.with_name("config.schema.json").write_text(generate_configuration(), encoding="utf-8")
    example = here.parents[2] / ".github" / "reprise.example.yml"
    if example.parent.is_dir():  # a checkout, not an installed copy
        example.write_text(configuration_example(), encoding="utf-8")


if __name__ == "__main__":
    write()
