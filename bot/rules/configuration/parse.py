"""The text of a configuration file → the keys it sets, checked; or every problem with its line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from bot.models.config import Config, Problem
from bot.rules.configuration.tree import InvalidYaml, line_of, read, word

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
    if not isinstance(root, yaml.MappingNode):
        reason = "must contain keys with values, such as `enabled: true`."
        return Parsed(problems=(Problem(file=file, line=line_of(root), reason=reason),))
    reading = _Reading(file, quote)
    values = reading.mapping(root, Config, ())
    extends, line = reading.extends()
    reading.check(values)
    off = _is_off(values.get("enabled"))
    problems = tuple(sorted(reading.problems, key=lambda problem: problem.line)[:_MOST_PROBLEMS])
    if problems:
        return Parsed(problems=problems, off=off)
    return Parsed(values, (), extends, line, off)


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
        self.base: yaml.Node | None = None

    def problem(self, line: int, key: str, reason: str) -> None:
        self.problems.append(Problem(file=self.file, line=line, key=key, reason=reason))

    def mapping(
        self, node: yaml.MappingNode, model: type[BaseModel], path: tuple[str | int, ...]
    ) -> Values:
        """The known keys of a mapping. A key without a value counts as absent."""
        values: Values = {}
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, field_info = word(key) or "", model.model_fields.get(word(key) or "")
            extends = not path and name == EXTENDS
            if name in seen or not (field_info or extends):
                self._unfit(name, line_of(key), model, path, seen)
                continue
            seen[name] = line_of(key)
            if field_info is None:
                self.base = value
                continue
            annotation, nested = field_info.annotation, isinstance(value, yaml.MappingNode)
            self.lines[(*path, name)] = line_of(key if nested else value)
            if isinstance(value, yaml.ScalarNode) and word(value) is None:
                values |= {name: None} if type(None) in get_args(annotation) else {}
            elif nested and isinstance(annotation, type) and issubclass(annotation, BaseModel):
                values[name] = self.mapping(value, annotation, (*path, name))
            else:
                values[name] = self._plain(value, (*path, name))
        return values

    def _plain(self, node: yaml.Node, path: tuple[str | int, ...]) -> object:
        self.lines[path] = line_of(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(item, (*path, index)) for index, item in enumerate(node.value)]
        return {} if isinstance(node, yaml.MappingNode) else word(node)

    def _unfit(
        self,
        name: str,
        line: int,
        model: type[BaseModel],
        path: tuple[str | int, ...],
        seen: Mapping[str, int],
    ) -> None:
        known = [*model.model_fields, *(() if path else (EXTENDS,))]
        dotted = ".".join(map(str, (*path, name) if self.quote or name in known else path))
        near = get_close_matches(name[:100].lower(), known, n=1, cutoff=0.5) if self.quote else []
        if name in seen:
            reason = f"is set twice, first on line {seen[name]}."
        elif near:
            reason = f"is unknown. Did you mean `{near[0]}`?"
        else:
            reason = f"is unknown; use one of {', '.join(f'`{key}`' for key in known)}."
        self.problem(line, dotted, reason)

    def extends(self) -> tuple[str, int]:
        """What the file builds on, "" when nothing, and the line that says so."""
        if self.base is None:
            return "", 0
        line = line_of(self.base)
        if not isinstance(self.base, yaml.ScalarNode):
            self.problem(line, EXTENDS, "must name a repository, such as `name` or `name:path`.")
        return word(self.base) or "", line

    def check(self, values: Values) -> None:
        """Check the values against the model."""
        try:
            Config.model_validate(values)
        except ValidationError as error:
            for row in error.errors(include_input=False, include_url=False):
                path = tuple(row["loc"])
                places = (path[:end] for end in range(len(path), 0, -1))
                line = next((self.lines[place] for place in places if place in self.lines), 0)
                reason = row["msg"][:1].lower() + row["msg"][1:] + "."
                self.problem(
                    line, ".".join(map(str, path)), reason.replace("input should", "should")
                )
