"""The search for a smaller program, apart from running it: passes in their order, variants,
and what was rejected.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.issues.reduce import expressions, inline, inputs, statements
from bot.issues.reduce.edits import Files, Reduction, ReductionNode, apply_reductions, size
from bot.kernel.attempt import ObservedTensor

# Reductions that were rejected: not worth another test as long as nothing that they could depend
# on has changed.

_NAME = re.compile(r"[A-Za-z_]\w*")
_COMMON = 0.25
"""A name on a larger part of the lines tells nothing about what belongs together."""

_Key = tuple[object, ...]


@dataclass(slots=True)
class RejectedReductions:
    """Remembers rejected sets of reductions over several passes. A set is known when the same
    reductions were rejected while all lines that share a name with theirs were the same.
    """

    keys: set[_Key] = field(default_factory=set)
    skipped: int = 0

    def view(self, files: Files) -> RejectedView:
        """What is known for one pass, whose reductions refer to these files; `skipped` counts from
        here.
        """
        self.skipped = 0
        return RejectedView(self, files)


class RejectedView:
    """What is known of the reductions of one text."""

    def __init__(self, rejected: RejectedReductions, files: Files) -> None:
        self._rejected = rejected
        # equal statements of one pass are each worth a test
        self._before = frozenset(rejected.keys)
        self._files = {path: _Lines(text) for path, text in files.items()}

    def known(self, group: Iterable[ReductionNode]) -> bool:
        """Whether these reductions were rejected in the same surroundings."""
        is_rejected = self._key(group) in self._before
        self._rejected.skipped += is_rejected
        return is_rejected

    def note(self, group: Iterable[ReductionNode]) -> None:
        """Remember that they were rejected."""
        self._rejected.keys.add(self._key(group))

    def _key(self, group: Iterable[ReductionNode]) -> _Key:
        return tuple(self._key_of(node.reduction) for node in group)

    def _key_of(self, reduction: Reduction) -> _Key:
        rows = tuple(
            (one.path, *self._files[one.path].around(one.start, one.end), one.new)
            for one in reduction.replacements
        )
        names = {name for _, _, text, _ in rows for name in _NAME.findall(text)}
        near = tuple((path, lines.sharing(names)) for path, lines in self._files.items())
        return reduction.what, rows, near, reduction.drops


class _Lines:
    """A text with the lines on which each of its names is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [line for line in text.split("\n") if line.strip()]
        self._places: dict[str, list[int]] = {}
        for at, line in enumerate(self._lines):
            for name in set(_NAME.findall(line)):
                self._places.setdefault(name, []).append(at)
        self._most = max(2.0, _COMMON * len(self._lines))

    def around(self, start: int, end: int) -> tuple[int, str]:
        """The whole lines of a span, and where in them it begins."""
        first = self._text.rfind("\n", 0, start) + 1
        last = self._text.find("\n", max(first, end - 1))
        return start - first, self._text[first : last if last >= 0 else len(self._text)]

    def sharing(self, names: set[str]) -> tuple[str, ...]:
        """The lines with one of these names."""
        rare = [lines for name in names if len(lines := self._places.get(name, [])) <= self._most]
        return tuple(self._lines[at] for at in sorted({at for lines in rare for at in lines}))


# The search for a smaller program, apart from running it: a pass proposes many variants at a time
# and learns which still fail.
#
# Hierarchical delta debugging over a tree of reductions: sets of siblings first, in ever smaller
# parts, then what is within those that must stay. Sets that can go alone are tried together, then
# in halves, and the largest that still fails is accepted. Sources: A. Zeller and R. Hildebrandt,
# IEEE TSE 28 (2002); G. Misherghi and Z. Su, ICSE 2006.

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
        descriptions = [node.reduction.what for group in self.sets for node in group]
        return (
            descriptions[0]
            if len(descriptions) == 1
            else f"{descriptions[0]} and {len(descriptions) - 1} more"
        )


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
            variants = _Variants()
            self._joined(variants, most)
            self._queued(variants, most)
            if variants:
                return list(variants.values())
            if self.alone:
                self._accept(self._singles())
            else:
                self.stale = []
        return []

    def learn(self, outcomes: Sequence[tuple[Variant, bool]]) -> bool:
        """Take in the outcome of a round; True when a smaller program was accepted."""
        is_joint = bool(self.alone or self.stale)
        for variant, fails in outcomes:
            if len(variant.sets) > 1:
                self.tried.add(variant.sets)
            else:
                self._learn_single(variant.sets[0], fails)
        several = [variant for variant, fails in outcomes if fails and len(variant.sets) > 1]
        singles = self._singles()
        if several or (singles and (is_joint or len(singles) == 1)):
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

    def _joined(self, variants: _Variants, most: int) -> None:
        """Sets that went alone, together; the stale ones alone as well."""
        for sets in _tree([*self.alone, *self.stale][:most]):
            if (len(sets) == 1 and sets[0] in self.alone) or sets in self.tried:
                continue
            if len(variants) >= _AHEAD:
                break  # most often all of them go, and the smaller sets need no test
            if not self._add(variants, sets) and len(sets) == 1:
                self.stale.remove(sets[0])

    def _queued(self, variants: _Variants, most: int) -> None:
        while self.queue and len(variants) < most:
            group = self.queue.popleft()
            is_rejected = self.rejected is not None and self.rejected.known(group)
            if is_rejected or not self._add(variants, (group,)):
                self._split(group)

    def _add(self, variants: _Variants, sets: tuple[Group, ...]) -> bool:
        variant = self._made(sets)
        if variant is not None:
            variants.setdefault(tuple(sorted(variant.files.items())), variant)
        return variant is not None

    def _singles(self) -> list[Variant]:
        """What is known to go alone, as variants; what changes nothing any more is forgotten."""
        groups_and_variants = [(group, self._made((group,))) for group in self.alone]
        self.alone = [group for group, variant in groups_and_variants if variant is not None]
        return [variant for _, variant in groups_and_variants if variant is not None]

    def _accept(self, variants: list[Variant]) -> None:
        best = min(variants, key=lambda variant: size(variant.files))
        self.files = best.files
        self.accepted += tuple(node.reduction for group in best.sets for node in group)
        self.stale = [group for group in (*self.alone, *self.stale) if group not in best.sets]
        self.alone = []
        self.tried.clear()

    def _made(self, sets: tuple[Group, ...]) -> Variant | None:
        more = (node.reduction for group in sets for node in group)
        files = apply_reductions(self.start, [*self.accepted, *more])
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
    level, partitions = [tuple(groups)] if groups else [], list[tuple[Group, ...]]()
    while level:
        partitions += level
        halves = [(part[: len(part) // 2], part[len(part) // 2 :]) for part in level]
        level = [half for pair in halves if pair[0] for half in pair]
    return partitions


# The order of the reduction: files, definitions and statements first, then everything else, until
# nothing goes.

Groups = list[tuple[ReductionNode, ...]]


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """What the passes must know of the program: its entry file, the tensors that a run observed,
    the lines on which the failure arises, and whether values must stay.
    """

    entry: str
    tensors: tuple[ObservedTensor, ...] = ()
    keep_values: bool = False
    stack: statements.Stack = frozenset()


def early(files: Files, facts: ProgramFacts) -> Groups:
    """Comments, synthetic data, and what the failure then does not depend on: most of a program
    goes here.
    """
    first = (*statements.comments(files), *expressions.synthetic(files, facts.tensors))
    outside = ((reduction,) for reduction in inputs.input_edits(files))
    first_sets = ((reduction,) for reduction in first)
    sets = (*first_sets, *outside, *inline.plain(files, facts.entry))
    return _groups([*(_nodes(one, facts) for one in sets), statements.unread(files, facts.stack)])


def coarse(files: Files, facts: ProgramFacts) -> Groups:
    """Files, what the failure does not depend on, and the tree of statements."""
    others = [path for path in sorted(files) if path != facts.entry]
    file_drops = tuple(ReductionNode(Reduction(f"drop {path}", drops=(path,))) for path in others)
    unread = statements.unread(files, facts.stack)
    return _groups([file_drops, unread, *statements.trees(files), *inputs.data_lines(files)])


def settle(files: Files, facts: ProgramFacts) -> Groups:
    """Synthetic data, names replaced by their values, fewer parameters; and statements again."""
    made_up = expressions.synthetic(files, facts.tensors)
    edits = (*made_up, *inputs.input_edits(files), *inline.inline_edits(files, facts.entry))
    small = (*statements.comments(files), *edits, *statements.unused(files))
    return [*((node,) for node in _nodes(small, facts)), *coarse(files, facts)]


def fine(files: Files, facts: ProgramFacts) -> Groups:
    """Everything: statements, names, arguments, expressions, constants and sizes."""
    small = (*expressions.loops(files), *expressions.edits(files), *expressions.constants(files))
    return [*settle(files, facts), *((node,) for node in _nodes(small, facts))]


Pass = Callable[[Files, ProgramFacts], Groups]


def _nodes(reductions: Iterable[Reduction], facts: ProgramFacts) -> tuple[ReductionNode, ...]:
    distinct = dict.fromkeys(reductions)
    return tuple(ReductionNode(r) for r in distinct if not (facts.keep_values and r.alters_values))


def _groups(groups: Groups) -> Groups:
    return [group for group in groups if group]
