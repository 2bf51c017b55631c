"""The contract of a reader of histories, held by git over a clone and by the fake alike."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.environment.commits import GitCommits
from bot.environment.git import Git
from bot.kernel.bug import Commit, Provided
from bot.kernel.environment import RepoSource
from bot.kernel.errors import UserError
from bot.kernel.ports import Commits
from sandbox.cache import Cache
from tests.support.fakes import FakeCommits

World = tuple[Commits, RepoSource, list[str]]
COUNT = 6
SETUP = "[metadata]\nname = My.Lib\n"
MODULE = "src/lib/__init__.py"


def _git(where: Path, day: str, *argv: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(where), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = (
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.invalid",
        "-c",
        "commit.gpgsign=false",
    )
    dated = {**env, "GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day}
    done = subprocess.run(
        ["git", *identity, *argv], cwd=where, env=dated, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _real(tmp_path: Path) -> World:
    where = tmp_path / "clone"
    where.mkdir()
    _git(where, "", "init", "-q", "-b", "main")
    ids = []
    for at in range(COUNT):
        (where / "src" / "lib").mkdir(parents=True, exist_ok=True)
        (where / "src" / "lib" / "__init__.py").write_text(
            f"raise SystemExit({at})\n", encoding="utf-8"
        )
        (where / "setup.cfg").write_text(SETUP, encoding="utf-8")
        _git(where, "", "add", "-A")
        _git(where, f"2024-01-{at + 1:02d}T00:00:00Z", "commit", "-q", "-m", f"change {at}")
        ids.append(_git(where, "", "rev-parse", "HEAD"))
    _git(where, "", "tag", "v1.0", ids[1])
    _git(where, "", "tag", "v1.1", ids[4])
    return (
        GitCommits(Git(Cache(tmp_path / "cache"), dict(os.environ))),
        RepoSource(url="", path=str(where)),
        ids,
    )


def _fake(_: Path) -> World:
    days = [datetime(2024, 1, at + 1, tzinfo=UTC) for at in range(COUNT)]
    rows = tuple(
        Commit(id=f"{at:x}" * 40, subject=f"change {at}", date=day) for at, day in enumerate(days)
    )
    tags = {"1.0": rows[1].id, "1.1": rows[4].id, "v1.0": rows[1].id, "v1.1": rows[4].id}
    holds = Provided(name="my-lib", on_path=("lib",), built=("lib",))
    files = {
        row.id: {"src/lib/__init__.py": f"raise SystemExit({at})\n", "setup.cfg": SETUP}
        for at, row in enumerate(rows)
    }
    return (
        FakeCommits(rows, tags, holds, files),
        RepoSource(url="", path="/clone"),
        [each.id for each in rows],
    )


@pytest.fixture(params=[_real, _fake], ids=["git", "fake"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    made: World = request.param(tmp_path)
    return made


def test_a_line_runs_from_after_one_commit_up_to_another(world: World) -> None:
    commits, source, ids = world
    line = commits.line(source, ids[1], ids[4])
    assert [each.id for each in line] == ids[2:5]
    assert [each.subject for each in line] == ["change 2", "change 3", "change 4"]
    assert line[0].date == datetime(2024, 1, 3, tzinfo=UTC)
    assert commits.line(source, "v1.0", "v1.1") == line


def test_a_line_from_the_beginning_and_to_the_head(world: World) -> None:
    commits, source, ids = world
    assert [each.id for each in commits.line(source, "", ids[2])] == ids[:3]
    assert [each.id for each in commits.line(source, ids[2], "")] == ids[3:]


def test_a_line_backwards_or_of_one_commit_is_empty(world: World) -> None:
    commits, source, ids = world
    assert commits.line(source, ids[4], ids[1]) == ()
    assert commits.line(source, ids[4], ids[4]) == ()


def test_a_commit_by_its_id_a_part_of_it_a_tag_or_none(world: World) -> None:
    commits, source, ids = world
    assert commits.commit(source, ids[2]).id == commits.commit(source, ids[2][:12]).id == ids[2]
    assert commits.commit(source, "v1.1").id == ids[4]
    assert commits.commit(source, "").id == ids[-1]
    with pytest.raises(UserError):
        commits.commit(source, "no-such-thing")


@pytest.mark.parametrize(
    ("subject", "published"),
    [
        ("Merge branch 'main' of https://git.example/a/b", True),
        ("Merge branch 'main' of https://git.example/a/b into main", True),
        ("Merge remote-tracking branch 'origin/main'", True),
        ("Merge pull request #3 from some/main", False),
        ("Merge branch 'feature' of https://git.example/a/b", False),
    ],
)
def test_the_line_that_was_public_leads_past_a_pull(
    tmp_path: Path, subject: str, published: bool
) -> None:
    """Two people commit; one of them merges the other's, or a pull request, a month later."""
    _, source, ids = _real(tmp_path)
    where = Path(source.path)
    _git(where, "", "checkout", "-q", "-b", "other", ids[1])
    (where / "more.py").write_text("more = 1\n", encoding="utf-8")
    _git(where, "", "add", "-A")
    _git(where, "2024-01-03T12:00:00Z", "commit", "-q", "-m", "theirs")
    theirs = _git(where, "", "rev-parse", "HEAD")
    _git(where, "", "checkout", "-q", "main")
    _git(where, "2024-02-01T00:00:00Z", "merge", "-q", "--no-ff", "-m", subject, "other")
    git = Git(Cache(tmp_path / "cache"), dict(os.environ))
    day = datetime(2024, 1, 20, tzinfo=UTC)
    assert git.checkout(source, day).commit == (theirs if published else ids[5])


def test_a_history_that_began_anew_keeps_the_commits_of_before(tmp_path: Path) -> None:
    """A new first commit, made elsewhere, into which the published history was merged."""
    _, source, ids = _real(tmp_path)
    where = Path(source.path)
    _git(where, "", "checkout", "-q", "--orphan", "anew")
    _git(where, "2024-02-01T00:00:00Z", "commit", "-q", "-m", "begun anew")
    strategy = ("--allow-unrelated-histories", "-s", "ours")
    _git(where, "2024-02-02T00:00:00Z", "merge", "-q", *strategy, "-m", "both", "main")
    _git(where, "", "branch", "-f", "main", "anew")
    _git(where, "", "checkout", "-q", "main")
    git = Git(Cache(tmp_path / "cache"), dict(os.environ))
    assert git.checkout(source, datetime(2024, 1, 20, tzinfo=UTC)).commit == ids[5]
    assert git.checkout(source, datetime(2024, 1, 3, 12, tzinfo=UTC)).commit == ids[2]


def test_the_head_is_that_of_the_clone_whatever_its_branch_is_called(tmp_path: Path) -> None:
    """For a bisection and for a checkout alike; what another checkout asked for before is not
    taken for it.
    """
    commits, source, ids = _real(tmp_path)
    git = Git(Cache(tmp_path / "cache"), dict(os.environ))
    _git(Path(source.path), "", "branch", "master", ids[0])
    for ref, wanted in (
        ("HEAD", ids[5]),
        ("HEAD~3", ids[2]),
        ("main~3", ids[2]),
        ("main^", ids[4]),
        ("v1.1~1", ids[3]),
    ):
        assert commits.commit(source, ref).id == wanted
        assert git.checkout(source.model_copy(update={"ref": ref}), None).commit == wanted
        (store,) = (tmp_path / "cache" / "repos").iterdir()
        _git(store, "", "update-ref", "refs/heads/asked", ids[0])


@pytest.mark.parametrize(
    "ref", ["--upload-pack=id", "-x", "^main", "~3", "v1.0..v1.1", "main;id", "main~9", "HEAD:src"]
)
def test_what_is_no_commit_is_refused(ref: str, tmp_path: Path) -> None:
    commits, source, _ = _real(tmp_path)
    for ask in (
        lambda: commits.commit(source, ref),
        lambda: Git(Cache(tmp_path / "cache"), dict(os.environ)).checkout(
            source.model_copy(update={"ref": ref}), None
        ),
    ):
        with pytest.raises(UserError):
            ask()


def test_what_lies_between_two_releases_newest_first(world: World) -> None:
    commits, source, ids = world
    assert [each.id for each in commits.between(source, "1.0", "1.1")] == ids[4:1:-1]
    assert len(commits.between(source, "1.0", "1.1", limit=2)) == 2
    assert commits.between(source, "1.0", "7.0") == ()


def test_what_a_commit_provides(world: World) -> None:
    commits, source, ids = world
    assert commits.provides(source, ids[3]) == Provided(
        name="my-lib", on_path=("lib",), built=("lib",)
    )


def test_a_name_that_is_not_ascii_is_read_as_it_is(tmp_path: Path) -> None:
    commits, source, _ = _real(tmp_path)
    clone = Path(source.path)
    (clone / "über").mkdir()
    (clone / "über" / "__init__.py").write_text("", encoding="utf-8")
    _git(clone, "", "add", "-A")
    _git(clone, "2024-02-01T00:00:00Z", "commit", "-q", "-m", "another module")
    assert commits.provides(source, _git(clone, "", "rev-parse", "HEAD")).on_path == ("über", "lib")


def test_the_tags_around_a_commit(world: World) -> None:
    commits, source, ids = world
    around = [tuple(tag.removeprefix("v") for tag in commits.tags(source, each)) for each in ids]
    assert around == [
        ("1.0", ""),
        ("1.0", ""),
        ("1.1", "1.0"),
        ("1.1", "1.0"),
        ("1.1", "1.0"),
        ("", "1.1"),
    ]


def test_the_changes_of_a_file_and_its_text_before_each(world: World) -> None:
    commits, source, ids = world
    changes = commits.changes(source, ids[4], (MODULE,), 3)
    assert [each.id for each in changes] == [ids[4], ids[3], ids[2]]
    assert [each.id for each in commits.changes(source, ids[4], (MODULE,), 9)] == ids[4:0:-1]
    assert commits.changes(source, ids[4], ("setup.cfg",), 9) == ()
    paths = (MODULE, "src/*", "no/such.py")
    assert commits.texts(source, f"{ids[3]}^", paths) == {MODULE: "raise SystemExit(2)\n"}
    assert commits.commit(source, f"{ids[3]}^").id == ids[2]
    assert commits.changes(source, ids[4], ("src/*",), 9) == ()
