"""The report: all that render and GitHub ever see, and the JSON that others build on."""

from typing import Literal

from bot.models.attempt import Attempt, Script
from bot.models.base import Record
from bot.models.bisect import Bisection
from bot.models.bug import BugReport
from bot.models.dialogue import Usage
from bot.models.environment import Environment, EnvironmentSpec, RepoSource
from bot.models.issue import Issue
from bot.models.job import Proof
from bot.models.note import Interruption, Note, NoteKind
from bot.models.plan import Reconstruction
from bot.models.reduced import Reduced
from bot.models.signature import AnySignature
from bot.models.verdict import AnyVerdict


class Claim(Record):
    """One thing the report says, and whether the runs bear it out."""

    text: str
    holds: bool | None
    evidence: str = ""


class Comparison(Record):
    """A row of the "reported / observed" table."""

    what: str
    reported: str
    observed: str


class Report(Record):
    """Everything one job found. `command` runs the script anywhere, `command_needs` says what
    that cannot bring along. `reconstruction` is a model's part in it, `cost` what that used,
    `models` who answered. `reduced` is how the script came to be as small as it is,
    `control_spec` how the control's environment is had. `bisection` found a boundary or is the
    newest, `other_bisections` are of other packages; `clone` is where commits were bisected.
    `interrupted` is the note that says why a run with a verdict stopped before its proofs were
    complete, "" when it did not. `cut_short` names the proofs that were interrupted and why,
    `defects` the tracebacks of errors of our own that ended one. `seconds` has "total" and one
    entry a stage; `sandbox` names what the runs were done in.
    """

    issue: Issue
    bug: BugReport | None = None
    verdict: AnyVerdict
    signature: AnySignature | None = None
    signature_hash: str = ""
    spec: EnvironmentSpec | None = None
    environment: Environment | None = None
    script: Script | None = None
    command: str = ""
    command_needs: str = ""
    comparison: tuple[Comparison, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[Note, ...] = ()
    interrupted: str = ""
    seconds: dict[str, float] = {}
    sandbox: Literal["docker", "bwrap", "process", "fake", ""] = ""
    version: str = ""
    prompts: dict[str, str] = {}
    reconstruction: Reconstruction | None = None
    cost: Usage = Usage()
    models: tuple[str, ...] = ()
    bisection: Bisection | None = None
    other_bisections: tuple[Bisection, ...] = ()
    clone: RepoSource | None = None
    reduced: Reduced | None = None
    control_spec: EnvironmentSpec | None = None
    cut_short: dict[Proof, Interruption] = {}
    defects: dict[Proof, str] = {}

    def notes_on(self, *kinds: NoteKind) -> tuple[str, ...]:
        """The sentences of the notes of these kinds, in order; of all kinds when none is named."""
        return tuple(note.text for note in self.notes if not kinds or note.kind in kinds)
