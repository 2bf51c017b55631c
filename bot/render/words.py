"""What a verdict is called and how its numbers read: the sentences that the comment and the terminal share, as plain text."""

from __future__ import annotations

import shlex

from bot.models.environment import Rung
from bot.models.job import PROOFS
from bot.models.report import Report
from bot.models.signature import (
    AlternativesSignature,
    AnySignature,
    CrashSignature,
    HangSignature,
    Member,
    NonFiniteSignature,
    ObservationSignature,
    OutputSignature,
    WarningSignature,
)
from bot.models.verdict import (
    BudgetReached,
    Cancelled,
    Control,
    DifferentFailure,
    Inconclusive,
    NeedsInfo,
    NotReproduced,
    Reproduced,
    SetupFailed,
)
from bot.render import proof, written
from bot.rules.packages import complaints
from bot.rules.signatures import observed

TITLES = {
    "reproduced": "Reproduced",
    "not_reproduced": "Not reproduced",
    "different_failure": "A different failure",
    "inconclusive": "Inconclusive",
    "needs_info": "More information needed",
    "needs_hardware": "Other hardware needed",
    "setup_failed": "The environment could not be built",
    "not_a_bug": "Not a bug report",
    "cancelled": "Cancelled",
    "budget_reached": "Stopped at a limit",
}

RUNGS = {
    Rung.OPTION: "asked for",
    Rung.ISSUE: "named in the report",
    Rung.REPOSITORY: "pinned by the repository",
    Rung.NEIGHBOUR: "nearest version still offered",
    Rung.DATE: "newest on the day of the report",
    Rung.IMPORT: "imported by the program",
    Rung.REPAIR: "added to make it build",
    Rung.DEPENDENCY: "dependency",
}

DETERMINISM = {
    "deterministic": "deterministic",
    "seed-dependent": "depends on the seed",
    "nondeterministic": "varies even with the same seed",
}

_SANDBOXES = {
    "docker": "in a container without network",
    "bwrap": "in a bubblewrap sandbox without network",
    "process": "as a plain process, not isolated",
    "fake": "in a simulated sandbox",
}


_NOT_RUN = "no run of a version that should pass was made"
_FROM_CLONE = "build the repository at"
_CUT_SHORT = "the search for a version that works was cut short"


def headline(report: Report) -> tuple[str, str]:
    """The verdict in one or two words, and the numbers that carry it."""
    verdict = report.verdict
    figures = ""
    match verdict:
        case Reproduced():
            counted = _counted(verdict.failures, verdict.runs, verdict.interval)
            figures = f"the reported failure came back in {counted}, {DETERMINISM[verdict.determinism]}"
        case NotReproduced() | Inconclusive() if verdict.runs:
            figures = f"{_counted(verdict.failures, verdict.runs, verdict.interval)} failed as reported"
        case DifferentFailure():
            figures = f"{verdict.runs} {_plural('run', verdict.runs)}, {verdict.failures or 'none'} of them as reported"
        case Cancelled() | BudgetReached():
            figures = f"{len(report.attempts)} {_plural('run', len(report.attempts))} done until then"
    return TITLES[verdict.kind], figures


def standing(report: Report) -> str:
    """Whether the bug is confirmed or only its symptom seen; "" for verdicts that claim neither."""
    if not isinstance(report.verdict, Reproduced):
        return ""
    control, cut_short = report.verdict.control, "control" in report.cut_short
    if control.type == "none":
        passing, failing = proof.passing(report), proof.failing(report)
        none = f"no version that works was found, it fails with {failing} too" if failing else _NOT_RUN
        none = _CUT_SHORT if cut_short else none
        if not passing and (smaller := proof.held_against(report)):
            none = f"{smaller}, where smaller programs are tried too, but no paired test was made"
        return f"Symptom observed: {f'{passing}, but there is no control' if passing else none}."
    said = proof.control_line(report.verdict)
    if sets_apart(control) and control.patch:
        none = _CUT_SHORT if cut_short else "no version that works was found"
        return f"{shown_by(control)}: {said}. {none[:1].upper()}{none[1:]}."
    return f"{shown_by(control)}: {said}{'' if sets_apart(control) else ', which does not set them apart'}."


def shown_by(control: Control) -> str:
    """What a control makes of the failure, in two or a few words."""
    if not sets_apart(control):
        return "Symptom observed"
    return "Symptom observed and its trigger set apart" if control.patch else "Bug confirmed"


def sets_apart(control: Control) -> bool:
    """Whether the runs of a control tell its side from the failing one, at the usual 5 %."""
    return control.type != "none" and control.p is not None and control.p <= 0.05


def reason(report: Report) -> str:
    """Why, as a sentence."""
    text = report.verdict.reason.strip()
    return text[:1].upper() + text[1:] + ("" if not text or text[-1] in ".!?:" else ".")


def next_step(report: Report, run: str = "") -> str:
    """What the reader would do now; `run` is the folder of the run."""
    kind, named = report.verdict.kind, shlex.quote(run) if run else "RUN"
    if isinstance(report.verdict, NeedsInfo):
        return "Add what is missing to the report and run it again."
    if report.cut_short:
        return "; ".join(
            f"reprise {each} {named} goes on with what was cut short" for each in PROOFS if each in report.cut_short
        )
    control = report.verdict.control if isinstance(report.verdict, Reproduced) else Control()
    if sets_apart(control) and not control.patch:
        return "Turn the script into a regression test."
    if isinstance(report.verdict, Reproduced) and report.verdict.control.type == "none" and proof.passing(report):
        return f"Run reprise control {named}, with more time: what passed in the bisection becomes the control."
    if isinstance(report.verdict, Reproduced) and control.type == "none" and proof.held_against(report):
        return f"Run reprise control {named}: the version in which smaller programs pass becomes the control."
    if kind == "reproduced" and control.type == "none" and (failing := proof.failing(report)):
        return f"Find a version that works, which becomes the control, by hand: it fails with {failing} too."
    return {
        "reproduced": "Find a version that works, which becomes the control: by hand, or with more time for "
        f"reprise control {named}.",
        "not_reproduced": "Compare the versions above with the reporter's; --with 'package==version' and --python try another.",
        "different_failure": "Read the two failures side by side: another bug, or an environment unlike the reporter's.",
        "inconclusive": "Run it longer with --max-runs, or with another --seed.",
        "needs_hardware": "Run it on a machine that has what is named, with --device gpu.",
        "setup_failed": _unbuilt(report),
        "not_a_bug": "If it is a bug after all, add the program and what it printed.",
        "cancelled": "Run it again; what was built is kept.",
        "budget_reached": "Raise the limit with --timeout or --max-runs and run it again.",
    }[kind]


def _unbuilt(report: Report) -> str:
    """What may be built instead; what no index has may be had from a clone, if none was given."""
    verdict, spec = report.verdict, report.spec
    tried = verdict.tried if isinstance(verdict, SetupFailed) else ()
    told = " ".join((verdict.reason, *tried))
    nowhere = complaints.unknown(told) or [each for each in tried[:1] if each.replace(".", "_").isidentifier()]
    if nowhere and not (_FROM_CLONE in told or (spec is not None and spec.repo is not None)):
        return f"Give a clone of {nowhere[0]} with --repo PATH --ref REF, or name what has it with --with 'package==version'."
    return "Name a version that still installs with --with 'package==version', or another --python."


def signature_rows(signature: AnySignature) -> tuple[tuple[str, str], ...]:
    """What counts as the reported failure, as rows of (what, value)."""
    if not isinstance(signature, AlternativesSignature):
        return _member_rows(signature)
    parts = [_member_rows(member) for member in signature.members]
    return tuple(
        ("or " + what if index and not row else what, value)
        for index, rows in enumerate(parts)
        for row, (what, value) in enumerate(rows)
    )


def _member_rows(signature: Member) -> tuple[tuple[str, str], ...]:
    match signature:
        case CrashSignature():
            rows = [("exception", signature.exception), ("message", signature.message)]
            rows += [("shapes", ", ".join(signature.shapes)), ("raised in", f"{signature.frame} {signature.function}".strip())]
            rows += [("failing check", check) for check in signature.checks[:3]]
        case OutputSignature():
            rows = [("prints", " / ".join(chunk)) for chunk in signature.observed[:3]]
            rows += [("and not", " / ".join(chunk)) for chunk in signature.expected[:3]]
            rows += [("tolerance", f"{signature.rtol:g} relative, {signature.atol:g} absolute")]
        case NonFiniteSignature():
            rows = [("prints", " or ".join(signature.values)), ("on a line with", ", ".join(signature.labels))]
        case WarningSignature():
            rows = [("warning", signature.category), ("message", signature.message)]
            rows += [("at least", f"{signature.at_least} times")] if signature.at_least > 1 else []
        case ObservationSignature():
            rows = [("claim", signature.says), ("observed", f"{signature.name} {observed.words(signature.wrong)}")]
            rows += [("would be right", f"{signature.name} {observed.words(signature.right)}")]
            rows += [("computed from", ", ".join(signature.api[:4]))]
        case HangSignature():
            idle = " without output and without using the processor" if signature.idle else ""
            rows = [("still running", f"after {signature.bound_s:g} s{idle}")]
    return tuple((what, value) for what, value in rows if value)


def decided(report: Report) -> list[tuple[str, str, str, str]]:
    """What was asked for and had, as rows of (name, version, decided by, why)."""
    built, wanted = report.environment, report.spec.requirements if report.spec is not None else ()
    if built is None:
        return []
    reasons = dict.fromkeys(built.undated, "of any date") | {each.name: each.reason for each in wanted}
    rows = [each for each in built.packages if each.rung is not Rung.DEPENDENCY]
    return [
        (each.name, each.version, "built from the repository", f"its clone at commit {built.commit[:12]}")
        if each.name == built.cloned
        else (each.name, each.version, RUNGS[each.rung], reasons.get(each.name, ""))
        for each in rows
    ]


def undated(report: Report) -> str:
    """What of the packages that nothing else decided is of after the date, as a clause; "" when none is."""
    built = report.environment
    drawn = [each for each in built.packages if each.rung is Rung.DEPENDENCY] if built is not None else []
    late = [f"{each.name} {each.version}" for each in drawn if built is not None and each.name in built.undated]
    return f", but for {', '.join(late)}" if late else ""


def provenance(report: Report) -> str:
    """What was measured, where, and whether a model had a part in it."""
    return f"{measured(report, len(report.attempts))}. {_part(report)}"


def measured(report: Report, runs: int) -> str:
    """In how many runs it was measured, and what those were done in."""
    return f"Measured in {count(runs, 'run')} {_SANDBOXES.get(report.sandbox, '')}".strip() if runs else "Nothing was run"


def _part(report: Report) -> str:
    if not report.prompts and report.reconstruction is None:
        return "No model was used."
    if not report.attempts:
        return "A model read the report."
    whose = "the program is a model's" if written.mark(report) else "what a model proposed decided nothing"
    if isinstance(report.verdict, Reproduced) and report.verdict.control.patch:
        whose += "; the change that makes the control is a model's"
    return f"Every figure was measured; {whose}."


def duration(report: Report) -> str:
    """The whole time, as a person would say it."""
    seconds = report.seconds.get("total", 0.0)
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def _counted(failures: int, runs: int, interval: tuple[float, float]) -> str:
    return f"{_runs(failures, runs)} (95 % interval {interval[0] * 100:.0f}\u2013{interval[1] * 100:.0f} %)"


def _runs(failures: int, runs: int) -> str:
    return f"{failures} of {runs} {_plural('run', runs)}"


def count(number: int, word: str) -> str:
    """A number and its word: 1 line, 2 lines."""
    return f"{number} {_plural(word, number)}"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"
