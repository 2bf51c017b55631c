"""Tests of which a report says in words that they fail: what is run, and what counts."""

import pytest

from bot.issues.judge import judge
from bot.issues.reading.issue import read_issue
from bot.issues.signature.freeze import freeze
from bot.kernel import tree_programs
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import CrashSignature, FailedTestSignature, Issue
from tests.unit.test_judge import seen

TREE = {
    "tests/test_fit.py": b"def test_stop(): pass\nclass TestFit:\n    def test_loss(self): pass\n",
    "tests/test_other.py": b"def test_stop(): pass\ndef test_only_here(): pass\n",
    "tools/test_net.py": b"print('an evaluation')\n",
    "fit.py": b"",
}


def read(body):
    return read_issue(Issue(title="Help", body=body))


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        ("`test_stop` in `test_fit.py` fails.", ["tests/test_fit.py::test_stop"]),
        ("In repo/tests/test_fit.py test_loss and test_stop fail on my machine.",
         ["tests/test_fit.py::test_stop", "tests/test_fit.py::TestFit::test_loss"]),
        ("tests/test_other.py::test_stop does not pass", ["tests/test_other.py::test_stop"]),
        ("The test `test_only_here` is flaky.", ["tests/test_other.py::test_only_here"]),
        ("These tests of tests/test_fit.py fail:\n\n- test_stop\n- TestFit.test_loss\n",
         ["tests/test_fit.py::test_stop", "tests/test_fit.py::TestFit::test_loss"]),
        ("A handful of test_other tests are failing.", ["tests/test_other.py"]),
        ("`test_only_here` passes, but `test_loss` fails.", ["tests/test_fit.py::TestFit::test_loss"]),
    ],
)  # fmt: skip
def test_the_tests_that_words_name_are_run_by_their_ids(body, ids):
    bug = read(body)
    script = tree_programs.propose(tree_programs.commands(bug), TREE)[0]
    assert script.command == ("-m", "pytest", *ids)
    assert script.fixes == ()
    assert isinstance(freeze(bug), FailedTestSignature)


@pytest.mark.parametrize(
    "body",
    [
        "`test_stop` passes.",
        "I added a test `test_stop` that fails without it.",
        "`test_stop` should fail here.",
        "Does `test_stop` fail for you?",
        "test_fit.py is long.",
    ],
)
def test_other_words_about_tests_name_none_that_fails(body):
    assert not isinstance(freeze(read(body)), FailedTestSignature)


def test_a_file_of_tests_is_run_by_pytest_and_an_evaluation_by_python():
    rows = [
        tree_programs.propose(tree_programs.commands(read(f"Running {name} fails.")), TREE)[0].command
        for name in ("test_fit.py", "test_net.py")
    ]  # fmt: skip
    assert rows == [("-m", "pytest", "tests/test_fit.py"), ("tools/test_net.py",)]


def test_tests_that_the_tree_lacks_are_not_run():
    bug = read("`test_absent` fails.")
    assert tree_programs.propose(tree_programs.commands(bug), TREE) == ()


def test_an_assertion_that_the_words_quote_is_what_must_fail():
    signature = freeze(read("`test_stop` in test_fit.py fails at `assert loss < 0.5`."))
    assert isinstance(signature, CrashSignature)
    assert (signature.exception, signature.checks) == ("AssertionError", ("assert loss < 0.5",))


def test_the_error_of_a_test_is_what_must_be_raised():
    signature = freeze(read("`test_stop` in test_fit.py fails with `KeyError: 'loss'`."))
    assert isinstance(signature, CrashSignature)
    assert (signature.exception, signature.message) == ("KeyError", "'loss'")


WANTED = FailedTestSignature(tests=("test_stop",))
PROGRAM = Script(
    files={"test_fit.py": ""},
    entry="test_fit.py",
    command=("-m", "pytest", "test_fit.py::test_stop"),
)


@pytest.mark.parametrize(
    ("printed", "exit_code", "match"),
    [
        ("FAILED test_fit.py::test_stop - assert 3 == 4\n1 failed in 0.1s", 1, Match.MATCHED),
        ("FAILED test_fit.py::TestA::test_stop[3-a] - AssertionError: no", 1, Match.MATCHED),
        ("FAILED test_fit.py::test_stop - KeyError: 'x'", 1, Match.OTHER),
        ("FAILED test_fit.py::test_other - assert 3 == 4", 1, Match.OTHER),
        ("FAILED test_fit.py::test_stop - assert 3 == 4", 0, Match.UNDECIDED),
        ("===== 1 passed in 0.1s =====", 0, Match.PASSED),
        ("===== 1 skipped in 0.1s =====", 0, Match.UNDECIDED),
        ("ERROR test_fit.py::test_stop - KeyError: 'x'", 1, Match.OTHER),
        ("no tests ran in 0.01s", 5, Match.OTHER),
        ("ERROR test_fit.py - ModuleNotFoundError: No module named 'numpy'", 2, Match.SETUP_FAILURE),
    ],
)  # fmt: skip
def test_only_a_failed_assertion_of_the_named_test_counts(printed, exit_code, match):
    run = seen(output=printed, exit_code=exit_code, printed=tuple(printed.splitlines()))
    assert judge(run, WANTED, PROGRAM).match in {
        match,
        Match.UNDECIDED if match is Match.OTHER else match,
    }


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        (["FAILED tests/test_fit.py::test_a - KeyError: 1", "FAILED tests/test_fit.py::test_b[3] - assert False"], Match.MATCHED),
        (["FAILED tests/test_fit.py::test_a - KeyError: 1"], Match.OTHER),
        (["FAILED tests/test_other.py::test_a - assert False"], Match.OTHER),
    ],
)  # fmt: skip
def test_any_failed_assertion_of_a_named_file_of_tests_counts(lines, match):
    wanted = FailedTestSignature(tests=("test_fit",))
    run = seen(output="\n".join(lines), exit_code=1, printed=tuple(lines))
    assert judge(run, wanted, PROGRAM).match is match


def test_what_another_program_prints_is_no_failed_test():
    line = "FAILED test_fit.py::test_stop - assert 3 == 4"
    run = seen(output=line, exit_code=1, printed=(line,))
    other = Script(files={"fit.py": ""}, entry="fit.py", command=("fit.py",))
    assert judge(run, WANTED, other).match is not Match.MATCHED
