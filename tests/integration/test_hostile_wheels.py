"""Wheels that bring byte code of their own, and wheels that cost more than they seem to: bombs are
made here, of their real size.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import resource
import struct
import sys
import zipfile
from pathlib import Path

import pytest

from sandbox import footprint, indexes, interpreters
from sandbox.cache import Cache
from sandbox.environment import Installation, Installer, Unresolvable, Wishes
from sandbox.footprint import Bounds, DiskFull
from sandbox.interpreters import Snapshot
from sandbox.port import RunSpec
from sandbox.process import ProcessSandbox
from tests.integration.conftest import share_pythons
from tests.integration.test_builder import open_to_the_sandbox

TAG = sys.implementation.cache_tag


class World:
    """A folder of wheels, and an installer from it."""

    def __init__(self, root: Path) -> None:
        open_to_the_sandbox(root)
        self.root, self.wheels = root, root / "wheels"
        self.wheels.mkdir()
        places = indexes.Indexes(find_links=(str(self.wheels),), offline=True)
        self.installer = Installer(Cache(root / "cache"), places)

    @property
    def python(self) -> Snapshot:
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        found = {each.minor: each for each in interpreters.discover(os.environ)}
        return self.installer.python(found[minor])

    def wheel(self, name: str, files: dict[str, bytes], metadata: bytes = b"") -> Path:
        path = self.wheels / f"{name}-1.0-py3-none-any.whl"
        info = f"{name}-1.0.dist-info"
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode() + metadata
        wheel = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        own = {f"{info}/METADATA": about, f"{info}/WHEEL": wheel, f"{info}/RECORD": b""}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
            for file, data in {**files, **own}.items():
                pack.writestr(file, data)
        return path

    def install(self, *names: str) -> Installation:
        wishes = Wishes(names)
        return self.installer.install(
            self.installer.resolve(wishes, self.python), wishes, self.python
        )


@pytest.fixture
def world(tmp_path: Path, pythons: Path) -> World:
    share_pythons(tmp_path / "cache", pythons)
    return World(tmp_path)


def says(built: Installation, code: str) -> str:
    run = RunSpec((str(built.interpreter), "-c", code), env=built.python.variables)
    result = ProcessSandbox().run(run)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def planted(text: str, source: Path) -> bytes:
    """Byte code that Python takes for that of a source."""
    about = source.stat()
    head = struct.pack("<4sIII", importlib.util.MAGIC_NUMBER, 0, int(about.st_mtime), about.st_size)
    return head + marshal.dumps(compile(text, "core.py", "exec"))


def test_byte_code_of_a_wheel_reaches_no_other_environment(world: World) -> None:
    world.wheel("victim", {"victim/__init__.py": b"", "victim/core.py": b"said = 'own'\n"})
    source = world.install("victim").site / "victim/core.py"
    code = planted("said = 'planted'", source)
    world.wheel("attacker", {f"victim/__pycache__/core.{TAG}.pyc": code, "attacker.py": b""})
    world.wheel("other", {"other.py": b""})
    world.wheel("more", {"more.py": b""})
    both = world.install("victim", "attacker")
    assert (both.site / "victim/core.py").stat().st_mtime == source.stat().st_mtime
    assert says(both, "import victim.core as c; print(c.said)") == "own"
    for names in (("victim", "other"), ("victim", "more")):
        after = world.install(*names)
        assert says(after, "import victim.core as c; print(c.said)") == "own"
        kept = after.site / f"victim/__pycache__/core.{TAG}.pyc"
        assert kept.read_bytes() != code
        assert kept.stat().st_ino == source.parent.joinpath("__pycache__", kept.name).stat().st_ino


def test_byte_code_without_a_source_is_removed_wherever_it_lies(world: World) -> None:
    code = planted("said = 'planted'", Path(__file__))
    places = ("only.pyc", "pack/inner.pyc", "pack/__pycache__/x.pyc", "odd.data/data/share/y.pyc")
    places = tuple(each.replace("odd", "odd-1.0") for each in places)
    world.wheel("odd", {"pack/__init__.py": b"", **dict.fromkeys(places, code)})
    built = world.install("odd")
    found = {path.name for path in built.root.rglob("*.pyc")}
    assert found & {"only.pyc", "inner.pyc", "x.pyc", "y.pyc"} == set()
    assert f"__init__.{TAG}.pyc" in found


def test_the_tests_of_a_package_are_not_compiled_but_can_be_imported(world: World) -> None:
    files = ("victim/__init__.py", "victim/tests/__init__.py", "victim/tests/test_it.py")
    world.wheel("victim", dict.fromkeys(files, b"said = 'own'\n"))
    built = world.install("victim")
    compiled = [path.parent.parent.name for path in built.site.rglob("victim/**/*.pyc")]
    assert compiled == ["victim"]
    assert says(built, "import victim.tests.test_it as it; print(it.said)") == "own"
    code = {path.name.partition(".opt-")[1] for path in built.python.root.rglob("*.pyc")}
    assert code == {""}, "the copy of Python has no byte code for -O"


def test_the_same_source_of_another_time_gets_byte_code_that_python_takes(world: World) -> None:
    body = b"said = 'own'\n"
    world.wheel("victim", {"victim.py": body})
    first = world.install("victim")
    os.utime(first.site / "victim.py", (1_000_000_000, 1_000_000_000))
    world.wheel("other", {"other.py": body})
    code = "import other, os; print(os.stat(other.__cached__).st_nlink > 1)"
    assert says(world.install("victim", "other"), code) == "True"
    check = "import victim; from importlib._bootstrap_external import *; print(victim.said)"
    assert says(world.install("victim", "other"), check) == "own"


def finally_bomb(depth: int = 19) -> bytes:
    """A few hundred bytes for which a compiler copies the innermost block 2**depth times."""
    text = "def f():\n"
    for level in range(depth):
        text += f"{' ' * (level + 1)}try: pass\n{' ' * (level + 1)}finally:\n"
    return (text + " " * (depth + 1) + "x = [i for i in range(10)]\n").encode()


@pytest.mark.slow
def test_a_source_that_costs_the_compiler_too_much_stays_without_byte_code(world: World) -> None:
    """The rest is compiled; nothing takes more than its share of memory."""
    bombs = {
        "bomb/deep.py": b"x = " + b"(" * 190 + b"1" + b")" * 190 + b"\n",
        "bomb/long.py": b"x = [" + b"0," * 1_900_000 + b"]\n",
        "bomb/longer.py": b"[" + b"0," * 3_000_000 + b"]\n",
        "bomb/lists.py": b"x = (" + b"[[]]," * 780_000 + b")\n",
        "bomb/copies.py": finally_bomb(),
        "bomb/broken.py": b"def (:\0",
    }
    honest = {f"bomb/honest{number}.py": b"answer = 42\n" for number in range(60)}
    world.wheel("bomb", {"bomb/__init__.py": b"", **bombs, **honest})
    built = world.install("bomb")
    made = {path.name for path in (built.site / "bomb/__pycache__").iterdir()}
    assert {f"honest{number}.{TAG}.pyc" for number in range(60)} <= made
    assert not made & {f"longer.{TAG}.pyc", f"lists.{TAG}.pyc", f"broken.{TAG}.pyc"}
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1600 * 1024


def test_a_small_wheel_that_unpacks_to_a_thousand_times_its_size_is_refused(world: World) -> None:
    packed = world.wheel("bomb", {"bomb/data.bin": bytes(400 << 20)})
    assert packed.stat().st_size < 500_000
    world.wheel("honest", {"honest.py": b"answer = 42\n", "notes.txt": b"text " * 4_000_000})
    with pytest.raises(Unresolvable, match=r"bomb unpacks to more than 64 MiB: the limit is 100 t"):
        world.install("honest", "bomb")
    left = sum(path.lstat().st_size for path in (world.root / "cache").rglob("*") if path.is_file())
    assert left < 200 << 20, "what was unpacked of it is gone"
    with pytest.raises(Unresolvable, match="bomb unpacks to more than"):
        world.install("bomb")
    assert says(world.install("honest"), "import honest; print(honest.answer)") == "42"


def test_a_directory_that_lies_about_sizes_helps_no_bomb(world: World) -> None:
    packed = world.wheel("bomb", {"bomb/data.bin": bytes(300 << 20)})
    data = packed.read_bytes()
    size, told = struct.pack("<I", 300 << 20), struct.pack("<I", 1000)
    assert size in data
    packed.write_bytes(data.replace(size, told))
    with pytest.raises(Unresolvable):
        world.install("bomb")
    left = sum(path.lstat().st_size for path in (world.root / "cache").rglob("*") if path.is_file())
    assert left < 200 << 20


@pytest.mark.slow
def test_metadata_that_unpacks_to_gigabytes_ends_the_installer_only(world: World) -> None:
    path = world.wheel("bomb", {})
    world.installer.bounds = Bounds(memory=2 << 30)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as pack:
        with pack.open("bomb-1.0.dist-info/METADATA", "w", force_zip64=True) as stream:
            stream.write(b"Metadata-Version: 2.1\nName: bomb\nVersion: 1.0\n\n")
            for _ in range(160):
                stream.write(bytes(16 << 20))
        pack.writestr("bomb-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        pack.writestr("bomb-1.0.dist-info/RECORD", "")
    with pytest.raises(Unresolvable, match=r"memory|unpacks to more than"):
        world.install("bomb")


def test_too_many_files_and_too_large_a_file_are_refused_by_name(world: World) -> None:
    world.installer.bounds = Bounds(files=500)
    world.wheel("many", {f"many/{number}.txt": b"" for number in range(600)})
    with pytest.raises(Unresolvable, match="many unpacks to more than 500 files"):
        world.install("many")
    world.installer.bounds = Bounds(most=20 << 20)
    world.wheel("large", {"large.bin": os.urandom(30 << 20)})
    with pytest.raises(Unresolvable, match="large has a file of more than 20 MiB"):
        world.install("large")


def test_a_disk_that_is_nearly_full_is_left_alone(world: World) -> None:
    world.installer.bounds = Bounds(reserve=1 << 60)
    world.wheel("honest", {"honest.py": b""})
    with pytest.raises(DiskFull, match="GiB of the disk are free"):
        world.install("honest")


def test_a_wheel_that_gets_its_place_while_it_is_measured_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "uv" / ".tmpMoved"
    moved.parent.mkdir()
    monkeypatch.setattr(footprint, "_folders_written", lambda *_: {moved})
    footprint.UnpackWatch(moved.parent, {"alpha": 1}, Bounds(reserve=0))(os.getpid())


def test_a_bomb_that_gets_its_place_just_before_its_installer_is_ended_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "uv"
    unpacked, place = cache / ".tmpBomb", cache / "archive-v0/bomb"
    (unpacked / "bomb-1.0.dist-info").mkdir(parents=True)
    (unpacked / "data.bin").write_bytes(bytes(2000))
    notes = cache / "wheels-v0/path/bomb"
    notes.mkdir(parents=True)
    monkeypatch.setattr(footprint, "_folders_written", lambda *_: {unpacked})
    watch = footprint.UnpackWatch(cache, {"bomb": 1}, Bounds(most=1000, reserve=0))
    with pytest.raises(footprint.TooLarge, match="bomb unpacks to more than"):
        watch(os.getpid())
    place.parent.mkdir()
    unpacked.rename(place)
    assert (place / "data.bin").stat().st_size == 2000, "no half of it is taken for the whole"
    watch.stopped()
    assert not place.exists()
    assert not notes.exists()


def test_a_bomb_leaves_nothing_where_its_installer_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = tmp_path / "uv/.tmpBomb"
    unpacked.mkdir(parents=True)
    (unpacked / "data.bin").write_bytes(bytes(2000))
    monkeypatch.setattr(footprint, "_folders_written", lambda *_: {unpacked})
    watch = footprint.UnpackWatch(unpacked.parent, {"bomb": 1}, Bounds(most=1000, reserve=0))
    with pytest.raises(footprint.TooLarge):
        watch(os.getpid())
    watch.stopped()
    assert not unpacked.exists()
