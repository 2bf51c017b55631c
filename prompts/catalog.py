"""Prompts as files: loaded by stage and version, checked against their hashes, filled in; and
the fence around outside text.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

# The shared fence: how text that strangers wrote stands in a prompt, so that nothing in it can
# pass for ours.

_ODD = re.compile(r"[^\w .,:#/@()+-]", re.ASCII)
_MOST_LABEL = 100


def fence(label: str, text: str) -> str:
    """Text between two marks that do not occur in it; `label` says what it is, such as "issue
    body". Text is passed cleaned.

    The mark is drawn from the text itself: the same text is always fenced the same way, so that
    recorded answers are found again, and no text can hold the mark that it will get.
    """
    name = _ODD.sub("_", label)[:_MOST_LABEL]
    mark = _mark(text)
    return f'<outside id="{mark}" what="{name}">\n{text.strip(chr(10))}\n</outside id="{mark}">'


def _mark(text: str) -> str:
    content, lowercase = text.encode("utf-8", "replace"), text.lower()
    marks = (hashlib.sha256(b"%d:%b" % (number, content)).hexdigest()[:8] for number in count())
    return next(mark for mark in marks if mark not in lowercase)


HOME = Path(__file__).resolve().parent
SHARED = "shared"
_SECTION = re.compile(r"^## ([a-z][a-z0-9_]*)[ \t]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")
_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


class PromptError(Exception):
    """A prompt that is missing, malformed, or given the wrong values: a mistake in our own code."""


class PromptChanged(PromptError):
    """A published version differs from its entry in the catalog."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One version of the prompt of one stage. `id` is stage@version#sha (see `Entry.id`),
    `sections` are its texts by name, `schema` is the JSON Schema of the answer.
    """

    id: str
    sections: dict[str, str] = field(hash=False)
    schema: dict[str, Any] = field(hash=False)

    def render(self, **values: str) -> tuple[str, str]:
        """The system and the user message. Raises PromptError on a missing value and on an
        unused one. A placeholder inside a value is not filled in.
        """
        system, user = self._filled((self.sections["system"], self.sections["user"]), values)
        return system, user

    def fragment(self, name: str, /, **values: object) -> str:
        """Another section, filled in. Raises PromptError as `render` does."""
        if name not in self.sections:
            raise PromptError(f"{self.id} has no section {name}")
        return self._filled((self.sections[name],), values)[0]

    def lengths(self) -> str:
        """How long the texts of the answer may be, in characters: names by limit. The schema allows
        half as much again, so that what is a little too long need not be asked for twice.
        """
        limits: dict[str, int] = {}
        for name, most in _lengths(self.schema, ""):
            limits[name] = min(most, limits.get(name, most))
        names: dict[int, list[str]] = {}
        for name, most in limits.items():
            names.setdefault(most, []).append(f"`{name}`")
        rows = (row for row in names.items() if _LONG <= row[0] < _ENDLESS)
        return "; ".join(f"{', '.join(group)} {most * 2 // 3:,}" for most, group in rows)

    def _filled(self, templates: tuple[str, ...], values: Mapping[str, object]) -> list[str]:
        names = set(_PLACEHOLDER.findall("".join(templates)))
        checks = (("lacks", names - values.keys()), ("knows no", values.keys() - names))
        problems = [f"{verb} {', '.join(sorted(wrong))}" for verb, wrong in checks if wrong]
        if problems:
            raise PromptError(f"{self.id} {' and '.join(problems)}")
        return [
            _PLACEHOLDER.sub(lambda match: str(values[match[1]]), template)
            for template in templates
        ]


_LONG, _ENDLESS = 150, 20_000
"""Characters: what is shorter is a name, and nobody reaches the longest limits."""


def _lengths(schema: Mapping[str, Any], name: str) -> Iterator[tuple[str, int]]:
    """The texts in an answer by their names, each with its greatest length."""
    if "maxLength" in schema:
        yield name, schema["maxLength"]
    for key, part in schema.get("properties", {}).items():
        yield from _lengths(part, key)
    for part in (*schema.get("anyOf", ()), *filter(None, [schema.get("items")])):
        yield from _lengths(part, name)


@dataclass(frozen=True, slots=True)
class Entry:
    """A published version in the catalog: the SHA-256 of its text and of its schema ("" when it has
    none), and whether this version is the live one. The shared fragments are no part of it: what of
    them a model saw stands in the recorded messages.
    """

    stage: str
    version: str
    prompt_sha256: str
    schema_sha256: str
    live: bool

    @property
    def id(self) -> str:
        """stage@version#sha: the first twelve digits of the hash of both hashes."""
        hashes = f"{self.prompt_sha256} {self.schema_sha256}"
        return f"{self.stage}@{self.version}#{hashlib.sha256(hashes.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """A folder of prompts with its `catalog.toml`."""

    folder: Path = HOME

    def listed(self) -> tuple[Entry, ...]:
        """Every published version, by stage, oldest first."""
        tables = tomllib.loads((self.folder / "catalog.toml").read_text(encoding="utf-8"))
        return tuple(
            entry for stage, table in sorted(tables.items()) for entry in _entries(stage, table)
        )

    def load(self, stage: str, version: str | None = None) -> Prompt:
        """The live version of a stage's prompt, or the version asked for. Raises PromptChanged
        when a file was edited after it was published, PromptError when the prompt is missing or
        malformed.
        """
        for entry in self.listed():
            if entry.stage == stage and (
                entry.live if version is None else version == entry.version
            ):
                return self._loaded(entry)
        raise PromptError(f"the catalog has no prompt {stage}{'@' + version if version else ''}")

    def _loaded(self, entry: Entry) -> Prompt:
        text, schema = files(self.folder, entry.stage, entry.version)
        for path, expected in ((text, entry.prompt_sha256), (schema, entry.schema_sha256)):
            if sha256(path) != expected:
                raise PromptChanged(
                    f"{path.parent.name}/{path.name} is not as published: a published version is "
                    "never edited; write a new version"
                )
        parsed_sections = sections(text.read_text(encoding="utf-8"), entry.id)
        return Prompt(
            entry.id, parsed_sections, json.loads(schema.read_bytes() if schema.exists() else "{}")
        )


def files(folder: Path, stage: str, version: str) -> tuple[Path, Path]:
    """The text and the schema of a version."""
    if not (_NAME.fullmatch(stage) and _NAME.fullmatch(version)):
        raise PromptError(f"{stage}@{version} cannot be the name of a prompt")
    return folder / stage / f"{version}.md", folder / stage / f"{version}.schema.json"


def sha256(path: Path) -> str:
    """The hash of a file; "" for a schema that does not exist."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        if path.suffix == ".json":
            return ""
        where = f"{path.parent.name}/{path.name}"
        raise PromptError(f"{where} cannot be read ({error.strerror})") from None


def sections(text: str, name: str) -> dict[str, str]:
    """The sections of a prompt by their headings; what stands above the first is for people. A
    stage begins with `## system` and `## user`; the shared fragments have neither.
    """
    _, *pieces = _SECTION.split(text)
    names, texts = pieces[::2], [piece.strip() for piece in pieces[1::2]]
    if len(set(names)) < len(names) or (
        names[:2] != ["system", "user"] and not name.startswith(f"{SHARED}@")
    ):
        raise PromptError(f"{name} needs one `## system` and after it one `## user`")
    if "{{" in _PLACEHOLDER.sub("", "".join(texts)):
        raise PromptError(f"{name} holds {{{{ that opens no placeholder such as {{{{name}}}}")
    return dict(zip(names, texts, strict=True))


def _entries(stage: str, table: dict[str, Any]) -> list[Entry]:
    versions = {name: hashes for name, hashes in table.items() if isinstance(hashes, dict)}
    if table and table.get("live") not in versions:
        raise PromptError(f"the catalog's live version of {stage} is not published")
    return [
        Entry(stage, name, hashes["prompt"], hashes["schema"], name == table["live"])
        for name, hashes in sorted(versions.items(), key=lambda item: (len(item[0]), item[0]))
    ]
