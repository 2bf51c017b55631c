"""The verdict in words: its name, its numbers, its control, and what to do next."""

import shlex

from bot.models.job import PROOFS
from bot.models.report import (
    BudgetReached,
    DifferentFailure,
    Inconclusive,
    NotReproduced,
    Report,
    Reproduced,
    SetupFailed,
)
from bot.render.phrases import bisection, control as controls, count, sentence
from bot.rules import setup_failures
from bot.rules.packages import complaints
from bot.rules.verdicts import KINDS

DETERMINISM = {
    "deterministic": "deterministic",
    "seed-dependent": "depends on the seed",
    "nondeterministic": "varies even with the same seed",
}

_LONGER = "Run it longer with --max-runs, or with another --seed."
_FROM_CLONE = "build the repository at"


def figures(report: Report) -> str:
    """The figures behind the verdict."""
    verdict = report.verdict
    match verdict:
        case Reproduced():
            runs = f"{verdict.failures} of {count(verdict.runs, 'confirming run')}"
            if verdict.failures == verdict.runs:
                runs = f"{'both' if verdict.runs == 2 else f'all {verdict.runs}'} confirming runs"
            found = f"{runs} ({interval(*verdict.interval)})"
            it = "the failure is" if verdict.determinism == "deterministic" else "it"
            how = DETERMINISM[verdict.determinism]
            return f"the reported failure occurred in {found}; {it} {how}"
        case NotReproduced() | Inconclusive() if verdict.runs:
            return f"{counted(verdict)} failed as reported"
        case DifferentFailure():
            some = verdict.failures or "none"
            return f"{some} of {count(verdict.runs, 'run')} failed as reported"
        case BudgetReached():
            return f"{count(len(report.attempts), 'program run')} completed"
    return ""


def counted(verdict: NotReproduced | Inconclusive) -> str:
    """How many runs failed, with the interval."""
    return f"{verdict.failures} of {count(verdict.runs, 'run')} ({interval(*verdict.interval)})"


def interval(low: float, high: float) -> str:
    """A 95 % confidence interval of a failure rate."""
    return f"95 % confidence interval {low * 100:.0f}\u2013{high * 100:.0f} %"


def standing(report: Report) -> str:
    """Whether the bug is confirmed, the program only differs between versions, or only its symptom
    was seen; "" for verdicts that claim nothing of it.
    """
    if not isinstance(report.verdict, Reproduced):
        return ""
    control = report.verdict.control
    if control.type == "none":
        return f"{shown_by(report)}: {_uncontrolled(report)}."
    weak = "" if controls.sets_apart(control) else ", which is not a significant difference"
    line = controls.control_line(report.verdict, controls.reported_version(report))
    return f"{shown_by(report)}: {line}{weak}."


def _uncontrolled(report: Report) -> str:
    """Why there is no control, or what comes closest to one."""
    if passed := bisection.passing(report):
        return f"{passed}, but it was not compared in paired runs"
    if smaller := controls.smaller_programs(report):
        return f"{smaller}, but they were not compared in paired runs"
    if "control" in report.cut_short:
        return "the search for a working version was stopped early"
    if fails := controls.failing(report):
        return f"no working version was found; the program also fails with {fails}"
    return "the program was not compared with a version that works"


def shown_by(report: Report) -> str:
    """What a control says about the failure."""
    if not controls.sets_apart(controls.of(report)):
        return "Symptom observed"
    return "Differs between versions" if unconfirmed(report) else "Bug confirmed"


def unconfirmed(report: Report) -> str:
    """Why a control that sets the failure apart confirms no bug, as a sentence; or ""."""
    verdict = report.verdict
    if not isinstance(verdict, Reproduced) or not verdict.doubt:
        return ""
    apart = controls.sets_apart(verdict.control)
    return f"This does not confirm a bug: {verdict.doubt}." if apart else ""


def reason(report: Report) -> str:
    """Why, as a sentence."""
    return sentence(report.verdict.reason)


def next_step(report: Report, run: str = "") -> str:
    """What the reader would do now; `run` is the folder of the run."""
    named = shlex.quote(run) if run else "RUN"
    cut = [proof for proof in PROOFS if proof in report.cut_short]
    if cut and report.verdict.kind != "needs_info":
        commands = " and ".join(f"reprise {proof} {named}" for proof in cut)
        return f"Run {commands} to resume the unfinished work."
    if isinstance(report.verdict, Reproduced):
        return _next_control(report, f"reprise control {named}")
    if isinstance(report.verdict, Inconclusive) and report.verdict.at_maximum:
        return _LONGER
    return KINDS[report.verdict.kind].next_step or _unbuilt(report)


def _next_control(report: Report, command: str) -> str:
    """What turns a failure into a confirmed bug, and a confirmed bug into a test."""
    control = controls.of(report)
    if unconfirmed(report):
        return "Provide a program that does the same in every version, then run Reprise again."
    if controls.sets_apart(control):
        return "Turn the script into a regression test."
    if control.type == "none" and bisection.passing(report):
        return f"Run {command} to test against the version that passed in the bisection."
    if control.type == "none" and controls.smaller_programs(report):
        return f"Run {command} to test against the version in which smaller programs passed."
    if control.type == "none" and controls.failing(report):
        return "Look by hand for a version in which the program passes."
    return f"Run {command} --minutes 60 to find a version in which the program passes."


def _unbuilt(report: Report) -> str:
    """What to build instead; a package that no index has may come from a clone."""
    verdict, spec = report.verdict, report.spec
    tried = verdict.tried if isinstance(verdict, SetupFailed) else ()
    text = " ".join((verdict.reason, *tried))
    if setup_failures.made_here(text):
        return "Make PyTorch's package index reachable: its torchvision has the compiled operators."
    module = [name for name in tried[:1] if name.replace(".", "_").isidentifier()]
    unknown = complaints.unknown(text) or module
    cloned = _FROM_CLONE in text or (spec is not None and spec.repo is not None)
    if unknown and not cloned:
        return (
            f"Add a clone of {unknown[0]} with --repo PATH --ref REF, "
            "or name a package that provides it with --with 'package==version'."
        )
    return "Try another version with --with 'package==version', or another Python with --python."
