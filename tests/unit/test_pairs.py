"""The judge on labelled pairs of a reported and an observed failure."""

import sys

from bot.issues.judge import judge
from bot.issues.observe import observe
from bot.issues.reading.issue import read_issue
from bot.issues.signature.freeze import freeze
from bot.kernel.attempt import Match, Script
from tests.corpus.pairs.pairs import Pair, pairs

LEAST = 0.97


def accepted(pair: Pair) -> bool:
    """Whether the report is read and the run judged to show the same failure."""
    signature = freeze(read_issue(pair.issue))
    script = Script(files={"repro.py": pair.source})
    return signature is not None and (
        judge(observe(pair.run), signature, script).match is Match.MATCHED
    )


def test_no_other_failure_is_accepted_and_hardly_any_true_one_refused(capsys):
    every = [(pair, accepted(pair)) for pair in pairs()]
    for half in (False, True):
        rows = [(pair, taken) for pair, taken in every if pair.held_out == half]
        right = [taken for pair, taken in rows if pair.same]
        wrong = [pair.label for pair, taken in rows if taken and not pair.same]
        missed = [pair.label for pair, taken in rows if pair.same and not taken]
        with capsys.disabled():
            name = "held out" if half else "known"
            sys.stdout.write(
                f"\npairs, {name}: {sum(right)} of {len(right)} true ones accepted, "
                f"{len(wrong)} of {len(rows) - len(right)} false ones\n"
            )
        assert len(rows) >= 150
        assert not wrong, wrong
        assert sum(right) >= LEAST * len(right), missed
