"""GitHub's own OpenAPI description as a judge of requests and answers: what it does not allow is
a violation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import jsonschema

from tests.support.server.records import Json
from tests.support.server.routing import template_pattern

_DATA = {"enum", "example", "examples", "default"}
_GENERAL = {400, 401, 403, 404, 422, 429, 500, 502, 503}


def _date_time(value: object) -> bool:
    return not isinstance(value, str) or bool(datetime.fromisoformat(value).tzinfo)


def _uri(value: object) -> bool:
    return not isinstance(value, str) or bool(urlsplit(value).scheme)


_FORMATS = jsonschema.FormatChecker(formats=())
_FORMATS.checks("date-time", raises=ValueError)(_date_time)
_FORMATS.checks("uri", raises=ValueError)(_uri)


def translated(schema: Any) -> Any:
    """An OpenAPI 3.0 schema as JSON Schema draft 4, from which it differs in `nullable`, and in
    what stands beside a $ref.
    """
    if isinstance(schema, list):
        return [translated(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    kept = {key: value if key in _DATA else _members(key, value) for key, value in schema.items()}
    if kept.get("nullable") is not True:
        return kept
    del kept["nullable"]
    return {"anyOf": [{"enum": [None]}, kept]}


def _members(key: str, value: Any) -> Any:
    """The value of a keyword; `properties` holds schemas under names that may look like
    keywords, such as "default".
    """
    return (
        {name: translated(each) for name, each in value.items()}
        if key == "properties"
        else translated(value)
    )


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    template: str
    body: Json

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches a quoted path."""
        return template_pattern(self.template)


class OpenApi:
    """A description, read from `api.github.com.json` of the npm package @octokit/openapi on
    first use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._validators: dict[str, Any] = {}

    @cached_property
    def _document(self) -> Json:
        return _load(self._path)

    @cached_property
    def _operations(self) -> dict[str, list[Operation]]:
        found: dict[str, list[Operation]] = {}
        for template, methods in self._document["paths"].items():
            for method, body in methods.items():
                if isinstance(body, dict) and "operationId" in body:
                    found.setdefault(method.upper(), []).append(Operation(template, body))
        for each in found.values():  # a path without parameters wins over one with
            each.sort(key=lambda one: (one.template.count("{"), -len(one.template)))
        return found

    def operation(self, method: str, raw_path: str) -> Operation | None:
        """The operation of a quoted path."""
        return next(
            (one for one in self._operations.get(method, ()) if one.pattern.fullmatch(raw_path)),
            None,
        )

    def request(
        self, method: str, raw_path: str, query: Mapping[str, str], raw: bytes
    ) -> Iterator[str]:
        """What is wrong with a request."""
        one = self.operation(method, raw_path)
        if one is None:
            yield f"{method} {raw_path}: GitHub has no such operation"
            return
        match = one.pattern.fullmatch(raw_path)
        values = {
            "path": {name: unquote(value) for name, value in match.groupdict().items()}
            if match
            else {},
            "query": query,
        }
        known = [self._resolved(each) for each in one.body.get("parameters", ())]
        for parameter in known:
            where, name = parameter["in"], parameter["name"]
            if where in values and name.replace("-", "_") in values[where]:
                value = _typed(
                    values[where][name.replace("-", "_")], self._resolved(parameter["schema"])
                )
                yield from self._wrong(parameter["schema"], value, f"{where} parameter {name}")
            elif where in values and parameter.get("required"):
                yield f"{where} parameter {name} is missing"
        for name in query.keys() - {each["name"] for each in known if each["in"] == "query"}:
            yield f"query parameter {name} is unknown"
        yield from self._request_body(one, raw)

    def _request_body(self, one: Operation, raw: bytes) -> Iterator[str]:
        expected = self._resolved(one.body.get("requestBody") or {})
        media = expected.get("content", {}).get("application/json")
        if not raw:
            if expected.get("required"):
                yield "the body is missing"
            return
        if media is None:
            yield "no body is expected"
            return
        try:
            body = json.loads(raw)
        except ValueError:
            yield "the body is no JSON"
            return
        yield from self._wrong(media["schema"], body, "body")
        schema = self._resolved(media["schema"])
        if (
            isinstance(body, dict)
            and "properties" in schema
            and "anyOf" not in schema
            and "oneOf" not in schema
        ):
            for name in body.keys() - schema["properties"].keys():
                yield f"body: {name} is unknown"

    def response(
        self, method: str, raw_path: str, status: int, media: str, body: Any
    ) -> Iterator[str]:
        """What is wrong with an answer."""
        one = self.operation(method, raw_path)
        if one is None:
            return
        found = one.body["responses"].get(str(status))
        if found is None:
            if status not in _GENERAL:
                yield f"answer: {status} is not described"
            elif status not in {500, 502, 503}:
                yield from self._wrong(
                    {"$ref": "#/components/schemas/basic-error"}, body, f"answer {status}"
                )
            return
        content = self._resolved(found).get("content", {})
        name = (
            media.partition(";")[0].replace("+json", "")
            if ".object" in media
            else media.partition(";")[0]
        )
        if name in content and "schema" in content[name]:
            yield from self._wrong(content[name]["schema"], body, f"answer {status}")

    def webhook(self, event: str, payload: Json) -> list[str]:
        """What is wrong with the payload of an event."""
        action = payload.get("action")
        name = (event if action is None else f"{event}-{action}").replace("_", "-")
        found = self._document["x-webhooks"].get(name)
        if found is None:
            return [f"GitHub has no event {name}"]
        return list(
            self._wrong(
                found["post"]["requestBody"]["content"]["application/json"]["schema"], payload, name
            )
        )

    def _resolved(self, thing: Json) -> Json:
        while "$ref" in thing:
            target: Any = self._document
            for part in thing["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            thing = target
        return thing

    def _wrong(self, schema: Json, value: Any, where: str) -> Iterator[str]:
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            self._validators[key] = self._validator(schema)
        for error in self._validators[key].iter_errors(value):
            deepest = jsonschema.exceptions.best_match([error])
            yield f"{where} {deepest.json_path}: {deepest.message[:300]}"

    def _validator(self, schema: Json) -> Any:
        """A validator that holds only the components that this schema reaches."""
        components: dict[str, Any] = {}
        waiting = [schema]
        while waiting:
            for name in _references(waiting.pop()):
                if name not in components:
                    components[name] = self._document["components"]["schemas"][name]
                    waiting.append(components[name])
        root = {
            **translated(schema),
            "components": {"schemas": {name: translated(one) for name, one in components.items()}},
        }
        if "$ref" in schema:  # what stands beside a reference is not looked at
            root = {"allOf": [translated(schema)], "components": root["components"]}
        return jsonschema.Draft4Validator(root, format_checker=_FORMATS)


@cache
def _load(path: Path) -> Json:
    document: Json = json.loads(path.read_bytes())
    return document


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _references(each)
    elif isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for key, each in schema.items():
            if key not in {"example", "examples"}:
                yield from _references(each)


def _typed(value: str, schema: Json) -> Any:
    """A parameter, which is always text on the wire, as what it stands for."""
    kind = schema.get("type")
    if kind == "integer" and re.fullmatch(r"-?\d+", value):
        return int(value)
    return {"true": True, "false": False}.get(value, value) if kind == "boolean" else value
