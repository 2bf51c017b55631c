"""The search by itself: any history, first bad anywhere, places that cannot be tested anywhere."""

import math
from itertools import pairwise

from hypothesis import given, strategies as st

from bot.issues.proof.bisect_steps import Edge, bracket, following, regular


def search(truth, hints=()):
    """Run the search against what is true at 1, 2, … steps away; returns the edge and what was
    asked, in order.
    """
    known = {}
    while not isinstance(step := following(len(truth), known, hints), Edge):
        assert 1 <= step <= len(truth)
        assert step not in known, "nothing is asked twice"
        known[step] = truth[step - 1]
    return step, known


@given(st.integers(0, 200), st.integers(0, 200), st.booleans())
def test_the_first_good_one_is_found_wherever_it_is(bad, good, hinted):
    edge, known = search(["bad"] * bad + ["good"] * good, (bad + good,) if hinted else ())
    assert edge.bad == bad
    assert edge.good == (bad + 1 if good else None)
    assert edge.between == ()
    assert len(known) <= 2 * math.ceil(math.log2(bad + 2)) + 2 + (
        math.ceil(math.log2(bad + good + 1)) if hinted else 0
    )


@given(
    st.lists(st.sampled_from(["bad", "good", "skip", "lacks"]), max_size=60),
    st.sets(st.integers(1, 60), max_size=3),
)
def test_any_history_ends_and_what_is_said_is_true_of_it(truth, hints):
    edge, known = search(truth, tuple(hints))
    assert edge.bad == 0 or truth[edge.bad - 1] == "bad"
    assert all(known.get(at) not in {"good", "bad"} for at in edge.between) or edge.good is None
    if edge.good is not None:
        assert truth[edge.good - 1] == "good"
        assert set(edge.between) == set(range(edge.bad + 1, edge.good))
    assert edge == bracket(len(truth), known)


@given(st.integers(0, 40), st.integers(1, 40), st.sets(st.integers(1, 80), max_size=6))
def test_between_the_two_sides_lies_only_what_cannot_be_tested(bad, good, skips):
    truth = ["bad"] * bad + ["good"] * good
    truth = ["skip" if at + 1 in skips else seen for at, seen in enumerate(truth[:-1])] + truth[-1:]
    edge, _ = search(truth, (len(truth),))
    assert edge.good is not None
    assert all(truth[at - 1] == "skip" for at in edge.between)
    assert edge.bad <= bad < edge.good


def test_when_all_older_ones_cannot_be_tested_the_search_finds_where_that_begins():
    edge, known = search(["bad"] * 9 + ["skip"] * 90)
    assert (edge.bad, edge.good, edge.wall) == (9, None, True)
    assert len(known) < 16
    edge, _ = search(["bad"] * 4 + ["good"] * 2 + ["skip"] * 90)
    assert (edge.bad, edge.good) == (4, 5)


def test_what_lacks_something_is_not_gone_far_beyond():
    edge, known = search(["bad"] * 9 + ["lacks"] * 90)
    assert (edge.bad, edge.good, edge.wall) == (9, None, True)
    assert max(known) == 17, "the neighbour of the one that the steps came to"
    edge, _ = search(["bad"] * 3 + ["lacks"] + ["good"] * 5)
    assert (edge.bad, edge.good) == (3, 5), "a single release can lack it by mistake"


def test_a_single_gap_is_stepped_over():
    edge, _ = search(["skip", "bad", "bad", "skip", "bad", "good"])
    assert (edge.bad, edge.good) == (5, 6)


@given(st.dictionaries(st.integers(-9, 9), st.sampled_from(["bad", "good", "skip"]), max_size=12))
def test_a_history_is_regular_when_one_run_of_failures_explains_it(outcomes):
    outcomes[0] = "bad"
    settled = [outcomes[at] for at in sorted(outcomes) if outcomes[at] != "skip"]
    changes = sum(one != two for one, two in pairwise(settled))
    one_run = changes <= (settled[0] == "good") + (settled[-1] == "good")
    assert (regular(outcomes) == ()) == one_run
