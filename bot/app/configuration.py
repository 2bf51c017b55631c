"""`.github/reprise.yml`: fetched, parsed, checked, and laid over what it builds on."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from bot.app.ports import GitHub, GoneError, Target
from bot.kernel.config import Config, LoadedConfig, Origin, Problem
from bot.kernel.yaml_nodes import MOST_CHARACTERS, InvalidYaml, line_of, parse_yaml, word

# Configuration files merged: mappings key by key, lists and plain values as a whole.

PATH = ".github/reprise.yml"
_BASE = re.compile(r"(?:([\w.-]{1,100})/)?([\w.-]{1,100})(?::([\w./ -]{1,200}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file in a repository ("owner/name")."""

    repository: str
    path: str = PATH

    def __str__(self) -> str:
        return f"{self.repository}:{self.path}"

    @property
    def same(self) -> tuple[str, str]:
        """What two names of the same file have in common: GitHub's names know no upper and lower
        case.
        """
        return self.repository.lower(), self.path


def base(address: str, owner: str) -> ConfigFile | str:
    """Where `_extends` points, or why it may not: "name", "owner/name" or either with ":path",
    of the same owner.
    """
    match = _BASE.fullmatch(address.strip())
    if match is None or match.group(2) in {".", ".."}:
        return "must name a repository, as `name`, `owner/name` or `owner/name:path`."
    if match.group(1) and match.group(1).lower() != owner.lower():
        return (
            "names a repository of another owner; only repositories of the same owner are allowed."
        )
    path = match.group(3) or PATH
    if path.startswith("/") or ".." in path.split("/") or not path.endswith((".yml", ".yaml")):
        return "names a path that is not a YAML file inside the repository."
    return ConfigFile(f"{owner}/{match.group(2)}", path)


def merge_layers(
    files: Iterable[tuple[Origin, Mapping[str, Any]]],
) -> tuple[Config, dict[str, Origin]]:
    """The configuration of files that were each found valid, the strongest first, and where each
    of its values came from.
    """
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for origin, keys in reversed(list(files)):
        values = _merge(values, keys)
        origins |= dict.fromkeys(_leaves(keys), origin)
    return Config.model_validate(values), origins


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    nested = {
        key: _merge(below[key], value)
        for key, value in above.items()
        if isinstance(value, Mapping) and isinstance(below.get(key), Mapping)
    }
    return {**below, **above, **nested}


def _leaves(values: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


# The text of a configuration file → the keys it sets, checked; or every problem with its line.

EXTENDS = "_extends"
_MOST_PROBLEMS = 20

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedConfig:
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


def parse(text: str, file: str, *, quote: bool = True) -> ParsedConfig:
    """Read a file. Never raises. `quote` False keeps words of the file out of the problems: it
    may be a private one.
    """
    try:
        root = parse_yaml(text)
    except InvalidYaml as error:
        return ParsedConfig(problems=(Problem(file=file, line=error.line, reason=f"{error}."),))
    if root is None:
        return ParsedConfig()
    if not isinstance(root, yaml.MappingNode):
        reason = "must contain keys with values, such as `enabled: true`."
        return ParsedConfig(problems=(Problem(file=file, line=line_of(root), reason=reason),))
    reading = _Reading(file, quote)
    values = reading.mapping(root, Config, ())
    extends, line = reading.extends()
    reading.check(values)
    off = _is_off(values.get("enabled"))
    problems = tuple(sorted(reading.problems, key=lambda problem: problem.line)[:_MOST_PROBLEMS])
    if problems:
        return ParsedConfig(problems=problems, off=off)
    return ParsedConfig(values, (), extends, line, off)


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
        lines_by_name: dict[str, int] = {}
        for key, value in node.value:
            name, field_info = word(key) or "", model.model_fields.get(word(key) or "")
            extends = not path and name == EXTENDS
            if name in lines_by_name or not (field_info or extends):
                self._unfit(name, line_of(key), model, path, lines_by_name)
                continue
            lines_by_name[name] = line_of(key)
            if field_info is None:
                self.base = value
                continue
            annotation, nested = field_info.annotation, isinstance(value, yaml.MappingNode)
            self.lines[(*path, name)] = line_of(key if nested else value)
            if isinstance(value, yaml.ScalarNode) and word(value) is None:
                values |= {name: None} if type(None) in get_args(annotation) else {}
            elif nested and isinstance(annotation, type) and issubclass(annotation, BaseModel):
                values[name] = self.mapping(value, annotation, (*path, name))
            elif nested and get_origin(annotation) is dict:
                values[name] = self._entries(value, (*path, name))
            else:
                values[name] = self._plain(value, (*path, name))
        return values

    def _entries(self, node: yaml.MappingNode, path: tuple[str | int, ...]) -> Values:
        """A mapping whose keys the file chooses."""
        values: Values = {}
        for key, value in node.value:
            name = word(key) or ""
            if name in values:
                reason = f"has a key twice, first on line {self.lines[(*path, name)]}."
                self.problem(line_of(key), ".".join(map(str, path)), reason)
                continue
            values[name] = self._plain(value, (*path, name))
            self.lines[(*path, name)] = line_of(key)
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
        lines_by_name: Mapping[str, int],
    ) -> None:
        names = [*model.model_fields, *(() if path else (EXTENDS,))]
        dotted = ".".join(map(str, (*path, name) if self.quote or name in names else path))
        near = get_close_matches(name[:100].lower(), names, n=1, cutoff=0.5) if self.quote else []
        if name in lines_by_name:
            reason = f"is set twice, first on line {lines_by_name[name]}."
        elif near:
            reason = f"is unknown. Did you mean `{near[0]}`?"
        else:
            reason = f"is unknown; use one of {', '.join(f'`{key}`' for key in names)}."
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
                text = row["msg"].removeprefix("Value error, ")
                reason = text[:1].lower() + text[1:] + "."
                if (
                    not self.quote
                    and get_origin(Config.model_fields[str(path[0])].annotation) is dict
                ):
                    path = path[:1]  # what follows is a word of the file
                self.problem(
                    line, ".".join(map(str, path)), reason.replace("input should", "should")
                )


# The configuration of a repository, fetched from GitHub and laid over what it builds on.
#
# As in probot's configuration, whose rules GitHub users know: the repository's own
# `.github/reprise.yml` stands alone unless it names another repository with `_extends`; the
# `.github/reprise.yml` of the organisation's repository named `.github` counts only where the
# repository has no file of its own (or only an invalid one). Unlike there, values are merged
# deeply and only repositories of the same owner can be built on. Files are read from default
# branches only.

_DEEPEST_BASE = 3
_SHARED = ".github"
# Asked for generously: a file that is somewhat too long is answered with the reason instead of
# being taken for none.
_MOST_BYTES = 8 * MOST_CHARACTERS

Kind = Literal["repository", "extended", "organisation"]


def load(github: GitHub, target: Target) -> LoadedConfig:
    """The configuration in force. What is wrong with the files comes back as problems; GitHub's
    errors propagate, but files and repositories beside the target's own that are not there, or
    not for us to see, are absent.
    """
    gathering, mine = _Gathering(github, target), ConfigFile(target.repository)
    own = gathering.follow(mine, "repository")
    if own is None or own.problems:
        shared = ConfigFile(f"{gathering.owner}/{_SHARED}")
        if shared.same != mine.same:
            gathering.follow(shared, "organisation")
    config, origins = merge_layers(gathering.files)
    if own is not None and own.off:
        config = config.model_copy(update={"enabled": False})
        origins = origins | {"enabled": Origin(kind="repository", file=str(mine))}
    source = tuple(origin.file for origin, _ in gathering.files)
    return LoadedConfig(
        config=config, source=source, problems=tuple(gathering.problems), origins=origins
    )


def problem_key(problems: Iterable[Problem]) -> str:
    """A short hash of what is wrong, "" when nothing is: whoever answered once under it need not
    answer again.
    """
    texts = sorted(problem.model_dump_json() for problem in problems)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16] if texts else ""


@dataclass
class _Gathering:
    """The files of one configuration, the strongest first, and what is wrong with them."""

    github: GitHub
    target: Target
    files: list[tuple[Origin, dict[str, Any]]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def owner(self) -> str:
        return self.target.repository.partition("/")[0]

    def follow(self, start: ConfigFile, kind: Kind) -> ParsedConfig | None:
        """Take a file and what it builds on; returns that first file, None when there is none."""
        first = config = self._take(start, kind)
        place, visited = start, {start.same}
        while config is not None and config.extends:
            under = base(config.extends, self.owner)
            if isinstance(under, str):
                reason = under
            elif under.same in visited:
                reason = "extends itself in a cycle."
            elif len(visited) > _DEEPEST_BASE:
                reason = (
                    f"makes the chain of files too long: at most {_DEEPEST_BASE} may be extended."
                )
            elif (following := self._take(under, "extended")) is None:
                reason = "names a file that does not exist or that Reprise cannot read."
            else:
                place, config = under, following
                visited.add(under.same)
                continue
            line = config.extends_line
            self.problems.append(Problem(file=str(place), line=line, key=EXTENDS, reason=reason))
            break
        return first

    def _take(self, place: ConfigFile, kind: Kind) -> ParsedConfig | None:
        text = self._text(place)
        if text is None:
            return None
        # Whoever reads the answer to a repository may have no right to read other repositories of
        # its owner.
        config = parse(text, str(place), quote=kind == "repository")
        self.problems += config.problems
        if not config.problems:
            self.files.append((Origin(kind=kind, file=str(place)), config.values))
        return config

    def _text(self, place: ConfigFile) -> str | None:
        own = place.repository == self.target.repository
        where = Target(installation=self.target.installation, repository=place.repository)
        try:
            return self.github.file(where, place.path, _MOST_BYTES)
        except GoneError:
            if own:
                raise
            return None
