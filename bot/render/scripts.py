"""A script in a comment: in sight when it is one short file, else in a fold."""

from __future__ import annotations

from bot.models.attempt import Script
from bot.render import proof
from bot.render.folds import Block, Fold
from bot.render.sanitize import code_span, fence

_LINES = 12
_CHARACTERS = 2_000


def in_sight(script: Script | None, size: str = "") -> list[str]:
    """The lines that show a short script of one file; none when it is longer. `size` is said beside its name."""
    if script is None or len(script.files) != 1 or len(script.source) > _CHARACTERS:
        return []
    lines = fence(script.source, "python").splitlines()
    return [f"{code_span(script.entry)}{f', {size}' if size else ''}:", *lines, ""] if len(lines) - 2 <= _LINES else []


def folded(script: Script, title: str = "Script", size: str = "") -> Fold:
    """Every file of a script, the one to start first. `size` is said beside its name in place of its lines."""
    ordered = sorted(script.files, key=lambda name: (name != script.entry, name))
    blocks: list[Block] = []
    for name in ordered:
        blocks += [Block(f"{code_span(name)}:")] if len(ordered) > 1 else []
        blocks.append(Block(script.files[name], "python" if name.endswith(".py") else ""))
    size = size or proof.length(script)
    return Fold(f"{title}: {script.entry}, {size}", tuple(blocks))
