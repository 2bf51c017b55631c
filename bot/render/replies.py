"""Short answers to commands, without their markers; no line of them is a command itself."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from pydantic import BaseModel

from bot.models.config import Loaded, Origin, Problem
from bot.models.run import Command, Run, RunState
from bot.render.document import (
    Block,
    BulletList,
    Code,
    DataTable,
    Headline,
    Hyperlink,
    Inline,
    Paragraph,
    Preformatted,
    Strong,
    Text,
)
from bot.render.markdown import inline, print_block, print_blocks
from bot.render.phrases import sentence, shown
from bot.render.phrases.requests import name, unposted
from bot.rules import verbs
from bot.rules.verdicts import KINDS
from bot.text.sanitize import clip, one_line, redact

STATES = {
    RunState.WAITING: "waiting for approval",
    RunState.QUEUED: "queued",
    RunState.RUNNING: "running",
    RunState.REPORTED: "publishing the verdict",
    RunState.FINISHED: "done",
    RunState.FAILED: "failed because of a bug in Reprise",
}
_HELP = "`/reproduce help` lists the commands."
NOT_RUN, INCOMPLETE = "Not run", "Incomplete"
_SHOWN = 10
_WIDE = 400


def help_text(rows: Sequence[tuple[str, str]]) -> str:
    """How each command is written, and what it does."""
    versions = " ".join(option.example for option in verbs.OPTIONS if _sets_version(option))
    options: list[tuple[Text, ...]] = [(Code(versions), "The version to install.")]
    options += [
        (Code(each.example), each.does)
        for each in verbs.OPTIONS
        if not _sets_version(each) and not each.only
    ]
    blocks: list[Block] = [
        Paragraph(
            "A command must be the first word of a line. Code blocks and quotes are ignored."
        ),
        DataTable(("Command", "What it does"), [(Code(command), does) for command, does in rows]),
        Paragraph("Options may follow the command:"),
        DataTable(("Option", "What it sets"), options),
    ]
    return print_blocks(blocks)


def _sets_version(option: verbs.Option) -> bool:
    return bool(option.package) or option.key == "python"


def misunderstood(command: Command) -> str:
    """What was not understood, on one line, with the closest valid command."""
    text = clip(redact(command.text), 120)
    reasons = redact(" ".join(command.problems)) or "There is no such command."
    what: Inline = Code(text) if text.strip() else "This"
    return inline((what, " was not understood. ", f"{reasons} ", _HELP))


def refused(reason: str, title: str = "Not done") -> str:
    """Why something was not done, or not all of it."""
    return print_block(Headline(title, sentence(redact(reason))))


def nothing_to_cancel() -> str:
    """The reply when there is nothing to stop."""
    return "There is nothing to cancel: no run is waiting or in progress."


def no_such_plan(plan: str) -> str:
    """The reply to an approval that matches no waiting plan."""
    missed = (Code(clip(plan, 64)), " is not the hash of a waiting plan")
    named = missed if plan.strip() else ("No plan was named",)
    how = ". Copy the command from the comment that shows the plan. "
    return inline((*named, how, "Approved and withdrawn plans cannot be approved again."))


def unshowable(parts: Sequence[str]) -> str:
    """Why a plan is not offered for approval: which lines cannot be shown, and what to do."""
    reason = (
        "a plan has to show every program exactly as it would run. This one cannot show these "
        "lines, counted in the program as it would run:"
    )
    return print_blocks(
        [
            Headline("Not offered for approval", reason),
            BulletList("", shown(tuple(map(redact, parts)), _SHOWN)),
            Paragraph("Remove this from the issue, then ask again: comment `/reproduce`."),
        ]
    )


def status(runs: Sequence[Run], page_of: Callable[[Run], str]) -> str:
    """The latest runs of an issue, newest first."""
    if not runs:
        return "Nothing has been run here yet. To start, comment `/reproduce`."
    rows = [_row(run, page_of(run)) for run in runs]
    return print_block(DataTable(("Run", "Requested by", "On (UTC)", "State"), rows))


def _row(run: Run, page: str) -> tuple[Text, ...]:
    link = Hyperlink(f"`{run.id[:8]}`", page, own=True)
    day = f"{run.created_at:%Y-%m-%d %H:%M}"
    return link, name(run.request.requester), day, standing(run)


def standing(run: Run) -> Text:
    """The state of a run."""
    state = STATES[run.state]
    if run.verdict:
        done = run.state is RunState.FINISHED
        title = (
            Strong(KINDS[run.verdict].title if run.verdict in KINDS else "Done") if done else state
        )
        return (title, f"; {unposted(run)}") if done and run.error else title
    if run.cancelled_by and run.state is not RunState.FAILED:
        return "stopping"
    if run.state is RunState.RUNNING and run.progress:
        return f"{state}: {clip(redact(run.progress), 160)}"
    if run.state is RunState.WAITING and run.plan:
        return f"{state}: `/reproduce approve {run.plan}`"
    return state


def configuration(loaded: Loaded) -> str:
    """The answer to `/reproduce config`."""
    head = "No configuration file applies here; these are the defaults:"
    if loaded.source:
        head = f"The configuration in effect here, from {_files(loaded.source)}:"
    values = Preformatted("\n".join(_lines(loaded.config, loaded.origins)), "yaml")
    wrong = [problems(loaded.problems)] if loaded.problems else []
    return "\n\n".join([print_blocks([Paragraph(head), values]), *wrong])


def problems(found: Iterable[Problem]) -> str:
    """What is wrong, and what follows from it."""
    rows = list(found)
    files = _files(dict.fromkeys(problem.file for problem in rows))
    title = f"Reprise ignores {files}: one mistake invalidates the whole file."
    items = shown(tuple(map(_sentence, rows)), _SHOWN)
    return print_blocks([Paragraph(title), BulletList("", items)])


def _files(names: Iterable[str]) -> str:
    return ", ".join(f"`{_inert(name)}`" for name in names)


def _inert(text: str) -> str:
    return clip(redact(one_line(text)).replace("`", ""), 120)


def _sentence(problem: Problem) -> str:
    line = f", line {problem.line}" if problem.line else ""
    what = f"`{_inert(problem.key)}` " if problem.key else "the file "
    return f"`{_inert(problem.file)}`{line}: {what}{problem.reason}"


def _lines(
    values: BaseModel, origins: dict[str, Origin], before: str = "", indent: str = ""
) -> Iterator[str]:
    for key, value in values:
        if isinstance(value, BaseModel):
            yield f"{indent}{key}:"
            yield from _lines(value, origins, f"{before}{key}.", indent + "  ")
        else:
            text = clip(redact(one_line(json.dumps(value, ensure_ascii=False))), _WIDE)
            yield f"{indent}{key}: {text}  # {_origin(origins.get(f'{before}{key}'))}"


def _origin(origin: Origin | None) -> str:
    return "default" if origin is None else f"{origin.kind}: {clip(one_line(origin.file), 120)}"
