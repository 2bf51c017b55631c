"""The one comment of an issue: waiting, working, failed by our own fault, and the verdict at the end."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.models.report import Report
from bot.models.run import Run, RunState
from bot.ports import Stage
from bot.render import links, words
from bot.render.comment import comment
from bot.render.folds import LIMIT
from bot.render.requests import asked, so_far
from bot.render.sanitize import code_span, prose

STEPS: tuple[tuple[str, tuple[Stage, ...]], ...] = (
    ("Read the report", ("intake", "signature")),
    ("Build its environment", ("environment",)),
    ("Find a program that fails", ("candidates", "search")),
    ("Confirm with fresh runs", ("confirm",)),
    ("Prove it: control, bisection, smaller program", ("control", "bisect", "minimize")),
    ("Write the verdict", ("report",)),
)
"""What a reader sees of the stages."""

_PROOFS = {"control": "control", "bisect": "bisection", "minimize": "minimising"}
_UNSAFE = re.compile(r"[^A-Za-z0-9:._]+")
_NEXT = {
    "not_reproduced": "Another version can be asked for: `/reproduce torch=2.1.0`.",
    "different_failure": "Another version can be asked for: `/reproduce torch=2.1.0`.",
    "inconclusive": "More runs can settle it: `/reproduce runs=200`.",
    "needs_info": "Add it to the report above, then comment `/reproduce`.",
    "needs_hardware": "Where this App has a GPU, `/reproduce device=gpu` asks for it.",
    "setup_failed": "A version that still installs can be named: `/reproduce torch=2.1.0 python=3.11`.",
    "not_a_bug": "If it is a bug after all, add the program and what it printed, then comment `/reproduce`.",
    "cancelled": "To run it again, comment `/reproduce`.",
    "budget_reached": "To try again with more time for each run, comment `/reproduce timeout=600`.",
}


def marker(key: str) -> str:
    """The hidden first line by which a comment of ours is found again: "run" for the sticky one."""
    return f"<!-- reprise:{_UNSAFE.sub('-', key)[:200]} -->"


def working(run: Run, *, ahead: int, page: str, elapsed_s: float, attempts: int) -> str:
    """The comment while a run waits for its turn or is worked on. `page` is the address of its page, "" for none."""
    waits = ahead > 0 or run.state in {RunState.WAITING, RunState.QUEUED}
    if run.cancelled_by:
        title = f"**Stopping**, as {code_span(run.cancelled_by, limit=60)} asked."
    elif waits:
        place = f" {words.count(ahead, 'run')} {'is' if ahead == 1 else 'are'} ahead of it." if ahead else ""
        title = f"**Waiting for its turn.**{place}"
    else:
        title = "**Reproducing this report.**"
    ends = [] if waits else [so_far(elapsed_s), f"{words.count(attempts, 'run')} of the program done"]
    ends += [links.own("this run" if waits else "live progress", page)] if page else []
    ends += [] if run.cancelled_by else ["`/reproduce cancel` stops it"]
    foot = ["", f"<sub>{' · '.join(ends)}</sub>"] if ends else []
    lines = [marker("run"), title, "", asked(run), "", *_steps(run, waits), *foot]
    return "\n".join(lines) + "\n"


def _steps(run: Run, waits: bool) -> list[str]:
    now = 0 if waits else step(run.stage)
    lines = []
    for at, (title, _) in enumerate(STEPS):
        if at < now:
            lines.append(f"- ✅ {title}")
        elif at > now or waits:
            lines.append(f"- ⬜ {title}")
        else:
            doing = prose(present(run), limit=160)
            lines.append(f"- ⏳ **{title}**{': ' + doing if doing else ''}")
    return lines


def step(stage: str) -> int:
    """Which of STEPS a stage belongs to; an unknown one is the first."""
    return next((at for at, (_, stages) in enumerate(STEPS) if stage in stages), 0)


def present(run: Run) -> str:
    """What goes on, without the name of the stage before it; "" when that is all it says. Of a proof it says which."""
    text = run.progress.removeprefix(f"{run.stage}:").strip()
    text = "" if text == run.stage else text
    proof = _PROOFS.get(run.stage, "")
    return text if text.startswith(proof) else f"{proof}: {text}" if text else proof


def final(
    report: Report, *, page: str, footer_help: bool = True, secrets: Iterable[str] = (), ends: tuple[str, ...] = ()
) -> str:
    """The verdict. `page` is the address of the run's page, "" for none; `ends` are more parts of the footer, already safe."""
    first = marker("run") + "\n"
    parts = [*ends, *([links.own("everything about this run", page)] if page else [])]
    parts += ["`/reproduce help`", "`/reproduce config`"] if footer_help else []
    return first + comment(
        report,
        secrets=secrets,
        limit=LIMIT - len(first),
        next_step=_NEXT.get(report.verdict.kind, "") if footer_help else "",
        ends=tuple(parts),
        elsewhere="on the run's page" if page else "",
    )


def failed(run: Run, page: str) -> str:
    """A defect of ours, said as one: nothing internal, and nothing about the report."""
    quote = f"run {code_span(run.id, limit=80)}" + (f", {links.own('its page', page)}" if page else "")
    lines = [
        marker("run"),
        "**Reprise broke down on this one.** The fault is its own: this says nothing about the report.",
        "",
        asked(run),
        "",
        f"To try again, comment `/reproduce`. If it breaks down again, tell whoever hosts this App, and quote {quote}.",
    ]
    return "\n".join(lines) + "\n"
