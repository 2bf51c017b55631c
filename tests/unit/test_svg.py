"""The pictures of a proof: whole, within their frame, and told in words, whatever was probed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import get_args
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st
from markupsafe import Markup

from bot.issues.phrases import OUTCOMES
from bot.kernel.attempt import Attempt, Execution, Judgement, Match, Reduced, Script, Step
from bot.kernel.bug import Bisection, Outcome, Point, Probe
from bot.kernel.document import PairedRunsPlot
from bot.kernel.outside_text import clean
from bot.report import svg
from bot.report.comment import comment
from bot.report.svg import MARKS, WIDTH, strip
from tests.golden.stages import REPORTS
from tests.unit.test_hostile_outgoing import checked

DAY = datetime(2024, 5, 2, tzinfo=UTC)
NAMES = st.text(max_size=30).map(clean) | st.sampled_from(
    ["1.42.17", "2.0.0rc1+cpu", "0123456789abcdef0123456789abcdef01234567", "<g>", "]]>"]
)


@st.composite
def bisections(have: st.DrawFn) -> Bisection:
    """Any bisection, those that make no sense among them."""
    names = have(st.lists(NAMES, max_size=40, unique=True))
    outcomes = [have(st.sampled_from(get_args(Outcome))) for _ in names]
    dates = [DAY + timedelta(days=at) if have(st.booleans()) else None for at in range(len(names))]
    probes = tuple(
        Probe(at=name, date=date, outcome=outcome, runs=2)
        for name, date, outcome in zip(names, dates, outcomes, strict=True)
    )
    told = {"subject": NAMES, "first_in": NAMES, "after": NAMES}
    at = st.sampled_from(names) if names else NAMES
    point = st.none() | st.builds(Point, at=at, **told) | st.builds(Point, at=NAMES)
    among = st.just(()) | st.just(tuple(names[:3]))
    return Bisection(
        package=have(NAMES),
        over=have(st.sampled_from(["releases", "commits"])),
        bad=names[0] if names else "1",
        first_bad=have(point),
        last_good=have(point),
        last_bad=have(point),
        first_fixed=have(point),
        introduced_among=have(among),
        fixed_among=have(among),
        probes=probes,
        regular=have(st.booleans()),
        stopped=have(st.sampled_from(["", "the time limit was reached"])),
        ends=have(st.just("") | NAMES),
    )


def drawn(picture: Markup) -> tuple[ElementTree.Element, tuple[float, ...]]:
    """A picture as a parser of XML has it, and its frame; an id is there once, and the picture
    is announced by it.
    """
    root = ElementTree.fromstring(picture)
    title, desc = root.get("aria-labelledby", "").split()
    assert [each.get("id") for each in root.iter() if each.get("id")] == [title, desc]
    assert all(each.text for each in root if each.tag in {"title", "desc"})
    return root, tuple(map(float, root.get("viewBox", "").split()))


def inside(root: ElementTree.Element, frame: tuple[float, ...]) -> None:
    """No mark and no text outside the frame; a text is as wide as its letters."""
    left, top, width, height = frame
    for each in root.iter():
        places = re.findall(r"translate\((\S+) (\S+)\)", each.get("transform", ""))
        places += [(each.get("x"), each.get("y"))] if each.tag in {"text", "rect"} else []
        for x, y in places:
            assert left <= float(x) <= left + width
            assert top <= float(y) <= top + height
        if each.tag == "text" and "under" in each.get("class", ""):
            half = len(each.text or "") * 7 / 2
            assert float(each.get("x", 0)) - half >= -1
            assert float(each.get("x", 0)) + half <= width + 1


@given(bisections())
def test_any_bisection_can_be_shown(found: Bisection) -> None:
    picture = svg.bisection(found)
    if len(found.probes) < 2:
        assert picture == ""
        return
    root, frame = drawn(picture)
    inside(root, frame)
    marks = [each for each in root.iter("g") if each.get("class")]
    assert len(marks) == len(found.probes)
    assert [each.get("class") for each in marks] == [
        svg.AS[probe.outcome].value for probe in found.probes
    ]


@given(bisections(), st.integers(10, 90), st.booleans())
def test_any_bisection_fits_a_line_or_is_left_out(
    found: Bisection, width: int, ascii_only: bool
) -> None:
    pieces = strip(found, width, ascii_only=ascii_only)
    assert sum(len(text) for text, _ in pieces) <= width
    marks = "".join(text for text, outcome in pieces if outcome)
    if ascii_only:
        assert marks.isascii()
    if pieces and ".." not in marks:
        assert len(marks) == len(found.probes)


@given(bisections())
@pytest.mark.slow  # a hundred random bisections
def test_any_bisection_leaves_a_comment_inert(found: Bisection) -> None:
    checked(comment(REPORTS["reproduced-with-proof"].model_copy(update={"bisection": found})))


def test_outcomes_differ_in_shape_and_not_in_colour_alone() -> None:
    shapes = {MARKS[match] for match in svg.AS.values()}
    assert len(shapes) == len(svg.AS) == len(get_args(Outcome)) == len(OUTCOMES)


def test_both_sides_of_a_boundary_are_named_and_it_is_said_in_words() -> None:
    found = REPORTS["reproduced-with-proof"].bisection
    assert found is not None
    root, _ = drawn(svg.bisection(found))
    texts = [each.text for each in root.iter("text")]
    assert {
        "0.2.3",
        "0.2.4",
        "0.3.1",
        "0.3.3",
        "introduced in 0.2.4",
        "fixed in this range",
    } <= set(texts)
    said = root.findtext("desc") or ""
    assert said.startswith("introduced in 0.2.4 (2023-12-09), fixed between 0.3.1")
    assert "0.3.2 could not be tested" in said
    assert [
        len([each for each in root if each.get("class") == kind]) for kind in ("cut", "band")
    ] == [1, 1]


@given(
    st.integers(1, 500),
    st.lists(st.integers(0, 500), max_size=20),
    st.integers(0, 900),
    st.floats(),
)
def test_any_descent_stays_within_its_frame(
    before: int, lines: list[int], tests: int, seconds: float
) -> None:
    script = Script(files={"repro.py": "pass\n"})
    steps = tuple(
        Step(what="x", lines=min(each, before), tests=at * 7, seconds=1.0)
        for at, each in enumerate(sorted(lines, reverse=True))
    )
    reduced = Reduced(
        before=script, script=script, tests=tests, runs=tests, seconds=seconds,
        lines_before=before, lines_after=steps[-1].lines if steps else before, history=steps,
    )  # fmt: skip
    picture = svg.descent(reduced)
    assert (picture == "") == (reduced.lines_after == before)
    if picture:
        root, frame = drawn(picture)
        inside(root, frame)
        path = next(each.get("d", "") for each in root if each.get("class") == "fall")
        across = [float(each) for each in re.findall(r"[MH]([\d.]+)", path)]
        down = [float(each) for each in re.findall(r"V([\d.]+)", path)]
        assert across == sorted(across)
        assert down == sorted(down)
        assert 0 <= across[-1] <= frame[2]
        assert 0 <= down[-1] <= frame[3]


def attempt(seed: int, match: Match) -> Attempt:
    return Attempt(
        number=seed, purpose="control", script="s", origin="", environment="e",
        execution=Execution(exit_code=1, seconds=1.0, seed=seed), judgement=Judgement(match=match, reason=""),
    )  # fmt: skip


def drawn_pairs(failing: list[Attempt], control: list[Attempt], what: str = "") -> Markup:
    return svg.pairs(PairedRunsPlot(tuple(failing), tuple(control), what))


@pytest.mark.parametrize("count", [1, 5, 20, 60])
def test_pairs_stand_one_above_the_other(count: int) -> None:
    failing = [attempt(seed, Match.MATCHED) for seed in range(1, count + 1)]
    control = [
        attempt(seed, Match.PASSED if seed % 5 else Match.MATCHED) for seed in range(1, count + 1)
    ]
    root, frame = drawn(drawn_pairs(failing, control, "x-lib 1.42.20 of a very long name"))
    inside(root, frame)
    assert frame[2] <= WIDTH + 200
    places = [
        re.match(r"translate\((\S+) (\S+)\)", each.get("transform", "")) for each in root.iter("g")
    ]
    across = [found[1] for found in places if found is not None]
    assert across[:count] == across[count:]
    assert f"{count} of {count} runs failed as reported" in (root.findtext("desc") or "")
    assert f"{count // 5} of {count} failed with" in (root.findtext("desc") or "")


def test_runs_without_a_partner_are_not_drawn() -> None:
    one, other = attempt(1, Match.MATCHED), attempt(2, Match.PASSED)
    assert drawn_pairs([one], [other]) == drawn_pairs([], []) == drawn_pairs([one], []) == ""
