"""What was measured, where, at what cost, and which run shows the verdict best."""

from bot.models.attempt import Attempt, Evidence, Judgement, Match
from bot.models.report import Report
from bot.render.phrases import count
from bot.render.phrases.program import model_mark

_SANDBOXES = {
    "docker": "in a container without network",
    "bwrap": "in a bubblewrap sandbox without network",
    "process": "as a plain process, not isolated",
    "fake": "in a simulated sandbox",
}


def provenance(report: Report) -> str:
    """What was measured, where, and whether a model was involved."""
    confirming = getattr(report.verdict, "runs", 0)
    return f"{measured(report, len(report.attempts), confirming)}. {_model_part(report)}"


def measured(report: Report, runs: int, confirming: int = 0) -> str:
    """In how many runs it was measured, how many of them confirm, and in which sandbox."""
    if not runs:
        return "Nothing was run"
    of_them = f" ({confirming} confirming)" if confirming else ""
    where = _SANDBOXES.get(report.sandbox, "")
    return f"Measured in {count(runs, 'program run')}{of_them} {where}".strip()


def _model_part(report: Report) -> str:
    if not report.prompts and report.reconstruction is None:
        return "No model was used."
    if not report.attempts:
        return "A model read the report."
    if model_mark(report):
        return "Every figure was measured; a model wrote the program."
    return "Every figure was measured; the model did not affect the verdict."


def duration(report: Report) -> str:
    """The total time, as a person would say it."""
    seconds = report.seconds.get("total", 0.0)
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def cost(report: Report) -> str:
    """Calls, tokens and dollars in a few words; "" when no model was used."""
    used = report.cost
    if not used.calls and report.reconstruction is None:
        return ""
    about = "about " if used.estimated else ""
    digits = 4 if used.usd < 0.01 else 2
    price = f"{used.usd:.{digits}f} USD" if used.usd else "price unknown"
    tokens = used.input_tokens + used.output_tokens
    return f"model: {count(used.calls, 'call')}, {about}{tokens:,} tokens, {price}"


def weighed(judgement: Judgement) -> str:
    """What each piece of an exception said, in the order in which they were compared; "" when none
    was.
    """
    return "; ".join(map(_said, judgement.weighed))


def _said(piece: Evidence) -> str:
    if not piece.agrees:
        return piece.says
    alike = f"{piece.score * 100:.0f} % alike" if piece.score is not None else ""
    return " ".join(filter(None, (piece.what, piece.says, alike or "as reported")))


def telling(report: Report) -> Attempt | None:
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
        matched = [run for run in attempts if run.judgement.match is Match.MATCHED]
        if matched:
            return matched[-1]
    return next(reversed(here or report.attempts), None)
