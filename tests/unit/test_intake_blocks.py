"""Blocks of a report: their kind by content, their role by the words around them."""

from __future__ import annotations

import pytest

from bot.issues.reading.code import lift
from bot.issues.reading.issue import read_issue
from bot.issues.reading.markdown import LONGEST_LEAD, MOST_BLOCKS, parse
from bot.kernel.bug import MOST_BODY, BugReport, FenceKind, Issue, Role


def report(body: str, title: str = "It breaks", repository: str = "pytorch/pytorch") -> BugReport:
    return read_issue(Issue(title=title, body=body, repository=repository))


@pytest.mark.parametrize(
    ("tag", "text", "kind"),
    [
        ("", "", FenceKind.EMPTY),
        ("python", "# Your code here", FenceKind.EMPTY),
        ("", "#- PyTorch Version (e.g., 2.5):\n#- OS (e.g., Linux):", FenceKind.EMPTY),
        ("", "_No response_", FenceKind.EMPTY),
        ("", "torch==2.0.1\nnumpy>=1.20\n# comment\n-e .", FenceKind.REQUIREMENTS),
        (
            "",
            "PyTorch version: 2.0.1\nIs debug build: False\n[pip3] torch==2.0.1",
            FenceKind.ENVIRONMENT,
        ),
        (
            "",
            "Package    Version\n---------- -------\nnumpy      1.26.4\ntorch      2.1.0",
            FenceKind.ENVIRONMENT,
        ),
        ("", "jax: 0.4.20\njaxlib: 0.4.20\npython: 3.11.4", FenceKind.ENVIRONMENT),
        (
            "",
            "sys.platform: linux\nPython: 3.8.18 (default)\nPyTorch: 1.13.1\nMMEngine: 0.10.3",
            FenceKind.ENVIRONMENT,
        ),
        ("", "k: 1\n  scipy: 1.0\n  jax: 1.0\n\nk: 2\n  scipy: 1.0\n  jax: nan", FenceKind.OUTPUT),
        ("yaml", "model:\n  depth: 50", FenceKind.CONFIG),
        ("", "model:\n  depth: 50\ndata:\n  - a\n  - b", FenceKind.CONFIG),
        ("", '{"lr": 0.1, "epochs": 3}', FenceKind.CONFIG),
        ("", "[tool.x]\nlr = 0.1\n", FenceKind.CONFIG),
        ("diff", "-a\n+b", FenceKind.DIFF),
        ("", "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b", FenceKind.DIFF),
        ("bash", "CUDA_VISIBLE_DEVICES=0 python train.py --epochs 10", FenceKind.SHELL),
        ("", "pip install torch==2.0.1\npython train.py", FenceKind.SHELL),
        ("", "Epoch 1/10: loss 0.69\nEpoch 2/10: loss 0.69", FenceKind.LOG),
        ("", "2024-01-01 10:00:00 INFO start\n2024-01-01 10:00:01 INFO stop", FenceKind.LOG),
        ("", "RuntimeError: shape mismatch", FenceKind.TRACEBACK),
        ("", "a,b,c\n1,2,3\n4,5,6\n7,8,9", FenceKind.DATA),
        ("shell", "import os\nos.environ['A'] = 'b'", FenceKind.PROGRAM),
        ("text", "P(X <= k)", FenceKind.OUTPUT),
        ("", "loss nan\nAssertionError: loss is NaN", FenceKind.OUTPUT),
    ],
)
def test_kind_by_content(tag: str, text: str, kind: FenceKind) -> None:
    assert [fence.kind for fence in report(f"words\n\n```{tag}\n{text}\n```\n").fences] == [kind]


CODE = "```python\nimport torch\nprint(torch.ones(1))\n```\n"


@pytest.mark.parametrize(
    ("before", "role"),
    [
        ("### To Reproduce\n\n", Role.REPRODUCER),
        ("## MWE\n", Role.REPRODUCER),
        ("**Minimal example**\n\n", Role.REPRODUCER),
        ("Steps to reproduce:\n", Role.REPRODUCER),
        ("## Proposed fix\n\n", Role.FIX),
        ("As a workaround one can write:\n\n", Role.FIX),
        ("The line should be changed to:\n", Role.FIX),
        ("This works fine:\n\n", Role.CONTRAST),
        ("The same code in pure PyTorch works:\n", Role.CONTRAST),
        ("This works in 2.0 but fails in 2.1:\n", Role.REPRODUCER),
        ("In `torch/nn/modules/linear.py`:\n", Role.SOURCE),
        ("The current implementation is\n", Role.SOURCE),
        ("Maybe a suitable fix is to change the words of the docstring?\n\n", Role.UNSTATED),
        ("", Role.UNSTATED),
    ],
)
def test_role_of_a_program(before: str, role: Role) -> None:
    assert report(before + CODE).fences[0].role is role


@pytest.mark.parametrize(
    ("before", "role"),
    [
        ("### Expected behavior\n\n", Role.EXPECTED),
        ("Expected output:\n", Role.EXPECTED),
        ("I would expect\n", Role.EXPECTED),
        ("### Actual result\n", Role.OBSERVED),
        ("Error:\n", Role.OBSERVED),
        ("I get\n", Role.OBSERVED),
        ("Got\n", Role.OBSERVED),
        ("## Error messages and logs\n", Role.OBSERVED),
    ],
)
def test_role_of_an_output(before: str, role: Role) -> None:
    assert report(f"{before}```\nloss: 3\n```\n").fences[0].role is role


def test_sections_of_a_form_end_those_of_the_author() -> None:
    form = "### Describe the bug\n\n## Suggested fix\nwords\n\n### How to reproduce the bug\n\n"
    assert report(form + CODE).fences[0].role is Role.REPRODUCER
    assert parse(form + CODE).codes[0].headings == ("How to reproduce the bug",)


@pytest.mark.parametrize(
    "text",
    [
        "def forward(self, x):\n    return self.net(x)",
        "self.key = Linear(3, bias=bias)",
        "if clip and handles(optimizer):\n    raise RuntimeError('x')",
    ],
)
def test_a_method_without_its_class_is_quoted_source(text: str) -> None:
    assert report(f"words here.\n\n```python\n{text}\n```\n").fences[0].role is Role.SOURCE


def test_lead_and_line_point_into_the_body() -> None:
    body = "intro\n\nThis is\nthe lead:\n```python\nimport os\nos.getcwd()\n```\n"
    assert parse(body).codes[0].lead == "This is\nthe lead:"
    assert body.split("\n")[report(body).fences[0].line - 1] == "import os"


@pytest.mark.parametrize(
    "body",
    [
        "word " * 10_000 + "```print(1)```",
        "words\n" * 5_000 + "```\nprint(1)\n```\n",
        "word " * 10_000 + "\n\nimport torch\nx = torch.ones(3)\nprint(x)\n",
        "# " + "Title " * 10_000 + "\n```\nprint(1)\n```\n",
    ],
    ids=["inline", "fence", "unfenced", "heading"],
)
def test_what_stands_before_a_block_is_kept_up_to_a_limit(body: str) -> None:
    code = lift(parse(body)).codes[0]
    assert len(code.lead) <= LONGEST_LEAD
    assert all(len(heading) <= 300 for heading in code.headings)


def test_of_many_blocks_the_first_are_read_and_the_reader_is_told() -> None:
    found = report("".join(f"Step {n}:\n```python\nf({n})\n```\n" for n in range(150)))
    assert len(found.fences) == MOST_BLOCKS
    assert found.fences[-1].text == "f(99)"
    assert found.unread == ("The bug report has 150 blocks of code; only the first 100 were read.",)
    assert report("```python\nf(1)\n```").unread == ()


def test_of_a_long_body_the_beginning_is_read_and_the_reader_is_told() -> None:
    found = report("a" * MOST_BODY + "\n\n```python\nf(1)\n```\n")
    assert found.fences == ()
    assert found.unread == ("Only the first 65,536 characters of the bug report were read.",)
    assert report("\n" * 20_000).unread == (
        "Only the first 12,000 lines of the bug report were read.",
    )


def test_one_line_of_triple_ticks() -> None:
    found = report(
        "I get ```RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)``` here"
    )
    assert found.fences[0].kind is FenceKind.TRACEBACK
    assert found.tracebacks[0].message == "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"
