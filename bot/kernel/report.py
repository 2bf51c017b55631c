"""The verdict, a closed set of words with the numbers that carry them, and the report of a run by
the kind of its job: all that printers and GitHub ever see, and the JSON that others build on.
"""

from typing import Annotated, Any, Literal

from packaging.utils import canonicalize_name
from pydantic import Field, Tag, model_validator

from bot.kernel.attempt import Attempt, Reduced, Script
from bot.kernel.bug import AnySignature, Bisection, BugReport, Issue
from bot.kernel.dialogue import Reconstruction, Usage
from bot.kernel.environment import Environment, EnvironmentSpec, RepoSource
from bot.kernel.job import (
    BY_KIND,
    DiagnoseProgram,
    Extra,
    Interruption,
    Note,
    NoteKind,
    Proof,
    RepairProgram,
    ReproducePaper,
)
from bot.kernel.paper import PaperResult, PaperVerdict
from bot.kernel.training_types import DiagnosedRun, Repair
from bot.kernel.values import Record

Determinism = Literal["deterministic", "seed-dependent", "nondeterministic"]
ControlType = Literal[
    "fixed-version", "fixed-commit", "last-good-version", "report-contrast", "patched", "none"
]


class Effect(Record):
    """How far failing runs and control runs lie apart: the difference of their failure rates
    with its 95 % interval and, where the runs printed a number for the reported quantity,
    Cliff's delta of the two samples.
    """

    difference: float
    interval: tuple[float, float]
    delta: float | None = None
    values: tuple[float, ...] = ()
    control_values: tuple[float, ...] = ()


class Control(Record):
    """The runs that should pass. With type "none" a comment says "symptom observed", not "bug
    confirmed".

    `p` is Fisher's exact test, one-sided. `what` names the version ("x-lib 1.42.20");
    `paired_failures` of `paired_runs` are the failing environment's runs under the same seeds,
    `environment` is where the control ran, on `python`, and `moved` what else differs.
    """

    type: ControlType = "none"
    runs: int = 0
    failures: int = 0
    p: float | None = None
    what: str = ""
    paired_runs: int = 0
    paired_failures: int = 0
    effect: Effect | None = None
    environment: str = ""
    python: str = ""
    moved: tuple[str, ...] = ()


class _RunCounts(Record):
    runs: int
    failures: int
    interval: tuple[float, float]
    reason: str


class Reproduced(_RunCounts):
    """The frozen signature was met. `doubt` is why no control can confirm a bug with this program:
    it may make the difference between versions itself.
    """

    kind: Literal["reproduced"] = "reproduced"
    determinism: Determinism
    control: Control = Control()
    doubt: str = ""


class NotReproduced(_RunCounts):
    """The scenario ran as described and did not fail."""

    kind: Literal["not_reproduced"] = "not_reproduced"
    checked: tuple[str, ...] = ()
    versions_tried: tuple[str, ...] = ()


class DifferentFailure(_RunCounts):
    """It failed another way: both failures side by side."""

    kind: Literal["different_failure"] = "different_failure"
    reported: str
    seen: str


class Inconclusive(_RunCounts):
    """The runs decided nothing. `at_maximum` when only more runs could decide; `needs_reader` when
    nothing was run, because the report can be acted on but takes a reader that rules are not: it is
    no question to the reporter.
    """

    kind: Literal["inconclusive"] = "inconclusive"
    at_maximum: bool = False
    needs_reader: bool = False


class NeedsInfo(Record):
    """Something is missing for anybody: what only the reporter knows or, `from_operator`, a file or
    weights that a run asked for and the host lacks, which is no question to the reporter.
    """

    kind: Literal["needs_info"] = "needs_info"
    reason: str
    items: tuple[str, ...] = Field(max_length=4)
    from_operator: bool = False


class NeedsHardware(Record):
    """The signature demands hardware that this runner has not."""

    kind: Literal["needs_hardware"] = "needs_hardware"
    reason: str
    needs: tuple[str, ...] = ()


class SetupFailed(Record):
    """The environment could not be built."""

    kind: Literal["setup_failed"] = "setup_failed"
    reason: str
    tried: tuple[str, ...] = ()


class NotABug(Record):
    """A question, a feature request or documentation, not a bug."""

    kind: Literal["not_a_bug"] = "not_a_bug"
    reason: str
    sentence: str


class Cancelled(Record):
    """Stopped by a person."""

    kind: Literal["cancelled"] = "cancelled"
    reason: str


class BudgetReached(Record):
    """Stopped by a limit."""

    kind: Literal["budget_reached"] = "budget_reached"
    reason: str


AnyVerdict = Annotated[
    Reproduced
    | NotReproduced
    | DifferentFailure
    | Inconclusive
    | NeedsInfo
    | NeedsHardware
    | SetupFailed
    | NotABug
    | Cancelled
    | BudgetReached,
    Field(discriminator="kind"),
]


class Claim(Record):
    """A statement of the bug report, and whether the runs support it."""

    text: str
    holds: bool | None
    evidence: str = ""


class Comparison(Record):
    """A row of the "reported / observed" table."""

    what: str
    reported: str
    observed: str


class RunReport(Record):
    """What a job of any kind leaves behind: where it ran, its attempts, what it cost, and notes.
    A report of each kind adds what was asked for and its result.

    `seconds` has "total" and one entry a stage; `sandbox` names what the runs were done in; `cost`
    is what models used, `models` who answered. `interrupted` is the note that says why a run with
    a result stopped before its work was complete, "" when it did not. `defects` are the tracebacks
    of errors of our own that ended a part of it.
    """

    environment: Environment | None = None
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[Note, ...] = ()
    interrupted: str = ""
    seconds: dict[str, float] = {}
    sandbox: str = ""
    version: str = ""
    prompts: dict[str, str] = {}
    cost: Usage = Usage()
    models: tuple[str, ...] = ()
    defects: dict[Extra, str] = {}

    def notes_on(self, *kinds: NoteKind) -> tuple[str, ...]:
        """The sentences of the notes of these kinds, in order; of all kinds when none is named."""
        return tuple(note.text for note in self.notes if not kinds or note.kind in kinds)


class IssueReport(RunReport):
    """The report of an issue. `bug` is not stored: it can be read from the issue again.

    `command` runs the script anywhere, `command_needs` says what that cannot bring along.
    `reconstruction` is a model's part in it. `reduced` is how the script came to be as small as it
    is, `control_spec` how the control's environment is had. `bisection` found a boundary or is the
    newest, `other_bisections` are of other packages; `clone` is where commits were bisected.
    `cut_short` names the proofs that were interrupted and why. `diagnosis` is of a run of the
    program with the training probe, `repair` the patch that was found for it.
    """

    kind: Literal["reproduce_issue"] = "reproduce_issue"
    issue: Issue
    bug: BugReport | None = Field(default=None, exclude=True)
    verdict: AnyVerdict
    signature: AnySignature | None = None
    signature_hash: str = ""
    spec: EnvironmentSpec | None = None
    script: Script | None = None
    command: str = ""
    command_needs: str = ""
    comparison: tuple[Comparison, ...] = ()
    claims: tuple[Claim, ...] = ()
    reconstruction: Reconstruction | None = None
    bisection: Bisection | None = None
    other_bisections: tuple[Bisection, ...] = ()
    clone: RepoSource | None = None
    reduced: Reduced | None = None
    control_spec: EnvironmentSpec | None = None
    cut_short: dict[Proof, Interruption] = {}
    diagnosis: DiagnosedRun | None = None
    repair: Repair | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_stored_reading(cls, data: Any) -> Any:
        """Reports of older releases hold the reading too."""
        if isinstance(data, dict) and isinstance(data.get("bug"), dict):
            return {name: value for name, value in data.items() if name != "bug"}
        return data

    @property
    def repaired_instead(self) -> bool:
        """Whether a proven repair is the answer: the verdict only lacks a failure to look for."""
        proven = self.repair is not None and self.repair.proven
        return proven and (self.verdict.kind == "needs_info" or self.needs_reader)

    @property
    def needs_reader(self) -> bool:
        """Whether nothing was decided because the report takes a reader, or what the operator
        has; nothing is asked of the reporter.
        """
        if isinstance(self.verdict, NeedsInfo):
            return self.verdict.from_operator
        return isinstance(self.verdict, Inconclusive) and self.verdict.needs_reader

    def draft(self) -> "ReportDraft":
        """A copy that can be changed: to go on from a report, or to tell it in another way."""
        return ReportDraft(**dict(self))


class ReportDraft(IssueReport, frozen=False):
    """A report in the making: the fields of a report, which the parts of a job fill in."""

    def finish(self) -> IssueReport:
        """The report, checked; it changes no more."""
        return IssueReport(**dict(self))


class DiagnosisReport(RunReport):
    """The report of a program whose training was diagnosed; without an environment it did not
    run.
    """

    kind: Literal["diagnose_program"] = "diagnose_program"
    job: DiagnoseProgram
    result: DiagnosedRun


class RepairReport(RunReport):
    """The report of a program for which a better choice of hyperparameters was looked for."""

    kind: Literal["repair_program"] = "repair_program"
    job: RepairProgram
    result: Repair


class PaperReport(RunReport):
    """The report of a paper whose number was held against its repository."""

    kind: Literal["reproduce_paper"] = "reproduce_paper"
    job: ReproducePaper
    result: PaperResult

    @property
    def verdict(self) -> PaperVerdict:
        """What came of it, by its kind."""
        return self.result.verdict

    def draft(self) -> "PaperReportDraft":
        """A copy that can be changed."""
        return PaperReportDraft(**dict(self))


class PaperReportDraft(PaperReport, frozen=False):
    """A paper's report that can be changed."""

    def finish(self) -> PaperReport:
        """The report, checked; it changes no more."""
        return PaperReport(**dict(self))


RequestedReport = Annotated[
    Annotated[IssueReport, Tag("reproduce_issue")] | Annotated[PaperReport, Tag("reproduce_paper")],
    BY_KIND,
]
"""What came of a job that was asked for on an issue."""


def package_under_test(report: RequestedReport) -> str:
    """What was tested, for a list of runs: the commit of the repository, its package with its
    version, or the first package whose version the bug report names; "" where nothing was built.
    """
    environment = report.environment
    if environment is None:
        return ""
    if environment.commit:
        return f"commit {environment.commit[:12]}"
    issue = report.issue if isinstance(report, IssueReport) else report.job.issue
    repository = issue.repository if issue is not None else None
    home = canonicalize_name((repository or "").rpartition("/")[2])
    rows = [(package.name, package.version) for package in environment.packages]
    own = [row for row in rows if canonicalize_name(row[0]) == home]
    claims = [(claim.name, claim.resolved) for claim in environment.claims if claim.resolved]
    return " ".join(next(iter(own + claims), ()))


AnyReport = Annotated[
    IssueReport | DiagnosisReport | RepairReport | PaperReport,
    Field(discriminator="kind"),
]
"""What came of a job, by its kind, as `Job` is what was asked for."""
