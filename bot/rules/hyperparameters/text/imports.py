"""What the names of a program stand for, and how a new one is imported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

_SAME = (
    ("tensorflow.keras", "keras"),
    ("tensorflow.python.keras", "keras"),
    ("keras.api", "keras"),
    ("keras.src", "keras"),
    ("keras.optimizers.legacy", "keras.optimizers"),
)


@dataclass(frozen=True)
class Imports:
    """`names` are the program's own with what they stand for; `stars` the modules whose every name
    is imported; `froms` the `from` imports by module.
    """

    names: dict[str, str]
    stars: tuple[str, ...]
    froms: dict[str, cst.ImportFrom]

    def full(self, name: str) -> str:
        """The canonical full name of a dotted one."""
        head, _, rest = name.partition(".")
        known = self.names.get(head)
        if known is None and name and not rest and self.stars:
            known = self._starred(head)
        return canonical(f"{known}.{rest}" if known and rest else known or name)

    def _starred(self, head: str) -> str | None:
        """A class that the program can only have from the one module that it imports whole."""
        return f"{self.stars[0]}.{head}" if head[:1].isupper() and len(self.stars) == 1 else None

    def spelled(self, full: str) -> str:
        """How the program can name something with what it has imported; "" where it cannot."""
        for name, known in self.names.items():
            if canonical(known) == full:
                return name
        module, _, last = full.rpartition(".")
        parent = self.spelled(module) if module else ""
        return f"{parent}.{last}" if parent else ""


def canonical(name: str) -> str:
    """One name for all that the packages give to one thing."""
    for prefix, short in _SAME:
        if name == prefix or name.startswith(f"{prefix}."):
            return short + name[len(prefix) :]
    return name


def imported(nodes: Iterable[cst.CSTNode]) -> Imports:
    """The imports anywhere in a program."""
    names: dict[str, str] = {}
    stars: list[str] = []
    froms: dict[str, cst.ImportFrom] = {}
    for node in nodes:
        if isinstance(node, cst.Import):
            for alias in node.names:
                own, full = _alias(alias)
                names[own if alias.asname else full.partition(".")[0]] = (
                    full if alias.asname else full.partition(".")[0]
                )
        elif isinstance(node, cst.ImportFrom) and node.module and not node.relative:
            module = _dotted(node.module)
            if isinstance(node.names, cst.ImportStar):
                stars.append(module)
                continue
            froms.setdefault(canonical(module), node)
            for alias in node.names:
                own, full = _alias(alias)
                names[own] = f"{module}.{full}"
    return Imports(names, tuple(stars), froms)


def _alias(alias: cst.ImportAlias) -> tuple[str, str]:
    full = _dotted(alias.name)
    own = alias.asname.name if alias.asname else None
    return (own.value if isinstance(own, cst.Name) else full), full


def _dotted(node: cst.CSTNode) -> str:
    return (
        f"{_dotted(node.value)}.{node.attr.value}"
        if isinstance(node, cst.Attribute)
        else (node.value if isinstance(node, cst.Name) else "")
    )
