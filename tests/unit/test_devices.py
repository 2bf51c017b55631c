"""A value that is wrong on one device: what a CPU shows says nothing about it, and what it shows
too is another one.
"""

import pytest

from bot.issues.reading.issue import read_issue
from tests.unit.test_pipeline import decide
from tests.unit.test_reconstruct import issue, says

PROGRAM = "```python\nimport acme\nx = acme.arange(4).to('mps')\nprint(x.cumsum(0))\n```\n"


@pytest.mark.parametrize(
    ("words", "is_right"),
    [
        ("On the CPU the result is right.", True),
        ("It works fine on CPU.", True),
        ("CPU gives the correct values.", True),
        ("This happens only on CUDA.", True),
        ("Wrong on MPS only.", True),
        ("The outputs differ between CPU and GPU.", True),
        ("CPU and CUDA results are inconsistent.", True),
        ("It does not happen on the CPU.", True),
        ("It doesn't fail on CPU.", True),
        ("It works on the GPU but fails on CPU.", False),
        ("It is not correct on CPU either.", False),
        ("Training on CPU also gives nan.", False),
        ("Not only on GPU.", False),
        ("I use a CPU.", False),
        ("The shapes differ.", False),
    ],
)
def test_a_sentence_that_calls_the_cpu_right_is_read(words, is_right):
    bug = read_issue(issue(f"{words}\n\n{PROGRAM}", "cumsum"))
    assert (bug.cpu_is_right is not None) is is_right


SHOWS = "It prints `tensor([0., 0., 0., 0.])` instead of `tensor([0., 1., 3., 6.])`."


@pytest.mark.parametrize(
    ("words", "printed", "kind"),
    [
        ("On the CPU it is right.", "tensor([0., 0., 0., 0.])", "needs_hardware"),
        ("On the CPU it is right.", "tensor([0., 1., 3., 6.])", "needs_hardware"),
        ("It fails everywhere.", "tensor([0., 0., 0., 0.])", "reproduced"),
    ],
)
def test_a_value_that_the_report_finds_right_on_a_cpu_is_not_confirmed_on_one(words, printed, kind):
    body = f"On MPS the sums are wrong. {words}\n\n{PROGRAM}\n{SHOWS}\n"
    report = decide(issue(body, "cumsum is wrong"), lambda _: says(printed + "\n"))
    assert report.verdict.kind == kind
    if kind == "needs_hardware":
        assert "MPS" in report.verdict.reason
