"""Losses that do not fit the task (LCH)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutants import edits
from benchmarks.mutants.family import Family, Mark
from benchmarks.mutants.mutant import Mutant, edited

_KERAS = {
    "classes": ("mse", "mae", "poisson", "mape", "msle", "hinge"),
    "binary": ("mape", "poisson", "hinge", "msle", "categorical_crossentropy"),
    "regression": ("binary_crossentropy", "poisson", "mape", "hinge", "squared_hinge", "msle"),
}
_KNOWN = {
    "categorical_crossentropy", "sparse_categorical_crossentropy", "binary_crossentropy",
    "mse", "mae", "mean_squared_error", "mean_absolute_error", "huber",
}  # fmt: skip
_OBJECTS = {
    "CategoricalCrossentropy", "SparseCategoricalCrossentropy", "BinaryCrossentropy",
    "MeanSquaredError", "MeanAbsoluteError", "Huber",
}  # fmt: skip

_FUNCTIONS = {
    "cross_entropy", "binary_cross_entropy_with_logits", "binary_cross_entropy", "mse_loss",
    "l1_loss", "smooth_l1_loss",
}  # fmt: skip
_ONE_HOT = "F.one_hot({target}, {classes}).float()"
_TORCH = {
    "classes": (
        "F.l1_loss(F.softmax({output}, dim=1), " + _ONE_HOT + ")",
        "F.nll_loss({output}, {target})",
        "F.l1_loss({output}.max(1).values, {target}.float())",
        "F.mse_loss({output}.mean(1), {target}.float())",
    ),
    "binary": (
        "F.poisson_nll_loss({output}, {target}, log_input=False)",
        "F.hinge_embedding_loss({output}, {target})",
        "F.kl_div({output}, {target}, reduction='batchmean')",
        "F.l1_loss({output}, {target})",
    ),
    "regression": (
        "F.binary_cross_entropy_with_logits({output}, {target})",
        "F.hinge_embedding_loss({output}, {target})",
        "F.soft_margin_loss({output}, {target})",
        "F.poisson_nll_loss({output}, {target})",
    ),
}


def losses_changed(family: Family) -> Iterator[Mutant]:
    """A loss for another task on the line that is marked `loss TASK`."""
    for mark in family.marked("loss"):
        task = mark.options[0]
        for new in (_KERAS if family.framework == "keras" else _TORCH)[task]:
            of = _keras if family.framework == "keras" else _torch
            changes = of(family, mark, new)
            if changes:
                yield edited(family, "LCH", changes, f"loss to {new}")


def _keras(family: Family, mark: Mark, new: str) -> list[edits.Edit]:
    for text in edits.on_line(family.tree, mark.line, ast.Constant):
        if text.value in _KNOWN:
            return [edits.replace(family.source, text, f'"{new}"')]
    for call in edits.calls(family.tree, mark.line, _OBJECTS.__contains__):
        return [edits.replace(family.source, call, f'"{new}"')]
    return []


def _torch(family: Family, mark: Mark, new: str) -> list[edits.Edit]:
    classes = mark.option("of")
    for call in edits.calls(family.tree, mark.line, _FUNCTIONS.__contains__):
        output, target = (edits.text_of(family.source, given) for given in call.args[:2])
        text = new.format(output=output, target=target, classes=classes)
        return [edits.replace(family.source, call, text), *_imported(family)]
    for node in ast.walk(family.tree):
        if isinstance(node, ast.Assign) and node.lineno == mark.line:
            return [_defined(family.source, node, new, classes), *_imported(family)]
    return []


def _defined(source: str, node: ast.Assign, new: str, classes: str) -> edits.Edit:
    """`criterion = nn.SomeLoss()` becomes a function of that name."""
    name = edits.text_of(source, node.targets[0])
    body = new.format(output="output", target="target", classes=classes)
    start, end = edits.span(source, node)
    indent = " " * node.col_offset
    text = f"def {name}(output, target):\n{indent}    return {body}"
    if "." in name:
        text = f"{name} = lambda output, target: {body}"
    return edits.Edit(start, end, text)


def _imported(family: Family) -> list[edits.Edit]:
    """The import of `F`, after the first line that imports torch, when it is missing."""
    for node in ast.walk(family.tree):
        if isinstance(node, ast.Import) and any(name.asname == "F" for name in node.names):
            return []
    line = next(
        node.lineno
        for node in family.tree.body
        if isinstance(node, ast.Import) and node.names[0].name == "torch"
    )
    return [edits.after_line(family.source, line, "import torch.nn.functional as F")]
