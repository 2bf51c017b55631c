"""The search for a smaller program, apart from running it: it proposes many programs at a time and learns which still fail.

Delta debugging over a tree of edits: sets of siblings first, in ever smaller parts, then what is within those that must stay;
sets that can go alone are tried together, then in halves, and the largest that still fails is taken. Sources: A. Zeller and R.
Hildebrandt, IEEE TSE 28 (2002); G. Misherghi and Z. Su, ICSE 2006.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.rules.reduce.edits import Edit, Files, Node, applied, size
from bot.rules.reduce.rejected import Rejected, View

_PARTS, _FEW = 4, 6
_AHEAD = 7  # all that may go together, its halves, and their halves
_NOT_WORTH_A_ROUND = 3  # what is left over; the next pass tries it again


@dataclass(frozen=True, slots=True)
class Candidate:
    """A smaller program to try, and the sets of edits that make it from what is accepted so far."""

    files: Mapping[str, str]
    sets: tuple[tuple[Node, ...], ...]

    @property
    def what(self) -> str:
        """The edits in a few words."""
        edits = [node.edit.what for group in self.sets for node in group]
        return edits[0] if len(edits) == 1 else f"{edits[0]} and {len(edits) - 1} more"


Group = tuple[Node, ...]


@dataclass(slots=True)
class Search:
    """One pass from one program: all edits are in terms of its text. `files` is the smallest found so far.

    `alone` are the sets known to go alone from `files`, `stale` those that went alone from an earlier, larger program.
    """

    start: Files
    queue: deque[Group]
    files: Mapping[str, str]
    accepted: tuple[Edit, ...] = ()
    alone: list[Group] = field(default_factory=list)
    stale: list[Group] = field(default_factory=list)
    tried: set[tuple[Group, ...]] = field(default_factory=set)
    rejected: View | None = None

    @classmethod
    def over(cls, start: Files, groups: Iterable[Group], rejected: Rejected | None = None) -> Search:
        """A pass over lists of siblings; what is known to be `rejected` is not tried again, but its parts are."""
        return cls(start, deque(group for group in groups), dict(start), rejected=rejected.view(start) if rejected else None)

    def propose(self, most: int) -> list[Candidate]:
        """About so many programs, none of them twice; [] when nothing is left to try."""
        while self.queue or self.alone or len(self.stale) > _NOT_WORTH_A_ROUND:
            found: dict[tuple[tuple[str, str], ...], Candidate] = {}
            self._joined(found, most)
            self._queued(found, most)
            if found:
                return list(found.values())
            if self.alone:
                self._accept(min(self._singles(), key=lambda each: size(each.files)))
            else:
                self.stale = []
        return []

    def learn(self, outcomes: Sequence[tuple[Candidate, bool]]) -> bool:
        """What came of a round; True when a smaller program was accepted."""
        joined = bool(self.alone or self.stale)
        for candidate, met in outcomes:
            group = candidate.sets[0]
            if len(candidate.sets) > 1:
                self.tried.add(candidate.sets)
                continue
            if group in self.stale:
                self.stale.remove(group)
            if met and group not in self.alone:
                self.alone.append(group)
            elif not met:
                if self.rejected is not None:
                    self.rejected.note(group)
                self._miss(group)
        fails = [candidate for candidate, met in outcomes if met and len(candidate.sets) > 1]
        singles = self._singles()
        if fails or (singles and (joined or len(singles) == 1)):
            self._accept(min([*fails, *singles], key=lambda each: size(each.files)))
            return True
        return False

    def _joined(self, found: dict[tuple[tuple[str, str], ...], Candidate], most: int) -> None:
        """Sets that went alone, together; those of which that is not certain any more, alone as well."""
        for sets in _tree([*self.alone, *self.stale], most):
            if (len(sets) == 1 and sets[0] in self.alone) or sets in self.tried:
                continue
            if len(found) >= _AHEAD:
                break  # most often all of them go, and the smaller sets need no test
            made = self._made(sets)
            if made is not None:
                found.setdefault(tuple(sorted(made.files.items())), made)
            elif len(sets) == 1:
                self.stale.remove(sets[0])

    def _queued(self, found: dict[tuple[tuple[str, str], ...], Candidate], most: int) -> None:
        while self.queue and len(found) < most:
            group = self.queue.popleft()
            if self.rejected is not None and self.rejected.known(group):
                self._miss(group)
                continue
            made = self._made((group,))
            if made is None:
                self._miss(group)
            else:
                found.setdefault(tuple(sorted(made.files.items())), made)

    def _singles(self) -> list[Candidate]:
        """What is known to go alone, as programs; what changes nothing any more is forgotten."""
        made = [(group, self._made((group,))) for group in self.alone]
        self.alone = [group for group, each in made if each is not None]
        return [each for _, each in made if each is not None]

    def _accept(self, best: Candidate) -> None:
        self.files = best.files
        self.accepted = (*self.accepted, *(node.edit for group in best.sets for node in group))
        self.stale = [group for group in (*self.alone, *self.stale) if group not in best.sets]
        self.alone = []
        self.tried.clear()

    def _made(self, sets: tuple[Group, ...]) -> Candidate | None:
        files = applied(self.start, [*self.accepted, *(node.edit for group in sets for node in group)])
        return None if files is None or files == self.files else Candidate(files, sets)

    def _miss(self, group: Group) -> None:
        """A set that cannot go: its parts may."""
        if len(group) > 1:
            self.queue.extend(_split(group))
        else:
            self.queue.extend(part for inner in group[0].children for part in _split(inner))


def _split(group: Group) -> list[Group]:
    """A list of siblings in parts, each one alone when they are few."""
    if len(group) <= _FEW:
        return [(node,) for node in group]
    step = -(-len(group) // _PARTS)
    return [group[at : at + step] for at in range(0, len(group), step)]


def _tree(groups: list[tuple[Node, ...]], most: int) -> list[tuple[tuple[Node, ...], ...]]:
    """All sets together, then both halves, and so on down to each alone."""
    if not groups:
        return []
    level, found = [groups[:most]], list[tuple[tuple[Node, ...], ...]]()
    while level:
        found.extend(tuple(part) for part in level)
        level = [half for part in level if len(part) > 1 for half in (part[: len(part) // 2], part[len(part) // 2 :])]
    return found
