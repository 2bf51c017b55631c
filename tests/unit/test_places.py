"""Whether an exception arose in the place that a quoted traceback names."""

from typing import Any

import pytest

from bot.issues.judge_crash import weigh
from bot.issues.signature import locations
from bot.kernel.attempt import Failure, Script
from bot.kernel.bug import CrashSignature, Frame, Place

OWN = Place()
CALL, FORWARD, LINEAR = (
    Place(file="lib/nn/module.py", function="_call_impl", code="return forward(x)"),
    Place(file="lib/nn/linear.py", function="forward", code="return linear(x)"),
    Place(file="lib/functional.py", function="linear", code="raise ShapeError"),
)


def arose(*rows: Place) -> Failure:
    frames = [
        Frame(path=row.file, module_path=row.file, package=row.file.partition("/")[0], **named(row))
        for row in rows
    ]
    return Failure(exception="ShapeError", message="no", frames=tuple(frames))


def named(row: Place) -> dict[str, Any]:
    return {"function": row.function, "code": row.code, "line": row.line}


@pytest.mark.parametrize(
    "seen",
    [
        (OWN, CALL, FORWARD, LINEAR),
        (OWN, Place(file="lib/nn/container.py", function="forward"), CALL, FORWARD, LINEAR),
        (OWN, CALL, FORWARD, LINEAR, Place(file="lib/shapes.py", function="check")),
        (OWN, FORWARD, Place(file="lib/_functional.py", function="linear")),
        (OWN, FORWARD, Place(file="lib/functional.py", function="linear_2")),
    ],
    ids=["as reported", "called by another", "with a helper", "file renamed", "function renamed"],
)
def test_the_same_place(seen):
    assert locations.same((OWN, CALL, FORWARD, LINEAR), arose(*seen), is_reworded=True)


@pytest.mark.parametrize(
    "seen",
    [
        (OWN, CALL, Place(file="lib/nn/conv.py", function="forward"), LINEAR),
        (OWN, CALL, FORWARD, Place(file="lib/shapes.py", function="check")),
        (OWN, CALL, FORWARD, LINEAR, OWN),
        (OWN,),
    ],
    ids=["entered elsewhere", "raised elsewhere", "in code that it called", "in the program"],
)
def test_another_place(seen):
    assert not locations.same((OWN, CALL, FORWARD, LINEAR), arose(*seen), is_reworded=True)


def test_a_traceback_that_ends_in_the_program_names_no_place_in_a_library():
    assert locations.same((OWN, CALL, OWN), arose(OWN, FORWARD, LINEAR), is_reworded=False)


FIT = Place(file="lib/pca.py", function="fit", line=410)
INNER = (
    Place(file="lib/pca.py", function="_fit", line=500, code="return self._full(x)"),
    Place(file="lib/pca.py", function="_full", line=550, code="raise ValueError"),
)


def test_two_functions_of_a_file_that_lead_the_same_way_are_one_place():
    sibling = FIT.model_copy(update={"function": "fit_transform", "line": 430})
    assert locations.same((OWN, FIT, *INNER), arose(OWN, sibling, *INNER), is_reworded=True)


def test_a_method_of_the_same_name_far_off_in_the_same_release_is_another_place():
    namesake = FIT.model_copy(update={"line": 900})
    assert not locations.same((OWN, FIT, *INNER), arose(OWN, namesake, *INNER), is_reworded=True)
    moved = [row.model_copy(update={"line": row.line + 490}) for row in (FIT, *INNER)]
    assert locations.same((OWN, FIT, *INNER), arose(OWN, *moved), is_reworded=True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("<@lib(checker) at 0x7f>", True), ("<string>", False), ("train.py", False)],
    ids=["made by the library", "executed by the program", "the program's own function"],
)
def test_code_that_a_library_makes_at_run_time_is_no_place(path, expected):
    seen = arose(OWN, CALL, FORWARD, LINEAR)
    last = Frame(path=path, function="check", code="raise ShapeError" if path[0] != "<" else "")
    failure = seen.model_copy(update={"frames": (*seen.frames, last)})
    assert locations.same((OWN, CALL, FORWARD, LINEAR), failure, is_reworded=True) is expected


def test_what_runs_the_program_is_no_library_that_it_enters():
    notebook = Place(file="IPython/core/formatters.py", function="__call__")
    assert locations.same((OWN, notebook, LINEAR), arose(OWN, FORWARD, LINEAR), is_reworded=False)
    assert locations.same((OWN, LINEAR), arose(OWN, notebook, LINEAR), is_reworded=False)
    assert not locations.same((OWN, notebook), arose(OWN, FORWARD), is_reworded=False)


def test_a_place_that_was_reached_another_way_is_not_said_to_be_another():
    signature = CrashSignature(
        exception="ShapeError",
        message="no",
        frame=LINEAR.file,
        function="linear",
        places=(OWN, CALL, FORWARD, LINEAR),
    )
    conv = Place(file="lib/nn/conv.py", function="forward")
    other = "it was not raised in lib/functional.py"
    for rows, reason in (
        ((LINEAR,), "lib/functional.py linear was reached in another way than in the bug report"),
        ((conv,), other),
        ((LINEAR, OWN), other),
    ):
        failure, program = arose(OWN, conv, *rows), Script(files={"repro.py": ""})
        evidence = weigh(failure, signature, program, frozenset())
        assert (evidence[-1].agrees, evidence[-1].says) == (False, reason)
