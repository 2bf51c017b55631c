"""A training program → the smallest patch that is proven to help, on a sandbox that answers with what
each program would have learned.
"""

import random
import re

import pytest

from bot.environment import provided
from bot.kernel.job import DiagnoseProgram
from bot.kernel.session import Session
from bot.kernel.training_types import Change, Finding, RepairRequest, TrainingProgram
from bot.program.line_edits import make_edit
from bot.report.terminal import print_document
from bot.training.diagnose import record_run
from bot.training.diagnosis.rules import diagnose
from bot.training.phrases import repair_summary
from bot.training.repair.repair import FRESH, repair
from bot.training.repair.search import SEEDS
from bot.training.repair.trials import TRIALS
from bot.training.sections import repair_document
from sandbox.port import RunResult, SandboxError
from tests.unit.test_diagnosed_run import trace
from tests.unit.test_pipeline import world

FAULTY = """import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=50.0)
for epoch in range(20):  # few
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
print("test accuracy:", accuracy(model))
"""
SPLIT = {".reprise/trace-split-7.json": b"{}"}


class Landscape:
    """A sandbox in which the metric follows from the text of the program and the seed."""

    printed, journal = "test accuracy: {}\n", None
    own = ("a.py", "conf/base.yaml")

    def __init__(self, metric, *, split=True, noise=0.005, seeded=False, same=False):
        self.metric, self.split, self.runs = metric, split, []
        self.noise, self.seeded, self.same = noise, seeded, same

    def __call__(self, spec):
        text = "".join(data.decode() for name, data in spec.files.items() if name in self.own)
        if use := re.search(r'see\("(\w+)", \(config', text):
            told = f"\x1ereprise value {use[1]} {float(re.search(r'lr: (.+)', text)[1])!r}\n"
            return RunResult(exit_code=0, stderr=told, seconds=0.1)
        part, seed = spec.env.get("REPRISE_TRIAL"), int(spec.env["REPRISE_SEED"])
        self.runs.append((text, part, seed))
        seen = trace(penalty=0.0 if self.same else seed * 1e-12)
        found = {".reprise/training-7.jsonl": seen} if "REPRISE_TRAINING" in spec.env else {}
        if part and part != "whole" and self.split:
            found |= SPLIT
        noise = random.Random(f"{seed}{part}").gauss(0, self.noise)
        try:
            value = self.metric(text, *([seed] if self.seeded else [])) + noise
        except ArithmeticError:
            return RunResult(exit_code=1, stderr="ZeroDivisionError: division", seconds=1.0)
        return RunResult(
            exit_code=0, seconds=1.0, stdout=self.printed.format(value), artifacts=found
        )


def rate(text):
    return float(re.search(r"lr=([-\d.e]+)", text)[1])


def by_rate(text):
    """Learns with a rate near 0.1 and no other, whatever else is changed."""
    return 0.95 if 0.01 <= rate(text) <= 1 else 0.3


def by_rate_of_file(text):
    """As `by_rate`, of a rate that the program reads from a file unless a patch writes it down."""
    return by_rate(text if re.search(r"lr=\d", text) else text.replace("lr: ", "lr="))


def by_rate_and_epochs(text):
    """Needs both a smaller rate and more epochs."""
    many = int(re.search(r"range\((\d+)\)", text)[1]) >= 60
    return 0.3 + (0.3 if rate(text) <= 1 else 0) + (0.35 if rate(text) <= 1 and many else 0)


def repaired(landscape, *kept, source=FAULTY, beside=None, suspected=(), **options):
    files = {"a.py": source.encode(), **(beside or {})}
    program = TrainingProgram(files=files, entry="a.py", arguments=("-v",))
    job = DiagnoseProgram(program=program)
    session = Session.begin(job, world(landscape))
    landscape.journal = session.ports.journal
    landscape.journal.fill(TRIALS, kept)
    recorded = record_run(program, provided.spec(program, job.environment), session)
    diagnosis = diagnose(recorded.trace)
    found = diagnosis.model_copy(update={"findings": (*diagnosis.findings, *suspected)})
    return repair(program, recorded, session, RepairRequest(**options), judge=lambda: found)


def test_one_edit_is_enough_where_one_is_wrong():
    """The rate, and nothing beside it that did no harm."""
    found = repaired(Landscape(by_rate))
    assert [edit.kind for edit in found.patch] == ["learning_rate"]
    assert found.proven
    assert found.improvement.p == 1 / 32
    assert [curve.name for curve in found.curves if curve.panel == "loss"] == ["faulty", "patched"]
    removed = [x for x in found.diff.splitlines() if x.startswith("-") and not x.startswith("---")]
    assert removed == ["-optimizer = torch.optim.SGD(model.parameters(), lr=50.0)"]


def test_a_value_of_a_configuration_file_is_repaired_there():
    """The program stays; the diff, the trainings and the place of the change are of the file."""
    source = FAULTY.replace("import torch\n", "import torch\nimport yaml\n", 1).replace(
        "model =", "config = yaml.safe_load(open('conf/base.yaml'))\nmodel =", 1
    )
    source = source.replace("lr=50.0", "lr=config['lr']")
    beside = {"conf/base.yaml": b"# usual\nlr: 50.0\n"}
    landscape = Landscape(by_rate_of_file)
    found = repaired(landscape, source=source, beside=beside)
    assert [(edit.file, edit.line) for edit in found.patch] == [("conf/base.yaml", 2)]
    assert found.proven
    assert found.entry == "a.py"
    assert found.diff.startswith("diff --git a/conf/base.yaml b/conf/base.yaml\n")
    assert "-lr: 50.0\n+lr: " in found.diff
    assert landscape.runs[-2][0].count(source) == 1
    noticed = repaired(
        Landscape(lambda text: by_rate_of_file(text) - (source in text and "50" not in text) / 1e6),
        source=source, beside=beside,
    )  # fmt: skip
    assert [(edit.file, edit.line) for edit in noticed.patch] == [("", 7)]
    assert "-lr: 50.0" not in noticed.diff


def test_what_a_model_suspects_is_tried_and_proven_like_all_else():
    """A width that no step leads to; without the gain, its word is nothing."""
    words = "Use 640 units in the first layer."
    change = Change(parameter="", words=words)
    said = Finding(fault="LCN", layers=(0,), rule="", confidence=0.0, message="m", change=change,
                   by="model")  # fmt: skip
    found = repaired(Landscape(lambda text: 0.9 if "640" in text else 0.3), suspected=(said,))
    assert [(edit.kind, edit.after) for edit in found.patch] == [("units", "640")]
    assert found.proven
    assert not repaired(Landscape(lambda _: 0.3), suspected=(said,), budget=12).proven


def test_what_is_needed_together_is_found_together():
    """And each of the two edits is needed for the gain."""
    found = repaired(Landscape(by_rate_and_epochs), budget=40)
    assert sorted(edit.kind for edit in found.patch) == ["epochs", "learning_rate"]
    assert found.proven


def test_luck_with_one_seed_does_not_end_the_search():
    """A patch that is perfect with the first seed alone gives way to one that always is."""

    def metric(text, seed):
        if "Adam" in text:
            return 1.0
        return 1.0 if rate(text) < 1 and seed == 1001 else 0.4

    found = repaired(Landscape(metric, noise=0.0, seeded=True), budget=30)
    assert [edit.kind for edit in found.patch] == ["optimizer"]
    assert found.proven


def test_no_gain_is_proven_where_none_is():
    """Noise is not taken for a repair: nothing is proven, whatever looked best in the search."""
    found = repaired(Landscape(lambda _: 0.5), budget=15)
    assert not found.proven
    assert found.trainings <= 20


def test_the_proof_uses_rows_and_seeds_that_the_search_did_not():
    """As many of the faulty program as of the patched one."""
    landscape = Landscape(by_rate)
    assert repaired(landscape).held_out_rows
    searched = {(part, seed) for _, part, seed in landscape.runs if part == "guide"}
    held_out = [(text, seed) for text, part, seed in landscape.runs if part == "held-out"]
    (parted, seed), *proof = held_out  # first the faulty program, to see whether the halves differ
    assert (parted, seed) == (FAULTY, SEEDS[0])
    assert not {seed for _, seed in searched} & set(FRESH)
    assert sorted(seed for _, seed in proof) == sorted([*FRESH, *FRESH, FRESH[0]])  # and the plot
    assert len({text for text, _ in proof}) == 2


@pytest.mark.parametrize("same", [True, False])
def test_trainings_that_no_seed_changes_are_no_proof(same):
    """Where all tell the same, the probe sees whether the weights and losses are the same too."""
    found = repaired(Landscape(by_rate, noise=0.0, same=same))
    assert [edit.kind for edit in found.patch] == ["learning_rate"]
    assert found.seed_independent is same
    assert found.proven is not same
    assert ("is the same, whatever its seed" in repair_summary(found)) is same


def test_a_proof_stands_without_its_picture():
    """Whatever happens in the one training that only draws the curves."""

    class Failing(Landscape):
        def __call__(self, spec):
            if "REPRISE_TRAINING" in spec.env and "REPRISE_TRIAL" in spec.env:
                raise SandboxError("the disk is full")
            return super().__call__(spec)

    found = repaired(Failing(by_rate))
    assert found.proven
    assert found.curves == ()


def test_a_metric_that_is_of_all_rows_is_not_called_held_out():
    """Such as one of `predict`, beside an `evaluate` whose rows are parted."""
    found = repaired(Landscape(by_rate, noise=0.0))
    assert found.proven
    assert not found.held_out_rows


def test_rows_that_cannot_be_parted_serve_both():
    """Then the report says so."""
    landscape = Landscape(by_rate, split=False)
    found = repaired(landscape)
    assert (found.held_out_rows, found.proven) == (False, True)
    assert [part for text, part, seed in landscape.runs if (text, seed) == (FAULTY, 1001)] == [
        "guide"
    ]
    assert {part for _, part, _ in landscape.runs} == {None, "guide", "whole"}


def test_the_search_stays_within_its_budget():
    """Counted in trainings of the faulty program."""
    landscape = Landscape(lambda text: 0.3 + 1 / (1 + abs(rate(text))) / 100)
    repaired(landscape, budget=6)
    searched = [x for x in landscape.runs if x[2] in {1001, 1002, 1003} and x[0] != FAULTY]
    assert len(searched) <= 6 + 3  # and what makes the patch minimal


def test_a_killed_repair_goes_on_from_its_trainings():
    """No training is made twice."""
    first, again = Landscape(by_rate), Landscape(by_rate)
    whole = repaired(first)
    resumed = repaired(again, *first.journal.read(TRIALS)[:5])
    assert (resumed.patch, resumed.improvement) == (whole.patch, whole.improvement)
    assert len(again.runs) == len(first.runs) - 5


def test_a_program_that_dies_with_a_patch_is_no_repair():
    """A failed training is worse than any number."""

    def metric(text):
        if rate(text) < 1:
            raise ZeroDivisionError
        return 0.3

    assert not repaired(Landscape(metric)).proven


@pytest.mark.parametrize(
    ("printed", "why"),
    [("no number here\n", "prints no metric"), ("", "prints no metric")],
)
def test_without_a_metric_nothing_is_tried(printed, why):
    """And the answer says what to print."""

    landscape = Landscape(by_rate)
    landscape.printed = printed
    assert why in repaired(landscape, metric="f1").undecided


# Lines that a model would replace.


def proposed(before, after, source=FAULTY):
    edit = make_edit({"": source}, "", before, after, "wrong-code")
    change = Change(parameter="", words="w", edit=edit)
    return Finding(
        fault="wrong-code", rule="", confidence=0.0, message="m", by="model", change=change
    )


LOSS_LINE = "        loss = nn.functional.cross_entropy(model(x), y)"
HALVED = LOSS_LINE.replace("model(x)", "model(x / 2)")


def by_halves(text):
    return 0.9 if "model(x / 2)" in text else 0.3


def test_lines_that_a_model_would_replace_are_proven_like_any_patch():
    """What the patch does not need goes, also where the model changed it in the same edit."""
    block = f"{LOSS_LINE}\n        loss.backward()\n        optimizer.step()"
    more = f"{HALVED}\n        loss.backward()\n        y = y + 0\n        optimizer.step()"
    found = repaired(Landscape(by_halves), suspected=[proposed(block, more)])
    assert found.proven
    assert [edit.kind for edit in found.patch] == ["lines"]
    changes = [row for row in found.diff.splitlines() if row[:1] in "+-" and row[1:2] == " "]
    assert changes == [f"-{LOSS_LINE}", f"+{HALVED}"]
    shown = print_document(repair_document(found, name="a.py"), 200, "utf-8", colour=False)
    assert "code: wrong-code" in shown
    assert "loss = nn.functional.cross_entropy(model(x / 2), y)" in shown


def test_lines_go_together_with_a_hyperparameter():
    landscape = Landscape(lambda text: 0.3 + 0.3 * ("x / 2" in text) + 0.3 * (rate(text) <= 1))
    found = repaired(landscape, suspected=[proposed(LOSS_LINE, HALVED)], budget=60)
    assert found.proven
    assert sorted(edit.kind for edit in found.patch) == ["learning_rate", "lines"]


def test_lines_that_change_what_is_measured_are_never_trained():
    """However much better the number is; the reason is told."""
    landscape = Landscape(lambda text: 1.0 if "accuracy: 1.0" in text else 0.3)
    last = 'print("test accuracy:", accuracy(model))'
    found = repaired(landscape, suspected=[proposed(last, 'print("test accuracy: 1.0")')])
    assert found.patch == ()
    assert not any("accuracy: 1.0" in text for text, _, _ in landscape.runs)
    assert found.refused == ("wrong-code: it changes what the program prints",)
    shown = print_document(repair_document(found, name="a.py"), 100, "utf-8", colour=False)
    assert "Edits that a model proposed and that were not tried:" in shown


def test_a_program_without_hyperparameters_can_be_repaired_by_lines():
    source = FAULTY.replace("lr=50.0", "**settings").replace("range(20)", "epochs()")
    source = re.sub(r"model = .*", "model = build()", source).replace("nn.functional.", "own.")
    source = source.replace("torch.optim.SGD", "make")
    line = LOSS_LINE.replace("nn.functional.", "own.")
    repair = proposed(line, line.replace("model(x)", "model(x / 2)"), source)
    assert repaired(Landscape(by_halves), source=source).undecided.startswith("no hyperparameter")
    assert repaired(Landscape(by_halves), source=source, suspected=[repair]).proven


def test_a_resumed_repair_makes_no_training_of_lines_again():
    landscape = Landscape(by_halves)
    suspected = [proposed(LOSS_LINE, HALVED)]
    first = repaired(landscape, suspected=suspected)
    again = Landscape(by_halves)
    second = repaired(again, *landscape.journal.read(TRIALS), suspected=suspected)
    assert (second.patch, second.proven) == (first.patch, True)
    assert len(again.runs) < len(landscape.runs) / 2
