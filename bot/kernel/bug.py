"""The issue as its author wrote it and as it has been read; the failure signature; bisections."""

from __future__ import annotations

import hashlib
from datetime import datetime, time
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from bot.kernel.values import Record

# The issue as its author wrote it, and as it has been read: every field says which words it came
# from.

MOST_BODY = 65_536
"""Characters of an issue's body, GitHub's own limit. What is beyond them is not read."""


DAY_END = time(23, 59, 59)
"""The time of a report of which only the day is known."""


class Issue(Record):
    """A bug report before anyone has read it. `repository` is "owner/name", or "" when the
    source does not say.
    """

    title: str
    body: str
    repository: str = ""
    number: int | None = None
    author: str = ""
    created_at: datetime | None = None
    labels: tuple[str, ...] = ()
    url: str = ""
    clone_url: str = ""

    @property
    def has_day_only(self) -> bool:
        """Whether only the day of the report is known."""
        return self.created_at is not None and self.created_at.time() == DAY_END


class Quote(Record):
    """Words of the issue and where they stand. `line` is 1-based in the body, 0 for the title
    and labels.
    """

    text: str
    source: Literal["title", "body", "label", "option"] = "body"
    line: int = 0


class ReportKind(StrEnum):
    """What the author wants."""

    BUG = "bug"
    QUESTION = "question"
    FEATURE = "feature"
    DOCUMENTATION = "documentation"


class Symptom(StrEnum):
    """The class of failure that is reported."""

    CRASH = "crash"
    NONFINITE = "nonfinite"
    NOT_LEARNING = "not_learning"
    WRONG_VALUE = "wrong_value"
    SAVE_LOAD = "save_load"
    PERFORMANCE = "performance"
    HANG = "hang"
    WARNING = "warning"
    MISSING_ERROR = "missing_error"
    UNKNOWN = "unknown"


class FenceKind(StrEnum):
    """What a block of text is, judged by its content and not by its tag."""

    PROGRAM = "program"
    TRACEBACK = "traceback"
    OUTPUT = "output"
    LOG = "log"
    SHELL = "shell"
    ENVIRONMENT = "environment"
    REQUIREMENTS = "requirements"
    CONFIG = "config"
    DIFF = "diff"
    DATA = "data"
    EMPTY = "empty"


class Role(StrEnum):
    """What a block is for, judged by the heading and the words before it."""

    REPRODUCER = "reproducer"
    OBSERVED = "observed"
    EXPECTED = "expected"
    FIX = "fix"
    CONTRAST = "contrast"
    SOURCE = "source"
    UNSTATED = "unstated"


class ScriptFix(Record):
    """One small repair made to the reporter's program, in words a reader can check."""

    what: str
    why: str


class Fence(Record):
    """One block of the issue. `text` is cleaned (prompts stripped, dedented, prose set aside)
    and `fixes` say how; `raw` is verbatim.

    For a transcript (doctest, notebook) `outputs` holds what its author saw, in order.
    """

    index: int
    tag: str
    kind: FenceKind
    role: Role = Role.UNSTATED
    text: str
    raw: str
    line: int
    fixes: tuple[ScriptFix, ...] = ()
    outputs: tuple[str, ...] = ()
    installs: tuple[str, ...] = ()


class Frame(Record):
    """One frame of a reported traceback. `package` is the top-level import name when the file
    lies in site-packages (or is a notebook's or script's own: ""); `module_path` is the path
    from there on, e.g. "torch/nn/modules/linear.py".
    """

    path: str
    package: str = ""
    module_path: str = ""
    line: int | None = None
    function: str = ""
    code: str = ""


class Traceback(Record):
    """A Python traceback found in the report. `exception` is as printed (possibly dotted);
    frames run outermost to innermost and may be empty when only the last line was pasted.
    `chained` are the exceptions printed before it (causes and contexts). `statements` are those of
    a program of which a remark says that they fail so, where no frames do.
    """

    exception: str
    message: str
    frames: tuple[Frame, ...] = ()
    chained: tuple[Traceback, ...] = ()
    statements: tuple[str, ...] = ()
    fence: int | None = None
    line: int = 0


class WarningText(Record):
    """A warning quoted in the report; `category` may be "" when only the words were given."""

    category: str
    message: str
    quote: Quote


class VersionClaim(Record):
    """A version the report names. `name` is the normalised distribution name, or "python";
    `version` is as written, e.g. "2.4.x", "2.12.0+cu126", "master". `source` ranks it: what a
    program printed is worth more than what a person typed.
    """

    name: str
    version: str
    source: Literal["option", "dump", "requirements", "traceback", "text", "label"]
    quote: Quote


class Output(Record):
    """Text that the author says was, or should have been, printed."""

    text: str
    role: Literal["observed", "expected"]
    fence: int | None = None
    line: int = 0


class Described(Record):
    """A value that a program of the report uses and that only its words describe: an array of
    these `sizes`, or any model.
    """

    name: str
    kind: Literal["array", "model"]
    sizes: tuple[int, ...] = ()
    quote: Quote


class Missing(Record):
    """Something the report points at that cannot be had here: an attachment, a screenshot, a
    gist, a hub checkpoint.
    """

    what: Literal["attachment", "screenshot", "gist", "notebook", "link", "data"]
    quote: Quote


class ShellCommand(Record):
    """A command of the report that starts a Python program: what follows the interpreter (or a
    shell, before a `.sh` file), the folder that the commands before it change to (below the
    repository), the variables that it sets, and the words as the report has them. One that the
    report does not state is the start of a file that a `frame` of its traceback or its words
    (`named`) tell of: to be looked up in the tree, and a guess. `before` are the commands that the
    same block starts earlier in the same folder, each as its `argv`.
    """

    argv: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    source: Literal["", "frame", "named"] = ""
    folder: str = ""
    variables: dict[str, str] = {}
    quote: Quote

    @property
    def words(self) -> tuple[str, ...]:
        """The command with what starts it."""
        return ("bash" if self.argv[0].endswith(".sh") else "python", *self.argv)

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of the tests that it runs, without their files and classes."""
        words = self.argv[2:] if self.argv[:2] == ("-m", "pytest") else ()
        if words[:1] == ("-k",):
            return tuple(words[1].split(" or "))
        names = (word.rpartition("::")[2] for word in words if "::" in word)
        return tuple(dict.fromkeys(names))


class TrainingComplaint(Record):
    """A training of which the report says that it learns too little: the metric by the name that
    the report uses, "" where it names none, the value it stays at (None where it is only said not
    to change) and the one that was expected. A percentage is a share.
    """

    metric: str
    reported: float | None = None
    expected: float | None = None
    quote: Quote


class BugReport(Record):
    """What intake makes of an issue. Pure data; nothing in it is guessed without a quote.
    `cpu_is_right` is the sentence that says so, of a value that is wrong elsewhere; `system` is
    where it happens, if that is not Linux, and `variables` are those that its sentences set.
    `unread` are sentences on what of the issue is beyond a limit.
    """

    kind: ReportKind
    kind_quote: Quote | None = None
    symptom: Symptom = Symptom.UNKNOWN
    symptom_quote: Quote | None = None
    fences: tuple[Fence, ...] = ()
    tracebacks: tuple[Traceback, ...] = ()
    warnings: tuple[WarningText, ...] = ()
    outputs: tuple[Output, ...] = ()
    versions: tuple[VersionClaim, ...] = ()
    works_in: tuple[VersionClaim, ...] = ()
    device: Literal["cpu", "gpu", "tpu", "mps", ""] = ""
    cpu_is_right: Quote | None = None
    system: Literal["Windows", "macOS", ""] = ""
    variables: dict[str, str] = {}
    api: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    complaint: TrainingComplaint | None = None
    commands: tuple[ShellCommand, ...] = ()
    named_programs: tuple[ShellCommand, ...] = ()
    notebooks: tuple[str, ...] = ()
    described: tuple[Described, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def programs(self) -> tuple[Fence, ...]:
        """The blocks that are Python programs or parts of one."""
        return tuple(fence for fence in self.fences if fence.kind is FenceKind.PROGRAM)


# The failure signature: what will count as the reported failure, frozen and hashed before
# anything runs.


class Place(Record):
    """A line of a quoted traceback: `file` is a path below site-packages, or "" for the program's
    own.
    """

    file: str = ""
    function: str = ""
    line: int | None = None
    code: str = ""


class CrashSignature(Record):
    """An exception: its class, its whole message, the operand shapes in it, and where it arose.

    `exception` is "" where the report quotes words without a class. `message` is as reported; how
    it is compared is in `bot.issues.signature.wording`. `frame` is a path below site-packages, e.g.
    "torch/nn/modules/linear.py", or "" when the report does not show it; `places` are all lines of
    the quoted traceback, outermost first. `checks` are source lines of the program whose failure
    counts (of bare assertions and remarks on a statement; beside a `message` both have to fit).
    """

    kind: Literal["crash"] = "crash"
    exception: str
    message: str = ""
    shapes: tuple[str, ...] = ()
    frame: str = ""
    function: str = ""
    places: tuple[Place, ...] = ()
    checks: tuple[str, ...] = ()


class OutputSignature(Record):
    """Printed values: each chunk of `observed` lines stands together in the output and no chunk
    of `expected` does. They are as reported but for blanks; how they are compared is in
    `bot.issues.signature.values`.

    Numbers agree within `rtol` (relative) or `atol`; NaN and infinities only with themselves. With
    `within_line` the values come from a sentence of the report ("returns nan instead of 1.0") and a
    part of a printed line is enough.
    """

    kind: Literal["output"] = "output"
    observed: tuple[tuple[str, ...], ...]
    expected: tuple[tuple[str, ...], ...] = ()
    within_line: bool = False
    rtol: float = 1e-3
    atol: float = 1e-6


class NonFiniteSignature(Record):
    """A NaN or an infinity among the values the program prints for the reported quantity.
    `labels` are words of the printing line.
    """

    kind: Literal["nonfinite"] = "nonfinite"
    values: tuple[Literal["nan", "inf"], ...]
    labels: tuple[str, ...] = ()


class WarningSignature(Record):
    """A warning of this category and wording, at least `at_least` times."""

    kind: Literal["warning"] = "warning"
    category: str = ""
    message: str
    at_least: int = 1


class HangSignature(Record):
    """No progress: the program still lives after `bound_s` seconds without output and, if
    `idle`, without using the processor.
    """

    kind: Literal["hang"] = "hang"
    bound_s: float
    idle: bool = True


class Predicate(Record):
    """A condition on one value. `value` is JSON; comparisons of numbers allow `rtol`. "type"
    compares the name of a type, "contains" holds for text and lists, "finite" and "nan" need no
    value.
    """

    op: Literal["==", "!=", "<", "<=", ">", ">=", "contains", "lacks", "type", "finite", "nan"]
    value: bool | int | float | str | tuple[bool | int | float | str | None, ...] | None = None
    rtol: float = 1e-4


class ObservationSignature(Record):
    """A silent failure as a predicate over a value that the program computes and prints in one
    JSON line `REPRISE {"<name>": value}`: `wrong` holds when the report is right, `right` when
    the library does what it should. A value for which neither or both hold decides nothing.
    `api` are dotted names of the package that the value must come from; `says` is the reported
    claim in one sentence, for people.
    """

    kind: Literal["observation"] = "observation"
    name: str
    says: str
    wrong: Predicate
    right: Predicate
    api: tuple[str, ...]


class TrainingSignature(Record):
    """A training that learns too little: the last value that the program prints of `metric` is not
    better than `bound`; without a bound, its last value is no better than its first. `direction`
    says which way is better. `reported` is the value that the report gives and `expected` the one
    that it expects, if it says so; a percentage is a share. A `probed` one is not printed: the
    training probe reads it.
    """

    kind: Literal["training"] = "training"
    metric: str
    direction: Literal["max", "min"]
    bound: float | None = None
    reported: float | None = None
    expected: float | None = None
    probed: bool = False


class FailedTestSignature(Record):
    """A test of the repository whose assertion fails, one of these by their names."""

    kind: Literal["test"] = "test"
    tests: tuple[str, ...]


Member = Annotated[
    CrashSignature
    | OutputSignature
    | NonFiniteSignature
    | WarningSignature
    | HangSignature
    | ObservationSignature
    | TrainingSignature
    | FailedTestSignature,
    Field(discriminator="kind"),
]


class AlternativesSignature(Record):
    """Several ways in which the report shows one failure; any of them counts."""

    kind: Literal["any"] = "any"
    members: tuple[Member, ...]


AnySignature = Annotated[
    CrashSignature
    | OutputSignature
    | NonFiniteSignature
    | WarningSignature
    | HangSignature
    | ObservationSignature
    | TrainingSignature
    | FailedTestSignature
    | AlternativesSignature,
    Field(discriminator="kind"),
]


def members_of(signature: AnySignature) -> tuple[Member, ...]:
    """The signatures of which any one counts."""
    return signature.members if isinstance(signature, AlternativesSignature) else (signature,)


def trains(signature: AnySignature) -> bool:
    """Whether what a training learns counts as the failure."""
    return any(isinstance(member, TrainingSignature) for member in members_of(signature))


def signature_hash(signature: Record) -> str:
    """SHA-256 of the canonical JSON of a signature, as published in every report."""
    return hashlib.sha256(signature.model_dump_json().encode()).hexdigest()


# Where a failure came in and where it went: releases or commits, the probes made, and the two
# boundaries.

Wheels = Literal["none", "any", "linux"]
Outcome = Literal["fails", "passes", "untestable", "uninstallable", "undecided"]


class Release(Record):
    """One version of a distribution, as the index offers it. `uploaded_at` is None where the
    index does not say. `wheels` are those for Linux, "any" when they are for everything else
    too, "linux" when one is compiled; None where that is not known.
    """

    version: str
    uploaded_at: datetime | None = None
    yanked: bool = False
    prerelease: bool = False
    wheels: Wheels | None = None


class Commit(Record):
    """One commit: its full id, the first line of its message and when it was committed."""

    id: str
    subject: str = ""
    date: datetime | None = None


class Provided(Record):
    """What a commit of a repository provides: the name of its distribution ("" when it is not
    written down), the modules that can be imported once it lies on the path, and those of a
    build of it.
    """

    name: str = ""
    on_path: tuple[str, ...] = ()
    built: tuple[str, ...] = ()


class Point(Record):
    """One side of a boundary: a version or a commit, and its date. Of a commit also the first
    tag that has it (`first_in`), and without one the nearest tag before it (`after`).
    """

    at: str
    date: datetime | None = None
    subject: str = ""
    first_in: str = ""
    after: str = ""


class Probe(Record):
    """What the script did at one release or commit. `runs` are the conclusive ones, `failures`
    those that failed as reported; `moved` are other packages whose version had to change.
    """

    at: str
    date: datetime | None = None
    outcome: Outcome
    runs: int = 0
    failures: int = 0
    reason: str = ""
    moved: tuple[str, ...] = ()
    environment: str = ""


class Skipped(Record):
    """A release or commit that was left out or could not be tested, and why."""

    at: str
    why: str


class Bisection(Record):
    """A search over the releases of a package, or over the commits of a repository.

    "Introduced" lies between `last_good` and `first_bad`, "fixed" between `last_bad` and
    `first_fixed`. If the versions between them could not be tested, `introduced_among`
    (`fixed_among`) lists every candidate, the newer side of the boundary last; it is empty if the
    boundary is exact. `oldest` and `newest` are the outcomes at the two ends of the range. `risk`
    bounds the chance that any probe was misjudged, for a failure that occurs at least at `rate`;
    `regular` is false when probes contradict a single introduction and a single fix.
    `introduced_by` and `fixed_by` are the commits between the two sides, if a clone is available.
    `ends` says what the commits named as good and bad did instead; there is no boundary then.
    """

    package: str
    over: Literal["releases", "commits"] = "releases"
    bad: str
    first_bad: Point | None = None
    last_good: Point | None = None
    last_bad: Point | None = None
    first_fixed: Point | None = None
    introduced_among: tuple[str, ...] = ()
    fixed_among: tuple[str, ...] = ()
    oldest: Outcome | None = None
    newest: Outcome | None = None
    probes: tuple[Probe, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    risk: float = 0.0
    rate: float = 1.0
    regular: bool = True
    changelog: str = ""
    introduced_by: tuple[Commit, ...] = ()
    fixed_by: tuple[Commit, ...] = ()
    stopped: str = ""
    ends: str = ""
    notes: tuple[str, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether it found where the failure came in or went."""
        return self.first_bad is not None or self.first_fixed is not None

    @property
    def swapped(self) -> bool:
        """Whether the two commits that were named did the reverse of what was said of them."""
        outcomes = {probe.at: probe.outcome for probe in self.probes}
        return (
            bool(self.ends) and outcomes.get(self.bad) == "passes" and "fails" in outcomes.values()
        )

    def told_by(self, other: Bisection) -> bool:
        """Whether another one says all that this one does: of the same package, and no boundary
        less.
        """
        same = (self.package, self.over) == (other.package, other.over)
        return same and (other.bounded or not self.bounded)
