"""The call that a traceback starts with is made, where the committed file makes another."""

import pytest

from bot.issues.reading.issue import read_issue
from bot.issues.search.quoted_calls import call_as_quoted
from bot.kernel import tree_programs
from bot.kernel.attempt import Script
from bot.kernel.bug import Issue

FILE = """import sys

def demo(n=1):
    print(n)

def demo2(n=2):
    raise ValueError(n)

if __name__ == "__main__":
    size = 3
    demo()
    # demo2()
    demo(
        size
    )
    print("end")
"""


def program(quoted: str, source: str = FILE, entry: str = "demo.py") -> tuple[Script, Script]:
    body = f"""It fails:
```
Traceback (most recent call last):
  File "/home/me/acme/{entry}", line 12, in <module>
    {quoted}
  File "/home/me/acme/{entry}", line 7, in demo2
    raise ValueError(n)
ValueError: 2
```
"""
    bug = read_issue(Issue(title="it fails", body=body))
    (script,) = tree_programs.propose(tree_programs.commands(bug), {entry: source.encode()})
    return script, call_as_quoted(script, bug)


@pytest.mark.parametrize("call", ["demo2()", "demo2(size)", "demo2(n=5)", "demo(7)"])
def test_the_quoted_call_stands_in_place_of_the_files_own(call: str) -> None:
    script, fixed = program(call)
    lines = FILE.splitlines()
    lines[10], lines[12:15] = f"    {call}", ["    pass", "", ""]
    assert fixed.source.splitlines() == lines
    assert fixed.edited == ("demo.py",)
    assert fixed.fixes[-1].what == f"called `{call}` in place of `demo()`, `demo(size)`"
    assert fixed.digest != script.digest


def test_a_form_feed_ends_no_line() -> None:
    source = FILE.replace("\ndef demo2", "\n\x0c\ndef demo2")
    _, fixed = program("demo2()", source)
    lines = source.split("\n")
    lines[11], lines[13:16] = "    demo2()", ["    pass", "", ""]
    assert fixed.source.split("\n") == lines


def test_a_file_that_calls_nothing_makes_the_call_at_its_end() -> None:
    _, fixed = program("demo2()", FILE.partition("if __name__")[0])
    assert fixed.source.endswith("\n\ndemo2()\n")


@pytest.mark.parametrize(
    "call", ["demo()", "demo(size)", "demo2(missing)", "other()", "x = demo2()", "sys.demo2()"]
)
def test_a_call_that_is_made_or_cannot_be_made_changes_nothing(call: str) -> None:
    script, fixed = program(call)
    assert fixed is script
