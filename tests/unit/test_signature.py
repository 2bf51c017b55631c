"""What a report fixes as its failure before anything runs."""

import pytest

from bot.issues.reading import issue
from bot.issues.signature import freeze as signature_freeze, references
from bot.kernel.bug import (
    AlternativesSignature,
    CrashSignature,
    HangSignature,
    Issue,
    NonFiniteSignature,
    OutputSignature,
    signature_hash,
)

PROGRAM = "```python\nimport lib\nprint(lib.value(3))\n```\n"


def freeze(body, title="lib.value gives a wrong result"):
    return signature_freeze.freeze(
        issue.read_issue(Issue(title=title, body=body, repository="acme/lib"))
    )


@pytest.mark.parametrize(
    ("said", "observed", "expected"),
    [
        ("Output: `0.5`\nExpected: `1.5`", "0.5", "1.5"),
        ("Returns `tensor(0)` but should be `tensor(1)`.", "tensor(0)", "tensor(1)"),
        ("prints `tensor(False)`, should print `tensor(True)`", "tensor(False)", "tensor(True)"),
        ("It returns `nan` instead of `1.0`.", "nan", "1.0"),
    ],
)
def test_values_set_against_each_other(said, observed, expected):
    found = freeze(PROGRAM + said)
    assert isinstance(found, OutputSignature)
    assert (found.observed, found.expected, found.within_line) == (
        ((observed,),),
        ((expected,),),
        True,
    )


def test_blocks_of_output_are_compared_whole():
    found = freeze(
        PROGRAM
        + "\nActual output\n\n```\nvalue: 0.5\n```\n\nExpected output\n\n```\nvalue: 1.5\n```\n"
    )
    assert isinstance(found, OutputSignature)
    assert (found.observed, found.expected, found.within_line) == (
        (("value: 0.5",),),
        (("value: 1.5",),),
        False,
    )


def test_an_output_is_kept_as_it_was_reported_and_contrasted_without_its_blanks():
    same, odd = "final shape : ( 2,  3 )", "got [0.5, nan] for x: 3"
    found = freeze(
        PROGRAM
        + f"\nActual output\n\n```\n{same}\n\n{odd}\n```\n\nExpected output\n\n```\nfinal shape:(2,3)\n```\n"
    )
    assert isinstance(found, OutputSignature)
    assert (found.observed, found.expected) == (((odd,),), ())


@pytest.mark.parametrize("words", ["as expected", "which is correct"])
def test_beside_a_value_that_is_called_right_the_other_one_is_the_failure(words):
    program = (
        "import lib\nd = lib.first\nprint(lib.f(d))  # gives 1. {}\nprint(lib.g(d))  # gives 2.\n"
    )
    body = "The gradient is wrong:\n\n```python\n{}```\n"
    found = freeze(body.format(program.format(words)))
    assert isinstance(found, OutputSignature)
    assert found.observed == (("2",),)
    assert freeze(body.format(program.format("").replace("  # gives 1. ", ""))) is None


@pytest.mark.parametrize("words", ["not as expected", "isn't right", "not correct"])
def test_a_denied_praise_calls_a_value_wrong(words):
    assert references.mark(words) == "wrong"


def test_a_truth_value_beside_its_print_is_a_check():
    found = freeze(
        "The round trip is wrong:\n\n```python\nimport lib\nprint(lib.same(1, 2))  # False\n```\n"
    )
    assert isinstance(found, OutputSignature)
    assert found.observed == (("False",),)


def test_a_frame_of_the_library_is_part_of_a_crash():
    traceback = (
        'Traceback (most recent call last):\n  File "x.py", line 2, in <module>\n    lib.value(3)\n'
        '  File "/v/lib/python3.11/site-packages/lib/core.py", line 9, in value\n    return f()\n'
        "RuntimeError: sizes (2x3) and (4x5) cannot be multiplied\n"
    )
    found = freeze(PROGRAM + f"\n```\n{traceback}```\n", "value crashes")
    assert isinstance(found, CrashSignature)
    assert (found.frame, found.function, found.shapes) == ("lib/core.py", "value", ("2x3", "4x5"))


def test_assertions_of_the_program_are_checks_where_nothing_else_is_shown():
    found = freeze(
        "```python\nimport lib\nx = lib.value(3)\nassert x == 3\nassert lib.other() == 1\n```\n"
    )
    assert isinstance(found, CrashSignature)
    assert found.checks == ("assert x == 3",)


def test_a_hang_is_bounded_by_us_and_not_by_the_reporters_patience():
    found = freeze(
        PROGRAM + "It hangs forever, a deadlock. I waited 20 minutes.", "Deadlock in value"
    )
    assert isinstance(found, HangSignature)
    assert found.bound_s <= 60


def test_a_nan_without_output_is_looked_for_among_the_prints():
    assert isinstance(
        freeze(PROGRAM + "The loss is NaN after the first step.", "NaN loss"), NonFiniteSignature
    )


def test_nothing_to_hold_a_run_against():
    assert freeze("My loss is wrong, please fix.") is None


def test_an_exception_logged_on_the_way_yields_to_values_that_are_contrasted():
    body = (
        PROGRAM
        + "\nActual output\n\n```\nkind: A\n```\n\nExpected output\n\n```\nkind: B\n```\n\nLog:\n\n```\nValueError: some inner thing failed here\n```\n"
    )
    assert not isinstance(freeze(body), CrashSignature | AlternativesSignature)


def test_the_hash_says_whether_two_signatures_are_the_same():
    one, other = (
        freeze(PROGRAM + f"Output: `{value}`\nExpected: `1.5`") for value in ("0.5", "0.6")
    )
    assert one is not None
    assert other is not None
    assert signature_hash(one) == signature_hash(one.model_copy())
    assert signature_hash(one) != signature_hash(other)


TWICE = "t.pivot(index=None)\nt.pivot(index=1)"


@pytest.mark.parametrize(
    ("title", "code", "checks"),
    [
        ("`Table.pivot(index=None)` raises KeyError", "print(t.pivot(index=None))", True),
        ("`Table.pivot(index=None)` raises KeyError", TWICE, False),
        ("`Table.pivot(index=None)` raises KeyError", "print(t.melt(index=None))", False),
        ("`Table.pivot(index=None)` is wrong", "print(t.pivot(index=None))", False),
    ],
)
def test_a_class_alone_is_looked_for_at_the_one_call_of_the_reported_api(title, code, checks):
    body = f"```python\nimport lib\nt = lib.Table()\n{code}\n```\n"
    frozen = signature_freeze.freeze(issue.read_issue(Issue(title=title, body=body)))
    assert (frozen.checks if frozen else ()) == ((code,) if checks else ())


def test_short_names_in_ticks_do_not_hide_the_message():
    body = "All that changes is that `c` is a float; it stops with `ValueError: no such ring`"
    frozen = signature_freeze.freeze(issue.read_issue(Issue(title="Bug in solve", body=body)))
    assert isinstance(frozen, CrashSignature)
    assert (frozen.exception, frozen.message) == ("ValueError", "no such ring")


def test_a_link_is_no_message():
    body = "```python\nimport lib\nlib.interp(1)\n```\n"
    body += "Other dtypes end in a TypeError:\nhttps://github.com/acme/lib/blob/main/a.py#L2357\n"
    frozen = signature_freeze.freeze(
        issue.read_issue(Issue(title="`lib.interp` checks dtypes", body=body))
    )
    assert isinstance(frozen, CrashSignature)
    assert (frozen.exception, frozen.message) == ("TypeError", "")
    assert frozen.checks == ("lib.interp(1)",)


def test_frames_below_an_exception_are_no_part_of_its_message():
    body = """```python
import lib
lib.schema()
# gives KeyError: '__main____Tree-Output__1'
# File ".venv/lib/python3.13/site-packages/lib/schema.py", line 2299, in _add
#   _add(self.definitions[ref])
#        ~~~~~~~~~~~~~~~~^^^^^
```
"""
    frozen = signature_freeze.freeze(issue.read_issue(Issue(title="`lib.schema` fails", body=body)))
    assert isinstance(frozen, CrashSignature)
    assert (frozen.exception, frozen.message) == ("KeyError", "'__main____Tree-Output__1'")
