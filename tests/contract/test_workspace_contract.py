"""What every workspace promises, the fake's included."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.port import Limits, SandboxError
from tests.support.sandbox import Die, Exit, FakeSandbox, Save, Say, Wait

FILES = {"train.py": b"print(1)\n", "data/rows.csv": b"1,2\n"}


@pytest.fixture
def tree() -> Iterator[Path]:
    """A repository as the host has it, in a place that every user may read."""
    place = Path(tempfile.mkdtemp(prefix="reprise-tree-"))
    place.chmod(0o755)
    root = place / "tree"
    root.mkdir()
    for name, data in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)
    yield root
    shutil.rmtree(place)


def test_starts_with_a_copy_of_a_folder(bench, tree):
    with bench.open(start=tree) as space:
        assert space.get("**").artifacts == FILES
        done = bench.exec(
            space, "open('train.py', 'w').write('x')", [Save("train.py", b"x"), Exit(0)]
        )
        assert done.exit_code == 0
        assert space.get("*.py").artifacts == {"train.py": b"x"}
    assert (tree / "train.py").read_bytes() == FILES["train.py"]


def test_files_stay_between_programs(bench):
    with bench.open() as space:
        assert space.get("**").artifacts == {}
        done = bench.exec(
            space,
            "import os; os.mkdir('out'); open('out/a', 'w').write('1'); os.kill(os.getpid(), 6)",
            [Save("out/a", b"1"), Die(6)],
        )
        assert (done.exit_code, done.signal) == (None, 6)
        again = bench.exec(space, "print(open('out/a').read())", [Say(b"1\n")])
        assert (again.exit_code, again.stdout) == (0, "1\n")
        assert space.get("out/*").artifacts == {"out/a": b"1"}


def test_files_are_put_in_and_replaced(bench):
    with bench.open() as space:
        space.put({"a.txt": b"one", "deep/er/b.txt": b"two"})
        space.put({"a.txt": b"three"})
        assert space.get("**").artifacts == {"a.txt": b"three", "deep/er/b.txt": b"two"}


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../b", "", "a\0b", "deep"])
def test_what_cannot_be_put_leaves_the_workspace_as_it_was(bench, name):
    with bench.open() as space:
        space.put({"deep/a": b"1"})
        with pytest.raises(SandboxError):
            space.put({name: b"2"})
        assert space.get("**").artifacts == {"deep/a": b"1"}


def test_patterns_that_lead_elsewhere_are_refused(bench):
    with bench.open() as space:
        with pytest.raises(ValueError, match="artifact pattern"):
            space.get("../*")
        assert space.get("*").artifacts == {}


def test_a_program_that_is_not_there_ends_nothing(bench):
    with bench.open() as space:
        if isinstance(bench.sandbox, FakeSandbox):
            bench.sandbox.program = {}
        with pytest.raises(SandboxError, match="no-such-program"):
            space.exec(("/no-such-program",))
        with pytest.raises(SandboxError, match="nothing to run"):
            space.exec(())
        assert bench.exec(space, "print('on')", [Say(b"on\n")]).stdout == "on\n"


def test_a_program_ends_at_its_own_limit_and_at_that_of_the_whole(bench):
    limits = Limits(wall_s=30, memory_mb=512, scratch_mb=64, file_mb=32)
    with bench.open(limits=limits, total_s=4) as space:
        loop = ("while True: pass", [Wait(60, busy=True)])
        assert bench.exec(space, *loop, wall_s=0.5).seconds < 2
        done = bench.exec(space, *loop)
        assert (done.timed_out, done.exit_code) == (True, None)
        assert 1 < done.seconds < 5
        late = bench.exec(space, "print(1)", [Say(b"1\n")])
        assert (late.timed_out, late.stdout) == (True, "")


def test_a_program_is_cancelled_and_the_next_one_runs(bench):
    with bench.open() as space:
        cancel = threading.Event()
        threading.Timer(0.8, cancel.set).start()
        began = time.monotonic()
        done = bench.exec(space, "import time; time.sleep(60)", [Wait(60)], cancel=cancel)
        assert (done.cancelled, done.exit_code) == (True, None)
        assert time.monotonic() - began < 4
        assert bench.exec(space, "print('on')", [Say(b"on\n")]).stdout == "on\n"


def test_lines_are_told_while_a_program_runs(bench):
    told: list[tuple[str, str]] = []
    with bench.open() as space:
        for _ in range(2):
            bench.exec(
                space, "print('x')", [Say(b"x\n")], on_output=lambda *line: told.append(line)
            )
    assert told == [("stdout", "x")] * 2


def test_a_failure_of_who_listens_ends_the_workspace(bench):
    """What its program goes on to print belongs to no later one."""

    def fail(_: str, __: str) -> None:
        raise KeyError("our own")

    with bench.open() as space:
        with pytest.raises(KeyError):
            bench.exec(space, "print('x', flush=True)", [Say(b"x\n")], on_output=fail)
        if bench.kind != "fake":
            with pytest.raises(SandboxError, match="closed"):
                space.get("*")


def test_a_snapshot_is_what_another_workspace_starts_with(bench, tree):
    archive = tree.parent / f"{tree.name}.snapshot"
    with bench.open(start=tree) as space:
        space.put({"data/more.csv": b"3\n"})
        space.snapshot(archive)
        space.put({"later.txt": b"no"})
    for _ in range(2):
        with bench.open(start=archive) as space:
            assert space.get("**").artifacts == {**FILES, "data/more.csv": b"3\n"}
            space.put({"train.py": b"changed"})


def test_a_snapshot_that_is_too_large_leaves_no_file(real, tmp_path):
    limits = Limits(wall_s=20, memory_mb=512, scratch_mb=1, file_mb=8)
    fill = "for n in range(3000): open(f'{n}', 'w').close()"
    with real.open(limits=limits) as space:
        assert real.exec(space, fill).exit_code == 0
        with pytest.raises(SandboxError, match="too large"):
            space.snapshot(tmp_path / "snapshot")
        assert list(tmp_path.iterdir()) == []
        assert real.exec(space, "print('on')").stdout == "on\n"


def test_what_is_no_archive_opens_nothing(real, tree):
    broken = tree.parent / f"{tree.name}.broken"
    broken.write_bytes(b"no archive" * 100)
    with pytest.raises(SandboxError, match=r"cannot be filled: .*tar"):
        real.open(start=broken)


def test_an_archive_cannot_write_beside_the_working_directory(walled, tree):
    """A snapshot is what hostile programs left, or a file somebody made up."""
    archive = tree.parent / f"{tree.name}.hostile"
    with tarfile.open(archive, "w") as made:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, str(tree)
        made.addfile(link)
        for name in ("out/through.txt", "../beside.txt"):
            entry = tarfile.TarInfo(name)
            entry.size = 1
            made.addfile(entry, io.BytesIO(b"x"))
    with pytest.raises(SandboxError, match="cannot be filled"):
        walled.open(start=archive)
    assert sorted(path.name for path in tree.iterdir()) == ["data", "train.py"]


def test_works_in_a_folder_of_the_tree_and_with_variables_of_its_own(real, tree):
    source = "import os; print(os.path.basename(os.getcwd()), os.environ['A'], os.environ['B'])"
    with real.open(start=tree, env={"A": "1", "B": "1"}) as space:
        done = real.exec(space, source, cwd="data", env={"B": "2"})
        assert done.stdout == "data 1 2\n"
        with pytest.raises(SandboxError, match="relative path"):
            real.exec(space, source, cwd="../..")
        with pytest.raises(SandboxError, match="nowhere"):
            real.exec(space, source, cwd="nowhere")
        assert real.exec(space, source, cwd="data").stdout == "data 1 1\n"


def test_nothing_can_be_done_after_the_end(bench):
    with bench.open() as space:
        space.put({"a": b"1"})
    with pytest.raises(SandboxError, match="closed"):
        space.get("*")
    space.close()
