"""Call edges: what a piece calls and who calls it, by resolving names through imports."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Iterator

from bot.rules.code import symbols, syntax
from bot.rules.code.symbols import Place, Sources

_BUILTIN = frozenset(dir(builtins))
_CALL = re.compile(r"(?<![\w.])((?:[A-Za-z_]\w*\.){0,6}[A-Za-z_]\w*)\s*\(")
_UNCLEAR = 3
_COMMON = frozenset(re.findall(r"\w+", """
    append extend items keys values get pop copy update add join split strip format replace startswith endswith
    encode decode to size view reshape dim item type shape mean sum max min abs clone detach cpu cuda float int
    bool long insert sort index count read write close
"""))  # fmt: skip


def callees(sources: Sources, place: Place, text: str) -> Iterator[Place]:
    """Definitions of what a piece calls, each once, in the order of the calls."""
    owner = _owner(place)
    seen = {place}
    for name in dict.fromkeys(_called(text)):
        found = _target(sources, place.path, name, owner)
        if found is not None and found not in seen:
            seen.add(found)
            yield found


def callers(sources: Sources, target: Place, candidates: Iterable[tuple[Place, str]]) -> Iterator[Place]:
    """Of pieces (with their texts) that hold the name, those that call it: first where names lead to it, then where only the
    name is the same.
    """
    name = callable_name(target)
    alike: list[Place] = []
    for place, text in candidates:
        if (place.path, place.piece.name) == (target.path, target.piece.name):
            continue
        found = [each for each in dict.fromkeys(_called(text)) if each.rpartition(".")[2] == name]
        if any(_same(_target(sources, place.path, each, _owner(place)), target) for each in found):
            yield place
        elif found:
            alike.append(place)
    yield from alike


def callable_name(target: Place) -> str:
    """The name under which a definition is called: a class for its constructor and its forward pass."""
    owner, _, last = target.piece.name.rpartition(".")
    return owner.rpartition(".")[2] if last in {"__init__", "__call__", "__new__", "forward"} and owner else last


def _same(found: Place | None, target: Place) -> bool:
    if found is None or found.path != target.path:
        return False
    return found.piece.name == target.piece.name or target.piece.name.startswith(f"{found.piece.name}.")


def _called(text: str) -> Iterable[str]:
    tree = syntax.tree_of_piece(text)
    names = syntax.calls(tree) if tree is not None else _CALL.findall(text)
    return (name for name in names if name not in _BUILTIN)


def _target(sources: Sources, path: str, name: str, owner: str) -> Place | None:
    found = symbols.bound(sources, path, name, owner)
    last = name.rpartition(".")[2]
    if found is not None or "." not in name or last in _COMMON or len(last) < 4:
        return found
    alike = sources.named(last)
    clear = [each for each in alike if each.path.partition("/")[0] == path.partition("/")[0]]
    return clear[0] if 0 < len(clear) <= 1 and len(alike) <= _UNCLEAR else None


def _owner(place: Place) -> str:
    if place.piece.kind == "class":
        return place.piece.name
    return place.piece.name.rpartition(".")[0]
