"""The ports: everything the engine asks of the world, in one place. Fakes for all of them ship
in `tests.support`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Event as Flag
from typing import Literal, Protocol

from bot.kernel.bug import Commit, Frame, Provided, Release
from bot.kernel.dialogue import ModelAnswer, Question, Usage
from bot.kernel.environment import Chunk, Environment, EnvironmentSpec, LibraryName, RepoSource
from bot.kernel.journal import E, EntryKind
from bot.kernel.paper import PaperFiles
from bot.kernel.training_types import Trial
from bot.kernel.values import Record
from sandbox.port import RunResult, Sandbox

Stage = Literal[
    "source",
    "claims",
    "fingerprint",
    "code",
    "run",
    "effect",
    "intake",
    "signature",
    "environment",
    "candidates",
    "search",
    "confirm",
    "control",
    "bisect",
    "minimize",
    "diagnose",
    "repair",
    "report",
]


class Progress(Record):
    """One line of what is going on: the stage, what is being tried, and how far it is (`done` of
    `total`, 0 when not countable).
    """

    stage: Stage
    text: str
    done: int = 0
    total: int = 0


Listener = Callable[[Progress], None]
"""Hears what is going on. Never raises and never waits."""


class Builder(Protocol):
    """Builds environments (the prepare phase)."""

    def matched(self, spec: EnvironmentSpec) -> tuple[EnvironmentSpec, tuple[str, ...]]:
        """The spec with guessed distributions confirmed, replaced or left out by what the index
        tells of them, and a sentence for each that was left out. Never raises for the index.
        """

    def build(self, spec: EnvironmentSpec, *, cancel: Flag | None = None) -> Environment:
        """Build or fetch from the cache. Raises BuildError with the ladder of tries,
        IndexUnreachable, or Stopped.
        """

    def fitting(
        self,
        environment: Environment,
        name: str,
        frames: tuple[Frame, ...],
        before: datetime | None,
    ) -> str:
        """A release near the installed one, and not of after a day, that has more of the lines
        which frames of a traceback quote; "" when none is known.
        """

    def providing(
        self, environment: Environment, lacking: LibraryName, before: datetime | None
    ) -> tuple[str, str]:
        """The distribution of which the installed release lacks something, and the newest release,
        not much newer than a day, that has it (of an importer, that does not ask for it); ("", "")
        when none is known.
        """

    def pythons(self) -> tuple[str, ...]:
        """The minor versions of Python ("3.11") for which an environment can be built."""

    def releases(self, name: str) -> tuple[str, ...]:
        """Every version that the index still offers, oldest first; empty when unknown."""

    def history(self, name: str) -> tuple[Release, ...]:
        """Every version of a distribution with its day, withdrawn and pre-releases too, lowest
        first; empty when unknown.
        """

    def changelog(self, name: str) -> str:
        """A link to a distribution's changes or, failing that, to its home; "" when its metadata
        names neither.
        """


class Commits(Protocol):
    """Reads the history of a clone. Nothing is checked out or run; a clone that cannot be read
    raises UserError or TransientError.
    """

    def line(self, source: RepoSource, older: str, newer: str) -> tuple[Commit, ...]:
        """The commits on the first-parent line after `older` ("" for its beginning) up to `newer`
        ("" for the head), oldest first; empty when `newer` does not come after `older`. Raises
        UserError for a name that is no commit.
        """

    def commit(self, source: RepoSource, ref: str) -> Commit:
        """The commit that a branch, a tag or an id means, "" for the head of the default branch.
        Raises UserError.
        """

    def between(
        self, source: RepoSource, older: str, newer: str, limit: int = 50
    ) -> tuple[Commit, ...]:
        """The commits between the tags of two releases, newest first, at most `limit`; empty
        when a release has no tag.
        """

    def changes(
        self, source: RepoSource, commit: str, paths: tuple[str, ...], limit: int
    ) -> tuple[Commit, ...]:
        """The last commits up to `commit` on the first-parent line that change one of the files,
        newest first, without the first commit of all.
        """

    def texts(self, source: RepoSource, commit: str, paths: tuple[str, ...]) -> dict[str, str]:
        """The files of a commit as text, cut at 1 MiB; what it does not have is left out."""

    def provides(self, source: RepoSource, commit: str) -> Provided:
        """What the tree of a commit provides, by its id, read without running anything of it."""

    def tags(self, source: RepoSource, commit: str) -> tuple[str, str]:
        """The oldest tag that has a commit, and the nearest before it; "" for none."""


class Journal(Protocol):
    """Keeps what a run records as it happens, so that nothing is lost when the process is killed:
    the next process of the same job reads it.
    """

    def append(self, kind: EntryKind[E], entry: E) -> None:
        """Keep an entry. One with the same key that an earlier process kept goes, with all that
        follow it: from there on the work is another.
        """

    def read(self, kind: EntryKind[E]) -> tuple[E, ...]:
        """All entries of a kind, in order."""


class Model(Protocol):
    """Asks a language model. What comes back is data from outside: it decides nothing by itself."""

    def bound(self, question: Question) -> Usage:
        """The most that asking could use: what a budget is held against before each call."""

    def ask(self, question: Question, *, cancel: Flag | None = None) -> ModelAnswer:
        """An answer that fits the question's schema. Raises ModelUnavailable when none can be
        had, after the cascade of models is used up; Stopped when `cancel` is set. Usage of
        failed tries is in the error or in the answer.
        """


class SourceIndex(Protocol):
    """Source code of one environment, read-only. Equal sources give equal answers, in the same
    order.
    """

    def search(self, query: str, limit: int = 10) -> tuple[Chunk, ...]:
        """What the words of the query bear on, best first; identifiers are split (camelCase,
        snake_case, dots).
        """

    def symbol(self, name: str, limit: int = 5) -> tuple[Chunk, ...]:
        """Definitions of a (partly) dotted name, best first; names re-exported by a package are
        followed to their source.
        """

    def literal(self, text: str, limit: int = 5) -> tuple[Chunk, ...]:
        """Definitions that hold a text as it is written, each with the line where it stands."""

    def read(self, path: str, start: int, end: int) -> Chunk | None:
        """Lines of a file, by its path below its root or by the end of it where that is unique;
        None when there is none.
        """

    def around(self, path: str, line: int) -> Chunk | None:
        """The smallest definition around a line (1-based), which is its focus; lines of the
        module where no definition is.
        """

    def callers(self, chunk: Chunk, limit: int = 5) -> tuple[Chunk, ...]:
        """Who calls what the chunk defines, by resolving names; best first."""

    def callees(self, chunk: Chunk, limit: int = 5) -> tuple[Chunk, ...]:
        """Definitions of what the chunk calls, in the order of the calls."""

    def loops(self, limit: int = 5) -> tuple[Chunk, ...]:
        """Trial loops, the most complete first."""

    def files(self, prefix: str = "") -> tuple[str, ...]:
        """The paths that begin with `prefix`, sorted."""


class SourceIndexer(Protocol):
    """Finds and indexes the sources of environments."""

    def open(
        self, environment: Environment, packages: tuple[str, ...], *, cancel: Flag | None = None
    ) -> SourceIndex:
        """The installed sources of these distributions and, ranked lower, of those they need; of
        the repository on the path too. Nothing is imported or run. Raises Stopped when `cancel`
        is set.
        """


class Papers(Protocol):
    """Where papers come from. Nothing of them is run."""

    def fetch(self, source: str, *, cancel: Flag | None = None) -> PaperFiles:
        """The files of a paper. Raises UserError for a source that is none, TransientError where
        it cannot be reached, and Stopped when `cancel` is set.
        """


Clock = Callable[[], float]
"""Monotonic seconds."""


@dataclass(frozen=True, slots=True)
class TrainingWatch:
    """Who watches programs train: called with a step and its loss, about twice a second; with the
    result of the recorded run; with each trial of a repair.
    """

    loss: Callable[[int, float], None] | None = None
    recorded: Callable[[RunResult], None] = lambda _: None
    trial: Callable[[Trial], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Ports:
    """The world, as the pipeline sees it. `cache` is a folder that has the same path where the
    sandbox runs.
    """

    sandbox: Sandbox
    builder: Builder
    journal: Journal
    clock: Clock
    listener: Listener
    cancel: Flag = field(default_factory=Flag)
    model: Model | None = None
    indexer: SourceIndexer | None = None
    commits: Commits | None = None
    papers: Papers | None = None
    cache: Path | None = None
    training: TrainingWatch = TrainingWatch()
