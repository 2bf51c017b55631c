"""What is asked for: a job of one kind, with its options and limits; notes on what came of it."""

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from bot.kernel.bug import Issue
from bot.kernel.training_types import RepairRequest, TrainingProgram
from bot.kernel.values import Record
from sandbox.port import overlap

Proof = Literal["control", "bisect", "minimize"]
"""What is done with a failure that was reproduced."""

PROOFS: tuple[Proof, ...] = get_args(Proof)

Extra = Literal["control", "bisect", "minimize", "diagnose", "repair", "paper"]
"""A proof, the diagnosis or repair of the training, or a paper's number: what a command may ask for
by name.
"""

Part = Literal[
    "model", "refine", "context", "checks", "feedback", "probe", "contrast",
    "control", "bisect", "minimize",
]  # fmt: skip
"""Parts that can be left out, to show what each is worth."""

PARTS: tuple[Part, ...] = get_args(Part)

NoteKind = Literal["run", "control", "bisect", "minimize"]
"""The run itself, or one of its proofs."""


def _check_data(data: dict[str, str]) -> dict[str, str]:
    """Raise ValueError for a path that is not plain, relative and inside a tree, or lies in another
    one.
    """
    for path in data:
        parts = PurePosixPath(path).parts
        is_plain = path == "/".join(parts) and path.isprintable() and len(path) <= _LONGEST_PATH
        if not is_plain or not parts or ".." in parts or parts[0] in _RESERVED_FOLDERS:
            raise ValueError("each path must be plain, relative and inside the repository")
        if any(overlap(path, other) for other in data if other != path):
            raise ValueError("no path may lie in another one")
    return data


_LONGEST_PATH = 200
_RESERVED_FOLDERS = {".reprise", ".git", "/"}
DataPaths = Annotated[dict[str, str], AfterValidator(_check_data)]
"""Paths in a repository at which its programs find data, each with where that is."""


class EnvironmentOptions(Record):
    """What is installed, and where it runs. What is None or "auto" follows from the program and, of
    an issue, from its text and date. `repo` and `ref` are the repository under test, `command` what
    to run in it in place of what an issue says, as a shell would be given it. A clone that is only
    `for_commands` is not installed where a snippet can have what the repository publishes. `data`
    is by its path in the repository: a name that the operator gave it, or a path of this machine
    where the command line does. Of the operator's `weights`, those are here that a bug report
    names.
    """

    python: str | None = None
    pins: tuple[str, ...] = ()
    repo: str | None = None
    ref: str | None = None
    for_commands: bool = False
    command: str = ""
    data: DataPaths = {}
    weights: tuple[str, ...] = ()
    device: Literal["cpu", "gpu"] = "cpu"
    sandbox: Literal["auto", "docker", "bwrap", "process"] = "auto"


class RunLimits(Record):
    """How long one run may take, in seconds (a training: None for the same), how many may confirm
    a failure, and the first seed.
    """

    timeout_s: float = 120.0
    training_timeout_s: float | None = None
    max_runs: int = 40
    seed: int = 0

    @property
    def training_s(self) -> float:
        """What a run that trains may take."""
        return self.training_timeout_s or self.timeout_s


class ModelLimits(Record):
    """Which model is asked (None: the host's choice), and what asking may cost: dollars, tokens,
    calls and minutes are checked before each call; `max_attempts` counts the programs that a model
    may have run.
    """

    name: str | None = None
    max_cost: float = 1.0
    max_tokens: int = 200_000
    max_calls: int = 16
    max_attempts: int = 6
    minutes: float = 20.0


class ProofOptions(Record):
    """`minutes` are for control, bisection and minimisation together; `package` is what is
    bisected, by default the one under test.
    """

    minutes: float = 10.0
    package: str | None = None


class TrainingOptions(Record):
    """What is done with the training of a bug report's program: a diagnosis and, where it is asked
    for, a patch as well, within `repair_minutes`. `budget` is for trainings that confirm the
    findings, in times of the program's own run; 0 for none.
    """

    budget: float = Field(0.0, ge=0)

    repair: RepairRequest | None = None
    repair_minutes: float = 40.0


class JobOptions(Record):
    """The choices that every kind of job has. `without` leaves parts out."""

    environment: EnvironmentOptions = EnvironmentOptions()
    limits: RunLimits = RunLimits()
    model: ModelLimits = ModelLimits()
    without: tuple[Part, ...] = ()


class IssueOptions(JobOptions):
    """The choices for an issue. `training` is None where its training is not looked at."""

    proof: ProofOptions = ProofOptions()
    training: TrainingOptions | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_release(cls, data: Any) -> Any:
        """Earlier releases kept all options in one flat record."""
        if not isinstance(data, dict) or "options" not in data:
            return data
        flat, rest = dict(data["options"]), {key: data[key] for key in data if key != "options"}
        if not (flat.pop("diagnose", False) or flat.get("repair")):
            flat = {key: flat[key] for key in flat if not key.startswith("repair")}
        elif "repair" not in flat:
            rest["training"] = {}
        for key, value in flat.items():
            part, name = _PLACES.get(key, ("", key))
            target = rest.setdefault(part, {}) if part else rest
            target[name] = value
        return rest


_PLACES = {
    **{name: ("environment", name) for name in EnvironmentOptions.model_fields},
    **{name: ("limits", name) for name in RunLimits.model_fields},
    **{name: ("model", name) for name in ModelLimits.model_fields if name != "name"},
    "model": ("model", "name"),
    "proof_minutes": ("proof", "minutes"),
    "package": ("proof", "package"),
    "repair": ("training", "repair"),
    "repair_minutes": ("training", "repair_minutes"),
}
"""Where the flat options of earlier releases are now: the part, and the name in it."""


class ReproduceIssue(IssueOptions):
    """Reproduce an issue."""

    kind: Literal["reproduce_issue"] = "reproduce_issue"
    issue: Issue

    @property
    def name(self) -> str:
        """What people call the job."""
        issue = self.issue
        numbered = issue.repository and issue.number
        return f"{issue.repository}-{issue.number}" if numbered else issue.title


class ProgramJob(JobOptions):
    """Work on a training program that no issue is about."""

    program: TrainingProgram

    @property
    def name(self) -> str:
        """What people call the job."""
        return self.program.entry.removesuffix(".py")


class DiagnoseProgram(ProgramJob):
    """Say why a program trains badly. `budget` is for trainings that confirm the findings, in times
    of its own run; 0 for none.
    """

    kind: Literal["diagnose_program"] = "diagnose_program"
    budget: float = Field(0.0, ge=0)


class RepairProgram(ProgramJob):
    """Find a change of hyperparameters that is proven to help a program."""

    kind: Literal["repair_program"] = "repair_program"
    repair: RepairRequest = RepairRequest()


MOST_PAPER_RUNS = 40


class ReproducePaper(JobOptions):
    """Reproduce a number of a paper with its repository. `source` is a file, a folder, an archive
    or an arXiv id, "" for the paper that the `issue` or the repository names; `claim` are the words
    that choose the number, "" for the one that the issue means, or the main result. All runs
    together take at most `minutes`; `runs` is the most of them with seeds of their own. With
    `no_repo` a model writes the program from the paper. `cited` are repositories of cited works by
    the keys of their references.
    `requested_minutes` and `requested_runs` are what a command asked for, which may be more than
    there can be.
    """

    kind: Literal["reproduce_paper"] = "reproduce_paper"
    source: str
    no_repo: bool = False
    cited: dict[str, str] = {}
    issue: Issue | None = None
    claim: str = ""
    minutes: float = Field(60.0, gt=0)
    requested_minutes: float | None = None
    runs: int = Field(5, ge=1, le=MOST_PAPER_RUNS)
    requested_runs: int | None = None

    @property
    def is_capped(self) -> bool:
        """Whether the host allows less time than was asked for."""
        return self.requested_minutes is not None and self.requested_minutes > self.minutes

    @property
    def has_fewer_runs(self) -> bool:
        """Whether there are fewer runs than were asked for."""
        return self.requested_runs is not None and self.requested_runs > self.runs

    @property
    def name(self) -> str:
        """What people call the job."""
        if not self.source and self.issue is not None:
            return f"{self.issue.repository}-{self.issue.number}"
        return f"paper-{PurePosixPath(self.source).name or 'folder'}"


Job = Annotated[
    ReproduceIssue | DiagnoseProgram | RepairProgram | ReproducePaper,
    Field(discriminator="kind"),
]
"""What can be asked for, a closed set."""


def _kind_of(data: Any) -> Any:
    """The kind of a job or a report; those of earlier releases do not say that they are issues."""
    if isinstance(data, dict):
        return data.get("kind", "reproduce_issue")
    return getattr(data, "kind", "reproduce_issue")


BY_KIND = Discriminator(_kind_of)
RequestedJob = Annotated[
    Annotated[ReproduceIssue, Tag("reproduce_issue")]
    | Annotated[ReproducePaper, Tag("reproduce_paper")],
    BY_KIND,
]
"""What can be asked for on an issue."""


class Note(Record):
    """One sentence for the reader. Code selects notes by `kind` and never reads `text`."""

    kind: NoteKind
    text: str


class Interruption(StrEnum):
    """What ended work that has more to do."""

    STOPPED = "stopped on request"
    OUT_OF_TIME = "the time limit was reached"
