"""The one comment of an issue: waiting, running, failed by our own fault, and the verdict."""

import re
from collections.abc import Iterable

from bot.models.report import Inconclusive, NeedsHardware, Report
from bot.models.run import Run, RunState
from bot.render.comment import LIMIT, arranged, comment
from bot.render.document import (
    Block,
    Code,
    Document,
    Headline,
    Hyperlink,
    Inline,
    Paragraph,
    Section,
    StepList,
    Text,
)
from bot.render.phrases import count
from bot.render.phrases.requests import asked, elapsed, name, steps
from bot.rules.verdicts import KINDS

_UNSAFE = re.compile(r"[^A-Za-z0-9:._]+")
_MORE_RUNS = "To decide it with more runs, comment `/reproduce runs=200`."
_MOST_RUNS = 200


def marker(key: str) -> str:
    """The hidden first line that identifies a comment of ours: "run" for the sticky one."""
    return f"<!-- reprise:{_UNSAFE.sub('-', key)[:200]} -->"


def working(run: Run, *, ahead: int, page: str, elapsed_s: float, attempts: int) -> str:
    """The comment while a run waits or runs. `page` is the address of its page, "" for none."""
    waits = ahead > 0 or run.state in {RunState.WAITING, RunState.QUEUED}
    footer: list[Text] = []
    if not waits:
        footer += [elapsed(elapsed_s), f"{count(attempts, 'program run')} completed"]
    if page:
        footer.append(Hyperlink("this run" if waits else "live progress", page, own=True))
    if not run.cancelled_by:
        footer.append("`/reproduce cancel` stops it")
    blocks: list[Block] = [
        _title(run, waits, ahead),
        Paragraph(asked(run)),
        StepList(steps(run, waiting=waits)),
    ]
    return _marked(Document([Section("progress", blocks=blocks)], footer))


def _title(run: Run, waits: bool, ahead: int) -> Headline:
    if run.cancelled_by:
        return Headline("Stopping", (name(run.cancelled_by), " cancelled it."))
    return Headline("Queued", queued(ahead)) if waits else Headline("Reproducing this issue")


def queued(ahead: int) -> str:
    """How many runs come first."""
    return (
        f"{count(ahead, 'run')} {'is' if ahead == 1 else 'are'} ahead of this one." if ahead else ""
    )


def _marked(document: Document) -> str:
    return f"{marker('run')}\n{arranged(document)}"


def final(
    report: Report,
    *,
    page: str,
    footer_help: bool = True,
    secrets: Iterable[str] = (),
    ends: tuple[Text, ...] = (),
    offer: Text = "",
) -> str:
    """The verdict. `page` is the address of the run's page, "" for none; `ends` are more parts
    of the footer, `offer` is a step that is open to the reader beside those that a verdict leaves.
    """
    first = marker("run") + "\n"
    parts = [*ends, *([Hyperlink("all details of this run", page, own=True)] if page else [])]
    parts += ["`/reproduce help`", "`/reproduce config`"] if footer_help else []
    return first + comment(
        report,
        secrets=secrets,
        limit=LIMIT - len(first),
        next_step=_steps(offer, _next(report)) if footer_help else offer,
        ends=tuple(parts),
        elsewhere="on the run's page" if page else "",
        page=page,
    )


def _steps(offer: Text, usual: str) -> Text:
    if not usual:
        return offer
    return (*(offer if isinstance(offer, tuple) else (offer,)), f" {usual}") if offer else usual


def _next(report: Report) -> str:
    """What to do after this verdict."""
    verdict = report.verdict
    if report.repaired_instead:
        return ""
    if isinstance(verdict, NeedsHardware) and "a GPU" not in verdict.needs:
        return ""
    if isinstance(verdict, Inconclusive) and verdict.at_maximum:
        return _MORE_RUNS if verdict.runs < _MOST_RUNS else ""
    return KINDS[verdict.kind].comment


def failed(run: Run, page: str) -> str:
    """A defect of ours, without its inside, and nothing about the bug report."""
    quote: list[Inline] = [Code(run.id)]
    quote += [" (", Hyperlink("run page", page, own=True), ")"] if page else []
    again = (
        "To try again, comment `/reproduce`. If it fails again, give the App's operator this id: "
    )
    blocks: list[Block] = [
        Headline("Reprise failed", "this is a bug in Reprise, not a verdict on this bug report."),
        Paragraph(asked(run)),
        Paragraph((again, *quote, ".")),
    ]
    return _marked(Document([Section("failed", blocks=blocks)]))
