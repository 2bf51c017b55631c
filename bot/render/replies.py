"""Short answers to commands, each without its marker; none of their lines is a command itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bot.models.command import Command
from bot.models.run import Run, RunState
from bot.render import links
from bot.render.plan import HASH
from bot.render.sanitize import clip, code_span, prose, redact
from bot.render.words import TITLES
from bot.rules import verbs

STATES = {
    RunState.WAITING: "waiting for approval",
    RunState.QUEUED: "waiting for its turn",
    RunState.RUNNING: "running",
    RunState.REPORTED: "verdict on its way",
    RunState.FINISHED: "done",
    RunState.FAILED: "broke down, by a fault of Reprise",
}
_HELP = "`/reproduce help` lists what can be asked."


def help_text(rows: Sequence[tuple[str, str]]) -> str:
    """What can be asked here: how each command is written, and what it does."""
    known = [option for option in verbs.OPTIONS if option.available]
    versions = " ".join(option.example for option in known if _sets_version(option))
    others = [(option.example, option.does) for option in known if not _sets_version(option)]
    lines = ["Commands are read where one is the first word of a line; code and quotations are left alone.", ""]
    lines += [*_table("Command", "What it does", rows), ""]
    lines += ["Options of a run, as many as needed after the command:", ""]
    lines += _table("Option", "What it sets", [(versions, "The version of each."), *others])
    later = [code_span(each) for each in verbs.not_yet()]
    lines += ["", f"Known, and not possible yet: {', '.join(later)}."] if later else []
    return "\n".join(lines)


def _sets_version(option: verbs.Option) -> bool:
    return bool(option.package) or option.key == "python"


def _table(first: str, second: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    cells = [f"| {code_span(what, cell=True)} | {prose(does, cell=True)} |" for what, does in rows]
    return [f"| {first} | {second} |", "|---|---|", *cells]


def problems(command: Command) -> str:
    """What was not understood, on one line, with the closest that would be."""
    text = code_span(redact(command.text), limit=120)
    said = " ".join(prose(redact(each), limit=300) for each in command.problems)
    return f"{text or 'This'} was not understood. {said or 'There is no such command.'} {_HELP}"


def refused(reason: str) -> str:
    """Why something was not done."""
    return f"**Not done.** {_sentence(reason)}"


def quota(reason: str) -> str:
    """Which limit stands against another run."""
    return f"**Not run, because of a limit.** {_sentence(reason)}"


def _sentence(text: str) -> str:
    line = prose(redact(text))
    return line if line[-1:] in {".", "!", "?", ""} else f"{line}."


def unavailable(verb: str) -> str:
    """A command that is known and cannot be done by this version."""
    return f"{code_span(f'{verbs.PREFIX} {verb}', limit=60)} is known, but this version of Reprise cannot do it yet. {_HELP}"


def nothing_to_cancel() -> str:
    """There is nothing to stop."""
    return "There is nothing to stop here: no run is waiting or under way."


def no_such_plan(plan: str) -> str:
    """An approval that fits no waiting plan, or several."""
    return (
        f"No single plan that waits here begins with {code_span(clip(plan, 64)) or 'nothing'}. The comment that shows the plan "
        "says how it is approved; what was run or withdrawn waits no more."
    )


def status(runs: Sequence[Run], page_of: Callable[[Run], str]) -> str:
    """The latest runs of an issue, newest first."""
    if not runs:
        return "Nothing has been run here so far. To start, comment `/reproduce`."
    rows = [_row(run, page_of(run)) for run in runs]
    return "\n".join(["| Run | Asked for by | On (UTC) | |", "|---|---|---|---|", *rows])


def _row(run: Run, page: str) -> str:
    who = code_span(run.request.requester, limit=60, cell=True)
    where = links.own(f"`{run.id[:8]}`", page) if page else f"`{run.id[:8]}`"
    return f"| {where} | {who} | {_moment(run.created_at)} | {standing(run)} |"


def standing(run: Run) -> str:
    """Where a run stands, as one inert line."""
    state = STATES[run.state]
    if run.verdict:
        state = f"**{TITLES.get(run.verdict, 'Done')}**" if run.state is RunState.FINISHED else state
    elif run.cancelled_by and run.state is not RunState.FAILED:
        state = "being stopped"
    elif run.state is RunState.RUNNING and run.progress:
        state += f": {prose(redact(run.progress), limit=160, cell=True)}"
    elif run.state is RunState.WAITING and run.request.plan:
        state += f": `/reproduce approve {run.request.plan[:HASH]}`"
    return state


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
