"""Finds definitions by name: through modules and re-exports where these lead to one, else by the
end of the name.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from bot.rules.code import imports
from bot.rules.code.outline import Segment

_SELF = frozenset({"self", "cls", "super"})
_MOST_STEPS, _MOST_LEVELS = 60, 3
_SECONDARY = frozenset(
    {"test", "tests", "testing", "_testing", "benchmark", "benchmarks", "examples", "docs"}
    | {"_vendor"}
)


class DefinitionStore(Protocol):
    """The sources that names are looked up in."""

    def text(self, path: str) -> str | None:
        """The text of a file, None when there is none."""

    def segments(self, path: str) -> Sequence[Segment]:
        """The segments of a file, in order."""

    def named(self, last: str) -> Sequence[Segment]:
        """First segments of the definitions with this simple name."""


def lookup(
    store: DefinitionStore, name: str, limit: int, main: Sequence[str] = ()
) -> tuple[Segment, ...]:
    """Definitions of a partly dotted name: what it resolves to, then those whose names end like
    it; `main` packages first.
    """
    first = _Resolution(store).absolute(name)
    if first is not None and limit == 1:  # who has a name like it takes long to tell
        return (first,)
    parts = name.split(".")
    others = store.named(parts[-1])
    ending = "." + ".".join(parts[-2:])
    found = [other for other in others if len(parts) == 1 or other.dotted.endswith(ending)]
    if first is None and not found:
        found = [other for other in others if _in_order(parts, other.dotted.split("."))]
    found.sort(key=lambda other: _distance(other, parts, main))
    return tuple(dict.fromkeys([*([first] if first else []), *found]))[:limit]


def bound(store: DefinitionStore, path: str, name: str, owner: str = "") -> Segment | None:
    """What a dotted name means inside a file: a local definition, an import of it, or a member
    of the class `owner`.
    """
    head, _, rest = name.partition(".")
    if head not in _SELF:
        return _Resolution(store).inside(path, name)
    if not owner or not rest:
        return None
    member = rest.partition(".")[0]
    return _Resolution(store).member(path, owner, member, inherited=head == "super")


class _Resolution:
    """Follows one name. Each step is taken once, and bases are followed so many levels up: cyclic
    imports and bases end, long before Python's stack does.
    """

    def __init__(self, store: DefinitionStore, level: int = 0) -> None:
        self.store = store
        self.level = level
        self.seen: set[tuple[str, str]] = set()

    def absolute(self, name: str) -> Segment | None:
        """The definition of a full dotted name, by the modules it goes through."""
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            for path in imports.paths_of(".".join(parts[:cut])):
                if self.store.text(path) is not None:
                    rest = ".".join(parts[cut:])
                    return self.inside(path, rest) if rest else self._module(path)
        return None

    def inside(self, path: str, name: str) -> Segment | None:
        """What a dotted name means at the top level of a file."""
        if not self._first_time(path, name):
            return None
        own = self._definition(path, name)
        if own is not None:
            return own
        head, _, rest = name.partition(".")
        owner = self._definition(path, head) if rest else None
        if owner is not None and owner.kind == "class":
            return self.member(path, head, rest.partition(".")[0])
        known = imports.bindings(self.store.text(path) or "", path)
        if head in known.names:
            full = f"{known.names[head]}.{rest}" if rest else known.names[head]
            return self.absolute(full) or self.inside(path, full)
        found = (self.absolute(f"{star}.{name}") for star in known.stars)
        return next(filter(None, found), None)

    def member(
        self, path: str, owner: str, name: str, *, inherited: bool = False
    ) -> Segment | None:
        """A method of a class or of its bases; `inherited` leaves out the class itself."""
        if not self._first_time(path, f"{owner}:{name}"):
            return None
        own = None if inherited else self._definition(path, f"{owner}.{name}")
        found = (self.member(base.path, base.name, name) for base in self._bases(path, owner))
        return own or next(filter(None, found), None)

    def _bases(self, path: str, owner: str) -> Iterator[Segment]:
        named = imports.bases(self.store.text(path) or "", owner.rpartition(".")[2])
        for base in named if self.level < _MOST_LEVELS else ():
            found = _Resolution(self.store, self.level + 1).inside(path, base)
            if found is not None and found.kind == "class":
                yield found

    def _first_time(self, path: str, name: str) -> bool:
        new = (path, name) not in self.seen
        self.seen.add((path, name))
        return new and len(self.seen) < _MOST_STEPS

    def _module(self, path: str) -> Segment | None:
        return next(iter(self.store.segments(path)), None)

    def _definition(self, path: str, name: str) -> Segment | None:
        """The last definition of that name in a file: overloads and fallbacks come before the real
        one.
        """
        segments = self.store.segments(path)
        found = [each for each in segments if each.name == name and not each.part]
        return found[-1] if found else None


def _in_order(parts: Sequence[str], full: Sequence[str]) -> bool:
    """Whether the parts occur in this order in a full name: re-exports leave modules out."""
    left = iter(full)
    return all(part in left for part in parts)


def _distance(
    found: Segment, parts: Sequence[str], main: Sequence[str]
) -> tuple[int, bool, int, int, int, str, int]:
    """How far a definition is from what was asked for: shared end and beginning of the name, the
    package, how public it is.
    """
    own = found.dotted.split(".")
    shared = sum(a == b for a, b in zip(reversed(own), reversed(parts), strict=False))
    secondary = any(part in _SECONDARY or part.startswith("test_") for part in own[:-1])
    return (
        -shared,
        len(parts) > 1 and own[0] != parts[0],
        (bool(main) and own[0] not in main) + 2 * secondary,
        sum(part.startswith("_") for part in own),
        len(own),
        found.path,
        found.start,
    )
