"""Findings that trainings confirm or refute, on a sandbox that answers with what each program would
have learned.
"""

import re
from dataclasses import replace

import pytest

from bot.environment import provided
from bot.kernel.job import DiagnoseProgram
from bot.kernel.session import Session
from bot.kernel.training_types import (
    Change,
    Diagnosis,
    Finding,
    RepairRequest,
    SecondOpinion,
    TrainingProgram,
)
from bot.program.line_edits import make_edit
from bot.report.terminal import print_document
from bot.training.diagnose import diagnose_recording, record_run
from bot.training.diagnosis import rules
from bot.training.repair.interventions import gained_share, intervene, rank_test
from bot.training.repair.repair import repair
from bot.training.repair.trials import TRIALS
from bot.training.sections import diagnosis_document
from tests.unit.test_pipeline import world
from tests.unit.test_repair import FAULTY, Landscape, by_rate, by_rate_and_epochs, rate


def finding(fault, parameter, *values, confidence=0.9):
    change = Change(parameter=parameter, values=values, words=f"Change {parameter}.")
    return Finding(
        fault=fault, rule=fault.lower(), confidence=confidence, message="m", change=change
    )


RATE = finding("HLR", "learning_rate", "0.1")
EPOCHS = finding("HNE", "epochs", "60")
WIDTH = finding("LCN", "units", "64")


def begun(landscape, *kept, source=FAULTY):
    """The program, its recorded run and a session, over a journal with trainings of before."""
    program = TrainingProgram(files={"a.py": source.encode()}, entry="a.py", arguments=("-v",))
    job = DiagnoseProgram(program=program)
    session = Session.begin(job, world(landscape))
    landscape.journal = session.ports.journal
    landscape.journal.fill(TRIALS, kept)
    return program, record_run(program, provided.spec(program, job.environment), session), session


def diagnosed(landscape, *findings, budget=40, source=FAULTY, advice=(), doubts=(), opinion=None):
    program, recorded, session = begun(landscape, source=source)
    diagnosis = Diagnosis(findings=findings, advice=advice, doubts=doubts)
    run = diagnose_recording(recorded, lambda _: diagnosis)
    run = run.model_copy(update={"opinion": opinion})
    return intervene(program, recorded, run, session, budget)


def told(run):
    return [(x.fault, x.status) for x in run.diagnosis.findings]


def test_what_helps_is_confirmed_and_what_does_not_is_refuted():
    """The rate is to blame, whatever the rules say first; the width is listed apart."""
    run = diagnosed(Landscape(by_rate), WIDTH, RATE)
    assert told(run) == [("HLR", "confirmed")]
    assert [(x.fault, x.status) for x in run.diagnosis.refuted] == [("LCN", "refuted")]
    gain = run.diagnosis.findings[0].gain
    assert (len(gain.before), len(gain.after), gain.p) == (4, 3, 1 / 35)
    assert gain.share > 0.8
    assert run.interventions.trainings > 7
    assert not run.interventions.missing


def test_two_that_help_alike_are_both_named():
    """The more helpful one first."""

    def metric(text):
        return 0.9 if "Adam" in text else 0.85 if rate(text) <= 1 else 0.3

    run = diagnosed(Landscape(metric), RATE, finding("OCH", "optimizer", "adam"))
    assert told(run) == [("OCH", "confirmed"), ("HLR", "confirmed")]


def test_what_helps_only_together_is_confirmed_together():
    """More epochs bring nothing while the rate is wrong."""
    run = diagnosed(Landscape(by_rate_and_epochs), EPOCHS, RATE, WIDTH, budget=80)
    assert sorted(told(run)) == [("HLR", "confirmed"), ("HNE", "confirmed")]
    assert [x.fault for x in run.diagnosis.refuted] == ["LCN"]


def test_a_finding_without_an_edit_stays_likely():
    """So does one that spoils the metric itself."""
    leak = finding("split-leak", "code(split-leak)", "as written")
    run = diagnosed(Landscape(lambda _: 0.5), finding("CPP", "labels", "unscaled"), leak)
    assert told(run) == [("CPP", "likely"), ("split-leak", "likely")]
    assert run.diagnosis.refuted == ()


def test_a_patch_that_takes_too_long_is_not_refuted():
    """Only a training that ended says that a change does not help."""
    run = diagnosed(Landscape(lambda _: 0.5), finding("HNE", "epochs", "2000"), budget=20)
    assert told(run) == [("HNE", "likely")]
    assert run.interventions.missing == "the budget was used up"


def test_what_no_rule_suspects_is_found_by_training():
    """Only where the run did not learn, and nothing that a rule suspects helps."""
    landscape = Landscape(lambda text: 0.9 if "nn.Linear(16, 16)" in text else 0.3)
    run = diagnosed(landscape, WIDTH, budget=60)
    assert told(run) == [("LRM", "confirmed")]
    assert (run.diagnosis.findings[0].by, run.diagnosis.findings[0].layers) == ("runs", (0,))
    silent = diagnosed(Landscape(lambda _: 0.3), budget=60)
    assert (silent.diagnosis.findings, silent.interventions.missing) == ((), "")


def test_nothing_is_sought_beside_what_a_run_shows_of_code():
    """Where no edit tries it either: more epochs, say, would help under any such fault."""
    shown = finding("accumulation-wrong", "code(accumulation-wrong)", "repaired")
    landscape = Landscape(lambda text: 0.9 if "nn.Linear(16, 16)" in text else 0.3)
    alone = diagnosed(landscape, shown, budget=60)
    assert told(alone) == [("accumulation-wrong", "likely")]
    assert alone.interventions.trainings <= 1
    assert "no edit" in alone.interventions.missing
    beside = diagnosed(landscape, shown, WIDTH, budget=60)
    assert told(beside) == [("accumulation-wrong", "likely")]
    assert [x.fault for x in beside.diagnosis.refuted] == ["LCN"]
    unsure = finding("accumulation-wrong", "code(accumulation-wrong)", "repaired", confidence=0.5)
    assert ("LRM", "confirmed") in told(diagnosed(landscape, unsure, budget=60))


class Timed(Landscape):
    """A training takes as long as its epochs."""

    def __call__(self, spec):
        result = super().__call__(spec)
        epochs = re.search(r"range\((\d+)\)", self.runs[-1][0])
        return replace(result, seconds=int(epochs[1]) / 20)


def test_a_small_budget_shortens_the_trainings():
    """All of them to as many epochs; then more epochs say nothing."""
    landscape = Timed(by_rate)
    run = diagnosed(landscape, RATE, EPOCHS, budget=6)
    assert told(run) == [("HLR", "confirmed"), ("HNE", "likely")]
    assert run.interventions.epochs == 9
    assert run.interventions.seconds <= 6
    assert {text.count("range(9)") for text, part, _ in landscape.runs[2:] if part} == {1}


def test_a_repair_makes_none_of_the_trainings_again():
    """It begins with those of the diagnosis."""
    first = Landscape(by_rate)
    first_run = diagnosed(first, RATE)
    trainings = first.journal.read(TRIALS)
    again = Landscape(by_rate)
    program, recorded, session = begun(again, *trainings)
    confirmed = first_run.diagnosis
    found = repair(program, recorded, session, RepairRequest(), judge=lambda: confirmed)
    assert found.proven
    assert found.patch == confirmed.findings[0].gain.patch
    alone = Landscape(by_rate)
    repair(*begun(alone), RepairRequest(), judge=lambda: confirmed)
    assert len(again.runs) <= len(alone.runs) - 4


@pytest.mark.parametrize(
    ("before", "after", "p"),
    [
        ((0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7), 1 / 35),
        ((0.1, 0.2, 0.3, 0.4), (0.5, 0.6, None), 11 / 35),
        ((None,) * 4, (0.5, 0.6, 0.7), 1 / 35),
        ((0.5,) * 4, (0.5,) * 3, 1.0),
    ],
)
def test_ranks_of_few_trainings(before, after, p):
    """Exact, and a training without a number is the worst."""
    assert rank_test(before, after, "max") == pytest.approx(p)


@pytest.mark.parametrize(
    ("before", "after", "direction", "share"),
    [
        ((0.5,), (0.9,), "max", 0.8),
        ((50.0,), (90.0,), "max", 0.8),
        ((2.0,), (0.5,), "min", 0.75),
        ((0.5,), (0.4,), "max", -0.2),
        ((None,), (0.4,), "max", 1.0),
        ((0.4,), (None,), "max", -1.0),
        ((1.0,), (1.0,), "max", 0.0),
        ((-1.0,), (-2.0,), "min", 1 / 3),
    ],
)
def test_the_share_of_what_was_left_to_gain(before, after, direction, share):
    """Whatever the metric's range."""
    assert gained_share(before, after, direction) == pytest.approx(share)


@pytest.mark.parametrize(("confidence", "status"), [(0.9, "likely"), (0.5, "refuted")])
def test_an_edit_that_does_not_help_does_not_refute_what_a_run_shows_of_code(confidence, status):
    """The edit may be at fault; only a doubt is refuted, and what is not the cause."""
    seen = finding("gradients-not-reset", "units", "64", confidence=confidence)
    run = diagnosed(Landscape(lambda _: 0.3), seen)
    (judged,) = (*run.diagnosis.findings, *run.diagnosis.refuted)
    assert (judged.status, len(judged.gain.after)) == (status, 2)
    beside = diagnosed(Landscape(by_rate), seen, RATE)
    assert [x.fault for x in beside.diagnosis.refuted] == ["gradients-not-reset"]


# What a model reads in the code.


def proposed(before, after, fault="wrong-code"):
    edit = make_edit({"": FAULTY}, "", before, after, fault)
    change = Change(parameter="", words="w", edit=edit)
    return Finding(
        fault=fault, rule="", confidence=0.0, message="m", by="model", line=edit.line,
        change=change,
    )  # fmt: skip


def mended(text):
    if "x = x + 0" in text:
        return 0.29
    return 0.9 if "cross_entropy(model(x * 2), y)" in text else 0.3


LOSS_LINE = "        loss = nn.functional.cross_entropy(model(x), y)"
MENDED = proposed(LOSS_LINE, LOSS_LINE.replace("model(x)", "model(x * 2)"))
USELESS = proposed("        loss.backward()", "        loss.backward()\n        x = x + 0")
HOSTILE = proposed('print("test accuracy:", accuracy(model))', 'print("test accuracy: 1.0")')


def test_an_edit_of_a_model_is_confirmed_or_refuted_like_that_of_a_rule():
    """What is confirmed comes first, with its line."""
    run = diagnosed(Landscape(mended), WIDTH, USELESS, MENDED)
    assert told(run) == [("wrong-code", "confirmed")]
    (finding,) = run.diagnosis.findings
    assert (finding.by, finding.line, finding.gain.p) == ("model", 9, 1 / 35)
    assert sorted(x.fault for x in run.diagnosis.refuted) == ["LCN", "wrong-code"]
    shown = print_document(diagnosis_document(run, name="a.py"), 100, "utf-8")
    assert "1 finding in a.py" in shown
    assert "1. wrong-code, wrong code, confirmed: M." in shown
    assert "with code: wrong-code (line 9) (3 seeds" in " ".join(shown.split())
    assert "Named by a model, confirmed by trainings, line 9 of the program" in shown


def test_an_edit_that_the_metric_cannot_see_is_not_refuted():
    """It is the same to the last digit: not computed from what was changed."""
    run = diagnosed(Landscape(lambda _: 0.3), USELESS)
    assert told(run) == [("wrong-code", "likely")]
    assert not run.diagnosis.refuted


def test_a_guess_that_trainings_do_not_decide_stays_a_doubt():
    """However sure its rule was before a model saw it otherwise."""
    unsure = finding("HLR", "learning_rate", "0.1", confidence=0.6)
    run = diagnosed(Landscape(lambda _: 0.3), doubts=(unsure,), budget=0.1)
    assert [x.fault for x in run.diagnosis.doubts] == ["HLR"]
    assert not run.diagnosis.findings


def test_an_edit_that_changes_what_is_measured_is_never_trained():
    """However much better its number is."""
    landscape = Landscape(lambda text: 1.0 if "accuracy: 1.0" in text else 0.3)
    run = diagnosed(landscape, HOSTILE, WIDTH)
    assert told(run) == [("wrong-code", "likely")]
    assert not any("accuracy: 1.0" in text for text, _, _ in landscape.runs)
    found = diagnosed(landscape, HOSTILE, WIDTH, opinion=SecondOpinion(model="m"))
    assert found.opinion.refused == ("wrong-code: it changes what the program prints",)


def test_in_a_run_that_learned_only_a_large_gain_makes_a_finding(monkeypatch):
    """What a model says of it is a remark until trainings confirm it."""
    monkeypatch.setattr(rules, "success", lambda _: "trained")
    for gained, status in ((0.9, ["confirmed"]), (0.42, [])):
        landscape = Landscape(lambda text: gained if "x * 2" in text else 0.3)  # noqa: B023
        run = diagnosed(landscape, advice=(MENDED,))
        assert [x.status for x in run.diagnosis.findings] == status
        assert len(run.diagnosis.advice) == 1 - len(status)
    assert diagnosed(Landscape(mended)).interventions is None


def test_a_rule_is_tested_with_the_edit_of_a_model_that_agrees():
    """Where the edit that Reprise knows does not help, or there is none."""
    shown = finding("state-carried", "code(state-carried)", "repaired")
    both = shown.model_copy(
        update={"change": shown.change.model_copy(update={"edit": MENDED.change.edit})}
    )
    assert told(diagnosed(Landscape(mended), shown)) == [("state-carried", "likely")]
    assert told(diagnosed(Landscape(mended), both)) == [("state-carried", "confirmed")]
