"""A program, its runs and its environment in words."""

import math

from bot.issues.reduce.edits import size
from bot.kernel.attempt import Attempt, Ended, Evidence, Judgement, Match, Reduced, Script
from bot.kernel.document import PIN_SOURCES, count, usage_text
from bot.kernel.environment import Package, PinSource
from bot.kernel.report import IssueReport

# An environment in words: what was installed, and what decided each version.


def package_rows(report: IssueReport) -> list[tuple[str, str, str]]:
    """The installed packages that something decided, as (name, version, why this version)."""
    environment, spec = report.environment, report.spec
    if environment is None:
        return []
    reasons = dict.fromkeys(environment.undated, "may be newer than the cut-off date")
    reasons |= {
        requirement.name: requirement.why
        for requirement in ((*spec.constraints, *spec.requirements) if spec else ())
    }
    reasons_by_name = {
        package.name: why(package.rung, reasons.get(package.name, ""))
        for package in environment.packages
    }
    reasons_by_name[environment.cloned] = (
        f"built from a clone of the repository at commit {environment.commit[:12]}"
    )
    packages = (
        package for package in environment.packages if package.rung is not PinSource.DEPENDENCY
    )
    return [(package.name, package.version, reasons_by_name[package.name]) for package in packages]


def why(source: PinSource, reason: str) -> str:
    """What decided a version; the reason for a named or imported one says it all."""
    if reason and source in {PinSource.ISSUE, PinSource.IMPORT}:
        return reason
    words = PIN_SOURCES[source]
    return words if reason in {"", words} else f"{words}: {reason}"


def dependencies(report: IssueReport) -> list[Package]:
    """The installed packages that only the resolver chose."""
    packages = report.environment.packages if report.environment is not None else ()
    return [package for package in packages if package.rung is PinSource.DEPENDENCY]


def cut_off(report: IssueReport) -> str:
    """The date cut-off as a sentence, with the newer packages it exempts; "" without one."""
    if report.environment is None or report.spec is None or report.spec.exclude_newer is None:
        return ""
    undated = report.environment.undated
    late = [f"{row.name} {row.version}" for row in dependencies(report) if row.name in undated]
    but = f", except for {', '.join(late)}" if late else ""
    day = report.spec.exclude_newer.date().isoformat()
    return f"All other packages are the newest releases from before {day} that fit{but}."


# A program and its runs in words: how long it is, how much smaller it became, who wrote it, and
# what was measured at what cost.

ENDINGS: dict[Ended, str] = {
    "complete": "nothing more could be removed",
    "tests": "the limit on programs was reached",
    "time": "the time limit was reached",
    "stopped": "it was stopped",
    "unseen": "the failure did not recur at the start",
}
"""Why a program became no smaller, in words."""
_SANDBOXES = {
    "docker": "in a container without network",
    "bwrap": "in a bubblewrap sandbox without network",
    "process": "as a plain process, not isolated",
    "fake": "in a simulated sandbox",
}


def lines(script: Script) -> int:
    """How long a program is: the lines of all its files that have something on them."""
    return size(script.files)[0]


def length(script: Script) -> str:
    """That in words: "1 line", "5 lines in 2 files"."""
    files = f" in {len(script.files)} files" if len(script.files) > 1 else ""
    return count(lines(script), "line") + files


def reduced_line(reduced: Reduced | None) -> str:
    """How much smaller a program became: "214 \u2192 9 lines"; "" when nothing was removed. Of a
    repository, those lines count that ran.
    """
    if reduced is None or not reduced.is_smaller:
        return ""
    ran = "lines that ran " if reduced.before.command else ""
    return f"{reduced.lines_before} {ran}\u2192 {reduced.lines_after} lines"


def size_line(reduced: Reduced) -> str:
    """How much smaller it became, or that it did not."""
    could = "none could be removed" if reduced.ended == "complete" else "none was removed"
    return reduced_line(reduced) or f"{count(reduced.lines_before, 'line')}, {could}"


def tried_line(reduced: Reduced) -> str:
    """What it took and why it ended: "41 programs tried in 9 s, nothing more could be removed"."""
    programs = f"{count(reduced.tests, 'program')} tried in {seconds(reduced):.0f} s"
    since = f" since it resumed at {count(reduced.resumed, 'line')}" if reduced.resumed else ""
    return f"{programs}{since}, {ENDINGS[reduced.ended]}{_unconfirmed(reduced)}"


def _unconfirmed(reduced: Reduced) -> str:
    last = reduced.history[-1].lines if reduced.history else reduced.lines_after
    if reduced.ended in {"complete", "unseen"} or last >= reduced.lines_after:
        return ""
    return f"; the last result ({count(last, 'line')}) is not confirmed"


def seconds(reduced: Reduced) -> float:
    """How long the reduction took; 0 where a clock went wrong."""
    return reduced.seconds if math.isfinite(reduced.seconds) else 0.0


def model_mark(report: IssueReport) -> str:
    """That a model wrote the program that is shown; "" where the reporter did."""
    if report.script is None or report.script.author != "model":
        return ""
    name = f" ({', '.join(report.models)})" if report.models else ""
    wrote = f"The bug report contains no conclusive program, so a model{name} wrote this one."
    return f"{wrote} Only its runs decide the verdict."


def model_claim(report: IssueReport) -> str:
    """The claim as the model read it, where its program is shown."""
    part = report.reconstruction
    if part is None or part.refined is None or not model_mark(report):
        return ""
    return part.refined.claim


def provenance(report: IssueReport) -> str:
    """What was measured, where, and whether a model was involved."""
    confirming = getattr(report.verdict, "runs", 0)
    return f"{measured_text(report, len(report.attempts), confirming)}. {_model_part(report)}"


def measured_text(report: IssueReport, runs: int, confirming: int = 0) -> str:
    """In how many runs it was measured, how many of them confirm, and in which sandbox."""
    if not runs and report.diagnosis:
        more = f"; {count(confirming, 'run')} confirmed the verdict" if confirming else ""
        return f"Run once, for the diagnosis{more}"
    if not runs:
        return "Nothing was run"
    of_them = f" ({confirming} confirming)" if confirming else ""
    where = _SANDBOXES.get(report.sandbox, "")
    return f"Measured in {count(runs, 'program run')}{of_them} {where}".strip()


def _model_part(report: IssueReport) -> str:
    if not report.prompts and report.reconstruction is None:
        return "No model was used."
    if report.reconstruction is None and set(report.prompts) == {"opinion"}:
        return "A model gave a second opinion on the diagnosis."
    part = report.reconstruction
    if part is None or part.refined is None:
        return "A model was asked and gave no answer."
    if not report.attempts:
        return "A model read the bug report."
    if model_mark(report):
        return "Every figure was measured; a model wrote the program."
    return "Every figure was measured; a model read the bug report too."


def duration(report: IssueReport) -> str:
    """The total time, as a person would say it; "" for next to none."""
    seconds = report.seconds.get("total", 0.0)
    if seconds < 0.1:
        return ""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def cost(report: IssueReport) -> str:
    """Calls, tokens and dollars in a few words; "" when no model was used."""
    usage = report.cost
    return usage_text(usage) if usage.calls or report.reconstruction is not None else ""


def evidence_text(judgement: Judgement) -> str:
    """What each piece of an exception said, in the order in which they were compared; "" when none
    was.
    """
    return "; ".join(map(_evidence_text, judgement.weighed))


def _evidence_text(piece: Evidence) -> str:
    if not piece.agrees:
        return piece.says
    alike = f"{piece.score * 100:.0f} % alike" if piece.score is not None else ""
    return " ".join(filter(None, (piece.what, piece.says, alike or "as reported")))


def telling(report: IssueReport) -> Attempt | None:
    """The run that shows the verdict best: the last in its environment that matched the
    signature, else the last one there.

    Bisections run in other environments, and a failure there is not the reported one.
    """
    here = [
        attempt
        for attempt in report.attempts
        if report.environment is not None and attempt.environment == report.environment.id
    ]
    for attempts in (here, report.attempts):
        matching = [run for run in attempts if run.judgement.match is Match.MATCHED]
        if matching:
            return matching[-1]
    return next(reversed(here or report.attempts), None)
