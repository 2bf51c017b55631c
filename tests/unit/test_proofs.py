"""What follows a reproduced verdict: control, bisection, a smaller program, each within its
limit and none in the way of it.
"""

import json
import re
import time
from dataclasses import replace

import pytest

from bot.issues import build_report, phrases
from bot.issues.confirm import Decision, confirm
from bot.issues.proof import proofs, proofs as proof_proofs
from bot.issues.runner import judging
from bot.kernel.attempt import Attempt, Reduced, Step
from bot.kernel.batch import BatchServer
from bot.kernel.bug import Release
from bot.kernel.environment import PinSource, RepoSource, Requirement
from bot.kernel.errors import BuildError, Stopped, TransientError, UserError
from bot.kernel.job import PROOFS, Interruption, Note, ProofOptions
from bot.kernel.report import Inconclusive, IssueReport
from bot.kernel.session import SearchResult, Session
from bot.model.budget import ModelBudget
from bot.report.comment import comment
from bot.report.report_json import report_text
from bot.report.terminal import terminal
from sandbox.port import RunSpec, SandboxError
from tests.support.fakes import FakeCommits
from tests.support.sandbox import Say
from tests.unit.versioned import BODY, FAILS, OK, World, broken, built, history, number, released

BROKEN = broken(17, 19)


def confirmed(world):
    """The verdict of the world's program, as the pipeline has it before any proof."""
    run = world.runner.run(world.script, world.built, 0, "search")
    result = SearchResult(world.script, world.spec, world.built, run)
    verdict, _ = confirm(world.runner, result)
    assert verdict.kind == "reproduced"
    return Decision(verdict, world.runner.bug, world.runner.signature, result)


def finished(world, **more):
    """The report of a run without any proof."""
    budget = ModelBudget(world.runner.ports, world.runner.job.model, 0.0)
    found = build_report.draft(world.runner, confirmed(world), budget)
    return build_report.finish(found, world.runner, world.runner.ports.clock()).model_copy(
        update=more
    )


def proved(world, *wanted, runner=None):
    """The report of a run after these proofs."""
    first, runner = finished(world), runner or world.runner
    failing = world.failing(first)
    proofs.prove(failing, runner, wanted or ("control", "bisect"))
    return build_report.finish(failing.report, runner, runner.ports.clock())


def test_a_reproduced_failure_gets_a_control_and_its_two_boundaries():
    world = World(BROKEN, released(40), bad="1.18")
    found = proved(world)
    control = found.verdict.control
    assert (control.type, control.what) == ("fixed-version", "lib 1.39")
    assert (found.bisection.first_bad.at, found.bisection.first_fixed.at) == ("1.17", "1.20")
    assert found.control_spec is not None
    assert (found.environment, found.script) == (world.built, world.script), (
        "what is shown is where it fails"
    )
    assert {"control", "bisect"} <= set(found.seconds)


def test_what_the_bisection_finds_is_a_control_where_nothing_else_was():
    """The newest release fails too, and so does the one before: only the bisection knows a
    version that passes.
    """
    world = World(broken(5, 39), released(40), bad="1.18")
    control = proved(world).verdict.control
    assert (control.type, control.what) == ("last-good-version", "lib 1.4")


@pytest.mark.parametrize(("breaks", "package"), [(9, "numpy"), (0, "lib")])
def test_the_package_of_which_the_reporter_was_right_is_bisected(breaks, package):
    """The repository is lib's; the report blames NumPy, which is borne out or not."""
    body = f"{BODY}\nIt works with numpy 1.3.\n"
    lines = {"numpy": released(20), "lib": released(40)}
    world = World(lambda at: OK, body=body, bad="1.18")
    world.builder.released = lines
    dep = Requirement(name="numpy", specifier="==1.12", rung=PinSource.ISSUE, reason="reported")
    world.spec = world.spec.model_copy(update={"requirements": (*world.spec.requirements, dep)})
    world.builder.on_build = with_dep
    world.sandbox.program = lambda spec: (
        FAILS if number(spec.env["DEP"]) >= breaks and number(spec.env["LIB"]) < 30 else OK
    )
    world.built = world.runner.build(world.spec)
    assert proved(world).bisection.package == package


def with_dep(spec):
    given = built(spec)
    return given.model_copy(
        update={"variables": {**given.variables, "DEP": given.version("numpy")}}
    )


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ((), "nothing was bisected: no index lists the releases of lib"),
        (released(1), "nothing was bisected: the index has no other release of lib"),
        (
            (*released(1), Release(version="1.1", yanked=True)),
            "nothing was bisected: the index has no other release of lib; omitted (yanked): 1.1",
        ),
    ],
)
def test_where_the_index_has_no_other_release_nothing_is_said_of_an_oldest_one(known, said):
    world = World(broken(0, 9), known, bad="1.0")
    found = proved(world)
    assert (found.bisection, found.notes_on("bisect")) == (None, (said,))
    text = comment(found)
    assert "the oldest release" not in text


def test_nothing_is_done_that_was_left_out():
    world = World(BROKEN, released(40), bad="1.18")
    found = proved(world, "control")
    assert (found.verdict.control.type, found.bisection) == ("fixed-version", None)
    bare = World(BROKEN, released(40), bad="1.18")
    first = finished(bare)
    failing = bare.failing(first)
    proofs.prove(failing, bare.runner, ())
    assert failing.report.finish() == first
    assert {each.purpose for each in bare.runner.attempts} == {"search", "confirm"}


@pytest.mark.parametrize(
    "error",
    [BuildError("no wheel", ()), TransientError("the index is away"), UserError("odd", "mend it")],
)
def test_what_goes_wrong_with_a_proof_is_a_note_beside_the_verdict(error):
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world)

    def history(name):
        raise error

    world.builder.history = history
    failing = world.failing(first)
    proofs.prove(failing, world.runner, PROOFS)
    after = failing.report
    assert after.verdict == first.verdict
    assert any(str(error) in note for note in after.notes_on())


def test_a_request_to_stop_keeps_the_verdict_and_what_there_is():
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world)
    runs = len(world.runner.attempts)

    def program(spec):
        if len(world.runner.attempts) > runs + 3:
            world.cancel.set()
        return BROKEN(spec.env["LIB"])

    world.sandbox.program = program
    failing = world.failing(first)
    proofs.prove(failing, world.runner, PROOFS)
    after = failing.report
    assert after.verdict.kind == "reproduced"
    assert len(world.runner.attempts) > runs
    assert any("stopped on request" in note for note in after.notes_on())
    with pytest.raises(Stopped):
        world.runner.context.check()


def test_a_limit_stops_a_build_half_way_and_says_that_it_was_the_clock():
    world = World(BROKEN, released(40), bad="1.18")

    def build(spec, *, cancel=None):
        assert cancel.wait(20), "nobody stops it"
        raise Stopped("stopped")

    world.builder.build = build
    began = time.monotonic()
    with world.runner.proving("bisect", 0.3) as limited:
        with pytest.raises(Stopped):
            limited.build(world.spec.model_copy(update={"python": "3.12"}))
        assert limited.context.interruption is Interruption.OUT_OF_TIME
    assert time.monotonic() - began < 5
    world.runner.context.check()  # the limit was the proof's own


def test_no_time_is_said_so():
    world = World(BROKEN, released(40), bad="1.18", proof_minutes=0)
    found = proved(world)
    assert found.verdict.control.type == "none"
    assert found.notes_on() == (
        "there was no time left to run a control",
        "there was no time left to bisect",
    )


def test_a_package_of_the_users_choice_is_bisected():
    world = World(BROKEN, released(40), bad="1.18", package="nothing-of-the-kind")
    found = proved(world, "bisect")
    assert found.verdict.kind == "reproduced"
    assert any("nothing-of-the-kind is not installed" in note for note in found.notes_on())


# --- later, from what was kept -----------------------------------------------------------------------------------------------


def test_a_finished_run_is_given_a_proof_later_without_running_again_what_was_confirmed():
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world, models=("gpt-x",))
    found = proof_proofs.resume_proof(first, world.runner.job, world.runner.ports, "bisect")
    assert (found.bisection.first_bad.at, found.bisection.first_fixed.at) == ("1.17", "1.20")
    assert found.attempts[: len(first.attempts)] == first.attempts
    assert {each.purpose for each in found.attempts[len(first.attempts) :]} <= {"bisect", "control"}
    assert found.models == ("gpt-x",), "what is known of the first run stays"
    again = proof_proofs.resume_proof(found, world.runner.job, world.runner.ports, "control")
    assert again.verdict.control.type != "none"
    assert again.bisection == found.bisection


def test_only_what_was_reproduced_can_be_proved():
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world)
    other = first.model_copy(
        update={"verdict": Inconclusive(runs=1, failures=0, interval=(0.0, 1.0), reason="nothing")}
    )
    with pytest.raises(UserError, match="ended with inconclusive"):
        proof_proofs.resume_proof(other, world.runner.job, world.runner.ports, "control")


def test_a_program_that_does_not_fail_so_is_refused():
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world)
    world.sandbox.program = lambda spec: OK if b"quit" in spec.files["repro.py"] else FAILS
    other = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nquit()\nlib.fit()\n"}}
    )
    with pytest.raises(UserError, match="does not fail as that run did"):
        proof_proofs.resume_proof(
            first, world.runner.job, world.runner.ports, "minimize", script=other
        )


CLONE = RepoSource(url="", path="/home/me/clones/lib")


def since(first):
    """Fails from one commit on, and in the release that the report is about."""
    return lambda at: FAILS if "." in at or int(at, 16) >= first else OK


def commits_world():
    return World(
        since(23), commits=FakeCommits(history(50), {"v1": f"{3:040x}", "v2": f"{48:040x}"})
    )


def test_commits_that_pass_are_runs_of_a_version_that_passes():
    """The last good commit is run in turn with the failing release, under the same seeds."""
    world = commits_world()
    first = finished(world)
    assert (
        phrases.standing(first)
        == "Symptom observed: the program was not compared with a version that works."
    )
    found, made = proof_proofs.bisect(
        first, world.runner.job, world.runner.ports, CLONE, "v1", "v2"
    )
    control, good = found.verdict.control, found.bisection.last_good
    assert (found.bisection, good.subject) == (made, "change 22")
    assert (control.type, control.what) == ("last-good-version", f"lib at {good.at[:12]}")
    assert (control.failures, control.paired_failures, control.paired_runs) == (
        0,
        control.runs,
        control.runs,
    )
    rows = [row for row in found.attempts if row.change == f"control: {control.what}"]
    assert len(rows) == control.runs
    assert all(good.at in row.environment for row in rows)
    assert control.moved == (), "the package that is compared is not told of as what else differs"
    assert phrases.standing(found).startswith("Bug confirmed: ")
    assert phrases.next_step(found) == "Turn the script into a regression test."
    assert "clones" not in report_text(found)


def test_a_program_that_may_make_the_difference_itself_confirms_nothing():
    world, doubt = commits_world(), "what the program does depends on a version: `lib.__version__`"
    first = finished(world)
    doubted = first.verdict.model_copy(update={"doubt": doubt})
    first = first.model_copy(update={"verdict": doubted})
    found, _ = proof_proofs.bisect(first, world.runner.job, world.runner.ports, CLONE, "v1", "v2")
    assert phrases.standing(found).startswith("Differs between versions: ")
    assert phrases.unconfirmed(found) == f"This does not confirm a bug: {doubt}."
    assert "Turn the script" not in phrases.next_step(found)
    assert "Bug confirmed" not in report_text(found)
    alone = proof_proofs.resume_proof(first, world.runner.job, world.runner.ports, "bisect")
    assert alone.bisection is None
    assert f"nothing was bisected: {doubt}" in alone.notes_on("bisect")


def test_versions_that_fail_too_are_named_and_not_passed_over():
    world = World(lambda at: FAILS, released(3), bad="1.1")
    first = finished(world)
    assert (
        phrases.standing(first)
        == "Symptom observed: the program was not compared with a version that works."
    )
    found = proof_proofs.resume_proof(first, world.runner.job, world.runner.ports, "control")
    said = "the program also fails with lib 1.2 and lib 1.0"
    assert phrases.standing(found) == f"Symptom observed: no working version was found; {said}."
    assert phrases.next_step(found) == "Look by hand for a version in which the program passes."
    alone = proof_proofs.resume_proof(first, world.runner.job, world.runner.ports, "bisect")
    alone = alone.model_copy(update={"attempts": first.attempts})
    assert "the program also fails with lib 1.0 and lib 1.2" in phrases.standing(alone), (
        "a bisection ran them as well"
    )


def test_a_stop_keeps_what_a_bisection_of_commits_has_found_until_then():
    """Git hears of the stop too when it is asked for the tags of the two sides."""

    class Heard(FakeCommits):
        def tags(self, source, commit):
            assert world.cancel.is_set()
            raise Stopped("reading the history was cancelled")

    world = World(since(23), commits=Heard(history(50), {"v1": f"{3:040x}", "v2": f"{48:040x}"}))
    first = finished(world)

    def program(spec):
        if spec.env["COMMIT"] and int(spec.env["COMMIT"], 16) not in {3, 48}:
            world.cancel.set()
            time.sleep(0.3)  # a limit looks after it now and then
        return since(23)(spec.env["COMMIT"] or spec.env["LIB"])

    world.sandbox.program = program
    found, made = proof_proofs.bisect(
        first, world.runner.job, world.runner.ports, CLONE, "v1", "v2"
    )
    assert (made.last_good.subject, made.first_bad.subject, made.stopped) == (
        "change 3",
        "change 48",
        "stopped on request",
    )
    assert (found.bisection, found.cut_short) == (made, {"bisect": "stopped on request"})


def test_the_commit_of_a_fix_is_a_control_too():
    world = World(
        lambda at: FAILS if "." in at or int(at, 16) < 31 else OK, commits=FakeCommits(history(50))
    )
    found, _ = proof_proofs.bisect(
        finished(world), world.runner.job, world.runner.ports, CLONE, f"{48:040x}", f"{3:040x}"
    )
    control = found.verdict.control
    assert (control.type, control.what) == (
        "fixed-commit",
        f"lib at {found.bisection.first_fixed.at[:12]}",
    )


def test_where_no_control_was_made_the_passes_are_told_and_it_can_be_made_later():
    world = commits_world()
    first = finished(world)
    whole, _ = proof_proofs.bisect(first, world.runner.job, world.runner.ports, CLONE, "v1", "v2")
    late = whole.model_copy(update={"verdict": first.verdict, "control_spec": None})
    said = f"lib {late.bisection.last_good.at[:12]} passed in the bisection (0 of 3 runs failed), but it was not compared in paired runs"
    assert phrases.standing(late) == f"Symptom observed: {said}."
    assert phrases.next_step(late).startswith("Run reprise control RUN to test against")
    again = proof_proofs.resume_proof(late, world.runner.job, world.runner.ports, "control")
    assert again.verdict.control == whole.verdict.control


def test_a_clone_that_is_gone_is_no_control_and_not_named_by_its_place():
    world = commits_world()
    first = finished(world)
    whole, _ = proof_proofs.bisect(first, world.runner.job, world.runner.ports, CLONE, "v1", "v2")
    late = whole.model_copy(update={"verdict": first.verdict, "control_spec": None})

    class Gone(FakeCommits):
        def commit(self, source, ref):
            raise UserError(f"There is no folder {source.path}.")

    again = proof_proofs.resume_proof(
        late, world.runner.job, replace(world.runner.ports, commits=Gone()), "control"
    )
    assert again.verdict.control.type == "none"
    good = late.bisection.last_good.at[:12]
    assert f"no control with lib at {good}: There is no folder lib." in again.notes_on()


def two_packages():
    """Breaks in numpy from 1.9 on; lib has no part in it."""
    world = World(lambda at: OK, bad="1.18")
    world.builder.released = {"numpy": released(20), "lib": released(40)}
    dep = Requirement(name="numpy", specifier="==1.12", rung=PinSource.ISSUE, reason="reported")
    world.spec = world.spec.model_copy(update={"requirements": (*world.spec.requirements, dep)})
    world.builder.on_build = with_dep
    world.sandbox.program = lambda spec: FAILS if number(spec.env["DEP"]) >= 9 else OK
    world.built = world.runner.build(world.spec)
    return world


@pytest.mark.parametrize("order", [("numpy", "lib"), ("lib", "numpy"), ("numpy", "lib", "numpy")])
def test_a_bisection_of_another_package_does_not_take_the_place_of_the_first(order):
    world = two_packages()
    found = finished(world)
    for package in order:
        job = world.runner.job.model_copy(update={"proof": ProofOptions(package=package)})
        found = proof_proofs.resume_proof(found, job, world.runner.ports, "bisect")
    assert (found.bisection.package, found.bisection.first_bad.at) == ("numpy", "1.9"), (
        "the one with a boundary comes first"
    )
    assert [(each.package, each.oldest) for each in found.other_bisections] == [("lib", "fails")]
    shown = json.loads(report_text(found))
    assert (
        shown["bisect"]["package"],
        [each["package"] for each in shown["other_bisections"]],
    ) == ("numpy", ["lib"])
    line = "lib: already fails in 1.0 (2024-01-01), the oldest release; still fails in 1.39 (2024-09-30), the newest release"
    assert terminal(found, width=200).index("numpy: introduced in 1.9") < terminal(
        found, width=200
    ).index(line)
    text = comment(found)
    assert text.index("numpy: introduced in 1.9") < text.index("<details>") < text.index(line)


def test_a_search_that_found_less_does_not_take_the_place_of_one_that_found_the_boundary():
    world = commits_world()
    first, made = proof_proofs.bisect(
        finished(world), world.runner.job, world.runner.ports, CLONE, "v1", "v2"
    )
    found, second = proof_proofs.bisect(
        first, world.runner.job, world.runner.ports, CLONE, f"{30:040x}", "v2"
    )
    assert second.ends.startswith("00000000000")
    assert (found.bisection, found.other_bisections) == (made, (second,))
    third, _ = proof_proofs.bisect(
        found, world.runner.job, world.runner.ports, CLONE, f"{10:040x}", "v2"
    )
    assert third.bisection.first_bad == made.first_bad
    assert third.other_bisections == ()


def test_notes_of_an_earlier_try_are_taken_back():
    world = World(BROKEN, released(40), bad="1.18", proof_minutes=0)
    first = proved(world, "control")
    assert "there was no time left to run a control" in first.notes_on()
    job = world.runner.job.model_copy(update={"proof": ProofOptions(minutes=10)})
    found = proof_proofs.resume_proof(first, job, world.runner.ports, "control")
    assert found.verdict.control.type == "fixed-version"
    assert not any("no time left" in note for note in found.notes_on())


@pytest.mark.parametrize(
    ("proof", "stale"), [("control", "of the control"), ("bisect", "of the bisection")]
)
def test_notes_go_by_the_proof_that_made_them_and_not_by_their_words(proof, stale):
    """Nothing in them says what they are about; a control within a bisection has its own."""
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(
        world,
        notes=(
            Note(kind="run", text="of the program: it could not bisect, nor run a control"),
            Note(kind="control", text="of the control"),
            Note(kind="bisect", text="of the bisection"),
        ),
    )
    kept = IssueReport.model_validate_json(first.model_dump_json())
    found = proof_proofs.resume_proof(kept, world.runner.job, world.runner.ports, proof)
    assert [note.text for note in first.notes if note not in found.notes] == [stale]


def test_the_same_note_of_two_proofs_goes_with_each_of_them_alone():
    world = World(BROKEN, released(40), bad="1.18")
    same = "nothing of that could be had"
    first = finished(
        world, notes=(Note(kind="control", text=same), Note(kind="minimize", text=same))
    )
    found = proof_proofs.resume_proof(first, world.runner.job, world.runner.ports, "control")
    assert found.notes_on().count(same) == 1
    assert found.notes_on("minimize") == (same,)
    last = proof_proofs.resume_proof(found, world.runner.job, world.runner.ports, "minimize")
    assert same not in last.notes_on()


def cancelling(world, after):
    """Ask it to stop once so many more runs were made."""
    before = len(world.sandbox.specs)

    def program(spec):
        if len(world.sandbox.specs) - before > after:
            world.cancel.set()
            time.sleep(0.3)  # a limit looks after it now and then
        return BROKEN(spec.env["LIB"])

    world.sandbox.program = program


@pytest.mark.parametrize("proof", ["control", "bisect"])
def test_a_proof_that_was_stopped_is_said_to_be_and_the_next_try_takes_that_back(proof):
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world)
    cancelling(world, 3)
    found = proof_proofs.resume_proof(first, world.runner.job, world.runner.ports, proof)
    assert found.cut_short == {proof: "stopped on request"}
    assert found.verdict.kind == "reproduced"
    assert found.notes_on(proof) or found.bisection.stopped
    world.cancel.clear()
    world.sandbox.program = lambda spec: BROKEN(spec.env["LIB"])
    again = proof_proofs.resume_proof(found, world.runner.job, world.runner.ports, proof)
    assert again.cut_short == {}
    assert not any("stopped" in note for note in again.notes_on())
    assert again.attempts[: len(found.attempts)] == found.attempts, "its runs are kept"


def test_a_control_that_was_stopped_goes_on_from_its_runs_and_one_that_ended_is_made_anew():
    def made(*after):
        world = World(BROKEN, released(40), bad="1.18")
        report = finished(world)
        for runs in after:
            cancelling(world, runs)
            report = proof_proofs.resume_proof(
                report, world.runner.job, world.runner.ports, "control"
            )
            assert report.cut_short == {"control": "stopped on request"}
            world.cancel.clear()
        world.sandbox.program = lambda spec: BROKEN(spec.env["LIB"])
        before = len(world.sandbox.specs)
        report = proof_proofs.resume_proof(report, world.runner.job, world.runner.ports, "control")
        assert report.cut_short == {}
        return world, report, len(world.sandbox.specs) - before

    _, whole, alone = made()
    world, gone_on, more = made(2, 1)
    assert gone_on.verdict == whole.verdict
    assert more == alone - 3, "what was run before each stop is not run again"
    runs = [
        (each.environment, each.execution.seed, each.change)
        for each in gone_on.attempts
        if each.purpose == "control"
    ]
    assert len(set(runs)) == len(runs) == alone
    before = len(world.sandbox.specs)
    proof_proofs.resume_proof(gone_on, world.runner.job, world.runner.ports, "control")
    assert len(world.sandbox.specs) - before == alone


def test_a_bisection_that_was_stopped_takes_no_whole_one_away():
    world = World(BROKEN, released(40), bad="1.18")
    whole = proof_proofs.resume_proof(
        finished(world), world.runner.job, world.runner.ports, "bisect"
    )
    assert not whole.bisection.stopped
    forgotten = whole.model_copy(
        update={"attempts": tuple(each for each in whole.attempts if each.purpose != "bisect")}
    )
    cancelling(world, 3)
    found = proof_proofs.resume_proof(forgotten, world.runner.job, world.runner.ports, "bisect")
    assert found.cut_short == {"bisect": "stopped on request"}
    assert found.bisection == whole.bisection


def test_time_that_is_up_is_told_apart_from_a_stop():
    world = World(BROKEN, released(40), bad="1.18", proof_minutes=0)
    first = finished(world)
    assert proof_proofs.resume_proof(
        first, world.runner.job, world.runner.ports, "bisect"
    ).cut_short == {"bisect": "the time limit was reached"}


def test_another_program_takes_nothing_of_the_runs_own():
    world = World(BROKEN, released(40), bad="1.18")
    first = proof_proofs.resume_proof(
        finished(world), world.runner.job, world.runner.ports, "control"
    )
    first = proof_proofs.resume_proof(first, world.runner.job, world.runner.ports, "bisect")
    assert first.verdict.control.type != "none"
    first = first.model_copy(
        update={"notes": (Note(kind="run", text="a note of the run"),), "models": ("gpt-x",)}
    )
    other = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nprint(1)\nlib.fit()\n"}}
    )
    found = proof_proofs.resume_proof(
        first, world.runner.job, world.runner.ports, "minimize", script=other
    )
    assert (found.bisection, found.verdict.control.type, found.models) == (None, "none", ())
    assert "a note of the run" not in found.notes_on()
    assert found.reduced.before == other
    assert found.attempts[0].script == other.digest, "the runs are its own, from the first"
    assert found.attempts[0].number == 1
    assert (found.signature_hash, found.spec) == (first.signature_hash, first.spec)
    assert found.control_spec == first.control_spec, "it passes there too, so smaller ones have to"
    said = phrases.standing(found)
    assert re.fullmatch(
        r"Symptom observed: 0 of \d+ smaller programs failed with lib 1\.39, but they were not compared in paired runs\.",
        said,
    )
    assert phrases.next_step(found.model_copy(update={"cut_short": {}}), "x").startswith(
        "Run reprise control x to test against the version in which smaller programs "
    )


def test_a_control_in_which_another_program_fails_is_not_held_against_it():
    world = World(BROKEN, released(40), bad="1.18")
    first = proof_proofs.resume_proof(
        finished(world), world.runner.job, world.runner.ports, "control"
    )
    world.sandbox.program = lambda spec: (
        FAILS if b"print" in spec.files.get("repro.py", b"") else BROKEN(spec.env["LIB"])
    )
    other = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nprint(1)\nlib.fit()\n"}}
    )
    assert (
        proof_proofs.resume_proof(
            first, world.runner.job, world.runner.ports, "minimize", script=other
        ).control_spec
        is None
    )


def reduced(before, script, ended, **more):
    size = {
        "lines_before": len(before.source.splitlines()),
        "lines_after": len(script.source.splitlines()),
    }
    counts = {
        "tests": 10,
        "runs": 20,
        "seconds": 3.0,
        "history": (Step(what="a", lines=2, tests=4, seconds=1.0),),
    }
    return Reduced(before=before, script=script, ended=ended, **(counts | size | more))


def test_a_try_that_ended_early_is_gone_on_with_and_its_counts_are_added():
    world = World(BROKEN, released(40), bad="1.18")
    long = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nprint(1)\nprint(2)\nlib.fit()\n"}}
    )
    short = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nprint(2)\nlib.fit()\n"}}
    )
    world.script = long
    first = finished(
        world, reduced=reduced(long, short, "stopped"), cut_short={"minimize": "stopped on request"}
    )
    found = proof_proofs.resume_proof(
        first, world.runner.job, world.runner.ports, "minimize"
    ).reduced
    said = [
        each.text for each in world.runner.ports.listener.heard if "continuing from" in each.text
    ]
    assert said == ["continuing from 3 lines, confirmed earlier"]
    assert (found.before, found.resumed) == (long, 0)
    assert found.tests > 10
    assert found.history[0] == first.reduced.history[0]
    assert all(step.tests > 10 for step in found.history[1:])


def test_what_was_found_is_told_apart_from_what_was_confirmed():
    world = World(BROKEN, released(40), bad="1.18")
    world.script = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nprint(1)\nprint(2)\nlib.fit()\n"}}
    )
    proof_proofs.resume_proof(finished(world), world.runner.job, world.runner.ports, "minimize")
    said = [each.text for each in world.runner.ports.listener.heard if "→" in each.text]
    assert said[0].endswith("lines found"), "nothing is confirmed yet"
    assert all(
        re.fullmatch(r"minimizing: 4 → \d+ lines found(, \d+ confirmed)?", text) for text in said
    )


def test_what_was_not_built_of_a_clone_is_noted_once():
    world = World(
        BROKEN,
        build=lambda spec: built(spec).model_copy(update={"note": "not all of it was built"}),
    )
    world.runner.build(world.spec)
    world.runner.build(world.spec.model_copy(update={"python": "3.12"}))
    assert [note.text for note in world.runner.notes] == ["not all of it was built"]


def test_a_try_that_was_killed_is_gone_on_with_and_its_counts_are_said_to_lack():
    world = World(BROKEN, released(40), bad="1.18")
    long = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nprint(1)\nprint(2)\nlib.fit()\n"}}
    )
    world.script, short = long, world.script
    first = finished(world)
    world.runner.run(short, world.built, 100_004, "minimize", "smaller program")
    found = proof_proofs.resume_proof(
        first, world.runner.job, world.runner.ports, "minimize"
    ).reduced
    said = [
        each.text for each in world.runner.ports.listener.heard if "continuing from" in each.text
    ]
    assert said == ["continuing from 2 lines, confirmed earlier"]
    assert (found.before, found.resumed) == (long, 2)


def test_a_try_that_is_stopped_takes_nothing_back():
    world = World(BROKEN, released(40), bad="1.18")
    long = world.script.model_copy(
        update={"files": {"repro.py": "import lib\nprint(1)\nprint(2)\nlib.fit()\n"}}
    )
    first = finished_with(world, long, reduced(long, world.script, "complete"))
    cancelling(world, 0)
    found = proof_proofs.resume_proof(first, world.runner.job, world.runner.ports, "minimize")
    assert found.cut_short == {"minimize": "stopped on request"}
    assert (found.reduced.script, found.reduced.lines_after) == (world.script, 2)


def finished_with(world, script, less):
    world.script, short = script, world.script
    found = finished(world, reduced=less)
    world.script = short
    return found


def test_a_sandbox_that_breaks_in_a_proof_does_not_take_the_verdict_with_it():
    world = World(BROKEN, released(40), bad="1.18")
    first = finished(world)

    def broken_daemon(spec):
        raise SandboxError("the daemon is away")

    world.sandbox.program = broken_daemon
    failing = world.failing(first)
    proofs.prove(failing, world.runner, PROOFS)
    after = failing.report
    assert after.verdict == first.verdict
    assert any("the daemon is away" in note for note in after.notes_on())


@pytest.mark.parametrize("proof", PROOFS)
def test_a_defect_of_ours_in_a_proof_costs_that_proof_alone_and_is_told(proof):
    """The other two are made; the error is in the notes, in what whoever watches hears, and
    whole in the report.
    """
    world = World(BROKEN, released(40), bad="1.18")
    journal = world.runner.ports.journal

    class Breaks(type(journal)):
        def append(self, kind, entry):
            if isinstance(entry, Attempt) and entry.purpose == proof:
                raise RuntimeError("a list is not what it was")
            super().append(kind, entry)

    ports = replace(world.runner.ports, journal=Breaks())
    first = finished(world)
    session = Session.begin(world.runner.job, ports, world.runner.attempts)
    runner = judging(session, world.runner.bug, world.runner.signature)
    failing = world.failing(first)
    proofs.prove(failing, runner, PROOFS)
    found = failing.report
    (note,) = [note for note in found.notes_on() if "internal error" in note]
    assert note.endswith("an internal error (RuntimeError); please report it")
    assert found.notes_on(proof) == (note,)
    assert list(found.defects) == [proof]
    assert found.defects[proof].startswith("Traceback")
    assert "a list is not what it was" in found.defects[proof]
    assert {each.stage for each in world.runner.ports.listener.heard if each.text == note} == {
        proof
    }
    assert found.verdict.kind == "reproduced"
    assert (
        found.verdict.control.type != "none",
        found.bisection is not None,
        found.reduced is not None,
    ) == tuple(each != proof for each in PROOFS)
    again = proof_proofs.resume_proof(
        IssueReport.model_validate_json(found.model_dump_json()),
        world.runner.job,
        world.runner.ports,
        proof,
    )
    assert again.defects == {}
    assert note not in again.notes_on()


@pytest.mark.parametrize(
    "line",
    [
        "@ x 5 y",
        "@1 1 x y",
        "@" + "9" * 5000 + " 1 0 x",
        "@1 " + "9" * 5000 + " 0 x",
        "@\u0663 1 0 x",
        "@1 1 0",
        "x" * 100_000,
    ],
)
def test_what_a_candidate_writes_in_the_servers_place_is_not_read(line):
    world = World(BROKEN, released(40), bad="1.18")
    spec = RunSpec(argv=("python3", "serve.py"), files={})
    world.sandbox.program = lambda _: [Say(f"{line}\n@0 0 0 !!\n@0 end 0 \n".encode())]
    server = BatchServer(world.runner, lambda _inbox: spec)
    try:
        assert list(server.ask({}, 20.0)) == [(0, b"")]
    finally:
        server.close()


def test_a_candidate_that_writes_rows_without_end_keeps_nobody_from_the_clock():
    world = World(BROKEN, released(40), bad="1.18")

    class Floods:
        def run(self, spec, *, cancel, on_output):
            until = time.monotonic() + 20
            while not cancel.is_set() and time.monotonic() < until:
                on_output("stdout", "@7 0 0 eA==\n")

    ports = replace(world.runner.ports, sandbox=Floods())
    runner = Session.begin(world.runner.job, ports)
    began = time.monotonic()
    server = BatchServer(runner, lambda _inbox: RunSpec(argv=("python3", "serve.py"), files={}))
    try:
        assert list(server.ask({}, 0.3)) == []
    finally:
        server.close()
    assert time.monotonic() - began < 10
