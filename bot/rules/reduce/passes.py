"""The order of the reduction: files, definitions and statements first, then everything else,
until nothing goes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bot.models.attempt import ObservedTensor
from bot.rules.reduce import data, expressions, inline, statements, tidy
from bot.rules.reduce.edits import Files, Reduction, ReductionNode

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
    first = (*tidy.comments(files), *data.synthetic(files, facts.tensors))
    sets = (*((reduction,) for reduction in first), *inline.plain(files, facts.entry))
    return _groups([*(_nodes(one, facts) for one in sets), statements.unread(files, facts.stack)])


def coarse(files: Files, facts: ProgramFacts) -> Groups:
    """Files, what the failure does not depend on, and the tree of statements."""
    others = [path for path in sorted(files) if path != facts.entry]
    dropped = tuple(ReductionNode(Reduction(f"drop {path}", drops=(path,))) for path in others)
    return _groups([dropped, statements.unread(files, facts.stack), *statements.trees(files)])


def settle(files: Files, facts: ProgramFacts) -> Groups:
    """Synthetic data, names replaced by their values, fewer parameters; and statements again."""
    named = (*data.synthetic(files, facts.tensors), *inline.edits(files, facts.entry))
    small = (*tidy.comments(files), *named, *tidy.unused(files))
    return [*((node,) for node in _nodes(small, facts)), *coarse(files, facts)]


def fine(files: Files, facts: ProgramFacts) -> Groups:
    """Everything: statements, names, arguments, expressions, constants and sizes."""
    small = (*data.loops(files), *expressions.edits(files), *data.constants(files))
    return [*settle(files, facts), *((node,) for node in _nodes(small, facts))]


Pass = Callable[[Files, ProgramFacts], Groups]


def _nodes(reductions: Iterable[Reduction], facts: ProgramFacts) -> tuple[ReductionNode, ...]:
    distinct = dict.fromkeys(reductions)
    return tuple(ReductionNode(r) for r in distinct if not (facts.keep_values and r.alters_values))


def _groups(groups: Groups) -> Groups:
    return [group for group in groups if group]
