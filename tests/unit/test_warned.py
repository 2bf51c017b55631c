"""Warnings are counted in whatever form they are printed, and nothing else is."""

from __future__ import annotations

import pytest

from bot.issues.signature.wording import lines
from bot.kernel.bug import WarningSignature

LIBRARY = "/e/site-packages/lightning/monitor.py:139: When using the monitor, define `flops_per_batch` in your module."
PYTHON = "/e/site-packages/lightning/monitor.py:139: UserWarning: When using the monitor, define `flops_per_batch` in your module."
ECHO = '  rank_zero_warn("When using the monitor, define `flops_per_batch` in your module.")'


@pytest.mark.parametrize(
    "message",
    ["flops_per_batch", "define flops_per_batch in your module", "When using the monitor, define"],
)
@pytest.mark.parametrize(
    ("printed", "times"),
    [([LIBRARY] * 3, 3), ([PYTHON, ECHO], 1), ([PYTHON, ECHO, PYTHON], 2), (["fine"], 0)],
)
def test_a_warning_is_counted_once_in_each_form(message, printed, times):
    assert len(lines(printed, WarningSignature(message=message))) == times


@pytest.mark.parametrize(
    ("line", "counts"),
    [(PYTHON, True), (LIBRARY, True), (PYTHON.replace("UserW", "DeprecationW"), False)],
)
def test_a_category_holds_where_the_line_names_one(line, counts):
    wanted = WarningSignature(
        category="UserWarning", message="define flops_per_batch in your module"
    )
    assert bool(lines([line], wanted)) is counts


def test_a_scrap_of_a_word_is_no_message():
    assert (
        lines(["/a/b.py:1: UserWarning: the batch is small"], WarningSignature(message="batch"))
        == []
    )
