"""`/reproduce paper` over fakes: who may, what is approved, what the issue says in the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from bot.app import action
from bot.kernel.bug import Issue
from bot.kernel.job import ReproducePaper, RequestedJob
from bot.kernel.journal import ATTEMPTS
from bot.kernel.paper import PaperResult, PaperRun, PaperVerdict
from bot.kernel.report import IssueReport, PaperReport, RequestedReport
from bot.kernel.run import Choices, RunState
from bot.papers.reproduce import reproduce
from bot.report.html import run_page, view
from bot.report.paper_json import requested_text
from handlers.commands import parse
from tests.support.papers import FakePapers, paper_ports
from tests.unit.test_approvals import hash_in
from tests.unit.test_paper_of_issue import CLAIMS, README
from tests.unit.test_paper_reproduce import COMPUTED, PAPER, repository
from tests.unit.test_service import NOW, App, command

BODY = "The README says 0.942 accuracy on coins, I get 0.61. What do I do wrong?"
TITLE = "Cannot get the number of the paper"
SEEDLESS = COMPUTED.replace('parser.add_argument("--seed", type=int, default=0)\n', "")
SEEDLESS = SEEDLESS.replace("args.seed", "0")
WRONG = COMPUTED.replace("default=0.5", "default=0.001")


class PaperApp(App):
    """An App whose repository is that of a paper; issues wait for a command."""

    def __init__(self, folder: Path, program: str = COMPUTED, readme: str = README, **house):
        super().__init__(config="triggers:\n  opened: 'off'\n", **house)
        self.hub.repository("acme/lib").commits["heads/main"] = "c" * 40
        self.tree = repository(folder, train_py=program)
        (self.tree / "README.md").write_text(readme)
        text = PAPER.replace("{more}", "").encode()
        self.papers = FakePapers({"arXiv:2310.01234": {"paper.md": text}})

    def _engine(self, job, *, journal, listener, cancel, clone, earlier=None):
        self.worked.append(job)
        ports = paper_ports(
            self.tree, journal, papers=self.papers, listener=listener, cancel=cancel
        )
        return reproduce(job, ports)

    def says(self, line: str, **more):
        return self.deliver("comment", *parse(line), **{
            "sender": "max", "body": BODY, "title": TITLE, **more,
        })  # fmt: skip


def test_the_number_that_the_issue_means_is_compared_and_the_issue_answered(tmp_path: Path) -> None:
    app = PaperApp(tmp_path, WRONG)
    delivery = app.says("/reproduce paper budget=30m")
    (body,) = app.ours()
    assert body.startswith("<!-- reprise:run -->")
    assert "Number not reproduced: Table 1, HalfNet (ours), coins" in body
    assert "1 contradiction between paper, code and run" in body
    assert "the paper states 0.5, `train.py:4` has 0.001" in body
    assert "this explains the gap" in body
    assert "as `/reproduce paper` with `budget=30m`" in body
    assert len([row for row in body.partition("<details>")[0].splitlines() if row.strip()]) <= 25
    assert app.reactions(delivery) == {"eyes", "+1"}
    assert app.hub.issue("acme/lib", 3).labels == []
    (run,) = app.runs()
    assert (run.state, run.verdict) == (RunState.FINISHED, "not_reproduced")
    assert isinstance(app.store.report(run.id), PaperReport)
    assert len(app.store.entries(run.id, ATTEMPTS)) == 8
    assert (app.worked[0].minutes, app.worked[0].claim) == (30.0, "")


def test_an_arxiv_that_is_out_of_reach_is_no_bug_of_ours(tmp_path: Path) -> None:
    app = PaperApp(tmp_path, takes=3)
    app.papers.is_away = True
    delivery = app.says("/reproduce paper")
    for _ in range(5):
        app.resume()
    assert len(app.papers.fetched) == 3, "it is tried again first"
    (body,) = app.ours()
    assert "could not be fetched (arXiv cannot be reached: no route to host)." in body
    assert "To try again, comment `/reproduce paper`" in body
    assert "bug in Reprise" not in body
    assert app.reactions(delivery) == {"eyes", "+1"}
    (run,) = app.runs()
    assert (run.state, run.verdict) == (RunState.FINISHED, "inconclusive")


def test_an_arxiv_that_answers_again_is_no_verdict(tmp_path: Path) -> None:
    app = PaperApp(tmp_path, takes=3)
    app.papers.is_away = True
    app.says("/reproduce paper")
    app.papers.is_away = False
    app.resume()
    assert app.runs()[0].verdict == "reproduced"


def test_the_page_of_a_run_shows_its_report_and_has_it_for_programs(tmp_path: Path) -> None:
    app = PaperApp(tmp_path, WRONG)
    app.says("/reproduce paper runs=3")
    (run,) = app.runs()
    report = app.store.report(run.id)
    assert report is not None
    shown = view(run, report, (), github_url="https://github.com", now=NOW)
    page = run_page(shown)
    assert "Number not reproduced" in page
    assert "this explains the gap" in page
    assert "<script" not in page
    assert shown.files == ("report.json",)
    data = json.loads(requested_text(report))
    assert (data["kind"], data["verdict"]["kind"]) == ("paper", "not_reproduced")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("budget=10h", "with `budget=600m` (this host allows 48 minutes)."),
        ("budget=40m", "with `budget=40m`."),
        ("", "as `/reproduce paper`."),
    ],
)
def test_a_budget_that_the_host_caps_is_said_to_be_capped(
    tmp_path: Path, budget: str, words: str
) -> None:
    app = PaperApp(tmp_path, run_minutes=60)
    app.says(f"/reproduce paper {budget}")
    assert f"Requested by `max` as `/reproduce paper`{'' if not budget else ' '}" in app.ours()[0]
    assert words in app.ours()[0]
    assert app.worked[0].minutes == (40 if budget == "budget=40m" else 48)


def test_a_plan_says_that_its_budget_is_capped(tmp_path: Path) -> None:
    app = PaperApp(tmp_path, run_minutes=60)
    app.says("/reproduce paper budget=10h", sender="stranger")
    assert "within 48 minutes, the most that this host allows" in app.ours()[0]


@pytest.mark.parametrize(
    ("runs", "words", "granted"),
    [(100, "with `runs=100` (at most 40 runs).", 40), (3, "with `runs=3`.", 3)],
)
def test_more_runs_than_there_can_be_are_said_to_be_fewer(
    tmp_path: Path, runs: int, words: str, granted: int
) -> None:
    app = PaperApp(tmp_path, SEEDLESS)  # two runs that are alike end it
    app.says(f"/reproduce paper runs={runs}")
    assert words in app.ours()[0]
    assert app.worked[0].runs == granted


def test_a_plan_says_that_there_are_fewer_runs(tmp_path: Path) -> None:
    app = PaperApp(tmp_path)
    app.says("/reproduce paper runs=100", sender="stranger")
    assert "At most 40 seeds (the limit), and runs" in app.ours()[0]


def test_a_claim_and_a_command_are_read_from_the_comment(tmp_path: Path) -> None:
    app = PaperApp(tmp_path)
    app.says('/reproduce paper claim="Table 1, Guess" runs=3 command=python train.py --lr 0.5')
    (job,) = app.worked
    assert (job.claim, job.runs, job.environment.command) == (
        "Table 1, Guess",
        3,
        "python train.py --lr 0.5",
    )
    assert "Table 1, Guess, coins" in app.ours()[0]


@pytest.mark.parametrize(
    ("line", "choices"),
    [
        ("claim=Table 2, ours, digits budget=2h", {"claim": "Table 2, ours, digits", "minutes": 120.0}),
        ("budget=45m claim=“94 % accuracy”", {"claim": "94 % accuracy", "minutes": 45.0}),
        ("claim=94.2 seed=1", {"claim": "94.2", "seed": 1}),
    ],
)  # fmt: skip
def test_the_words_of_a_claim_end_at_the_next_option(line: str, choices: dict[str, object]) -> None:
    (command,) = parse(f"/reproduce paper {line}")
    assert command.problems == ()
    assert command.choices == Choices(**choices)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/reproduce paper budget=10x", "`budget=` takes a time such as 90m or 2h"),
        ("/reproduce paper budget=30h", "`budget=` takes a time"),
        ("/reproduce paper claim=,", "`claim=` takes"),
        ("/reproduce repair budget=2h", "`budget=` takes a multiple"),
        ("/reproduce claim=x", "`claim=` works only with `/reproduce paper`"),
        ("/reproduce paper metric=accuracy", "`metric=` works only with `/reproduce repair`"),
    ],
)
def test_a_wrong_option_is_answered(line: str, words: str) -> None:
    (command,) = parse(line)
    assert words in " ".join(command.problems)


def test_a_stranger_waits_for_an_approval_of_the_commit_that_is_there_now(tmp_path: Path) -> None:
    app = PaperApp(tmp_path)
    app.says("/reproduce paper claim=Table 1, ours", sender="stranger")
    (plan,) = app.ours()
    assert app.worked == []
    assert "asked to reproduce a number of the paper" in plan
    assert "`Table 1, ours`" in plan
    assert "the README's that fits best" in plan
    assert f"`{'c' * 40}`" in plan
    app.hub.repository("acme/lib").commits["heads/main"] = "d" * 40
    app.says(f"/reproduce approve {hash_in(plan)}")
    (job,) = app.worked
    assert job.environment.ref == "c" * 40
    assert "model" in job.without
    assert any("Number reproduced" in body for body in app.ours())


def test_quotas_count_the_runs_of_papers(tmp_path: Path) -> None:
    app = PaperApp(tmp_path)
    files = app.hub.repository("acme/lib").files
    files[".github/reprise.yml"] = "triggers:\n  opened: 'off'\nquota:\n  person: 1\n"
    app.says("/reproduce paper runs=3")
    app.says("/reproduce paper runs=2")
    assert len(app.worked) == 1
    assert "reached your limit of 1 runs a day" in app.ours()[-1]


def test_a_paper_is_no_reproduced_issue(tmp_path: Path) -> None:
    app = PaperApp(tmp_path)
    app.says("/reproduce paper runs=3")
    assert app.runs()[0].verdict == "reproduced"
    app.says("/reproduce pr")
    assert "No run has reproduced this issue" in app.ours()[-1]
    app.says("/reproduce status")
    assert "Number reproduced" in app.ours()[-1]


@pytest.mark.parametrize(
    ("readme", "line", "words"),
    [
        ("# HalfNet\n", "/reproduce paper", "CITATION.cff"),
        (README, "/reproduce paper claim=Table 9", "does not state 'Table 9'"),
        (README.replace("01234", "99999"), "/reproduce paper", "There is no paper"),
    ],
)
def test_what_is_missing_is_answered_with_the_next_step(
    tmp_path: Path, readme: str, line: str, words: str
) -> None:
    app = PaperApp(tmp_path, readme=readme)
    app.says(line)
    (body,) = app.ours()
    assert "More is needed" in body
    assert words in body
    assert "then comment `/reproduce paper`" in body
    assert "--repo" not in body
    assert app.runs()[0].verdict == "needs_info"


def test_a_run_ends_before_the_limit_of_the_host(tmp_path: Path) -> None:
    app = PaperApp(tmp_path, run_minutes=10)
    app.says("/reproduce paper budget=2h runs=3")
    assert app.worked[0].minutes == 8.0


def test_a_cancelled_run_says_what_it_has(tmp_path: Path) -> None:
    app = PaperApp(tmp_path)
    usual = app._engine

    def engine(job, *, cancel, **more):
        app.deliver("comment", command("cancel"), sender="max", body=BODY, title=TITLE)
        cancel.set()
        return usual(job, cancel=cancel, **more)

    app.service.context.engine = engine
    app.says("/reproduce paper")
    assert app.runs()[0].verdict == "cancelled"
    assert "Stopped by max after 0 runs" in app.ours()[0]


def test_jobs_and_reports_of_earlier_releases_are_those_of_issues() -> None:
    stored = {"issue": {"title": "a", "body": "b"}}
    assert TypeAdapter(RequestedJob).validate_python(stored).kind == "reproduce_issue"
    report = {**stored, "verdict": {"kind": "cancelled", "reason": "x"}}
    assert isinstance(TypeAdapter(RequestedReport).validate_python(report), IssueReport)


def test_a_verdict_that_its_runs_do_not_lead_to_is_not_published() -> None:
    issue = Issue(title=TITLE, body=BODY, repository="acme/lib", number=3)
    runs = tuple(PaperRun(attempt=at, seed=at, value=50.0 + at) for at in range(5))
    result = PaperResult(
        verdict=PaperVerdict(kind="reproduced", reason="trust me"), claim=CLAIMS[0], runs=runs
    )
    report = PaperReport(job=ReproducePaper(source="", issue=issue), result=result)
    assert list(action._contradictions(report, issue)) == [
        "the verdict on a number does not follow from its runs"
    ]
    other = issue.model_copy(update={"number": 4})
    assert "another issue" in next(action._contradictions(report, other))
    honest = report.draft()
    honest.result = result.model_copy(
        update={"verdict": PaperVerdict(kind="not_reproduced", reason="x")}
    )
    assert list(action._contradictions(honest.finish(), issue)) == []
