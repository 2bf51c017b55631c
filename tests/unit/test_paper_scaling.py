"""Inputs that a program scales by its own arithmetic."""

from __future__ import annotations

import ast

import pytest

from bot.kernel.attempt import Script
from bot.kernel.paper import Criterion
from bot.papers.evidence import judge
from bot.papers.located import locate
from bot.papers.scaling import scalings


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("x = (x - x.mean(0)) / x.std(0)", ["standardised"]),
        ("x = (x - np.mean(x, axis=0)) / (np.std(x, axis=0) + 1e-8)", ["standardised"]),
        ("m, s = x[rows].mean(0), x[rows].std(0)\nx = (x - m) / s", ["standardised"]),
        ("m = x.mean()\ns = x.std()\nx -= m\nx /= s", ["standardised"]),
        ("x = (x - x.min()) / (x.max() - x.min())", ["min-max"]),
        ("low, high = x.min(), x.max()\nx = (x - low) / (high - low + 1e-9)", ["min-max"]),
        ("images = digits.images[order] / 16.0", ["min-max"]),
        ("train_x /= 255", ["min-max"]),
        ("x = x / x.max()", ["min-max"]),
        ("y = (y - y.mean()) / y.std()", []),
        ("adv = (adv - adv.mean()) / (adv.std() + 1e-8)", []),
        ("m, s = scores.mean(), scores.std()", []),
        ("width = size / 16", []),
        ("x = x / count", []),
        ("x = (x - offset) / scale", []),
        ("z = x - x.mean()", []),
        ("x = (x - x.mean()) / (x.std()" + " + 1" * 1_500 + ")", ["standardised"]),
        ("m = x.mean()\nprint(m)\ns = x.std()", []),
    ],
)
def test_arithmetic_that_scales_inputs(code: str, values: list[str]) -> None:
    rows = list(scalings(ast.parse(code)))
    assert [row.value for row in rows] == values
    assert all(row.is_applied for row in rows)
    assert all(row.line == code.count("\n") + 1 for row in rows)


@pytest.mark.parametrize(
    ("code", "stated", "located", "verdict"),
    [
        ("x = (x - x.mean(0)) / x.std(0)\n", "standardised", "standardised", "agrees"),
        ("images = images / 255.0\n", "standardised", "min-max", "contradicts"),
        ("mean, std = x.mean(0), x.std(0)\nfit(x)\n", "standardised", "never read", "contradicts"),
        ("mean = x.mean(0)\nstd = x.std(0)\nfit(x)\n", "standardised", "never read", "contradicts"),
        ("a = (a - a.mean()) / a.std()\nimages = images / 255\n", "min-max", "", "unknown"),
        ("mean, std = x.mean(0), x.std(0)\nscale(x)\nStandardScaler()\n", "standardised",
         "standardised", "agrees"),
        ("mean, std = x.mean(0), x.std(0)\nx = tools.normalize(x)\n", "standardised", "", "unknown"),
        ("fit(x)\n", "standardised", "", "unknown"),
    ],
)  # fmt: skip
def test_a_scaling_is_located(code: str, stated: str, located: str, verdict: str) -> None:
    script = Script(entry="train.py", command=("train.py",), origin="repository", files={})
    row = Criterion(kind="preprocessing", name="preprocessing", stated=stated)
    (row,) = judge([row], locate(script, {"train.py": code.encode()}), {})
    assert (row.located.value if row.located else "", row.verdict) == (located, verdict)
