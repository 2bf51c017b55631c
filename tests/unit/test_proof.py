"""The lines that turn "it failed" into proof, word by word."""

from datetime import UTC, datetime

import pytest

from bot.models.bisect import Bisection, Point, Probe, Skipped
from bot.models.verdict import Control, Effect, Reproduced
from bot.render import proof


def at(version, day=None):
    return Point(at=version, date=datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None)


def probe(version, outcome, **more):
    return Probe(at=version, date=datetime(2024, 5, 2, tzinfo=UTC), outcome=outcome, **more)


def verdict(**control):
    numbers = {"runs": 2, "failures": 2, "interval": (0.158, 1.0), "reason": "it occurred", "determinism": "deterministic"}
    return Reproduced(**numbers, control=Control(**control))


FIXED = {"type": "fixed-version", "what": "x-lib 1.42.20", "runs": 5, "failures": 0, "p": 1 / 252}


@pytest.mark.parametrize(
    ("control", "line"),
    [
        ({}, ""),
        (FIXED, "2 of 2 failed; control (x-lib 1.42.20, fixed-version) 0 of 5, p = .004"),
        (
            {**FIXED, "paired_runs": 5, "paired_failures": 5},
            "5 of 5 failed; control (x-lib 1.42.20, fixed-version) 0 of 5, p = .004",
        ),
        ({"type": "patched", "runs": 20, "p": 0.1154}, "2 of 2 failed; control (patched) 0 of 20, p = .115"),
    ],
)
def test_the_control(control, line):
    assert proof.control_line(verdict(**control)) == line


@pytest.mark.parametrize(
    ("p", "words"), [(1.0, "= 1"), (0.9999, "= 1"), (0.5, "= .500"), (0.0001, "< .001"), (0.001, "= .001")]
)
def test_chances_as_papers_print_them(p, words):
    assert proof.chance(p) == words


def test_the_effect():
    effect = Effect(difference=1.0, interval=(0.4345, 1.0), delta=-1.0)
    words = "failure rates 100 points apart (95 % interval 43 to 100); Cliff's delta of the observed values -1.00"
    assert proof.effect_line(Control(effect=effect)) == words
    assert proof.effect_line(Control()) == ""


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"first_bad": at("1.42.17", "2024-05-02"), "first_fixed": at("1.42.20", "2024-06-11")},
            "introduced in 1.42.17 (2024-05-02), fixed in 1.42.20 (2024-06-11)",
        ),
        ({"first_bad": at("1.2"), "newest": "fails", "probes": (probe("1.4", "fails"),)},
         "introduced in 1.2, still in 1.4 (2024-05-02), the newest release"),
        (
            {"oldest": "fails", "probes": (probe("0.1", "fails"), probe("0.9", "passes")), "first_fixed": at("0.9")},
            "already in 0.1 (2024-05-02), the oldest release, fixed in 0.9",
        ),
        (
            {"first_bad": at("1.5"), "last_good": at("1.2", "2024-01-15"), "introduced_among": ("1.3", "1.4", "1.5")},
            "introduced after 1.2 (2024-01-15), by 1.5 at the latest",
        ),
        (
            {"probes": (probe("1.0", "untestable"), probe("1.3", "fails"))},
            "as far back as 1.3 (2024-05-02); older releases could not be tested",
        ),
        ({"over": "commits", "first_bad": at("0123456789abcdef0123456789abcdef01234567", "2024-05-02")},
         "introduced in 0123456789ab (2024-05-02)"),
        (
            {"probes": (probe("1.3", "fails"), probe("1.42.18", "fails")), "stopped": "the time for it was up"},
            "already in 1.3 (2024-05-02)",
        ),
        ({}, ""),
    ],
)  # fmt: skip
def test_where_it_came_and_went(fields, line):
    assert proof.bisection_line(Bisection(package="x-lib", bad="1.42.18", **fields)) == line


def test_what_a_reader_of_it_has_to_know():
    found = Bisection(
        package="x-lib",
        bad="1.4",
        skipped=tuple(Skipped(at=f"1.{number}", why="no wheel of it") for number in range(6)),
        probes=(probe("1.1", "fails", moved=("numpy 2.0 → 1.26",)),),
        regular=False,
        risk=0.0125,
        rate=0.9,
        stopped="the time for it was up",
        notes=("left out, withdrawn: 1.9",),
    )
    assert proof.bisection_notes(found) == (
        "1.0 could not be tested: no wheel of it",
        "1.1 could not be tested: no wheel of it",
        "1.2 could not be tested: no wheel of it",
        "1.3 could not be tested: no wheel of it",
        "2 more could not be tested",
        "the runs do not fit one introduction and one fix: it came and went more than once",
        "other packages had to move along at 1.1",
        "the chance of a wrong step is at most 1.2 % for a failure rate of 90 %",
        "it ended early: the time for it was up",
        "left out, withdrawn: 1.9",
    )
