"""What a model that writes a program is told of the rules, and what is made of its answers."""

import pytest

from bot.issues.search import prompt_text
from bot.kernel.attempt import BESIDE
from bot.kernel.environment import Environment
from sandbox.port import RunResult
from tests.support.fakes import FakeBuilder, ScriptedModel
from tests.unit.test_reconstruct import (
    CRASH,
    CRASHES,
    GOOD,
    TWIN,
    WRONG,
    answers,
    by_source,
    crash,
    decide,
    issue,
    refined,
    says,
    write,
)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"timed_out": True, "exit_code": None}, "timed out after 120 s"),
        ({"idle": True, "exit_code": None}, "timed out after 120 s"),
        ({"exit_code": None, "signal": 11}, "signal 11"),
        ({"exit_code": 137, "oom": True}, "out of memory"),
        ({"exit_code": 3}, "exit code 3"),
    ],
)
def test_a_run_is_said_to_have_ended_as_it_did(fields, words):
    result = RunResult(stdout="", stderr="", seconds=120.2, **fields)
    told = prompt_text.probe_text(result, "x()")
    assert words in told
    assert "None" not in told


def test_the_limits_of_a_run_are_told():
    model = ScriptedModel(answers(write()))
    decide(model, timeout_s=75.0)
    system = model.asked[-1].messages[0].content
    assert "within 75 s" in system
    assert "over 400 lines" in system


def test_a_twin_that_nobody_asked_for_may_end_otherwise():
    model = ScriptedModel(answers(write(GOOD, GOOD.replace("4", "5"))))
    other = says("", 1, "ZeroDivisionError: division by zero")
    report = decide(model, lambda spec: other if b"(5" in spec.files["repro.py"] else WRONG)
    assert report.verdict.kind == "reproduced"
    (claim,) = [claim for claim in report.claims if "without the reported point" in claim.text]
    assert claim.holds is None


QUOTED = "the boom of the second kv is too small"
SUBJECT = issue(f"With acme 1.2.0 it stops and says {QUOTED}, for any input.", "kv of two")


@pytest.mark.parametrize(
    ("file", "seen", "kind"),
    [
        ("acme/nn.py", crash(message=QUOTED), "reproduced"),
        ("acme/moved.py", crash(message=QUOTED), "reproduced"),
        ("acme/nn.py", crash("other/x.py", message=QUOTED), "inconclusive"),
        ("other/x.py", crash(message=QUOTED), "reproduced"),
    ],
)
def test_the_place_that_a_model_gives_beside_quoted_words_is_kept(file, seen, kind):
    """A place outside the package in question is not asked for; a moved file of it may stand in."""
    first = refined(
        kind="crash",
        observation=None,
        quotes=[QUOTED],
        crash={"exception": "RuntimeError", "message": QUOTED, "in_file": file},
    )
    model = ScriptedModel(answers(write(CRASHES, TWIN), first=first))
    report = decide(model, by_source(kv_2=seen, kv_4=says("fine")), SUBJECT, max_attempts=1)
    assert report.verdict.kind == kind
    assert report.reconstruction.refined.signature.frame == (
        "" if file.startswith("other") else file
    )


def actions(*rows):
    return {"thought": "", "context": 0, "actions": list(rows)}


def amend(**fields):
    row = {
        "exception": "RuntimeError",
        "message": "",
        "in_file": "acme/core.py",
        "reason": "core raises",
    }
    return actions({"action": "amend", **row, **fields})


TWO = by_source(kv_2=crash("acme/core.py"), kv_4=says("fine"))


def test_a_reading_is_amended_once_before_anything_has_run():
    again = amend(in_file="acme/other.py")
    twice = actions(*amend()["actions"], *again["actions"])
    model = ScriptedModel(answers(twice, write(CRASHES, TWIN), first=CRASH))
    report = decide(model, TWO)
    assert report.verdict.kind == "reproduced"
    assert "amend" not in offered(model.asked[-1])
    assert report.signature.frame == "acme/core.py"
    old, new = report.reconstruction.readings
    assert (old.by, new.by) == ("model", "model")
    assert "acme/nn.py" in old.says
    assert "acme/core.py" in new.says
    assert old.hash != new.hash
    assert old.outcome == "amended before anything had run: core raises"


def test_the_place_of_an_amendment_is_among_the_names_that_a_program_may_use():
    program = "from acme.core import layer\n\nlayer(kv=2)\n"
    for row, is_run in ((amend(), True), ({"actions": []}, False)):
        answer = actions(*row["actions"], *write(program, TWIN)["actions"])
        model = ScriptedModel(answers(answer, write(CRASHES, TWIN), first=CRASH))
        report = decide(model, TWO)
        assert ("unrelated" in [row.gate for row in report.reconstruction.refusals]) is not is_run


def offered(question):
    """The actions that an answer may contain."""
    items = question.answer_schema["properties"]["actions"]["items"]["anyOf"]
    return {item["properties"]["action"]["const"] for item in items}


def test_only_actions_that_are_possible_are_offered():
    nothing_yet = {"search", "read", "probe", "write", "environment", "give_up"}
    model = ScriptedModel(answers(write(CRASHES), write(CRASHES, TWIN), first=CRASH))
    decide(model, TWO, max_attempts=2)
    _, first, second, *_ = model.asked
    assert offered(first) == {*nothing_yet, "amend"}
    assert "`edit`" not in first.messages[0].content
    assert offered(second) == {*nothing_yet, "edit", "amend"}
    assert "`edit`" in second.messages[0].content
    model = ScriptedModel(answers(write(CRASHES, TWIN)))
    decide(model, TWO, max_attempts=1)
    assert offered(model.asked[1]) == {*nothing_yet, "documented", "refute"}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        # After a probe.
        (
            actions({"action": "probe", "code": "kv=4"}, *amend()["actions"]),
            write(CRASHES, TWIN),
        ),
        (amend(in_file="elsewhere/core.py"), write(CRASHES, TWIN)),  # a file of another package
        (amend(exception="core"), write(CRASHES, TWIN)),  # no exception
    ],
)
def test_a_reading_is_not_amended_later_or_to_what_cannot_count(first, then):
    model = ScriptedModel(answers(first, then, write(CRASHES, TWIN), first=CRASH))
    report = decide(model, TWO, max_attempts=2)
    assert report.verdict.kind == "inconclusive"
    assert report.reconstruction.readings == ()
    assert report.reconstruction.refined.signature.frame == "acme/nn.py"
    gates = {row.gate for row in report.reconstruction.refusals}
    assert gates & {"amend_late", "file", "sign", "class"}
    assert any("what counts" in asked.messages[-1].content.lower() for asked in model.asked)


USAGE = "usage: main.py [-h] --n N\nmain.py: error: the following arguments are required: --n\n"


@pytest.mark.parametrize(
    ("ending", "fields", "counts"),
    [
        (says("", 2, USAGE), {}, True),
        (says("", 2, USAGE), {"exception": "ImportError"}, False),
    ],
)
def test_a_command_that_ends_at_its_arguments_leaves_the_reading_open(
    tmp_path, ending, fields, counts
):
    """It has shown nothing of the program; what it ended with may not become what counts."""
    (tmp_path / "main.py").write_text("import acme\n")
    there = Environment(
        id="e", python="3", interpreter="python", commit="a" * 40, tree=str(tmp_path)
    )
    start = {
        "thought": "",
        "context": 0,
        "actions": [{"action": "run", "command": "python main.py", "change": "as it stands"}],
    }

    def program(spec):
        if spec.argv[-1] == "main.py":
            return ending
        is_failing = b"kv=2" in spec.files[BESIDE]
        return crash("acme/core.py") if is_failing else says("fine")

    acts = (start, amend(**fields), write(CRASHES, TWIN))
    report = decide(
        ScriptedModel(answers(*acts, first=CRASH)),
        program,
        builder=FakeBuilder(on_build=lambda _: there),
        repo="/clone",
        max_attempts=3,
    )
    gates = {row.gate for row in report.reconstruction.refusals}
    assert ("amend_late" in gates) is not counts
    says_when = [row.outcome for row in report.reconstruction.readings[:1]]
    assert says_when == (["amended before any run came past its imports: core raises"] * counts)


def test_a_command_that_fails_in_its_work_settles_the_reading(tmp_path):
    (tmp_path / "main.py").write_text("import acme\n")
    there = Environment(
        id="e", python="3", interpreter="python", commit="a" * 40, tree=str(tmp_path)
    )
    start = actions({"action": "run", "command": "python main.py", "change": "as it stands"})
    model = ScriptedModel(answers(start, write(CRASHES, TWIN), first=CRASH))
    decide(
        model,
        lambda spec: crash("acme/other.py"),
        builder=FakeBuilder(on_build=lambda _: there),
        repo="/clone",
        max_attempts=2,
    )
    _, before, after, *_ = model.asked
    assert "amend" in offered(before)
    assert "amend" not in offered(after)
