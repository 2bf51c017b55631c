"""A model's part in a run: how it read the bug report, its hypothesis and what it tried. None of it
decides the verdict.
"""

from collections.abc import Iterator
from itertools import takewhile

from bot.models.attempt import Attempt, Match
from bot.models.dialogue import Interpretation, Reading, Reconstruction
from bot.models.report import Report
from bot.render.document import Block, BulletList, Section
from bot.render.phrases import shown

_SEARCH, _UNNAMED, _SHOWN = "search", "written by a model", 12
_DIGEST = ("Inferred, not stated in the bug report", "Hypothesis", "Programs proposed", "Gave up")
_TITLE = "The model's hypothesis and attempts"

INFERRED = {
    "claim": "the claim itself: no sentence of the bug report was quoted for it",
    "exception": "the exception: the bug report does not name it",
    "message": "the message: the bug report does not quote it, so runs are not compared with it",
    "place": "the location in the library that raises it",
    "at_least": "how often the warning must occur",
    "observation": "the value to look at, and which values are wrong and right",
}
"""What a model added to the signature, by the names in `Interpretation.inferred`."""


def section(report: Report) -> Section | None:
    """The hypothesis and the attempts; a terminal gets only the most useful parts."""
    lists: list[Block] = [BulletList(f"{title}:", lines) for title, lines in parts(report)]
    digest: list[Block] = [
        BulletList(f"{title}:", lines) for title, lines in parts(report) if title in _DIGEST
    ]
    return Section("model", _TITLE, [], digest, lists, _TITLE) if lists else None


def parts(report: Report) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The strategy and the attempts as (title, lines); empty when no model was used."""
    part = report.reconstruction
    if part is None:
        return ()
    rows = [("Readings of the bug report", tuple(map(_reading, part.readings)))]
    rows += [*_read(part.refined), *_planned(part)]
    rows += [("Programs proposed", shown(tuple(_tries(report, part)), _SHOWN))]
    rows += [("Gave up", (part.given_up,))]
    return tuple((title, lines) for title, lines in rows if any(map(str.strip, lines)))


def _read(refined: Interpretation | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    if refined is not None:
        yield "Claim, as the model read it", (refined.claim,)
        yield _DIGEST[0], tuple(INFERRED.get(name, name) for name in refined.inferred)
        yield "Code in question", tuple(f"`{name}`" for name in refined.api[:6])
        yield "Questions", refined.questions


def _planned(part: Reconstruction) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "Hypothesis", (part.hypothesis,)
    yield "Source code it was shown", tuple(f"`{name}`" for name in part.contexts)


def _reading(reading: Reading) -> str:
    who = {"rules": "the rules", "model": "the model"}[reading.by]
    recorded = f" (signature `{reading.hash[:12]}`)" if reading.hash else ""
    return f"{who}: {reading.says}{recorded}" + (f": {reading.outcome}" if reading.outcome else "")


def _tries(report: Report, part: Reconstruction) -> Iterator[str]:
    """Each program with its outcome. A proposal without a run was rejected by the checks."""
    left = [run for run in report.attempts if run.purpose == _SEARCH and "model" in run.origin]
    for change in part.changes:
        ran = next((run for run in left if run.change == (change or _UNNAMED)), None)
        outcome = ": " + _outcome(report, ran) if ran else " (not run; rejected by the checks)"
        left = left[left.index(ran) + 1 :] if ran is not None else left
        yield f"{change or _UNNAMED}{outcome}"


def _outcome(report: Report, ran: Attempt) -> str:
    """The outcome of its last run: the environment may have been fixed in between. A contrast
    program that also fails counts against it.
    """
    following = [run for run in report.attempts if run.number >= ran.number]
    same = list(
        takewhile(lambda run: (run.purpose, run.script) == (_SEARCH, ran.script), following)
    )
    last, later = same[-1], next(iter(following[len(same) :]), None)
    line = f"{last.judgement.reason} (run {last.number})"
    if later is None or last.judgement.match is not Match.MATCHED or later.purpose != "contrast":
        return line
    passed = later.judgement.match is Match.PASSED and not later.execution.exit_code
    verb = "passed" if passed else "did not pass"
    return f"{line}; its contrast program, which must not fail, {verb}"
