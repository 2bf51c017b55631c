"""`/reproduce repair`: the patch beside the verdict, in the comment and in report.json."""

import json
from dataclasses import replace
from time import sleep

from bot.kernel.bug import Issue
from bot.kernel.errors import ModelUnavailable
from bot.kernel.job import PROOFS, ReproduceIssue, TrainingOptions
from bot.kernel.training_types import Finding, RepairRequest
from bot.products.engine import execute as run
from bot.report.comment import comment
from bot.report.report_json import report_text
from bot.report.terminal import print_document
from bot.training.repair.repair import FRESH
from bot.training.sections import repair_document
from sandbox.port import RunResult
from tests.support.fakes import ScriptedModel
from tests.support.jobs import job_options
from tests.unit.test_hostile_outgoing import alive, unlinked
from tests.unit.test_pipeline import world
from tests.unit.test_repair import FAULTY, Landscape, by_rate

REPORT = Issue(
    title="The network does not learn",
    body=f"The accuracy stays low whatever I do.\n\n```python\n{FAULTY}```\n",
)
OPTIONS = job_options(without=PROOFS, diagnose=True, repair=RepairRequest())


class InIssue(Landscape):
    """The program of an issue is not called a.py, and no fork can be made here."""

    def __call__(self, spec):
        if any("batch" in word for word in spec.argv):
            return RunResult(exit_code=1)
        name = next(name for name in spec.files if not name.startswith(".reprise"))
        return super().__call__(replace(spec, files={**spec.files, "a.py": spec.files[name]}))


class Slow(InIssue):
    """Every trial takes a moment, so that a limit of time has something to stop."""

    def __call__(self, spec):
        if "REPRISE_TRIAL" in spec.env:
            sleep(0.05)
        return super().__call__(spec)


def reported(options=OPTIONS, metric=by_rate, sandbox=InIssue):
    return run(ReproduceIssue(issue=REPORT, **dict(options)), world(sandbox(metric)))


def test_the_patch_stands_in_comment_and_json():
    """With its figures; it decides on a report that gives no value to compare."""
    report = reported()
    assert report.repair.proven
    text = comment(report, run="r1")
    assert "**1 change proven to help:**" in text
    assert "-optimizer = torch.optim.SGD(model.parameters(), lr=50.0)" in text
    patch = json.loads(report_text(report))["patch"]
    assert (patch["proven"], patch["patch"][0]["parameter"]) == (True, "learning_rate")
    plain = reported(job_options(without=PROOFS, diagnose=True))
    assert (plain.verdict.kind, plain.repair) == ("inconclusive", None)
    assert (report.verdict.kind, report.verdict.control.type) == ("reproduced", "patched")
    assert "6 of 6 runs failed, but 0 of 6 failed with the patch" in text


def test_what_a_model_alone_suspects_is_tried_in_a_run_of_the_app():
    """Its fault is in the diagnosis with its mark, its change among the trials of the repair."""

    def answer(question):
        if not question.prompt.startswith("opinion"):
            raise ModelUnavailable("asked for something else")
        fault = {"fault": "OCH", "layers": [], "quote": "torch.optim.SGD",
                 "reason": "Too plain.", "change": "Use Adamax.", "file": "", "line": 0,
                 "before": "", "after": ""}  # fmt: skip
        return {"purpose": "Two classes.", "faults": [fault]}

    ports = world(InIssue(lambda text: 0.9 if "Adamax" in text else 0.3))
    ports = replace(ports, model=ScriptedModel(answer))
    report = run(ReproduceIssue(issue=REPORT, **dict(OPTIONS)), ports)
    assert [each.fault for each in report.diagnosis.suspected] == ["OCH"]
    assert [(edit.kind, edit.after) for edit in report.repair.patch] == [("optimizer", "adamax")]
    assert report.repair.proven


LINE = "        loss = nn.functional.cross_entropy(model(x), y)"
HALVED = LINE.replace("model(x)", "model(x / 2)")


def with_lines(after):
    """A report whose program a model would change in one line, and that model."""
    fault = {"fault": "wrong-code", "layers": [], "file": "", "line": 0, "quote": LINE.strip(),
             "reason": "Inputs are not halved.", "change": "Halve them.", "before": LINE,
             "after": after}  # fmt: skip

    def answer(question):
        if not question.prompt.startswith("opinion"):
            raise ModelUnavailable("asked for something else")
        return {"purpose": "Two classes.", "faults": [fault]}

    model = ScriptedModel(answer)
    ports = replace(world(InIssue(lambda x: 0.9 if "x / 2" in x else 0.3)), model=model)
    training = TrainingOptions(repair=RepairRequest(), budget=30.0)
    options = {**dict(job_options(without=PROOFS)), "training": training}
    return run(ReproduceIssue(issue=REPORT, **options), ports), model


def test_the_code_that_a_model_would_mend_is_confirmed_proven_and_proposed():
    """One question serves the diagnosis and the repair."""
    report, model = with_lines(HALVED)
    assert [x.prompt.partition("@")[0] for x in model.asked].count("opinion") == 1
    (finding,) = report.diagnosis.diagnosis.findings
    assert (finding.fault, finding.by, finding.status) == ("wrong-code", "model", "confirmed")
    assert report.repair.proven
    text = comment(report, run="r1")
    assert f"+{HALVED}" in text
    assert "wrong code, confirmed" in text
    patch = json.loads(report_text(report))["patch"]
    assert (patch["proven"], patch["patch"][0]["kind"]) == (True, "lines")


def test_what_a_model_writes_into_a_patch_is_inert_in_a_comment():
    """It is text of strangers, in a table and in the diff."""
    hostile = "</sub>![x](https://evil.example) @octocat | ``` <img src=x> <!-- fixes #1"
    report, _ = with_lines(f"{HALVED} if {hostile!r} else 0")
    assert report.repair.proven
    assert "evil.example" in report.repair.diff
    assert alive(unlinked(comment(report, run="r1"))) == []


def test_a_repair_that_has_no_time_left_leaves_the_diagnosis():
    """And a note that says why there is no patch."""
    report = reported(
        job_options(without=PROOFS, repair=RepairRequest(), repair_minutes=1e-9), sandbox=Slow
    )
    assert report.diagnosis is not None
    assert report.repair is None
    assert any("the repair did not finish" in note.text for note in report.notes)


def test_an_error_of_ours_in_a_repair_costs_neither_verdict_nor_diagnosis(monkeypatch):
    """It is kept for whoever hosts Reprise."""

    def broken(*_, **__):
        raise KeyError("a mistake")

    monkeypatch.setattr("bot.training.repair.repair.repair", broken)
    report = reported()
    assert report.diagnosis is not None
    assert "a mistake" in report.defects["repair"]


def test_no_patch_is_an_answer():
    """Where nothing helps, the comment says so."""
    text = comment(reported(metric=lambda _: 0.5), run="r1")
    assert "proven to help" not in text


def test_a_terminal_shows_both_losses_and_the_diff():
    """One below the other, with the figures above them."""
    whole = repair_document(reported().repair, name="train.py", folder="run")
    text = print_document(whole, 100, "utf-8", colour=False)
    assert text.startswith("1 change proven to help in train.py: accuracy ")
    assert text.index("Loss of faulty") < text.index("Loss of patched")
    assert "+optimizer = torch.optim.SGD" in text


def test_a_repair_says_what_it_cannot_mend_why_trainings_failed_and_how_to_apply_the_patch():
    found = reported().repair
    late = found.tried[-1].model_copy(
        update={"patch": found.patch, "value": None, "error": "the program timed out"}
    )
    finding = Finding(fault="CPP", rule="r", confidence=0.9, message="shapes differ", line=7)
    lame = found.model_copy(
        update={"tried": (*found.tried, late), "limit_s": 60.0, "elsewhere": (finding,)}
    )
    text = print_document(repair_document(lame, name="train.py", folder="run"), 300, "utf-8")
    assert "1 training with the patch gave no number: the program timed out (limit 60 s)." in text
    assert "no edit of Reprise can fix it:\n  - Shapes differ. (line 7)" in text
    assert "Next: Run git apply run/repair.diff to apply the patch." in text
    assert found.limit_s > 0


def test_trainings_confirm_the_diagnosis_of_an_issue_and_serve_its_repair():
    """With a budget; the comment and report.json say what they gained."""
    training = TrainingOptions(budget=40, repair=RepairRequest())
    sandbox = InIssue(by_rate)
    job = ReproduceIssue(issue=REPORT, training=training, without=PROOFS)
    report = run(job, world(sandbox))
    finding = report.diagnosis.diagnosis.findings[0]
    assert (finding.fault, finding.status) == ("HLR", "confirmed")
    assert report.repair.proven
    trained = [(text, seed, part) for text, part, seed in sandbox.runs if part]
    proven = [x for x in trained if x[1] not in FRESH]
    assert len(proven) == len(set(proven))
    text = comment(report, run="r1")
    assert "learning rate, confirmed" in text
    assert "Confirmed by trainings: accuracy" in text
    told = json.loads(report_text(report))["diagnosis"]
    assert told["interventions"]["trainings"] >= 7
