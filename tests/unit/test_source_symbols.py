"""What a look-up of a name reads, and what a module binds at any depth of it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from bot.kernel.source import symbols, symbols as source_symbols, syntax
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
