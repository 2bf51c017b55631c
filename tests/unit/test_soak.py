"""The soak's figures and limits, and what it delivers."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.soak import reports
from benchmarks.soak.leftovers import more, settled
from benchmarks.soak.outcome import Answer, Outcome, told
from benchmarks.soak.sampling import Sample, Window, window
from benchmarks.soak.stream import Plan

FINE = Answer(
    id="mean", issue="a/b#1", honest=True, verdicts=("reproduced",), runs=1, comments=1,
    verdict="reproduced", state="finished", seconds=2.0,
)  # fmt: skip


def seen(memory_mb: float, files: int = 10) -> Window:
    return Window(memory_mb=memory_mb, by_program={"web": memory_mb}, files={"web": files})


def outcome(*answers: Answer, **more: object) -> Outcome:
    usual = {
        "warm": seen(100), "end": seen(104.9), "at_rest": seen(90), "refused": 0, "minutes": 1.0,
        "leftovers": {}, "restarts": {}, "processors": 0.5, "load": 1.0,
    }  # fmt: skip
    return Outcome(**{"answers": answers or (FINE,), **usual, **more})


@pytest.mark.parametrize(("verdicts", "right"), [(("",), True), (("reproduced",), False)])
def test_a_plan_that_waits_for_a_person_is_no_run(verdicts: tuple[str, ...], right: bool) -> None:
    """A stranger's command ends in a plan; a report that is to be reproduced does not."""
    plan = FINE.model_copy(update={"honest": False, "verdict": "", "state": "waiting"})
    assert plan.model_copy(update={"verdicts": verdicts}).right is right
    queued = plan.model_copy(update={"verdicts": verdicts, "state": "queued"})
    assert not queued.right


def test_within_the_limits_nothing_is_broken() -> None:
    assert outcome().broken == ()
    assert outcome(end=seen(50)).broken == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"end": seen(105.1)}, "memory grew by 5.1 %"),
        ({"leftovers": {"mounts": ("/x",)}}, "left behind: mounts"),
        ({"refused": 1}, "deliveries refused: 1"),
        ({"restarts": {"worker-1": 2}}, "started again: worker-1"),
        ({"at_rest": seen(90, files=19)}, "web has 9 more files open"),
    ],
)
def test_each_limit_is_told_when_it_is_broken(change: dict[str, object], words: str) -> None:
    broken = outcome(**change)
    assert broken.broken == (words,)
    assert f"LIMIT BROKEN: {words}" in told(broken)


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({}, True),
        ({"verdict": "not_reproduced"}, False),
        ({"state": "failed"}, False),
        ({"comments": 2}, False),
        ({"comments": 0}, False),
        ({"comments": 0, "verdict": "inconclusive", "verdicts": ("inconclusive",)}, True),
        ({"comments": 2, "verdict": "inconclusive", "verdicts": ("inconclusive",)}, False),
        ({"runs": 0, "comments": 0, "verdict": "", "state": ""}, False),
        ({"runs": 0, "verdicts": ("",), "verdict": "", "state": ""}, True),
        ({"honest": False, "comments": 2}, True),
        ({"honest": False, "verdicts": ("needs_info",)}, False),
        ({"honest": False, "verdicts": ()}, True),
    ],
)
def test_an_answer_is_right_or_not(change: dict[str, object], right: bool) -> None:
    assert FINE.model_copy(update=change).right is right


def test_a_wrong_answer_is_named_and_only_an_honest_one_breaks_a_limit() -> None:
    wrong = FINE.model_copy(update={"verdict": "not_reproduced"})
    text = told(outcome(FINE, wrong))
    assert outcome(FINE, wrong).broken == ("honest reports answered wrongly: 1",)
    assert "mean (a/b#1): not_reproduced, 1 comments, not reproduced" in text
    hostile = wrong.model_copy(update={"honest": False})
    assert outcome(FINE, hostile).broken == ()
    assert "hostile: 1 reports, 1 answered wrongly" in told(outcome(FINE, hostile))


def test_the_wait_is_told_by_its_median_and_its_95th_percentile() -> None:
    waits = [FINE.model_copy(update={"seconds": float(n)}) for n in range(1, 101)]
    assert "median 50.5 s, p95 95.0 s" in told(outcome(*waits))
    silent = FINE.model_copy(update={"seconds": None})
    assert "median 0.0 s, p95 0.0 s" in told(outcome(silent))


def test_a_window_holds_medians_and_one_peak_does_not_move_it() -> None:
    samples = [
        Sample(at=at, memory_mb={"web": mb, "worker-1": 10.0}, files={"web": 5, "worker-1": 7})
        for at, mb in enumerate([1.0, 20.0, 900.0, 22.0, 5.0])
    ]
    found = window(samples, 1, 3)
    assert (found.memory_mb, found.by_program) == (32.0, {"web": 22.0, "worker-1": 10.0})
    assert found.files == {"web": 5, "worker-1": 7}
    late = window(samples, 7, 9)
    assert late.by_program["web"] == 5.0, "the nearest look, where the machine was too busy"
    with pytest.raises(ValueError, match="empty"):
        window([], 7, 9)


def test_the_warm_up_is_five_minutes_or_a_sixth() -> None:
    assert Plan(minutes=120).warm_up_s == 300
    assert Plan(minutes=30).warm_up_s == 300
    assert Plan(minutes=3).warm_up_s == 30


def test_the_mixture_is_the_same_for_a_seed_and_comes_round_to_every_report() -> None:
    many = reports.mixture(600, 0.5, seed=3)
    assert many == reports.mixture(600, 0.5, seed=3)
    assert many != reports.mixture(600, 0.5, seed=4)
    assert 240 < sum(each.honest for each in many) < 360
    known = reports.honest() + reports.hostile()
    assert {each.id for each in many} == {each.id for each in known}
    counts = Counter(each.id for each in many if not each.honest)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_no_two_honest_reports_are_alike_and_each_has_a_verdict() -> None:
    many = reports.mixture(200, 1.0, seed=0)
    assert len({(each.title, each.body) for each in many}) >= 190
    assert all(len(each.verdicts) == 1 and "{n}" not in each.body for each in many)
    kinds = {each.verdicts[0] for each in many}
    assert kinds >= {"reproduced", "not_reproduced", "different_failure", "needs_info", ""}


def test_what_is_left_is_what_was_not_there_before() -> None:
    before = {"files": Counter(["a", "b"]), "processes": Counter(["worker", "worker"])}
    now = {"files": Counter(["b", "c"]), "processes": Counter(["worker", "worker", "worker"])}
    assert more(now, before) == {"files": ("c",), "processes": ("worker",)}
    assert more(before, now) == {"files": ("a",)}


def test_what_goes_by_itself_is_waited_for() -> None:
    looks = iter([{"files": ("a",)}, {}])
    assert settled(lambda: next(looks)) == {}
    assert settled(lambda: {"files": ("a",)}, grace_s=0.0) == {"files": ("a",)}
