"""A name that an installed release lacks, and the release that has it."""

import io
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from packaging.version import Version

from bot.environment import library_names, removed_names
from bot.environment.index import File, IndexRelease, PackageIndex
from bot.environment.removed_names import Located
from bot.kernel.environment import LibraryName
from sandbox.indexes import Indexes

START = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("exception", "message", "lacking"),
    [
        (
            "ImportError",
            "cannot import name 'OneOf' from 'acme.checks' (/e/acme/checks.py)",
            "acme.checks.OneOf",
        ),
        ("AttributeError", "module 'acme.image' has no attribute 'CUBIC'", "acme.image.CUBIC"),
        ("AttributeError", "acme.tree_map was removed in acme 0.4.26: use it", "acme.tree_map"),
        ("ModuleNotFoundError", "No module named 'acme.externals.six'", "acme.externals.six"),
        ("ModuleNotFoundError", "No module named 'acme'", ""),
        ("ModuleNotFoundError", "No module named 'acme.x'; 'acme' is not a package", ""),
        (
            "ImportError",
            "cannot import name 'f' from 'acme' (most likely due to a circular import)",
            "",
        ),
        ("ValueError", "module 'acme' has no attribute 'CUBIC'", ""),
        ("AttributeError", "'DataFrame' object has no attribute 'append'", "DataFrame.append"),
        ("AttributeError", "type object 'Net' has no attribute 'x'", "Net.x"),
        ("TypeError", "mel() got an unexpected keyword argument 'sr'", "mel(sr=\u2026)"),
        ("TypeError", "Net.__init__() got an unexpected keyword argument 'sr'", "Net(sr=\u2026)"),
        (
            "TypeError",
            "mel() takes 0 positional arguments but 3 positional arguments were given",
            "mel() with 3 positional arguments",
        ),
        ("TypeError", "unsupported operand", ""),
    ],
)
def test_what_an_exception_says_that_a_library_lacks(
    exception: str, message: str, lacking: str
) -> None:
    lacking_name = library_names.lacking_name(exception, message, ["acme"])
    assert str(lacking_name or "") == lacking


@pytest.mark.parametrize(
    ("files", "has"),
    [
        ({"acme/image.py": "CUBIC = 3\n"}, True),
        (
            {"acme/image.py": "try:\n    from ._c import x as CUBIC\nexcept ImportError: ...\n"},
            True,
        ),
        ({"acme/image.py": "class CUBIC: ...\n"}, True),
        ({"acme/image.py": "def f():\n    CUBIC = 3\n"}, False),
        ({"acme/image.py": "# CUBIC\nBICUBIC = 3\n"}, False),
        ({"acme/image.py": "__all__ = ['CUBIC']\n"}, True),
        ({"acme/image.py": "def __getattr__(name):\n    return {'CUBIC': 3}[name]\n"}, True),
        ({"acme/image/__init__.py": "", "acme/image/CUBIC.py": ""}, True),
        (
            {"acme/image/__init__.py": "from .own import *\n", "acme/image/own.py": "CUBIC = 1"},
            True,
        ),
        ({"acme/image.py": "from acme.own import *\n", "acme/own.py": "CUBIC = 1"}, True),
        ({"acme/image.py": "from .image import *\n"}, False),
        ({"acme/__init__.py": ""}, False),
    ],
)
def test_which_files_have_a_name(files: Mapping[str, str], has: bool) -> None:
    lacking = LibraryName(module="acme.image", name="CUBIC")
    assert removed_names.has_name(lacking, list(files), lambda path: files.get(path, "")) is has


def index_of(root: Path, *texts: str) -> PackageIndex:
    """An index with a release of "acme" a month, whose only module has each text in turn."""
    rows = []
    for at, text in enumerate(texts):
        path = root / f"acme-1.{at}-py3-none-any.whl"
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr("acme/__init__.py", text)
        path.write_bytes(data.getvalue())
        file = File(path.name, path.as_uri(), uploaded=START + timedelta(days=30 * at))
        rows.append(IndexRelease(Version(f"1.{at}"), (file,)))
    return PackageIndex(Indexes(), _known={"acme": tuple(rows)})


HAS, LACKS = "CUBIC = 3", ""


@pytest.mark.parametrize(
    ("texts", "installed", "days", "version"),
    [
        ([HAS, HAS, LACKS, LACKS], "1.3", 90, "1.1"),
        ([HAS] * 20 + [LACKS] * 20, "1.39", 2_000, "1.19"),
        ([LACKS, LACKS, HAS], "1.0", 60, "1.2"),
        ([LACKS, LACKS, HAS], "1.0", 0, ""),
        ([LACKS] * 4, "1.3", 120, ""),
    ],
)
def test_the_newest_release_that_has_a_name(
    tmp_path: Path, texts: list[str], installed: str, days: int, version: str
) -> None:
    index, day = index_of(tmp_path, *texts), START + timedelta(days=days)
    lacking = LibraryName(module="acme", name="CUBIC")
    assert removed_names.release_with(index, Located("acme", installed), lacking, day) == version


def test_the_distribution_of_a_module_is_the_one_that_installed_it(tmp_path: Path) -> None:
    info = tmp_path / "Dm_Acme-1.2.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("acme/__init__.py,,\nother.py,,\n")
    assert removed_names.distribution_of(tmp_path, "acme.image") == ("dm-acme", "1.2")
    assert removed_names.distribution_of(tmp_path, "other") == ("dm-acme", "1.2")
    assert removed_names.distribution_of(tmp_path, "acm") == ("", "")


MEL = "def mel(*, sr):\n    return sr\n"


@pytest.mark.parametrize(
    ("text", "part", "has"),
    [
        ("class Net:\n    def run(self): ...\n", {"attribute": "run"}, True),
        ("class Net:\n    run = walk = None\n", {"attribute": "run"}, True),
        ("class Net:\n    def go(self):\n        run = 1\n", {"attribute": "run"}, False),
        ("class Other:\n    def run(self): ...\n", {"attribute": "run"}, False),
        ("def Net(a, *, run=1): ...\n", {"keyword": "run"}, True),
        ("def Net(a, **rest): ...\n", {"keyword": "run"}, True),
        ("class Net:\n    def __init__(self, run): ...\n", {"keyword": "run"}, True),
        ("class Net:\n    def __init__(self, walk): ...\n", {"keyword": "run"}, False),
        ("def Net(a, b): ...\n", {"positional": 2}, True),
        ("def Net(a, *, b): ...\n", {"positional": 2}, False),
        ("def Net(*rows): ...\n", {"positional": 2}, True),
    ],
)
def test_which_definition_has_what_a_program_asks_for(
    tmp_path: Path, text: str, part: dict[str, object], has: bool
) -> None:
    info = tmp_path / "acme-1.2.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("acme/net.py,,\n")
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "net.py").write_text(text)
    lacking = LibraryName.model_validate({"name": "Net", "tops": ("other", "acme"), **part})
    place = removed_names.located(tmp_path, lacking)
    is_defined = "Net" in text
    expected = Located("acme", "1.2", ("acme/net.py",)) if is_defined and not has else None
    assert place == expected


def test_the_newest_release_whose_function_takes_a_call(tmp_path: Path) -> None:
    index = index_of(tmp_path, "def mel(a, b): ...", "def mel(a, b): ...", MEL, MEL)
    lacking = LibraryName(name="mel", tops=("acme",), positional=2)
    place = Located("acme", "1.3", ("acme/__init__.py",))
    assert removed_names.release_with(index, place, lacking, None) == "1.1"


def test_the_newest_release_of_a_library_that_does_without_a_name_of_another(
    tmp_path: Path,
) -> None:
    asks = "try:\n    from other.parts import gone\nexcept ValueError: ...\n"
    index = index_of(tmp_path, "", "from other.parts import here", asks, asks)
    info = tmp_path / "acme-1.3.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("acme/__init__.py,,\n")
    lacking = LibraryName(module="other.parts", name="gone", importer="acme/__init__.py")
    place = removed_names.located(tmp_path, lacking)
    assert place == Located("acme", "1.3")
    assert removed_names.release_with(index, place, lacking, None) == "1.1"


def test_the_next_release_of_a_library_that_does_without_a_module_that_is_not_there(
    tmp_path: Path,
) -> None:
    asks, perhaps = "import other.parts", "try:\n    import other\nexcept ImportError: ...\n"
    index = index_of(tmp_path, asks, asks, asks, perhaps, "", "")
    lacking = LibraryName(module="other", importer="acme/__init__.py")
    place = Located("acme", "1.1")
    assert removed_names.release_with(index, place, lacking, START) == "1.3"
    index = index_of(tmp_path, asks, asks, asks)
    assert not removed_names.release_with(index, place, lacking, START)
