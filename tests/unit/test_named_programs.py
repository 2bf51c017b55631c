"""What a report names in words as the program that was run, and the file of a tree that it is."""

import pytest

from bot.issues import triage
from bot.issues.reading.issue import read_issue
from bot.issues.reproduce import plan
from bot.kernel import tree_programs
from bot.kernel.bug import Issue
from bot.kernel.tree_programs import GUESSED
from tests.support.jobs import issue_job

TREE = {
    "fit.py": b"print(1)\n",
    "eval/score.py": b"import fit\n",
    "scripts/big/fit.sh": b"python fit.py --size 5\n",
    "lib/__init__.py": b"",
    "lib/core.py": b"from .parts import part\n",
    "lib/parts.py": b"part = 1\n",
    "a/run.py": b"",
    "b/run.py": b"",
    "notes/look.ipynb": b'{"cells": [{"cell_type": "code", "source": ["x = 1"]}]}',
}


def read(body, title="It fails with KeyError: 'x'"):
    return read_issue(Issue(title=title, body=body))


def proposed(body, tree=TREE):
    return tree_programs.propose(tree_programs.commands(read(body)), tree)


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("I ran the file: **repo-master/scripts/big/fit.sh**", ("fit.py", "--size", "5")),
        ("I ran the file:\n\n**repo/eval/score.py**\n\nand got it.", ("eval/score.py",)),
        ("The error comes when running `fit.py` on one GPU.", ("fit.py",)),
        ("when run the score.py I meet this error", ("eval/score.py",)),
        ("In the `fit.py` file, it stops.", ("fit.py",)),
        ("`/home/me/work/repo/eval/score.py` raises it.", ("eval/score.py",)),
        (r"D:\work\repo-main\eval\score.py crashes", ("eval/score.py",)),
        ("Executing lib/core.py does not work.", ("-m", "lib.core")),
        ("I ran this:\n```\n./repo/eval/score.py\n```\n", ("eval/score.py",)),
        ("_fit.py_ fails", ("fit.py",)),
        ("I ran `fit.py` with `--x 1 --y 2` and got it.", ("fit.py", "--x", "1", "--y", "2")),
        ("I run fit.py using the following arguments: `--x 1`", ("fit.py", "--x", "1")),
    ],
)
def test_a_script_that_the_words_name_is_started_without_arguments(body, command):
    (script,) = proposed(body)
    assert script.command == command
    assert [fix.why for fix in script.fixes] == [GUESSED]


def test_a_notebook_is_found_by_the_end_of_its_path():
    (script,) = proposed("The notebook work/repo/notes/look.ipynb stops in its first cell.")
    assert script.folder == "notes"


@pytest.mark.parametrize(
    "body",
    [
        "I cannot find fit.py in the repository.",
        "I did not run fit.py.",
        "What is fit.py for? See setup.py and README.md.",
        "I copied fit.py to another folder.",
        "It fails in /opt/lib/python3.9/site-packages/torch/fit.py for me.",
        "Running run.py fails.",
        "Running absent.py fails.",
        "Running ../../etc/passwd.py fails.",
    ],
)
def test_a_file_that_was_not_run_or_that_may_be_several_is_not_started(body):
    assert proposed(body) == ()


def test_a_named_script_goes_after_the_commands_and_the_frames_of_the_report():
    body = "Running score.py fails, as does fit.py.\n\n```\npython fit.py --size 3\n```\n"
    assert [one.command for one in proposed(body)] == [
        ("fit.py", "--size", "3"),
        ("eval/score.py",),
    ]
    trace = "```\nTraceback (most recent call last):\n  File \"/x/a/run.py\", line 1, in <module>\n    f()\nKeyError: 'x'\n```"
    assert [one.entry for one in proposed(f"Running fit.py fails.\n{trace}")] == ["a/run.py", "fit.py"]  # fmt: skip


def test_a_snippet_and_a_library_leave_named_files_alone():
    snippet = "Running fit.py fails.\n\n```python\nimport lib\nlib.go({}['x'])\n```\n"
    issue = Issue(title="KeyError: 'x'", body=snippet, repository="acme/repo")
    assert plan(issue_job(issue, repo="/clone")).commands == ()
    named = issue.model_copy(update={"body": "Running fit.py fails."})
    assert [one.argv for one in plan(issue_job(named, repo="/clone")).commands] == [("fit.py",)]
    library = named.model_copy(update={"repository": "pytorch/pytorch"})
    assert plan(issue_job(library, repo="/clone")).commands == ()


@pytest.mark.parametrize(
    ("frame", "entry", "starts"),
    [
        ("pool/__init__.py", "first", False),
        ("train.py", "main", True),
        ("pool/__init__.py", "<module>", True),
    ],
)
def test_a_function_of_a_file_that_the_snippet_imports_starts_nothing(
    frame: str, entry: str, starts: bool
) -> None:
    """A traceback whose first frames are left out begins within the library."""
    body = (
        "```python\nimport pool\npool.first([])\n```\n\n```\nTraceback (most recent call last):\n"
        f'  File "/x/{frame}", line 2, in {entry}\n    return values[0]\n'
        "IndexError: list index out of range\n```\n"
    )
    tree = {
        "pool/__init__.py": b"def first(values):\n    return values[0]\n",
        "train.py": b"import pool\ndef main():\n    pool.first([])\nmain()\n",
    }
    bug = read(body)
    scripts = proposed(body, tree)
    snippet = plan(issue_job(Issue(title="first fails", body=body))).script
    assert [script.entry for script in scripts] == [frame]
    assert snippet is not None
    assert tree_programs.starts_in(bug, scripts, snippet, tree) is starts


def test_a_long_text_is_read_in_time():
    for text in ("a/" * 30_000, "x.py " * 12_000, "running " + "the " * 15_000 + "x.py"):
        assert len(read(text).named_programs) <= 3


@pytest.mark.parametrize(
    "body",
    [
        "python fit.py stops",
        "Running fit.py stops.",
        "see notes/look.ipynb",
        "ValueError: bad size",
    ],
)
def test_who_names_a_program_or_an_error_is_not_asked_for_one(body):
    """With a clone at hand, what the rules cannot use is for a reader."""
    draft = plan(issue_job(Issue(title="Help", body=body), repo="/clone"))
    assert draft.verdict is not None
    assert triage.is_for_reader(draft.verdict)


def test_who_names_nothing_is_asked():
    draft = plan(issue_job(Issue(title="Help", body="It stops."), repo="/clone"))
    assert draft.verdict is not None
    assert draft.verdict.kind == "needs_info"


@pytest.mark.parametrize(
    "body",
    [
        "I ran fit.py. The error was related to the import of `Part` from the `pool.kinds` library.",
        "In fit.py importing Part from pool.kinds is not possible: ImportError.",
    ],
)
def test_an_import_that_is_put_in_words_is_the_statement(body):
    bug = read(body, title="It fails")
    assert bug.tracebacks[0].message == "cannot import name 'Part' from 'pool.kinds'"
    assert bug.named_programs[0].argv[1] == "from pool.kinds import Part"


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("It is raised in `agent.py`.", ("rl/train.py",)),
        ("It is raised in `solo.py`.", ("rl/solo.py",)),
        ("Running rl/tool.py crashes", ("rl/tool.py",)),
    ],
)
def test_a_file_that_only_defines_is_started_by_what_uses_it(body, command):
    main = b"import other\nif __name__ == '__main__':\n    print(1)\n"
    tree = {
        "rl/agent.py": b"SIZE = 3\nclass Agent:\n    pass\n",
        "rl/solo.py": b"class Solo:\n    pass\n",
        "rl/tool.py": b"from agent import Agent\nprint(Agent)\n",
        "rl/other.py": b"from agent import Agent\n",
        "rl/train.py": main,
        "rl/a_test.py": main,
        "main.py": main,
    }
    (script,) = proposed(body, tree)
    assert script.command == command
    assert [fix.why for fix in script.fixes] == [GUESSED]


def test_a_traceback_without_its_last_line_names_the_program():
    body = """There is an ImportError: cannot import name Linear.
Traceback (most recent call last):
  File "fit.py", line 2, in <module>
    from lib import Linear

Could you help?"""
    (script,) = proposed(body)
    assert script.command == ("fit.py",)
