"""What a hostile tree, configuration, archive or program tries with the operator's data, in real
sandboxes.
"""

import io
import json
import tarfile
import tempfile
from pathlib import Path

import pytest

from bot.app.configuration import parse
from bot.environment.operator_files import Shelf
from bot.kernel import launch
from bot.kernel.attempt import Script
from bot.kernel.bug import CrashSignature
from bot.kernel.environment import Environment
from bot.kernel.job import EnvironmentOptions, JobOptions
from sandbox.cache import Cache
from sandbox.port import Mount

LOOK = """
import json, os
def look(path):
    try: return sorted(os.listdir(path))
    except NotADirectoryError: return open(path).read()
    except OSError: return None
print(json.dumps(look('data')))
"""


@pytest.fixture
def place():
    """A folder of the host's that every user may read and write."""
    with tempfile.TemporaryDirectory(prefix="reprise-data-") as folder:
        kept = Path(folder) / "kept" / "digits"
        kept.mkdir(parents=True)
        (kept / "numbers.txt").write_text("1 2 3")
        for path in (kept / "numbers.txt", kept, kept.parent, kept.parent.parent):
            path.chmod(0o777)
        (Path(folder) / "tree").mkdir()
        yield Path(folder)


@pytest.fixture
def shelf(place):
    return Shelf(Cache(place / "cache"), place / "kept")


def look(bench, place, files, source=LOOK):
    """A program in the tree, as the engine runs it; what it says, and the spec."""
    environment = Environment(
        id="e",
        python="3",
        interpreter=str(bench.home / "bin" / "python"),
        mounts=(str(bench.home),),
        variables={"LD_LIBRARY_PATH": str(bench.home / "lib")},
        tree=str(place / "tree"),
        operator_files=files,
    )
    (place / "tree" / "read.py").write_text(source)
    launch.read_tree.cache_clear()
    script = Script(files={"read.py": source}, entry="read.py", command=("read.py",))
    spec = launch.spec(
        script, environment, JobOptions(), CrashSignature(exception="ValueError"), 0, ""
    )
    done = bench.sandbox.run(spec)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), spec


def test_no_program_writes_to_the_operators_data(walled, place):
    """Whatever the rights of the files on the host are."""
    source = f"""
import json, os
written = []
for root in ('data', {str(place / "kept" / "digits")!r}):
    for name, act in {{
        'write': lambda: open(root + '/numbers.txt', 'w'),
        'append': lambda: open(root + '/numbers.txt', 'a'),
        'make': lambda: open(root + '/new.txt', 'x'),
        'remove': lambda: os.unlink(root + '/numbers.txt'),
        'move': lambda: os.rename(root + '/numbers.txt', root + '/other.txt'),
        'fold': lambda: os.mkdir(root + '/new'),
        'rights': lambda: os.chmod(root + '/numbers.txt', 0),
        'cut': lambda: os.truncate(root + '/numbers.txt', 0),
        'link': lambda: os.link(root + '/numbers.txt', 'hard'),
        'times': lambda: os.utime(root + '/numbers.txt', (1, 1)),
    }}.items():
        try: act(); written.append(name)
        except OSError: pass
os.unlink('data'); os.mkdir('data'); open('data/numbers.txt', 'w').write('forged')
print(json.dumps(written))
"""
    kept = place / "kept" / "digits"
    done = walled.run(source, links={"data": str(kept)}, mounts=(Mount(kept),))
    assert json.loads(done.stdout) == [], done.stderr
    assert [path.name for path in kept.iterdir()] == ["numbers.txt"]
    assert (kept / "numbers.txt").read_text() == "1 2 3"


def test_a_plain_process_has_no_such_wall(interpreter, place):
    """The control: there the rights of the files decide."""
    from tests.contract.conftest import bench_of

    kept = place / "kept" / "digits"
    source = "open('data/numbers.txt', 'a').write(' 4')"
    done = bench_of("process", interpreter).run(
        source, links={"data": str(kept)}, mounts=(Mount(kept),)
    )
    assert done.exit_code == 0, done.stderr
    assert (kept / "numbers.txt").read_text() == "1 2 3 4"


@pytest.mark.parametrize("shape", ["nothing", "a link", "a link to nothing", "a folder", "a file", "a file in a folder", "a link in a folder"])  # fmt: skip
def test_a_tree_does_not_decide_where_data_lies(walled, place, shelf, shape):
    data = place / "tree" / "data"
    match shape:
        case "a link":
            data.symlink_to("/etc")
        case "a link to nothing":
            data.symlink_to("../../nothing")
        case "a folder":
            data.mkdir()
        case "a file":
            data.write_text("own")
        case "a file in a folder":
            data.mkdir()
            (data / "own.txt").write_text("own")
        case "a link in a folder":
            data.mkdir()
            (data / "numbers.txt").symlink_to("/etc/passwd")
    sight, spec = look(walled, place, shelf.files({"data": "digits"}))
    own = {"a file": "own", "a file in a folder": ["own.txt"]}
    assert sight == own.get(shape, ["numbers.txt"])
    assert bool(spec.links) is (shape not in own)
    assert not any(name.startswith("data") for name in spec.files) or shape in own


def test_a_link_above_the_path_of_data_is_not_followed(walled, place, shelf):
    (place / "tree" / "data").symlink_to(place / "kept")
    source = LOOK.replace("look('data')", "look('data/deep/set')")
    sight, _ = look(walled, place, shelf.files({"data/deep/set": "digits"}), source)
    assert sight == ["numbers.txt"]
    assert [path.name for path in (place / "kept").iterdir()] == ["digits"]


@pytest.mark.parametrize(
    "text",
    ["data: {data: ../..}", "data: {data: /etc}", "data: {data: 'digits/../../tree'}", "data: {data: '.'}", "data: {data: ..}", 'data: {data: "digits\\0"}', "data: {/etc: digits}",
     "data: {../tree: digits}", "data: {.: digits}", "data: {.reprise: digits}", "data: {.reprise/key: digits}", "data: {.git/hooks: digits}", "data: {a/../../b: digits}", 'data: {"a\\nb": digits}'],
)  # fmt: skip
def test_a_configuration_names_nothing_else(text):
    parsed = parse(text, "acme/lib:.github/reprise.yml")
    assert parsed.values == {}
    assert [problem.key for problem in parsed.problems] == ["data"]


@pytest.mark.parametrize("name", ["/etc", "../tree", "..", "digits/numbers.txt", "/etc/passwd"])
def test_nor_does_a_job_of_the_app_that_was_made_otherwise(walled, place, shelf, name):
    data = EnvironmentOptions(data={"data": name}).data
    sight, spec = look(walled, place, shelf.files(data))
    assert sight is None
    assert not spec.links
    assert {str(mount.source) for mount in spec.mounts} == {str(walled.home)}


def test_an_archive_leaves_nothing_outside_and_gives_nothing(walled, place, shelf):
    rows = {
        "up": ("../out.txt", tarfile.REGTYPE, ""),
        "root": (str(place / "out.txt"), tarfile.REGTYPE, ""),
        "link": ("data", tarfile.SYMTYPE, "/etc"),
        "hard": ("data", tarfile.LNKTYPE, "/etc/passwd"),
    }
    for name, (path, kind, target) in rows.items():
        info = tarfile.TarInfo(path)
        info.type, info.linkname, info.size = kind, target, 1 if kind == tarfile.REGTYPE else 0
        with tarfile.open(place / "kept" / f"{name}.tar.gz", "w:gz") as packed:
            packed.addfile(info, io.BytesIO(b"x"))
        files = shelf.files({"data": name})
        assert len(files.problems) == 1
        sight, spec = look(walled, place, files)
        assert sight is None
        assert not spec.links
    assert not list((place / "cache" / "data").iterdir())
    assert not list(place.rglob("out.txt"))


def test_an_archive_is_read_only_too(walled, place, shelf):
    info = tarfile.TarInfo("numbers.txt")
    info.size, info.mode = 1, 0o777
    with tarfile.open(place / "kept" / "packed.tar.gz", "w:gz") as packed:
        packed.addfile(info, io.BytesIO(b"x"))
    source = LOOK + "open('data/numbers.txt', 'a')"
    files = shelf.files({"data": "packed"})
    assert look(walled, place, files)[0] == ["numbers.txt"]
    with pytest.raises(AssertionError, match=r"Read-only file system|Permission denied"):
        look(walled, place, files, source)


def test_the_operators_weights_can_be_read_and_not_written(walled, place, shelf):
    blobs = place / "hub" / "models--org--tiny" / "snapshots" / "1"
    blobs.mkdir(parents=True)
    (blobs / "config.json").write_text("{}")
    for path in (blobs / "config.json", blobs, *blobs.parents[:3]):
        path.chmod(0o777)
    source = """
import json, os
root = os.environ['HF_HUB_CACHE'] + '/models--org--tiny'
said = [open(root + '/snapshots/1/config.json').read()]
for act in (lambda: open(root + '/snapshots/1/config.json', 'w'), lambda: os.mkdir(root + '/refs')):
    try: act(); said.append('written')
    except OSError: said.append('refused')
print(json.dumps(said))
"""
    files = Shelf(shelf.cache, hub_dir=place / "hub").files({})
    assert look(walled, place, files, source)[0] == ["{}", "refused", "refused"]
    assert not (place / "hub" / "models--org--tiny" / "refs").exists()
