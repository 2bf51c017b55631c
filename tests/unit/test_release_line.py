from datetime import UTC, datetime, timedelta

import pytest

from bot.environment import releases
from bot.kernel.bug import Release

DAY = datetime(2024, 1, 1, tzinfo=UTC)


def history(*rows, dated=True):
    """Releases in the order of their upload; "y" marks a withdrawn one, "p" a pre-release."""
    found = []
    for at, row in enumerate(rows):
        version, _, mark = row.partition(" ")
        day = DAY + timedelta(days=at) if dated else None
        found.append(
            Release(version=version, uploaded_at=day, yanked=mark == "y", prerelease=mark == "p")
        )
    return tuple(found)


def names(line):
    return [each.version for each in line.releases]


def test_withdrawn_and_pre_releases_are_left_out_unless_named():
    rows = history("1.0", "1.1rc1 p", "1.1", "1.2 y", "1.3")
    line = releases.line(rows, "1.3")
    assert (names(line), line.bad) == (["1.0", "1.1", "1.3"], 2)
    assert {each.at: each.why for each in line.left_out} == {
        "1.1rc1": "a pre-release",
        "1.2": "yanked",
    }
    assert names(releases.line(rows, "1.2", ("1.1rc1",))) == ["1.0", "1.1rc1", "1.1", "1.2", "1.3"]


def test_a_late_patch_of_an_old_line_is_beside_the_line():
    rows = history("1.0", "1.1", "2.0", "1.1.1", "2.1")
    line = releases.line(rows, "2.1")
    assert names(line) == ["1.0", "1.1", "2.0", "2.1"]
    assert [each.at for each in line.left_out] == ["1.1.1"]
    assert names(releases.line(rows, "1.1.1")) == ["1.0", "1.1", "1.1.1", "2.0", "2.1"], (
        "unless it is the one that fails"
    )


def test_releases_of_a_compiled_package_without_a_wheel_are_left_out_unless_named():
    def rows(newest):
        kinds = ("none", "none", "any", "none", newest)
        return tuple(
            each.model_copy(update={"wheels": kind})
            for each, kind in zip(history(*"12345"), kinds, strict=True)
        )

    line = releases.line(rows("linux"), "5")
    assert (names(line), line.bad) == (["3", "5"], 1)
    assert {each.at: each.why for each in line.left_out} == dict.fromkeys(
        "124", "no wheel for Linux"
    )
    assert names(releases.line(rows("linux"), "4", ("1",))) == ["1", "3", "4", "5"]
    assert names(releases.line(rows("any"), "5")) == [*"12345"], "nothing of it has to be compiled"
    assert releases.before(rows("linux"), "5").version == "3"


def test_without_days_versions_order_the_line():
    assert names(releases.line(history("1.10", "1.9", "1.2", dated=False), "1.9")) == [
        "1.2",
        "1.9",
        "1.10",
    ]


def test_a_version_that_the_index_lacks_is_put_in_place():
    line = releases.line(history("1.0", "1.2"), "1.1+cpu")
    assert (names(line), line.bad) == (["1.0", "1.1+cpu", "1.2"], 1)


def test_newest_and_the_one_before():
    rows = history("1.0", "2.0", "1.0.1", "2.1rc1 p", "2.1 y")
    assert releases.newest(rows).version == "2.0"
    assert releases.before(rows, "2.0").version == "1.0"
    assert releases.before(rows, "1.0") is None
    assert releases.newest(()) is None


@pytest.mark.parametrize(
    ("links", "wanted"),
    [
        (
            {"Homepage": "https://a.example", "Release notes": "https://a.example/notes"},
            "https://a.example/notes",
        ),
        ({"homepage": "https://a.example", "docs": "https://d.example"}, "https://a.example"),
        ({"Changelog": "javascript:alert(1)", "Home": "https://a.example"}, "https://a.example"),
        ({"Bug Tracker": "https://a.example"}, ""),
    ],
)
def test_the_changelog_among_the_links(links, wanted):
    assert releases.changelog(links) == wanted
