"""Data and weights of the operator's: names, archives, and what runs get of them."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from bot.cli import options as cli_options
from bot.environment.operator_files import Shelf, unpack, weights_in, weights_named
from bot.kernel import launch
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature, Issue
from bot.kernel.environment import DataMount, Environment, OperatorFiles
from bot.kernel.errors import UserError
from bot.kernel.job import JobOptions
from sandbox import footprint
from sandbox.cache import Cache
from sandbox.port import SandboxError


@pytest.fixture
def shelf(tmp_path):
    (tmp_path / "kept" / "mnist").mkdir(parents=True)
    (tmp_path / "kept" / "mnist" / "train.bin").write_bytes(b"1")
    (tmp_path / "kept" / "one.csv").write_text("a,b\n")
    return Shelf(Cache(tmp_path / "cache"), tmp_path / "kept")


def source(shelf, path, name):
    found = shelf.files({path: name})
    return found.data[0].source, *found.problems


def zipped(path, members):
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return path


def tarred(path, *members):
    with tarfile.open(path, "w:gz") as packed:
        for info, data in members:
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    return path


def member(name, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_a_name_is_a_folder_or_a_file_of_the_operators(shelf):
    assert source(shelf, "data/mnist", "mnist") == (str(shelf.data_dir / "mnist"),)
    assert source(shelf, "data/x.csv", "one.csv") == (str(shelf.data_dir / "one.csv"),)


@pytest.mark.parametrize("name", ["absent", "../kept/mnist", "/etc", ".", "..", "", "mnist/train.bin", "mnist\0", ".hidden"])  # fmt: skip
def test_a_name_leads_nowhere_else(shelf, name):
    (shelf.data_dir / ".hidden").write_text("x")
    where, *problems = source(shelf, "data", name)
    assert where == ""
    assert len(problems) == 1


def test_what_runs_could_not_read_is_left_out(shelf):
    """Else a program would end in an error of ours, which looks like its own."""
    (shelf.data_dir / "mnist").chmod(0o700)
    (shelf.data_dir / "one.csv").chmod(0o640)
    for name in ("mnist", "one.csv"):
        assert source(shelf, "data", name)[0] == ""
        assert "not every user can read it" in source(shelf, "data", name)[1]


def test_only_who_starts_the_job_on_this_machine_may_name_paths(shelf, tmp_path):
    own = Shelf(shelf.cache, own_paths=True)
    assert source(own, "data", str(tmp_path / "kept")) == (str(tmp_path / "kept"),)
    assert source(shelf, "data", str(tmp_path / "kept"))[0] == ""


@pytest.mark.parametrize("make", [
    lambda kept: zipped(kept / "set.zip", {"set/a.txt": "one", "set/deep/b.txt": "two"}),
    lambda kept: zipped(kept / "set.zip", {"a.txt": "one", "deep/b.txt": "two"}),
    lambda kept: tarred(kept / "set.tar.gz", (member("./a.txt"), b"one"), (member("deep", tarfile.DIRTYPE), b""), (member("deep/b.txt"), b"two")),
    lambda kept: tarred(kept / "set.tgz", (member("set/a.txt"), b"one"), (member("set/deep/b.txt"), b"two")),
])  # fmt: skip
def test_an_archive_is_unpacked_once(shelf, make):
    """With or without a folder of its own name around everything."""
    archive = make(shelf.data_dir)
    (place,) = source(shelf, "data/set", "set")
    assert (Path(place, "a.txt").read_text(), Path(place, "deep/b.txt").read_text()) == ("one", "two")  # fmt: skip
    assert oct(Path(place, "deep").stat().st_mode)[-3:] == "755"
    before = Path(place, "a.txt").stat().st_mtime_ns
    assert source(shelf, "elsewhere", archive.name)[0].startswith(str(shelf.cache.root / "data"))
    assert Path(place, "a.txt").stat().st_mtime_ns == before
    assert len(list((shelf.cache.root / "data").iterdir())) == 1
    os.utime(archive, (1, 1))
    assert source(shelf, "data/set", "set")[0] != place


def test_an_archive_stays_whole_where_the_program_opens_it_itself(shelf):
    archive = zipped(shelf.data_dir / "set.zip", {"a.txt": "one"})
    assert source(shelf, "data/set.zip", "set.zip") == (str(archive),)


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out-of-an-archive.txt", "a/../../out.txt", "a\\..\\out.txt", "a/" * 200 + "x", "x" * 2000])  # fmt: skip
@pytest.mark.parametrize("suffix", ["zip", "tar.gz"])
def test_an_archive_leads_nowhere_out_of_it(shelf, tmp_path, name, suffix):
    archive = shelf.data_dir / f"bad.{suffix}"
    if suffix == "zip":
        with zipfile.ZipFile(archive, "w") as packed:
            info = zipfile.ZipInfo("plain")
            info.filename = name  # unchecked
            packed.writestr(info, "x")
    else:
        tarred(archive, (member(name), b"x"))
    where, problem = source(shelf, "data", "bad")
    assert where == ""
    assert "leads out of it" in problem
    assert not list((shelf.cache.root / "data").iterdir())
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])  # fmt: skip
def test_a_link_or_device_in_an_archive_is_refused(shelf, kind):
    tarred(shelf.data_dir / "bad.tar.gz", (member("data", kind, "/etc"), b""), (member("data/passwd"), b"x"))  # fmt: skip
    where, problem = source(shelf, "data", "bad")
    assert where == ""
    assert "no plain file or folder" in problem


def test_a_link_in_a_zip_is_refused(shelf):
    info = zipfile.ZipInfo("data")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(shelf.data_dir / "bad.zip", "w") as packed:
        packed.writestr(info, "/etc")
    assert "no plain file or folder" in source(shelf, "data", "bad")[1]


def test_a_bomb_or_a_broken_archive_leaves_nothing(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr("bot.environment.operator_files._MOST_ENTRIES", 3)
    zipped(shelf.data_dir / "bomb.zip", {"zeros": bytes(4 << 20)})
    zipped(shelf.data_dir / "many.zip", {str(number): "" for number in range(4)})
    (shelf.data_dir / "broken.tar.gz").write_bytes(b"\x1f\x8b no")
    (shelf.data_dir / "cut.zip").write_bytes((shelf.data_dir / "bomb.zip").read_bytes()[:900])
    small = Shelf(shelf.cache, shelf.data_dir, most=1 << 20)
    problems = [source(small, "data", name)[1] for name in ("bomb", "many", "broken", "cut")]
    for problem, words in zip(problems, ("REPRISE_DATA_GB", "more than 3 entries", "is broken", "is broken"), strict=True):  # fmt: skip
        assert words in problem
    assert not list((shelf.cache.root / "data").iterdir())


def test_unpacking_leaves_room_on_the_disk(shelf, tmp_path, monkeypatch):
    monkeypatch.setattr(footprint, "ensure_room", lambda *_: (_ for _ in ()).throw(footprint.DiskFull("full")))  # fmt: skip
    archive = zipped(tmp_path / "a.zip", {"a": "b"})
    with pytest.raises(SandboxError, match="full"):
        unpack(archive, tmp_path / "kept", 100)


def hub(folder, *names):
    for name in names:
        path = folder / f"models--{name.replace('/', '--')}" / "snapshots" / "1"
        path.mkdir(parents=True)
        (path / "config.json").write_text("{}")
    return folder


def test_a_hub_cache_is_read_in_both_layouts(shelf, tmp_path):
    hub(tmp_path / "home" / "hub", "bert-base-uncased", "org/tiny")
    (tmp_path / "home" / "hub" / "models--empty" / "snapshots").mkdir(parents=True)
    checkpoints = tmp_path / "home" / "torch" / "hub" / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "resnet18-f37072fd.pth").write_bytes(b"")
    assert weights_in(tmp_path / "home") == ("bert-base-uncased", "org/tiny", "resnet18")
    assert weights_in(tmp_path / "home" / "hub") == ("bert-base-uncased", "org/tiny")
    found = Shelf(shelf.cache, hub_dir=tmp_path / "home").files({})
    assert found.hub == str(tmp_path / "home")
    assert found.variables["HF_HUB_CACHE"] == str(tmp_path / "home" / "hub")
    assert found.variables["TORCH_HOME"] == str(tmp_path / "home" / "torch")
    plain = Shelf(shelf.cache, hub_dir=tmp_path / "home" / "hub").files({}).variables
    assert plain["HUGGINGFACE_HUB_CACHE"] == str(tmp_path / "home" / "hub")
    assert "TORCH_HOME" not in plain
    assert weights_in(None) == weights_in(tmp_path / "absent") == ()
    issue = Issue(title="It fails", body='AutoModel.from_pretrained("org/tiny")')
    assert weights_named(issue, weights_in(tmp_path / "home")) == ("org/tiny",)


SIGNATURE = CrashSignature(exception="ValueError")


def environment(tmp_path, *data, **fields):
    files = OperatorFiles(data=tuple(DataMount(path=path, name="set", source="/srv/set") for path in data), **fields)  # fmt: skip
    (tmp_path / "tree" / "data").mkdir(parents=True, exist_ok=True)
    (tmp_path / "tree" / "train.py").write_text("")
    return Environment(id="e", python="3", interpreter="python", tree=str(tmp_path / "tree"), operator_files=files)  # fmt: skip


def started(script, environment):
    launch.read_tree.cache_clear()
    return launch.spec(script, environment, JobOptions(), SIGNATURE, 0, "run")


PROGRAM = Script(files={"train.py": ""}, entry="train.py", command=("train.py",))


def test_a_program_of_a_tree_finds_data_through_a_link(tmp_path):
    spec = started(PROGRAM, environment(tmp_path, "data"))
    assert spec.links == {"data": "/srv/set"}
    assert "/srv/set" in {str(mount.source) for mount in spec.mounts}


def test_prepared_data_sets_lie_by_links_in_a_folder_that_can_be_written(shelf, tmp_path):
    """The library of that name locks a file beside what it reads."""
    (tmp_path / "home" / "datasets" / "org___rows" / "default").mkdir(parents=True)
    (tmp_path / "home" / "datasets" / "downloads").mkdir()
    files = Shelf(shelf.cache, hub_dir=tmp_path / "home").files({})
    given = environment(tmp_path).model_copy(update={"operator_files": files})
    for script, up in ((Script(files={"repro.py": ""}), ""), (PROGRAM.model_copy(update={"folder": "data"}), "../")):  # fmt: skip
        spec = started(script, given)
        assert spec.links == {".reprise/datasets/org___rows": f"{tmp_path}/home/datasets/org___rows"}  # fmt: skip
        assert spec.env["HF_DATASETS_CACHE"] == f"{up}.reprise/datasets"
    assert "HF_DATASETS_CACHE" not in started(PROGRAM, environment(tmp_path)).env


def test_a_snippet_gets_weights_and_no_data(tmp_path):
    given = environment(tmp_path, "data", hub="/srv/hub", variables={"HF_HUB_CACHE": "/srv/hub"})
    spec = started(Script(files={"repro.py": ""}), given)
    assert not spec.links
    assert [str(mount.source) for mount in spec.mounts] == ["/srv/hub"]
    assert spec.env["HF_HUB_CACHE"] == "/srv/hub"
    assert spec.env["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("file", "hides"),
    [("data", True), ("data/README.md", True), ("data/.gitkeep", False), ("datasets/a", False), ("reprise_program.py", False)],
)  # fmt: skip
def test_data_hides_no_file_of_a_tree(tmp_path, file, hides):
    given = environment(tmp_path, "data")
    if file == "data":
        (tmp_path / "tree" / "data").rmdir()
    (tmp_path / "tree" / file).parent.mkdir(exist_ok=True)
    (tmp_path / "tree" / file).write_text("own")
    spec = started(PROGRAM, given)
    assert bool(spec.links) is not hides
    assert (file in spec.files) is (file != "data/.gitkeep")


def test_a_link_of_a_tree_at_the_path_of_data_is_not_followed(tmp_path):
    given = environment(tmp_path, "data")
    (tmp_path / "tree" / "data").rmdir()
    (tmp_path / "tree" / "data").symlink_to("/etc")
    spec = started(PROGRAM, given)
    assert spec.links == {"data": "/srv/set"}
    assert not [name for name in spec.files if name.startswith("data")]


def test_the_command_line_names_folders_and_archives_of_this_machine(tmp_path):
    (tmp_path / "set.zip").write_bytes(b"")
    values = [f"data/mnist={tmp_path}", f"x.csv={tmp_path}/set.zip"]
    expected = {"data/mnist": str(tmp_path), "x.csv": str(tmp_path / "set.zip")}
    assert cli_options.data(values, "https://github.com/a/b") == expected
    assert cli_options.data((), None) == {}


@pytest.mark.parametrize(
    ("value", "repo", "words"),
    [
        ("data", "/clone", "names no folder"), ("data=", "/clone", "names no folder"), ("data=/no/such/place", "/clone", "names no folder"),
        ("../data=/tmp", "/clone", "inside the repository"), ("=/tmp", "/clone", "inside the repository"), ("data=/tmp", None, "needs a clone"),
    ],
)  # fmt: skip
def test_a_mistake_on_the_command_line_gets_one_sentence(value, repo, words):
    with pytest.raises(UserError, match=words):
        cli_options.data([value], repo)
