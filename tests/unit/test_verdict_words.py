"""The verdict in words where few runs decided, and where the bug report names what is not there."""

from __future__ import annotations

import pytest

from bot.issues import phrases
from bot.kernel.environment import Claimed
from bot.kernel.report import IssueReport, Reproduced
from bot.report.comment import comment
from bot.report.terminal import terminal
from tests.golden.stages import REPORTS


def with_claims(*claims: Claimed) -> IssueReport:
    report = REPORTS["reproduced"]
    assert report.environment is not None
    environment = report.environment.model_copy(update={"claims": claims})
    return report.model_copy(update={"environment": environment})


def absent(name: str, claimed: str, resolved: str = "") -> Claimed:
    return Claimed(name=name, claimed=claimed, resolved=resolved, is_absent=True)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        (
            (absent("pool", "0.99.0", "0.9.0"),),
            (
                "The bug report names pool 0.99.0, which the package index does not have; 0.9.0 was "
                "installed."
            ),
        ),
        (
            (absent("pool", "0.99.0"),),
            (
                "The bug report names pool 0.99.0, which the package index does not have; it was left "
                "out."
            ),
        ),
        (
            (absent("pool", "0.99.0", "0.9.0"), absent("torch", "2.99", "2.3.0")),
            (
                "The bug report names pool 0.99.0 and 1 more, which the package index does not have; "
                "other releases were installed."
            ),
        ),
        ((Claimed(name="pool", claimed="0.8.0", resolved="0.9.0", note="differs"),), ""),
        ((), ""),
    ],
)
def test_a_version_that_no_index_has_is_said_beside_the_verdict(
    claims: tuple[Claimed, ...], words: str
) -> None:
    report = with_claims(*claims)
    assert phrases.absent_versions(report) == words
    shown = " ".join(terminal(report, run="run", width=400, colour=False).split())
    assert ("which the package index does not have" in shown) is bool(words)
    assert ("which the package index does not have" in comment(report)) is bool(words)


@pytest.mark.parametrize(
    ("failures", "runs", "determinism", "words"),
    [
        (
            2,
            2,
            "deterministic",
            "in both confirming runs: deterministic as far as 2 runs can tell (95 %",
        ),
        (9, 9, "deterministic", "in all 9 confirming runs: deterministic as far as 9 runs can"),
        (
            4,
            5,
            "deterministic",
            "in 4 of 5 confirming runs (95 % confidence interval 16\u2013100 %); ",
        ),
        (3, 9, "seed-dependent", "%); it depends on the seed"),
    ],
)
def test_an_interval_of_few_runs_does_not_contradict_its_determinism(
    failures: int, runs: int, determinism: str, words: str
) -> None:
    verdict = Reproduced.model_validate(
        {
            "runs": runs,
            "failures": failures,
            "interval": (0.16, 1.0),
            "reason": "it failed",
            "determinism": determinism,
        }
    )
    report = REPORTS["reproduced"].model_copy(update={"verdict": verdict})
    text = phrases.figures(report)
    assert words in text
    assert ("no run passed" in text) is (failures < runs and determinism == "deterministic")


def test_a_program_and_what_it_was_before_have_two_names() -> None:
    text = comment(REPORTS["reproduced-with-proof"])
    assert "`repro.py`, 32 \u2192 4 lines" in text
    assert "Original script: original.py, 32 lines" in text
