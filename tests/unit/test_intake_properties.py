"""What holds for any text: no error, quotes that point at real lines, cleaning that is done
once, time that stays bounded.
"""

from __future__ import annotations

import ast
import re
import time

import pytest
from hypothesis import example, given, settings, strategies as st

from bot.issues.reading.code import clean
from bot.issues.reading.issue import read_issue
from bot.issues.reading.markdown import LONGEST, ProseLine, sentences
from bot.kernel.bug import BugReport, FenceKind, Issue, Quote
from bot.kernel.plain_text import readable

PIECES = st.sampled_from(
    [
        "```", "```python\n", "~~~\n", "\n", "\n\n", "    ", "\t", ">>> ", "... ", "In [1]: ", "Out[1]: ", "# ", "### Versions\n", "<!--", "-->", "<details>", "<pre>", "</pre>", "- ", "> ",
        "import torch\n", "x = torch.ones(3)\n", "print(x)  # prints nan\n", "def f(self, ...):\n", "if True:\n", "Traceback (most recent call last):\n", '  File "/a/site-packages/torch/x.py", line 3, in f\n',
        "RuntimeError: shapes (2, 3) and (4, 5)\n", "During handling of the above exception, another exception occurred:\n", "Cell In[3], line 2\n", "----> 2 f()\n", "E   assert 1\n",
        "UserWarning: old\n", "torch 2.1.0 ", "works in ", "fails since ", "!pip install torch==2.0\n", "%matplotlib inline\n", "1 2 nan\n", "returns `nan` instead of `1.0`\n", "This is a sentence about the model.\n",
        "\u201cq\u201d", "\u00a0", "\u200b", "\x1b[31m", "\x00", "\ud800", "\r", "|a|b|\n|-|-|\n", "((((", "'''", '"', "`", "\\", "https://github.com/a/b/files/1 ", "![a](b)",
    ]
)  # fmt: skip
BODIES = st.one_of(
    st.text(max_size=300),
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map("".join),
)


def quotes(found: BugReport) -> list[Quote]:
    several = (
        [w.quote for w in found.warnings]
        + [v.quote for v in (*found.versions, *found.works_in)]
        + [m.quote for m in found.missing]
    )
    return [q for q in (found.kind_quote, found.symptom_quote, *several) if q]


@settings(max_examples=120, deadline=None)
@given(BODIES, st.text(max_size=60))
def test_any_text_is_read_and_every_line_is_real(body: str, title: str) -> None:
    found = read_issue(Issue(title=title, body=body, repository="a/b"))
    lines = readable(body).split("\n")
    for quote in quotes(found):
        assert 0 <= quote.line <= len(lines)
        assert (quote.line > 0) == (quote.source == "body")
    for line in [*(f.line for f in found.fences), *(o.line for o in found.outputs)]:
        assert 1 <= line <= len(lines)
    for traceback in found.tracebacks:
        assert 0 <= traceback.line <= len(lines)
    assert [fence.index for fence in found.fences] == list(range(len(found.fences)))
    assert BugReport.model_validate_json(found.model_dump_json()) == found


@settings(max_examples=120, deadline=None)
@given(BODIES)
@example("```{\npip install 0==0.0")
def test_quoted_words_stand_on_their_line(body: str) -> None:
    found = read_issue(Issue(title="t", body=body, repository="a/b"))
    lines = readable(body).split("\n")
    for quote in quotes(found):
        if quote.source == "body" and quote.text.split():
            line = lines[quote.line - 1]
            shown = re.sub(r"<!--.*?-->|</?\w[^<>]*>", "", line)
            first = quote.text.split()[0].strip("`")
            assert first in line or first in shown


@settings(max_examples=120, deadline=None)
@given(BODIES)
@example(">>>In[0]:0;0()")
def test_cleaning_is_done_once(text: str) -> None:
    once = clean(text.encode("utf-8", "ignore").decode())
    if once.parses and once.evidence == "strong":
        ast.parse(once.text)
        again = clean(once.text)
        assert again.text == once.text
        assert again.fixes == ()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "x = foo(1)",
                "for i in range(3):\n    foo(i)",
                "print(foo(2))",
                "import os",
                "def g(a):\n    return a",
            ]
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_sound_program_is_left_alone(statements: list[str]) -> None:
    code = "import foo\n" + "\n".join(statements)
    found = read_issue(Issue(title="t", body=f"```python\n{code}\n```"))
    assert [(fence.kind, fence.text, fence.fixes) for fence in found.fences] == [
        (FenceKind.PROGRAM, code, ())
    ]


@pytest.mark.parametrize(
    "piece", ["FooError: Bar ", "The `a.B: Cd is gone. ", "Some words of it. "]
)
def test_of_a_long_paragraph_little_is_cut_off(piece: str) -> None:
    text = piece * 1000
    found = [sentence.text for sentence in sentences([ProseLine(text, 1, ())])]
    assert max(map(len, found)) <= LONGEST
    assert len(" ".join(found)) > 0.9 * len(text)


def repeated(piece: str) -> str:
    return (piece * (1_000_000 // len(piece) + 1))[:1_000_000]


@pytest.mark.parametrize(
    "body",
    [
        repeated("The model fails in torch 2.1.0 with an error, it works in 2.0.1.\n"),
        repeated("a"),
        repeated(" "),
        repeated("1.2.3 "),
        repeated("a."),
        repeated("raises a.B: "),
        repeated("FooError: Bar " * 100 + "\n"),
        "```\n" + repeated("pkg.mod.Thing: some words\n"),
        repeated("` "),
        repeated("<!-- a "),
        repeated("<pre>"),
        repeated("- a\n  > "),
        "```\n" + repeated("Traceback (most recent call last):\n"),
        "```\n" + repeated('  File "/a/b.py", line 3, in f\n    foo()\n'),
        "```python\nimport x\n" + repeated("This is a sentence of the prose kind\nx = 1\n"),
        "```\n" + repeated(">>> foo(\n"),
        "```python\n" + "(" * 100_000,
        "```python\n" + "x = " + "-" * 60_000 + "1",
        "```python\n" + "\n".join(" " * (i % 300) + "x = 1" for i in range(5000)),
    ],
    ids=lambda body: repr(body[:24]),
)
def test_time_is_bounded(body: str) -> None:
    started = time.process_time()
    read_issue(Issue(title="t", body=body, repository="a/b"))
    assert time.process_time() - started < 30
