"""The text of a configuration file → the keys it sets, checked; or every problem with its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from bot.models.config import Config
from bot.models.loaded import Problem
from bot.rules.configuration.tree import InvalidYaml, YamlNode, read

EXTENDS = "_extends"
_MOST_PROBLEMS = 20

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parsed:
    """One file. `values` are the keys it sets, {} when there is any problem: an invalid file is
    not applied at all. `extends` is what it builds on, as written, and `extends_line` where.
    `off` is whether it says `enabled: false`, which is honoured even in a file that is otherwise
    invalid: nobody should be spoken to because of a typing error further down.
    """

    values: Values = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    extends: str = ""
    extends_line: int = 0
    off: bool = False


def parse(text: str, file: str, *, quote: bool = True) -> Parsed:
    """Read a file. Never raises. `quote` False keeps words of the file out of the problems: it
    may be a private one.
    """
    try:
        root = read(text)
    except InvalidYaml as error:
        return Parsed(problems=(Problem(file=file, line=error.line, reason=f"{error}."),))
    if root is None:
        return Parsed()
    if root.kind != "mapping":
        reason = "must contain keys with values, such as `enabled: true`."
        return Parsed(problems=(Problem(file=file, line=root.line, reason=reason),))
    reading = _Reading(file, quote)
    values = reading.mapping(root, Config, ())
    extends, line = reading.extends(root)
    reading.check(values)
    off = _is_off(values.get("enabled"))
    problems = tuple(sorted(reading.problems, key=lambda problem: problem.line)[:_MOST_PROBLEMS])
    return (
        Parsed(problems=problems, off=off) if problems else Parsed(values, (), extends, line, off)
    )


def _is_off(value: object) -> bool:
    try:
        return not Config.model_validate({"enabled": value}).enabled
    except ValidationError:
        return False


class _Reading:
    """One pass over one file; collects problems instead of stopping at the first."""

    def __init__(self, file: str, quote: bool) -> None:
        self.file, self.quote = file, quote
        self.problems: list[Problem] = []
        self.lines: dict[tuple[str | int, ...], int] = {}

    def problem(self, line: int, key: str, reason: str) -> None:
        self.problems.append(Problem(file=self.file, line=line, key=key, reason=reason))

    def mapping(
        self, node: YamlNode, model: type[BaseModel], path: tuple[str | int, ...]
    ) -> Values:
        """The known keys of a mapping; a key without a value is not said."""
        values: Values = {}
        seen: dict[str, int] = {}
        for key, value in node.pairs:
            name = key.value if isinstance(key.value, str) else ""
            if not path and name == EXTENDS and name not in seen:
                seen[name] = key.line
                continue
            if name not in model.model_fields or name in seen:
                self._unfit(name, key.line, model, path, seen)
                continue
            seen[name] = key.line
            self.lines[(*path, name)] = value.line if value.kind != "mapping" else key.line
            annotation = model.model_fields[name].annotation
            if value.kind == "scalar" and value.value is None:
                values |= {name: None} if _optional(annotation) else {}
            elif (
                isinstance(annotation, type)
                and issubclass(annotation, BaseModel)
                and value.kind == "mapping"
            ):
                values[name] = self.mapping(value, annotation, (*path, name))
            else:
                values[name] = self._plain(value, (*path, name))
        return values

    def _plain(self, node: YamlNode, path: tuple[str | int, ...]) -> object:
        self.lines[path] = node.line
        if node.kind == "list":
            return [self._plain(item, (*path, index)) for index, item in enumerate(node.items)]
        return {} if node.kind == "mapping" else node.value

    def _unfit(
        self,
        name: str,
        line: int,
        model: type[BaseModel],
        path: tuple[str | int, ...],
        seen: Mapping[str, int],
    ) -> None:
        known = [*model.model_fields, *(() if path else (EXTENDS,))]
        dotted = (
            ".".join(map(str, (*path, name)))
            if self.quote or name in known
            else ".".join(map(str, path))
        )
        if name in seen:
            self.problem(line, dotted, f"is set twice, first on line {seen[name]}.")
            return
        near = get_close_matches(name[:100].lower(), known, n=1, cutoff=0.5) if self.quote else []
        here = f"`{near[0]}`" if near else "one of " + ", ".join(f"`{each}`" for each in known)
        self.problem(
            line,
            dotted,
            f"is unknown. Did you mean {here}?" if near else f"is unknown; use {here}.",
        )

    def extends(self, root: YamlNode) -> tuple[str, int]:
        """What the file builds on, "" when nothing, and the line that says so."""
        for key, value in root.pairs:
            if key.value == EXTENDS:
                if value.kind != "scalar":
                    self.problem(
                        value.line,
                        EXTENDS,
                        "must name a repository, such as `name` or `name:path`.",
                    )
                    return "", value.line
                return (value.value if isinstance(value.value, str) else ""), value.line
        return "", 0

    def check(self, values: Values) -> None:
        """Hold the values to the model."""
        try:
            Config.model_validate(values)
        except ValidationError as error:
            for each in error.errors(include_input=False, include_url=False):
                path = tuple(each["loc"])
                line = next(
                    (
                        self.lines[path[:end]]
                        for end in range(len(path), 0, -1)
                        if path[:end] in self.lines
                    ),
                    0,
                )
                said = each["msg"][:1].lower() + each["msg"][1:]
                self.problem(
                    line, ".".join(map(str, path)), said.replace("input should", "should") + "."
                )


def _optional(annotation: object) -> bool:
    return get_origin(annotation) in (UnionType, Union) and type(None) in get_args(annotation)
