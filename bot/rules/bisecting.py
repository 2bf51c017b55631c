"""Which release or commit to try next, and where the search ends. Pure: each decision follows from
all outcomes known so far.

Places are counted as steps from one that is known to fail: 0 is that one, `size` the farthest.
"Skip" is a place that cannot be tested, as in `git bisect skip`. "Lacks" is one without what the
program uses; those farther out lack it too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Seen = Literal["bad", "good", "skip", "lacks"]

_DETOURS = (
    2  # places beyond a skipped one that are still tried before all beyond is taken to be like it
)
_MOST_SKIPS = 8  # in one open interval, before it is left open


@dataclass(frozen=True, slots=True)
class Edge:
    """The boundary next to the failing end: the farthest known bad and the nearest good (None
    when none was found). `between` are the places of which nothing is known; `wall` when what
    lies beyond `bad` cannot be tested.
    """

    bad: int
    good: int | None
    between: tuple[int, ...] = ()
    wall: bool = False


def following(size: int, known: Mapping[int, Seen], hints: tuple[int, ...] = ()) -> int | Edge:
    """The next place to try, or the edge when there is none. `hints` are tried first; with a
    good place at hand the interval is halved, without one the steps double.
    """
    edge = bracket(size, known)
    search = _outward(edge, size, known) if edge.good is None else _inward(edge, known)
    return next((hint for hint in hints if 0 < hint <= size and hint not in known), search)


def bracket(size: int, known: Mapping[int, Seen]) -> Edge:
    """The edge as far as it is known."""
    goods = (at for at, seen in known.items() if seen == "good" and 0 < at <= size)
    good = min(goods, default=None)
    limit = size + 1 if good is None else good
    bad = max((at for at, seen in known.items() if seen == "bad" and 0 < at < limit), default=0)
    return Edge(bad, good, tuple(range(bad + 1, limit)), wall=good is None and bad < size)


def _inward(edge: Edge, known: Mapping[int, Seen]) -> int | Edge:
    """The untried place nearest to the middle; after skips a quarter, three quarters, an eighth
    and so on.
    """
    untried = [at for at in edge.between if at not in known]
    skips = len(edge.between) - len(untried)
    if not untried or skips >= _MOST_SKIPS or edge.good is None:
        return edge
    wanted = edge.bad + _fraction(skips) * (edge.good - edge.bad)
    return min(untried, key=lambda at: (abs(at - wanted), at))


def _outward(edge: Edge, size: int, known: Mapping[int, Seen]) -> int | Edge:
    if edge.bad == size:
        return edge
    skips = [at for at in edge.between if at in known]
    if not skips:
        return min(1 << edge.bad.bit_length(), size)
    detours = (skips[-1] + 1, min(2 * skips[-1], size))
    most = (
        _DETOURS if all(known[at] == "skip" for at in skips) else 1
    )  # a release can lack something by mistake
    if len(skips) <= most and (beyond := detours[len(skips) - 1]) <= size and beyond not in known:
        return beyond
    # Everything farther out is taken to be beyond testing: what is left is where that begins.
    untried = range(edge.bad + 1, skips[0])
    return untried[len(untried) // 2] if untried else edge


def _fraction(turn: int) -> float:
    """1/2, 1/4, 3/4, 1/8, 5/8 …: the van der Corput sequence, which soon gets out of a block of
    skipped places.
    """
    turn, fraction, part = turn + 1, 0.0, 0.5
    while turn:
        fraction += part * (turn & 1)
        turn, part = turn >> 1, part / 2
    return fraction


def regular(outcomes: Mapping[int, Seen]) -> tuple[int, ...]:
    """Places that contradict one introduction and one fix, over one line on which 0 is the known
    bad one and older places are negative: failing places beyond a passing one.
    """
    good = [at for at, seen in outcomes.items() if seen == "good"]
    older = max((at for at in good if at < 0), default=-math.inf)
    newer = min((at for at in good if at > 0), default=math.inf)
    bad = (at for at, seen in outcomes.items() if seen == "bad")
    return tuple(sorted(at for at in bad if not older <= at <= newer))
