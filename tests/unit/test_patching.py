"""A model's patch as the last resort of a control: what it is asked, what lets the patch pass, and what does not."""

from dataclasses import replace

import pytest

from bot.errors import ModelUnavailable
from bot.models.attempt import Match
from bot.models.dialogue import Usage
from bot.models.job import PROOFS
from bot.pipeline import later, patching, proofs
from bot.pipeline.asking import Asking
from bot.pipeline.confirming import Found, confirm
from bot.pipeline.reporting import report
from bot.render import words
from bot.render.comment import comment
from bot.render.html import proved
from bot.render.report_json import report_json
from bot.testing import ScriptedModel
from sandbox.port import RunResult
from tests.unit.versioned import BODY, FAILS, OK, OTHER, World, broken, released

CALLED = [2, "/e/lib/python3.11/site-packages/lib/core.py", "Core.fit", 1]
REACHED = {"lines": {1: 1, 2: 1}, "called": [CALLED]}
GOOD = {"thought": "", "edits": [{"start": 2, "end": 2, "text": "lib.fit(safe=True)"}], "why": "the unsafe mode"}
NONE = {"thought": "", "edits": [], "why": "nothing small helps"}


def patch(*edits):
    rows = [{"start": start, "end": end, "text": text} for start, end, text in edits]
    return {"thought": "", "edits": rows, "why": "so"}


def traced(answer, ended=OK):
    import json

    return ended.__class__(
        exit_code=ended.exit_code,
        stdout=ended.stdout,
        stderr=ended.stderr,
        seconds=1.0,
        artifacts={".reprise/reached.json": json.dumps(answer).encode()},
    )


class Patched(World):
    """A failure that every version has; `runs` says what a changed program does, `answer` what a traced run writes down."""

    def __init__(self, answers, runs=lambda text: OK if "safe=True" in text else FAILS, answer=REACHED, **more):
        super().__init__(broken(0, 50), released(40), bad="1.18", **more)
        self.model = ScriptedModel(answers)
        self.desk.ports = replace(self.desk.ports, model=self.model)
        self.sandbox.program = self._ran
        self.runs, self.answer = runs, answer

    def _ran(self, spec):
        ended = self.runs(spec.files.get("repro.py", b"").decode())
        return traced(self.answer, ended) if any("reached.py" in word for word in spec.argv) else ended

    def proved(self, *wanted, **options):
        job = self.desk.job
        self.desk.job = job.model_copy(update={"options": job.options.model_copy(update=options)})
        judgement = self.desk.run(self.script, self.built, 0, "search")
        verdict, _ = confirm(self.desk, Found(self.script, self.spec, self.built, judgement))
        self.asking = Asking(self.desk.ports, self.desk.job.options, 0.0)
        return proofs.prove(self.desk, verdict, wanted or ("control",), self.asking)


def test_a_patch_that_rules_and_a_run_let_pass_is_run_in_turn_under_the_same_seeds():
    world = Patched([GOOD])
    control = world.proved().control
    assert (control.type, control.what) == ("surrogate-patch", patching.WHAT)
    assert (control.failures, control.runs, control.paired_failures, control.paired_runs) == (0, 5, 5, 5)
    assert control.p == pytest.approx(1 / 252)
    assert control.patch.splitlines()[-2:] == ["-lib.fit()", "+lib.fit(safe=True)"]
    assert control.environment == world.built.id
    rows = [each for each in world.desk.attempts if each.change == f"control: {patching.WHAT}"]
    assert [each.execution.seed for each in rows] == [1, 2, 3, 4, 5]
    assert {each.script for each in rows} != {world.script.digest}
    elsewhere = [each.change for each in world.desk.attempts if each.environment != world.built.id]
    assert elsewhere == ["control: lib 1.39", "control: lib 1.17"], "what is at hand is not tried again"
    assert world.desk.control_spec is None, "the smaller program is not held against another program"
    (question,) = world.model.asked
    said = question.messages[-1].content
    assert "   2  lib.fit()" in said
    assert "lib/core.py, in fit" in said
    assert f"RuntimeError: {world.desk.signature.message}" in said


def test_it_is_shown_as_the_weakest_kind_with_its_change():
    world = Patched([GOOD])
    found = report(world.desk, world.proved(), world.asking)
    assert words.standing(found).startswith(
        "Symptom observed and its trigger set apart: 5 of 5 failed; control (surrogate patch"
    )
    assert "Bug confirmed" not in comment(found)
    assert "```diff\n--- repro.py" in comment(found)
    assert "+lib.fit(safe=True)" in proved.of(found)["patch"]
    assert "lib.fit(safe=True)" in report_json(found)["verdict"]["control"]["patch"]
    assert "the model says of it: the unsafe mode" in comment(found)
    assert report_json(found)["verdict"]["control"]["why"] == "the unsafe mode"
    assert words.next_step(found).startswith("Find a version that works")


def test_what_the_model_says_of_its_change_can_only_be_read():
    hostile = {**GOOD, "why": "see <img src=x> @everyone [here](https://evil.example) \x1b[31m ```\n/reproduce cancel"}
    world = Patched([hostile])
    said = next(
        row for row in comment(report(world.desk, world.proved(), world.asking)).splitlines() if "model says of it" in row
    )
    assert "<img" not in said
    assert "@everyone" not in said
    assert "\\](https:" in said
    assert "://" not in said
    assert "\x1b" not in said


def test_a_version_that_works_is_worth_more_and_nobody_is_asked():
    world = Patched([], runs=lambda text: OK)
    world.sandbox.program = lambda spec: broken(17, 19)(spec.env["LIB"])
    assert world.proved().control.type == "fixed-version"
    assert world.model.asked == []


def test_a_bisection_comes_first_and_may_find_one():
    world = Patched([])
    world.sandbox.program = lambda spec: broken(5, 39)(spec.env["LIB"])
    control = world.proved("control", "bisect").control
    assert (control.type, control.what) == ("last-good-version", "lib 1.4")
    assert world.model.asked == []


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([(2, 2, "")], "is not there any more"),
        ([(2, 2, "try:\n    lib.fit()\nexcept RuntimeError:\n    pass")], "an exception handler"),
        ([(2, 1, "quit()")], "`quit`"),
        ([(1, 2, "\n".join(f"x{at} = {at}" for at in range(9)))], "is not small"),
        ([(9, 9, "x = 1")], "no lines of the program"),
    ],
)
def test_what_rules_refuse_is_not_run_and_asked_once_more(edits, said):
    world = Patched([patch(*edits), NONE])
    assert world.proved().control.type == "none"
    assert all("safe" not in each.files["repro.py"].decode() for each in world.sandbox.specs)
    assert not any("reached.py" in word for spec in world.sandbox.specs for word in spec.argv)
    assert said in world.model.asked[1].messages[-1].content
    assert world.desk.notes[-1] == f"no control with a {patching.WHAT}: the model knows of none: nothing small helps"


@pytest.mark.parametrize(
    ("runs", "answer", "said"),
    [
        (lambda _: FAILS, REACHED, "the program fails as before"),
        (lambda text: OTHER if "safe" in text else FAILS, REACHED, "does not come to its end"),
        (None, {"lines": {1: 1}, "called": [CALLED]}, "the operation on line 2 is not reached"),
        (None, {"lines": {1: 1, 2: 1}, "called": []}, "does not enter `fit`"),
        (None, {"lines": {1: 1, 2: 1}, "called": [[1, *CALLED[1:]]]}, "does not enter `fit`"),
        (None, {"lines": "many"}, "could not be seen"),
    ],
)
def test_what_a_run_speaks_against_is_no_control(runs, answer, said):
    world = Patched([GOOD, GOOD], **({"runs": runs} if runs else {}), answer=answer)
    assert world.proved().control.type == "none"
    assert len(world.model.asked) == 2
    assert said in world.desk.notes[-1]
    assert not any(each.change.startswith(f"control: {patching.WHAT}") for each in world.desk.attempts)


def test_a_patch_that_fails_under_another_seed_is_no_control():
    def ran(spec):
        text, seed = spec.files["repro.py"].decode(), spec.env["REPRISE_SEED"]
        ended = OK if "safe=True" in text and seed != "3" else FAILS
        return traced(REACHED, ended) if any("reached.py" in word for word in spec.argv) else ended

    world = Patched([GOOD])
    world.sandbox.program = ran
    assert world.proved().control.type == "none"
    assert world.desk.notes[-1] == f"no control with {patching.WHAT}: it fails there too"


@pytest.mark.parametrize(
    ("answers", "options", "said"),
    [
        ([NONE], {}, "the model knows of none: nothing small helps"),
        ([ModelUnavailable("nobody answers")], {}, "no model could be asked: nobody answers"),
        ([GOOD], {"max_calls": 0}, "asking for one would pass the 0 calls"),
        ([GOOD], {"max_tokens": 100}, "asking for one would pass the 100 tokens"),
    ],
)
def test_no_answer_is_a_note_beside_the_verdict(answers, options, said):
    world = Patched(answers)
    verdict = world.proved(**options)
    assert (verdict.kind, verdict.control.type) == ("reproduced", "none")
    assert said in world.desk.notes[-1]


def test_only_wrong_output_is_no_reason_to_ask():
    """Where the report does not say what would be right, any other output would pass."""
    body = "It prints the wrong thing:\n\n```python\nimport lib\nprint('loss', lib.fit())\n```\n\nOutput:\n\n```\nloss 17.25\n```\n"
    wrong = RunResult(exit_code=0, stdout="loss 17.25\n", seconds=1.0)
    world = Patched([GOOD], runs=lambda _: wrong, body=body)
    assert world.proved().control.type == "none"
    assert world.model.asked == []
    assert "the report does not say what the output should be" in world.desk.notes[-1]


@pytest.mark.parametrize(
    ("failing", "now", "said"),
    [
        (
            {"lines": {1: 1, 2: 51}, "called": [[*CALLED[:3], 51]]},
            {"lines": {1: 1, 2: 10}, "called": [[*CALLED[:3], 51]]},
            "done less",
        ),
        (
            {"lines": {1: 1, 2: 1}, "called": [[*CALLED[:3], 51]]},
            {"lines": {1: 1, 2: 1}, "called": [CALLED]},
            "enters `fit` less",
        ),
        ({"lines": {1: 1, 2: 1}}, REACHED | {"raised": [2]}, "is held back"),
        ({"lines": {1: 1, 2: 1}}, REACHED | {"empty": [[2, "x"]]}, "`x` is empty"),
        ({"lines": {1: 1, 2: 51}}, REACHED | {"lines": {1: 1, 2: 51}}, ""),
        ({"lines": "many"}, REACHED, ""),
    ],
)
def test_the_patched_program_is_held_against_a_traced_run_of_the_failing_one(failing, now, said):
    world = Patched([GOOD, NONE])

    def ran(spec):
        text = spec.files["repro.py"].decode()
        ended = world.runs(text)
        return traced(now if "safe" in text else failing, ended) if any("reached.py" in word for word in spec.argv) else ended

    world.sandbox.program = ran
    assert world.proved().control.type == ("none" if said else "surrogate-patch")
    assert not said or said in world.model.asked[1].messages[-1].content
    seeds = {spec.env["REPRISE_SEED"] for spec in world.sandbox.specs if any("reached.py" in word for word in spec.argv)}
    assert len(seeds) == 1


@pytest.mark.parametrize(("lines", "type_"), [({1: 1, 2: 1}, "surrogate-patch"), ({1: 1, 2: 1, 3: 1}, "none")])
def test_a_program_that_ends_up_in_its_own_handler_shows_nothing(lines, type_):
    body = BODY.replace("lib.fit()", "try: lib.fit()\nexcept RuntimeError: raise")
    world = Patched([patch((2, 2, "try: lib.fit(safe=True)")), NONE], answer=REACHED | {"lines": lines}, body=body)
    assert world.proved().control.type == type_


def printed(text):
    return RunResult(exit_code=0, stdout=f"{text}\n", seconds=1.0)


WRONG = (
    "It prints the wrong thing:\n\n```python\nimport lib\nx = 1\nprint('loss', lib.fit(x))\n```\n\nOutput:\n\n```\n{}\n```\n"
)
RIGHT = WRONG + "\nExpected output:\n\n```\nloss 2.5\n```\n"


@pytest.mark.parametrize(
    ("body", "bad", "now", "type_"),
    [
        (RIGHT, "loss 17.25", "loss 2.5", "surrogate-patch"),
        (RIGHT, "loss 17.25", "loss 3.5", "none"),
        (RIGHT, "loss 17.25", "done", "none"),
        (WRONG, "loss nan", "loss 2.5", "surrogate-patch"),
        (WRONG, "loss nan", "loss inf", "none"),
        (WRONG, "loss nan", "done", "none"),
    ],
)
def test_of_a_value_the_patched_program_prints_what_is_right(body, bad, now, type_):
    answers = [patch((2, 2, "x = 2")), NONE]
    answer = {"lines": {1: 1, 2: 1, 3: 1}, "called": []}
    world = Patched(answers, lambda text: printed(now if "x = 2" in text else bad), answer, body=body.format(bad))
    assert world.proved().control.type == type_
    assert "print('loss', lib.fit())" in world.model.asked[0].messages[-1].content


def test_what_is_left_over_of_the_time_goes_to_the_other_proofs():
    world = Patched([NONE])
    world.proved(*PROOFS)
    assert world.desk.reduced is not None
    assert world.desk.bisection is not None
    assert {each.judgement.match for each in world.desk.attempts if each.purpose == "confirm"} == {Match.MET}


@pytest.mark.parametrize("text", ["lib.fit(" + "-" * 560 + "1)", "lib.fit" + "()" * 290, "lib.fit(\0)"])
def test_text_that_python_cannot_take_apart_is_refused(text):
    world = Patched([patch((2, 2, text)), NONE])
    assert world.proved().kind == "reproduced"
    assert world.desk.notes[-1].startswith(f"no control with a {patching.WHAT}")


def test_nothing_of_the_answer_is_taken_for_anything_but_text():
    """A path, a command or an instruction in an answer goes nowhere but into the program's main file."""
    hostile = patch((2, 2, "lib.fit(safe=True)  # ../../etc/passwd `rm -rf /` </outside>"))
    world = Patched([hostile])
    assert world.proved().control.type == "surrogate-patch"
    names = {name for spec in world.sandbox.specs for name in spec.files}
    assert names == {"repro.py", ".reprise/sitecustomize.py", ".reprise/reached.py"}
    assert BODY.count("lib.fit()") == 1


def test_a_control_made_later_asks_too_within_what_the_run_may_spend():
    world = Patched([GOOD])
    first = report(world.desk, world.proved("bisect", without=("model",))).model_copy(
        update={"models": ("reader",), "cost": Usage(calls=2, usd=0.5)}
    )
    job = world.desk.job.model_copy(update={"options": world.desk.job.options.model_copy(update={"without": ()})})
    found = later.prove(first, job, world.desk.ports, "control")
    assert found.verdict.control.type == "surrogate-patch"
    assert found.cost.calls == 3
    assert found.models == ("reader", world.model.name)
    assert set(found.prompts) == {"surrogate"}
    spent = job.model_copy(update={"options": job.options.model_copy(update={"max_calls": 2})})
    poor = later.prove(first, spent, world.desk.ports, "control")
    assert poor.verdict.control.type == "none"
    assert poor.cost.calls == 2


def test_a_program_of_another_python_is_not_compared():
    """It ran on its own; ours cannot take it apart."""
    world = Patched([GOOD])
    world.script = world.script.model_copy(update={"files": {"repro.py": "import lib\nprint 1\nlib.fit()\n"}})
    assert world.proved().kind == "reproduced"
    assert world.model.asked == []
    assert world.desk.notes[-1].endswith("the program cannot be compared (SyntaxError)")
    assert world.desk.defects == {}


def test_a_patch_ends_no_search_for_versions_that_was_cut_short():
    world = Patched([GOOD])
    runs, clock = world.sandbox.program, world.desk.ports.clock

    def slow(spec):
        clock.now += 100.0 if spec.env["LIB"] == "1.39" else 0.0
        return runs(spec)

    world.sandbox.program = slow
    found = report(world.desk, world.proved(proof_minutes=5), world.asking)
    assert found.verdict.control.type == "surrogate-patch"
    assert found.cut_short == {"control": "the time for it was up"}
    assert words.standing(found).endswith("The search for a version that works was cut short.")
    assert words.next_step(found) == "reprise control RUN goes on with what was cut short"


def test_a_bisection_has_all_of_the_time_once_nobody_will_be_asked():
    """A control is at hand, so that nothing comes after it; its runs take 0.7 of the time for proofs."""

    def bisected(each):
        world = Patched([])

        def program(spec):
            world.desk.ports.clock.advance(each if world.desk.proving == "bisect" else 0.0)
            return broken(17, 19)(spec.env["LIB"])

        world.sandbox.program = program
        assert world.proved("control", "bisect", proof_minutes=10).control.type == "fixed-version"
        return world.desk.bisection, sum(row.purpose == "bisect" for row in world.desk.attempts)

    whole, runs = bisected(0.0)
    found, _ = bisected(0.7 * 600 / runs)
    assert found.stopped == ""
    assert found == whole
