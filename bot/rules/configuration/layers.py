"""Configuration files merged: mappings key by key, lists and plain values as a whole."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bot.models.config import Config, Origin

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


def base(written: str, owner: str) -> ConfigFile | str:
    """Where `_extends` points, or why it may not: "name", "owner/name" or either with ":path",
    of the same owner.
    """
    match = _BASE.fullmatch(written.strip())
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


def laid(files: Iterable[tuple[Origin, Mapping[str, Any]]]) -> tuple[Config, dict[str, Origin]]:
    """The configuration of files that were each found valid, the strongest first, and where each
    of its values came from.
    """
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for origin, keys in reversed(list(files)):
        values = _merged(values, keys)
        origins |= dict.fromkeys(_leaves(keys), origin)
    return Config.model_validate(values), origins


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    nested = {
        key: _merged(below[key], value)
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
