"""Makes a program fit the machine: on the CPU in place of a GPU (device names, `.cuda()`, device
counts), or with fewer rounds of a long training.

Used only after a run failed for lack of a GPU, when the reported failure does not need one, or took
too long.
"""

import ast
import re

from bot.models.bug import ScriptFix
from bot.rules.intake.python import is_call_of, module_of
from bot.rules.script_fixes.edits import Edit, Text, apply_noted

_DEVICE = re.compile(r"^(?:cuda|gpu|mps|xpu)(?::\d+)?$", re.IGNORECASE)
_TF_DEVICE = re.compile(r"^(/?(?:device:)?)GPU:\d+$", re.IGNORECASE)
_COUNTS = {"devices", "gpus", "num_gpus", "n_gpus", "n_gpu"}
_DROPPED = {
    *("synchronize", "empty_cache", "set_device", "manual_seed_all", "ipc_collect"),
    "reset_peak_memory_stats",
}
_REPLACED = {
    "torch.cuda.amp.autocast": 'torch.autocast("cpu", dtype=torch.bfloat16)',
    "torch.cuda.current_device": '"cpu"',
}
_ROUNDS = re.compile(
    r"^(?:max_|num_|n_|nb_|total_)?(?:epochs?|steps?|iters?|iterations?|updates|timesteps|trials)$",
    re.IGNORECASE,
)
TOO_LONG = "the program did not end in time; fewer rounds of the same work"
FEW = 3
NO_GPU = "no GPU here, and the reported failure does not need one"


def to_cpu(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with every request for a GPU turned into one for the CPU, if it still parses."""
    text = Text(source)
    changes = [change for node in ast.walk(module_of(source)) for change in _changes(text, node)]
    changed, fixes = apply_noted(source, changes, NO_GPU)
    return (changed, fixes) if module_of(changed).body else (source, ())


def _changes(text: Text, node: ast.AST) -> list[tuple[Edit, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _constant(text, node, node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _call(text, node, node.func)
    if not isinstance(node, ast.keyword) or node.arg not in _COUNTS:
        return []
    if isinstance(node.value, ast.Constant) and node.value.value in (1, "1", "auto"):
        return []
    return [((*text.span(node.value), "1"), f"{node.arg}={text.of(node.value)} → {node.arg}=1")]


def _constant(text: Text, node: ast.Constant, value: str) -> list[tuple[Edit, str]]:
    placed = _TF_DEVICE.match(value)
    new = "cpu" if _DEVICE.match(value) else f"{placed[1]}CPU:0" if placed else ""
    span = text.span(node)
    if not new or text.source[span[0]] not in "'\"":
        return []
    return [((*span, repr(new).replace("'", '"')), f'"{value}" → "{new}"')]


def _call(text: Text, node: ast.Call, function: ast.Attribute) -> list[tuple[Edit, str]]:
    owner, span, shown = text.of(function.value), text.span(node), text.of(node)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    if function.attr == "cuda" and owner not in {"torch", "jax"}:
        return [((*span, f"{owner}.cpu()"), f"{shown} → .cpu()")]
    if owner == "torch.cuda" and function.attr in _DROPPED:
        return [((*span, "None"), f"{shown} left out")]
    new = _REPLACED.get(text.of(function), "")
    return [((*span, new), f"{shown} → {new}")] if new else []


def shorten(source: str) -> tuple[str, tuple[ScriptFix, ...]]:
    """The program with its counts of epochs, steps or iterations lowered to 3."""
    text = Text(source)
    changes = [
        ((*text.span(value), str(FEW)), f"{name}: {value.value} → {FEW}")
        for node in ast.walk(module_of(source))
        for name, value in _named_values(node)
        if _ROUNDS.match(name)
        and isinstance(value, ast.Constant)
        and isinstance(value.value, int)
        and value.value > FEW
    ]
    return apply_noted(source, changes, TOO_LONG)


def _named_values(node: ast.AST) -> list[tuple[str, ast.expr]]:
    if isinstance(node, ast.keyword) and node.arg:
        return [(node.arg, node.value)]
    if isinstance(node, ast.Assign):
        return [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if not (isinstance(node, ast.For) and isinstance(node.target, ast.Name)):
        return []
    loop = node.iter
    bounds = loop.args if isinstance(loop, ast.Call) and is_call_of(loop, "range") else []
    return [(node.target.id, bounds[0])] if len(bounds) == 1 else []
