"""Writes to GitHub wait their turn for a few seconds, and no longer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from bot.app.github.writes import RateLimited, WriteLimit
from bot.app.ports import Hook, Target, Throttled
from bot.kernel.errors import TransientError
from tests.support.fakes import FakeGitHub, FrozenClock, MemoryStore

TARGET = Target(installation=5, repository="octo/net")


@dataclass
class Desk:
    clock: FrozenClock
    store: MemoryStore
    hub: FakeGitHub
    paced: FakeGitHub
    naps: list[float]

    @property
    def held(self) -> float:
        """Seconds until the next quiet write."""
        return self.store.reserve_write(5, "test", notifies=False)


def desk_with(gap_s: float = 1.0, notify_gap_s: float = 3.0) -> Desk:
    clock, naps, hub = FrozenClock(1000.0), list[float](), FakeGitHub()
    hub.repository("octo/net", 5)
    hub.issue("octo/net", 7)
    store = MemoryStore(clock=clock, write_gap_s=gap_s, notify_gap_s=notify_gap_s)

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        clock.advance(seconds)

    return Desk(clock, store, hub, hub.hooked(WriteLimit(store, clock=clock, sleep=sleep)), naps)


@pytest.fixture
def desk() -> Desk:
    return desk_with()


def test_a_write_waits_in_small_steps_for_its_turn(desk):
    comment = desk.paced.create_comment(TARGET, 7, "one")
    assert desk.naps == []
    desk.paced.update_comment(TARGET, comment, "two")
    assert sum(desk.naps) == pytest.approx(1.0)
    assert max(desk.naps) <= 0.25
    desk.paced.create_comment(TARGET, 7, "three")
    assert desk.clock.now == pytest.approx(1003.0)
    assert [each.what for each in desk.hub.writes] == [
        "create_comment",
        "update_comment",
        "create_comment",
    ]


def test_what_takes_longer_is_put_off_at_once():
    desk = desk_with(5.5)
    desk.paced.react(TARGET, 7, None, "eyes")
    with pytest.raises(RateLimited) as caught:
        desk.paced.react(TARGET, 7, None, "+1")
    assert caught.value.after_s == pytest.approx(5.5)
    assert desk.naps == []
    assert len(desk.hub.writes) == 1


def test_what_our_own_pace_puts_off_holds_nothing_else():
    desk = desk_with(notify_gap_s=20.0)
    desk.paced.create_comment(TARGET, 7, "one")
    with pytest.raises(RateLimited) as caught:
        desk.paced.create_comment(TARGET, 7, "two")
    assert caught.value.after_s == pytest.approx(20.0)
    desk.paced.react(TARGET, 7, None, "eyes")
    assert desk.clock.now == pytest.approx(1001.0)


def test_each_write_of_a_call_has_the_same_patience():
    desk = desk_with(3.0)
    desk.hub.issue("octo/net", 7).labels += ["old", "older"]
    desk.paced.labels(TARGET, 7, "new", ["old", "older"], "ffffff", "")
    assert desk.clock.now == pytest.approx(1009.0)
    assert desk.hub.issue("octo/net", 7).labels == ["new"]


def test_each_label_write_is_booked(desk):
    desk.hub.issue("octo/net", 7).labels.append("old")
    desk.paced.labels(TARGET, 7, "new", ["old", "not on"], "ffffff", "")
    assert desk.clock.now == pytest.approx(1002.0)
    desk.paced.labels(TARGET, 7, "new", ["old"], "ffffff", "")
    assert desk.clock.now == pytest.approx(1002.0)
    assert len(desk.hub.writes) == 3


def test_when_github_asks_to_wait_everyone_does(desk):
    desk.hub.fail(Throttled("wait", 30))
    with pytest.raises(Throttled):
        desk.paced.permission(TARGET, "mona")
    assert desk.held == 30
    desk.clock.advance(30)
    desk.hub.fail(Throttled("wait", 90))
    with pytest.raises(Throttled):
        desk.paced.create_comment(TARGET, 7, "text")
    assert desk.held == 90
    with pytest.raises(RateLimited):
        desk.paced.react(TARGET, 7, None, "eyes")
    assert desk.hub.writes == []


def test_reads_are_not_booked(desk):
    desk.hub.deliveries.append(Hook(id=3, guid="g", event="issues", ok=False, at=datetime.now(UTC)))
    desk.paced.permission(TARGET, "mona")
    desk.paced.file(TARGET, "a")
    desk.paced.find_comments(TARGET, 7, "<!-- m -->")
    desk.paced.clone_token(TARGET)
    desk.paced.hooks(datetime(2020, 1, 1, tzinfo=UTC))
    desk.paced.redeliver(3)
    assert (desk.held, desk.naps) == (0, [])
    assert [each.what for each in desk.hub.writes] == ["redeliver"]


def test_the_gap_counts_from_the_answer_also_of_a_write_that_fails(desk):
    class Slow(type(desk.hub)):
        def _called(self, method):
            desk.clock.advance(2.0)
            return super()._called(method)

    desk.paced.__class__ = Slow
    desk.hub.fail(TransientError("502"), "react")
    with pytest.raises(TransientError):
        desk.paced.react(TARGET, 7, None, "eyes")
    assert (desk.clock.now, desk.held) == (1002.0, 1.0)
