"""A program in words: how long it is, how much smaller it became, and who wrote it."""

import math

from bot.models.attempt import Ended, Reduced, Script
from bot.models.report import Report
from bot.render.phrases import count
from bot.rules.reduce.edits import size

ENDED: dict[Ended, str] = {
    "complete": "nothing more could be removed",
    "tests": "the limit on programs was reached",
    "time": "the time limit was reached",
    "stopped": "it was stopped",
    "unseen": "the failure did not occur again at the start",
}
"""Why a program became no smaller, in words."""


def lines(script: Script) -> int:
    """How long a program is: the lines of all its files that have something on them."""
    return size(script.files)[0]


def length(script: Script) -> str:
    """That in words: "1 line", "5 lines in 2 files"."""
    files = f" in {len(script.files)} files" if len(script.files) > 1 else ""
    return count(lines(script), "line") + files


def smaller(reduced: Reduced | None) -> Reduced | None:
    """The reduction, where it made the program smaller."""
    return reduced if reduced is not None and reduced.lines_after < reduced.lines_before else None


def reduced_line(reduced: Reduced | None) -> str:
    """How much smaller a program became: "214 \u2192 9 lines"; "" when nothing was removed."""
    if reduced is None or smaller(reduced) is None:
        return ""
    return f"{reduced.lines_before} \u2192 {reduced.lines_after} lines"


def size_line(reduced: Reduced) -> str:
    """How much smaller it became, or that it did not."""
    could = "none could be removed" if reduced.ended == "complete" else "none was removed"
    return reduced_line(reduced) or f"{count(reduced.lines_before, 'line')}, {could}"


def tried_line(reduced: Reduced) -> str:
    """What it took and why it ended: "41 programs tried in 9 s, nothing more could be removed"."""
    tried = f"{count(reduced.tests, 'program')} tried in {seconds(reduced):.0f} s"
    since = f" since it resumed at {count(reduced.resumed, 'line')}" if reduced.resumed else ""
    return f"{tried}{since}, {ENDED[reduced.ended]}{_unconfirmed(reduced)}"


def _unconfirmed(reduced: Reduced) -> str:
    last = reduced.history[-1].lines if reduced.history else reduced.lines_after
    if reduced.ended in {"complete", "unseen"} or last >= reduced.lines_after:
        return ""
    return f"; the last result, {count(last, 'line')}, is not confirmed"


def seconds(reduced: Reduced) -> float:
    """How long the reduction took; 0 where a clock went wrong."""
    return reduced.seconds if math.isfinite(reduced.seconds) else 0.0


def model_mark(report: Report) -> str:
    """That a model wrote the program that is shown; "" where the reporter did."""
    if report.script is None or report.script.author != "model":
        return ""
    missing = report.bug is not None and not report.bug.programs
    why = "The report contains no program" if missing else "No program in the report is conclusive"
    name = f" ({', '.join(report.models)})" if report.models else ""
    return f"{why}; a model{name} wrote this one. Only its runs decide the verdict."


def model_claim(report: Report) -> str:
    """The claim as the model read it, where its program is shown."""
    part = report.reconstruction
    if part is None or part.refined is None or not model_mark(report):
        return ""
    return part.refined.claim
