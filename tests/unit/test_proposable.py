"""Which of several repairs a pull request is made from."""

import pytest

from bot.app.publish import repaired
from bot.kernel.report import IssueReport
from bot.kernel.training_types import Edit, Repair

EDIT = Edit(parameter="learning_rate", kind="learning_rate", before="1", after="0.1", line=1)
NONE, TRIED, PROVEN = Repair(), Repair(patch=(EDIT,)), Repair(patch=(EDIT,), proven=True)


def report(repair: Repair | None) -> IssueReport:
    return IssueReport.model_construct(repair=repair)


@pytest.mark.parametrize(
    ("repairs", "wanted"),
    [
        ((NONE, PROVEN), PROVEN),
        ((TRIED, PROVEN), PROVEN),
        ((PROVEN, TRIED), PROVEN),
        ((None, NONE, TRIED), TRIED),
        ((None, NONE), NONE),
    ],
)
def test_a_proven_repair_comes_before_later_ones_that_are_not(
    repairs: tuple[Repair | None, ...], wanted: Repair
) -> None:
    found = repaired([report(each) for each in repairs])
    assert found is not None
    assert found.repair is wanted


def test_without_a_repair_there_is_none() -> None:
    assert repaired([report(None)]) is None
