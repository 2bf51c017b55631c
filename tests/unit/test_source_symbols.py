"""What a look-up of a name reads, and what a module binds at any depth of it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from bot.kernel.source import objects, symbols, symbols as source_symbols, syntax
from tests.support.source_index import FakeSourceIndex

NESTED = """
if fast:
    from a import first
else:
    try:
        from b import first, second
    except ImportError as error:
        from c import second
        match error:
            case _:
                with open() as file:
                    import d.e as third
    finally:
        from f import *
"""
LAYERS = """
class Base:
    def __init__(self):
        self.width = 4

class Layer(Base):
    pass
"""


def test_a_member_is_found_without_the_namesakes_of_a_whole_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = FakeSourceIndex({"net/layers.py": LAYERS}).store
    monkeypatch.setattr(store, "named", lambda last: pytest.fail(f"asked for each {last}"))
    found = symbols.lookup(store, "net.layers.Layer.__init__", 1)
    assert [each.dotted for each in found] == ["net.layers.Base.__init__"]


def test_a_module_binds_what_it_imports_at_any_depth() -> None:
    found = source_symbols.bindings(NESTED, "net/layers.py")
    assert found.names["first"] == "a.first"
    assert found.names["second"] == "b.second"
    assert found.names["third"] == "d.e"
    assert found.stars == ("f",)
    assert source_symbols.bases(LAYERS, "Layer") == ("Base",)
    assert source_symbols.bases("class Broken(", "Broken") == ()


@pytest.mark.parametrize("module", ["ast", "argparse", "typing", "subprocess"])
def test_statements_come_in_the_order_of_a_walk(module: str) -> None:
    tree = ast.parse(Path(str(sys.modules[module].__file__)).read_text(encoding="utf-8"))
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef)
    walked = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    assert [node for node in syntax.statements(tree) if isinstance(node, kinds)] == walked


MAKING = """
model = nn.Sequential(Layer(3)).eval()
blocks = [Block(i) for i in range(3)]
for at, block in enumerate(blocks):
    block(x)
loaded = Auto.from_pretrained("x")
study = make_study()
head = Head(4) if wide else None
with Precision() as precision:
    precision.cast(model[0])
list(study.trials)
study.size = len(loaded)
"""


def test_objects_are_told_from_what_they_are_made_by() -> None:
    tree = ast.parse(MAKING)
    classes = objects.objects_of(tree)
    assert classes["model"] == "Layer", "what a container holds"
    assert classes["block"] == classes["blocks"] == "Block"
    assert classes["loaded"] == "Auto"
    assert classes["study"] == "make_study()"
    assert classes["head"] == "Head"
    assert classes["precision"] == "Precision"
    used = {(use.owner, use.member) for use in objects.uses(tree, classes)}
    assert {
        ("Block", "__call__"),
        ("Layer", "__getitem__"),
        ("Auto", "__len__"),
        ("make_study()", "__setattr__"),
        ("Precision", "__enter__"),
        ("Precision", "cast"),
    } <= used


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def f(x) -> Box:\n    return g(x)", "Box"),
        ("def f(x) -> str | boxes.Box:\n    return g(x)", "boxes.Box"),
        ("def f(x):\n    if x:\n        return 1\n    return Box(x)", "Box"),
        ("def f(x):\n    return g(x)", ""),
        ("x = 1", ""),
    ],
)
def test_what_a_function_returns_is_told_from_its_annotation_or_its_end(
    text: str, name: str
) -> None:
    assert objects.returned(text) == name


@pytest.mark.parametrize(("times", "is_read"), [(1, True), (99, False)])
def test_a_parser_that_other_threads_disturb_is_asked_again(monkeypatch, times, is_read):
    real, calls = ast.parse, []

    def disturbed(text):
        calls.append(text)
        if len(calls) <= times:
            raise SystemError("AST constructor recursion depth mismatch (before=120, after=91)")
        return real(text)

    monkeypatch.setattr(syntax.ast, "parse", disturbed)
    if is_read:
        assert len(syntax.parse("a = 1").body) == 1
    else:
        with pytest.raises(syntax.Unreadable):
            syntax.parse("a = 1")


def test_a_name_that_is_also_its_modules_is_what_the_package_gives_it_to() -> None:
    texts = {
        "hunt/__init__.py": "from .best import best\nfrom . import plain\n",
        "hunt/best.py": "def best(f):\n    return f\n",
        "hunt/plain.py": "LIMIT = 3\n\n\ndef best(f):\n    return 1\n",
    }
    store = FakeSourceIndex(texts).store
    assert [one.dotted for one in symbols.lookup(store, "hunt.best", 1)] == ["hunt.best.best"]
    (module,) = symbols.lookup(store, "hunt.plain", 1)
    assert (module.kind, module.path) == ("module", "hunt/plain.py")


def test_the_apply_of_a_function_of_autograd_leads_to_its_forward() -> None:
    texts = {
        "net/bound.py": "import torch\n\n\nclass Bound(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x\n\n\n"
        "class Tree:\n    def apply(self, f):\n        return f\n\n"
        "    def forward(self, x):\n        return x\n\n\n"
        "def bound(x):\n    return Bound.apply(x)\n\n\ndef walk(x):\n    return Tree.apply(x)\n"
    }
    sources = FakeSourceIndex(texts)
    for name, called in (("bound", "Bound.forward"), ("walk", "Tree.apply")):
        (caller,) = sources.symbol(f"net.bound.{name}")
        assert [one.name for one in sources.callees(caller)] == [f"net.bound.{called}"]
