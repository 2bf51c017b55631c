"""Writes to GitHub wait their turn for a few seconds, and no longer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from bot.service.pacing import NotYet, Paced
from bot.service.ports import Hook, Target, Throttled
from bot.testing import FakeGitHub, FrozenClock

TARGET = Target(installation=5, repository="octo/net")


@dataclass
class Ledger:
    """The part of a store that paces: a gap after each write, a longer one before what notifies."""

    clock: FrozenClock
    gap_s: float = 1.0
    notify_s: float = 3.0
    last: float = -100.0
    last_loud: float = -100.0
    booked: list[tuple[float, bool]] = field(default_factory=list)
    held: list[tuple[int, float]] = field(default_factory=list)

    def reserve_write(self, installation: int, *, notifies: bool) -> float:
        assert installation == 5
        due = max(self.last + self.gap_s, self.last_loud + self.notify_s if notifies else 0.0)
        if due > self.clock.now:
            return due - self.clock.now
        self.last = self.clock.now
        self.last_loud = self.clock.now if notifies else self.last_loud
        self.booked.append((self.clock.now, notifies))
        return 0.0

    def hold_writes(self, installation: int, after_s: float) -> None:
        self.held.append((installation, after_s))


@dataclass
class Desk:
    clock: FrozenClock
    ledger: Ledger
    hub: FakeGitHub
    paced: Paced
    naps: list[float]


@pytest.fixture
def desk() -> Desk:
    clock, naps, hub = FrozenClock(1000.0), list[float](), FakeGitHub()
    hub.repository("octo/net", 5)
    hub.issue("octo/net", 7)
    ledger = Ledger(clock)

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        clock.advance(seconds)

    return Desk(clock, ledger, hub, Paced(hub, ledger, clock=clock, sleep=sleep), naps)  # type: ignore[arg-type]


def test_a_write_waits_in_small_steps_for_its_turn(desk):
    comment = desk.paced.create_comment(TARGET, 7, "one")
    assert desk.naps == []
    desk.paced.update_comment(TARGET, comment, "two")
    assert sum(desk.naps) == pytest.approx(1.0)
    assert max(desk.naps) <= 0.25
    desk.paced.create_comment(TARGET, 7, "three")
    assert desk.ledger.booked == [(1000.0, True), (pytest.approx(1001.0), False), (pytest.approx(1003.0), True)]
    assert [each.what for each in desk.hub.writes] == ["create_comment", "update_comment", "create_comment"]


def test_what_takes_longer_is_put_off_at_once(desk):
    desk.ledger.gap_s = 5.5
    desk.paced.react(TARGET, 7, None, "eyes")
    with pytest.raises(NotYet) as caught:
        desk.paced.react(TARGET, 7, None, "+1")
    assert caught.value.after_s == pytest.approx(5.5)
    assert desk.naps == []
    assert len(desk.hub.writes) == 1
    assert desk.ledger.held == []


def test_the_writes_of_one_call_share_its_patience(desk):
    desk.ledger.gap_s = 3.0
    desk.hub.issue("octo/net", 7).labels += ["old", "older"]
    with pytest.raises(Throttled) as caught:
        desk.paced.labels(TARGET, 7, "new", ["old", "older"], "ffffff", "")
    assert caught.value.after_s == pytest.approx(3.0)
    assert [each.what for each in desk.hub.writes] == ["create_label", "add_label"]
    desk.clock.advance(3.0)
    desk.paced.labels(TARGET, 7, "new", ["old", "older"], "ffffff", "")
    assert desk.hub.issue("octo/net", 7).labels == ["new"]
    assert [each.what for each in desk.hub.writes][2:] == ["remove_label", "remove_label"]


def test_each_label_write_is_booked(desk):
    desk.hub.issue("octo/net", 7).labels.append("old")
    desk.paced.labels(TARGET, 7, "new", ["old", "not on"], "ffffff", "")
    assert [each[0] for each in desk.ledger.booked] == pytest.approx([1000.0, 1001.0, 1002.0])
    desk.paced.labels(TARGET, 7, "new", ["old"], "ffffff", "")
    assert len(desk.ledger.booked) == 3


def test_when_github_asks_to_wait_everyone_does(desk):
    desk.hub.fail(Throttled("wait", 90))
    with pytest.raises(Throttled):
        desk.paced.create_comment(TARGET, 7, "text")
    desk.hub.fail(Throttled("wait", 30))
    with pytest.raises(Throttled):
        desk.paced.permission(TARGET, "mona")
    assert desk.ledger.held == [(5, 90), (5, 30)]


def test_reads_are_not_booked(desk):
    desk.hub.deliveries.append(Hook(id=3, guid="g", event="issues", ok=False, redelivery=False, at=datetime.now(UTC)))
    desk.paced.permission(TARGET, "mona")
    desk.paced.file(TARGET, "a")
    desk.paced.find_comment(TARGET, 7, "<!-- m -->")
    desk.paced.clone_token(TARGET)
    desk.paced.hooks(datetime(2020, 1, 1, tzinfo=UTC))
    desk.paced.redeliver(3)
    assert desk.ledger.booked == []
    assert [each.what for each in desk.hub.writes] == ["redeliver"]


class Plain:
    """A GitHub that cannot be asked how many writes a call takes."""

    def __init__(self, hub: FakeGitHub) -> None:
        self._hub = hub

    def __getattr__(self, name: str) -> object:
        if name == "paced":
            raise AttributeError(name)
        return getattr(self._hub, name)


def test_a_github_that_cannot_say_is_booked_once_a_call(desk):
    plain = Paced(Plain(desk.hub), desk.ledger, clock=desk.clock, sleep=desk.clock.advance)  # type: ignore[arg-type]
    plain.labels(TARGET, 7, "new", [], "ffffff", "")
    plain.create_comment(TARGET, 7, "text")
    assert [each[1] for each in desk.ledger.booked] == [False, True]
