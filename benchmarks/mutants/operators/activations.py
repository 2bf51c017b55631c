"""Activations changed, removed and added (ACH, ARM, AAL).

The index is the layer's that computes the function: the activation's own layer where it is one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutants import edits
from benchmarks.mutants.family import Family, Mark
from benchmarks.mutants.mutant import Mutant, edited

_MODULES = {
    "relu": "ReLU()",
    "tanh": "Tanh()",
    "sigmoid": "Sigmoid()",
    "softmax": "Softmax(dim=1)",
    "softsign": "Softsign()",
    "hard_sigmoid": "Hardsigmoid()",
}
_NAMES = {text.partition("(")[0] for text in _MODULES.values()} | {"GELU", "ELU", "LeakyReLU"}
_KERAS = {*_MODULES, "elu", "selu", "gelu", "softplus", "exponential", "linear", "silu"}
_FUNCTIONS = {"relu", "tanh", "sigmoid", "gelu", "elu", "silu", "leaky_relu"}
_HIDDEN = ("softmax", "sigmoid", "hard_sigmoid", "exponential", "tanh")
_LAST = ("relu", "tanh", "softmax", "sigmoid", "linear")


def activations_changed(family: Family) -> Iterator[Mutant]:
    """Another function in a hidden layer or the last one, or none in its place."""
    for mark in family.marked("act"):
        last = "last" in mark.options
        for new in _LAST if last else _HIDDEN:
            changes = _changed(family, mark, new)
            words = f"activation of layer {mark.layer} to {new}"
            if changes:
                yield edited(
                    family, f"ACH({mark.layer})", changes, words, group="last" if last else "hidden"
                )
        yield from _removed(family, mark)


def activations_added(family: Family) -> Iterator[Mutant]:
    """A bounded function after the last layer, where none belongs."""
    for mark in family.marked("out"):
        for new in ("softmax", "sigmoid", "relu", "tanh"):
            change, layer = _added(family, mark, new)
            same = (f"ACH({layer})", f"AAL({mark.layer})", f"ACH({mark.layer})")
            others = tuple(code for code in same if code != f"AAL({layer})")
            words = f"{new} after layer {mark.layer}"
            if change:
                yield edited(family, f"AAL({layer})", [change], words, alternatives=others)


def _changed(family: Family, mark: Mark, new: str) -> list[edits.Edit]:
    for given in _named(family, mark):
        return [edits.replace(family.source, given, f'"{new}"')] if given.value != new else []
    for call in edits.calls(family.tree, mark.line, _NAMES.__contains__):
        return _as_module(family, call, new)
    for call in edits.calls(family.tree, mark.line, _FUNCTIONS.__contains__):
        text = _as_function(family, call, new)
        return [edits.replace(family.source, call, text)] if text else []
    return []


def _named(family: Family, mark: Mark) -> Iterator[ast.Constant]:
    for text in edits.on_line(family.tree, mark.line, ast.Constant):
        if isinstance(text.value, str) and text.value in _KERAS:
            yield text


def _as_module(family: Family, call: ast.Call, new: str) -> list[edits.Edit]:
    text = _MODULES.get(new, "")
    if not text or text.startswith(edits.name_of(call)):
        return []
    end = edits.span(family.source, call.func)[1] - len(edits.name_of(call))
    return [edits.Edit(end, edits.span(family.source, call)[1], text)]


def _as_function(family: Family, call: ast.Call, new: str) -> str:
    inner = edits.text_of(family.source, _argument(call))
    if new == edits.name_of(call):
        return ""
    if family.framework == "keras":
        return f"keras.activations.{new}({inner})"
    texts = {
        "softmax": f"torch.softmax({inner}, dim=1)",
        "sigmoid": f"torch.sigmoid({inner})",
        "tanh": f"torch.tanh({inner})",
        "relu": f"torch.relu({inner})",
        "exponential": f"torch.exp({inner})",
    }
    return texts.get(new, "")


def _argument(call: ast.Call) -> ast.expr:
    """What the function is applied to: its argument, or what a method belongs to."""
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else call


def _removed(family: Family, mark: Mark) -> Iterator[Mutant]:
    before = mark.layer - 1 if "own" in mark.options else mark.layer
    change = _removal(family, mark)
    if change:
        same = (f"ACH({before})", f"ARM({mark.layer})", f"ACH({mark.layer})")
        others = tuple(code for code in same if code != f"ARM({before})")
        words = f"activation of layer {mark.layer} removed"
        yield edited(family, f"ARM({before})", [change], words, alternatives=others)


def _removal(family: Family, mark: Mark) -> edits.Edit | None:
    for call in edits.on_line(family.tree, mark.line, ast.Call):
        given = edits.keyword(call, "activation")
        if given:
            return edits.without_keyword(family.source, given)
    for call in edits.calls(family.tree, mark.line, (_NAMES | {"Activation"}).__contains__):
        return _without(family.source, call)
    for call in edits.calls(family.tree, mark.line, _FUNCTIONS.__contains__):
        inner = edits.text_of(family.source, _argument(call))
        return edits.replace(family.source, call, inner)
    for text in _named(family, mark):
        return edits.replace(family.source, text, '"linear"')
    return None


def _without(source: str, call: ast.Call) -> edits.Edit:
    """Without one of the listed layers: its line, or its place among others on the line."""
    start, end = edits.span(source, call)
    line = source.rfind("\n", 0, start) + 1
    end += source.startswith(",", end)
    if not source[line:start].strip() and source.startswith("\n", end):
        return edits.Edit(line, end + 1, "")
    if source[:start].endswith("= "):
        return edits.Edit(
            edits.span(source, call.func)[1] - len(edits.name_of(call)), end, "Identity()"
        )
    if source.startswith(".add(", start - 5):
        return edits.Edit(line, source.index("\n", end) + 1, "")
    return edits.Edit(start - source[:start].endswith(" "), end, "")


def _added(family: Family, mark: Mark, new: str) -> tuple[edits.Edit | None, int]:
    source = family.source
    if "element" in mark.options:
        text = f"nn.{_MODULES[new]},"
        return edits.after_line(source, mark.line, text), mark.layer + 1
    calls = tuple(edits.on_line(family.tree, mark.line, ast.Call))
    if not calls:
        return None, mark.layer
    if family.framework == "keras":
        call = next(each for each in calls if edits.name_of(each) in ("Dense", "Conv2D"))
        return edits.with_keyword(source, call, "activation", f'"{new}"'), mark.layer
    inner = edits.text_of(source, calls[0])
    text = f"torch.softmax({inner}, dim=1)" if new == "softmax" else f"torch.{new}({inner})"
    return edits.replace(source, calls[0], text), mark.layer
