"""Bisection over releases and commits, on fakes: what a program does at each version is known,
and so is the answer.
"""

import itertools
import random
from datetime import timedelta

import pytest
from hypothesis import given, settings, strategies as st

from bot.issues import phrases
from bot.issues.proof import control as proof_control, outcome
from bot.issues.proof.control import Unavailable, control
from bot.kernel.attempt import Match
from bot.kernel.bug import Provided
from bot.kernel.environment import Environment, Package, PinSource, Requirement
from bot.kernel.errors import BuildError, IndexUnreachable, Stopped, TransientError, UserError
from bot.kernel.statistics import SequentialTest
from sandbox.port import SandboxError
from tests.support.fakes import FakeCommits
from tests.unit.versioned import (
    BODY,
    DAY,
    DECOY,
    FAILS,
    OK,
    OTHER,
    World,
    broken,
    built,
    history,
    number,
    raised,
    released,
)

BESIDE = raised("AttributeError", "module 'dep' has no attribute 'float'")


def name(point):
    return point.at if point is not None else None


def test_both_boundaries_with_their_days_and_the_changelog():
    world = World(broken(17, 19), released(40), bad="1.18")
    found = world.releases()
    assert (found.last_good.at, found.first_bad.at, found.last_bad.at, found.first_fixed.at) == (
        "1.16",
        "1.17",
        "1.19",
        "1.20",
    )
    assert found.first_fixed.date == DAY + timedelta(days=140)
    assert (
        found.introduced_among,
        found.fixed_among,
        found.skipped,
        found.stopped,
        found.regular,
    ) == ((), (), (), "", True)
    assert found.changelog == "https://lib.example/changes"
    assert 0 < found.risk <= 0.05
    assert len(found.probes) < 14
    assert {each.purpose for each in world.runner.attempts} == {"bisect"}
    heard = [each.text for each in world.runner.ports.listener.heard if each.stage == "bisect"]
    assert "bisect: 1.19 fails (2 of 2 runs failed)" in heard


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_wherever_it_came_and_went_and_whatever_cannot_be_tested(data):
    size = data.draw(st.integers(2, 30))
    first = data.draw(st.integers(0, size - 1))
    last = data.draw(st.integers(first, size - 1))
    bad = data.draw(st.integers(first, last))
    skips = data.draw(st.sets(st.integers(0, size - 1), max_size=3)) - {bad, 0, size - 1}
    found = World(
        broken(first, last, dict.fromkeys(skips, OTHER)), released(size), bad=f"1.{bad}"
    ).releases()
    assert found.regular
    if first and found.last_good is not None:
        good, worse = number(found.last_good.at), number(found.first_bad.at)
        assert good < first <= worse
        assert set(range(good + 1, worse)) <= skips
        assert bool(found.introduced_among) == (worse - good > 1)
    else:
        assert not first or skips, "only what cannot be tested hides the boundary"
    assert (found.first_fixed is None) == (last == size - 1)
    if found.first_fixed is not None:
        assert set(range(number(found.last_bad.at) + 1, number(found.first_fixed.at))) <= skips
        assert number(found.last_bad.at) <= last < number(found.first_fixed.at)
    assert {each.at for each in found.skipped} <= {f"1.{at}" for at in skips}


def test_a_release_that_breaks_for_another_reason_makes_it_a_range():
    found = World(broken(5, 30, {4: OTHER, 3: DECOY}), released(20), bad="1.9").releases()
    assert (found.last_good.at, found.first_bad.at) == ("1.2", "1.5")
    assert found.introduced_among == ("1.3", "1.4", "1.5")
    assert {each.at for each in found.skipped} == {"1.3", "1.4"}
    assert "has no attribute" in next(each.why for each in found.skipped if each.at == "1.4")
    assert found.newest == "fails"
    assert found.first_fixed is None


def test_what_cannot_be_installed_is_skipped_and_said():
    def build(spec):
        if spec.requirements[0].specifier == "==1.4":
            raise BuildError("no wheel of it")
        return built(spec)

    found = World(broken(5, 30), released(20), bad="1.9", build=build).releases()
    assert [(each.at, each.why) for each in found.skipped] == [("1.4", "no wheel of it")]
    assert found.introduced_among == ("1.4", "1.5")


def test_releases_that_would_have_to_be_compiled_are_said_and_not_built():
    rows = (
        each.model_copy(update={"wheels": "none" if number(each.version) < 4 else "linux"})
        for each in released(20)
    )
    world = World(broken(0, 30), tuple(rows), bad="1.9")
    found = world.releases()
    assert "omitted (no wheel for Linux): 1.0, 1.1, 1.2, 1.3" in found.notes
    assert {each.at for each in found.probes} & {f"1.{at}" for at in range(4)} == set()
    assert not {spec.requirements[0].specifier for spec in world.builder.built} & {
        f"==1.{at}" for at in range(4)
    }
    assert phrases.bisection_line(found).startswith(
        "already fails in 1.4 (2024-01-29), the oldest release searched; "
    )


def test_another_release_in_its_place_is_not_taken_for_it():
    def build(spec):
        given = built(spec)
        wanted = spec.requirements[0].specifier
        return (
            given
            if wanted != "==1.4"
            else built(spec.model_copy(update={"requirements": (requirement("1.5"),)}))
        )

    def requirement(version):
        return Requirement(
            name="lib", specifier=f"=={version}", rung=PinSource.NEIGHBOUR, reason=""
        )

    found = World(broken(5, 30), released(20), bad="1.9", build=build).releases()
    assert [(each.at, each.why) for each in found.skipped] == [
        ("1.4", "1.5 would be installed instead")
    ]


@pytest.mark.parametrize(("module", "ways"), [("lib.core", 1), ("dep", 2)])
def test_a_release_that_lacks_what_the_program_uses_is_not_built_in_another_way(module, ways):
    other = raised("AttributeError", f"module '{module}' has no attribute 'fit'")
    world = World(broken(2, 30, {2: other, 3: other}), released(20), bad="1.9")
    found = world.releases()
    assert {each.at for each in found.skipped} == {"1.2", "1.3"}
    tried = {
        spec.model_dump_json()
        for spec in world.builder.built
        if spec.requirements[0].specifier == "==1.3"
    }
    assert len(tried) == ways


def test_where_only_the_failing_release_can_be_had_it_is_left_at_that():
    def build(spec):
        only = Requirement(name="lib", specifier="==1.9", rung=PinSource.NEIGHBOUR, reason="")
        return built(spec.model_copy(update={"requirements": (only,)}))

    world = World(broken(5, 30), released(400), bad="1.9", build=build)
    found = world.releases()
    assert (found.first_bad, found.first_fixed) == (None, None)
    assert found.stopped == "no version of lib except 1.9 is available"
    assert [each.outcome for each in found.probes].count("uninstallable") == 3
    assert len(world.builder.built) < 12, "with two ways for each, and two ahead"


def test_a_build_of_torch_that_is_not_to_be_had_is_not_looked_for_twice():
    def build(spec):
        return Environment(
            id="e",
            python="3.11",
            interpreter="p",
            packages=(Package(name="torch", version="2.13.0", rung=PinSource.DATE),),
        )

    world = World(broken(5, 30), released(20), bad="1.9", build=build)
    world.builder.built.clear()
    wanted = Requirement(name="torch", specifier="==2.5.0", rung=PinSource.OPTION, reason="")
    ways = tuple(
        world.spec.model_copy(update={"requirements": (wanted,), "python": each})
        for each in ("3.11", "3.12")
    )
    assert proof_control.build(world.runner, ways, "torch", "2.5.0") == Unavailable(
        "2.13.0 would be installed instead", "2.13.0"
    )
    assert len(world.builder.built) == 1


def test_the_reason_of_a_skip_does_not_tell_where_things_are_installed():
    other = raised(
        "ImportError",
        "cannot import name 'Schema' from 'dep' (/cache/envs/6138/lib/python3.11/site-packages/dep/main.py)",
    )
    found = World(broken(5, 30, {4: other}), released(20), bad="1.9").releases()
    assert [each.why for each in found.skipped] == [
        "ImportError: cannot import name 'Schema' from 'dep' (dep/main.py)"
    ]


def test_the_rest_stays_where_it_resolves_else_moves_with_the_day_and_is_said():
    def build(spec):
        lib = spec.requirements[0].specifier.removeprefix("==")
        old = any(each.name == "dep" and each.specifier == "==2.0" for each in spec.constraints)
        if number(lib) < 5 and old:
            raise BuildError("dep 2.0 does not go with it")
        dep = "2.0" if number(lib) >= 5 else "1.0"
        given = built(spec.model_copy(update={"constraints": ()}))
        return given.model_copy(
            update={
                "packages": (
                    *given.packages,
                    Package(name="dep", version=dep, rung=PinSource.DEPENDENCY),
                )
            }
        )

    world = World(broken(3, 30), released(8), bad="1.7", build=build)
    found = world.releases()
    assert found.first_bad.at == "1.3"
    assert {each.at: each.moved for each in found.probes if each.moved} == {
        each.at: ("dep 2.0 → 1.0",) for each in found.probes if number(each.at) < 5
    }
    free = [
        spec
        for spec in world.builder.built
        if not spec.constraints and number(spec.requirements[0].specifier[2:]) < 5
    ]
    assert all(spec.exclude_newer < DAY + timedelta(days=7 * 5 + 7) for spec in free)


def test_what_the_report_has_beside_the_package_is_no_claim_on_another_day():
    """Else the resolver's ladder builds the claimed package of that day from source, which takes
    minutes and mostly fails.
    """
    world = World(broken(3, 30), released(8), bad="1.7")
    beside = Requirement(name="numpy", specifier="==2.1", rung=PinSource.ISSUE, reason="the report")
    asked = Requirement(name="scipy", specifier="==1.14", rung=PinSource.OPTION, reason="--with")
    spec = world.spec.model_copy(update={"requirements": (*world.spec.requirements, beside, asked)})
    _, free = proof_control.at_release(spec, world.built, "lib", world.builder.history("lib")[0])
    assert [(each.name, each.specifier, each.rung) for each in free.requirements[1:]] == [
        ("numpy", "", PinSource.DEPENDENCY),
        ("scipy", "==1.14", PinSource.OPTION),
    ]


def test_a_history_that_goes_back_and_forth_is_said_to():
    found = World(
        lambda at: FAILS if number(at) in {0, 1, 10, 11} else OK, released(20), bad="1.11"
    ).releases()
    assert (found.first_bad.at, found.regular) == ("1.10", True), (
        "an older run of failures that no probe met is not known of"
    )
    body = BODY + "\nIt works in lib 1.8. It works in lib 1.5.\n"
    found = World(
        lambda at: FAILS if number(at) in {5, 10, 11} else OK, released(20), bad="1.11", body=body
    ).releases()
    assert (found.first_bad.at, found.regular) == ("1.10", False)


@pytest.mark.parametrize("good", [True, False])
def test_what_the_report_says_of_a_version_is_held_against_the_probe(good):
    body = BODY + "\nIt works in lib 1.5.\n"
    world = World(broken(7 if good else 3, 30), released(20), bad="1.11", body=body)
    assert [each.version for each in world.runner.bug.works_in] == ["1.5"]
    found = world.releases()
    claim = next(
        each for each in outcome.claims(world.runner.bug, found) if each.text == "lib 1.5 works"
    )
    assert claim.holds is good
    assert claim.evidence.startswith("0 of" if good else "2 of")


def test_a_version_said_to_fail_that_passes_is_told():
    world = World(broken(7, 30), released(20), bad="1.11", body=BODY + "\nlib version: 1.6\n")
    found = world.releases()
    rows = {each.text: each.holds for each in outcome.claims(world.runner.bug, found)}
    assert rows == {"lib 1.6 fails": False}


@pytest.mark.parametrize("way", ["introduced", pytest.param("fixed", marks=pytest.mark.nightly)])
@pytest.mark.slow  # thousands of runs
def test_a_failure_of_three_in_ten_ends_right_in_nine_of_ten(way):
    right = 0
    for repetition in range(10):
        chance = random.Random(repetition)

        def program(at, chance=chance):
            there = number(at) >= 13 if way == "introduced" else number(at) <= 13
            return FAILS if there and chance.random() < 0.3 else OK

        world = World(
            program,
            released(40),
            bad="1.30" if way == "introduced" else "1.5",
            seed=1000 * repetition,
        )
        confirmed_by_chance(world)
        found = world.releases()
        point = found.first_bad if way == "introduced" else found.first_fixed
        right += name(point) == ("1.13" if way == "introduced" else "1.14")
    assert right >= 9


def confirmed_by_chance(world):
    """The confirming runs that lead to a bisection: the sequential test has decided."""
    runs = failures = 0
    while SequentialTest().decide(failures, runs) != "fails":
        runs += 1
        judged = world.runner.run(
            world.script, world.built, world.runner.job.limits.seed + runs, "confirm"
        )
        failures += judged.match is Match.MATCHED


def test_a_failure_that_hangs_on_the_seed_is_looked_for_under_seeds_that_fail():
    world = World(lambda at: OK, released(20), bad="1.11")
    world.sandbox.program = lambda spec: (
        FAILS if number(spec.env["LIB"]) >= 7 and int(spec.env["REPRISE_SEED"]) % 4 == 0 else OK
    )
    for seed in range(1, 13):
        world.runner.run(world.script, world.built, seed, "confirm")
    assert world.releases().first_bad.at == "1.7"


def test_being_stopped_leaves_a_range():
    world = World(lambda at: OK, released(64), bad="1.63")
    runs = []

    def program(spec):
        runs.append(spec)
        if len(runs) == 25:
            world.cancel.set()
        return FAILS if number(spec.env["LIB"]) >= 21 else OK

    world.sandbox.program = program
    found = world.releases()
    assert found.stopped == "stopped on request"
    assert number(found.last_good.at) < 21 <= number(found.first_bad.at)
    assert len(found.introduced_among) > 1


def test_the_time_is_kept():
    found = World(broken(21, 63), released(64), bad="1.63", step=1.0).releases(seconds=40)
    assert found.stopped == "the time limit was reached"


def test_what_a_killed_process_had_kept_is_not_run_again():
    whole = World(broken(17, 19), released(40), bad="1.18")
    found = whole.releases()
    kept = tuple(whole.runner.attempts[:9])
    again = World(broken(17, 19), released(40), bad="1.18", earlier=kept)
    assert again.releases() == found
    assert len(again.sandbox.specs) == len(whole.sandbox.specs) - 9


def test_a_package_that_is_not_there_cannot_be_bisected():
    world = World(broken(17, 19), released(40), bad="1.18")
    with pytest.raises(UserError, match="numpy is not installed"):
        world.releases("numpy")


def at_commit(first, last=99):
    return lambda at: FAILS if first <= int(at, 16) <= last else OK


def test_commits_are_bisected_between_two_ends():
    world = World(at_commit(23), commits=FakeCommits(history(50)))
    found = world.commits(f"{3:040x}", f"{48:040x}")
    assert (found.over, found.first_bad.subject, found.last_good.subject) == (
        "commits",
        "change 23",
        "change 22",
    )
    assert found.first_bad.date == DAY + timedelta(days=23)
    assert len(found.probes) <= 9


def test_a_commit_that_fails_now_and_then_is_not_taken_for_one_that_works():
    rows, turns = history(30), itertools.count(1)
    fails = lambda at: ("." in at or int(at, 16) >= 9) and next(turns) % 4 == 0  # noqa: E731
    world = World(lambda at: FAILS if fails(at) else OK, commits=FakeCommits(rows))
    for seed in range(1, 13):
        world.runner.run(world.script, world.built, seed, "confirm")
    found = world.commits(rows[2].id, rows[29].id)
    assert (found.last_good.at, found.first_bad.at, found.stopped) == (rows[8].id, rows[9].id, "")
    assert found.rate < 0.3


def test_the_commit_of_a_fix_is_found_when_the_good_end_comes_later():
    world = World(at_commit(0, 31), commits=FakeCommits(history(50)))
    found = world.commits(f"{48:040x}", f"{3:040x}")
    assert (found.first_fixed.subject, found.last_bad.subject) == ("change 32", "change 31")
    assert found.first_bad is None


TAGS = {"v1": f"{3:040x}", "v2": f"{30:040x}", "v3": f"{48:040x}"}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (at_commit(60), "v3 (000000000000), given as bad, passes (0 of 19 failed)"),
        (at_commit(0), "v1 (000000000000), given as good, fails (2 of 2)"),
        (
            at_commit(0, 31),
            "did you mean --good v3 --bad v1? v1 (000000000000) fails (2 of 2) and v3 (000000000000) passes (0 of 19 failed)",
        ),
        (
            lambda at: OTHER,
            "v1 (000000000000), given as good, could not be tested (AttributeError: module 'lib' has no",
        ),
        (
            lambda at: OTHER if int(at, 16) > 40 else OK,
            "v3 (000000000000), given as bad, could not be tested (Attrib",
        ),
        (
            lambda at: OTHER if int(at, 16) < 48 else FAILS,
            "v1 (000000000000), given as good, could not be tested (Attrib",
        ),
    ],
)
def test_ends_that_are_not_as_said(program, said):
    """Nothing is called a boundary."""
    world = World(program, commits=FakeCommits(history(50), TAGS))
    found = world.commits("v1", "v3")
    assert found.ends.startswith(said)
    assert (found.bounded, found.introduced_among, found.stopped) == (False, (), "")
    assert phrases.bisection_line(found) == found.ends
    assert found.swapped == said.startswith("did you mean")


def test_two_names_of_one_commit_are_said_to_be_that():
    world = World(
        at_commit(23), commits=FakeCommits(history(50), {"v1": f"{3:040x}", "v1.0": f"{3:040x}"})
    )
    with pytest.raises(UserError, match=r"^v1 and v1\.0 are the same commit \(000000000000\)\.$"):
        world.commits("v1", "v1.0")


def test_an_end_that_cannot_be_tested_does_not_hide_the_boundary():
    world = World(
        lambda at: OTHER if int(at, 16) == 3 else at_commit(23)(at),
        commits=FakeCommits(history(50), TAGS),
    )
    found = world.commits("v1", "v3")
    assert (found.first_bad.subject, found.ends) == ("change 23", "")


@pytest.mark.parametrize(
    ("tags", "first_in", "after", "aside"),
    [
        (TAGS, "v2", "", "first in v2"),
        ({**TAGS, "v2": f"{20:040x}", "v3": f"{21:040x}"}, "", "v3", "after v3"),
        ({}, "", "", ""),
    ],
)
def test_the_commit_is_named_by_its_subject_and_its_tag(tags, first_in, after, aside):
    world = World(at_commit(23), commits=FakeCommits(history(50), tags))
    found = world.commits(f"{3:040x}", f"{48:040x}")
    assert (found.first_bad.first_in, found.first_bad.after) == (first_in, after)
    day = ", ".join(filter(None, ["2024-01-24", aside]))
    assert phrases.where_line(found) == f'lib: introduced in 000000000000 "change 23" ({day})'


@pytest.mark.parametrize(
    ("holds", "told"),
    [
        (
            Provided(name="other", on_path=("other", "docs")),
            "the clone provides other, which the failing program does not use",
        ),
        (Provided(on_path=("one", "two")), "the clone provides one, two, which"),
        (Provided(), "the clone provides no Python package, which"),
    ],
)
def test_a_clone_of_something_else_is_refused_before_anything_is_run(holds, told):
    world = World(at_commit(23), commits=FakeCommits(history(50), TAGS, holds))
    with pytest.raises(UserError, match=told) as refused:
        world.commits("v1", "v3")
    assert refused.value.fix == "Pass a clone of a package that it imports: lib."
    assert world.sandbox.specs == []


@pytest.mark.parametrize(
    ("holds", "name"),
    [
        (Provided(name="lib-nightly", on_path=("lib",)), "lib-nightly"),
        (Provided(built=("lib",)), "lib"),
        (Provided(name="dep"), "dep"),
    ],
)
def test_what_is_bisected_is_named_by_its_distribution(holds, name):
    """By the module that the program imports, or by what is installed beside it; never by where
    the clone lies.
    """
    world = World(at_commit(23), commits=FakeCommits(history(50), holds=holds))
    world.built = world.built.model_copy(
        update={
            "packages": (
                *world.built.packages,
                Package(name="dep", version="1", rung=PinSource.DEPENDENCY),
            )
        }
    )
    found = world.commits(f"{3:040x}", f"{48:040x}")
    assert found.package == name
    assert "/somewhere" not in found.model_dump_json()


def test_the_package_that_is_bisected_has_not_moved_along():
    """Each commit is a version of its own; what else differs is told."""

    def versioned(spec):
        given = built(spec)
        ours = given.packages[0].model_copy(
            update={"version": f"0.{spec.repo.commit[-2:] if spec.repo else 0}"}
        )
        dep = Package(name="dep", version="2" if spec.repo else "1", rung=PinSource.DEPENDENCY)
        return given.model_copy(update={"packages": (ours, dep)})

    found = World(at_commit(23), commits=FakeCommits(history(50)), build=versioned).commits(
        f"{3:040x}", f"{48:040x}"
    )
    assert {probe.moved for probe in found.probes} == {("dep 1 → 2",)}


def half_built(spec):
    given = built(spec)
    on_path = {**given.variables, "PYTHONPATH": "/tree:/tree/src"}
    return given.model_copy(
        update={"commit": spec.repo.commit if spec.repo else "", "variables": on_path}
    )


def test_a_commit_that_cannot_be_built_is_not_tested_on_the_installed_release():
    """The modules lie where only a build finds them: on the path, the program would import what
    is installed.
    """
    holds = Provided(name="lib", built=("lib",))
    world = World(lambda at: FAILS, commits=FakeCommits(history(50), holds=holds), build=half_built)
    found = world.commits(f"{3:040x}", f"{48:040x}")
    assert "given as bad, could not be tested (it could not be built)" in found.ends
    assert world.sandbox.specs == []


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (Provided(name="lib", built=("lib",)), "it could not be built"),
        (Provided(name="other", on_path=("other",)), "the clone does not provide lib there"),
    ],
)
def test_a_commit_in_the_middle_is_not_tested_on_the_installed_release_either(there, why):
    """It lies on the path at both ends. From 23 on it fails; where its modules are not found, as
    the installed one does.
    """
    elsewhere = range(10, 16)

    class Moved(FakeCommits):
        def provides(self, source, commit):
            return there if int(commit, 16) in elsewhere else self.holds

    def program(at):
        return FAILS if "." in at or int(at, 16) >= 23 or int(at, 16) in elsewhere else OK

    world = World(program, commits=Moved(history(50)), build=half_built)
    found = world.commits(f"{3:040x}", f"{24:040x}")
    assert found.first_bad.subject == "change 23"
    assert {each.why for each in found.skipped} == {why}
    assert {int(each.at, 16) for each in found.skipped} <= set(elsewhere)


@pytest.mark.parametrize(
    "error",
    [Stopped("stopped"), SandboxError("git did not finish"), TransientError("git could not")],
)
def test_a_boundary_stands_without_its_tags(error):
    class Untold(FakeCommits):
        def tags(self, source, commit):
            raise error

    world = World(at_commit(23), commits=Untold(history(50), TAGS))
    found = world.commits("v1", "v3")
    assert (found.first_bad.subject, found.first_bad.first_in, found.stopped) == (
        "change 23",
        "",
        "",
    )


def test_the_commits_between_two_releases_are_named_where_a_clone_is_at_hand():
    rows = history(9)
    tags = {"1.2": rows[3].id, "1.3": rows[6].id}
    world = World(
        broken(3, 30), released(8), bad="1.7", commits=FakeCommits(rows, tags), repo="/somewhere"
    )
    found = world.releases()
    assert [each.subject for each in found.introduced_by] == ["change 6", "change 5", "change 4"]
    assert found.fixed_by == ()


def of_one_day(spec):
    """Releases before 1.9 do not run beside dep 2.0, though they install."""
    kept = any(each.name == "dep" for each in spec.constraints)
    lib = number(spec.requirements[0].specifier.removeprefix("=="))
    dep = "2.0" if kept or lib >= 9 else "1.0"
    given = built(spec.model_copy(update={"constraints": ()}))
    packages = (*given.packages, Package(name="dep", version=dep, rung=PinSource.DEPENDENCY))
    variables = {**given.variables, "DEP": dep}
    return given.model_copy(
        update={"packages": packages, "variables": variables, "id": f"{given.id} dep {dep}"}
    )


def test_what_breaks_beside_the_packages_of_today_is_tried_beside_those_of_its_day():
    world = World(broken(5, 30), released(20), bad="1.11", build=of_one_day)
    world.sandbox.program = lambda spec: (
        BESIDE
        if spec.env["DEP"] == "2.0" and number(spec.env["LIB"]) < 9
        else broken(5, 30)(spec.env["LIB"])
    )
    found = world.releases()
    assert (found.first_bad.at, found.skipped) == ("1.5", ())
    assert {each.at for each in found.probes if each.moved} == {
        each.at for each in found.probes if number(each.at) < 9
    }
    known = world.failing().report.model_copy(update={"bisection": found})
    controlled = control(world.failing(known), world.runner)
    assert (controlled.control.what, controlled.control.moved) == ("lib 1.4", ("dep 2.0 → 1.0",))


def test_what_the_report_only_has_beside_the_package_is_of_the_day_too_unless_it_was_asked_for():
    world = World(broken(5, 30), released(20), bad="1.11")
    beside = [
        Requirement(name=name, specifier="==2.4", rung=rung, reason="")
        for name, rung in (("dep", PinSource.ISSUE), ("opt", PinSource.OPTION))
    ]
    spec = world.spec.model_copy(update={"requirements": (*world.spec.requirements, *beside)})
    near, day = proof_control.at_release(spec, world.runner.build(spec), "lib", released(20)[4])
    assert [(each.name, each.specifier) for each in near.requirements] == [
        ("lib", "==1.4"),
        ("dep", "==2.4"),
        ("opt", "==2.4"),
    ]
    assert [(each.name, each.specifier) for each in day.requirements] == [
        ("lib", "==1.4"),
        ("dep", ""),
        ("opt", "==2.4"),
    ]
    assert day.exclude_newer < near.exclude_newer


def test_a_package_that_was_only_drawn_is_asked_for():
    def build(spec):
        given = built(spec)
        deps = given.version("dep") or "1.5"
        package = Package(name="dep", version=deps, rung=PinSource.DEPENDENCY)
        rest = tuple(each for each in given.packages if each.name != "dep")
        return given.model_copy(
            update={"packages": (*rest, package), "variables": {**given.variables, "LIB": deps}}
        )

    world = World(broken(3, 30), bad="1.0", build=build)
    world.builder.released = {"dep": released(8)}
    found = world.releases("dep")
    assert (found.package, found.bad, found.first_bad.at) == ("dep", "1.5", "1.3")


def test_the_runs_of_a_control_are_not_made_again():
    world = World(broken(17, 19), released(40), bad="1.18")
    assert control(world.failing(), world.runner).control.what == "lib 1.39"
    before = len(world.runner.attempts)
    found = world.releases()
    newest = next(each for each in found.probes if each.at == "1.39")
    assert (newest.outcome, newest.runs) == ("passes", 5)
    again = [
        each
        for each in world.runner.attempts[before:]
        if each.environment in {world.built.id, newest.environment}
    ]
    assert again == []


def test_a_run_that_was_made_again_under_its_seed_counts_once():
    world = World(broken(17, 19), released(40), bad="1.18")
    for _ in range(2):
        control(world.failing(), world.runner)
    newest = world.runner.attempts[-1].environment
    assert sum(each.environment == newest for each in world.runner.attempts) == 10, (
        "the same five seeds, twice"
    )
    found = {each.at: each for each in world.releases().probes}
    assert (found["1.39"].runs, found["1.39"].outcome) == (5, "passes")
    assert (found["1.18"].runs, found["1.18"].failures) == (5, 5)


def test_what_a_place_needs_beyond_its_control_is_run_under_other_seeds():
    """The failure hangs on the seed, so that the bisection begins with other seeds than a
    control does.
    """
    world = World(broken(17, 19), released(40), bad="1.18")
    program = world.sandbox.program
    world.sandbox.program = lambda spec: (
        program(spec) if int(spec.env["REPRISE_SEED"]) % 3 == 0 else OK
    )
    for seed in range(1, 13):
        world.runner.run(world.script, world.built, seed, "confirm")
    (newest,) = proof_control.at_release(
        world.spec, world.built, "lib", world.builder.history("lib")[-1]
    )[:1]
    there = world.runner.build(newest)
    for seed in range(1, 6):
        world.runner.run(world.script, there, seed, "control")
    probe = next(each for each in world.releases().probes if each.at == "1.39")
    seeds = [each.execution.seed for each in world.runner.attempts if each.environment == there.id]
    assert probe.runs == len(seeds) == len(set(seeds)) > 5


def test_an_index_that_does_not_answer_ends_it_with_what_there_is():
    def build(spec):
        if number(spec.requirements[0].specifier.removeprefix("==")) < 8:
            raise IndexUnreachable("The package index does not answer.")
        return built(spec)

    found = World(broken(5, 30), released(20), bad="1.11", build=build).releases()
    assert (found.stopped, found.first_bad) == ("The package index does not answer.", None)
    assert {each.outcome for each in found.probes} == {"fails"}
