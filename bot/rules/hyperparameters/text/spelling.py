"""How names, lookups and entries are written."""

from __future__ import annotations

import re

import libcst as cst


def dotted(node: cst.CSTNode) -> str:
    """A name or a chain of attributes of one as it is written; "" for any other expression."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    return ".".join((node.value, *reversed(parts))) if isinstance(node, cst.Name) else ""


def spelled(node: cst.CSTNode) -> str:
    """A lookup with double quotes: a name, attributes and entries of it, also by `get`; "" for any
    other expression.
    """
    ends: list[str] = []
    while not isinstance(node, cst.Name):
        if isinstance(node, cst.Attribute):
            ends.append(f".{node.attr.value}")
            node = node.value
        elif isinstance(node, cst.Subscript | cst.Call) and (key := entry_key(node)):
            ends.append(f'["{key}"]')
            node = node.value if isinstance(node, cst.Subscript) else _owner(node)
        else:
            return ""
    return "".join((node.value, *reversed(ends)))


def _owner(call: cst.Call) -> cst.BaseExpression:
    return call.func.value if isinstance(call.func, cst.Attribute) else call.func


def entry_key(node: cst.CSTNode) -> str:
    """The key of `settings["lr"]` and of `settings.get("lr")`; "" where there is none."""
    key: object = None
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        key = index.value if isinstance(index, cst.Index) else None
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
        key = node.args[0].value if node.func.attr.value == "get" else None
    said = key.evaluated_value if isinstance(key, cst.SimpleString) else None
    return said if isinstance(said, str) else ""


SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake(name: str) -> str:
    """A class's name as the function's: "GlorotUniform" is "glorot_uniform"."""
    return SNAKE.sub("_", name).lower()
