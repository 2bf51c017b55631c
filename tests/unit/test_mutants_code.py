"""Each operator of code makes the fault that it names, at the line that its key gives."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.faults import FaultRow, expanded, scored, summarise
from benchmarks.mutants.family import FOLDER, load, read
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.operators import CODE_OPERATORS, mutants
from bot.kernel.training_code import CODE_FAULTS

FAMILIES = [
    family
    for folder in (FOLDER, Path(FOLDER).parent / "judgement")
    for family in load(folder)
    if family.framework == "torch"
]
TOY = """#: framework=torch metric=accuracy direction=max good=0.9 data="points"
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 8, batch_first=True)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(8, 1)

    def forward(self, x):
        h = self.rnn(x)[1][0]
        h = self.drop(h)
        return self.fc(h)

net = Net()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(20):
    net.train()
    for rows in torch.randperm(100).split(10):
        optimizer.zero_grad()
        loss = criterion(net(x[rows]).squeeze(1), y[rows])  #: objective net
        loss.backward()
        optimizer.step()
net.eval()
print("test accuracy:", net(x))
"""


def mutant(slug: str, change: str = "") -> Mutant:
    every = mutants(read("toy", TOY), CODE_OPERATORS)
    return next(one for one in every if one.operator == slug and change in one.change)


def place(one: Mutant) -> str:
    """The text of the line that the key of a mutant gives."""
    line = int(one.codes[0].partition(":")[2])
    return one.source.splitlines()[line - 1].strip()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_has_mutants_that_are_programs_with_a_code_and_a_line(family):
    every = mutants(family, CODE_OPERATORS)
    slugs = {one.operator for one in every}
    assert {"gradients-not-reset", "step-never-called", "parameters-frozen"} <= slugs <= CODE_FAULTS
    for one in every:
        ast.parse(one.source)
        assert one.source != family.source
        expanded(one.codes)
        assert 0 < int(one.codes[0].partition(":")[2]) <= one.source.count("\n")


@pytest.mark.parametrize(
    ("slug", "line", "gone", "new"),
    [
        ("gradients-not-reset", "loss.backward()", "optimizer.zero_grad()", ""),
        ("step-never-called", "loss.backward()", "optimizer.step()", ""),
        ("backward-never-called", "optimizer.step()", "loss.backward()", ""),
        ("reset-after-backward", "optimizer.zero_grad()", "", "()\n        optimizer.zero_grad()"),
        ("per-epoch-step", "optimizer.step()", "", "\n    optimizer.step()"),
        ("eval-while-training", "net.eval()  # for the loop", "net.train()", ""),
        ("same-batch", "rows = torch.arange(len(rows))", "", ""),
        ("axis-mixed", "self.rnn = nn.GRU(4, 8)", "batch_first", ""),
        ("not-registered", "self.fc = [nn.Linear(8, 1)]", "", "self.fc[0](h)"),
        ("graph-cut", "h = (self.drop(h)).detach()", "", ""),
        ("wrong-reduction", 'criterion = nn.BCEWithLogitsLoss(reduction="sum")', "", ""),
        ("broadcast-loss", "loss = criterion(net(x[rows]), y[rows])", "squeeze", ""),
        ("dropout-in-evaluation", "h = torch.nn.functional.dropout(p=0.3, input=h)", "", ""),
        ("parameters-frozen", "weight.requires_grad = False", "", ""),
        ("batches-unused", "break  # one is enough", "", "()\n        break"),
        ("seed-repeated", "torch.manual_seed(7)", "", "()\n        torch.manual_seed(7)"),
        ("clipping-kills", "torch.nn.utils.clip_grad_norm_(net.parameters(), 1e-4)", "", ""),
        ("schedule-stepped-wrong", "decay.step()", "", "ExponentialLR(optimizer, gamma=0.8)"),
    ],
)
def test_an_operator_changes_the_line_that_its_key_gives(slug, line, gone, new):
    one = mutant(slug, "detached" if slug == "graph-cut" else "")
    if slug == "graph-cut":
        every = mutants(read("toy", TOY), CODE_OPERATORS)
        assert line in [place(x) for x in every if x.operator == slug]
    else:
        assert place(one) == line
    assert not gone or gone not in one.source
    assert new in one.source


def test_a_model_made_anew_is_named_at_its_optimizer():
    one = mutant("optimizer-holds-others", "anew")
    assert place(one).startswith("optimizer = torch.optim.Adam")
    assert one.source.count("net = Net()") == 2


def test_another_line_of_a_fault_counts_as_its_line():
    row = FaultRow(
        id="x", framework="torch", truth=(), found=("same-batch:30",), recall=None, precision=None,
        f3=None, f3_alternatives=None, healthy=False, seconds=1.0,
    )  # fmt: skip
    truths = (("same-batch:12",), ("same-batch:29",))
    assert summarise([scored(row, truths)]).summary.code.in_line == 1
    assert summarise([scored(row, truths[:1])]).summary.code.in_line == 0
