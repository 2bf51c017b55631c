"""The search for a smaller program, apart from running it: a pass proposes many variants at a
time and learns which still fail.

Hierarchical delta debugging over a tree of reductions: sets of siblings first, in ever smaller
parts, then what is within those that must stay. Sets that can go alone are tried together, then in
halves, and the largest that still fails is accepted. Sources: A. Zeller and R. Hildebrandt, IEEE
TSE 28 (2002); G. Misherghi and Z. Su, ICSE 2006.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.rules.reduce.edits import Files, Reduction, ReductionNode, applied, size
from bot.rules.reduce.tried_cache import RejectedReductions, RejectedView

_PARTS, _FEW = 4, 6
_AHEAD = 7  # all that may go together, its halves, and their halves
_NOT_WORTH_A_ROUND = 3  # what is left over; the next pass tries it again
Group = tuple[ReductionNode, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """A smaller program to try, and the sets of reductions that make it from what is accepted so
    far.
    """

    files: Mapping[str, str]
    sets: tuple[Group, ...]

    @property
    def what(self) -> str:
        """The reductions in a few words."""
        found = [node.reduction.what for group in self.sets for node in group]
        return found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more"


_Variants = dict[tuple[tuple[str, str], ...], Variant]


@dataclass(slots=True)
class ReductionPass:
    """One pass from one program: all reductions refer to its text. `files` is the smallest
    program found so far.

    `alone` are the sets known to go alone from `files`, `stale` those that went alone from an
    earlier, larger program.
    """

    start: Files
    queue: deque[Group]
    files: Mapping[str, str]
    accepted: tuple[Reduction, ...] = ()
    alone: list[Group] = field(default_factory=list)
    stale: list[Group] = field(default_factory=list)
    tried: set[tuple[Group, ...]] = field(default_factory=set)
    rejected: RejectedView | None = None

    @classmethod
    def over(
        cls, start: Files, groups: Iterable[Group], rejected: RejectedReductions | None = None
    ) -> ReductionPass:
        """A pass over lists of siblings; what is known to be `rejected` is not tried again, but
        its parts are.
        """
        view = rejected.view(start) if rejected else None
        return cls(start, deque(groups), dict(start), rejected=view)

    def propose(self, most: int) -> list[Variant]:
        """About so many variants, none of them twice; [] when nothing is left to try."""
        while self.queue or self.alone or len(self.stale) > _NOT_WORTH_A_ROUND:
            found = _Variants()
            self._joined(found, most)
            self._queued(found, most)
            if found:
                return list(found.values())
            if self.alone:
                self._accept(self._singles())
            else:
                self.stale = []
        return []

    def learn(self, outcomes: Sequence[tuple[Variant, bool]]) -> bool:
        """Take in the outcome of a round; True when a smaller program was accepted."""
        joined = bool(self.alone or self.stale)
        for variant, fails in outcomes:
            if len(variant.sets) > 1:
                self.tried.add(variant.sets)
            else:
                self._learn_single(variant.sets[0], fails)
        several = [variant for variant, fails in outcomes if fails and len(variant.sets) > 1]
        singles = self._singles()
        if several or (singles and (joined or len(singles) == 1)):
            self._accept([*several, *singles])
            return True
        return False

    def _learn_single(self, group: Group, fails: bool) -> None:
        if group in self.stale:
            self.stale.remove(group)
        if not fails:
            if self.rejected is not None:
                self.rejected.note(group)
            self._split(group)
        elif group not in self.alone:
            self.alone.append(group)

    def _joined(self, found: _Variants, most: int) -> None:
        """Sets that went alone, together; the stale ones alone as well."""
        for sets in _tree([*self.alone, *self.stale][:most]):
            if (len(sets) == 1 and sets[0] in self.alone) or sets in self.tried:
                continue
            if len(found) >= _AHEAD:
                break  # most often all of them go, and the smaller sets need no test
            if not self._add(found, sets) and len(sets) == 1:
                self.stale.remove(sets[0])

    def _queued(self, found: _Variants, most: int) -> None:
        while self.queue and len(found) < most:
            group = self.queue.popleft()
            known = self.rejected is not None and self.rejected.known(group)
            if known or not self._add(found, (group,)):
                self._split(group)

    def _add(self, found: _Variants, sets: tuple[Group, ...]) -> bool:
        variant = self._made(sets)
        if variant is not None:
            found.setdefault(tuple(sorted(variant.files.items())), variant)
        return variant is not None

    def _singles(self) -> list[Variant]:
        """What is known to go alone, as variants; what changes nothing any more is forgotten."""
        made = [(group, self._made((group,))) for group in self.alone]
        self.alone = [group for group, variant in made if variant is not None]
        return [variant for _, variant in made if variant is not None]

    def _accept(self, variants: list[Variant]) -> None:
        best = min(variants, key=lambda variant: size(variant.files))
        self.files = best.files
        self.accepted += tuple(node.reduction for group in best.sets for node in group)
        self.stale = [group for group in (*self.alone, *self.stale) if group not in best.sets]
        self.alone = []
        self.tried.clear()

    def _made(self, sets: tuple[Group, ...]) -> Variant | None:
        more = (node.reduction for group in sets for node in group)
        files = applied(self.start, [*self.accepted, *more])
        return None if files is None or files == self.files else Variant(files, sets)

    def _split(self, group: Group) -> None:
        """Queue the parts of a set that cannot go."""
        parts = [group] if len(group) > 1 else group[0].children
        self.queue.extend(part for siblings in parts for part in _parts(siblings))


def _parts(group: Group) -> list[Group]:
    """A list of siblings in parts, each one alone when they are few."""
    step = -(-len(group) // _PARTS) if len(group) > _FEW else 1
    return [group[at : at + step] for at in range(0, len(group), step)]


def _tree(groups: Sequence[Group]) -> list[tuple[Group, ...]]:
    """All sets together, then both halves, and so on down to each alone."""
    level, found = [tuple(groups)] if groups else [], list[tuple[Group, ...]]()
    while level:
        found += level
        halves = [(part[: len(part) // 2], part[len(part) // 2 :]) for part in level]
        level = [half for pair in halves if pair[0] for half in pair]
    return found
