import json

import pytest

from bot.environment import imports
from bot.issues.judge import judge
from bot.issues.observe import Observation, observe
from bot.issues.signature import freeze
from bot.issues.signature.values import lines, nonempty_lines
from bot.kernel.attempt import Failure, Match, Script, ScriptFix
from bot.kernel.bug import (
    AlternativesSignature,
    CrashSignature,
    Frame,
    HangSignature,
    NonFiniteSignature,
    OutputSignature,
    Place,
    WarningSignature,
)
from bot.kernel.environment import Environment
from sandbox.port import RunResult

SCRIPT = Script(files={"repro.py": "import lib\nlib.go()\n"})
MESSAGE = "mat1 and mat2 shapes cannot be multiplied (14x7 and 16x4)"
PLACE = Frame(
    path="/e/site-packages/lib/linear.py",
    package="lib",
    module_path="lib/linear.py",
    function="forward",
)
OWN = Frame(path="repro.py", function="<module>", line=2, code="lib.go()")


def seen(*failures, output="", errors="", **fields):
    rest = {
        "exit_code": 1 if failures else 0,
        "signal": None,
        "timed_out": False,
        "idle": False,
        "oom": False,
        "seconds": 1.0,
    }
    shown = {"output": tuple(lines(output)), "told": tuple(nonempty_lines(output))}
    return Observation(failures=failures, errors=errors, **shown | rest | fields)


def crash(exception="RuntimeError", message=MESSAGE, frames=(OWN, PLACE), **fields):
    return Failure(exception=exception, message=message, frames=frames, **fields)


WANTED = CrashSignature(
    exception="RuntimeError",
    message=MESSAGE,
    shapes=("14x7", "16x4"),
    frame="lib/linear.py",
    function="forward",
)


def test_the_reported_crash_is_met():
    assert judge(seen(crash()), WANTED, SCRIPT).match is Match.MATCHED


def test_a_caught_and_printed_crash_is_met():
    assert judge(seen(crash(swallowed=True), exit_code=0), WANTED, SCRIPT).match is Match.MATCHED


@pytest.mark.parametrize(
    ("reported", "observed"),
    [
        (
            ("AttributeError", "__enter__"),
            ("TypeError", "'Lock' object does not support the context manager protocol"),
        ),
        (
            ("AttributeError", "__aexit__"),
            ("TypeError", "'S' object does not support the asynchronous context manager protocol"),
        ),
        (
            ("TypeError", "'A' object does not support the context manager protocol"),
            ("AttributeError", "__exit__"),
        ),
        (("TypeError", "unhashable type: 'slice'"), ("KeyError", "slice(None, 1, None)")),
        (
            ("ValueError", "factorial() only accepts integral values"),
            ("TypeError", "'float' object cannot be interpreted as an integer"),
        ),
        (
            ("ValueError", "non-integer arg 1 for randrange()"),
            ("TypeError", "'float' object cannot be interpreted as an integer"),
        ),
        (
            ("AttributeError", "'module' object has no attribute 'relplot'"),
            ("AttributeError", "module 'seaborn' has no attribute 'relplot'"),
        ),
        (
            ("ImportError", "No module named keras.layers.core"),
            ("ModuleNotFoundError", "No module named 'keras.layers.core'"),
        ),
        (
            ("ImportError", "cannot import name imread"),
            ("ImportError", "cannot import name 'imread' from 'scipy.misc' (/e/misc.py)"),
        ),
        (
            ("ValueError", "need more than 1 value to unpack"),
            ("ValueError", "not enough values to unpack (expected 2, got 1)"),
        ),
        (
            ("TypeError", "'int' object has no attribute '__getitem__'"),
            ("TypeError", "'int' object is not subscriptable"),
        ),
        (
            ("TypeError", "coercing to Unicode: need string or buffer, NoneType found"),
            ("TypeError", "expected str, bytes or os.PathLike object, not NoneType"),
        ),
        (
            ("TypeError", "cannot concatenate 'str' and 'int' objects"),
            ("TypeError", 'can only concatenate str (not "int") to str'),
        ),
        (
            ("TypeError", "unorderable types: str() < int()"),
            ("TypeError", "'<' not supported between instances of 'str' and 'int'"),
        ),
        (("KeyError", "u'loss'"), ("KeyError", "'loss'")),
    ],
)
def test_a_failure_whose_class_another_python_changed_is_the_reported_one(reported, observed):
    signature = CrashSignature(exception=reported[0], message=reported[1])
    assert judge(seen(crash(*observed)), signature, SCRIPT).match is Match.MATCHED
    for other in (crash(observed[0], "'int' object is not callable"), crash("OSError", "x")):
        assert judge(seen(other), signature, SCRIPT).match is not Match.MATCHED


@pytest.mark.parametrize(
    ("reported", "observed"),
    [
        ("'module' object has no attribute 'go'", "module 'lib' has no attribute 'stop'"),
        ("'int' object has no attribute '__getitem__'", "'str' object is not subscriptable"),
        ("unorderable types: str() < int()", "'<' not supported between 'int' and 'str'"),
        ("need more than 1 value to unpack", "not enough values to unpack (expected 3, got 2)"),
    ],
)
def test_another_wording_is_about_the_same_names(reported, observed):
    signature = CrashSignature(exception="TypeError", message=reported)
    found = judge(seen(crash("TypeError", observed)), signature, SCRIPT)
    assert found.match is not Match.MATCHED


def test_a_statement_that_is_said_to_fail_and_does_not_passes():
    signature = CrashSignature(exception="", checks=("lib.go()",))
    assert judge(seen(), signature, SCRIPT).match is Match.PASSED
    assert judge(seen(timed_out=True), signature, SCRIPT).match is Match.UNDECIDED
    assert judge(seen(exit_code=1), signature, SCRIPT).match is not Match.PASSED


def test_a_statement_with_a_guessed_import_fails_as_reported_only_in_the_reported_way():
    here = Frame(path="repro.py", function="<module>", line=2, code="lib.go()")
    there = Frame(path="lib/a.py", package="lib", function="go", line=9, code="raise")
    failing = seen(crash("ValueError", "no rows", (here, there)))
    guess = ScriptFix(what="added `from lib.a import go`", why=imports.LOCATED)
    guessed = SCRIPT.model_copy(update={"fixes": (guess,)})
    statement = CrashSignature(exception="", checks=("lib.go()",))
    named = CrashSignature(exception="ValueError", checks=("lib.go()",))
    assert judge(failing, statement, SCRIPT).match is Match.MATCHED
    assert judge(failing, statement, guessed).match is Match.UNDECIDED
    assert judge(failing, named, guessed).match is Match.MATCHED


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        ("TypeError", "Linear.__init__() got an unexpected keyword argument 'biases'"),
        ("TypeError", "go() missing 1 required positional argument: 'x'"),
        ("TypeError", "go() takes 1 positional argument but 2 were given"),
        ("TypeError", "Net.forward() got multiple values for argument 'x'"),
        ("AttributeError", "module 'lib' has no attribute 'go'"),
        ("AttributeError", "'Linear' object has no attribute 'biases'"),
    ],
)
def test_a_call_that_cannot_be_bound_fails_at_the_statement(exception, message):
    """No code of the library runs, so no frame of it is on the stack."""
    signature = CrashSignature(exception=exception, checks=("lib.go(biases=False)",))
    here = Frame(path="repro.py", function="<module>", line=2, code="lib.go(biases=False)  # fails")
    elsewhere = here.model_copy(update={"code": "lib.stop()"})
    failing = seen(crash(exception, message, (here,)))
    assert judge(failing, signature, SCRIPT).match is Match.MATCHED
    away = seen(crash(exception, message, (elsewhere,)))
    assert judge(away, signature, SCRIPT).match is not Match.MATCHED
    own = "class Linear: ...\nclass Net: ...\ndef go(x): ...\nimport lib\nlib.go(biases=False)\n"
    if "module" not in message:
        mine = Script(files={"repro.py": own})
        assert judge(failing, signature, mine).match is not Match.MATCHED


def test_a_reported_class_at_another_statement_is_no_other_failure():
    """The statement may be one that rules have guessed: nothing is decided."""
    signature = CrashSignature(exception="UnboundLocalError", checks=("made = lib.make(x)",))
    failure = crash("UnboundLocalError", "local variable 'g' referenced before assignment")
    assert judge(seen(failure), signature, SCRIPT).match is Match.UNDECIDED
    other = crash("OSError", "no such file")
    assert judge(seen(other), signature, SCRIPT).match is Match.OTHER


def test_what_python_itself_lacks_is_no_failure_of_a_library():
    signature = CrashSignature(exception="AttributeError", checks=("lib.go(x)",))
    here = Frame(path="repro.py", function="<module>", line=2, code="lib.go(x)")
    for message in (
        "'NoneType' object has no attribute 'go'",
        "'list' object has no attribute 'x'",
    ):
        failing = seen(crash("AttributeError", message, (here,)))
        assert judge(failing, signature, SCRIPT).match is not Match.MATCHED


@pytest.mark.parametrize(
    ("source", "places", "match"),
    [
        ("lib.go()\n", True, Match.PASSED),
        ("lib.go()\n", False, Match.MATCHED),
        ("try:\n    lib.go()\nexcept Exception as e:\n    print(repr(e))\n", True, Match.MATCHED),
        ("lib.go(\n", True, Match.MATCHED),
    ],
)
def test_a_line_that_anything_may_print_is_no_failure_whose_place_is_known(source, places, match):
    wanted = CrashSignature(
        exception="IndexError",
        message="list index out of range",
        places=(Place(file="lib/linear.py", function="forward"),) if places else (),
    )
    bare = Failure(exception="IndexError", message=wanted.message, swallowed=True)
    script = Script(files={"repro.py": f"import lib\n{source}"})
    assert judge(seen(bare, exit_code=0), wanted, script).match is match


def test_the_cause_of_another_exception_is_met():
    assert (
        judge(seen(crash("LibError", "step failed", chained=(crash(),))), WANTED, SCRIPT).match
        is Match.MATCHED
    )


@pytest.mark.parametrize(
    "failure",
    [
        crash("ValueError"),
        crash(message="mat1 and mat2 shapes cannot be multiplied (14x9 and 16x4)"),
        crash(
            frames=(
                OWN,
                PLACE.model_copy(
                    update={"package": "other", "module_path": "other/x.py", "function": "g"}
                ),
            )
        ),
    ],
)
def test_another_crash_is_another_failure(failure):
    assert judge(seen(failure), WANTED, SCRIPT).match is Match.OTHER


def test_a_program_that_raises_the_words_itself_shows_nothing():
    script = Script(files={"repro.py": f'raise RuntimeError("{MESSAGE}")\n'})
    own = Frame(path="repro.py", function="<module>", line=1, code=script.source.strip())
    wanted = WANTED.model_copy(update={"frame": "", "function": ""})
    assert judge(seen(crash(frames=(own,))), wanted, script).match is Match.OTHER


@pytest.mark.parametrize(
    ("file", "roots", "match"),
    [
        ("/c/tree/lib/linear.py", ("/c/tree", "/c/tree/src"), Match.MATCHED),
        ("/c/tree/src/lib/linear.py", ("/c/tree", "/c/tree/src"), Match.MATCHED),
        ("/c/tree/tests/lib/linear.py", ("/c/tree", "/c/tree/src"), Match.OTHER),
        ("/c/treelike/lib/linear.py", ("/c/tree",), Match.OTHER),
        ("/c/tree/lib/linear.py", (), Match.OTHER),
    ],
)
def test_what_a_clone_on_the_path_raises_is_a_failure_of_the_library(file, roots, match):
    place = f'  File "{file}", line 9, in forward\n    raise RuntimeError(message)\n'
    trace = f'Traceback (most recent call last):\n  File "repro.py", line 2, in <module>\n    lib.go()\n{place}RuntimeError: {MESSAGE}\n'
    run = observe(RunResult(exit_code=1, stderr=trace, seconds=1.0), roots)
    assert judge(run, WANTED, SCRIPT).match is match
    assert (
        Environment(
            id="e",
            python="3",
            interpreter="p",
            commit="c",
            variables={"PYTHONPATH": ":".join(roots)},
        ).roots
        == roots
    )


def test_the_reporters_own_check_of_computed_values_counts():
    script = Script(files={"repro.py": 'x = lib.go()\nassert x == x, "x is NaN"\n'})
    own = Frame(path="repro.py", line=2, code='assert x == x, "x is NaN"')
    failure = Failure(exception="AssertionError", message="x is NaN", frames=(own,))
    assert (
        judge(
            seen(failure), CrashSignature(exception="AssertionError", message="x is NaN"), script
        ).match
        is Match.MATCHED
    )


def test_a_bare_assertion_is_known_by_its_line():
    wanted = CrashSignature(exception="AssertionError", checks=("assert a == b",))
    right, wrong = (
        Frame(path="repro.py", line=1, code=code) for code in ("assert a == b", "assert c")
    )
    assert (
        judge(
            seen(Failure(exception="AssertionError", message="", frames=(right,))), wanted, SCRIPT
        ).match
        is Match.MATCHED
    )
    assert (
        judge(
            seen(Failure(exception="AssertionError", message="", frames=(wrong,))), wanted, SCRIPT
        ).match
        is Match.OTHER
    )


def test_a_clean_end_is_absent():
    assert judge(seen(output="ok"), WANTED, SCRIPT).match is Match.PASSED


def test_a_failure_of_the_environment_comes_before_a_verdict():
    found = judge(
        seen(crash("ModuleNotFoundError", "No module named 'captum'", frames=(OWN,))),
        WANTED,
        SCRIPT,
    )
    assert found.match is Match.SETUP_FAILURE
    assert found.setup_failure is not None
    assert found.setup_failure.module == "captum"


@pytest.mark.parametrize(
    ("exception", "message"),
    [("EOFError", ""), ("RuntimeError", "DataLoader worker (pid(s) 7) exited unexpectedly")],
)
def test_what_ends_a_child_first_is_seen_behind_its_parents_broken_pipe(exception, message):
    child = crash(
        "ModuleNotFoundError",
        "No module named 'captum'",
        swallowed=True,
        bases=("ImportError", "Exception", "BaseException"),
    )
    found = judge(seen(crash(exception, message), child), WANTED, SCRIPT)
    assert found.match is Match.SETUP_FAILURE
    assert found.setup_failure.module == "captum"
    other = judge(seen(crash("KeyError", "'x'"), child), WANTED, SCRIPT)
    assert other.match is Match.OTHER, "what a program handles is its own business"


def test_the_reported_missing_module_is_no_setup_failure():
    wanted = CrashSignature(exception="ModuleNotFoundError", message="No module named 'captum'")
    assert (
        judge(
            seen(crash("ModuleNotFoundError", "No module named 'captum'", frames=(OWN,))),
            wanted,
            SCRIPT,
        ).match
        is Match.MATCHED
    )


def test_compiled_operators_that_are_missing_here_are_not_the_reported_failure():
    message = "Couldn't load custom C++ ops. This can happen if"
    wanted = CrashSignature(exception="RuntimeError", message=message)
    found = judge(seen(crash(message=message, frames=(OWN,))), wanted, SCRIPT)
    assert found.match is Match.SETUP_FAILURE


def test_a_module_that_the_program_only_mentions_is_found_in_its_output():
    found = judge(seen(output="missing dep: No module named 'jax'", exit_code=2), WANTED, SCRIPT)
    assert found.match is Match.SETUP_FAILURE


OUTPUT = OutputSignature(observed=(("jax:nan",),), expected=(("jax:1.0",),))


@pytest.mark.parametrize(
    ("printed", "match"),
    [
        ("jax: nan", Match.MATCHED),
        ("jax: 1.0", Match.PASSED),
        ("jax: nan\njax: 1.0", Match.PASSED),
        ("nothing", Match.PASSED),
    ],
)
def test_printed_values(printed, match):
    assert judge(seen(output=printed), OUTPUT, SCRIPT).match is match


def test_blanks_are_shown_but_not_compared():
    wanted = OutputSignature(observed=(("x: [1.0,  nan]",),), expected=(("x: [1.0, 2.0]",),))
    met = judge(seen(output="x : [ 1.0, nan ]\n"), wanted, SCRIPT)
    assert (met.match, met.evidence) == (Match.MATCHED, "x : [ 1.0, nan ]")
    absent = judge(seen(output="x : [1.0,2.0]\n"), wanted, SCRIPT)
    assert (absent.match, absent.evidence) == (Match.PASSED, "x : [1.0,2.0]")


PRINTED = OutputSignature(observed=(("loss: 3", "InvalidThing: the value 3 does not fit"),))
RAISED = CrashSignature(exception="pkg.mod.InvalidThing", message="the value 3 does not fit")
LINE = "pkg.mod.InvalidThing: the value 3 does not fit"
UNFIT = crash("InvalidThing", "the value 3 does not fit")


@pytest.mark.parametrize(
    ("run", "wanted", "match"),
    [
        (seen(UNFIT, output="loss: 3"), PRINTED, Match.MATCHED),
        (seen(output="loss: 3\nInvalidThing: the value 3 does not fit"), PRINTED, Match.MATCHED),
        (
            seen(crash("InvalidThing", "there is no such key"), output="loss: 3"),
            PRINTED,
            Match.OTHER,
        ),
        (
            seen(crash("OtherThing", "the value 3 does not fit"), output="loss: 3"),
            PRINTED,
            Match.OTHER,
        ),
        (seen(output="loss: 3"), PRINTED, Match.PASSED),
        (seen(UNFIT), RAISED, Match.MATCHED),
        (seen(output=LINE), RAISED, Match.MATCHED),
        (seen(output=LINE.replace("3", "4")), RAISED, Match.PASSED),
        (seen(), RAISED, Match.PASSED),
        (
            seen(output="lib.FitError: the value 3"),
            RAISED.model_copy(update={"exception": "lib.FitError"}),
            Match.PASSED,
        ),
    ],
)
def test_a_line_that_may_be_either_is_accepted_either_way(run, wanted, match):
    assert judge(run, wanted, SCRIPT).match is match


SUMMARY = ("DataFrame", "KeyError: x", "loss: 3", "ResNet50: top1 71 percent")


@pytest.mark.parametrize(
    ("observed", "exception"),
    [
        ((SUMMARY,), "ResNet50"),
        ((SUMMARY[:2],), "KeyError"),
        ((SUMMARY[:3],), ""),
        ((SUMMARY[:1],), ""),
        ((SUMMARY[:2], ("TimeoutExpired",)), "TimeoutExpired"),
        ((SUMMARY[:2], ("lib.Model:",)), ""),
    ],
)
def test_only_the_last_line_of_an_output_may_be_an_exception(observed, exception):
    reading = freeze.other(OutputSignature(observed=observed))
    assert (reading.member.exception if reading else "") == exception


@pytest.mark.parametrize("chunks", [(SUMMARY[2:3] + SUMMARY[1:2],), (SUMMARY[2:3], SUMMARY[1:2])])
@pytest.mark.parametrize(
    ("printed", "match"), [("loss: 3", Match.MATCHED), ("loss: 4", Match.OTHER), ("", Match.OTHER)]
)
def test_what_stands_above_an_exception_was_printed_before_it(chunks, printed, match):
    wanted = OutputSignature(observed=chunks)
    assert judge(seen(crash("KeyError", "x"), output=printed), wanted, SCRIPT).match is match


def test_one_raised_line_of_several_is_not_the_reported_output():
    wanted = OutputSignature(observed=tuple((line,) for line in SUMMARY))
    assert judge(seen(crash("KeyError", "x")), wanted, SCRIPT).match is Match.OTHER


def test_a_line_that_may_be_either_may_be_staged_in_neither_way():
    raising = Script(
        files={
            "repro.py": "import lib\nprint(lib.go())\nraise lib.InvalidThing('the value 3 does not fit')\n"
        }
    )
    own = Frame(
        path="repro.py",
        function="<module>",
        line=3,
        code="raise lib.InvalidThing('the value 3 does not fit')",
    )
    assert (
        judge(seen(crash("InvalidThing", UNFIT.message, frames=(own,))), PRINTED, raising).match
        is not Match.MATCHED
    )
    printing = Script(files={"repro.py": f"import lib\nlib.go()\nprint({LINE!r})\n"})
    assert judge(seen(output=LINE), RAISED, printing).match is Match.PASSED


def test_a_program_is_left_out_only_when_it_stages_every_reading():
    source = "import lib\nprint('start')\nlib.go()\n"
    assert (
        freeze.self_made(
            source, OutputSignature(observed=(("start", "InvalidThing: it does not fit"),))
        )
        == ""
    )
    assert (
        freeze.self_made(source, OutputSignature(observed=(("start", "Model: it does not fit"),)))
        == "print('start')"
    )
    raising = source + "raise lib.InvalidThing('it does not fit')\n"
    assert freeze.self_made(
        raising, OutputSignature(observed=(("start", "InvalidThing: it does not fit"),))
    )
    assert freeze.self_made(f"print({LINE!r})", RAISED)
    assert freeze.self_made(
        raising.replace("it does", "the value 3 does").replace("'start'", "lib.x()"), RAISED
    )


def test_an_exception_without_a_message_is_another_one_with_one_and_raised_by_the_library():
    wanted = CrashSignature(exception="_queue.Empty")
    met = judge(seen(crash("Empty", "")), wanted, SCRIPT)
    assert (met.match, met.evidence) == (Match.MATCHED, "Empty")
    assert judge(seen(crash("Empty", "no more")), wanted, SCRIPT).match is Match.OTHER
    own = Frame(path="repro.py", function="<module>", line=2, code="raise queue.Empty")
    assert judge(seen(crash("Empty", "", frames=(own,))), wanted, SCRIPT).match is Match.OTHER


@pytest.mark.parametrize(
    ("before", "match"), [("", Match.MATCHED), ("step 0\n" * 20, Match.UNDECIDED)]
)
def test_a_value_of_a_sentence_is_not_looked_for_in_a_long_log(before, match):
    wanted = OutputSignature(observed=(("0",),), expected=(("1",),), within_line=True)
    assert judge(seen(output=before + "hops: 0"), wanted, SCRIPT).match is match


def test_two_values_of_a_sentence_that_are_both_printed_decide_nothing():
    wanted = OutputSignature(observed=(("nan",),), expected=(("1",),), within_line=True)
    both = "statistic=1.0, pvalue=2.0\nstatistic=nan, pvalue=nan"
    assert judge(seen(output=both), wanted, SCRIPT).match is Match.UNDECIDED
    assert judge(seen(output="pvalue=nan"), wanted, SCRIPT).match is Match.MATCHED
    assert judge(seen(output="pvalue=1.0"), wanted, SCRIPT).match is Match.PASSED


def test_the_same_lines_with_other_numbers_decide_nothing():
    assert (
        judge(seen(output="loss 2.5"), OutputSignature(observed=(("loss 1.25",),)), SCRIPT).match
        is Match.UNDECIDED
    )


GRID = "jax: [[inf, inf, inf], [inf, 0.5, 13.8155]]"
REFERENCE = "numpy: [[inf, inf, 103.2789], [inf, 0.0, 13.8155]]"


@pytest.mark.parametrize(
    ("printed", "expected", "match"),
    [
        (GRID, "103.2789", Match.MATCHED),
        (GRID, "", Match.MATCHED),
        ("jax: [[inf, inf, 103.2789], [inf, 0.0, 13.8155]]", "103.2789", Match.PASSED),
        ("jax: [[inf, inf, 103.2789], [inf, 0.0, 13.8155]]", "", Match.UNDECIDED),
        ("jax: [[inf, inf, 7.25], [inf, 0.5, 13.8155]]", "103.2789", Match.UNDECIDED),
        ("jax: [[inf, inf, inf], [0.25, 0.5, 13.8155]]", "103.2789", Match.UNDECIDED),
        ("jax: [[inf, inf, inf], [inf, 0.25, 13.9]]", "103.2789", Match.MATCHED),
        ("jax: [[inf, 3.5, 2.5], [1.5, 0.25, 7.9]]", "", Match.MATCHED),
    ],
)
def test_an_array_whose_numbers_are_known_fails_where_it_was_reported_to(printed, expected, match):
    """Which entries of a random array are non-finite is chance, those of another one are not."""
    wanted = OutputSignature(
        observed=((GRID, REFERENCE),), expected=((expected,),) if expected else ()
    )
    assert judge(seen(output=f"{printed}\n{REFERENCE}\n"), wanted, SCRIPT).match is match


@pytest.mark.parametrize(
    ("second", "match"),
    [("b: [nan, nan, nan, 2.5]", Match.UNDECIDED), ("b: [1.5, 1.5, 1.5, 2.5]", Match.PASSED)],
)
def test_every_array_has_to_come_right(second, match):
    wanted = OutputSignature(
        observed=(("a: [nan, nan, 0.5, 2.5]", "b: [nan, nan, nan, 2.5]"),), expected=(("1.5",),)
    )
    found = judge(seen(output=f"a: [1.5, 1.5, 0.5, 2.5]\n{second}\n"), wanted, SCRIPT).match
    assert found is match


ROWS = ("[0.25, 0.5, 0.75, 1.5]", "[nan, 0.5, nan, 1.5]")


@pytest.mark.parametrize(
    ("printed", "match"),
    [
        (("[0.25, 0.5, 0.75, 1.75]", "[nan, 0.5, nan, 1.75]"), Match.MATCHED),
        (("[0.25, 0.5, 0.75, 1.75]", "[0.25, 0.5, 0.75, 1.75]"), Match.PASSED),
        (
            ("[0.25, 0.5, 0.75, 1.75]", "[0.25, 0.5, 0.75, 1.75]", "[nan, 0.5, nan, 1.75]"),
            Match.UNDECIDED,
        ),
    ],
)
def test_arrays_of_one_form_are_told_apart_by_their_places(printed, match):
    """A reference of the very form of the result, printed before it, is not taken for the
    result.
    """
    wanted = OutputSignature(observed=(ROWS,), expected=(("0.25 and 0.75",),))
    assert judge(seen(output="\n".join(printed)), wanted, SCRIPT).match is match


@pytest.mark.parametrize(
    ("fields", "match"),
    [({"idle": True}, Match.MATCHED), ({"timed_out": True}, Match.UNDECIDED), ({}, Match.PASSED)],
)
def test_a_deadlock_is_idle(fields, match):
    assert judge(seen(**fields), HangSignature(bound_s=20), SCRIPT).match is match


def test_an_endless_loop_is_busy():
    assert (
        judge(seen(timed_out=True), HangSignature(bound_s=20, idle=False), SCRIPT).match
        is Match.MATCHED
    )


def test_a_run_that_was_cut_short_decides_nothing():
    assert judge(seen(timed_out=True, exit_code=None), WANTED, SCRIPT).match is Match.UNDECIDED
    assert judge(seen(oom=True, exit_code=None), WANTED, SCRIPT).match is Match.UNDECIDED


def test_non_finite_values():
    assert (
        judge(seen(output="loss: nan"), NonFiniteSignature(values=("nan",)), SCRIPT).match
        is Match.MATCHED
    )
    assert (
        judge(seen(output="banana 1.0"), NonFiniteSignature(values=("nan",)), SCRIPT).match
        is Match.PASSED
    )


@pytest.mark.parametrize("output", ["", "done", "step a1 of b2"])
def test_a_run_that_prints_no_value_does_not_show_that_all_are_finite(output):
    judgement = judge(seen(output=output), NonFiniteSignature(values=("nan",)), SCRIPT)
    assert judgement.match is Match.UNDECIDED
    assert judgement.reason == "no value was printed"


@pytest.mark.parametrize(("times", "match"), [(1, Match.PASSED), (3, Match.MATCHED)])
def test_a_warning_that_should_come_once(times, match):
    wanted = WarningSignature(
        category="UserWarning", message="define flops_per_batch for this model", at_least=2
    )
    errors = "x.py:1: UserWarning: define flops_per_batch for this model\n" * times
    assert judge(seen(errors=errors), wanted, SCRIPT).match is match


def test_any_of_several_signatures_counts():
    signature = AlternativesSignature(members=(WANTED, OUTPUT))
    found = judge(seen(output="jax: nan"), signature, SCRIPT)
    assert (found.match, found.member) == (Match.MATCHED, 1)


LOGGED = CrashSignature(exception="ValueError", message="no table for the key 'rows'")


def test_an_exception_that_the_library_logs_in_one_line_counts_and_is_called_logged():
    line = "ERROR:lib.tables:could not open: ValueError: no table for the key 'rows'"
    judgement = judge(seen(errors=line), LOGGED, SCRIPT)
    assert judgement.match is Match.MATCHED
    assert "logged" in judgement.reason


REFUSED = "option --use-feature: invalid choice: 'old' (choose from 'fast', 'new')"


@pytest.mark.parametrize(
    ("reported", "fields", "match"),
    [
        (REFUSED, {"errors": f"Usage:\n  tool [options]\n\n{REFUSED}\n"}, Match.MATCHED),
        (REFUSED, {"errors": f"Usage:\n\ntool: error: {REFUSED}\n"}, Match.MATCHED),
        (REFUSED, {"errors": f"{REFUSED}\n", "exit_code": 0}, Match.PASSED),
        (REFUSED, {"errors": "Usage:\n\nno such option: --feature\n"}, Match.OTHER),
        ("", {"errors": "Usage:\n\nno such option: --feature\n"}, Match.OTHER),
    ],
)
def test_the_exit_of_a_command_is_known_by_the_line_it_writes_last(reported, fields, match):
    wanted = CrashSignature(exception="SystemExit", message=reported, frame="lib/parser.py")
    assert judge(seen(**{"exit_code": 2} | fields), wanted, SCRIPT).match is match


def test_an_exit_whose_words_the_program_writes_itself_shows_nothing():
    own = f"import lib, sys\nlib.go()\nprint({REFUSED!r}, file=sys.stderr)\nsys.exit(2)\n"
    wanted = CrashSignature(exception="SystemExit", message=REFUSED)
    run = seen(errors=f"{REFUSED}\n", exit_code=2)
    assert judge(run, wanted, Script(files={"repro.py": own})).match is not Match.MATCHED


def test_a_line_without_a_level_is_no_log_and_a_quoted_place_asks_for_more_than_a_line():
    line = "lib.tables:could not open: ValueError: no table for the key 'rows'"
    assert judge(seen(errors=line), LOGGED, SCRIPT).match is Match.PASSED
    placed = LOGGED.model_copy(update={"places": (Place(file="lib/tables.py", function="open"),)})
    assert judge(seen(errors=f"ERROR:{line}"), placed, SCRIPT).match is Match.PASSED


def test_a_judgement_says_what_each_piece_of_the_exception_said():
    judgement = judge(seen(crash()), WANTED, SCRIPT)
    said = [(piece.what, piece.agrees) for piece in judgement.weighed]
    assert said == [("class", True), ("words", True), ("shapes", True), ("place", True)]
    other = judge(seen(crash(message="mat1 and mat2 differ")), WANTED, SCRIPT)
    assert [piece.agrees for piece in other.weighed] == [True, False]


def test_other_words_in_the_reported_place_decide_nothing():
    """Another release of the library may word it otherwise."""
    placed = WANTED.model_copy(update={"frame": PLACE.module_path})
    found = judge(seen(crash(message="no such option at all")), placed, SCRIPT)
    assert found.match is Match.UNDECIDED
    assert "with another message" in found.reason
    elsewhere = PLACE.model_copy(update={"module_path": "lib/other.py", "path": "lib/other.py"})
    found = judge(seen(crash(message="no such option", frames=(OWN, elsewhere))), placed, SCRIPT)
    assert found.match is Match.OTHER


STYLED = "the operand axes mismatch between query and key"
STYLES = CrashSignature(exception="lib.AxesError", message=STYLED, frame="lib/linear.py")


@pytest.mark.parametrize(
    ("exception", "message", "frame", "match"),
    [
        ("AxesError", "the operand axes mismatched between query and key", PLACE, Match.MATCHED),
        ("AxesError", "operand axes mismatches between the query and a key", PLACE, Match.MATCHED),
        ("AxesError", "the operand axes mismatch between query and value", PLACE, Match.UNDECIDED),
        ("AxesError", "the operand axes unmatched between query and key", PLACE, Match.UNDECIDED),
        ("ValueError", "the operand axes mismatched between query and key", PLACE, Match.OTHER),
        ("AxesError", "the operand axes mismatched between query and key", OWN, Match.OTHER),
    ],
)
def test_words_in_other_forms_are_the_same_in_the_place_of_a_class_of_its_own(
    exception, message, frame, match
):
    found = judge(seen(crash(exception, message, frames=(OWN, frame))), STYLES, SCRIPT)
    assert found.match is match


@pytest.mark.parametrize(
    ("message", "frame", "match"),
    [
        ("Received invalid argument(s): margins", PLACE, Match.MATCHED),
        ("Invalid arguments", PLACE, Match.MATCHED),
        ("the argument is invalid", PLACE, Match.UNDECIDED),
        ("no valid argument", PLACE, Match.UNDECIDED),
        ("Received invalid argument(s): margins", OWN, Match.OTHER),
    ],
)
def test_two_words_of_a_message_suffice_in_the_reported_place(message, frame, match):
    wanted = CrashSignature(
        exception="ValueError", message="invalid argument", frame="lib/linear.py"
    )
    found = judge(seen(crash("ValueError", message, frames=(OWN, frame))), wanted, SCRIPT)
    assert found.match is match


@pytest.mark.parametrize(
    ("frame", "fields", "match"),
    [
        (PLACE, {}, Match.MATCHED),
        (OWN, {}, Match.OTHER),
        (PLACE, {"swallowed": True}, Match.OTHER),
    ],
)
def test_two_words_that_are_all_suffice_where_a_library_ends_the_program(frame, fields, match):
    wanted = CrashSignature(exception="", message="invalid argument")
    words = "Received invalid argument(s): margins"
    observed = seen(crash("ValueError", words, frames=(OWN, frame), **fields))
    assert judge(observed, wanted, SCRIPT).match is match


@pytest.mark.parametrize(
    ("message", "match"),
    [
        ("the operand axes mismatched between query and key", Match.UNDECIDED),
        ("the operand axes mismatch between query and value", Match.UNDECIDED),
        ("no backend is registered for this device", Match.OTHER),
    ],
)
@pytest.mark.parametrize("exception", ["AxesError", "ValueError"])
def test_nearly_the_reported_words_without_a_place_decide_nothing(exception, message, match):
    wanted = CrashSignature(exception=exception, message=STYLED)
    assert judge(seen(crash(exception, message)), wanted, SCRIPT).match is match


def test_an_error_that_autograph_folds_into_a_message_is_known_by_the_error_itself():
    def run(words):
        quoted = (
            f'in user code:\n\n    File "{PLACE.path}", line 3, in forward  *\n        mix(x)\n\n'
            f"    RuntimeError: {words}\n"
        )
        made = {"path": "/tmp/__autograph_1.py", "line": 2, "function": "tf__go", "code": "go()"}
        trace = {
            "main": True,
            "where": "main",
            "error": {"exception": "RuntimeError", "message": quoted, "frames": [made]},
        }
        return observe(
            RunResult(
                exit_code=1,
                stdout="",
                stderr="",
                seconds=1.0,
                artifacts={".reprise/trace-1-main.json": json.dumps(trace).encode()},
            )
        )

    assert judge(run(MESSAGE), WANTED, SCRIPT).match is Match.MATCHED
    assert judge(run("no such branch in this table"), WANTED, SCRIPT).match is not Match.MATCHED


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ('lib.load("data/x.bin")\n', Match.SETUP_FAILURE),
        ('lib.save("data/x.bin")\nlib.load("data/x.bin")\n', Match.MATCHED),
        ("lib.load(lib.DEFAULT)\n", Match.MATCHED),
    ],
    ids=["the reporter's file", "the program's own", "the library's"],
)
def test_a_file_that_only_the_reporter_has_shows_nothing_by_its_absence(source, match):
    message = "[Errno 2] No such file or directory: 'data/x.bin'"
    reported = CrashSignature(exception="FileNotFoundError", message=message)
    script = Script(files={"repro.py": f"import lib\n{source}"})
    observation = seen(crash("FileNotFoundError", message))
    assert judge(observation, reported, script).match is match


def test_a_message_cut_off_in_a_title_is_met_by_the_whole_one():
    cut = CrashSignature(exception="AttributeError", message="'Net' object has no attribute 'siz")
    failure = crash("AttributeError", "'Net' object has no attribute 'size'")
    other = crash("AttributeError", "'Net' object has no attribute 'width'")
    matches = [judge(seen(row), cut, SCRIPT).match for row in (failure, other)]
    assert matches[0] is Match.MATCHED
    assert matches[1] is not Match.MATCHED
