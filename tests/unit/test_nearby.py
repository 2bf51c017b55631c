"""Which release stands for one that cannot be installed, and which may not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.adapters.packages import ladder
from bot.adapters.packages.ladder import Draft, World
from bot.models.bisect import Release
from bot.models.environment import PinSource, Requirement
from bot.rules.packages import nearby

DAY = datetime(2024, 6, 1, tzinfo=UTC)


def row(version: str, year: int, month: int = 1, **more: object) -> Release:
    day = datetime(year, month, 1, tzinfo=UTC)
    fields = {"version": version, "uploaded_at": day, "wheels": "any", **more}
    return Release.model_validate(fields)


HISTORY = (
    row("0.3.1.dev5", 2020, prerelease=True),
    row("0.9", 2020),
    row("0.13", 2024, wheels="none"),
    row("0.14", 2024, 5, wheels="none"),
    row("0.15", 2024, 8),
)


@pytest.mark.parametrize(
    ("taken", "words"),
    [("0.3.1.dev5", "pre-release"), ("0.9", "years older than 0.14"), ("0.13", ""), ("0.14", "")],
)
def test_a_resolver_falls_back_neither_to_a_pre_release_nor_by_years(
    taken: str, words: str
) -> None:
    told = nearby.outlier("tools", taken, HISTORY, DAY)
    assert (words in told) if words else told == ""


def test_a_package_of_pre_releases_alone_is_taken_as_it_is() -> None:
    assert nearby.outlier("tools", "0.3.1.dev5", HISTORY[:1], DAY) == ""


def test_a_release_that_cannot_be_installed_gives_way_to_the_nearest_with_a_wheel() -> None:
    wanted = Requirement(name="tools", specifier="==0.14", rung=PinSource.ISSUE, reason="")
    draft = Draft("first", "3.11", (wanted,), exclude_newer=DAY)
    world = World(lambda _: (), ("3.11",), lambda *_: None, history=lambda _: HISTORY)
    words = "Because tools==0.14 has no usable wheels, it cannot be used"
    found = ladder.next_draft(draft, words, world, (draft,))
    assert found is not None
    assert found.requirements[0].specifier == "==0.15"
    assert found.requirements[0].rung is PinSource.NEIGHBOUR
    free = replace(draft, requirements=(wanted.model_copy(update={"specifier": ""}),))
    told = nearby.outlier("tools", "0.3.1.dev5", HISTORY, DAY)
    again = ladder.next_draft(free, told, world, (free,))
    assert again is not None
    assert again.requirements[0].specifier == "==0.15"
