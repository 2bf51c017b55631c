"""What a reader is told to do next fits the reason for the verdict."""

import pytest

from bot.issues import confirm
from bot.issues.phrases import next_step
from bot.kernel.attempt import Judgement, Match
from bot.kernel.report import Inconclusive, IssueReport, NeedsHardware
from bot.report import comment as report_comment
from bot.report.comment import comment
from tests.golden.stages import REPORTS

PAGE = "https://reprise.example.com/runs/" + "5" * 32


def judged(*matches: Match) -> Inconclusive:
    runs = [Judgement(match=match, reason="so") for match in matches]
    found = confirm.verdict_of("undecided", runs, "deterministic", ())
    assert isinstance(found, Inconclusive)
    return found


def report(verdict: Inconclusive | NeedsHardware) -> IssueReport:
    return REPORTS["inconclusive"].model_copy(update={"verdict": verdict})


MATCHED, PASSED, UNDECIDED = Match.MATCHED, Match.PASSED, Match.UNDECIDED


def test_more_runs_are_suggested_where_they_could_decide() -> None:
    verdict = judged(*[MATCHED, PASSED, PASSED, PASSED, PASSED] * 8)
    assert verdict.at_maximum
    assert "`/reproduce runs=200`" in report_comment.final(report(verdict), page=PAGE)
    assert "--max-runs" in next_step(report(verdict))


@pytest.mark.parametrize("match", [UNDECIDED, Match.SETUP_FAILURE])
def test_more_runs_are_not_suggested_where_each_decided_nothing(match: Match) -> None:
    verdict = judged(match, match)
    assert not verdict.at_maximum
    told = report_comment.final(report(verdict), page=PAGE)
    assert "runs=200" not in told
    assert "a complete program" in told
    assert "--max-runs" not in next_step(report(verdict))


def test_a_negative_verdict_that_was_taken_back_needs_no_more_runs() -> None:
    denied = REPORTS["not_reproduced"].verdict
    assert denied.kind == "not_reproduced"
    assert not confirm.undecided(denied, "what the bug report names was not reached").at_maximum


def test_nobody_is_sent_to_a_limit_that_was_already_used() -> None:
    verdict = judged(*[MATCHED, PASSED, PASSED, PASSED, PASSED] * 40)
    assert "runs=200" not in report_comment.final(report(verdict), page=PAGE)


@pytest.mark.parametrize(("needs", "helps"), [("a GPU", True), ("a TPU", False)])
def test_a_gpu_is_suggested_only_where_one_is_missing(needs: str, helps: bool) -> None:
    told = report_comment.final(report(NeedsHardware(reason="so", needs=(needs,))), page=PAGE)
    assert ("device=gpu" in told) is helps


@pytest.mark.parametrize(("seconds", "shown"), [(0.04, False), (0.3, True)])
def test_next_to_no_time_is_not_told(seconds: float, shown: bool) -> None:
    quick = REPORTS["needs_info"].model_copy(update={"seconds": {"total": seconds}})
    assert ("took" in comment(quick)) is shown
