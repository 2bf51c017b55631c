"""The lines that turn "it failed" into proof, word by word."""

from datetime import UTC, datetime

import pytest

from bot.issues import phrases, program_phrases
from bot.kernel import document
from bot.kernel.attempt import Reduced, Script
from bot.kernel.bug import Bisection, Commit, Point, Probe, Skipped
from bot.kernel.document import first_items
from bot.kernel.environment import EnvironmentSpec, PinSource, RepoSource, Requirement
from bot.kernel.report import Control, Effect, Reproduced
from bot.report.svg import strip

OLD = "0123456789abcdef0123456789abcdef01234567"


def at(version, day=None):
    return Point(at=version, date=datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None)


def probe(version, outcome, **more):
    return Probe(at=version, date=datetime(2024, 5, 2, tzinfo=UTC), outcome=outcome, **more)


def verdict(**control):
    numbers = {
        "runs": 2,
        "failures": 2,
        "interval": (0.158, 1.0),
        "reason": "it occurred",
        "determinism": "deterministic",
    }
    return Reproduced(**numbers, control=Control(**control))


FIXED = {"type": "fixed-version", "what": "x-lib 1.42.20", "runs": 5, "failures": 0, "p": 1 / 252}


@pytest.mark.parametrize(
    ("control", "line"),
    [
        ({}, ""),
        (FIXED, "2 of 2 runs failed, but 0 of 5 failed with x-lib 1.42.20 (p = 0.004)"),
        (
            {**FIXED, "paired_runs": 5, "paired_failures": 5},
            "5 of 5 runs failed, but 0 of 5 failed with x-lib 1.42.20 (p = 0.004)",
        ),
        (
            {"type": "patched", "runs": 20, "p": 0.1154},
            "2 of 2 runs failed and 0 of 20 failed in the control (p = 0.115)",
        ),
    ],
)
def test_the_control(control, line):
    assert phrases.control_line(verdict(**control)) == line


@pytest.mark.parametrize(
    ("p", "words"),
    [(1.0, "= 1"), (0.9999, "= 1"), (0.5, "= 0.500"), (0.0001, "< 0.001"), (0.001, "= 0.001")],
)
def test_chances_as_papers_print_them(p, words):
    assert phrases.chance(p) == words


def test_the_effect():
    effect = Effect(difference=1.0, interval=(0.4345, 1.0), delta=-1.0)
    words = "the failure rates differ by 100 percentage points (95 % confidence interval 43 to 100); effect size (Cliff's delta) -1.00"
    assert phrases.effect_line(Control(effect=effect)) == words
    assert phrases.effect_line(Control()) == ""


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"first_bad": at("1.42.17", "2024-05-02"), "first_fixed": at("1.42.20", "2024-06-11")},
            "introduced in 1.42.17 (2024-05-02), fixed in 1.42.20 (2024-06-11)",
        ),
        ({"first_bad": at("1.2"), "newest": "fails", "probes": (probe("1.4", "fails"),)},
         "introduced in 1.2; still fails in 1.4 (2024-05-02), the newest release"),
        (
            {"oldest": "fails", "probes": (probe("0.1", "fails"), probe("0.9", "passes")), "first_fixed": at("0.9")},
            "already fails in 0.1 (2024-05-02), the oldest release; fixed in 0.9",
        ),
        (
            {"first_bad": at("1.5"), "last_good": at("1.2", "2024-01-15"), "introduced_among": ("1.3", "1.4", "1.5")},
            "introduced between 1.2 (2024-01-15) and 1.5",
        ),
        (
            {"probes": (probe("1.0", "untestable"), probe("1.3", "fails"))},
            "fails as far back as 1.3 (2024-05-02), the oldest release that could be tested",
        ),
        ({"over": "commits", "first_bad": at("0123456789abcdef0123456789abcdef01234567", "2024-05-02")},
         "introduced in 0123456789ab (2024-05-02)"),
        (
            {"probes": (probe("1.3", "fails"), probe("1.42.18", "fails")), "stopped": "the time limit was reached"},
            "already fails in 1.3 (2024-05-02)",
        ),
        ({}, ""),
    ],
)  # fmt: skip
def test_where_it_came_and_went(fields, line):
    assert phrases.bisection_line(Bisection(package="x-lib", bad="1.42.18", **fields)) == line


def test_what_a_reader_of_it_has_to_know():
    found = Bisection(
        package="x-lib",
        bad="1.4",
        skipped=tuple(Skipped(at=f"1.{number}", why="no wheel of it") for number in range(6)),
        probes=(probe("1.1", "fails", moved=("numpy 2.0 → 1.26",)), probe("1.5", "untestable")),
        regular=False,
        risk=0.0125,
        rate=0.9,
        stopped="the time limit was reached",
        notes=("omitted (yanked): 1.9",),
    )
    assert phrases.where_line(found) == (
        "x-lib: already fails in 1.1 (2024-05-02); the failure appeared and disappeared more than once; the bisection ended early: the time limit was reached"
    )
    assert phrases.skipped(found, 2) == (
        "1.0 could not be tested: no wheel of it",
        "1.1 could not be tested: no wheel of it",
        "4 more could not be tested",
    )
    assert phrases.left_out(found, 2) == ("1.0: no wheel of it", "1.2: no wheel of it", "2 more")
    assert phrases.remark(found.probes[0]) == "also changed: numpy 2.0 → 1.26"
    assert phrases.sureness(found) == (
        "other packages also changed at 1.1",
        "the chance that the bisection is wrong is at most 1.2 %, if the program fails in at least 90 % of runs",
        "omitted (yanked): 1.9",
    )


def test_nothing_is_said_of_a_bisection_that_found_nothing():
    assert (
        phrases.where_line(None) == phrases.where_line(Bisection(package="x-lib", bad="1.4")) == ""
    )


def test_a_clone_is_named_without_the_way_to_it():
    found = Bisection(package="/srv/clones/x-lib.git", over="commits", bad=OLD, first_bad=at(OLD))
    assert phrases.where_line(found) == "x-lib: introduced in 0123456789ab"


def test_the_commits_between():
    one = Commit(id=OLD, subject="Faster pooling", date=datetime(2024, 5, 2, tzinfo=UTC))
    found = Bisection(
        package="x", bad="2", last_good=at("1"), first_bad=at("2"), introduced_by=(one,) * 3
    )
    ((title, commits),) = phrases.between(found)
    assert title == "Commits from 1 to 2"
    line = "`0123456789ab` 2024-05-02 Faster pooling"
    assert commits == (line,) * 3
    assert first_items(commits, 1) == (line, "2 more")


def test_how_a_control_was_had():
    wants = (
        Requirement(name="x-lib", specifier="==1.42.20", rung=PinSource.ISSUE, reason=""),
        Requirement(name="torch", rung=PinSource.DATE, reason=""),
    )
    spec = EnvironmentSpec(python="3.11", requirements=wants)
    control = Control(**FIXED, moved=("numpy 2.0 → 1.26",))
    assert phrases.control_notes(control, spec) == (
        "also changed in the control environment: numpy 2.0 → 1.26",
        "the control ran on Python 3.11 with x-lib==1.42.20",
    )
    another = control.model_copy(update={"python": "3.12.4", "moved": ()})
    assert phrases.control_notes(another, spec) == (
        "the control ran on Python 3.12.4 with x-lib==1.42.20",
    ), "not the one asked for"
    assert phrases.control_notes(Control(), spec) == ()
    at_commit = spec.model_copy(
        update={"repo": RepoSource(url="", path="/clones/x-lib", commit=OLD)}
    )
    dep = Requirement(name="numpy", specifier="==2.0", rung=PinSource.ISSUE, reason="")
    beside = at_commit.model_copy(update={"requirements": (*wants, dep)})
    there = control.model_copy(update={"what": f"x-lib at {OLD[:12]}", "moved": ()})
    assert phrases.control_notes(there, beside) == (
        "the control ran on Python 3.11 with numpy==2.0",
    ), "the release was not there"


def test_how_much_smaller_a_program_is():
    script = Script(files={"repro.py": "pass\n"})
    reduced = Reduced(
        before=script, script=script, tests=9, runs=12, seconds=1.0, lines_before=214, lines_after=9
    )
    assert program_phrases.reduced_line(reduced) == "214 → 9 lines"
    same = reduced.model_copy(update={"lines_after": 214})
    assert program_phrases.reduced_line(same) == program_phrases.reduced_line(None) == ""
    assert reduced.is_smaller
    assert not same.is_smaller


GONE = Bisection(
    package="x",
    bad="1.2",
    probes=(
        probe("1.0", "passes"),
        probe("1.1", "untestable"),
        probe("1.2", "fails"),
        probe("1.3", "fails"),
        probe("1.4", "passes"),
    ),
    last_good=at("1.0"),
    first_bad=at("1.2"),
    introduced_among=("1.1", "1.2"),
    last_bad=at("1.3"),
    first_fixed=at("1.4"),
)


def drawn(found, **how):
    return "".join(text for text, _ in strip(found, **how))


def test_a_bisection_as_a_row_of_marks():
    assert drawn(GONE) == "1.0 ✓┊?┊✗✗│✓ 1.4"
    assert drawn(GONE, ascii_only=True) == "1.0 o:?:xx|o 1.4"
    assert [outcome for _, outcome in strip(GONE)][1] == "passes"
    assert drawn(GONE, width=8) == ""
    assert drawn(GONE.model_copy(update={"probes": GONE.probes[:1]})) == ""


def test_a_long_row_of_marks_is_cut_before_it_is_left_out():
    probes = tuple(probe(f"1.{number}", "fails") for number in range(90))
    assert drawn(Bisection(package="x", bad="1.0", probes=probes)) == "1.0 ✗✗..✗✗ 1.89"


@pytest.mark.parametrize(
    "address",
    [
        "https://x.example/changes.html#v1-2", "http://docs.x.example:8080/a/b/", "https://github.com/a/b/blob/main/CHANGELOG.md",
        "https://github.com/a/b/releases",
    ],
)  # fmt: skip
def test_a_plain_address_is_linked(address):
    assert document.outside("changelog", address) == f"[changelog]({address})"


@pytest.mark.parametrize(
    "address",
    [
        "", "javascript:alert(1)", "data:text/html,x", "ftp://x.example/a", "https://x.example/a) [b](https://y.example",
        "https://x.example/a b", "https://x.example/\n", "https://user:pw@x.example/", "https://@octocat", "//x.example",
        "https://x.example/?next=javascript:1", "https://x.example/<b>", 'https://x.example/"onclick="x', "https://localhost/",
        "https://github.com/a/b/issues/1", "https://github.com/a/b/pull/2/files", "https://github.com/a/b/commit/0123456",
        "https://x.example/" + "a" * 400, "https://x.example/`", "https://x.exa\u200bmple/",
    ],
)  # fmt: skip
def test_an_address_that_could_act_is_none(address):
    assert document.outside("changelog", address) == document.elsewhere(address) == ""


def test_a_line_counts_when_there_is_something_on_it():
    one = Script(files={"repro.py": "import x\n\n\nx.y()\n   \n"})
    assert (program_phrases.lines(one), program_phrases.length(one)) == (2, "2 lines")
    two = Script(files={"repro.py": "import a\n", "a.py": "\nA = 1\nB = 2\n"})
    assert program_phrases.length(two) == "3 lines in 2 files"
    assert program_phrases.length(Script(files={"repro.py": "x\n"})) == "1 line"
