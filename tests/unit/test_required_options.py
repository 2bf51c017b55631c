"""Arguments that a program asks for, where the report starts it without."""

import pytest

from bot.issues.search.required_options import DOCUMENTED, REQUIRED, as_asked, with_arguments
from bot.kernel import tree_programs
from bot.kernel.attempt import Failure, Script
from bot.kernel.bug import Frame, Quote, ShellCommand

PARSER = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("-x", "--number", type=int, required=True)
parser.add_argument("--rate", type=float, required=True)
parser.add_argument("--mode", choices=["fast", "slow"], required=True)
parser.add_argument("--name")
parser.parse_args()
"""
README = """# Acme
Python 3.8 is needed.
    python other.py --size 3
    $ python main.py --data <your data>
    $ python main.py --number 7 --rate=0.5 \\
        --mode fast
"""


def program(*argv: str, readme: str = "", source: str = PARSER) -> tuple[Script, dict[str, bytes]]:
    tree = {"main.py": source.encode(), "other.py": b"", "README.md": readme.encode()}
    command = ShellCommand(argv=("main.py", *argv), quote=Quote(text="main.py"))
    (script,) = tree_programs.propose((command,), tree)
    return script, tree


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        ((), ("--number", "7", "--rate=0.5", "--mode", "fast")),
        (("--rate", "2"), ("--number", "7", "--mode", "fast", "--rate", "2")),
    ],
)
def test_the_readme_gives_what_the_report_leaves_out(
    argv: tuple[str, ...], command: tuple[str, ...]
) -> None:
    script, tree = program(*argv, readme=README)
    fixed = with_arguments(script, tree)
    assert fixed.command == ("main.py", *command)
    assert fixed.fixes[-1].why == DOCUMENTED


def test_without_a_readme_each_required_option_gets_its_plainest_value() -> None:
    script, tree = program("--mode", "slow")
    fixed = with_arguments(script, tree)
    assert fixed.command == ("main.py", "--mode", "slow", "--number", "1", "--rate", "0.1")
    assert fixed.fixes[-1].why == REQUIRED
    assert with_arguments(fixed, tree) is fixed


def test_a_text_is_not_made_up() -> None:
    script, tree = program(source='p.add_argument("--name", required=True)\n')
    assert with_arguments(script, tree) is script


ASKING = "parser.add_argument('-c', '--config')\nassert args.config, words\n"


@pytest.mark.parametrize(
    ("message", "code", "package", "is_asked"),
    [
        ("A file is needed. Add '-c config.json', for example.", "assert args.config, words", "", True),
        ("give it with --config", "raise ValueError(words)", "", True),
        ("give it with --seed", "raise ValueError(words)", "", False),
        ("A file is needed.", "assert args.config, words", "", False),
        ("give it with --config", "raise ValueError(words)", "lib", False),
        ("give it with --config", "load(args.config)", "", False),
    ],
)  # fmt: skip
def test_a_program_that_asks_for_an_option_in_its_own_words_is_started_as_documented(
    message: str, code: str, package: str, *, is_asked: bool
) -> None:
    script, tree = program(source=ASKING, readme="    python main.py -c small.json --rate 1\n")
    frame = Frame(path="main.py", package=package, line=2, code=code)
    failure = Failure(exception="AssertionError", message=message, frames=(frame,))
    fixed = as_asked(script, tree, failure)
    assert (fixed.command == ("main.py", "-c", "small.json", "--rate", "1")) is is_asked
    assert as_asked(fixed, tree, failure) is fixed


def test_of_several_documented_ways_that_of_the_report_is_taken() -> None:
    readme = (
        "    python main.py --mode fast --number 1\n    python main.py --mode slow --number 2\n"
    )
    script, tree = program(readme=readme)
    assert with_arguments(script, tree).command[2] == "fast"
    assert with_arguments(script, tree, "In the Slow mode it ends.").command[2] == "slow"
