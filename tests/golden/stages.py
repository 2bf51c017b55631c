"""What people are told between the question and the verdict, each piece by its name; held against tests/golden/stages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bot.kernel.bug import BugReport, ReportKind
from bot.kernel.environment import RepoSource
from bot.kernel.job import Extra, IssueOptions, ReproduceIssue, TrainingOptions
from bot.kernel.report import IssueReport
from bot.kernel.run import Command, NewRun, Repository, Run, RunPlan, RunState
from bot.kernel.training_types import RepairRequest
from bot.report import comment, replies, replies as report_replies, verbs
from tests.support.jobs import job_options

HERE = Path(__file__).parent
REPORTS = {
    path.stem: IssueReport.model_validate_json(path.read_text(encoding="utf-8"))
    for path in sorted((HERE / "reports").glob("*.json"))
}
PAGE = "https://reprise.example.com/runs/5f1c0a7e9b3d4c2886aa01d7e4f0b9c3"
OPTIONS = job_options(
    python="3.11",
    pins=("torch==2.1.0",),
    device="gpu",
    max_runs=20,
    seed=3,
    ref="v0.3.1",
    timeout_s=300,
)


USUAL = job_options()


def run(
    report: IssueReport = REPORTS["reproduced"],
    options: IssueOptions = USUAL,
    proof: Extra | None = None,
    **values: object,
) -> Run:
    """A run of a report, as a store would have it."""
    asked = NewRun(
        delivery="72d3162e-cc78-11e3-81ab-4c9367dc0958",
        installation=1,
        repository=Repository(id=1, full_name="acme/pool"),
        number=41,
        requester="octocat",
        trigger="comment",
        job=ReproduceIssue(issue=report.issue, **dict(options)),
        proof=proof,
    )
    began = datetime(2024, 5, 2, 9, 30, tzinfo=UTC)
    whole = {
        "id": PAGE[-32:],
        "request": asked,
        "state": RunState.RUNNING,
        "plan": "0123456789abcdef" * 2,
        "created_at": began,
        "started_at": began,
    }
    return Run.model_validate(whole | values)


def draft(report: IssueReport = REPORTS["reproduced"], **values: object) -> RunPlan:
    """The plan of a report."""
    held = {
        "bug": report.bug or BugReport(kind=ReportKind.BUG),
        "signature": report.signature,
        "script": report.script,
        "spec": report.spec,
    }
    return RunPlan.model_validate(held | values)


def stages() -> Iterator[tuple[str, str]]:
    """Every piece, with a name for its file."""
    yield (
        "queued",
        comment.working(run(state=RunState.QUEUED), ahead=2, page=PAGE, elapsed_s=0, attempts=0),
    )
    for stage, text, seconds in (
        ("environment", "environment: torch==2.1.0 on Python 3.11", 40.0),
        ("search", "search: trying block 1 (1 of 2)", 130.0),
        ("confirm", "confirm: run 4 of at most 20", 1_000.0),
        ("bisect", "bisect: 0.3.3 passes (0 of 5 runs failed), step 3 of at most 10", 1_300.0),
        ("minimize", "minimize: 32 \u2192 9 lines (41 of at most 4000 programs tried)", 1_500.0),
    ):
        now = run(options=OPTIONS, stage=stage, progress=text)
        yield (
            f"working-{stage}",
            comment.working(
                now, ahead=0, page=PAGE, elapsed_s=seconds, attempts=int(seconds > 60) * 3
            ),
        )
    stopping = run(stage="search", progress="search: run 1", cancelled_by="hubot")
    yield "stopping", comment.working(stopping, ahead=0, page="", elapsed_s=20, attempts=1)
    yield "failed", comment.failed(run(error="ValueError: /srv/internal"), PAGE)
    for name, report in REPORTS.items():
        yield f"final-{name}", comment.final(report, page=PAGE)
    yield "plan", report_replies.waiting(draft(), run(), page=PAGE)
    cloned = RepoSource(url="https://github.com/acme/pool.git", ref="v0.3.1")
    spec = REPORTS["reproduced"].spec
    assert spec is not None
    script = REPORTS["reproduced"].script
    assert script is not None
    several = draft(
        others=(script,), spec=spec.model_copy(update={"repo": cloned, "device": "gpu"})
    )
    yield "plan-several", report_replies.waiting(several, run(options=OPTIONS), page="")
    alone = job_options(proof_minutes=30, package="pool", without=("control", "minimize", "model"))
    repair = OPTIONS.model_copy(
        update={"training": TrainingOptions(repair=RepairRequest(budget=20))}
    )
    yield (
        "plan-repair",
        report_replies.waiting(draft(), run(options=repair, proof="repair"), page=PAGE),
    )
    yield (
        "plan-bisect",
        report_replies.waiting(draft(), run(options=alone, proof="bisect"), page=PAGE),
    )
    yield "help", replies.help_text(verbs.help_rows())
    told = "There is no command `bisekt`; the closest is `bisect`."
    yield (
        "problems",
        replies.misunderstood(Command(text="/reproduce bisekt", verb="", problems=(told,))),
    )
    yield "refused", replies.refusal("You need write permission on this repository to run this.")
    yield (
        "quota",
        replies.refusal(
            "You have reached your limit of 10 runs a day (`quota.person`).", replies.NOT_RUN
        ),
    )
    yield "nothing_to_cancel", replies.nothing_to_cancel()
    yield "no_such_plan", replies.no_such_plan("0123456789abcdef" * 2)
    lines = ("`repro.py`, lines 3 to 8: what looks like a credential (if it is one, revoke it)",)
    yield "unshowable", replies.unshowable_reply(lines)
    yield (
        "status",
        replies.status(
            [
                run(id="a" * 32, state=RunState.WAITING),
                run(id="b" * 32, state=RunState.QUEUED, cancelled_by="hubot"),
                run(id="c" * 32, stage="confirm", progress="confirm: run 4 of at most 40"),
                run(id="d" * 32, state=RunState.REPORTED, verdict="reproduced"),
                run(id="e" * 32, state=RunState.FINISHED, verdict="not_reproduced"),
                run(id="f" * 32, state=RunState.FAILED, error="ValueError: /srv/internal"),
            ],
            lambda each: PAGE[:-32] + each.id,
            f"{PAGE}/repository",
        ),
    )
    yield "status-none", replies.status([], lambda each: "")
