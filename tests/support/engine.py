"""Fakes for the engine's ports; the fake of the sandbox is `tests.support.sandbox`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Event

from bot.adapters.files import append, cut_unfinished, recorded
from bot.errors import BuildError, Stopped, UserError
from bot.models.attempt import Attempt, Script
from bot.models.bisect import Commit, Provided, Release
from bot.models.bug import Frame
from bot.models.dialogue import Exchange
from bot.models.environment import BuildStep, Environment, EnvironmentSpec, Package, RepoSource
from bot.models.repair import KeptTrial
from bot.ports import Progress
from sandbox.port import RunResult

Build = Callable[[EnvironmentSpec], Environment]


@dataclass
class FakeBuilder:
    """Builds nothing: every requirement counts as installed, at the version its specifier names,
    else the newest it knows.

    `failing` maps a distribution name to the first cause with which a build that asks for it fails;
    `on_build` replaces the whole answer. `released` and `changelogs` are what the index says of a
    distribution, `wrong` why a guessed one is not meant, and `lines` which release has the lines
    that a traceback quotes. `built` lists what was asked for, in order.
    """

    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failing: Mapping[str, str] = field(default_factory=dict)
    on_build: Build | None = None
    built: list[EnvironmentSpec] = field(default_factory=list)
    released: Mapping[str, tuple[Release, ...]] = field(default_factory=dict)
    changelogs: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)

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

    def line(self, source: RepoSource, older: str, newer: str) -> tuple[Commit, ...]:
        """What lies after one commit up to another."""
        first, last = self._place(older), self._place(newer)
        return self.commits[first + 1 : last + 1]

    def commit(self, source: RepoSource, ref: str) -> Commit:
        """The commit of an id or a tag, "" for the last one."""
        return self.commits[self._place(ref)] if ref else self.commits[-1]

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
    """Keeps exchanges in a file, as a run folder does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exchange(self, exchange: Exchange) -> None:
        """Write one exchange."""
        cut_unfinished(self.path)
        append(self.path, exchange, exclude_defaults=True)

    def exchanges(self) -> tuple[Exchange, ...]:
        """Those that the file holds."""
        return recorded(self.path) if self.path.exists() else ()


@dataclass
class MemoryRecorder:
    """Keeps attempts, streams and what was `asked` in memory. `logs` maps a log's name to its
    two streams; `earlier` with its `programs`, and what it was `told`, are what a killed process
    kept.
    """

    attempts: list[Attempt] = field(default_factory=list)
    earlier: tuple[Attempt, ...] = ()
    programs: dict[int, Script] = field(default_factory=dict)
    logs: dict[str, tuple[str, str]] = field(default_factory=dict)
    scripts: dict[int, Script] = field(default_factory=dict)
    asked: list[Exchange] = field(default_factory=list)
    told: tuple[Exchange, ...] = ()
    tried: list[KeptTrial] = field(default_factory=list)

    def log(self, number: int, script: Script, result: RunResult) -> str:
        """Keep the streams of a run under a name that counts up."""
        name = f"logs/{number:03d}.txt"
        self.logs[name] = (result.stdout, result.stderr)
        self.scripts[number] = script
        return name

    def attempt(self, attempt: Attempt) -> None:
        """Keep one attempt."""
        self.attempts.append(attempt)

    def recall(self, number: int) -> Attempt | None:
        """What was kept before, by its number."""
        return next((attempt for attempt in self.earlier if attempt.number == number), None)

    def program(self, number: int) -> Script | None:
        """The program of an earlier attempt."""
        return self.programs.get(number)

    def exchange(self, exchange: Exchange) -> None:
        """Keep what a model was asked and answered."""
        self.asked.append(exchange)

    def exchanges(self) -> tuple[Exchange, ...]:
        """What was asked before."""
        return self.told

    def trial(self, trial: KeptTrial) -> None:
        """Keep one trial."""
        self.tried.append(trial)

    def trials(self) -> tuple[KeptTrial, ...]:
        """The trials that were kept."""
        return tuple(self.tried)


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
