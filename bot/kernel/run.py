"""Webhook deliveries, the runs that they ask for, the plan of a run, and what a pull request is
made of.
"""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from enum import StrEnum
from typing import Literal

from bot.kernel.attempt import Script
from bot.kernel.bug import AnySignature, BugReport, Issue, ShellCommand, signature_hash
from bot.kernel.environment import EnvironmentSpec
from bot.kernel.job import Extra, RequestedJob
from bot.kernel.report import AnyVerdict
from bot.kernel.values import Record

# Webhook deliveries, the runs that they ask for, and the plan of a run.

Verb = Literal[
    "reproduce", "minimize", "bisect", "control", "diagnose", "repair", "paper", "pr",
    "status", "cancel", "approve", "help", "config",
]  # fmt: skip
Trigger = Literal["opened", "labeled", "comment", "closed", "gone", "uninstalled"]


class Choices(Record):
    """The options of one command, typed and checked; None where the command does not say."""

    python: str | None = None
    pins: tuple[str, ...] = ()
    device: Literal["cpu", "gpu"] | None = None
    runs: int | None = None
    seed: int | None = None
    ref: str | None = None
    timeout_s: float | None = None
    package: str | None = None
    command: str | None = None
    metric: str | None = None
    budget: float | None = None
    claim: str | None = None
    minutes: float | None = None


class Command(Record):
    """One `/reproduce …` line. `verb` is "" when it was not understood; `problems` are sentences
    for whoever wrote it.
    """

    text: str
    verb: Verb | Literal[""] = "reproduce"
    choices: Choices = Choices()
    argument: str = ""
    problems: tuple[str, ...] = ()


class Repository(Record):
    """A repository an installation covers. `full_name` is "owner/name"."""

    id: int
    full_name: str
    private: bool = False
    default_branch: str = "main"
    clone_url: str = ""


class Delivery(Record):
    """One webhook delivery that concerns us. Title, body and commands are those of the payload:
    what is edited later is not looked at.

    `trigger` "closed" is an issue that was closed; "gone" one that was deleted or transferred, or a
    repository that left the installation (`issue` None); "uninstalled" ends everything of
    `installation` (`repository` None). `comment` is the id of the comment that holds `commands`.
    `label` is the one that was set, for "labeled". `digest` is the SHA-256 of the body, with a
    number where one delivery stands for several.
    """

    guid: str
    event: str
    action: str
    trigger: Trigger
    installation: int
    repository: Repository | None = None
    issue: Issue | None = None
    pull_request: bool = False
    sender: str = ""
    label: str = ""
    comment: int | None = None
    commands: tuple[Command, ...] = ()
    received_at: datetime
    digest: str = ""

    @property
    def cause(self) -> str:
        """What this delivery does is done once under this name, however often it is sent."""
        return self.digest or self.guid


class RunState(StrEnum):
    """Where a run stands.

    WAITING for an approval → QUEUED → RUNNING → REPORTED (the verdict is stored, GitHub does not
    show it yet) → FINISHED (with an `error` where GitHub took no comment). FAILED is a defect of
    ours. A run that a dead worker left goes back
    from RUNNING to QUEUED.
    """

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    REPORTED = "reported"
    FINISHED = "finished"
    FAILED = "failed"


LIVE = frozenset({RunState.WAITING, RunState.QUEUED, RunState.RUNNING, RunState.REPORTED})
"""States that something will still come of."""


class NewRun(Record):
    """A run that is asked for. `delivery` and `ordinal` (which command of it) make it unique:
    asking twice is asking once.

    `plan` is the hash of all that an approval covers; `comment` the id of the asking comment, None
    for the issue itself; `proof` what a command such as `/reproduce bisect` asked for by name;
    `asked_at` when the delivery was received.
    """

    delivery: str
    ordinal: int = 0
    installation: int
    repository: Repository
    number: int
    comment: int | None = None
    requester: str
    trigger: Trigger
    job: RequestedJob
    device: Literal["cpu", "gpu"] = "cpu"
    plan: str = ""
    proof: Extra | None = None
    asked_at: datetime | None = None
    state: Literal[RunState.WAITING, RunState.QUEUED] = RunState.QUEUED

    @property
    def issue(self) -> Issue:
        """The issue that the run is about."""
        assert self.job.issue is not None
        return self.job.issue


class Run(Record):
    """A run as the store knows it.

    `id` is unguessable (it is the address of the run's page); `plan` is the hash that `/reproduce
    approve` names; `turn` counts how often it was offered to the queue, `takes` how often a worker
    took it; `cancelled_by` is the login of whoever asked to stop it; `progress` the last line of
    what went on; `seconds` the compute time used so far; `patch` whether its report has
    one, and a proven one; `package` what was tested, with its version or commit.
    """

    id: str
    request: NewRun
    state: RunState
    plan: str = ""
    turn: int = 0
    takes: int = 0
    approved_by: str = ""
    cancelled_by: str = ""
    stage: str = ""
    progress: str = ""
    verdict: str = ""
    patch: Literal["", "unproven", "proven"] = ""
    package: str = ""
    error: str = ""
    seconds: float = 0.0
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None


class VerdictCount(Record):
    """How many runs that were asked for on a day (UTC) ended in a verdict, "" for those without."""

    day: date
    verdict: str
    runs: int


def approval_hash(run: str, plan: str) -> str:
    """What `/reproduce approve` names: a run by its id and the hash of its plan, in 32 digits.

    The id is drawn for this one run, so nobody can aim at a hash. That no two plans of an issue
    share one needs no check: with n of them, the chance is about n² in 2**129.
    """
    return hashlib.sha256(f"{run}\0{plan}".encode()).hexdigest()[:32]


class RunPlan(Record):
    """The plan of a job. With a `verdict` nothing is run; otherwise `script` is the first
    program to try, `others` follow. `self_made`: the report's program brings its failure about
    by itself. `contrasts` are the variants that should work; they run beside a failure that was
    confirmed. `training` is a program that may run for a diagnosis alone. `commands` are those that
    may run in the repository's clone, before any snippet or in place of one.
    """

    bug: BugReport
    signature: AnySignature | None = None
    script: Script | None = None
    others: tuple[Script, ...] = ()
    contrasts: tuple[Script, ...] = ()
    spec: EnvironmentSpec | None = None
    verdict: AnyVerdict | None = None
    self_made: bool = False
    training: Script | None = None
    commands: tuple[ShellCommand, ...] = ()

    @property
    def runs_nothing(self) -> bool:
        """Whether no program of the report will be run."""
        return self.verdict is not None and self.training is None and not self.commands

    @property
    def is_no_bug(self) -> bool:
        """Whether the text is no bug report."""
        return self.verdict is not None and self.verdict.kind == "not_a_bug"

    @property
    def scripts(self) -> tuple[Script, ...]:
        """The programs in the order in which they will be tried."""
        return (self.script, *self.others) if self.script is not None else ()

    @property
    def hash(self) -> str:
        """SHA-256 over all that an approval is given to: what counts, the programs, the
        environment.
        """
        parts = [
            signature_hash(self.signature) if self.signature is not None else "",
            *(script.digest for script in (*self.scripts, *self.contrasts)),
            *([self.training.digest] if self.training is not None else []),
            self.spec.model_dump_json() if self.spec is not None else "",
            *(command.model_dump_json() for command in self.commands),
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class PaperPlan(Record):
    """The plan of a paper's job: what runs is the `command`, "" for the one that the README gives,
    in the repository at its `ref`. `paper` is the one that the issue names, "" where the repository
    does.
    """

    paper: str = ""
    claim: str = ""
    command: str = ""
    repo: str = ""
    ref: str = ""

    @property
    def runs_nothing(self) -> bool:
        """Whether there is no repository to run anything in."""
        return not self.repo

    @property
    def is_no_bug(self) -> bool:
        """A paper is asked for by name."""
        return False

    @property
    def hash(self) -> str:
        """SHA-256 over all that an approval is given to."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


JobPlan = RunPlan | PaperPlan
"""What will run for a job, shown to whoever approves it."""


# What a pull request is made of: files of the repository, a change of its own code, and what is
# proposed to it.

Framework = Literal["pytest", "unittest"]

REGULAR = frozenset({"100644", "100755"})
"""Modes of files that are neither links nor submodules."""


class TreeEntry(Record):
    """A file of a commit, by git's mode: "120000" is a link, "160000" a submodule, "040000" a
    folder. `sha` is the blob's id, "" for one on disk that was not hashed.
    """

    path: str
    mode: str
    size: int = 0
    sha: str = ""


class TestLayout(Record):
    """Where a repository's tests are and how they are named. `name` has `{}` for the subject, as
    in "test_{}.py"; `function` likewise.
    """

    __test__ = False  # pytest would collect it

    folder: str
    framework: Framework = "pytest"
    name: str = "test_{}.py"
    function: str = "test_{}"


class FileChange(Record):
    """A change of a file that the repository has: its whole new text, and the unified diff that
    leads there.
    """

    path: str
    text: str
    diff: str


class RepositoryPatch(Record):
    """Changes of a training program of the repository: of its own file, its modules and its
    configuration files. `program` is its path.
    """

    program: str
    changes: tuple[FileChange, ...]

    @property
    def diff(self) -> str:
        """Everything as one unified diff."""
        return "".join(change.diff for change in self.changes)


class ProposedFile(Record):
    """A file as it will be."""

    path: str
    text: str
    mode: Literal["100644", "100755"] = "100644"


class RegressionTest(Record):
    """The test of a proposal. `files` are the test itself and what it needs beside it, `command`
    runs it, `raises` names the exception that it expects, `strict` is whether an unexpected pass
    fails.
    """

    files: tuple[ProposedFile, ...]
    command: str
    framework: Framework
    raises: str
    strict: bool

    @property
    def path(self) -> str:
        """Where it is."""
        return self.files[0].path


class Proposal(Record):
    """What is proposed: a test, a change of the repository's own code, or both. `diff` is
    everything as one unified diff; `left_out` says why one of the two is not in it.
    """

    files: tuple[ProposedFile, ...]
    diff: str
    test: RegressionTest | None = None
    patch: RepositoryPatch | None = None
    left_out: str = ""
