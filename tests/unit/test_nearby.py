"""Which release stands for one that cannot be installed, and which may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from packaging.version import Version

from bot.environment import drafts, fallbacks, releases
from bot.environment.fallbacks import Draft, World
from bot.environment.index import File, IndexRelease
from bot.kernel.bug import Release
from bot.kernel.environment import PinSource, Requirement

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
    told = releases.outlier("tools", taken, HISTORY, DAY)
    assert (words in told) if words else told == ""


def test_a_package_of_pre_releases_alone_is_taken_as_it_is() -> None:
    assert releases.outlier("tools", "0.3.1.dev5", HISTORY[:1], DAY) == ""


def test_a_release_that_cannot_be_installed_gives_way_to_the_nearest_with_a_wheel() -> None:
    wanted = Requirement(name="tools", specifier="==0.14", rung=PinSource.ISSUE, reason="")
    draft = Draft("first", "3.11", (wanted,), exclude_newer=DAY)
    world = World(lambda _: (), ("3.11",), lambda *_: None, history=lambda _: HISTORY)
    words = "Because tools==0.14 has no usable wheels, it cannot be used"
    found = fallbacks.next_draft(draft, words, world, (draft,))
    assert found is not None
    assert found.requirements[0].specifier == "==0.15"
    assert found.requirements[0].rung is PinSource.NEIGHBOUR
    free = replace(draft, requirements=(wanted.model_copy(update={"specifier": ""}),))
    told = releases.outlier("tools", "0.3.1.dev5", HISTORY, DAY)
    again = fallbacks.next_draft(free, told, world, (free,))
    assert again is not None
    assert again.requirements[0].specifier == "==0.15"


NEEDED = (
    row("5.3", 2020),
    row("5.4.1", 2021, wheels="linux"),
    row("6.0", 2021, 10, wheels="linux"),
    row("6.0.1", 2023, 7, wheels="linux"),
    row("6.1rc1", 2023, 8, prerelease=True),
)
BLOCKED = (
    "Because yaml>=5.1,<=5.4.1 has no usable wheels and tools==0.15 depends on yaml>=5.1,<6.0, we "
    "can conclude that tools==0.15 cannot be used."
)


FOREIGN = (
    "Because yaml==5.4.1 has no wheels with a matching Python ABI tag (e.g., `cp311`) and "
    "tools==0.15 depends on yaml==5.4.1, we can conclude that tools==0.15 cannot be used."
)


def history(name: str) -> tuple[Release, ...]:
    return {"tools": (*HISTORY, row("0.16", 2024, 9)), "yaml": NEEDED}.get(name, ())


def test_a_dependency_that_cannot_be_installed_gives_way_before_what_needs_it() -> None:
    wanted = Requirement(name="tools", specifier="==0.15", rung=PinSource.ISSUE, reason="")
    draft = Draft("first", "3.11", (wanted,), exclude_newer=DAY)
    offers = ("6.0.1", "6.0", "6.1rc1")
    world = World(
        lambda _: (), ("3.11",), lambda *_: None, history=history, usable=lambda *_: offers
    )
    later = fallbacks.next_draft(draft, BLOCKED, world, (draft,))
    assert later is not None
    assert later.what == "with a later yaml"
    drafts = [draft, later]
    while drafts[-1].what == "with a later yaml":
        following = fallbacks.next_draft(drafts[-1], BLOCKED, world, drafts)
        assert following is not None
        drafts.append(following)
    found = drafts[-1]
    assert [(each.name, each.specifier) for each in found.overrides] == [("yaml", "==6.0")]
    assert found.requirements == draft.requirements
    assert ("yaml", found.overrides[0].reason) in found.notes
    assert "in place of >=5.1,<=5.4.1" in found.overrides[0].reason
    assert PinSource.NEIGHBOUR is found.overrides[0].rung
    none = replace(world, usable=lambda *_: ())
    other = fallbacks.next_draft(drafts[-2], BLOCKED, none, drafts[:-1])
    assert other is not None
    assert other.requirements[0].specifier == "==0.16"
    reason = "0.15 cannot be installed, since what it needs cannot be had; 0.16 is near it"
    assert other.requirements[0].reason == reason


@pytest.mark.parametrize(
    ("wheels", "words", "why"),
    [
        ("none", "tools==0.15 has no usable wheels", "as source only, which could not be built"),
        ("linux", "tools==0.15 has no usable wheels", "no wheel for Python 3.11"),
        (
            "none",
            "tools==0.15 has no usable wheels and Python (3.11.2) does not satisfy Python<3.11",
            "it or what it needs asks for <3.11",
        ),
    ],
)
def test_the_report_says_why_a_release_cannot_be_installed(
    wheels: str, words: str, why: str
) -> None:
    wanted = Requirement(name="tools", specifier="==0.15", rung=PinSource.ISSUE, reason="")
    draft = Draft("first", "3.11", (wanted,), under_test="tools", exclude_newer=DAY)
    rows = (row("0.14", 2024, 5), row("0.15", 2024, 5, wheels=wheels))
    world = World(
        lambda _: ("0.14", "0.15"),
        *(("3.11",), lambda *_: None),
        history=lambda _: rows,
        usable=lambda *_: ("0.14",),
        fixed_python=True,
    )
    found = fallbacks.near_release(draft, f"Because {words}, it cannot be used", world)
    assert found is not None
    assert why in found.requirements[0].reason


def test_a_withdrawn_release_is_not_said_to_be_missing() -> None:
    wanted = Requirement(name="tools", specifier="==0.15", rung=PinSource.ISSUE, reason="")
    draft = Draft("first", "3.11", (wanted,), exclude_newer=DAY)
    rows = (row("0.14", 2024, 5), row("0.15", 2024, 5, yanked=True))
    world = World(lambda _: ("0.14",), ("3.11",), lambda *_: None, history=lambda _: rows)
    found = fallbacks.next_draft(draft, "there is no version of tools==0.15", world, (draft,))
    assert found is not None
    assert found.requirements[0].reason == "0.15 was withdrawn; 0.14 is the nearest release"


def test_wheels_for_another_python_alone_give_way_where_the_python_is_stated() -> None:
    wanted = Requirement(name="tools", specifier="==0.15", rung=PinSource.ISSUE, reason="")
    draft = Draft("first", "3.11", (wanted,), exclude_newer=DAY)
    world = World(
        lambda _: (),
        ("3.9", "3.11"),
        lambda *_: None,
        fixed_python=True,
        history=history,
        usable=lambda name, _: ("6.0",) if name == "yaml" else (),
    )
    found = fallbacks.next_draft(draft, FOREIGN, world, (draft,))
    assert found is not None
    assert found.what == "with yaml 6.0 in place of ==5.4.1"


@pytest.mark.parametrize(
    ("span", "usable", "near"),
    [
        (">=5.1,<=5.4.1", ("6.0", "6.0.1"), "6.0"),
        ("==6.0", ("5.4.1", "6.0.1"), "6.0.1"),
        (">=5.1", ("6.0",), ""),
        (">=7", ("6.0",), ""),
        ("", ("6.0",), ""),
    ],
)
def test_the_release_beside_a_span_is_the_nearest_that_can_be_installed(
    span: str, usable: tuple[str, ...], near: str
) -> None:
    assert releases.beside(NEEDED, usable, span) == near


@pytest.mark.parametrize(
    ("file", "minor", "fits"),
    [
        ("a-1.0-py3-none-any.whl", "3.11", True),
        ("a-1.0-py2.py3-none-any.whl", "3.11", True),
        ("a-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "3.11", True),
        ("a-1.0-cp310-cp310-manylinux2014_x86_64.whl", "3.11", False),
        ("a-1.0-cp38-abi3-manylinux2014_x86_64.whl", "3.11", True),
        ("a-1.0-cp312-abi3-manylinux2014_x86_64.whl", "3.11", False),
        ("a-1.0-cp311-cp311-win_amd64.whl", "3.11", False),
        ("a-1.0.tar.gz", "3.11", False),
    ],
)
def test_a_release_fits_a_python_by_the_names_of_its_wheels(
    file: str, minor: str, fits: bool
) -> None:
    release = IndexRelease(Version("1.0"), (File(file, ""),))
    assert release.fits(minor) is fits


def test_a_release_after_the_report_is_not_years_too_old_though_newer_ones_came() -> None:
    history = (*HISTORY, row("2.0", 2027))
    assert releases.outlier("tools", "0.15", history, DAY) == ""
    assert "years older than 2.0" in releases.outlier("tools", "0.15", history, None)


def test_an_extra_that_cannot_be_installed_goes_and_its_package_stays() -> None:
    rows = (
        Requirement(name="tools", extras=("boxes",), rung=PinSource.IMPORT, reason=""),
        Requirement(name="others", extras=("boxes",), rung=PinSource.IMPORT, reason=""),
    )
    draft = Draft("first", "3.11", rows, exclude_newer=DAY)
    world = World(lambda _: (), ("3.11",), lambda *_: None)
    words = (
        "Because boxes-py==2 has no usable wheels and tools[boxes]>=0.9 depends on boxes-py==2, we "
        "can conclude that tools[boxes]>=0.9 cannot be used."
    )
    drafts = [draft]
    while drafts[-1].what != "with tools without its extras":
        following = fallbacks.next_draft(drafts[-1], words, world, drafts)
        assert following is not None
        assert {row.name for row in following.requirements} == {"tools", "others"}
        drafts.append(following)
    assert [row.extras for row in drafts[-1].requirements] == [(), ("boxes",)]
    assert "boxes-py" in dict(drafts[-1].notes)["tools"]


@pytest.mark.parametrize(("wheels", "what"), [("none", "build"), ("any", "with a later tools")])
def test_what_never_had_a_wheel_is_built_as_of_its_day(wheels: str, what: str) -> None:
    wanted = Requirement(name="tools", rung=PinSource.IMPORT, reason="")
    draft = Draft("first", "3.11", (wanted,), exclude_newer=DAY)
    rows = (row("0.13", 2024, wheels="none"), row("0.15", 2024, 8, wheels=wheels))
    days = list[datetime | None]()

    def build(_: str, of: Draft) -> None:
        days.append(of.exclude_newer)

    world = World(lambda _: (), ("3.11",), build, history=lambda _: rows)
    words = "Because all versions of tools have no usable wheels and you require tools"
    following = fallbacks.next_draft(draft, words, world, (draft,))
    assert (days == [DAY]) is (what == "build")
    assert following is None or (following.what == what) is (what != "build")


def test_of_jax_and_jaxlib_the_nearest_pair_that_there_is_stands_in_for_what_is_gone() -> None:
    """jaxlib has no releases of before 2023; everything else stays of the day of the report."""
    flax = Requirement(name="flax", rung=PinSource.IMPORT, reason="imported")
    jax = Requirement(name="jax", extras=("cpu",), rung=PinSource.IMPORT, reason="imported")
    draft = Draft("first", "3.11", (flax, jax), under_test="flax", exclude_newer=DAY)
    words = (
        "Because there are no versions of jaxlib and flax==0.3 depends on jaxlib, we can conclude "
        "that flax==0.3 cannot be used.\n\nhint: `jaxlib` was filtered by `exclude-newer`"
    )
    assert releases.hidden_by_date(words) == ["jaxlib"]
    history = {
        "jax": (NEEDED[0], row("0.5", 2025), row("0.6", 2025, 3)),
        "jaxlib": (row("0.5", 2025), row("0.6", 2025, 3)),
    }

    def world(of: Mapping[str, tuple[Release, ...]]) -> World:
        return World(
            *(lambda _: (), ("3.11",), lambda *_: None),
            history=lambda name: of.get(name, ()),
            usable=lambda name, _: tuple(one.version for one in of.get(name, ())),
        )

    found = fallbacks.next_draft(draft, words, world(history), (draft,))
    assert found is not None
    assert found.exclude_newer == DAY
    lines = [drafts.line(one) for one in found.requirements]
    assert lines == ["flax", "jax[cpu]==0.5", "jaxlib==0.5"]
    assert "0.5 is the nearest" in dict(found.notes)["jax"]
    older = world({**history, "jaxlib": (NEEDED[0], *history["jaxlib"])})
    other = fallbacks.next_draft(draft, words, older, (draft,))
    assert other is not None
    assert other.requirements == draft.requirements, "releases of before the day are there"
