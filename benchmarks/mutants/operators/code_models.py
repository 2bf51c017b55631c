"""Faults of a model, its parameters, axes and loss in PyTorch that are code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from benchmarks.mutants import edits
from benchmarks.mutants.family import Family
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.operators.code_places import (
    assignments,
    insertion,
    model_name,
    mutant,
    optimizer_calls,
    parameters_of_optimizer,
    training_loop,
)

_LAYERS = ("Linear", "Conv2d", "Conv1d")
_MEAN_LOSSES = {
    "CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss", "L1Loss", "NLLLoss", "BCELoss",
    "SmoothL1Loss", "HuberLoss", "cross_entropy", "mse_loss", "binary_cross_entropy_with_logits",
    "nll_loss", "l1_loss", "binary_cross_entropy", "smooth_l1_loss",
}  # fmt: skip
_SHAPES = ("squeeze", "unsqueeze", "flatten")


def parameters_frozen(family: Family) -> Iterator[Mutant]:
    """All parameters but those of the last layer are frozen."""
    makers, name = optimizer_calls(family), model_name(family)
    if len(makers) != 1 or not name:
        return
    text = f"for weight in list({name}.parameters())[:-2]:\n    weight.requires_grad = False"
    change = insertion(family.source, makers[0][0], text, before=True)
    places = ["weight.requires_grad = False"]
    yield from mutant(family, "parameters-frozen", [change], places, "all but the last layer fixed")


def optimizers_blinded(family: Family) -> Iterator[Mutant]:
    """The model is made anew after its optimizer, or the optimizer gets the last layer alone."""
    makers, name = optimizer_calls(family), model_name(family)
    call = parameters_of_optimizer(family)
    if len(makers) != 1 or call is None or not name:
        return
    statement, _ = makers[0]
    line = family.source.splitlines()[statement.lineno - 1].strip()
    models = assignments(family, name)
    if len(models) == 1 and models[0].lineno < statement.lineno:
        start, end = edits.span(family.source, models[0])
        again = family.source[start:end].replace("\n" + " " * models[0].col_offset, "\n")
        change = insertion(family.source, statement, again)
        words = "the model is made anew after its optimizer"
        yield from mutant(family, "optimizer-holds-others", [change], [line], words)
    part = f"list({edits.text_of(family.source, call)})[-2:]"
    change = edits.replace(family.source, call, part)
    words = "the optimizer gets the last layer alone"
    yield from mutant(family, "optimizer-holds-others", [change], [part], words)


def layers_hidden(family: Family) -> Iterator[Mutant]:
    """A layer lies in a plain list, so that it is not registered."""
    for statement in ast.walk(family.tree):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Attribute) or edits.name_of(statement.value) not in _LAYERS:
            continue
        uses = [
            node.func
            for node in ast.walk(family.tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == target.attr
        ]
        mentions = family.source.count(f".{target.attr}")
        if len(uses) != 1 or mentions != 2:
            continue
        made = edits.text_of(family.source, statement.value)
        changes = [
            edits.replace(family.source, statement.value, f"[{made}]"),
            edits.replace(family.source, uses[0], f"{edits.text_of(family.source, uses[0])}[0]"),
        ]
        words = f"`{target.attr}` in a plain list"
        yield from mutant(family, "not-registered", changes, [f"[{made}]"], words)


def graphs_cut(family: Family) -> Iterator[Mutant]:
    """What a layer of the forward pass returns is detached, or computed without gradients."""
    for function in ast.walk(family.tree):
        if not isinstance(function, ast.FunctionDef) or function.name != "forward":
            continue
        for statement in function.body[:-1]:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
                continue
            text = edits.text_of(family.source, statement.value)
            if "self." not in text or not isinstance(statement.targets[0], ast.Name):
                continue
            cut = f"({text}).detach()"
            changes = [edits.replace(family.source, statement.value, cut)]
            place = f"{text.splitlines()[-1]}).detach()"
            yield from mutant(family, "graph-cut", changes, [place], f"{text} is detached")


def losses_summed(family: Family) -> Iterator[Mutant]:
    """A loss that is summed over the batch."""
    for call in ast.walk(family.tree):
        if not isinstance(call, ast.Call) or edits.name_of(call) not in _MEAN_LOSSES:
            continue
        if edits.keyword(call, "reduction") is None:
            change = edits.with_keyword(family.source, call, "reduction", '"sum"')
            places = ['reduction="sum"']
            yield from mutant(family, "wrong-reduction", [change], places, "a summed loss")
            return


def axes_swapped(family: Family) -> Iterator[Mutant]:
    """A sequence layer that takes the batch for the places of a sequence."""
    for call in ast.walk(family.tree):
        given = edits.keyword(call, "batch_first") if isinstance(call, ast.Call) else None
        if given is None or not isinstance(call, ast.Call):
            continue
        change = edits.without_keyword(family.source, given)
        changed = edits.apply(family.source, [change]).splitlines()[call.lineno - 1].strip()
        yield from mutant(family, "axis-mixed", [change], [changed], "no `batch_first`")


def shapes_left(family: Family) -> Iterator[Mutant]:
    """Targets and predictions of one value each differ in their shape."""
    loop = training_loop(family)
    objective = [mark.line for mark in family.marked("objective")]
    for call in ast.walk(family.tree):
        if not isinstance(call, ast.Call) or edits.name_of(call) not in _SHAPES or loop is None:
            continue
        if not isinstance(call.func, ast.Attribute):
            continue
        inner = edits.text_of(family.source, call.func.value)
        change = edits.replace(family.source, call, inner)
        changed = edits.apply(family.source, [change]).splitlines()
        loss = changed[objective[0] - 1].strip() if objective else ""
        words = f"no {edits.name_of(call)} of {inner}"
        yield from mutant(
            family, "broadcast-loss", [change], [loss, changed[call.lineno - 1].strip()], words
        )


def dropout_forced(family: Family) -> Iterator[Mutant]:
    """Dropout by a function, which also acts in evaluations."""
    for statement in ast.walk(family.tree):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        target = statement.targets[0]
        if edits.name_of(statement.value) != "Dropout" or not isinstance(target, ast.Attribute):
            continue
        name = re.escape(target.attr)
        uses = list(re.finditer(rf"self\.{name}\(", family.source))
        if len(uses) != 1:
            continue
        use = uses[0]
        share = ast.unparse(statement.value.args[0]) if statement.value.args else "0.5"
        text = f"torch.nn.functional.dropout(p={share}, input="
        change = edits.Edit(use.start(), use.end(), text)
        words = "dropout by a function"
        yield from mutant(family, "dropout-in-evaluation", [change], [text], words)
