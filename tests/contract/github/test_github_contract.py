"""What every GitHub promises, the fake included: one suite over the fake and over the adapter
that talks to a server.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from bot.app.ports import GoneError, Target, Throttled, Write
from bot.kernel.errors import TransientError, UserError

MARK = "<!-- reprise:run -->"
NOW = datetime.now(UTC).replace(microsecond=0)


def test_what_people_may_do(world):
    roles = ("admin", "maintain", "write", "triage", "read")
    for role in roles:
        world.allow(f"is-{role}", role)
    assert [world.github.permission(world.target, f"is-{role}") for role in roles] == list(roles)
    assert world.github.permission(world.target, "IS-Admin") == "admin"
    assert world.github.permission(world.target, "nobody") == "none"


@pytest.mark.parametrize(
    "login",
    ["", "..", "is-admin/../is-admin", "is-admin?", "is-admin#x", "is-admin/", "is%2Dadmin"],
)
def test_an_odd_login_may_nothing(world, login):
    world.allow("is-admin", "admin")
    assert world.github.permission(world.target, login) == "none"


def test_reads_files_as_text(world):
    world.put_file(".github/reprise.yml", "enabled: true # ä\n".encode())
    world.put_file("with space/100%/a?b#c.txt", b"odd")
    assert world.github.file(world.target, ".github/reprise.yml") == "enabled: true # ä\n"
    assert world.github.file(world.target, "with space/100%/a?b#c.txt") == "odd"
    assert world.github.file(world.target, ".github/other.yml") is None
    assert world.github.file(world.target, ".github") is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "..",
        "../.github/a.yml",
        ".github/../.github/a.yml",
        ".github//a.yml",
        ".github/a.yml?",
    ],
)
def test_an_odd_path_is_no_file(world, path):
    world.put_file(".github/a.yml", b"x")
    assert world.github.file(world.target, path) is None


def test_a_file_that_is_large_or_no_text_is_none(world):
    world.put_file("exact.txt", b"x" * 1000)
    world.put_file("large.txt", b"x" * 1001)
    world.put_file("latin.txt", b"caf\xe9")
    world.put_file("binary.bin", b"a\0b")
    found = {
        name: world.github.file(world.target, name, 1000)
        for name in ("exact.txt", "large.txt", "latin.txt", "binary.bin")
    }
    assert found == {
        "exact.txt": "x" * 1000,
        "large.txt": None,
        "latin.txt": None,
        "binary.bin": None,
    }


@pytest.mark.parametrize("name", ["elsewhere/net", "octo/other", "octo/..", "octo", ""])
def test_what_the_installation_does_not_cover(world, name):
    other = Target(installation=world.target.installation, repository=name)
    with pytest.raises(GoneError):  # not "no file": a switched-off repository would run
        world.github.file(other, "README.md")
    with pytest.raises(GoneError):
        world.github.create_comment(other, world.number, "text")
    with pytest.raises(GoneError):
        world.github.clone_token(other)


def test_writes_and_edits_a_comment(world):
    made = world.github.create_comment(world.target, world.number, "first ä \U0001f600")
    assert world.comments() == [(world.login, "first ä \U0001f600")]
    world.github.update_comment(world.target, made, "second")
    assert world.comments() == [(world.login, "second")]


def test_what_was_deleted_is_gone(world):
    made = world.github.create_comment(world.target, world.number, "text")
    world.delete_comment(made)
    with pytest.raises(GoneError):
        world.github.update_comment(world.target, made, "text")
    with pytest.raises(GoneError):
        world.github.react(world.target, world.number, made, "eyes")
    with pytest.raises(GoneError):
        world.github.create_comment(world.target, 987_654, "text")
    with pytest.raises(GoneError):
        world.github.find_comments(world.target, 987_654, MARK)
    assert world.comments() == []


def test_finds_the_oldest_comment_of_its_own(world):
    world.say("mona", f"{MARK} I am the bot")
    world.say("other[bot]", f"{MARK} so am I")
    world.github.create_comment(world.target, world.number, f"> {MARK}\n\nquoted")
    assert world.github.find_comments(world.target, world.number, MARK) == ()
    first = world.github.create_comment(world.target, world.number, f"{MARK}\nverdict")
    second = world.github.create_comment(world.target, world.number, f"{MARK}\nverdict again")
    assert world.github.find_comments(world.target, world.number, MARK) == (first, second)
    for _ in range(2):
        world.github.delete_comment(world.target, second)
    assert world.github.find_comments(world.target, world.number, MARK) == (first,)
    assert world.github.find_comments(world.target, world.number, "<!-- reprise:other -->") == ()


def test_finds_its_comment_behind_many_others(world):
    for number in range(130):
        world.say("mona", f"comment {number}")
    made = world.github.create_comment(world.target, world.number, f"{MARK}\nverdict")
    assert world.github.find_comments(world.target, world.number, MARK) == (made,)


def test_a_comment_whose_answer_was_lost_is_found(world):
    world.lose_answer()
    with pytest.raises(TransientError):
        world.github.create_comment(world.target, world.number, f"{MARK}\nverdict")
    (found,) = world.github.find_comments(world.target, world.number, MARK)
    world.github.update_comment(world.target, found, f"{MARK}\nverdict, edited")
    assert world.comments() == [(world.login, f"{MARK}\nverdict, edited")]


def test_a_comment_can_be_as_long_as_github_allows_and_no_longer(world):
    world.github.create_comment(world.target, world.number, "x" * 65_536)
    with pytest.raises(UserError):
        world.github.create_comment(world.target, world.number, "x" * 65_537)
    assert [len(body) for _, body in world.comments()] == [65_536]


def test_reacting_twice_is_reacting_once(world):
    comment = world.say("mona", "/reproduce")
    for _ in range(2):
        world.github.react(world.target, world.number, comment, "eyes")
        world.github.react(world.target, world.number, None, "eyes")
    world.github.react(world.target, world.number, comment, "+1")
    world.github.react(world.target, world.number, None, "confused")
    assert world.reactions(comment) == [(world.login, "+1"), (world.login, "eyes")]
    assert world.reactions(None) == [(world.login, "confused"), (world.login, "eyes")]


OURS = (
    "reprise: inconclusive",
    "reprise: needs info",
    "reprise: not reproduced",
    "reprise: reproduced",
)


def put(world, name: str) -> None:
    others = [each for each in OURS if each != name]
    world.github.labels(world.target, world.number, name, others, "0e8a16", "Reprise ran it")


def test_a_label_is_made_put_on_and_replaced(world):
    world.put_label("bug")
    put(world, "reprise: reproduced")
    assert world.labels() == {"bug", "reprise: reproduced"}
    assert world.known_labels()["reprise: reproduced"] == ("0e8a16", "Reprise ran it")
    put(world, "reprise: inconclusive")
    assert world.labels() == {"bug", "reprise: inconclusive"}


def test_a_label_put_on_twice_is_written_once(world):
    put(world, "reprise: reproduced")
    before = world.writes()
    put(world, "reprise: reproduced")
    assert world.labels() == {"reprise: reproduced"}
    assert world.writes() == before


def test_a_label_that_the_repository_has_keeps_its_colour(world):
    world.know_label("Reprise: Reproduced", "ff0000", "mine")
    put(world, "reprise: reproduced")
    assert {name.lower() for name in world.labels()} == {"reprise: reproduced"}
    assert world.known_labels()["Reprise: Reproduced"] == ("ff0000", "mine")


def test_odd_labels_take_nothing_else_off(world):
    world.put_label("bug")
    world.put_label("a/b?c#d")
    world.github.labels(
        world.target,
        world.number,
        "reprise: reproduced",
        ["", ".", "..", "not there"],
        "0e8a16",
        "",
    )
    assert world.labels() == {"bug", "a/b?c#d", "reprise: reproduced"}
    world.github.labels(
        world.target, world.number, "reprise: reproduced", ["a/b?c#d"], "0e8a16", ""
    )
    assert world.labels() == {"bug", "reprise: reproduced"}


def test_labels_of_what_is_not_there(world):
    with pytest.raises(GoneError):
        world.github.labels(world.target, 987_654, "reprise: reproduced", [], "0e8a16", "")


def test_a_token_to_clone_with(world):
    token = world.github.clone_token(world.target)
    assert token.username == "x-access-token"
    assert token.token


def test_deliveries_that_github_tried(app_world):
    app_world.tried("guid-1", 202, NOW - timedelta(hours=2))
    failed = app_world.tried("guid-2", 500, NOW - timedelta(hours=1))
    app_world.tried("guid-3", 200, NOW)
    hooks = app_world.github.hooks(NOW - timedelta(minutes=90))
    assert [(each.guid, each.ok) for each in hooks] == [("guid-3", True), ("guid-2", False)]
    assert hooks[1].id == failed
    assert hooks[1].at == NOW - timedelta(hours=1)
    app_world.github.redeliver(failed)
    assert app_world.redelivered() == [failed]
    with pytest.raises(GoneError):
        app_world.github.redeliver(987_654)


def test_a_limit_is_passed_on_with_its_seconds_and_nothing_is_written(world):
    world.throttle(17)
    with pytest.raises(Throttled) as caught:
        world.github.create_comment(world.target, world.number, "text")
    assert caught.value.after_s == 17
    assert world.tries() == 1
    assert world.comments() == []
    world.github.create_comment(world.target, world.number, "text")
    assert len(world.comments()) == 1


def test_an_error_of_githubs_own_is_not_answered_with_a_second_try(world):
    world.break_down()
    with pytest.raises(TransientError) as caught:
        world.github.create_comment(world.target, world.number, "text")
    assert not isinstance(caught.value, Throttled | GoneError)
    assert world.tries() == 1
    assert world.comments() == []


def test_a_slot_encloses_each_write(world):
    asked: list[tuple[int, bool]] = []
    under_way: list[int] = []

    @contextmanager
    def slot(installation: int, write: Write | None) -> Iterator[None]:
        if write is None:
            yield
            return
        assert under_way == []
        asked.append((installation, write.notifies))
        under_way.append(len(world.comments()))
        yield
        assert len(world.comments()) - under_way.pop() == write.notifies

    slow = world.github.hooked(slot)
    comment = slow.create_comment(world.target, world.number, "text")
    slow.update_comment(world.target, comment, "other")
    slow.react(world.target, world.number, comment, "eyes")
    slow.labels(world.target, world.number, "reprise: reproduced", [], "0e8a16", "")
    slow.labels(
        world.target, world.number, "reprise: inconclusive", ["reprise: reproduced"], "0e8a16", ""
    )
    here = world.target.installation
    assert asked == [(here, True), *[(here, False)] * 7]
    slow.find_comments(world.target, world.number, MARK)
    slow.permission(world.target, "mona")
    slow.file(world.target, "a")
    assert len(asked) == 8


def test_a_slot_that_is_refused_keeps_the_write_back(world):
    def no(installation: int, write: Write | None) -> AbstractContextManager[None]:
        raise Throttled("not now", 9)

    with pytest.raises(Throttled):
        world.github.hooked(no).create_comment(world.target, world.number, "text")
    assert world.comments() == []


def test_threads_do_not_disturb_each_other(world):
    def write(number: int) -> None:
        made = world.github.create_comment(world.target, world.number, f"text {number}")
        world.github.update_comment(world.target, made, f"final {number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(body for _, body in world.comments()) == sorted(
        f"final {number}" for number in range(8)
    )
