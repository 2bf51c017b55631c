"""What people are told between the question and the verdict, word for word and inert; `python
tests/golden/write.py` renews it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.issues.verdicts import KINDS, LABELS
from bot.kernel import document
from bot.kernel.job import Note
from bot.kernel.report import IssueReport, NeedsInfo
from bot.kernel.run import Command, Run, RunPlan, RunState
from bot.report import comment, replies, replies as report_replies
from bot.report.comment import LIMIT, LINES_UNFOLDED, STEPS, present, size, step
from bot.report.markdown import inline
from handlers.commands import parse
from tests.corpus.hostile.corpus import Hostile, load
from tests.corpus.hostile.reader import alive, read
from tests.golden.stages import PAGE, REPORTS, draft, run, stages
from tests.support.jobs import job_options
from tests.unit.test_hostile_outgoing import unlinked
from tests.unit.versioned import World, broken, released

GOLDEN = Path(__file__).parent.parent / "golden" / "stages"
STAGES = dict(stages())
TEXTS = [
    pytest.param(each, id=each.id, marks=[pytest.mark.slow] if each.fill else [])
    for each in load("outgoing")
]
OUR_LINK = re.compile(
    r"\[([A-Za-z ]+|`[0-9a-f]{8}`)\]\(https://reprise\.example\.com/runs/[0-9a-f]{32}(?:/repository)?\)"
)

OUR_PLOT = re.compile(
    r"^!\[([A-Za-z, ]+)\]\(https://reprise\.example\.com/runs/[0-9a-f]{32}/plot\.png\)$", re.M
)


def others(body: str) -> str:
    """A body without what only we may put there: our marker as the first line, links to our own
    pages, the plot on them.
    """
    told = OUR_PLOT.sub(r"\1", re.sub(r"\A<!-- reprise:run -->\n", "", body))
    return OUR_LINK.sub(r"\1", unlinked(told))


def inert(body: str) -> None:
    assert alive(others(body)) == []
    assert parse(body) == ()
    assert size(body) <= LIMIT


def seen(markdown: str) -> list[str]:
    """Lines that are in sight, a fold counting as the line of its summary."""
    folded = re.sub(
        r"(<summary>.*?</summary>).*?</details>", r"\1", others(markdown), flags=re.DOTALL
    )
    return [line for line in folded.splitlines() if line.strip()]


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.md")} == set(STAGES)


@pytest.mark.parametrize("name", STAGES)
def test_it_reads_as_it_should(name: str) -> None:
    assert STAGES[name] == (GOLDEN / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STAGES)
def test_it_acts_in_nothing_and_is_short(name: str) -> None:
    inert(STAGES[name])
    assert len(seen(STAGES[name])) <= (
        12 if name.startswith(("working", "queued", "stopping", "failed")) else LINES_UNFOLDED
    )


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in STAGES
        if name.startswith(("working", "queued", "stopping", "failed", "final"))
    ],
)
def test_the_sticky_comment_begins_with_its_marker(name: str) -> None:
    assert STAGES[name].startswith(comment.marker("run") + "\n")
    assert STAGES[name].count("<!--") == 1


def test_the_reader_of_these_tests_sees_what_acts() -> None:
    assert alive(others("[page](https://evil.example.com/runs/" + "a" * 32 + ")"))
    assert alive(others("![plot](https://evil.example.com/runs/" + "a" * 32 + "/plot.png)"))
    assert alive(others("x\n" + comment.marker("run")))
    assert alive(others("<details><summary>x</summary>\n\ny"))
    assert parse("/reproduce cancel") != ()


@pytest.mark.parametrize("hostile", TEXTS)
def test_a_hostile_text_in_every_place_is_only_shown(hostile: Hostile) -> None:
    text = hostile.text
    options = job_options(python=text, pins=(text, text), ref=text)
    asked = run(
        options=options,
        stage="search",
        progress=f"search: {text}",
        verdict="",
        cancelled_by="",
        approved_by=text,
    )
    asked = asked.model_copy(
        update={"request": asked.request.model_copy(update={"requester": text})}
    )
    stopping = asked.model_copy(update={"cancelled_by": text})
    inert(comment.working(asked, ahead=0, page=PAGE, elapsed_s=1, attempts=1))
    inert(comment.working(stopping, ahead=1, page=PAGE, elapsed_s=1, attempts=1))
    inert(
        comment.working(
            asked.model_copy(update={"stage": text}), ahead=0, page="", elapsed_s=1, attempts=1
        )
    )
    inert(comment.failed(stopping, PAGE))
    inert(report_replies.waiting(poisoned(text), asked, page=PAGE))
    inert(replies.misunderstood(Command(text=text, verb="", problems=(text, text))))
    inert(replies.status([asked, stopping], lambda each: PAGE))
    for said in (
        replies.refusal(text),
        replies.no_such_plan(text),
    ):
        inert(said)


def poisoned(text: str) -> RunPlan:
    """A plan that says a text wherever it can."""
    whole = draft()
    assert whole.script is not None
    assert whole.spec is not None
    fixes = tuple(fix.model_copy(update={"what": text, "why": text}) for fix in whole.script.fixes)
    script = whole.script.model_copy(update={"files": {text: text}, "entry": text, "fixes": fixes})
    wants = tuple(
        each.model_copy(update={"name": text, "specifier": text, "reason": text, "extras": (text,)})
        for each in whole.spec.requirements
    )
    spec = whole.spec.model_copy(update={"python": text, "requirements": wants})
    signature = None
    if whole.signature is not None:
        signature = whole.signature.model_copy(
            update={"message": text, "exception": text, "frame": text}
        )
    return whole.model_copy(
        update={"script": script, "others": (script,), "spec": spec, "signature": signature}
    )


def test_a_plan_with_endless_programs_is_cut_inside_its_folds() -> None:
    script = draft().script
    assert script is not None
    long = script.model_copy(update={"files": {"repro.py": "print('```')  # \U0001f600\n" * 9_000}})
    body = report_replies.waiting(draft(script=long, others=(long, script)), run(), page=PAGE)
    inert(body)
    assert "the full text is in the bug report itself" in body
    assert read(others(body)).summaries[:2] == [
        "Script 1: repro.py, 9000 lines",
        "Script 2: repro.py, 9000 lines",
    ]


def test_an_endless_verdict_is_cut_and_says_where_the_rest_is() -> None:
    report = REPORTS["reproduced"]
    assert report.script is not None
    long = report.model_copy(
        update={
            "script": report.script.model_copy(update={"files": {"repro.py": "x = 1\n" * 60_000}})
        }
    )
    with_page, without = (comment.final(long, page=page) for page in (PAGE, ""))
    inert(with_page)
    assert "the full text is on the run's page" in with_page
    assert "run folder" not in with_page + without
    assert "characters left out …" in without


def test_a_verdict_holds_no_secret_of_the_host() -> None:
    report = REPORTS["reproduced"].model_copy(
        update={"notes": (Note(kind="run", text="it printed hunter2hunter2"),)}
    )
    assert "hunter2" in comment.final(report, page=PAGE)
    assert "hunter2" not in comment.final(report, page=PAGE, secrets=["hunter2hunter2"])


def test_a_plan_shows_no_credential_of_the_reporter() -> None:
    script = draft().script
    assert script is not None
    token = "ghp_" + "a1B2" * 9
    leaky = draft(script=script.model_copy(update={"files": {"repro.py": f"login('{token}')\n"}}))
    body = report_replies.waiting(leaky, run(), page=PAGE)
    assert token not in body
    assert f"approve {run().plan}" in body, "the hash is the run's own"


def test_nothing_internal_is_told_of_a_defect() -> None:
    assert "internal" in run(error="ValueError: /srv/internal").error
    assert "internal" not in STAGES["failed"] + STAGES["status"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 min"),
        (599, "9 min"),
        (899, "10 min"),
        (7_500, "2 h 5 min"),
    ],
)
def test_the_clock_alone_edits_nothing_every_second(seconds: float, words: str) -> None:
    assert f"<sub>{words} so far" in comment.working(
        run(), ahead=0, page="", elapsed_s=seconds, attempts=0
    )


def test_stages_tick_in_order() -> None:
    stages_in_order = [stage for _, several in STEPS for stage in several]
    ticks = [
        comment.working(run(stage=stage), ahead=0, page="", elapsed_s=0, attempts=0).count("✅")
        for stage in stages_in_order
    ]
    assert ticks == sorted(ticks)
    assert (ticks[0], ticks[-1]) == (0, len(STEPS) - 1)


def test_what_a_proof_has_built_sends_nobody_back_to_the_beginning() -> None:
    world = World(broken(17, 19), released(40), bad="1.18")
    world.runner.ports.listener.heard.clear()
    runner = world.runner
    with runner.proving("bisect", 600) as world.runner, world.runner.stage("bisect"):
        world.releases()
    world.runner = runner
    heard = world.runner.ports.listener.heard
    assert {each.text for each in heard} >= {
        "building the environment",
        "bisect: 1.19 fails (2 of 2 runs failed)",
    }
    assert {step(each.stage) for each in heard} == {step("bisect")}
    world.runner.say("environment", "afterwards")
    assert heard[-1].stage == "environment"
    assert world.runner.seconds.keys() >= {"bisect", "environment"}, (
        "where the time went is kept apart"
    )


@pytest.mark.parametrize(
    ("stage", "progress", "words"),
    [
        ("bisect", "bisect: 0.3.3 fails", "bisection: 0.3.3 fails"),
        ("bisect", "bisect: building the environment", "bisection: building the environment"),
        ("control", "control: control", "control"),
        ("minimize", "minimize: minimizing: 32 \u2192 9 lines", "minimizing: 32 \u2192 9 lines"),
        ("minimize", "minimize", "minimizing"),
        ("search", "search: trying block 1", "trying block 1"),
        ("search", "search: search", ""),
    ],
)
def test_of_a_proof_it_says_which(stage: str, progress: str, words: str) -> None:
    assert present(run(stage=stage, progress=progress)) == words


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("run", "<!-- reprise:run -->"),
        ("reply:72d3162e-cc78:0", "<!-- reprise:reply:72d3162e-cc78:0 -->"),
        ("a --> b\n/reproduce", "<!-- reprise:a-b-reproduce -->"),
        ("x" * 400, f"<!-- reprise:{'x' * 200} -->"),
    ],
)
def test_a_marker_is_one_hidden_line(key: str, line: str) -> None:
    assert comment.marker(key) == line


@pytest.mark.parametrize(
    "address",
    ["https://a.example/runs/x) [y](https://b.example", "javascript:x", "https://a.example/ x", ""],
)
def test_an_address_that_is_not_plain_is_no_link(address: str) -> None:
    assert document.own("page", address) == "page"
    assert document.own("page", PAGE) == f"[page]({PAGE})"


def test_what_is_not_waiting_is_not_offered_for_approval() -> None:
    done = run(state=RunState.FINISHED, verdict="reproduced")
    assert "approve" in inline(replies.standing(run(state=RunState.WAITING)))
    assert "approve" not in inline(replies.standing(done))


def test_the_verdict_of_a_paper_is_named_as_that_of_a_number() -> None:
    done = run(state=RunState.FINISHED, verdict="reproduced")
    request = done.request.model_copy(update={"proof": "paper"})
    of_paper = done.model_copy(update={"request": request})
    assert inline(replies.standing(done)) == "**Reproduced**"
    assert inline(replies.standing(of_paper)) == "**Number reproduced**"


def test_labels_are_the_four_and_only_of_verdicts_about_the_issue() -> None:
    made = {kind: row.label for kind, row in KINDS.items() if row.label is not None}
    assert set(made) == {"reproduced", "not_reproduced", "needs_info", "inconclusive"}
    assert set(LABELS) == {each.name for each in made.values()}
    for label in made.values():
        assert label.name.startswith("reprise: ")
        assert re.fullmatch("[0-9a-f]{6}", label.colour)
        assert len(label.description) <= 100


def test_an_outsiders_choices_are_shown_to_whoever_approves() -> None:
    chosen: Run = run(options=job_options(device="gpu", pins=("torch==2.1.0",)))
    assert "Requested with `torch=2.1.0`, `device=gpu`." in report_replies.waiting(
        draft(), chosen, page=""
    )
    assert "Requested with" not in report_replies.waiting(draft(), run(), page="")


def test_what_programs_can_read_of_the_operators_is_shown_to_whoever_approves() -> None:
    own = {"data": {"data/`@someone`": "mnist"}, "weights": ("org/tiny",)}
    clone = "https://github.com/a/b"
    body = report_replies.waiting(draft(), run(options=job_options(**own, repo=clone)), page="")
    assert "can read the operator's data:\n\n- `mnist` at " in body
    inert(body)
    assert "the operator's cache:\n\n- `org/tiny`" in body
    no_clone = job_options(data=own["data"])
    body = report_replies.waiting(draft(), run(options=no_clone), page="")
    assert "operator" not in body


def test_a_verdict_that_asks_the_reporter_says_how_to_go_on() -> None:
    report: IssueReport = REPORTS["needs_info"]
    assert isinstance(report.verdict, NeedsInfo)
    assert "then comment `/reproduce`" in comment.final(report, page=PAGE)
    assert "/reproduce" not in comment.final(report, page=PAGE, footer_help=False)
