"""What `argparse` refuses is a failure like any other: read from a report, judged by its exit."""

import argparse

import pytest

from bot.issues.judge import judge
from bot.issues.reading.issue import read_issue
from bot.issues.signature.freeze import freeze
from bot.kernel.attempt import Match, Script
from bot.kernel.bug import CrashSignature, Issue, ScriptFix
from bot.kernel.tree_programs import GUESSED
from bot.kernel.usage_errors import refused_arguments, usage_error
from tests.unit.test_judge import seen

UNKNOWN = "fit.py: error: unrecognized arguments: --depth 3"
ABSENT = "fit.py: error: the following arguments are required: --root, --out"
CHOICE = "fit.py: error: argument --mode: invalid choice: 'x' (choose from 'a', 'b')"
USAGE = "usage: fit.py [-h] [--lr LR]\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"```\npython fit.py --depth 3\n```\n\n```\n{USAGE}{UNKNOWN}\n```", UNKNOWN),
        (f"```\n$ python fit.py\n{USAGE}{ABSENT}\n```", ABSENT),
        (f"python fit.py --depth 3\n\n**{UNKNOWN}**", UNKNOWN),
        (f"`python fit.py` ends in `{ABSENT}`. Why?", ABSENT),
        (f"I get {CHOICE} when I start it.", CHOICE),
        ("Then error: argument --lr: invalid float value: 'x'", "error: argument --lr: invalid float value: 'x'"),
        ("fit.py train: error: argument --lr: expected one argument", "fit.py train: error: argument --lr: expected one argument"),
    ],
)  # fmt: skip
def test_a_usage_error_is_the_failure_that_a_report_shows(body, message):
    signature = freeze(read_issue(Issue(title="It does not start", body=body)))
    assert isinstance(signature, CrashSignature)
    assert (signature.exception, signature.message) == ("SystemExit", message)


@pytest.mark.parametrize(
    "body",
    [
        "```\nerror: could not build wheels for x\n```",
        "There was an error: unrecognized thing.",
        "git: error: pathspec 'x' did not match",
        "It should say error: argument x is bad",
    ],
)
def test_other_words_of_an_error_are_no_usage_error(body):
    rows = read_issue(Issue(title="It does not start", body=body)).tracebacks
    assert all(row.exception != "SystemExit" for row in rows)


@pytest.mark.parametrize("argv", [["--depth", "3"], ["--lr", "x"], ["--mode", "x"], ["--lr"], []])
def test_what_the_module_itself_writes_is_known(argv, capsys):
    parser = argparse.ArgumentParser(prog="fit.py")
    parser.add_argument("--lr", type=float, required=not argv)
    parser.add_argument("--mode", choices=["a", "b"])
    with pytest.raises(SystemExit):
        parser.parse_args(argv)
    assert usage_error(capsys.readouterr().err.splitlines()[-1]).startswith("fit.py: error: ")


def test_a_line_without_an_end_is_read_in_time():
    assert usage_error("error: " + "a.py " * 20_000) == ""


def program(*argv, fixes=()):
    files = {"fit.py": "import argparse\n"}
    return Script(files=files, entry="fit.py", command=("fit.py", *argv), fixes=fixes)


GUESS = (ScriptFix(what="`fit.py` was started without arguments", why=GUESSED),)


@pytest.mark.parametrize(
    ("reported", "written", "exit_code", "script", "match"),
    [
        (UNKNOWN, UNKNOWN, 2, program("--depth", "3"), Match.MATCHED),
        (UNKNOWN, "fit.py: error: unrecognized arguments: --width 3", 2, program("--depth", "3"), Match.OTHER),
        (UNKNOWN, UNKNOWN, 1, program("--depth", "3"), Match.OTHER),
        (UNKNOWN, UNKNOWN, 0, program("--depth", "3"), Match.PASSED),
        (UNKNOWN, "done", 0, program("--depth", "3"), Match.PASSED),
        (UNKNOWN, "done", 0, program("--lr", "3"), Match.UNDECIDED),
        (ABSENT, ABSENT, 2, program("--lr", "3"), Match.MATCHED),
        (ABSENT, ABSENT, 2, program(fixes=GUESS), Match.SETUP_FAILURE),
        (ABSENT, "fit.py: error: the following arguments are required: --lr", 2, program(), Match.SETUP_FAILURE),
        (CHOICE, CHOICE.replace("'a', 'b'", "a, b"), 2, program("--mode", "x"), Match.MATCHED),
        (CHOICE, CHOICE.replace("--mode", "--kind"), 2, program("--mode", "x"), Match.OTHER),
    ],
)  # fmt: skip
def test_a_usage_error_counts_by_its_words_and_its_status(
    reported, written, exit_code, script, match
):
    wanted = CrashSignature(exception="SystemExit", message=reported)
    run = seen(errors=f"{USAGE.strip()} [--x]\n{written}\n", exit_code=exit_code)
    judgement = judge(run, wanted, script)
    assert judgement.match in {match, Match.SETUP_FAILURE if match is Match.OTHER else match}


def test_words_that_a_snippet_writes_itself_are_no_usage_error():
    own = f"import lib, sys\nlib.go()\nprint({UNKNOWN!r}, file=sys.stderr)\nsys.exit(2)\n"
    wanted = CrashSignature(exception="SystemExit", message=UNKNOWN)
    run = seen(errors=f"{UNKNOWN}\n", exit_code=2)
    assert judge(run, wanted, Script(files={"repro.py": own})).match is not Match.MATCHED


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("I get an unrecognized arguments: --ids 0 1 error for fit.", "error: unrecognized arguments: --ids 0 1"),
        ("It ends with unrecognized argument `--ids`.", "error: unrecognized arguments: --ids"),
        ("Unrecognized arguments error: --a 1, when I train", "error: unrecognized arguments: --a 1"),
        ("with unrecognized arguments, see below", ""),
    ],
)  # fmt: skip
def test_a_sentence_names_the_arguments_that_are_refused(line: str, message: str) -> None:
    assert usage_error(line, in_prose=True) == message
    assert usage_error(line) == ""
    assert refused_arguments(message) == tuple(message.split()[3:])
