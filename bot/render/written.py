"""A model's part in a run as plain text: what it read, planned and tried, and what that cost. None of it decides anything."""

from __future__ import annotations

from collections.abc import Iterator

from bot.models.attempt import Attempt, Match
from bot.models.plan import Reconstruction, Refined
from bot.models.report import Report

_SEARCH = "search"
_UNNAMED = "written by a model"
_SHOWN = 12

INFERRED = {
    "claim": "the claim itself: no sentence of the report was quoted for it",
    "exception": "the exception: the report does not name it",
    "message": "the message: the report does not quote it, so it is not held against a run",
    "place": "the place in the library where it has to arise",
    "at_least": "how often the warning has to come",
    "observation": "the value to look at, and which values are wrong and right",
}
"""What a model added to what counts, by the names in `Refined.inferred`."""


def mark(report: Report) -> str:
    """One sentence where a model wrote the program that is shown; "" where the reporter did."""
    if report.script is None or report.script.author != "model":
        return ""
    lacks = report.bug is not None and not report.bug.programs
    own = "The report holds no program" if lacks else "No program of the report decides it"
    return f"{own}; this one was written by a model{_name(report)} and is judged by its runs alone."


def claim(report: Report) -> str:
    """The claim as the model read it, where its program is shown."""
    part = report.reconstruction
    return part.refined.claim if part is not None and part.refined is not None and mark(report) else ""


def _name(report: Report) -> str:
    return f" ({', '.join(report.models)})" if report.models else ""


def sections(report: Report) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The plan and the attempts as (title, lines); empty when no model had a part."""
    part = report.reconstruction
    if part is None:
        return ()
    rows = [("Claim, as the model read it", (part.refined.claim,)), *_read(part.refined)] if part.refined is not None else []
    rows += _planned(part)
    rows += [("Programs proposed", tuple(_tries(report, part)))] if part.changes else []
    rows += [("Given up", (part.given_up,))] if part.given_up else []
    return tuple((title, lines) for title, lines in rows if any(map(str.strip, lines)))


def _read(refined: Refined) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "Inferred, not said by the report", tuple(INFERRED.get(each, each) for each in refined.inferred)
    yield "Code in question", (", ".join(f"`{name}`" for name in refined.api[:6]),)
    yield "Questions", refined.questions


def _planned(part: Reconstruction) -> list[tuple[str, tuple[str, ...]]]:
    if not part.plans:
        return []
    plan = part.plans[-1]
    shown = (f"`{part.contexts[plan.context - 1]}`",) if 0 < plan.context <= len(part.contexts) else ()
    rows = [("Hypothesis", (plan.hypothesis,)), ("Steps", plan.steps), ("What should count, by the plan", (plan.counts,))]
    return [*rows, ("Source code it rests on", shown)]


def _tries(report: Report, part: Reconstruction) -> Iterator[str]:
    """Each program with what became of it. A proposal without a run was refused by the checks."""
    left = [each for each in report.attempts if each.purpose == _SEARCH and "model" in each.origin]
    for number, change in enumerate(part.changes, 1):
        ran = next((each for each in left if each.change == (change or _UNNAMED)), None)
        outcome = "not run: the checks refused it" if ran is None else _outcome(report, ran)
        if ran is not None:
            left = left[left.index(ran) + 1 :]
        if number <= _SHOWN:
            yield f"{change or _UNNAMED}: {outcome}"
    if len(part.changes) > _SHOWN:
        yield f"and {len(part.changes) - _SHOWN} more"


def _outcome(report: Report, ran: Attempt) -> str:
    """How the last of its runs went: an environment may have been mended in between, and a twin may have spoken against it."""
    following = [each for each in report.attempts if each.number >= ran.number]
    for at, each in enumerate(following):
        later = following[at + 1] if at + 1 < len(following) else None
        if later is None or later.purpose != _SEARCH or later.script != ran.script:
            said = each.judgement.reason
            refuted = each.judgement.match is Match.MET and later is not None and later.purpose == "contrast"
            passed = refuted and later is not None and later.judgement.match is Match.ABSENT and not later.execution.exit_code
            spoke = f"; its twin, which must not fail, {'passed' if passed else 'did not pass'}" if refuted else ""
            return f"{said} (run {each.number}){spoke}"
    return ran.judgement.reason


def cost(report: Report) -> str:
    """Calls, tokens and dollars in a few words; "" when no model was asked."""
    used = report.cost
    if not used.calls and report.reconstruction is None:
        return ""
    tokens = used.input_tokens + used.output_tokens
    about = "about " if used.estimated else ""
    price = f"{used.usd:.4f} USD" if 0 < used.usd < 0.01 else f"{used.usd:.2f} USD" if used.usd else "price unknown"
    return f"model: {used.calls} {'call' if used.calls == 1 else 'calls'}, {about}{tokens:,} tokens, {price}"
