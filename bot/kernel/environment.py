"""The environment of that day: what is wanted, what was built and where every pin came from; and
pieces of its source code.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from bot.kernel.values import Record

Origin = Literal["installed", "clone", "lineage"]
ChunkKind = Literal["module", "class", "function", "method", "loop", "lines"]


class PinSource(StrEnum):
    """What decided the version of a package, strongest first."""

    OPTION = "option"
    ISSUE = "issue"
    REPOSITORY = "repository"
    NEIGHBOUR = "neighbour"
    DATE = "date"
    IMPORT = "import"
    REPAIR = "repair"
    DEPENDENCY = "dependency"


class Requirement(Record):
    """One thing to install: a PEP 508 name with extras and a specifier ("" for any version).

    Where the name is only a guess for an import, `modules` has its top-level module and those below
    it that the report uses; `evidence` is what the index tells in favour of the name, "" while
    nobody has asked. Where the distribution was `named`, the module is the guess.
    """

    name: str
    specifier: str = ""
    extras: tuple[str, ...] = ()
    rung: PinSource
    reason: str
    modules: tuple[str, ...] = ()
    evidence: str = ""
    named: bool = False

    @property
    def why(self) -> str:
        """The reason with the evidence."""
        return "; ".join(filter(None, (self.reason, self.evidence)))


class LibraryName(Record):
    """What a program asks of a library: a `name` in a `module`, or the module itself; else, of a
    class or function `name` whose module is not known but for the packages that may have it
    (`tops`), an `attribute`, a `keyword` or room for so many positional arguments. With an
    `importer`, a file of another library that asks for it, it is that one whose release matters.
    """

    module: str = ""
    name: str = ""
    tops: tuple[str, ...] = ()
    attribute: str = ""
    keyword: str = ""
    positional: int = 0
    importer: str = ""

    def __str__(self) -> str:
        if self.keyword:
            return f"{self.name}({self.keyword}=…)"
        if self.positional:
            return f"{self.name}() with {self.positional} positional arguments"
        return ".".join(filter(None, (self.module, self.name, self.attribute)))


class RepoSource(Record):
    """The repository under test from a clone: installed when it can be, else put on the path.
    `in_place`, it is always put on the path, for a program that runs in its tree.
    """

    url: str
    ref: str = ""
    path: str = ""
    commit: str = ""
    in_place: bool = False

    @classmethod
    def of(cls, address: str, ref: str = "") -> RepoSource:
        """A clone by its address: a URL or a folder of this machine."""
        local = "://" not in address and not address.startswith("git@")
        return cls(url="" if local else address, path=address if local else "", ref=ref)


class DeclaredDependencies(Record):
    """What a repository's own files ask for: `requirements` to install, `constraints` that its
    lock files put on whatever is installed, and the Pythons that they allow ("3.11"; () for any).
    The index provides no package of the repository's `own` names. `notes` are sentences on what is
    left out.
    """

    requirements: tuple[Requirement, ...] = ()
    constraints: tuple[Requirement, ...] = ()
    pythons: tuple[str, ...] = ()
    python_why: str = ""
    own: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Claimed(Record):
    """A version that the bug report names, with the one that was installed. `is_absent`: no index
    that was asked has a release of it.
    """

    name: str
    claimed: str
    resolved: str
    note: str = ""
    is_absent: bool = False


class EnvironmentSpec(Record):
    """What to build. `exclude_newer` is the date cut-off; packages in `undated` are exempt from
    it.

    `constraints` hold only where something installed draws the package, and are the first to go
    when no solution is found. `variables` are set for every run; `claims` are the versions the
    report names, with `resolved` still empty; `python_why` says what decided the
    Python. The `repository` of the issue and the distributions that the report has `named` help to
    tell which distribution an import means.
    """

    python: str
    python_why: str = ""
    requirements: tuple[Requirement, ...] = ()
    exclude_newer: datetime | None = None
    undated: tuple[str, ...] = ()
    device: Literal["cpu", "gpu"] = "cpu"
    repo: RepoSource | None = None
    constraints: tuple[Requirement, ...] = ()
    variables: dict[str, str] = {}
    claims: tuple[Claimed, ...] = ()
    repository: str = ""
    named: tuple[str, ...] = ()


class Package(Record):
    """One installed distribution and the rung that decided its version."""

    name: str
    version: str
    rung: PinSource


class BuildStep(Record):
    """One attempt to build the environment; `error` is the first cause of its failure, "" if it
    worked.
    """

    what: str
    error: str = ""
    seconds: float = 0.0


class DataMount(Record):
    """Data of the operator's: the path in the repository at which a program finds it, the name
    under which the operator keeps it, and its folder or file on this host, "" where it is missing.
    """

    path: str
    name: str
    source: str = ""


class OperatorFiles(Record):
    """What the operator of this host keeps for runs, which can only read it: data, and a `hub`
    cache with the `weights` in it by name, the `variables` that lead libraries there, and the data
    `sets` beside it as folders. `problems` say what is missing and why.
    """

    data: tuple[DataMount, ...] = ()
    hub: str = ""
    weights: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    problems: tuple[str, ...] = ()


class Environment(Record):
    """A built environment. `mounts` are host paths to show read-only inside the sandbox at the
    same path, `interpreter` the Python to start there, and `variables` what it needs to run
    (LD_LIBRARY_PATH, PYTHONPATH). `commit` is that of a clone, `tree` the host path of its files
    and `cloned` the distribution that was built from it, "" when the clone lies on the path;
    `undated` are installed packages of after the date cut-off, `operator_files` what its runs get
    beside it. `note` is what a reader has to know
    of what was built.
    """

    id: str
    python: str
    interpreter: str
    mounts: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    packages: tuple[Package, ...] = ()
    lock: str = ""
    claims: tuple[Claimed, ...] = ()
    steps: tuple[BuildStep, ...] = ()
    commit: str = ""
    tree: str = ""
    cloned: str = ""
    undated: tuple[str, ...] = ()
    operator_files: OperatorFiles = OperatorFiles()
    note: str = ""
    warm: bool = False
    seconds: float = 0.0

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders of a clone from which its modules are imported; empty when no clone lies
        on the path.
        """
        return (
            tuple(filter(None, self.variables.get("PYTHONPATH", "").split(":")))
            if self.commit
            else ()
        )

    def version(self, name: str) -> str:
        """The installed version of a distribution, or ""."""
        return next((package.version for package in self.packages if package.name == name), "")


class Chunk(Record):
    """Lines of one source file. `path` is below its root ("torch/nn/functional.py"), `start` and
    `end` are 1-based and inclusive, `name` the dotted name of what is defined there
    ("torch.nn.functional.linear"), `focus` the line that matters most in it (0: its head), `why`
    are the reasons for choosing it, the strongest first.
    """

    path: str
    start: int
    end: int
    text: str
    kind: ChunkKind = "lines"
    name: str = ""
    origin: Origin = "installed"
    package: str = ""
    version: str = ""
    focus: int = 0
    score: float = 0.0
    why: tuple[str, ...] = ()


class Context(Record):
    """The chunks for one hypothesis, in reading order. `module` is the part of the package it is
    about (see RepGen, arXiv 2512.14990, section on module partition).
    """

    rank: int
    title: str
    module: str = ""
    chunks: tuple[Chunk, ...] = ()
