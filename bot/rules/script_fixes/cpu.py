"""Makes a program written for a GPU run on the CPU: device names, `.cuda()`, device counts.

Used only after a run failed for lack of a GPU, when the reported failure does not need one.
"""

from __future__ import annotations

import ast
import re

from bot.models.bug import ScriptFix
from bot.rules.intake.python import module_of
from bot.rules.script_fixes.edits import Edit, Text, apply_noted

_DEVICE = re.compile(r"^(?:cuda|gpu|mps|xpu)(?::\d+)?$", re.IGNORECASE)
_TF_DEVICE = re.compile(r"^(/?(?:device:)?)GPU:\d+$", re.IGNORECASE)
_COUNTS = {"devices", "gpus", "num_gpus", "n_gpus", "n_gpu"}
_DROPPED = {
    "synchronize",
    "empty_cache",
    "set_device",
    "reset_peak_memory_stats",
    "manual_seed_all",
    "ipc_collect",
}
_REPLACED = {
    "torch.cuda.amp.autocast": 'torch.autocast("cpu", dtype=torch.bfloat16)',
    "torch.cuda.current_device": '"cpu"',
}
WHY = "no GPU here, and the reported failure does not need one"


def to_cpu(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with every request for a GPU turned into one for the CPU, if it still parses."""
    text = Text(source)
    changes = [change for node in ast.walk(module_of(source)) for change in _changes(text, node)]
    changed, fixes = apply_noted(source, changes, WHY)
    return (changed, fixes) if module_of(changed).body else (source, ())


def _changes(text: Text, node: ast.AST) -> list[tuple[Edit, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _constant(text, node, node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _call(text, node, node.func)
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


def _call(text: Text, node: ast.Call, function: ast.Attribute) -> list[tuple[Edit, str]]:
    owner, span, shown = text.of(function.value), text.span(node), _short(text.of(node))
    if function.attr == "cuda" and owner not in {"torch", "jax"}:
        return [((*span, f"{owner}.cpu()"), f"{shown} → .cpu()")]
    if owner == "torch.cuda" and function.attr in _DROPPED:
        return [((*span, "None"), f"{shown} left out")]
    new = _REPLACED.get(text.of(function), "")
    return [((*span, new), f"{shown} → {new}")] if new else []


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (1, "1", "auto")


def _short(code: str) -> str:
    return code if len(code) <= 60 else f"{code[:57]}..."
