"""What was asked for and by whom, as one inert line; the time so far, in steps that are worth an edit."""

from __future__ import annotations

from bot.models.job import Options
from bot.models.run import Run
from bot.render.sanitize import code_span
from bot.rules.verbs import PREFIX

_USUAL = Options()
_SHOWN = 8


def asked(run: Run) -> str:
    """Who asked for a run, how, with which choices, and who approved it."""
    request = run.request
    who = code_span(request.requester, limit=60) or "somebody"
    how = {
        "opened": f"Begun when {who} opened the issue",
        "labeled": f"Asked for by {who} with a label",
    }.get(request.trigger, f"Asked for by {who}")
    chosen = choices(request.job.options)
    with_ = f" with {', '.join(code_span(each, limit=80) for each in chosen[:_SHOWN])}" if chosen else ""
    more = f" and {len(chosen) - _SHOWN} more" if len(chosen) > _SHOWN else ""
    how += f" as `{PREFIX} {request.proof}`" if request.proof else ""
    approved = f", approved by {code_span(run.approved_by, limit=60)}" if run.approved_by else ""
    return f"{how}{with_}{more}{approved}."


def choices(options: Options) -> list[str]:
    """The options that are not the usual ones, as they are written in a command."""
    pairs = {
        "python": options.python,
        "device": options.device if options.device != _USUAL.device else None,
        "ref": options.ref,
        "seed": options.seed or None,
        "runs": options.max_runs if options.max_runs != _USUAL.max_runs else None,
        "package": options.package,
        "timeout": f"{options.timeout_s:g}" if options.timeout_s != _USUAL.timeout_s else None,
    }
    return [*(pin.replace("==", "=", 1) for pin in options.pins), *(f"{key}={value}" for key, value in pairs.items() if value)]


def so_far(seconds: float) -> str:
    """Elapsed time, so coarse that a comment is not edited for the clock alone."""
    if seconds < 60:
        return "less than a minute so far"
    minutes = int(seconds // 60)
    minutes -= minutes % (5 if minutes >= 10 else 1)
    return f"{minutes} min so far" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min so far"
