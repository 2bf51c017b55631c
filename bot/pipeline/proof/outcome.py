"""What a proof starts from, what it ends with, and how its outcome goes into the report."""

from dataclasses import dataclass

from bot.models.attempt import Reduced, Script
from bot.models.bisect import Bisection
from bot.models.environment import Environment, EnvironmentSpec, RepoSource
from bot.models.job import Interruption, Note, Proof
from bot.models.report import Claim, Control, Report, Reproduced

WEAK = {"none", "report-contrast"}
"""Control types that a release or commit that works replaces."""

NO_CONTROL = Control()


@dataclass(frozen=True, slots=True)
class Failing:
    """A confirmed failure: the script, where it fails, and what is known of it so far.

    `contrasts` are the report's own working variants of the script. `resumed` is a proof that was
    interrupted before: it takes up its earlier runs.
    """

    script: Script
    spec: EnvironmentSpec
    environment: Environment
    report: Report
    contrasts: tuple[Script, ...] = ()
    resumed: Proof | None = None

    @property
    def control(self) -> Control:
        """The control that was found so far."""
        verdict = self.report.verdict
        return verdict.control if isinstance(verdict, Reproduced) else NO_CONTROL

    @property
    def doubt(self) -> str:
        """Why no difference between versions can confirm a bug with this program, or ""."""
        verdict = self.report.verdict
        return verdict.doubt if isinstance(verdict, Reproduced) else ""


@dataclass(frozen=True, slots=True)
class ProofOutcome:
    """What one proof found. Every field has a value that means "nothing".

    `control_spec` is where smaller programs must pass. `interruption` is why the proof ended
    before it was done, `defect` the traceback of an error of ours.
    """

    proof: Proof
    notes: tuple[Note, ...] = ()
    claims: tuple[Claim, ...] = ()
    control: Control = NO_CONTROL
    control_spec: EnvironmentSpec | None = None
    bisection: Bisection | None = None
    clone: RepoSource | None = None
    reduced: Reduced | None = None
    interruption: Interruption | None = None
    defect: str = ""


def fold(report: Report, outcome: ProofOutcome) -> Report:
    """The report with the outcome of one proof. What was known is only ever added to."""
    proof, cut_short = outcome.proof, dict(report.cut_short)
    if proof == "control" and outcome.control.type not in WEAK:
        cut_short.pop("control", None)
    if outcome.interruption is not None:
        cut_short[proof] = outcome.interruption
    known = {claim.text for claim in report.claims}
    notes = dict.fromkeys(note for note in outcome.notes if note not in report.notes)
    changes: dict[str, object] = {
        "notes": (*report.notes, *notes),
        "claims": (*report.claims, *(one for one in outcome.claims if one.text not in known)),
        "cut_short": cut_short,
        "defects": report.defects | ({proof: outcome.defect} if outcome.defect else {}),
        "clone": outcome.clone or report.clone,
    }
    if outcome.control.type != "none":
        verdict = report.verdict.model_copy(update={"control": outcome.control})
        changes |= {"verdict": verdict, "control_spec": outcome.control_spec}
    if outcome.reduced is not None:
        changes |= {"reduced": outcome.reduced, "script": outcome.reduced.script}
        changes["control_spec"] = outcome.control_spec
    if outcome.bisection is not None:
        changes |= _bisections(report, outcome.bisection, cut_short=proof in cut_short)
    return report.model_copy(update=changes)


def _bisections(report: Report, found: Bisection, *, cut_short: bool) -> dict[str, object]:
    """The bisections with a new one. Those that found a boundary come first, then newer ones.

    An earlier one of the same package goes, unless it alone found a boundary. One that was
    interrupted does not replace one that was not.
    """
    earlier = [each for each in (report.bisection, *report.other_bisections) if each is not None]
    over = (found.package, found.over)
    if cut_short and any(not b.stopped and (b.package, b.over) == over for b in earlier):
        return {}
    rest = [bisection for bisection in earlier if not bisection.told_by(found)]
    first, *others = sorted((found, *rest), key=lambda bisection: not bisection.bounded)
    return {"bisection": first, "other_bisections": tuple(others)}
