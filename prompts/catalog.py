"""Prompts as files: loaded by stage and version, held to their hashes, filled in strictly."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent
_PART = re.compile(r"^## (system|user)[ \t]*$", re.MULTILINE)
_PLACE = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


class PromptError(Exception):
    """A prompt that is not there, is malformed, or was given other values than it asks for: a mistake in our own code."""


class PromptChanged(PromptError):
    """A published version is not as the catalog knows it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One version of what is said at one stage. `id` is stage@version#sha, the first twelve digits of the hash of both files;
    `schema` is the JSON Schema of the answer.
    """

    id: str
    system: str
    user: str
    schema: dict[str, Any] = field(hash=False)

    @property
    def names(self) -> frozenset[str]:
        """The values it asks for."""
        return frozenset(_PLACE.findall(self.system) + _PLACE.findall(self.user))

    def render(self, **values: str) -> tuple[str, str]:
        """The system and the user message. Raises PromptError on a missing value and on one that is not used; what looks like
        a placeholder inside a value stays as it is.
        """
        missing, unused = self.names - values.keys(), values.keys() - self.names
        if missing or unused:
            said = [f"{word} {', '.join(sorted(each))}" for word, each in (("lacks", missing), ("knows no", unused)) if each]
            raise PromptError(f"{self.id} {' and '.join(said)}")
        return _filled(self.system, values), _filled(self.user, values)


@dataclass(frozen=True, slots=True)
class Entry:
    """A published version in the catalog: the SHA-256 of its two files, and whether it is the one in use."""

    stage: str
    version: str
    prompt_sha256: str
    schema_sha256: str
    live: bool

    @property
    def id(self) -> str:
        """What stands on every question that was asked with it."""
        both = hashlib.sha256(f"{self.prompt_sha256} {self.schema_sha256}".encode()).hexdigest()
        return f"{self.stage}@{self.version}#{both[:12]}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """A folder of prompts with its `catalog.toml`."""

    folder: Path = HOME

    def listed(self) -> tuple[Entry, ...]:
        """Every published version, by stage, oldest first."""
        return tuple(entry for stage, table in sorted(self._tables().items()) for entry in _entries(stage, table))

    def load(self, stage: str, version: str | None = None) -> Prompt:
        """The live version of a stage's prompt, or the one asked for. Raises PromptChanged when a file was edited after it was
        published, PromptError when there is none or it is malformed.
        """
        held = [each for each in _entries(stage, self._tables().get(stage, {})) if version in {None, each.version}]
        entry = next((each for each in held if version is not None or each.live), None)
        if entry is None:
            raise PromptError(f"the catalog has no prompt {stage}{'@' + version if version else ''}")
        text, schema = files(self.folder, stage, entry.version)
        _hold(text, entry.prompt_sha256)
        _hold(schema, entry.schema_sha256)
        system, user = parts(text.read_text(encoding="utf-8"), entry.id)
        return Prompt(entry.id, system, user, json.loads(schema.read_bytes()))

    def _tables(self) -> dict[str, dict[str, Any]]:
        return tomllib.loads((self.folder / "catalog.toml").read_text(encoding="utf-8"))


def files(folder: Path, stage: str, version: str) -> tuple[Path, Path]:
    """Where a version's two files lie."""
    if not (_NAME.fullmatch(stage) and _NAME.fullmatch(version)):
        raise PromptError(f"{stage}@{version} cannot be the name of a prompt")
    return folder / stage / f"{version}.md", folder / stage / f"{version}.schema.json"


def sha256(path: Path) -> str:
    """The hash of a file's content."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise PromptError(f"{path.parent.name}/{path.name} cannot be read ({error.strerror})") from None


def parts(text: str, name: str) -> tuple[str, str]:
    """The `## system` and the `## user` part of a prompt's text; what stands above is for people."""
    pieces = _PART.split(text)
    if pieces[1::2] != ["system", "user"]:
        raise PromptError(f"{name} needs one `## system` and after it one `## user`")
    system, user = pieces[2].strip(), pieces[4].strip()
    if "{{" in _PLACE.sub("", system + user):
        raise PromptError(f"{name} holds {{{{ that opens no placeholder such as {{{{name}}}}")
    return system, user


def _hold(path: Path, expected: str) -> None:
    if sha256(path) != expected:
        raise PromptChanged(
            f"{path.parent.name}/{path.name} is not as published: a published version is never edited; write a new version"
        )


def _filled(template: str, values: dict[str, str]) -> str:
    return _PLACE.sub(lambda match: values[match[1]], template)


def _entries(stage: str, table: dict[str, Any]) -> tuple[Entry, ...]:
    versions = {name: each for name, each in table.items() if isinstance(each, dict)}
    if table and table.get("live") not in versions:
        raise PromptError(f"the catalog's live version of {stage} is not published")
    named = sorted(versions.items(), key=lambda item: (len(item[0]), item[0]))
    return tuple(Entry(stage, name, each["prompt"], each["schema"], name == table["live"]) for name, each in named)
