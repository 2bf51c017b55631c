"""What is wrong on one device or system: what another shows says nothing about it, and a value that
a CPU shows too is another one.
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


FAILS = "```python\nimport acme\nacme.go(3)\n```\n\nRuntimeError: go is bad for 3\n"
BAD = says(
    "",
    1,
    'Traceback (most recent call last):\n  File "repro.py", line 2, in <module>\n    acme.go(3)\nRuntimeError: go is bad for 3\n',
)


@pytest.mark.parametrize(
    ("words", "system"),
    [
        ("On Windows it fails. On Linux it works.", "Windows"),
        ("It fails on macOS, but on Linux it works.", "macOS"),
        ("It fails on Windows and on Linux.", ""),
        ("It fails everywhere.", ""),
    ],
)
def test_what_passes_on_another_system_is_not_refuted(words, system):
    subject = issue(f"{words}\n\n{FAILS}", "go fails")
    assert read_issue(subject).system == system
    passes = decide(subject, lambda _: says("fine\n")).verdict
    assert passes.kind == ("inconclusive" if system else "not_reproduced")
    assert system in passes.reason
    assert decide(subject, lambda _: BAD).verdict.kind == "reproduced"


@pytest.mark.parametrize(
    ("words", "is_set"),
    [
        ("With `TORCH_LOGS=1` set, this fails.", True),
        ("Without `TORCH_LOGS=1` this fails.", False),
        ("`TORCH_LOGS=1` is a workaround.", False),
        ("I have `API_TOKEN=1`.", False),
    ],
)
def test_a_variable_that_a_sentence_sets_is_set(words, is_set):
    seen = []
    decide(issue(f"{words}\n\n{FAILS}", "go fails"), lambda spec: seen.append(spec) or BAD)
    source = b"".join(seen[0].files.values()).decode()
    assert ("os.environ['TORCH_LOGS'] = '1'" in source) is is_set
    assert "API_TOKEN" not in source
