"""A program written for a GPU, made to run on the processor: device names, `.cuda()`, accelerators, device counts.

Done only when a run has failed for want of a GPU and the reported failure does not need one.
"""

from __future__ import annotations

import ast
import re

from bot.models.bug import Mend
from bot.rules.mends.edits import Edit, Text, apply

_DEVICE = re.compile(r"^(?:cuda|gpu|mps|xpu)(?::\d+)?$", re.IGNORECASE)
_TF_DEVICE = re.compile(r"^(/?(?:device:)?)GPU:\d+$", re.IGNORECASE)
_COUNTS = {"devices", "gpus", "num_gpus", "n_gpus", "n_gpu"}
_DROPPED = {"synchronize", "empty_cache", "set_device", "reset_peak_memory_stats", "manual_seed_all", "ipc_collect"}
WHY = "no GPU here, and the reported failure does not need one"


def to_cpu(source: str) -> tuple[str, tuple[Mend, ...]]:
    """The program with every demand for a GPU turned into one for the processor. Unparseable or GPU-free source comes back as
    it is.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source, ()
    text, edits, said = Text(source), list[Edit](), list[str]()
    for node in ast.walk(tree):
        for edit, what in _edits(text, node):
            edits.append(edit)
            said.append(what)
    if not edits:
        return source, ()
    changed = apply(source, edits)
    mends = tuple(Mend(what=what, why=WHY) for what in dict.fromkeys(said))
    return (changed, mends) if _parses(changed) else (source, ())


def _edits(text: Text, node: ast.AST) -> list[tuple[Edit, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _constant(text, node, node.value)
    if isinstance(node, ast.Call):
        return _call(text, node)
    if isinstance(node, ast.keyword) and node.arg in _COUNTS and not _is_one(node.value):
        return [((*text.span(node.value), "1"), f"{node.arg}={text.of(node.value)} → {node.arg}=1")]
    return []


def _constant(text: Text, node: ast.Constant, value: str) -> list[tuple[Edit, str]]:
    placed = _TF_DEVICE.match(value)
    new = "cpu" if _DEVICE.match(value) else f"{placed[1]}CPU:0" if placed else ""
    span = text.span(node)
    if not new or text.source[span[0]] not in "'\"":
        return []
    return [((*span, repr(new).replace("'", '"')), f'"{value}" → "{new}"')]


def _call(text: Text, node: ast.Call) -> list[tuple[Edit, str]]:
    if not isinstance(node.func, ast.Attribute):
        return []
    owner = text.of(node.func.value)
    if node.func.attr == "cuda" and owner not in {"torch", "jax"}:
        return [((*text.span(node), f"{owner}.cpu()"), f"{_short(text.of(node))} → .cpu()")]
    if owner == "torch.cuda" and node.func.attr in _DROPPED:
        return [((*text.span(node), "None"), f"{_short(text.of(node))} left out")]
    if text.of(node.func) in {"torch.cuda.amp.autocast", "torch.cuda.current_device"}:
        new = 'torch.autocast("cpu", dtype=torch.bfloat16)' if node.func.attr == "autocast" else '"cpu"'
        return [((*text.span(node), new), f"{_short(text.of(node))} → {new}")]
    return []


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (1, "1", "auto")


def _short(code: str) -> str:
    return code if len(code) <= 60 else f"{code[:57]}..."


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True
