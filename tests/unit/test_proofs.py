"""What follows a reproduced verdict: control, bisection, a smaller program, each within its limit and none in the way of it."""

import time

import pytest

from bot.errors import BuildError, Stopped, TransientError, UserError
from bot.models.environment import Requirement, Rung
from bot.models.job import PROOFS, Options
from bot.models.verdict import Inconclusive
from bot.pipeline import later, proofs
from bot.pipeline.confirming import Found, confirm
from bot.pipeline.reporting import report
from bot.pipeline.serving import Server
from sandbox.fake import Say
from sandbox.port import RunSpec, SandboxError
from tests.unit.versioned import BODY, FAILS, OK, World, broken, built, number, released

BROKEN = broken(17, 19)


def confirmed(world):
    """The verdict of the world's program, as the pipeline has it before any proof."""
    judgement = world.desk.run(world.script, world.built, 0, "search")
    verdict, _ = confirm(world.desk, Found(world.script, world.spec, world.built, judgement))
    assert verdict.kind == "reproduced"
    return verdict


def proved(world, *wanted):
    return proofs.prove(world.desk, confirmed(world), wanted or ("control", "bisect"))


def test_a_reproduced_failure_gets_a_control_and_its_two_boundaries():
    world = World(BROKEN, released(40), bad="1.18")
    verdict = proved(world)
    assert (verdict.control.type, verdict.control.what) == ("fixed-version", "lib 1.39")
    assert (world.desk.bisection.first_bad.at, world.desk.bisection.first_fixed.at) == ("1.17", "1.20")
    assert world.desk.control_spec is not None
    found = report(world.desk, verdict)
    assert (found.environment, found.script) == (world.built, world.script), "what is shown is where it fails"
    assert {"control", "bisect"} <= set(found.seconds)


def test_what_the_bisection_finds_is_a_control_where_nothing_else_was():
    """The newest release fails too, and so does the one before: only the bisection knows a version that passes."""
    world = World(broken(5, 39), released(40), bad="1.18")
    verdict = proved(world)
    assert (verdict.control.type, verdict.control.what) == ("last-good-version", "lib 1.4")


@pytest.mark.parametrize(("breaks", "package"), [(9, "numpy"), (0, "lib")])
def test_the_package_of_which_the_reporter_was_right_is_bisected(breaks, package):
    """The repository is lib's; the report blames NumPy, which is borne out or not."""
    body = f"{BODY}\nIt works with numpy 1.3.\n"
    lines = {"numpy": released(20), "lib": released(40)}
    world = World(lambda at: OK, body=body, bad="1.18")
    world.builder.released = lines
    dep = Requirement(name="numpy", specifier="==1.12", rung=Rung.ISSUE, reason="reported")
    world.spec = world.spec.model_copy(update={"requirements": (*world.spec.requirements, dep)})
    world.builder.on_build = with_dep
    world.sandbox.program = lambda spec: FAILS if number(spec.env["DEP"]) >= breaks and number(spec.env["LIB"]) < 30 else OK
    world.built = world.desk.build(world.spec)
    proved(world)
    assert world.desk.bisection.package == package


def with_dep(spec):
    given = built(spec)
    return given.model_copy(update={"variables": {**given.variables, "DEP": given.version("numpy")}})


def test_nothing_is_done_that_was_left_out():
    world = World(BROKEN, released(40), bad="1.18")
    assert proved(world, "control").control.type == "fixed-version"
    assert world.desk.bisection is None
    bare = World(BROKEN, released(40), bad="1.18")
    assert proofs.prove(bare.desk, confirmed(bare), ()).control.type == "none"
    assert {each.purpose for each in bare.desk.attempts} == {"search", "confirm"}


@pytest.mark.parametrize(
    "error", [BuildError("no wheel", ()), TransientError("the index is away"), UserError("odd", "mend it")]
)
def test_what_goes_wrong_with_a_proof_is_a_note_beside_the_verdict(error):
    world = World(BROKEN, released(40), bad="1.18")
    verdict = confirmed(world)

    def history(name):
        raise error

    world.builder.history = history
    after = proofs.prove(world.desk, verdict, PROOFS)
    assert after == verdict
    assert any(str(error) in note for note in world.desk.notes)


def test_a_request_to_stop_keeps_the_verdict_and_what_there_is():
    world = World(BROKEN, released(40), bad="1.18")
    verdict = confirmed(world)
    runs = len(world.desk.attempts)

    def program(spec):
        if len(world.desk.attempts) > runs + 3:
            world.cancel.set()
        return BROKEN(spec.env["LIB"])

    world.sandbox.program = program
    after = proofs.prove(world.desk, verdict, PROOFS)
    assert after.kind == "reproduced"
    assert len(world.desk.attempts) > runs
    assert any("stopped on request" in note for note in world.desk.notes)
    with pytest.raises(Stopped):
        world.desk.stop_if_asked()


def test_a_limit_stops_a_build_half_way_and_says_that_it_was_the_clock():
    world = World(BROKEN, released(40), bad="1.18")

    def build(spec, *, cancel=None):
        assert cancel.wait(20), "nobody stops it"
        raise Stopped("stopped")

    world.builder.build = build
    began = time.monotonic()
    with pytest.raises(Stopped), world.desk.limited(0.3):
        world.desk.build(world.spec.model_copy(update={"python": "3.12"}))
    assert time.monotonic() - began < 5
    assert world.desk.why_stopped == "the time for it was up"
    world.desk.stop_if_asked()  # the limit is over


def test_no_time_is_said_so():
    world = World(BROKEN, released(40), bad="1.18", proof_minutes=0)
    assert proved(world).control.type == "none"
    assert world.desk.notes == ["there was no time left to run a control", "there was no time left to bisect"]


def test_a_package_of_the_users_choice_is_bisected():
    world = World(BROKEN, released(40), bad="1.18", package="nothing-of-the-kind")
    assert proved(world, "bisect").kind == "reproduced"
    assert any("nothing-of-the-kind is not installed" in note for note in world.desk.notes)


# --- later, from what was kept -----------------------------------------------------------------------------------------------


def finished(world, **more):
    return report(world.desk, confirmed(world)).model_copy(update=more)


def test_a_finished_run_is_given_a_proof_later_without_running_again_what_was_confirmed():
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world, models=("gpt-x",))
    found = later.prove(first, world.desk.job, world.desk.ports, "bisect")
    assert (found.bisection.first_bad.at, found.bisection.first_fixed.at) == ("1.17", "1.20")
    assert found.attempts[: len(first.attempts)] == first.attempts
    assert {each.purpose for each in found.attempts[len(first.attempts) :]} <= {"bisect", "control"}
    assert found.models == ("gpt-x",), "what is known of the first run stays"
    again = later.prove(found, world.desk.job, world.desk.ports, "control")
    assert again.verdict.control.type != "none"
    assert again.bisection == found.bisection


def test_only_what_was_reproduced_can_be_proved():
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world)
    other = first.model_copy(update={"verdict": Inconclusive(runs=1, failures=0, interval=(0.0, 1.0), reason="nothing")})
    with pytest.raises(UserError, match="ended with inconclusive"):
        later.prove(other, world.desk.job, world.desk.ports, "control")


def test_a_program_that_does_not_fail_so_is_refused():
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world)
    world.sandbox.program = lambda spec: OK if b"quit" in spec.files["repro.py"] else FAILS
    other = world.script.model_copy(update={"files": {"repro.py": "import lib\nquit()\nlib.fit()\n"}})
    with pytest.raises(UserError, match="does not fail as that run did"):
        later.prove(first, world.desk.job, world.desk.ports, "minimize", script=other)


def test_notes_of_an_earlier_try_are_taken_back():
    world = World(BROKEN, released(40), bad="1.18", proof_minutes=0)
    verdict = proved(world, "control")
    first = report(world.desk, verdict)
    assert "there was no time left to run a control" in first.notes
    job = world.desk.job.model_copy(update={"options": Options(proof_minutes=10)})
    found = later.prove(first, job, world.desk.ports, "control")
    assert found.verdict.control.type == "fixed-version"
    assert not any("no time left" in note for note in found.notes)


def test_a_sandbox_that_breaks_in_a_proof_does_not_take_the_verdict_with_it():
    world = World(BROKEN, released(40), bad="1.18")
    verdict = confirmed(world)

    def broken_daemon(spec):
        raise SandboxError("the daemon is away")

    world.sandbox.program = broken_daemon
    assert proofs.prove(world.desk, verdict, PROOFS) == verdict
    assert any("the daemon is away" in note for note in world.desk.notes)


@pytest.mark.parametrize(
    "line",
    ["@ x 5 y", "@1 1 x y", "@" + "9" * 5000 + " 1 0 x", "@1 " + "9" * 5000 + " 0 x", "@\u0663 1 0 x", "@1 1 0", "x" * 100_000],
)
def test_what_a_candidate_writes_in_the_servers_place_is_not_read(line):
    world = World(BROKEN, released(40), bad="1.18")
    spec = RunSpec(argv=("python3", "serve.py"), files={})
    world.sandbox.program = lambda _: [Say(f"{line}\n@0 0 0 !!\n@0 end 0 \n".encode())]
    server = Server(world.desk, lambda _inbox: spec)
    try:
        assert server.ask({}, 20.0) == {0: b""}
    finally:
        server.close()
