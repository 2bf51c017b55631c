"""The index on a disk: hostile sources, kills, several at once, and how long it takes."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from threading import Event

import pytest

from bot.kernel.environment import Environment
from bot.kernel.errors import Stopped, TransientError
from bot.kernel.source.database import FOLDER, SourceTree, place
from bot.kernel.source.indexer import SqliteIndexer
from sandbox.cache import Cache

INDEX = """
import json, sys
from pathlib import Path
from bot.kernel.source.indexer import SqliteIndexer
from bot.kernel.environment import Environment
print("ready", flush=True)
tree, cache = sys.argv[1:]
environment = Environment(id="e", python="3.11", interpreter="python", mounts=(tree,))
index = SqliteIndexer(Path(cache)).open(environment, ("big",))
print(json.dumps([chunk.name for chunk in index.search("walk packages of a module path", 5)]))
"""


def environment(tree: Path, **variables: str) -> Environment:
    return Environment(
        id="e",
        python="3.11",
        interpreter="python",
        mounts=(str(tree),),
        variables=variables,
        commit="c0ffee00aa11ee",
    )


def install(tree: Path, name: str, files: dict[str, str]) -> Path:
    site = tree / "lib/python3.11/site-packages"
    info = site / f"{name}-2.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {name}\n")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    for path, text in files.items():
        if not path.startswith(("/", "..")):
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(text)
    return site


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some ten megabytes of the standard library, as an installed distribution."""
    tree = tmp_path_factory.mktemp("big")
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    sources = {
        f"big/{path.relative_to(stdlib).as_posix()}": path
        for path in sorted(stdlib.rglob("*.py"))
        if "site-packages" not in path.parts
    }
    site = install(tree, "big", dict.fromkeys(sources, ""))
    for name, path in sources.items():
        shutil.copyfile(path, site / name)
    return tree


def test_hostile_sources_are_read_and_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("def hidden_treasure(): pass")
    files = {
        "evil/__init__.py": "raise SystemExit('imported')", "evil/deep.py": "(" * 100_000, "evil/wide.py": "x = '" + "a" * 900_000 + "'",
        "evil/nul.py": "\0\0def x(:", "evil/good.py": "def good(): pass", "evil/huge.py": "#" * 2_000_000,
        "../../../../secret.py": "", str(secret): "",
    }  # fmt: skip
    site = install(tmp_path / "env", "evil", files)
    (site / "evil/link.py").symlink_to(secret)
    (site / "evil/folder").symlink_to(tmp_path)
    os.mkfifo(site / "evil/pipe.py")
    with (site / "evil-2.0.dist-info/RECORD").open("a") as record:
        record.write("evil/link.py,,\nevil/folder/secret.py,,\nevil/pipe.py,,\nevil/gone.py,,\n")
    index = SqliteIndexer(tmp_path / "cache").open(environment(tmp_path / "env"), ("evil",))
    assert index.files() == (
        "evil/__init__.py",
        "evil/deep.py",
        "evil/good.py",
        "evil/nul.py",
        "evil/wide.py",
    )
    assert index.symbol("hidden_treasure") == ()
    assert index.symbol("evil.good.good")[0].path == "evil/good.py"
    deep = index.around("evil/deep.py", 1)
    assert deep is not None
    assert index.callees(deep) == ()


def test_a_repository_on_the_path_is_read_as_a_clone(tmp_path: Path) -> None:
    tree = tmp_path / "clone"
    (tree / "src/pkg").mkdir(parents=True)
    (tree / "src/pkg/core.py").write_text("def compute(): pass")
    (tree / ".git").mkdir()
    (tree / ".git/hook.py").write_text("def compute(): pass")
    path = f"{tree}:{tree}/src"
    index = SqliteIndexer(tmp_path / "cache").open(
        environment(tmp_path / "none", PYTHONPATH=path), ("pkg",)
    )
    (chunk,) = index.symbol("pkg.core.compute")
    assert (chunk.path, chunk.origin, chunk.package, chunk.version) == (
        "src/pkg/core.py",
        "clone",
        "pkg",
        "c0ffee00aa11",
    )


def test_what_two_environments_share_is_kept_once(tmp_path: Path) -> None:
    library = SqliteIndexer(tmp_path / "cache")
    for name in ("one", "two"):
        install(tmp_path / name, "pkg", {"pkg/a.py": "def a(): pass"})
        library.open(environment(tmp_path / name), ("pkg",))
    assert len(list((tmp_path / "cache" / FOLDER).glob("*.sqlite"))) == 1
    (tmp_path / "two/lib/python3.11/site-packages/pkg/a.py").write_text("def other(): pass")
    record = tmp_path / "two/lib/python3.11/site-packages/pkg-2.0.dist-info/RECORD"
    os.utime(record, (1, 1))
    assert library.open(environment(tmp_path / "two"), ("pkg",)).symbol("other")


def test_a_damaged_part_is_built_again(tmp_path: Path) -> None:
    install(tmp_path / "env", "pkg", {"pkg/a.py": "def a(): pass"})
    library = SqliteIndexer(tmp_path / "cache")
    library.open(environment(tmp_path / "env"), ("pkg",))
    (part,) = (tmp_path / "cache" / FOLDER).glob("*.sqlite")
    part.write_bytes(b"no database at all" * 100)
    assert library.open(environment(tmp_path / "env"), ("pkg",)).symbol("pkg.a.a")


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    install(tmp_path / "env", "pkg", {"pkg/a.py": "def a(): pass"})
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(TransientError, match="cannot be written"):
        SqliteIndexer(tmp_path / "cache").open(environment(tmp_path / "env"), ("pkg",))


def start(big: Path, cache: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", INDEX, str(big), str(cache)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_a_killed_indexer_leaves_nothing_broken_and_no_process(big: Path, tmp_path: Path) -> None:
    for after in (0.15, 0.6, 1.2):
        process = start(big, tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    for part in (tmp_path / FOLDER).glob("*.sqlite"):
        with sqlite3.connect(part) as base:
            assert base.execute("pragma integrity_check").fetchone() == ("ok",)
        base.close()
    done = start(big, tmp_path)
    out, _ = done.communicate(timeout=120)
    assert "big.pkgutil.walk_packages" in out
    deadline = time.monotonic() + 20
    while workers(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers(tmp_path) == []
    assert [
        path.name
        for path in (tmp_path / FOLDER).iterdir()
        if path.suffix != ".sqlite" and path.name.endswith("x")
    ] == []


def workers(cache: Path) -> list[str]:
    """Processes that hold a file below the cache open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith(str(cache)):
            found.append(str(link))
    return found


def test_several_indexers_at_once_agree(big: Path, tmp_path: Path) -> None:
    running = [start(big, tmp_path) for _ in range(3)]
    told = [process.communicate(timeout=300)[0] for process in running]
    assert len(set(told)) == 1
    assert "big.pkgutil.walk_packages" in told[0]


def test_it_stops_when_told(big: Path, tmp_path: Path) -> None:
    cancel = Event()
    cancel.set()
    with pytest.raises(Stopped):
        SqliteIndexer(tmp_path).open(environment(big), ("big",), cancel=cancel)


def test_the_index_is_fast_next_to_a_parser_and_small(big: Path, tmp_path: Path) -> None:
    site = big / "lib/python3.11/site-packages"
    texts = [path.read_bytes() for path in sorted(site.rglob("*.py"))[::20]]
    started = time.process_time()
    for text in texts:
        try:
            compile(text, "a", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
    baseline = time.process_time() - started
    started = time.process_time()
    index = SqliteIndexer(tmp_path).open(environment(big), ("big",))
    assert time.process_time() - started < 40 * baseline + 2
    held = sum(path.stat().st_size for path in site.rglob("*.py"))
    assert sum(path.stat().st_size for path in (tmp_path / FOLDER).iterdir()) < held
    started = time.process_time()
    SqliteIndexer(tmp_path).open(environment(big), ("big",))
    assert time.process_time() - started < baseline + 1
    assert index.search("walk packages of a module path", 3)


def test_a_tree_is_named_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def a(): pass")
    (tmp_path / "b.py").touch()
    one, both = (
        place(Cache(tmp_path), SourceTree("p", "1", tmp_path, tuple((n, 1) for n in names), True))
        for names in (("a.py",), ("a.py", "b.py"))
    )
    assert one != both
