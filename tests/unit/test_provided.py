"""What a clone provides, read from its files: the common layouts, metadata of any kind, and what
cannot be read.
"""

import pytest

from bot.environment import provided
from bot.kernel.bug import Provided

FLAT = (
    "lib/__init__.py",
    "lib/core.py",
    "lib/data/__init__.py",
    "tests/test_a.py",
    "setup.py",
    "README.md",
)
PROJECT = {"pyproject.toml": '[project]\nname = "My.Lib"\n'}


@pytest.mark.parametrize(
    ("paths", "on_path", "built"),
    [
        (FLAT, ("lib",), ("lib",)),
        (("src/lib/__init__.py", "src/lib/a.py"), ("lib",), ("lib",)),
        (("one.py", "setup.py", "conftest.py"), ("one",), ("one",)),
        (("src/cloud/storage/__init__.py",), ("cloud",), ("cloud", "storage")),
        (("lib/plot/__init__.py", "lib/plot/a/__init__.py"), ("lib",), ("lib", "plot")),
        (("python/lib/core.py", "python/lib/__init__.py"), ("python",), ("python", "lib")),
        (("docs/conf.py", "my-scripts/__init__.py", "a b.py", "lib.pyi"), (), ()),
        ((), (), ()),
    ],
)
def test_modules_by_where_they_lie(paths, on_path, built):
    found = provided.read_layout(paths, PROJECT)
    assert (found.name, found.on_path, found.built) == ("my-lib", on_path, built)
    assert provided.read_layout(paths, {}) == Provided(on_path=on_path), (
        "without metadata nothing is built"
    )
    tool = {"pyproject.toml": "[tool.black]\nline-length = 80\n"}
    assert provided.read_layout(paths, tool).built == ()


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        ({"pyproject.toml": '[tool.poetry]\nname = "a_b"\n'}, "a-b"),
        ({"pyproject.toml": "[build-system]\n", "setup.cfg": "[metadata]\nname = a.b\n"}, "a-b"),
        ({"setup.py": "from setuptools import setup\nsetup(name='A-B')\n"}, "a-b"),
        ({"setup.py": "import setuptools\nNAME = 'a-b'\nsetuptools.setup(name=NAME)\n"}, "a-b"),
        ({"setup.py": "from setuptools import setup\nsetup(name=read('name'))\n"}, ""),
        ({"setup.py": "setup(name="}, ""),
        ({"setup.py": "(" * 100_000}, ""),
        ({"setup.cfg": "name = a-b\n"}, ""),
        ({"setup.cfg": "[metadata]\nname = %(x)s\n"}, "%(x)s"),
        ({"pyproject.toml": "project = 3\n[tool]\npoetry = 1\n"}, ""),
        ({"pyproject.toml": "[project]\nname = 7\n"}, ""),
        ({"pyproject.toml": "a = " + "[" * 100_000}, ""),
        ({"pyproject.toml": "a ="}, ""),
    ],
)
def test_the_name_of_its_distribution(texts, name):
    assert provided.read_layout(("lib/__init__.py",), texts).name == name


@pytest.mark.parametrize(
    ("found", "called"),
    [
        (Provided(name="lib", on_path=("lib",)), "lib"),
        (Provided(name="scikit-learn", built=("sklearn",)), "scikit-learn"),
        (Provided(on_path=("My_Mod",)), "my-mod"),
        (Provided(name="numpy", on_path=("numpy",)), "numpy"),
        (Provided(name="other", on_path=("other", "docs"), built=("other",)), ""),
        (Provided(), ""),
    ],
)
def test_whether_a_program_uses_it(found, called):
    """It imports `sklearn`, `lib` and `My_Mod`; numpy is installed beside them."""
    assert provided.package_in_use(found, ("sklearn", "lib", "My_Mod"), ("numpy",)) == called


def test_whether_it_has_to_be_built():
    both = Provided(name="scikit-learn", on_path=("docs",), built=("docs", "sklearn"))
    assert not provided.importable(both, "scikit-learn", ("sklearn",))
    assert provided.importable(
        both.model_copy(update={"on_path": ("docs", "sklearn")}), "scikit-learn", ("sklearn",)
    )
    assert provided.importable(Provided(name="numpy", on_path=("numpy",)), "numpy", ("torch",)), (
        "by its own name"
    )
