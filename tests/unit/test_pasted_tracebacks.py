"""Tracebacks as people paste them into prose: of notebook cells, on one line, in bold, headless."""

import pytest

from bot.issues.reading.issue import read_issue
from bot.kernel import traceback_frames, tree_programs
from bot.kernel.bug import FenceKind, Issue

LINKED = """```
IndexError                                Traceback (most recent call last)
[/home/me/repo/nb/look.ipynb](vscode-notebook-cell:/home/me/repo/nb/look.ipynb) Cell 19 line 1
     [13](vscode-notebook-cell:/home/me/repo/nb/look.ipynb#X24?line=12) rows = read()
---> [14](vscode-notebook-cell:/home/me/repo/nb/look.ipynb#X24?line=13) row = rows[3]

File [~/repo/lib/core.py:5](https://file+.vscode-resource/repo/lib/core.py:5), in get(items)
      [4](file:///home/me/core.py) def get(items):
----> [5](file:///home/me/core.py)     return items[3]

IndexError: list index out of range
```"""
BARE = """I run the second cell.

IndexError Traceback (most recent call last)
[nb/look.ipynb](vscode-notebook-cell:/x) Cell 19 line 1
---> [14] row = rows[3]

IndexError: list index out of range
"""
ANCHORED = """```
----------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
/home/me/repo/nb/look.ipynb Cell 3 in <cell line: 2>()
      <a href='vscode-notebook-cell:/home/me/look.ipynb#W2?line=0'>1</a> d = {}
----> <a href='vscode-notebook-cell:/home/me/look.ipynb#W2?line=1'>2</a> d["a"]

KeyError: 'a'
```"""
HEADLESS = "```\nnb/look.ipynb Cell 4 line 2\n----> 2 go(1)\n\nValueError: size 1 is odd\n```"


def frames(body):
    (row,) = read_issue(Issue(title="It stops", body=body)).tracebacks
    return row.exception, row.message, [(f.path, f.line, f.function, f.code) for f in row.frames]


@pytest.mark.parametrize(
    ("body", "exception", "first"),
    [
        (LINKED, "IndexError", ("/home/me/repo/nb/look.ipynb", 14, "<module>", "row = rows[3]")),
        (BARE, "IndexError", ("nb/look.ipynb", 14, "<module>", "row = rows[3]")),
        (ANCHORED, "KeyError", ("/home/me/repo/nb/look.ipynb", 2, "<module>", 'd["a"]')),
        (HEADLESS, "ValueError", ("nb/look.ipynb", 2, "<module>", "go(1)")),
    ],
)
def test_the_cell_of_a_notebook_is_a_frame_and_its_notebook_a_program(body, exception, first):
    assert (frames(body)[0], frames(body)[2][0]) == (exception, first)
    tree = {
        "nb/look.ipynb": b'{"cells": [{"cell_type": "code", "source": "x = 1"}]}',
        "other/nb.py": b"",
    }
    bug = read_issue(Issue(title="It stops", body=body))
    (script,) = tree_programs.propose(tree_programs.commands(bug), tree)
    assert script.folder == "nb"


TWO = [
    ("fit.py", 65, "<module>", "trainer.train(30)"),
    ("lib/t.py", 3, "train", "loss = step(batch)"),
]
LAST = "ValueError: batch of odd size"


@pytest.mark.parametrize(
    "body",
    [
        f'```\nTraceback (most recent call last):\n  File "fit.py", line 65, in <module> trainer.train(30)\n  File "lib/t.py", line 3, in train loss = step(batch)\n{LAST}\n```',
        f'I get: Traceback (most recent call last): File "fit.py", line 65, in <module> trainer.train(30) File "lib/t.py", line 3, in train loss = step(batch) {LAST}',
        f'```\nFile "fit.py", line 65, in <module> trainer.train(30) File "lib/t.py", line 3, in train loss = step(batch) {LAST}\n```',
        f'**Traceback (most recent call last):\n  File "fit.py", line 65, in <module>\n    trainer.train(30)\n  File "lib/t.py", line 3, in train\n    loss = step(batch)\n{LAST}**',
        f'**File "fit.py", line 65, in <module>\n    trainer.train(30)\n  File "lib/t.py", line 3, in train\n    loss = step(batch)\n{LAST}**',
        f'**File "fit.py", line 65, in <module>**\n**trainer.train(30)**\n**File "lib/t.py", line 3, in train**\n**loss = step(batch)**\n**{LAST}**',
        f'When it starts:\n\n  File "fit.py", line 65, in <module>\n    trainer.train(30)\n  File "lib/t.py", line 3, in train\n    loss = step(batch)\n{LAST}\n\nThanks',
    ],
)  # fmt: skip
def test_a_traceback_is_read_however_it_was_pasted(body):
    exception, words = LAST.split(": ")
    assert frames(body) == (exception, words, TWO)


@pytest.mark.parametrize(
    "body",
    [
        "**Bold words** and `File` names, line 3, **in it**.",
        'See File "fit.py", line 3 for the loop.',
        "look.ipynb Cell 4 is slow",
        "**ValueErrors are fine**",
    ],
)
def test_other_bold_words_and_places_are_no_traceback(body):
    assert read_issue(Issue(title="It stops", body=body)).tracebacks == ()


@pytest.mark.parametrize(
    ("path", "package", "module"),
    [
        (r"C:\Users\me\Anaconda3\lib\site-packages\torch/nn\modules/module.py", "torch", "torch/nn/modules/module.py"),
        (r"C:\\Users\\me\\lib\\site-packages\\torch\\nn\\init.py", "torch", "torch/nn/init.py"),
        (r"C:\ProgramData\Anaconda3\envs\x\lib\multiprocessing\spawn.py", "<stdlib>", ""),
        (r"D:\work/repo\tools/fit.py", "", ""),
    ],
)  # fmt: skip
def test_a_path_with_mixed_separators_has_its_package(path, package, module):
    row = traceback_frames.frame(path, "3", "go")
    assert (row.package, row.module_path) == (package, module)


def test_a_program_is_found_by_a_path_with_mixed_separators():
    body = f'```\nTraceback (most recent call last):\n  File "D:\\work/repo\\tools/fit.py", line 3, in <module>\n    go()\n{LAST}\n```'
    bug = read_issue(Issue(title="It stops", body=body))
    scripts = tree_programs.propose(tree_programs.commands(bug), {"tools/fit.py": b"go()\n"})
    assert [one.entry for one in scripts] == ["tools/fit.py"]


@pytest.mark.parametrize(
    "text",
    [
        'File "x", line 1, in a b c ' * 2500,
        '**File "x", line 1\n' + "**a**\n" * 9000,
        'File "x", line 1 ' + "Aa.Bb " * 9000,
        "x.ipynb Cell 1 " * 4000,
    ],
)
def test_a_hostile_paste_is_read_in_time(text):
    read_issue(Issue(title="It stops", body=text))


def test_a_program_that_prints_a_traceback_stays_as_it_is():
    """The lines of its text are parts of a literal."""
    frames = r'File "a.py", line 2, in go\n  File "b.py", line 3, in on'
    line = rf"print('Traceback (most recent call last):\n  {frames}\nValueError: no')"
    body = f"```python\nimport lib\n{line}\n```"
    (fence,) = read_issue(Issue(title="It stops", body=body)).fences
    assert line in fence.text


@pytest.mark.parametrize(
    "start", ["...", ".../envs/x/site-packages", 'File "/home/me/x/site-packages', "~/lib"]
)
def test_a_frame_whose_beginning_was_shortened_is_one(start):
    frames = f'{start}/acme/models/net.py", line 12, in forward\n    x = self.go(x)'
    body = f"```\n>>> run(net)\n\n{frames}\n{LAST}\n```\n"
    (row,) = read_issue(Issue(title="It stops", body=body, repository="org/acme")).tracebacks
    assert [(one.module_path, one.line, one.function) for one in row.frames] == [
        ("acme/models/net.py", 12, "forward")
    ]


def test_a_block_of_frames_without_its_first_line_is_no_program():
    body = f'```\n  File "repo/models/nets.py", line 128, in act\n    state = FloatTensor(state)\n{LAST}\n```'
    (fence,) = read_issue(Issue(title="It stops", body=body)).fences
    assert fence.kind is FenceKind.TRACEBACK
    program = 'File "a.py", line 1, in go\nimport lib\nlib.go()\nlib.go(2)\nlib.go(3)\n'
    (fence,) = read_issue(Issue(title="It stops", body=f"```\n{program}```")).fences
    assert fence.kind is not FenceKind.TRACEBACK


def test_a_line_of_prose_about_a_file_is_no_frame():
    body = f"It is in utils.py, line 12, I think.\n\nutils.py, line 12\n\n```\n{LAST}\n```"
    (row,) = read_issue(Issue(title="It stops", body=body)).tracebacks
    assert row.frames == ()


STRAY = """```
Traceback (most recent call last):
  File "run.py", line 3, in <module>
    d["a"]
KeyError: ('a', 'b')
``
```"""
SPAN = """`Traceback (most recent call last):
  File "run.py", line 3, in <module>
    d["a"]
KeyError: ('a', 'b')`
I changed it as follows:
` d.get("a")`"""


@pytest.mark.parametrize("body", [STRAY, SPAN])
def test_marks_that_close_a_block_or_a_span_are_no_part_of_a_message(body):
    assert frames(body)[:2] == ("KeyError", "('a', 'b')")


def test_marks_inside_a_message_stay():
    assert frames(STRAY.replace("('a', 'b')", "no `a`, use `b`"))[1] == "no `a`, use `b`"
