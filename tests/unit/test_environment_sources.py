"""Index settings from pip and uv, the choice of torch, and what the resolver's words lead to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.environment import drafts, fallbacks, releases, torch_builds
from bot.environment.builder import UvBuilder
from bot.environment.drafts import Draft, World
from bot.environment.index import PackageIndex
from bot.kernel.bug import Release
from bot.kernel.environment import EnvironmentSpec, PinSource, Requirement
from sandbox import environment as prepare, indexes
from sandbox.footprint import DiskFull

DAY = datetime(2024, 3, 1, tzinfo=UTC)


def wanted(name: str, specifier: str = "", rung: PinSource = PinSource.ISSUE) -> Requirement:
    return Requirement(name=name, specifier=specifier, rung=rung, reason="test")


def draft(*requirements: Requirement, **more: object) -> Draft:
    """A draft whose first requirement is under test."""
    name = requirements[0].name if requirements else ""
    first = Draft("first", "3.12", requirements, name, exclude_newer=DAY)
    return replace(first, **more)  # type: ignore[arg-type]


def world(
    *offered: str, minors: tuple[str, ...] = ("3.10", "3.11", "3.12"), fixed: bool = False
) -> World:
    return World(
        lambda _: offered, minors, lambda _name, _draft: Path("/w/x-1-py3-none-any.whl"), fixed
    )


def test_a_release_that_never_was_gives_way_to_none_of_after_the_day() -> None:
    days = {"0.12.2": -300, "0.13.2": -60, "0.14.0": 400}
    history = tuple(
        Release(version=version, uploaded_at=DAY + timedelta(days=days[version]))
        for version in days
    )
    there = replace(world(*days), history=lambda _: history)
    text = "there is no version of acme==13.2.2 and you require acme==13.2.2"
    new = fallbacks.next_draft(draft(wanted("acme", "==13.2.2")), text, there, ())
    assert new is not None
    assert drafts.line(new.requirements[0]) == "acme==0.13.2"


def dated_world(*rows: tuple[str, int]) -> World:
    """Releases by their days before or after the date, all with a wheel but for the first."""
    history = tuple(
        Release(version=version, uploaded_at=DAY + timedelta(days=days)) for version, days in rows
    )
    versions = tuple(version for version, _ in rows)
    return replace(
        world(*versions), history=lambda _: history, usable=lambda _name, _minor: versions[1:]
    )


HIDDEN = (
    "acme==1.0 depends on lib>=1.1 and there are no versions of lib. "
    "hint: `lib` was filtered by `exclude-newer`"
)
NO_WHEEL = "lib==1.0 has no usable wheels and all versions of acme depend on lib>=1.1"


@pytest.mark.parametrize("text", [HIDDEN, NO_WHEEL], ids=["hidden by the date", "without a wheel"])
def test_what_another_needs_from_after_the_day_is_the_first_that_fits(text: str) -> None:
    there = dated_world(("1.0", -9), ("1.0.5", 10), ("1.1", 20), ("1.2", 40), ("9.0", 900))
    first = draft(wanted("acme", "==1.0"))
    new = fallbacks.next_draft(first, text, there, (first,))
    assert new is not None
    assert dict(new.windows) == {"lib": DAY + timedelta(days=21)}
    more = fallbacks.next_draft(new, text, there, (first, new))
    assert more is not None
    assert more.windows["lib"] > DAY + timedelta(days=40)


@pytest.mark.parametrize(
    ("days", "until"), [(-30, None), (60, 61)], ids=["of before the day", "of after the day"]
)
def test_a_release_that_gives_way_does_not_open_the_way_to_all_later_ones(
    days: int, until: int | None
) -> None:
    there = dated_world(("1.0", -90), ("1.5", days), ("9.0", 900))
    rows = (wanted("acme", "==1.0"), wanted("lib", "==1.5", PinSource.REPAIR))
    first = draft(*rows, undated=("acme", "lib"))
    text = "acme==1.0 depends on lib<1.5 and you require lib==1.5"
    new = fallbacks.next_draft(first, text, there, (first,))
    assert new is not None
    assert (new.what, new.requirements[1].specifier) == ("with any lib", "")
    assert new.undated == ("acme",)
    assert dict(new.windows) == ({"lib": DAY + timedelta(days=until)} if until else {})


def test_pips_settings_become_uvs(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/pip.conf").write_text(
        "[global]\nindex-url = https://a.invalid/simple\nfind-links =\n  /w1\n  /w2\n",
        encoding="utf-8",
    )
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text(
        "[install]\nextra-index-url = https://b.invalid/simple https://c.invalid/simple\ncert = /c.pem\n",
        encoding="utf-8",
    )
    found = indexes.read_indexes(
        {"PIP_TRUSTED_HOST": "a.invalid", "HTTPS_PROXY": "http://p:1"}, tmp_path, tmp_path / "etc"
    )
    assert found.variables() == {
        "UV_DEFAULT_INDEX": "https://a.invalid/simple",
        "UV_INDEX": "https://b.invalid/simple https://c.invalid/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/w1,/w2",
        "SSL_CERT_FILE": "/c.pem",
        "UV_INSECURE_HOST": "a.invalid",
        "HTTPS_PROXY": "http://p:1",
    }


def test_variables_beat_files_and_uv_beats_pip(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://file.invalid/simple\n", encoding="utf-8"
    )
    assert indexes.read_indexes({}, tmp_path, tmp_path).index == "https://file.invalid/simple"
    assert (
        indexes.read_indexes({"PIP_INDEX_URL": "https://env.invalid/s"}, tmp_path, tmp_path).index
        == "https://env.invalid/s"
    )
    both = {"PIP_INDEX_URL": "https://env.invalid/s", "UV_INDEX_URL": "https://uv.invalid/s"}
    assert indexes.read_indexes(both, tmp_path, tmp_path).index == "https://uv.invalid/s"
    assert (
        indexes.read_indexes({"PIP_CONFIG_FILE": "/dev/null"}, tmp_path, tmp_path).index
        == indexes.DEFAULT
    )


def test_no_password_reaches_foreign_code(tmp_path: Path) -> None:
    environ = {
        "PIP_INDEX_URL": "https://me:s3cret@a.invalid/simple",
        "PIP_FIND_LINKS": "https://u:s3cret@w.invalid/",
    }
    clean = indexes.read_indexes(environ, tmp_path, tmp_path).without_secrets()
    assert "s3cret" not in repr(clean)
    assert clean.index == "https://a.invalid/simple"


def test_releases_are_read_from_a_page_of_links(tmp_path: Path) -> None:
    page = tmp_path / "simple/x-y/index.html"
    page.parent.mkdir(parents=True)
    page.write_text(
        '<a href="x_y-1.0-py3-none-any.whl#sha256=00" data-upload-time="2024-01-01T00:00:00Z">x</a>'
        '<a href="x_y-1.10.tar.gz">x</a><a href="x_y-1.9.tar.gz" data-yanked="bad">x</a><a href="notes.txt">n</a>',
        encoding="utf-8",
    )
    found = PackageIndex(indexes.Indexes(index=(tmp_path / "simple").as_uri())).releases("x-y")
    assert [str(each.version) for each in found] == ["1.0", "1.9", "1.10"]
    assert found[0].uploaded == datetime(2024, 1, 1, tzinfo=UTC)
    assert (found[0].wheels, found[1].yanked, found[2].wheels) == ("any", True, "none")
    assert [each.wheels for each in found] == ["any", "none", "none"]
    assert (
        PackageIndex(indexes.Indexes(index=(tmp_path / "simple").as_uri())).releases("nothing")
        == ()
    )


def test_the_names_of_the_files_tell_of_compiled_wheels(tmp_path: Path) -> None:
    page = tmp_path / "z/index.html"
    page.parent.mkdir()
    names = ("z-1.tar.gz", "z-2-py3-none-any.whl", "z-3.tar.gz", "z-3-cp311-cp311-manylinux_2_17_x86_64.whl",
             "z-4.tar.gz", "z-4-cp27-none-macosx_10_6_intel.whl", "z-5-cp27-none-win32.whl", "z-5-py3-none-any.whl")  # fmt: skip
    page.write_text("".join(f'<a href="{each}">z</a>' for each in names), encoding="utf-8")
    found = UvBuilder(
        tmp_path, environ={"PIP_INDEX_URL": tmp_path.as_uri(), "PIP_CONFIG_FILE": "/dev/null"}
    ).history("z")
    assert [each.wheels for each in found] == ["none", "any", "linux", "none", "any"]


def spec(specifier: str = "", python: str = "3.12", device: str = "cpu") -> EnvironmentSpec:
    return EnvironmentSpec.model_validate(
        {"python": python, "requirements": (wanted("torch", specifier),), "device": device}
    )


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    for version, tag in (
        ("2.5.1+cpu", "cp311"),
        ("2.13.0+cpu", "cp311"),
        ("2.13.0+cpu", "cp310"),
        ("2.14.0", "cp312"),
    ):
        (tmp_path / f"torch-{version}-{tag}-{tag}-linux_x86_64.whl").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("claimed", "pin", "minor"),
    [
        ("==2.0.1", "torch==2.5.1+cpu", "3.11"),
        ("==2.13.0", "torch==2.13.0+cpu", "3.11"),
        ("", "torch==2.13.0+cpu", "3.11"),
    ],
)
def test_the_nearest_local_cpu_build_of_torch(
    wheels: Path, claimed: str, pin: str, minor: str
) -> None:
    found = torch_builds.choose(spec(claimed), (wheels,), ("3.10", "3.11", "3.12"), lambda: False)
    assert (found.pin, found.minor) == (pin, minor)


def test_the_cpu_index_comes_first_and_a_gpu_needs_neither(wheels: Path, tmp_path: Path) -> None:
    assert torch_builds.choose(spec(), (wheels,), ("3.11",), lambda: True).backend == "cpu"
    assert torch_builds.choose(spec(device="gpu"), (wheels,), ("3.11",), lambda: False).anything
    empty = tmp_path / "empty"
    empty.mkdir()
    assert not torch_builds.choose(spec(), (empty,), ("3.11",), lambda: False).possible


def test_the_resolvers_words_are_understood() -> None:
    tags = "hint: You require CPython 3.13 (`cp313`), but we only found wheels for `a` (v1) with the following Python ABI tags: `cp39`, `cp310`"
    assert releases.pythons_with_wheels(tags) == {"3.9", "3.10"}
    assert releases.unknown(
        "Because a-b was not found in the package registry and you require a-b"
    ) == ["a-b"]
    assert releases.hidden_by_date("hint: `a` was filtered by `exclude-newer` to only") == ["a"]
    assert releases.without_wheel(
        "Because all versions of docopt have no usable wheels\nhint: Wheels are required for `docopt` because"
    ) == ["docopt"]
    assert releases.is_mentioned("numpy==1.2 and x", "numpy")
    assert not releases.is_mentioned("numpy-quaternion==1.2", "numpy")
    bound = "Because the current Python version (3.8.18) does not satisfy Python>=3.9 and a==1 depends on Python>=3.9"
    assert releases.python_bounds(bound) == [">=3.9"]


def test_the_ladder_lets_the_weakest_go_first() -> None:
    first = draft(
        wanted("a", "==1.0"),
        wanted("b", "==2.0"),
        constraints=(wanted("c", "==3"), wanted("d", "==4")),
    )
    text = "Because a==1.0 depends on c>=4 and you require c==3, b==2.0 is out"
    seen, now = [first], first
    while (
        following := fallbacks.next_draft(now, text, world("1.0", "2.0"), seen)
    ) is not None and len(seen) < 20:
        seen.append(following)
        now = following
    assert [each.what for each in seen[1:]] == [
        "without the bound on c",
        "without the bound on d",
        "with any b",
        "without the date cut-off",
        "with Python 3.11",
        "with Python 3.10",
    ]
    assert now.requirements[0].specifier == "==1.0"


def test_what_the_files_of_a_repository_pin_goes_before_what_the_report_states() -> None:
    rows = (wanted("a", "==1.0"), wanted("b", "==2.0"), wanted("c", "==3.0"))
    first = draft(*rows, under_test="", declared=("a",))
    text = "Because a==1.0 depends on b>2 and you require b==2.0 and c==3.0"
    new = fallbacks.next_draft(first, text, world("1.0", "2.0", "3.0"), (first,))
    assert new is not None
    assert [row.specifier for row in new.requirements] == ["", "==2.0", "==3.0"]


def test_the_first_requirement_keeps_its_release_unless_it_is_gone() -> None:
    gone = fallbacks.next_draft(
        draft(wanted("a", "==1.0.2")),
        "no version of a==1.0.2",
        world("1.0.0", "1.0.1", "1.1.0"),
        (),
    )
    assert gone is not None
    assert (gone.requirements[0].specifier, gone.requirements[0].rung) == (
        "==1.0.1",
        PinSource.NEIGHBOUR,
    )


def test_a_stated_release_stays_whatever_an_unnamed_package_asks_for() -> None:
    """keras 3.0.5 beside a tensorflow that asks for keras 2, as pip installs it with a warning."""
    text = "tensorflow==2.15.1 depends on keras>=2.15.0,<2.16 and you require keras==3.0.5"
    guess = wanted("tensorflow", "==2.15.1").model_copy(update={"rung": PinSource.NEIGHBOUR})
    first = draft(wanted("keras", "==3.0.5"), guess)
    attempts, new = [first], fallbacks.next_draft(first, text, world("3.0.5"), (first,))
    while new is not None and not new.overrides and len(attempts) < 9:
        attempts.append(new)
        new = fallbacks.next_draft(new, text, world("3.0.5"), attempts)
    assert new is not None
    assert [drafts.line(row) for row in new.overrides] == ["keras==3.0.5"]
    assert "tensorflow asks for another release" in dict(new.notes)["keras"]
    stated = draft(wanted("keras", "==3.0.5"), wanted("tensorflow", "==2.15.1"))
    assert fallbacks._as_stated(stated, text, world()) is not None  # it is under test
    assert fallbacks._as_stated(draft(guess, wanted("keras", "==3.0.5")), text, world()) is not None
    beside = draft(wanted("tensorflow", "==2.15.1"), wanted("keras", "==3.0.5"))
    assert fallbacks._as_stated(beside, text, world()) is None, "both are stated"


def test_another_python_is_taken_where_the_wheels_are_unless_one_was_asked_for() -> None:
    tags = "you require a==1\nhint: You require x, but we only found wheels for `a` (v1) with the following Python ABI tag: `cp310`"
    moved = fallbacks.next_draft(draft(wanted("a", "==1")), tags, world("1"), ())
    assert moved is not None
    assert moved.minor == "3.10"
    kept = fallbacks.next_draft(draft(wanted("a", "==1")), tags, world("1", fixed=True), ())
    assert kept is not None
    assert kept.minor == "3.12"


def test_the_cpu_build_of_tensorflow_gives_way_where_it_never_was() -> None:
    found = fallbacks.next_draft(
        draft(wanted("tensorflow-cpu", "==2.1.9")),
        "no version of tensorflow-cpu==2.1.9",
        world(),
        (),
    )
    assert found is not None
    assert (found.requirements[0].name, found.requirements[0].specifier) == (
        "tensorflow",
        "==2.1.9",
    )


def test_what_torch_presumes_is_installed_once() -> None:
    first = draft(wanted("torch"))
    more = drafts.completed(first, ("torch==2.13.0+cpu", "sympy==1.14"))
    assert more is not None
    assert [each.name for each in more.requirements] == ["torch", "numpy"]
    assert drafts.completed(first, ("torch==2.13.0+cpu", "numpy==2.0")) is None
    assert drafts.completed(more, ("torch==2.13.0+cpu",)) is None


def test_a_library_that_needs_a_display_is_replaced_by_its_build_without_windows() -> None:
    first = draft(wanted("ultralytics"))
    more = drafts.completed(first, ("ultralytics==8.3.0", "opencv-python==4.10.0.84"))
    assert more is not None
    assert [drafts.line(each) for each in more.requirements] == [
        "ultralytics",
        "opencv-python-headless==4.10.0.84",
    ]
    assert "needs no display" in more.requirements[1].reason
    pins = ("ultralytics==8.3.0", "opencv-python-headless==4.10.0.84")
    assert drafts.completed(more, pins) is None
    assert drafts.without_windows(wanted("opencv-contrib-python", "==4.5.1.48")).name == (
        "opencv-contrib-python-headless"
    )
    assert drafts.without_windows(wanted("numpy")) == wanted("numpy")


def test_a_failed_install_says_whose_fault_it_was() -> None:
    assert isinstance(
        prepare._failure("error: write failed\n cause: No space left on device (os error 28)"),
        DiskFull,
    )
    assert isinstance(
        prepare._failure("error: Failed to fetch: x\n cause: dns error"), prepare.IndexDown
    )
    gone = "error: Failed to fetch: x\n cause: HTTP status client error (404 Not Found)"
    assert isinstance(prepare._failure(gone), prepare.Unresolvable)


def test_old_releases_bring_old_bounds() -> None:
    names = {each.name for each in drafts.bounds(draft(), datetime(2023, 1, 1, tzinfo=UTC))}
    assert names == {"setuptools", "numpy"}
    assert {each.name for each in drafts.bounds(draft(), None)} == {"setuptools"}
    claimed = draft(constraints=(wanted("numpy", "==2.1"),))
    assert "numpy" not in {
        each.name for each in drafts.bounds(claimed, datetime(2023, 1, 1, tzinfo=UTC))
    }
