"""What every index promises: over texts in memory, and over an installed tree indexed in SQLite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.kernel.environment import Environment
from bot.kernel.ports import SourceIndex
from bot.kernel.source.indexer import SqliteIndexer
from tests.support.fakes import FakeSourceIndex

LAYERS = '''"""Layers."""
from pkg.sub import helper
import pkg.sub as sub


class Base:
    """Base of layers."""

    def reset(self):
        """Forget."""
        return helper(self)


class Linear(Base):
    """A linear layer with padding."""

    def __init__(self, in_features: int, out_features: int) -> None:
        """Make it."""
        self.reset()

    def forward(self, x):
        return sub.scale(x)


def make(n):
    return Linear(n, n)
'''
SUB = """def helper(x):
    return x


def scale(x):
    return x * 2


def train(model, opt, data):
    for x in data:
        opt.zero_grad()
        model(x).backward()
        opt.step()
"""
TEXTS = {
    "pkg/__init__.py": "from .layers import Linear as Lin, make\nfrom .sub import *\n",
    "pkg/layers.py": LAYERS,
    "pkg/sub.py": SUB,
    "pkg/broken.py": "def half(:\n    linear = (\n",
    "dep/core.py": "class LinearThing:\n    '''A linear layer with padding.'''\n",
}


def installed(folder: Path) -> Environment:
    """The texts as two installed distributions, of which one needs the other."""
    site = folder / "env/lib/python3.11/site-packages"
    for name, needs in (("pkg", "Requires-Dist: dep>=1\n"), ("dep", "")):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\n{needs}\nText\n")
        (info / "RECORD").write_text(
            "".join(f"{path},,\n" for path in TEXTS if path.startswith(f"{name}/"))
        )
    for path, text in TEXTS.items():
        (site / path).parent.mkdir(exist_ok=True)
        (site / path).write_text(text)
    return Environment(id="e", python="3.11", interpreter="python", mounts=(str(folder / "env"),))


def fake(_: Path) -> SourceIndex:
    return FakeSourceIndex(TEXTS, main=("pkg",))


def real(folder: Path) -> SourceIndex:
    return SqliteIndexer(folder / "cache").open(installed(folder), ("pkg",))


@pytest.fixture(params=[fake, real], ids=["fake", "sqlite"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> SourceIndex:
    make: Callable[[Path], SourceIndex] = request.param
    return make(tmp_path)


def test_files_are_listed_in_order(index: SourceIndex) -> None:
    assert index.files() == tuple(sorted(TEXTS))
    assert index.files("pkg/s") == ("pkg/sub.py",)


def test_identifiers_are_found_by_their_parts_and_dependencies_come_later(
    index: SourceIndex,
) -> None:
    found = [chunk.name for chunk in index.search("in features of LINEAR layers")]
    assert found[0] == "pkg.layers.Linear.__init__"
    both = [chunk.path for chunk in index.search("linear layer padding")]
    assert both.index("pkg/layers.py") < both.index("dep/core.py")
    assert index.search("zebra") == ()
    assert index.search('" OR body:* NEAR(') == ()
    assert len(index.search("linear", 1)) == 1


def test_a_text_is_found_as_it_is_written_with_its_line(index: SourceIndex) -> None:
    found = index.literal("A linear layer with padding")
    assert [chunk.path for chunk in found] == ["pkg/layers.py", "dep/core.py"]
    assert [chunk.focus for chunk in found] == [15, 2]
    assert [chunk.name for chunk in index.literal("in_features: int")] == [
        "pkg.layers.Linear.__init__"
    ]
    for text in ("in_feature", "padding linear layer", "", "(.*)+$", "zebra"):
        assert index.literal(text) == ()


def test_a_chunk_says_what_it_is_and_where_it_is_from(index: SourceIndex) -> None:
    (chunk,) = index.symbol("pkg.layers.make")
    assert (chunk.path, chunk.start, chunk.kind, chunk.package, chunk.version, chunk.origin) == (
        "pkg/layers.py", 25, "function", "pkg", "1.0", "installed")  # fmt: skip
    assert chunk.text == "def make(n):\n    return Linear(n, n)"
    assert chunk.end == 26


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("pkg.Lin", "pkg.layers.Linear"), ("pkg.helper", "pkg.sub.helper"), ("layers.Linear.forward", "pkg.layers.Linear.forward"),
        ("pkg.Lin.reset", "pkg.layers.Base.reset"), ("make", "pkg.layers.make"), ("Linear", "pkg.layers.Linear"),
        ("pkg.Linear", "pkg.layers.Linear"),
    ],
)  # fmt: skip
def test_names_lead_to_definitions(index: SourceIndex, name: str, wanted: str) -> None:
    assert index.symbol(name)[0].name == wanted


def test_what_is_no_name_has_no_definition(index: SourceIndex) -> None:
    for name in ("", "..", "a b", "nothing.here", "x" * 500, "'; drop table file"):
        assert index.symbol(name) == ()


def test_lines_are_read_by_path_or_its_end(index: SourceIndex) -> None:
    for path in ("pkg/sub.py", "sub.py", "src/pkg/sub.py", "/venv/lib/site-packages/pkg/sub.py"):
        chunk = index.read(path, 1, 2)
        assert chunk is not None
        assert chunk.text == "def helper(x):\n    return x"
    end = index.read("pkg/sub.py", 12, 900)
    assert end is not None
    assert (end.start, end.end) == (12, 13)
    assert index.read("pkg/sub.py", 900, 901) is None
    assert index.read("../../etc/passwd", 1, 2) is None
    assert index.read("no.py", 1, 2) is None


def test_the_definition_around_a_line(index: SourceIndex) -> None:
    chunk = index.around("layers.py", 19)
    assert chunk is not None
    assert (chunk.name, chunk.start) == ("pkg.layers.Linear.__init__", 17)
    top = index.around("pkg/layers.py", 1)
    assert top is not None
    assert top.kind == "module"
    assert index.around("pkg/layers.py", 900) is None


def test_calls_are_followed_both_ways(index: SourceIndex) -> None:
    make = index.symbol("pkg.make")[0]
    assert [chunk.name for chunk in index.callees(make)] == ["pkg.layers.Linear.__init__"]
    scale = index.symbol("pkg.sub.scale")[0]
    assert [chunk.name for chunk in index.callers(scale)] == ["pkg.layers.Linear.forward"]
    made = index.symbol("pkg.layers.Linear.__init__")[0]
    assert [chunk.name for chunk in index.callers(made)] == ["pkg.layers.make"]
    assert [chunk.name for chunk in index.callees(made)] == ["pkg.layers.Base.reset"]


def test_training_loops(index: SourceIndex) -> None:
    (loop,) = index.loops()
    assert (loop.name, loop.kind) == ("pkg.sub.train", "loop")


def test_equal_questions_have_equal_answers(index: SourceIndex) -> None:
    assert index.search("linear layer") == index.search("linear layer")
    assert index.loops() == index.loops()


def test_cyclic_stars_and_bases_end() -> None:
    """In names that no definition has; the stack of Python is the limit."""
    stars = {
        f"big/m{at}.py": "".join(f"from big.m{other} import *\n" for other in range(150))
        for at in range(150)
    }
    assert FakeSourceIndex({**stars, "big/__init__.py": stars["big/m0.py"]}).symbol("big.x") == ()
    bases = {
        "a.py": "from b import B\nclass A(B.A):\n    pass\n",
        "b.py": "from a import A\nclass B(A.B):\n    pass\n",
        "p/__init__.py": "from . import p\n",
        "p/p.py": "from . import p\n",
    }
    assert FakeSourceIndex(bases).symbol("a.A.f") == ()
    assert FakeSourceIndex(bases).symbol("p.p.x") == ()
