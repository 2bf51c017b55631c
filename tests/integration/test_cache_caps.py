"""The caps of the cache: the least recently used goes, what a run holds stays, and what went can be
had again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from bot.cli import checks
from bot.environment.builder import UvBuilder
from bot.environment.git import Git
from bot.environment.written_trees import commit_files
from bot.kernel.environment import RepoSource
from bot.kernel.errors import TransientError
from bot.kernel.settings import Settings
from bot.report.run_folder import keep_runs
from sandbox import cache as sandbox_cache, footprint
from sandbox.cache import Cache
from sandbox.environment import Installation, Installer
from sandbox.subprocesses import Interrupted
from tests.integration.test_builder import git, spec, wanted
from tests.integration.test_hostile_wheels import World, says

NEARLY_FULL = shutil._ntuple_diskusage(1 << 40, (1 << 40) - (1 << 20), 1 << 20)
EVERYTHING = {area.name: 0 for area in sandbox_cache.AREAS}


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for name in ("old", "used", "new"):
        world.wheel(name, {f"{name}.py": b"answer = 42\n", f"{name}.bin": os.urandom(3 << 20)})
    return world


def made(world: World) -> dict[str, Installation]:
    """One environment each, by a builder that is gone, an hour apart."""
    built = {}
    for hour, name in enumerate(("old", "used", "new")):
        built[name] = world.install(name)
        marker = built[name].root / ".complete"
        os.utime(marker, (time.time() - 3600 * (9 - hour),) * 2)
    world.installer = Installer(Cache(world.root / "cache"), world.installer.indexes)
    return built


def keep(world: World, **most: int) -> None:
    sandbox_cache.keep(
        Cache(world.root / "cache"), {**dict.fromkeys(EVERYTHING, 1 << 60), **most}, 0
    )


def test_the_environment_used_least_recently_goes_with_its_wheel_and_its_locks(
    world: World,
) -> None:
    built = made(world)
    cache = Cache(world.root / "cache")
    before = sandbox_cache.AREAS[0].used(cache)
    assert before > 9 << 20, "the wheels count once"
    world.install("used")
    keep(world, environments=before - 1)
    assert [built[name].root.exists() for name in ("old", "used", "new")] == [False, True, True]
    assert not list((world.root / "cache/locks").glob(f"*{built['old'].id}*"))
    assert sandbox_cache.AREAS[0].used(cache) <= before - (3 << 20)
    left = sum(path.stat().st_size for path in cache.root.glob("uv/archive-v*/*/*.bin"))
    assert left == 6 << 20
    again = world.install("old")
    assert says(again, "import old; print(old.answer)") == "42"


def test_it_is_said_only_when_something_has_to_go(world: World) -> None:
    made(world)
    cache, told = Cache(world.root / "cache"), []
    size = sandbox_cache.AREAS[0].used(cache)
    for most in (size, size - 1):
        caps = {**dict.fromkeys(EVERYTHING, 1 << 60), "environments": most}
        sandbox_cache.keep(cache, caps, 0, lambda: told.append(True))
        assert len(told) == (most < size)


def test_what_a_run_holds_stays_until_it_ends(world: World) -> None:
    built = made(world)
    world.install("old")
    keep(world, environments=0)
    assert [built[name].root.exists() for name in ("old", "used", "new")] == [True, False, False]
    assert says(built["old"], "import old; print(old.answer)") == "42"
    world.installer = Installer(Cache(world.root / "cache"), world.installer.indexes)
    keep(world, environments=0)
    assert not built["old"].root.exists()
    assert not [
        each for each in world.root.glob("cache/bytecode/*/*/*") if each.stat().st_nlink < 2
    ]


def test_an_environment_in_the_making_is_left_alone(world: World) -> None:
    cache = Cache(world.root / "cache")
    half = cache.folder("envs") / "half"
    half.mkdir()
    with cache.guarded("env-half"):
        assert cache.sweep() == 0
        keep(world, environments=0)
        assert half.exists()
    assert cache.sweep() == 1
    assert not half.exists()


def test_two_may_not_have_one_lock_although_its_file_was_removed(tmp_path: Path) -> None:
    """Who waited for a lock that its owner removes gets the next file's, and so does a third."""
    cache, inside, most = Cache(tmp_path), [], []

    def work() -> None:
        with Cache(tmp_path).guarded("one"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    with cache.removing("one") as free:
        assert free
        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
    for _ in range(20):
        cache.sweep()
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]
    cache.sweep()
    assert not list(tmp_path.glob("locks/*"))


def test_waiting_for_a_lock_ends_when_the_run_is_cancelled(tmp_path: Path) -> None:
    stop = Event()
    stop.set()
    with Cache(tmp_path).guarded("one"), pytest.raises(Interrupted):
        Cache(tmp_path, stop).hold("one")


def test_clones_wheels_and_indexes_go_by_their_last_use(tmp_path: Path) -> None:
    where = tmp_path / "repo"
    where.mkdir()
    git(where, "init", "-q", "-b", "main")
    (where / "file.txt").write_text("x" * 100_000, encoding="utf-8")
    git(where, "add", ".")
    git(where, "commit", "-qm", "one")
    cache = Cache(tmp_path / "cache")
    tree = Git(cache, dict(os.environ)).checkout(RepoSource(url="", path=str(where)), None).tree
    for name in ("a", "b"):
        (cache.folder("wheels") / name).mkdir()
        (cache.folder("wheels") / name / "x.whl").write_bytes(bytes(200_000))
        (cache.folder("index") / f"{name}.sqlite").write_bytes(os.urandom(200_000))
    for path in (cache.root / "wheels/a", cache.root / "index/a.sqlite"):
        os.utime(path, (1, 1))
    most = {**EVERYTHING, "wheels": 300_000, "indexes": 300_000}
    sandbox_cache.keep(Cache(cache.root), most, 0)
    assert tree.exists(), "somebody works with it"
    assert [each.name for each in (cache.root / "wheels").iterdir()] == ["b"]
    assert [each.name for each in (cache.root / "index").iterdir()] == ["b.sqlite"]
    del cache
    sandbox_cache.keep(Cache(tmp_path / "cache"), EVERYTHING, 0)
    assert not tree.exists()
    assert not tree.with_suffix(".complete").exists()
    assert not list((tmp_path / "cache/repos").iterdir())


def test_clones_that_nobody_used_for_a_week_go_below_every_cap(tmp_path: Path) -> None:
    cache, week = Cache(tmp_path / "cache"), 7 * 86_400
    for name, age in (("left", week + 60), ("in-use", week - 600)):
        clone, marker = cache.folder("repos") / name, cache.folder("trees") / f"{name}-1.complete"
        for folder in (clone, marker.with_suffix("")):
            folder.mkdir()
            (folder / "secret.py").write_text("")
        marker.write_text("")
        for path in (clone, marker):
            os.utime(path, (time.time() - age,) * 2)
    sandbox_cache.keep(cache, dict.fromkeys(EVERYTHING, 1 << 60), 0)
    left = {path.relative_to(cache.root).as_posix() for path in cache.root.glob("[rt]*s/*")}
    assert left == {"repos/in-use", "trees/in-use-1", "trees/in-use-1.complete"}


def test_written_code_goes_as_clones_do_but_not_while_a_run_has_it(tmp_path: Path) -> None:
    cache, run = Cache(tmp_path / "cache"), Cache(tmp_path / "cache")
    old = commit_files({"main.py": "old = 1\n"}, Cache(cache.root))
    used = commit_files({"main.py": "used = 1\n"}, run)
    for path, hours in ((used, 9), (old, 1)):
        os.utime(path, (time.time() - 3600 * hours,) * 2)
    part = used.with_name(f".part-{used.name}x")
    part.mkdir()
    assert sum(item.size for item in sandbox_cache.clones(cache)) > 0
    sandbox_cache.keep(cache, {**dict.fromkeys(EVERYTHING, 1 << 60), "clones": 0}, 0)
    assert cache.sweep() == 1
    assert [path.name for path in used.parent.iterdir()] == [used.name]
    del run
    sandbox_cache.keep(cache, {**dict.fromkeys(EVERYTHING, 1 << 60), "clones": 0}, 0)
    assert not list(used.parent.iterdir())


def test_folders_deeper_than_python_nests_calls_are_counted_and_go(tmp_path: Path) -> None:
    """Of a branch with a long name."""
    cache = Cache(tmp_path / "cache")
    deep = {name: cache.folder(name) / "deep-1" for name in ("repos", "trees", "scratch")}
    for folder in deep.values():
        subprocess.run(["mkdir", "-p", folder / ("d/" * 1500)], check=True)
    size = 1500 * 4096
    assert all(size <= item.size < size + 10_000 for item in sandbox_cache.clones(cache))
    sandbox_cache.keep(cache, EVERYTHING, 0)
    assert [name for name, folder in deep.items() if folder.exists()] == ["scratch"]
    assert cache.sweep() == 1
    assert not deep["scratch"].exists()


def test_what_did_not_change_is_not_counted_again(tmp_path: Path) -> None:
    repo, run = tmp_path / "repos/one", tmp_path / "runs/one"
    for folder, last in ((repo, repo), (run, run / "report.json")):
        folder.mkdir(parents=True)
        (folder / "report.json").touch()
        os.utime(last, (1, 1))
        before = footprint.remembered(folder, last)
        assert before == footprint.size_of(folder) - 4096, "the note itself came later"
        assert folder is run or folder.stat().st_mtime == 1, "looking is no use"
        (folder / "more").write_bytes(os.urandom(50_000))
        os.utime(last, (2, 2))
        assert footprint.remembered(folder, last) == before
        os.utime(last)
        assert footprint.remembered(folder, last) >= before + 50_000


def test_below_the_reserve_caches_are_halved(world: World) -> None:
    built = made(world)
    before = sandbox_cache.AREAS[0].used(Cache(world.root / "cache"))
    sandbox_cache.keep(Cache(world.root / "cache"), dict.fromkeys(EVERYTHING, 1 << 60), 1 << 60)
    assert sandbox_cache.AREAS[0].used(Cache(world.root / "cache")) <= before // 2
    assert built["new"].root.exists()


def test_finished_runs_go_oldest_first_and_others_stay(tmp_path: Path) -> None:
    for hour, name in enumerate(("first", "second", "third", "going", "foreign")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.txt").write_bytes(bytes(50_000))
        if name != "foreign":
            (tmp_path / name / ".reprise").touch()
            (tmp_path / name / "report.json").touch()
            os.utime(tmp_path / name / "report.json", (hour, hour))
    with (tmp_path / "first/.reprise").open("r+") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        (tmp_path / "going/report.json").unlink()
        keep_runs(tmp_path, footprint.size_of(tmp_path / "first") * 2)
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {"first", "third", "going", "foreign"}


def test_a_disk_that_is_full_ends_a_build_in_words_and_the_rest_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = made(world)
    world.wheel("setuptools", {"setuptools.py": b""})
    own = {"PIP_FIND_LINKS": str(world.wheels), "PIP_NO_INDEX": "true", "HOME": str(world.root)}
    environ = {**own, "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": "/dev/null"}
    builder = UvBuilder(world.root / "cache", environ=environ, torch_index=False)
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: NEARLY_FULL)
        with pytest.raises(TransientError, match="The disk is full"):
            builder.build(spec(wanted("old"), wanted("new"), at=None))
    assert says(built["old"], "import old; print(old.answer)") == "42"
    again = builder.build(spec(wanted("old"), wanted("new"), at=None))
    assert again.version("new") == "1.0"


def test_the_doctor_shows_what_every_cap_has_left(world: World) -> None:
    made(world)
    settings = Settings(
        cache_dir=world.root / "cache", runs_dir=world.root / "runs", environments_gb=0.5
    )
    shown = {each.name: each.detail for each in checks.disk(settings)}
    assert set(shown) == {*("cache", "environments", "wheels", "clones", "indexes", "data", "runs")}
    assert shown["environments"] == "0.0 of at most 0.5 GB (REPRISE_ENVIRONMENTS_GB)"
    assert "3 environments cached" in shown["cache"]
