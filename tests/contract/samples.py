"""Deliveries, runs, attempts and reports to keep in a store."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.kernel.attempt import Attempt, Execution, Judgement, Match, Script
from bot.kernel.bug import Issue
from bot.kernel.dialogue import Exchange, Message, ModelAnswer, Question, Usage
from bot.kernel.job import ReproducePaper
from bot.kernel.journal import RunLog
from bot.kernel.paper import PaperResult, PaperVerdict
from bot.kernel.report import Cancelled, IssueReport, PaperReport, Reproduced
from bot.kernel.run import Delivery, NewRun, Repository
from bot.kernel.training_types import KeptTrial, Trial
from tests.support.jobs import issue_job

WHEN = datetime(2027, 1, 15, 8, tzinfo=UTC)


def delivery(guid: str = "g1", **fields: object) -> Delivery:
    issue = Issue(title="NaN", body="loss is nan", repository="acme/pool", number=7)
    given = {
        "event": "issues",
        "action": "opened",
        "trigger": "opened",
        "installation": 1,
        "issue": issue,
    }
    return Delivery.model_validate({"guid": guid, **given, "received_at": WHEN, **fields})


def new_run(
    delivery: str = "g1", number: int = 7, *, name: str = "acme/pool", **fields: object
) -> NewRun:
    issue = Issue(title="NaN", body="loss is nan", repository=name, number=number)
    given = {
        "repository": Repository(id=1, full_name=name),
        "number": number,
        "job": issue_job(issue),
        "installation": 1,
    }
    return NewRun.model_validate(
        {"delivery": delivery, "requester": "mona", "trigger": "opened", **given, **fields}
    )


def attempt(number: int = 1, reason: str = "met") -> Attempt:
    return Attempt(
        number=number,
        purpose="search",
        script="0" * 64,
        origin="block 1",
        environment="e1",
        execution=Execution(exit_code=1, seconds=float("nan")),
        judgement=Judgement(match=Match.MATCHED, reason=reason),
    )


SCRIPT = Script(files={"repro.py": "print(1)\n"})


def log(number: int = 1, text: str = "log") -> RunLog:
    return RunLog(number=number, text=text)


def report(*, stopped: bool = False) -> IssueReport:
    issue = Issue(title="NaN", body="loss is nan")
    if stopped:
        return IssueReport(issue=issue, verdict=Cancelled(reason="stopped by mona"))
    met = Reproduced(
        runs=5, failures=5, interval=(0.48, 1.0), reason="met", determinism="deterministic"
    )
    return IssueReport(issue=issue, verdict=met, seconds={"total": float("inf")})


def paper_report() -> PaperReport:
    """A report of the other kind that an issue can ask for."""
    job = ReproducePaper(source="arXiv:2310.01234", issue=Issue(title="NaN", body="94 %"))
    verdict = PaperVerdict(kind="needs_info", reason="no command")
    return PaperReport(job=job, result=PaperResult(verdict=verdict))


def exchange(number: int, said: str) -> Exchange:
    """What a model was asked, with an answer."""
    question = Question(
        role="reader",
        prompt="read@v1#0",
        messages=(Message(role="user", content=said),),
        answer_schema={"a": 1},
    )
    return Exchange(
        number=number,
        question=question,
        answer=ModelAnswer(data={"n": [1.5]}, text="{}", usage=Usage(usd=0.25)),
    )


def trial(seed: int, error: str) -> KeptTrial:
    """A training that failed."""
    made = Trial(patch=(), seed=seed, part="guide", value=None, seconds=1.5, error=error)
    return KeptTrial(key="program", trial=made)
