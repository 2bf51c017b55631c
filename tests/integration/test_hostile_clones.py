"""Repositories that cost more than they seem to, and checkouts that are stopped: real git, and bombs
of their real size where they are quick to make.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from bot.environment.clone_bounds import CloneBounds
from bot.environment.commits import GitCommits
from bot.environment.git import Git
from bot.kernel.environment import RepoSource
from bot.kernel.errors import TransientError, UserError
from sandbox import cache as sandbox_cache, footprint
from sandbox.cache import Cache
from sandbox.footprint import DiskFull
from sandbox.subprocesses import Interrupted

MIB = 1 << 20
NEARLY_FULL = shutil._ntuple_diskusage(1 << 40, (1 << 40) - MIB, MIB)
WHO = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")

Row = tuple[str, str, str]
"""Mode, object and name of what is in a folder."""


class Repository:
    """A bare repository, made object by object."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "--bare", "-b", "main")

    def git(self, *argv: str, stdin: bytes = b"") -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *WHO, *argv],
            cwd=self.folder,
            env=env,
            input=stdin,
            check=True,
            capture_output=True,
        )
        return done.stdout.decode().strip()

    def blob(self, data: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=data)

    def tree(self, *rows: Row) -> str:
        kinds = {"100644": "blob", "040000": "tree"}
        lines = (f"{mode} {kinds[mode]} {name}\t{path}\n" for mode, name, path in rows)
        return self.git("mktree", stdin="".join(lines).encode())

    def files(self, count: int, data: bytes) -> str:
        blob = self.blob(data)
        return self.tree(*(("100644", blob, f"f{number}") for number in range(count)))

    def commit(self, tree: str, message: bytes = b"one") -> RepoSource:
        commit = self.git("commit-tree", tree, stdin=message)
        self.git("update-ref", "refs/heads/main", commit)
        return RepoSource(url="", path=str(self.folder))

    @property
    def size(self) -> int:
        return footprint.size_of(self.folder / "objects")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository.git")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def small(cache: Cache, **bounds: int) -> Git:
    return Git(cache, dict(os.environ), bounds=CloneBounds(**bounds))


def refused(git: Git, source: RepoSource, why: str) -> float:
    """Seconds until a checkout was refused, with nothing left of its files."""
    began = time.monotonic()
    with pytest.raises(UserError, match=why) as told:
        git.checkout(source, None)
    assert told.value.fix
    assert left(git.cache) == []
    return time.monotonic() - began


def left(cache: Cache) -> list[str]:
    """What there is of commits as files, finished or not."""
    return [path.name for path in cache.root.glob("[ts][rc]*/*")]


def nested(repository: Repository, tree: str, levels: int, times: int) -> str:
    for _ in range(levels):
        tree = repository.tree(*(("040000", tree, f"d{number}") for number in range(times)))
    return tree


@pytest.mark.parametrize("files", [10, 0])
def test_shared_folders_that_multiply_are_not_checked_out(
    repository: Repository, cache: Cache, files: int
) -> None:
    """A billion of files, or of folders without any, in ten objects."""
    leaf = repository.files(files, b"x\n")
    source = repository.commit(nested(repository, leaf, 8, 10))
    assert repository.size < MIB
    assert refused(small(cache), source, "has more than 200,000 files and folders") < 60


def test_a_small_object_that_unfolds_many_times_is_not_checked_out(
    repository: Repository, cache: Cache
) -> None:
    source = repository.commit(repository.files(110, b"a" * (20 * MIB)))
    assert repository.size < MIB
    assert refused(small(cache), source, "has more than 2 GiB of data") < 60


def test_a_large_file_is_not_checked_out(repository: Repository, cache: Cache) -> None:
    """Whoever reads a file of a clone has it in memory."""
    source = repository.commit(repository.files(1, b"a" * (257 * MIB)))
    refused(small(cache), source, "has a file of more than 256 MiB")


def test_folders_deeper_than_python_nests_calls_are_not_checked_out(
    repository: Repository, cache: Cache
) -> None:
    path = "d/" * 1500 + "f"
    lines = (
        f"commit refs/heads/main\ncommitter t <t> 1 +0000\ndata 0\nM 644 inline {path}\ndata 0\n"
    )
    repository.git("fast-import", "--quiet", stdin=lines.encode())
    source = RepoSource(url="", path=str(repository.folder))
    refused(small(cache), source, "paths of more than 1,000 bytes or 100 folders")
    long = repository.tree(("100644", repository.blob(b""), "n" * 5000))
    refused(small(cache), repository.commit(long), "paths of more than")


def test_what_attributes_expand_counts_as_it_is_written(
    repository: Repository, cache: Cache
) -> None:
    attributes = repository.blob(b"*.py ident\n")
    text = repository.blob(b"$Id$\n" * (MIB // 5))
    rows = [("100644", text, f"{number}.py") for number in range(6)]
    source = repository.commit(repository.tree(("100644", attributes, ".gitattributes"), *rows))
    refused(small(cache, size=20 * MIB), source, "GiB of data")
    assert small(cache).checkout(source, None).tree.is_dir()


def test_a_history_that_needs_too_much_memory_is_refused(
    repository: Repository, cache: Cache
) -> None:
    source = repository.commit(repository.files(1, b"x"), b"a" * (150 * MIB))
    assert repository.size < 2 * MIB
    refused(small(cache, memory=128 * MIB), source, "git needs more than 0.125 GiB of memory")


def test_many_references_are_too_many_files(repository: Repository, cache: Cache) -> None:
    source = repository.commit(repository.files(1, b"x"))
    commit = repository.git("rev-parse", "main")
    lines = (f"create refs/heads/b{number} {commit}\n" for number in range(3000))
    repository.git("update-ref", "--stdin", stdin="".join(lines).encode())
    refused(small(cache, entries=2000), source, "more than 2,000 files and folders")
    assert list(cache.root.glob("repos/*")) == []


def test_commits_that_were_fetched_before_make_room(repository: Repository, cache: Cache) -> None:
    git = small(cache, size=8 * MIB)
    for _ in range(3):
        source = repository.commit(repository.files(1, os.urandom(5 * MIB)))
        assert git.checkout(source, None).commit == repository.git("rev-parse", "main")
    assert footprint.size_of(cache.root / "repos") < 8 * MIB
    source = repository.commit(repository.files(1, os.urandom(9 * MIB)))
    with pytest.raises(UserError, match=r"repository\.git has more than 0.0078125 GiB of data"):
        git.checkout(source, None)
    assert list(cache.root.glob("repos/*")) == []


class Endless(BaseHTTPRequestHandler):
    """A git server whose only commit never ends: a pack, or what it says meanwhile."""

    kind = "pack"
    sent = 0

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        name, able = "1" * 40, "side-band-64k" if self.kind == "words" else "ofs-delta"
        lines = ("# service=git-upload-pack\n", "", f"{name} HEAD\0{able}\n", f"{name} refs/heads/main\n", "")  # fmt: skip
        body = b"".join(packet(line.encode()) for line in lines)
        self.answer("advertisement")
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer("result")
        self.wfile.write(packet(b"NAK\n"))
        noise = os.urandom(64_000)
        head = b"PACK\0\0\0\2\0\0\0\1" + b"\xbf\xff\xff\xff\xff\xff\x0f"  # a blob of terabytes
        packed = zlib.compressobj(0)
        pieces = {"pack": lambda: packed.compress(noise), "words": lambda: packet(b"\2" + b"word\n" * 12_000)}  # fmt: skip
        self.wfile.write(head if self.kind == "pack" else b"")
        while True:
            try:
                self.wfile.write(pieces[self.kind]())
            except OSError:
                return
            type(self).sent += len(noise)

    def answer(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"application/x-git-upload-pack-{kind}")
        self.end_headers()


def packet(line: bytes) -> bytes:
    return b"%04x%s" % (len(line) + 4, line) if line else b"0000"


@contextmanager
def serving(kind: str) -> Iterator[tuple[RepoSource, type[Endless]]]:
    handler = type("Handler", (Endless,), {"kind": kind})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield RepoSource(url=f"http://127.0.0.1:{server.server_port}/x/y.git"), handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_pack_without_end_is_stopped_while_it_comes(cache: Cache) -> None:
    with serving("pack") as (source, server):
        with pytest.raises(UserError, match=r"y\.git has more than 0.0625 GiB of data"):
            small(cache, size=64 * MIB).checkout(source, None)
        assert 60 * MIB < server.sent < 100 * MIB
    assert list(cache.root.glob("repos/*")) == []


def test_a_server_that_talks_without_end_is_stopped(cache: Cache) -> None:
    told = pytest.raises(TransientError, match=r"cannot be fetched: .* printed more than 32 MiB")
    with serving("words") as (source, _), told:
        small(cache).checkout(source, None)
    assert list(cache.root.glob("repos/*")) == []


def test_the_reserve_of_the_disk_holds_for_a_fetch_and_for_a_checkout(
    repository: Repository, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = repository.commit(repository.files(3, b"x"))
    git = small(cache)
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: NEARLY_FULL)
        with pytest.raises(DiskFull, match="GiB of the disk are free"):
            git.checkout(source, None)
        with pytest.raises(TransientError, match="The disk is full"):
            git.history(source, "log")
        assert left(cache) == []
    commit = git.checkout(source, None).commit
    sandbox_cache.keep(
        Cache(cache.root), {**{area.name: 1 << 60 for area in sandbox_cache.AREAS}}, 0
    )
    again = source.model_copy(update={"ref": commit})
    shutil.rmtree(cache.root / "trees")
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: NEARLY_FULL)
        with pytest.raises(DiskFull, match="GiB of the disk are free"):
            git.checkout(again, None)
    assert left(cache) == []
    assert git.checkout(source, None).tree.is_dir()


def test_the_reserve_is_looked_at_while_files_are_written(
    repository: Repository, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = repository.commit(repository.files(20_000, b"x"))
    real = shutil.disk_usage

    def usage(folder: Path) -> object:
        full = folder.name == "tree" and any(folder.iterdir())
        return NEARLY_FULL if full else real(folder)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    with pytest.raises(DiskFull):
        small(cache).checkout(source, None)
    assert left(cache) == []


def test_a_cancelled_checkout_leaves_no_file(repository: Repository, cache: Cache) -> None:
    source = repository.commit(repository.files(20_000, b"x"))
    cache.cancel = Event()
    began: Callable[[], bool] = lambda: any(cache.root.glob("scratch/*/tree/*"))  # noqa: E731
    Thread(target=lambda: (until(began), cache.cancel.set())).start()  # type: ignore[union-attr, func-returns-value]
    with pytest.raises(Interrupted):
        small(cache).checkout(source, None)
    assert left(cache) == []


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        time.sleep(0.01)


CHECKOUT = """
import os, sys
from pathlib import Path
from bot.environment.git import Git
from bot.kernel.environment import RepoSource
from sandbox.cache import Cache
Git(Cache(Path(sys.argv[1])), dict(os.environ)).checkout(RepoSource(url="", path=sys.argv[2]), None)
"""


def test_a_checkout_that_was_killed_is_swept_and_works_again(
    repository: Repository, cache: Cache
) -> None:
    source = repository.commit(repository.files(20_000, b"x"))
    argv = [sys.executable, "-c", CHECKOUT, str(cache.root), source.path]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[2]) as killed:
        until(lambda: any(cache.root.glob("scratch/*/tree/*")))
        assert cache.sweep() == 0, "nothing of one that is at work"
        killed.send_signal(signal.SIGKILL)
    (unfinished,) = cache.root.glob("scratch/*/tree")
    until(lambda: cache.sweep() > 0)
    assert not unfinished.exists()
    assert left(cache) == []
    assert len(list(small(cache).checkout(source, None).tree.iterdir())) == 20_000


def test_a_fetch_that_was_killed_is_swept_and_works_again(
    repository: Repository, cache: Cache
) -> None:
    """An incomplete pack, and the locks of references."""
    source = repository.commit(repository.files(1, os.urandom(MIB)))
    git = small(cache)
    git.checkout(source, None)
    (store,) = cache.root.glob("repos/*")
    (store / ".complete").unlink()
    (store / "objects/pack/tmp_pack_x").write_bytes(b"x" * MIB)
    (store / "refs/heads/reported.lock").touch()
    source = repository.commit(repository.files(2, b"x"))
    assert git.checkout(source, None).commit == repository.git("rev-parse", "main")
    assert not list(store.rglob("tmp_pack*"))
    (store / ".complete").unlink()
    assert Cache(cache.root).sweep() == 1
    assert not store.exists()


def test_an_unfinished_tree_of_an_earlier_release_counts_and_is_swept(cache: Cache) -> None:
    tree = cache.folder("trees") / "0123456789abcdef-0123456789abcdef"
    tree.mkdir()
    (tree / "file").write_bytes(os.urandom(MIB))
    assert sum(item.size for item in sandbox_cache.clones(cache)) >= MIB
    with cache.guarded("repo-0123456789abcdef"):
        assert cache.sweep() == 0
    assert cache.sweep() == 1
    assert left(cache) == []


def test_a_history_is_read_within_bounds(repository: Repository, cache: Cache) -> None:
    settings = repository.blob(b"a" * (40 * MIB))
    source = repository.commit(repository.tree(("100644", settings, "pyproject.toml")))
    commits = GitCommits(small(cache))
    with pytest.raises(UserError, match="is too large to read"):
        commits.provides(source, commits.commit(source, "").id)
    leaf = nested(repository, repository.files(10, b"x\n"), 8, 10)
    source = repository.commit(leaf)
    commits = GitCommits(small(cache))
    with pytest.raises(UserError, match="is too large to read"):
        commits.provides(source, commits.commit(source, "").id)


def test_the_sandbox_reads_a_tree_whatever_the_mask_of_the_worker(
    repository: Repository, cache: Cache
) -> None:
    source = repository.commit(repository.tree(("040000", repository.files(1, b"x"), "folder")))
    before = os.umask(0o077)
    try:
        tree = small(cache).checkout(source, None).tree
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o055 for path in (tree, tree / "folder")] == [0o055] * 2
    assert (tree / "folder/f0").stat().st_mode & 0o044 == 0o044
