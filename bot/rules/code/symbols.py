"""Finds definitions by name: through modules and re-exports where these tell, by the end of the name where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from bot.rules.code import imports, syntax
from bot.rules.code.outline import Piece

_DEEPEST = 10
_ASIDE = ("test", "tests", "testing", "_testing", "benchmark", "benchmarks", "examples", "docs", "_vendor")


class Place(NamedTuple):
    """A piece of a file."""

    path: str
    piece: Piece

    @property
    def dotted(self) -> str:
        """The full name of what stands there."""
        module = imports.module_of(self.path)
        return f"{module}.{self.piece.name}" if self.piece.name else module


class Sources(Protocol):
    """The sources that names are looked up in."""

    def text(self, path: str) -> str | None:
        """The text of a file, None when there is none."""
        ...

    def pieces(self, path: str) -> Sequence[Piece]:
        """Its pieces, in order."""
        ...

    def named(self, last: str) -> Sequence[Place]:
        """First pieces of the definitions whose simple name this is."""
        ...


def resolve(sources: Sources, name: str) -> Place | None:
    """The definition of a full dotted name, by the modules it goes through; None when they do not lead to one."""
    return _resolve(sources, name, frozenset())


def lookup(sources: Sources, name: str, limit: int, main: Sequence[str] = ()) -> tuple[Place, ...]:
    """Definitions of a partly dotted name: what it resolves to, then those whose names end like it; `main` packages first."""
    first = resolve(sources, name)
    parts = name.split(".")
    others = sorted(sources.named(parts[-1]), key=lambda place: _distance(place, parts, main))
    asked = [place for place in others if len(parts) == 1 or place.dotted.endswith("." + ".".join(parts[-2:]))]
    if first is None and not asked:
        asked = [place for place in others if _through(parts, place.dotted.split("."))]
    found = dict.fromkeys([*([first] if first else []), *asked])
    return tuple(found)[:limit]


def bound(sources: Sources, path: str, name: str, owner: str = "") -> Place | None:
    """What a dotted name means inside a file: a local definition, an import of it, or a member of the class `owner`."""
    head, _, rest = name.partition(".")
    if head in {"self", "cls", "super"} and owner and rest:
        return _member(sources, path, owner, rest.partition(".")[0], frozenset(), past=head == "super")
    text = sources.text(path)
    if text is None or head in {"self", "cls", "super", "?"}:
        return None
    return _inside(sources, path, text, name, frozenset())


def _resolve(sources: Sources, name: str, seen: frozenset[str]) -> Place | None:
    if name in seen or len(seen) > _DEEPEST:
        return None
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        for path in imports.paths_of(".".join(parts[:cut])):
            text = sources.text(path)
            if text is not None:
                rest = ".".join(parts[cut:])
                if not rest:
                    pieces = sources.pieces(path)
                    return Place(path, pieces[0]) if pieces else None
                return _inside(sources, path, text, rest, seen | {name})
    return None


def _inside(sources: Sources, path: str, text: str, name: str, seen: frozenset[str]) -> Place | None:
    own = _definition(sources, path, name)
    if own is not None:
        return own
    head, _, rest = name.partition(".")
    holder = _definition(sources, path, head) if rest else None
    if holder is not None and holder.piece.kind == "class":
        return _member(sources, path, head, rest.partition(".")[0], seen)
    known = imports.bindings(text, path)
    target = known.names.get(head)
    if target is not None:
        full = f"{target}.{rest}" if rest else target
        local = target.partition(".")[0]
        found = _resolve(sources, full, seen)
        if found is None and local in known.names and local != head and f"{path}:{full}" not in seen:
            found = _inside(sources, path, text, full, seen | {f"{path}:{full}"}) if len(seen) < _DEEPEST else None
        return found
    for star in known.stars:
        found = _resolve(sources, f"{star}.{name}", seen)
        if found is not None:
            return found
    return None


def _member(sources: Sources, path: str, owner: str, name: str, seen: frozenset[str], *, past: bool = False) -> Place | None:
    """A method of a class or of its bases; `past` leaves out the class itself."""
    mark = f"{path}:{owner}.{name}"
    if mark in seen or len(seen) > _DEEPEST:
        return None
    own = None if past else _definition(sources, path, f"{owner}.{name}")
    if own is not None:
        return own
    for base in parents(sources, path, owner):
        found = _member(sources, base.path, base.piece.name, name, seen | {mark})
        if found is not None:
            return found
    return None


def parents(sources: Sources, path: str, owner: str) -> Iterator[Place]:
    """The bases of a class that are defined in these sources."""
    text = sources.text(path)
    tree = syntax.tree_of(text) if text is not None else None
    for base in imports.bases(tree, owner.rpartition(".")[2]) if tree is not None else ():
        found = bound(sources, path, base)
        if found is not None and found.piece.kind == "class" and (found.path, found.piece.name) != (path, owner):
            yield found


def _definition(sources: Sources, path: str, name: str) -> Place | None:
    """The last definition of that name in a file: overloads and fallbacks stand before the real one."""
    last = name.rpartition(".")[2]
    found = [place for place in sources.named(last) if place.path == path and place.piece.name == name]
    return found[-1] if found else None


def _through(parts: Sequence[str], own: Sequence[str]) -> bool:
    """Whether the parts stand in this order in a full name: re-exports leave modules out."""
    left = iter(own)
    return all(part in left for part in parts)


def _distance(place: Place, parts: Sequence[str], main: Sequence[str]) -> tuple[int, int, int, int, int, str, int]:
    """How far a definition is from what was asked for: shared end and beginning of the name, the package, how public it is."""
    own = place.dotted.split(".")
    shared = sum(1 for mine, asked in zip(reversed(own), reversed(parts), strict=False) if mine == asked)
    package = own[0] not in main if main else False
    same = len(parts) > 1 and own[0] != parts[0]
    aside = any(part in _ASIDE or part.startswith("test_") for part in own[:-1])
    hidden = sum(part.startswith("_") for part in own)
    return (-shared, int(same), int(package) + 2 * int(aside), hidden, len(own), place.path, place.piece.start)
