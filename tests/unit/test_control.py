"""The control on fakes: which twin is chosen, what counts as one, and the figures at the end."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from bot.issues.proof.control import control
from bot.issues.runner import judging
from bot.kernel import statistics
from bot.kernel.attempt import Match
from bot.kernel.bug import ObservationSignature, Predicate, Release
from bot.kernel.environment import Package, PinSource
from bot.kernel.errors import BuildError
from sandbox.port import RunResult
from tests.unit.versioned import (
    BODY,
    DECOY,
    FAILS,
    MESSAGE,
    OK,
    OTHER,
    World,
    broken,
    built,
    number,
    raised,
    released,
)


def controlled(world, confirming=2, **more):
    for seed in range(1, confirming + 1):
        world.runner.run(world.script, world.built, seed, "confirm")
    return proved(world, **more)


def proved(world, bisected=None, contrasts=(), **more):
    """The outcome, with the texts of its notes and the numbers of the runs that it made."""
    runner, before = replace(world.runner, proof="control", notes=[]), len(world.runner.attempts)
    failing = world.failing(contrasts=contrasts)
    if bisected is not None:
        report = failing.report.model_copy(update={"bisection": bisected})
        failing = replace(failing, report=report)
    outcome = control(failing, runner, **more)
    rows = tuple(attempt.number for attempt in world.runner.attempts[before:])
    notes = tuple(note.text for note in outcome.notes)
    return SimpleNamespace(
        control=outcome.control,
        spec=outcome.control_spec,
        claims=outcome.claims,
        notes=notes,
        attempts=rows,
    )


def test_the_newest_release_is_run_in_turn_under_the_same_seeds():
    world = World(broken(17, 19), released(40), bad="1.18")
    found = controlled(world)
    assert (found.control.type, found.control.what) == ("fixed-version", "lib 1.39")
    assert (found.control.failures, found.control.runs) == (0, 5)
    assert (found.control.paired_failures, found.control.paired_runs) == (5, 5)
    assert found.control.p == pytest.approx(1 / 252)
    assert found.control.effect.difference == 1.0
    assert found.control.effect.interval[0] > 0.3
    assert found.spec.requirements[0].specifier == "==1.39"
    rows = [
        (each.environment == world.built.id, each.execution.seed, each.purpose)
        for each in world.runner.attempts
    ]
    assert rows[:2] == [(True, 1, "confirm"), (True, 2, "confirm")]
    assert rows[2:] == [
        *((False, seed, "control") for seed in (1, 2)),
        *((failing, seed, "control") for seed in (3, 4, 5) for failing in (True, False)),
    ], "only what is missing is run, and in turn"
    assert [world.runner.attempts[at - 1].purpose for at in found.attempts] == ["control"] * 8


def test_the_release_of_the_day_comes_first_where_the_report_states_no_version():
    later = tuple(
        Release(version=f"2.{at}", uploaded_at=datetime(2026, 2, 1 + at, tzinfo=UTC))
        for at in range(3)
    )
    history = (*released(40), *later)
    silent = controlled(World(broken(17, 19), history, bad="1.18"))
    assert (silent.control.type, silent.control.what) == ("fixed-version", "lib 1.39")
    stated = controlled(World(broken(17, 19), history, bad="1.18", body=BODY + "\nlib 1.18\n"))
    assert stated.control.what == "lib 2.2"


def test_the_python_of_a_control_is_that_of_its_environment():
    """The builder takes another one where the one asked for has no wheels."""

    def newer(spec):
        found = built(spec)
        return (
            found.model_copy(update={"python": "3.12.4"})
            if found.version("lib") == "1.39"
            else found
        )

    found = controlled(World(broken(17, 19), released(40), bad="1.18", build=newer))
    assert (found.control.python, found.spec.python) == ("3.12.4", "3.11")


def test_a_version_that_the_reporter_calls_good_comes_first():
    body = BODY + "\nIt works in lib 1.15.\n"
    found = controlled(World(broken(17, 19), released(40), bad="1.18", body=body))
    assert (found.control.type, found.control.what) == ("last-good-version", "lib 1.15")
    assert [(each.text, each.holds) for each in found.claims] == [("lib 1.15 works", True)]
    later = controlled(
        World(broken(17, 19), released(40), bad="1.18", body=BODY + "\nIt works in lib 1.25.\n")
    )
    assert (later.control.type, later.control.what) == ("fixed-version", "lib 1.25")


def test_a_claim_that_does_not_hold_is_told_and_the_next_candidate_tried():
    body = BODY + "\nIt works in lib 1.15.\n"
    found = controlled(World(broken(10, 19), released(40), bad="1.18", body=body))
    assert found.control.what == "lib 1.39"
    assert [(each.text, each.holds) for each in found.claims] == [("lib 1.15 works", False)]
    assert found.notes == ("no control with lib 1.15: it fails there too",)


def test_the_release_before_the_first_that_is_said_to_fail():
    found = controlled(
        World(
            broken(15, 50),
            released(40),
            bad="1.18",
            body=BODY + "\nSeen with lib 1.15 and lib 1.18.\n",
        )
    )
    assert (found.control.type, found.control.what) == ("last-good-version", "lib 1.14")


@pytest.mark.parametrize(("other", "said"), [(OTHER, "has no attribute"), (DECOY, "lib.extras")])
def test_what_fails_for_another_reason_is_no_control(other, said):
    found = controlled(World(broken(17, 19, {39: other}), released(40), bad="1.18"))
    assert (found.control.type, found.control.what) == ("none", "")
    assert said in found.notes[0]
    assert found.control.p is None
    assert [each.partition(":")[0] for each in found.notes] == [
        "no control with lib 1.39",
        "no control with lib 1.17",
    ]


def test_what_cannot_be_built_is_no_control():
    def build(spec):
        if spec.requirements[0].specifier == "==1.39":
            raise BuildError("no wheel of it")
        return built(spec)

    found = controlled(World(broken(18, 50), released(40), bad="1.18", build=build))
    assert found.control.what == "lib 1.17"
    assert found.notes == ("no control with lib 1.39: no wheel of it",)


def test_a_pre_release_or_a_withdrawn_one_is_not_the_newest():
    more = (Release(version="2.0rc1", prerelease=True), Release(version="1.99", yanked=True))
    found = controlled(World(broken(17, 19), (*released(40), *more), bad="1.18"))
    assert found.control.what == "lib 1.39"


def test_what_else_differs_is_said():
    def build(spec):
        given = built(spec.model_copy(update={"constraints": ()}))
        dep = Package(
            name="dep",
            version="2.0" if given.version("lib") == "1.39" else "1.0",
            rung=PinSource.DEPENDENCY,
        )
        return given.model_copy(update={"packages": (*given.packages, dep)})

    found = controlled(World(broken(17, 19), released(40), bad="1.18", build=build))
    assert found.control.moved == ("dep 1.0 → 2.0",)


def test_a_rarer_failure_gets_more_pairs_settled_beforehand():
    world = World(broken(17, 19), released(40), bad="1.18")
    world.sandbox.program = lambda spec: (
        FAILS if number(spec.env["LIB"]) < 20 and int(spec.env["REPRISE_SEED"]) % 2 == 0 else OK
    )
    found = controlled(world, confirming=4).control
    assert (found.runs, found.failures, found.paired_failures, found.paired_runs) == (12, 0, 6, 12)
    assert found.p == pytest.approx(statistics.one_sided(6, 12, 0, 12))
    assert found.p <= 0.05


def test_a_rare_failure_that_is_there_in_the_twin_too_is_no_control():
    world = World(broken(0, 0), released(40), bad="1.18")
    world.sandbox.program = lambda spec: FAILS if int(spec.env["REPRISE_SEED"]) % 3 == 0 else OK
    found = controlled(world, confirming=9)
    assert found.control.type == "none"
    assert all("it fails there too" in each for each in found.notes)


def test_a_contrast_is_tried_last():
    world = World(broken(0, 50), released(40), bad="1.39")
    mended = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nlib.fit(mended=True)\n"}}
    )
    world.sandbox.program = lambda spec: OK if b"mended" in spec.files["repro.py"] else FAILS
    found = controlled(world, contrasts=(mended,))
    assert (found.control.type, found.control.runs, found.control.failures) == (
        "report-contrast",
        5,
        0,
    )
    assert len(found.notes) == 1, "the release before was tried first"


def test_observed_numbers_get_an_effect_size():
    world = World(lambda at: OK, released(40), bad="1.18")
    signature = ObservationSignature(
        name="loss",
        says="it does not fall",
        wrong=Predicate(op=">", value=1.0),
        right=Predicate(op="<=", value=1.0),
        api=("lib",),
    )
    world.runner = judging(world.runner, world.runner.bug, signature)
    source = 'import json, lib\nprint("REPRISE", json.dumps({"loss": lib.fit()}))\n'
    world.script = world.script.model_copy(update={"files": {"repro.py": source}})
    world.sandbox.program = lambda spec: RunResult(
        exit_code=0,
        stdout=f'REPRISE {{"loss": {2.5 if number(spec.env["LIB"]) < 20 else 0.25}}}\n',
        seconds=1.0,
    )
    found = controlled(world).control
    assert (found.failures, found.paired_failures) == (0, 5)
    assert found.effect.delta == 1.0
    assert (found.effect.values, found.effect.control_values) == ((2.5,) * 5, (0.25,) * 5)


def test_being_stopped_keeps_what_was_run():
    world = World(broken(17, 19), released(40), bad="1.18")
    world.runner.run(world.script, world.built, 1, "confirm")

    def program(spec):
        if len(world.sandbox.specs) == 4:
            world.cancel.set()
        return broken(17, 19)(spec.env["LIB"])

    world.sandbox.program = program
    found = proved(world)
    assert found.control.type == "none"
    assert found.notes == ("stopped on request while a control was run",)
    assert all(
        each.judgement.match in {Match.MATCHED, Match.PASSED} for each in world.runner.attempts
    )


def test_the_time_is_kept_and_said():
    found = controlled(World(broken(17, 19), released(40), bad="1.18", step=1.0), seconds=6)
    assert 1 <= found.control.runs < 5
    assert "the time limit for a control was reached after" in found.notes[0]
    none = controlled(World(broken(17, 19), released(40), bad="1.18", step=1.0), seconds=0)
    assert none.notes == ("the time limit for a control was reached",)


def test_what_a_killed_process_had_kept_is_not_run_again():
    whole = World(broken(17, 19), released(40), bad="1.18")
    found = controlled(whole)
    again = World(
        broken(17, 19), released(40), bad="1.18", earlier=tuple(whole.runner.attempts[:6])
    )
    assert controlled(again) == found
    assert len(again.sandbox.specs) == len(whole.runner.attempts) - 6


def test_another_failure_of_the_same_kind_is_not_taken_for_absence():
    other = raised("RuntimeError", MESSAGE.replace("14x7", "3x5"))
    found = controlled(World(broken(17, 19, {39: other, 17: other}), released(40), bad="1.18"))
    assert found.control.type == "none"


def test_what_a_bisection_found_goes_first():
    world = World(broken(3, 50), released(40), bad="1.18")
    assert controlled(world).control.type == "none", (
        "neither the newest nor the release before works"
    )
    found = controlled(world, bisected=world.releases()).control
    assert (found.type, found.what, found.failures, found.runs) == (
        "last-good-version",
        "lib 1.2",
        0,
        5,
    )
