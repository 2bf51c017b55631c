"""A training that learns too little is a failure like any other: read, frozen, judged."""

from __future__ import annotations

import pytest

from bot.issues.judge import judge
from bot.issues.reading.issue import read_issue
from bot.issues.reading.markdown import Sentence
from bot.issues.reading.training import find_complaint
from bot.issues.signature.freeze import freeze, training_signature
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import Issue, ReportKind, ScriptFix, TrainingSignature
from bot.kernel.environment import Environment
from bot.kernel.errors import UserError
from bot.kernel.report import Inconclusive, ReportDraft, Reproduced
from bot.kernel.training_types import Edit, Improvement, Metric, Repair, Trial
from bot.products import issue_training
from bot.products.issue_training import decided_by_patch, with_patch
from bot.report.comment import comment
from bot.training.repair.repair import search_bound
from tests.unit.test_judge import crash, seen

PROGRAM = """```python
import torch
for epoch in range(9):
    optimizer.zero_grad(); loss = f(net(x), y); loss.backward(); optimizer.step()
    print(epoch, "loss", loss.item())
print("test accuracy:", accuracy)
```
"""


def complaint(text, title="My network"):
    found = find_complaint(title, [Sentence(line, 1, ()) for line in text.split("\n") if line])
    return found and (found.metric, found.reported, found.expected)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("The accuracy stays around 10 % whatever I do.", ("accuracy", 0.1, None)),
        ("The test accuracy is still only about 0.45.", ("accuracy", 0.45, None)),
        ("It never gets above 52 percent accuracy.", ("accuracy", 0.52, None)),
        ("My accuracy is 72 %, but the README says 94 %.", ("accuracy", 0.72, 0.94)),
        ("I get 72 % accuracy instead of the 94 % of the paper.", ("accuracy", 0.72, 0.94)),
        ("It stays at 43 % accuracy, while a plain SVM gets 89 %.", ("accuracy", 0.43, 0.89)),
        ("The loss is stuck at 0.693.", ("loss", 0.693, None)),
        ("The loss hovers around the same value from the start.", ("loss", None, None)),
        ("The validation accuracy never moves.", ("accuracy", None, None)),
        ("The loss does not decrease at all.", ("loss", None, None)),
        ("It stays at coin-flip accuracy.", ("accuracy", 0.5, None)),
        ("It is no better than a coin toss, an SVM gets 90 %.", ("accuracy", 0.5, 0.9)),
    ],
)
def test_what_a_report_complains_of_is_read(text, read):
    assert complaint(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "After 20 epochs it works well and reaches 97 % accuracy.",
        "The accuracy is 97 % as in the paper.",
        "With 10 classes and 32 neurons I see an error.",
        "The learning rate is 0.1 and the dropout 0.5.",
        "I use 80 % of the data for training.",
        "The loss starts at about 0.18.",
        "The download stops at 45 %.",
        "GPU usage stays at 10 %.",
        "version 0.45 raises an error about the accuracy argument",
        "It takes 30 % longer than before.",
        "The model trains well and the loss is low enough to stop.",
        "The function gives a tensor for the input.",
        "I train it for ten epochs.",
    ],
)
def test_other_numbers_are_no_complaint(text):
    assert complaint(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "My model does not learn at all.",
        "It never converges.",
        "The network predicts 1 for every input.",
        "It gives 1 for every input.",
        "It is hardly better than guessing.",
        "Why do I get such a bad result for such a simple dataset?",
        "After 200 epochs the loss is still large.",
        "The training is unstable.",
    ],
)
def test_words_that_a_training_does_not_do_its_work_need_no_value(text):
    assert complaint(text) == ("", None, None)
    assert frozen(text) is None


@pytest.mark.parametrize(
    ("text", "title", "read"),
    [
        ("It is very unstable. Others report well over 95 % here.", "x", ("accuracy", None, 0.95)),
        ("It never learns to separate them.", "It does not reach 100 %", ("accuracy", None, 1.0)),
        ("The accuracy never moves. The paper says 94 %.", "x", ("accuracy", None, 0.94)),
        ("It never converges. The loss should be 0.1.", "x", ("", None, None)),
        ("It never converges. It should use 20 % of the memory.", "x", ("", None, None)),
        ("Others report 95 % here.", "x", None),
    ],
)
def test_what_is_expected_of_a_training_that_does_not_do_its_work_is_read(text, title, read):
    assert complaint(text.replace(". ", ".\n"), title) == read


def test_a_training_that_ends_a_tenth_below_what_is_expected_fails():
    signature = frozen("It is very unstable. Others report well over 95 % here.")
    assert signature.bound == pytest.approx(0.855)


def frozen(text, title="My network", program=PROGRAM):
    return freeze(read_issue(Issue(title=title, body=f"{text}\n\n{program}")))


def test_a_complaint_about_a_program_that_trains_is_the_signature():
    signature = frozen("I get 72 % accuracy, but the README says 94 %.")
    assert isinstance(signature, TrainingSignature)
    assert signature.bound == pytest.approx(0.83)
    assert frozen("The accuracy stays around 10 %.").bound == pytest.approx(0.325)
    without = "```python\nprint(1)\n```\n"
    assert frozen("The accuracy stays around 10 %.", program=without) is None


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (f"Why do I get such a bad result?\n\n{PROGRAM}", ReportKind.BUG),
        (f"Is this the right shape?\n\n{PROGRAM}", ReportKind.QUESTION),
        ("Why do I get such a bad result?", ReportKind.QUESTION),
    ],
)
def test_a_question_about_a_training_that_does_badly_is_a_report(body, kind):
    assert read_issue(Issue(title="How to prepare my data?", body=body)).kind is kind


def test_an_exception_of_the_report_goes_before_its_numbers():
    text = "Accuracy stays at 10 %, then it stops:\n\n```\nValueError: labels are empty here\n```\n"
    assert frozen(text).kind == "crash"


LOW = TrainingSignature(metric="accuracy", direction="max", bound=0.5, reported=0.4)
FLAT = TrainingSignature(metric="loss", direction="min")
SCORE = FLAT.model_copy(update={"metric": "score", "direction": "max"})
SOURCE = 'import torch\na = evaluate(torch.load("net"))\nprint("test accuracy:", a)\n'
SCRIPT = Script(files={"repro.py": SOURCE})


@pytest.mark.parametrize(
    ("output", "signature", "match"),
    [
        ("test accuracy: 0.41\n", LOW, Match.MATCHED),
        ("test accuracy: 0.93\n", LOW, Match.PASSED),
        ("accuracy 41.0 %\n", LOW, Match.MATCHED),
        ("Accuracy: 93.4\n", LOW, Match.PASSED),
        ("acc: 0.93\nacc: 0.41\n", LOW, Match.MATCHED),
        ("accuracy: 0.95 - loss: 0.1 - val_accuracy: 0.42\n", LOW, Match.MATCHED),
        ("accuracy: nan\n", LOW, Match.MATCHED),
        ("loss: 0.3\n", LOW, Match.UNDECIDED),
        ("", LOW, Match.UNDECIDED),
        ("loss: 0.69\nloss: 0.70\nloss: 0.69\n", FLAT, Match.MATCHED),
        ("loss: 0.69\nloss: 0.40\nloss: 0.11\n", FLAT, Match.PASSED),
        ("Loss: 0.690..\nLoss: 0.690..\nLoss: 0.690..\n", FLAT, Match.MATCHED),
        ("loss: 0.69\n", FLAT, Match.UNDECIDED),
        ("loss 1.2.3\nloss 1.2.3\nloss 1.2.3\n", FLAT, Match.UNDECIDED),
        ("episode: 1 score: 21.5\nscore = 18\nscore: 19.6\n", SCORE, Match.MATCHED),
        ("score: 21.5\nscore: 80\nscore: 190.0\n", SCORE, Match.PASSED),
    ],
)
def test_the_last_value_decides(output, signature, match):
    assert judge(seen(output=output), signature, SCRIPT).match is match


def test_a_training_that_ends_early_decides_nothing():
    assert judge(seen(crash(), output="accuracy: 0.1\n"), LOW, SCRIPT).match is not Match.MATCHED
    late = seen(output="accuracy: 0.1\n", timed_out=True)
    assert judge(late, LOW, SCRIPT).match is Match.UNDECIDED


def test_a_number_that_the_program_writes_down_is_not_measured():
    staged = Script(files={"repro.py": 'print("test accuracy: 0.1")\n'})
    assert judge(seen(output="test accuracy: 0.1\n"), LOW, staged).match is not Match.MATCHED


def repair(before, after, **changes):
    fields = {
        "metric": Metric(name="accuracy", direction="max", source="output"),
        "improvement": Improvement(before=before, after=after, p=0.03, effect=3, significant=True),
        "proven": True,
    }
    return Repair(**{**fields, **changes})


def test_a_proven_patch_is_the_control():
    counts = {"runs": 6, "failures": 6, "interval": (0.5, 1.0), "reason": "x"}
    verdict = Reproduced(**counts, determinism="deterministic")
    found = repair((0.4,) * 6, (0.9,) * 6)
    control = with_patch(verdict, LOW, found).control
    assert (control.type, control.failures, control.paired_failures) == ("patched", 0, 6)
    assert control.p < 0.01
    for other in (
        repair((0.4,) * 6, (0.9,) * 6, proven=False),
        repair(
            (0.4,) * 6, (0.9,) * 6, metric=Metric(name="loss", direction="min", source="output")
        ),
    ):
        assert with_patch(verdict, LOW, other).control.type == "none"
    assert with_patch(verdict, FLAT, found).control.type == "none"
    undecided = Inconclusive(**counts)
    assert with_patch(undecided, LOW, found) is undecided


def test_a_training_of_a_repository_is_recorded_with_the_files_of_its_tree(tmp_path):
    (tmp_path / "nets").mkdir()
    (tmp_path / "train.py").write_text("import nets.small\n")
    (tmp_path / "nets" / "small.py").write_text("width = 3\n")
    here = Environment(id="e", python="3", interpreter="python", tree=str(tmp_path))
    own = Script(
        files={"train.py": "edited"}, entry="train.py", command=("train.py", "--epochs", "3")
    )
    program = issue_training._training_program(own, here)
    assert program.files == {"train.py": b"import nets.small\n", "nets/small.py": b"width = 3\n"}
    assert (program.entry, program.arguments) == ("train.py", ("--epochs", "3"))
    fix = ScriptFix(what="x", why="y")
    assert (
        issue_training._training_program(own.model_copy(update={"fixes": (fix,)}), here).source
        == "edited"
    )
    module = own.model_copy(update={"command": ("-m", "train")})
    with pytest.raises(UserError, match="cannot be recorded"):
        issue_training._training_program(module, here)


def undecided(text, signature=None):
    body = f"{text}\n\n{PROGRAM}"
    issue = Issue(title="My network", body=body)
    verdict = Inconclusive(runs=0, failures=0, interval=(0, 1), reason="x")
    return ReportDraft(issue=issue, bug=read_issue(issue), signature=signature, verdict=verdict)


SIX = {"bound": 0.65}


def test_a_proven_patch_decides_on_a_complaint_without_a_value():
    report = undecided("It does not learn at all.")
    decided_by_patch(report, repair((0.4,) * 6, (0.9,) * 6, **SIX))
    assert isinstance(report.verdict, Reproduced)
    assert (report.verdict.failures, report.verdict.control.type) == (6, "patched")
    assert report.verdict.control.p < 0.01
    assert (report.signature.metric, report.signature.bound) == ("accuracy", 0.65)
    assert "undecided" not in comment(report.finish())


@pytest.mark.parametrize(
    "found",
    [
        repair((0.4,) * 6, (0.9,) * 6, proven=False, **SIX),
        repair((0.4,) * 6, (0.9,) * 6),
        repair((0.4, 0.7, 0.7, 0.7, 0.7, 0.4), (0.9,) * 6, **SIX),
        repair((0.4,) * 6, (0.6,) * 6, **SIX),
    ],
)
def test_a_patch_that_is_not_clearly_better_decides_nothing(found):
    report = undecided("It does not learn at all.")
    decided_by_patch(report, found)
    assert (report.verdict.kind, report.signature) == ("inconclusive", None)


def test_what_a_run_can_decide_no_patch_does():
    low = undecided("The accuracy stays around 40 %.", signature=LOW)
    thanks = undecided("How do I print the loss of each batch?")
    for report in (low, thanks):
        decided_by_patch(report, repair((0.4,) * 6, (0.9,) * 6, **SIX))
        assert report.verdict.kind == "inconclusive"
    flat = undecided("The loss does not decrease.", signature=FLAT)
    decided_by_patch(flat, repair((0.4,) * 6, (0.9,) * 6, **SIX))
    assert flat.verdict.kind == "reproduced"


@pytest.mark.parametrize(
    ("before", "after", "direction", "bound"),
    [(0.4, 0.9, "max", 0.65), (0.93, 0.96, "max", 0.864), (8.0, 0.2, "min", 4.1), (1.0, 0.99, "min", 1.089)],
)  # fmt: skip
def test_a_slight_gain_is_no_sign_of_a_training_that_learns_too_little(
    before, after, direction, bound
):
    edit = Edit(parameter="rate", kind="learning_rate", before="1", after="2", line=1)
    trials = [
        Trial(patch=patch, seed=1, part="guide", value=value, seconds=1.0)
        for patch, value in (((), before), ((edit,), after))
    ]
    assert search_bound((edit,), trials, direction) == pytest.approx(bound)
    assert search_bound((edit,), trials[:1], direction) is None


def test_a_value_that_is_good_already_needs_one_to_expect():
    assert training_signature("accuracy", 0.836, None) is None
    assert training_signature("accuracy", 0.836, 0.94).bound == pytest.approx(0.888)
    assert training_signature("accuracy", 0.1, None).bound == pytest.approx(0.325)
