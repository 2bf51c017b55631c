"""The edits of faults that are code: where the trace names the line, and the text has the form."""

from typing import Any

import pytest

from bot.kernel.training_code import CallSite, Clipping, Unregistered
from bot.kernel.training_types import Edit
from bot.program import hyperparameters
from tests.support.code_pairs import coded

PROGRAM = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8)]
model = Net()
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    for x, y in batches:
        loss = criterion(model(x), y)
        loss.backward()
    opt.step()  # too rare
"""
BACKWARD = CallSite(name="backward", line=12, calls=9, loops=("9", "10"))
STEP = CallSite(name="step", line=13, calls=3, loops=("9",))
LIST = Unregistered(owner="Net", attribute="layers", kind="list", line=6)


def _patched(fault: str, **facts: Any) -> list[str]:
    """The lines that an edit adds, in their order."""
    trace = coded(calls=(BACKWARD, STEP), **facts)
    places = hyperparameters.find(PROGRAM, trace)
    place = next(x for x in places if x.id == f"code({fault})")
    assert (place.kind, place.value, len(place.choices)) == ("code", "as written", 1)
    text = hyperparameters.patch_program(PROGRAM, [_edit(place.id, place.choices[0])], trace).source
    before = PROGRAM.splitlines()
    return [line for line in text.splitlines() if line not in before]


def _edit(name: str, words: str) -> Edit:
    return Edit(parameter=name, kind="code", before="as written", after=words)


@pytest.mark.parametrize(
    ("fault", "added"),
    [
        ("gradients-not-reset", ["        opt.zero_grad()"]),
        ("per-epoch-step", ["        opt.step()"]),
        ("not-registered", ["        self.layers = nn.ModuleList([nn.Linear(8, 8)])"]),
    ],
)
def test_an_edit_is_made_at_the_line_that_the_trace_names(fault: str, added: list[str]) -> None:
    assert _patched(fault, unregistered=(LIST,)) == added


def test_of_two_clippings_the_harsher_one_is_mended() -> None:
    clip = "torch.nn.utils.clip_grad_norm_(model.parameters(), {})"
    lines = [f"        {clip.format(limit)}" for limit in ("0.1", "1e-4")]
    source = PROGRAM.replace("    opt.step()", "\n".join([*lines, "    opt.step()"]))
    clippings = (
        Clipping(limit=0.1, median=0.2, calls=9, line=13),
        Clipping(limit=1e-4, median=0.1, calls=9, line=14),
    )
    trace = coded(calls=(BACKWARD, STEP), clippings=clippings)
    place = next(x for x in hyperparameters.find(source, trace) if x.id == "code(clipping-kills)")
    edit = _edit(place.id, place.choices[0])
    text = hyperparameters.patch_program(source, [edit], trace).source
    assert (text.count("1e-4"), text.count("0.1")) == (0, 3)
    assert place.line == 14


@pytest.mark.parametrize(
    ("fault", "before", "after", "facts"),
    [
        ("gradient-singular", "torch.sqrt(x.sum(1))", "torch.sqrt(x.sum(1) + 1e-8)", "roots"),
        ("gradient-singular", "x.sum(1).sqrt()", "(x.sum(1) + 1e-8).sqrt()", "roots"),
        ("gradient-singular", "x.sum(1) ** 0.5", "(x.sum(1) + 1e-8) ** 0.5", "roots"),
        ("arguments-swapped", "F.kl_div(y, model(x))", "F.kl_div(model(x), y)", "swapped_line"),
    ],
)
def test_an_expression_of_a_loss_is_mended(fault: str, before: str, after: str, facts: str) -> None:
    source = PROGRAM.replace("criterion(model(x), y)", before)
    trace = coded(calls=(BACKWARD, STEP), facts={facts: (11.0,)})
    place = next(x for x in hyperparameters.find(source, trace) if x.id == f"code({fault})")
    edit = _edit(place.id, place.choices[0])
    text = hyperparameters.patch_program(source, [edit], trace).source
    assert text == PROGRAM.replace("criterion(model(x), y)", after)


def test_without_facts_of_the_code_there_is_no_edit() -> None:
    assert not [x for x in hyperparameters.find(PROGRAM) if x.kind == "code"]


def test_an_edit_names_the_fault_that_it_repairs() -> None:
    assert _edit("code(graph-cut)", "without `detach`").operator == "graph-cut"
