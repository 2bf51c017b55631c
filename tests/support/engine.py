"""Fakes for the engine's ports; the fake of the sandbox is `tests.support.sandbox`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

from bot.kernel.bug import Commit, Frame, Provided, Release
from bot.kernel.environment import (
    BuildStep,
    Environment,
    EnvironmentSpec,
    LibraryName,
    Package,
    RepoSource,
)
from bot.kernel.errors import BuildError, Stopped, UserError
from bot.kernel.files import append, cut_unfinished, read_exchanges
from bot.kernel.journal import EXCHANGES, E, EntryKind
from bot.kernel.ports import Progress
from bot.kernel.values import Record

Build = Callable[[EnvironmentSpec], Environment]


@dataclass
class FakeBuilder:
    """Builds nothing: every requirement counts as installed, at the version its specifier names,
    else the newest it knows.

    `failing` maps a distribution name to the first cause with which a build that asks for it fails;
    `on_build` replaces the whole answer. `released` and `changelogs` are what the index says of a
    distribution, `wrong` why a guessed one is not meant, `lines` which release has the lines that a
    traceback quotes, and `names` which has a name (`module.name`) that others lack. `built` lists what was asked for, in order.
    """

    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failing: Mapping[str, str] = field(default_factory=dict)
    on_build: Build | None = None
    built: list[EnvironmentSpec] = field(default_factory=list)
    released: Mapping[str, tuple[Release, ...]] = field(default_factory=dict)
    changelogs: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    minors: tuple[str, ...] = ("3.8", "3.9", "3.10", "3.11")

    def build(self, spec: EnvironmentSpec, *, cancel: Event | None = None) -> Environment:
        """Answer at once with a made-up environment, or with the failure that was asked for."""
        if cancel is not None and cancel.is_set():
            raise Stopped("the build was cancelled")
        warm = spec in self.built
        self.built.append(spec)
        for requirement in spec.requirements:
            if cause := self.failing.get(requirement.name):
                raise BuildError(
                    cause, (BuildStep(what=f"install {requirement.name}", error=cause),)
                )
        if self.on_build is not None:
            return self.on_build(spec)
        packages = tuple(
            Package(
                name=each.name, version=self._version(each.name, each.specifier), rung=each.rung
            )
            for each in spec.requirements
        )
        lock = "".join(f"{package.name}=={package.version}\n" for package in packages)
        return Environment(
            id=f"fake-{hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:16]}",
            python=spec.python,
            interpreter="python3",
            packages=packages,
            lock=lock,
            steps=(BuildStep(what="made up"),),
            warm=warm,
        )

    def matched(self, spec: EnvironmentSpec) -> tuple[EnvironmentSpec, tuple[str, ...]]:
        """The spec without the guesses that this fake was told to be wrong."""
        told = [f"{name}: {why}" for name, why in self.wrong.items()]
        kept = tuple(each for each in spec.requirements if each.name not in self.wrong)
        gone = len(kept) < len(spec.requirements)
        return spec.model_copy(update={"requirements": kept}), tuple(told if gone else ())

    def fitting(
        self, built: Environment, name: str, frames: tuple[Frame, ...], before: datetime | None
    ) -> str:
        """The release this fake was told to have the lines."""
        version = self.lines.get(name, "")
        return version if version != built.version(name) else ""

    def providing(
        self, built: Environment, lacking: LibraryName, before: datetime | None
    ) -> tuple[str, str]:
        """The release this fake was told to have the name (`module.name`)."""
        distribution, version = self.names.get(str(lacking), ("", ""))
        is_new = version != built.version(distribution)
        return (distribution, version) if is_new else ("", "")

    def pythons(self) -> tuple[str, ...]:
        """Those that this fake was told about."""
        return self.minors

    def releases(self, name: str) -> tuple[str, ...]:
        """The versions this fake was told about."""
        return self.known.get(name, ())

    def history(self, name: str) -> tuple[Release, ...]:
        """The releases this fake was told about; those it knows by version only have no day."""
        return self.released.get(name) or tuple(
            Release(version=each) for each in self.known.get(name, ())
        )

    def changelog(self, name: str) -> str:
        """The link this fake was told about."""
        return self.changelogs.get(name, "")

    def _version(self, name: str, specifier: str) -> str:
        if specifier.startswith("==") and "*" not in specifier:
            return specifier.removeprefix("==").strip()
        return (self.known.get(name) or ("1.0",))[-1]


@dataclass
class FakeCommits:
    """A history of one line: `commits` oldest first, `tagged` the commits' ids by the version
    they are tagged with, `holds` what each of them provides.
    """

    commits: tuple[Commit, ...] = ()
    tagged: Mapping[str, str] = field(default_factory=dict)
    holds: Provided = field(default_factory=lambda: Provided(name="lib", on_path=("lib",)))
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def changes(
        self, source: RepoSource, commit: str, paths: tuple[str, ...], limit: int
    ) -> tuple[Commit, ...]:
        """The commits whose `files` of those paths differ from those of the one before."""
        rows = self.commits[: self._place(commit) + 1]
        texts = [self.texts(source, row.id, paths) for row in rows]
        changes = [rows[at] for at in range(1, len(rows)) if texts[at] != texts[at - 1]]
        return tuple(reversed(changes))[:limit]

    def texts(self, source: RepoSource, commit: str, paths: tuple[str, ...]) -> dict[str, str]:
        """What `files` has of a commit."""
        place = self._place(commit.rstrip("^")) - commit.count("^")
        kept = self.files.get(self.commits[place].id, {})
        return {path: kept[path] for path in paths if path in kept}

    def line(self, source: RepoSource, older: str, newer: str) -> tuple[Commit, ...]:
        """What lies after one commit, or from the beginning, up to another or the last one."""
        first = self._place(older) if older else -1
        last = self._place(newer) if newer else len(self.commits) - 1
        return self.commits[first + 1 : last + 1]

    def commit(self, source: RepoSource, ref: str) -> Commit:
        """The commit of an id or a tag, "" for the last one."""
        place = self._place(ref.rstrip("^")) - ref.count("^") if ref else -1
        return self.commits[place]

    def between(
        self, source: RepoSource, older: str, newer: str, limit: int = 50
    ) -> tuple[Commit, ...]:
        """What lies between two tags, newest first."""
        if older not in self.tagged or newer not in self.tagged:
            return ()
        return self.line(source, older, newer)[::-1][:limit]

    def provides(self, source: RepoSource, commit: str) -> Provided:
        """The same at every commit."""
        self._place(commit)
        return self.holds

    def tags(self, source: RepoSource, commit: str) -> tuple[str, str]:
        """The first tag at a commit or after it, and the last one before it."""
        at = self._place(commit)
        places = sorted((self._place(name), name) for name in self.tagged)
        first = next((name for place, name in places if place >= at), "")
        return first, next((name for place, name in reversed(places) if place < at), "")

    def _place(self, ref: str) -> int:
        wanted = self.tagged.get(ref, ref)
        found = [at for at, each in enumerate(self.commits) if each.id.startswith(wanted)]
        if len(found) != 1:
            raise UserError(f"The repository has no {ref}.", "Look up the branch, tag or commit.")
        return found[0]


class ExchangeFile:
    """A journal of exchanges alone, in a file as a run folder has it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, kind: EntryKind[E], entry: E) -> None:
        """Write one exchange."""
        assert kind.name == EXCHANGES.name
        cut_unfinished(self.path)
        append(self.path, entry)

    def read(self, kind: EntryKind[E]) -> tuple[E, ...]:
        """Those that the file holds."""
        return read_exchanges(self.path, kind.model) if self.path.exists() else ()


class MemoryJournal:
    """A journal in memory. `appended` is what was added since it was made or filled."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, Any]] = {}
        self.appended: list[Record] = []

    def append(self, kind: EntryKind[E], entry: E) -> None:
        """Keep one entry, in place of those from its key on."""
        entries, key = self._entries.setdefault(kind.name, {}), kind.key(entry)
        if key in entries:
            at = list(entries).index(key)
            for later in list(entries)[at:]:
                del entries[later]
        entries[key] = entry
        self.appended.append(entry)

    def read(self, kind: EntryKind[E]) -> tuple[E, ...]:
        """Its entries, in order."""
        return tuple(self._entries.get(kind.name, {}).values())

    def fill(self, kind: EntryKind[E], entries: Iterable[E]) -> MemoryJournal:
        """This journal with what an earlier process kept."""
        for entry in entries:
            self.append(kind, entry)
        self.appended.clear()
        return self


@dataclass
class FrozenClock:
    """A clock that stands still unless told to move: every reading adds `step` seconds."""

    now: float = 0.0
    step: float = 0.0

    def __call__(self) -> float:
        """The time now, after one step."""
        self.now += self.step
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds


@dataclass
class ListListener:
    """Hears everything and keeps it."""

    heard: list[Progress] = field(default_factory=list)

    def __call__(self, progress: Progress) -> None:
        """Keep one line."""
        self.heard.append(progress)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages heard, each once, in the order of their first line."""
        return tuple(dict.fromkeys(progress.stage for progress in self.heard))
