"""Changes of a program, collected and made at once; and a hyperparameter with the way to
write another value.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import libcst as cst

from bot.kernel.training_types import Hyperparameter, HyperparameterKind
from bot.program.parsed import ProgramTree
from bot.program.text import (
    Imports,
    NotApplicable,
    expression,
    led,
    passing,
    relisted,
    surrounded,
    with_name,
)

# Changes of a program, collected and then made at once.

Change = Callable[[Any], Any]
Values = Mapping[tuple[object, HyperparameterKind], str]
"""The values of a patch by the group and the kind of their places."""


class UseChange(NamedTuple):
    """The last name of a use, and what is put in its place."""

    name: str
    text: str


class Rewriting:
    """Changes are functions of a node: those of one node follow each other, and what holds it sees
    it changed. `wanted` has all that the patch changes, `widths` the units that it gives layers;
    uses that are `moved` stay, because a literal decides them.
    """

    def __init__(
        self,
        program: ProgramTree,
        values: Values,
        widths: Mapping[int, str] | None = None,
        moved: Container[str] = (),
    ) -> None:
        self.program = program
        self.wanted = values
        self.widths = widths or {}
        self.replaced: dict[str, UseChange] = {}
        """What is put in the place of uses that a run can watch, by their keys."""
        self._moved = moved
        self._changes: dict[cst.CSTNode, list[Change]] = defaultdict(list)
        self._around: dict[cst.CSTNode, list[tuple[bool, str]]] = defaultdict(list)
        self._listed: dict[cst.CSTNode, list[tuple[int, str | None]]] = defaultdict(list)
        self._naming: list[tuple[cst.CSTNode, cst.CSTNode, Callable[[int], str]]] = []
        self._removed: list[cst.CSTNode] = []
        self._imports: dict[tuple[str, str], str] = {}
        self.file = ""
        """The file that is written now, "" for the program's own: what it imports is its own."""
        self._replaced: dict[cst.CSTNode, str] = {}
        self._written: set[object] = set()

    def first(self, key: object) -> bool:
        """Whether this is the first time that a key is asked for: what several edits write
        together is written once.
        """
        new = key not in self._written
        self._written.add(key)
        return new

    def change(self, node: cst.CSTNode, change: Change) -> None:
        """Adds a change of one node."""
        self._changes[node].append(change)

    def replace(self, node: cst.CSTNode, text: str) -> None:
        """Puts an expression in the place of a node. Raises NotApplicable for another one than an
        earlier edit has put there.
        """
        if self._replaced.setdefault(node, text) != text:
            raise NotApplicable("Two changes set the same number to different values.")
        owner, name = self.program.use(node)
        if owner in self.program.uses and not self._replace_use(node, owner, name, text):
            return
        self.change(owner, lambda now: expression(_entered(now, name, text) if name else text))

    def _replace_use(self, node: cst.CSTNode, owner: cst.CSTNode, name: str, text: str) -> bool:
        """Notes what is put in the place of a use; whether it must be, or was done elsewhere."""
        key = self.program.key(node)
        self.replaced[key] = UseChange(name or _last_name(self.program.text(owner)), text)
        return key not in self._moved

    def before(self, node: cst.CSTNode, text: str) -> None:
        """Adds statements before the one that holds a node."""
        self._put(node, text, after=False)

    def after(self, node: cst.CSTNode, text: str) -> None:
        """Adds statements after the one that holds a node."""
        self._put(node, text, after=True)

    def after_naming(
        self, node: cst.CSTNode, element: cst.CSTNode, text: Callable[[int], str]
    ) -> None:
        """Adds a statement that names an element of a list by its place among those that are there
        after all changes.
        """
        self._naming.append((node, element, text))

    def _place_of(self, element: cst.CSTNode) -> int:
        holder, field = self._holder(element)
        index = next(n for n, x in enumerate(getattr(holder, field)) if x is element)
        list_changes = self._listed.get(holder, [])
        if (index, None) in list_changes:
            raise NotApplicable("What is removed cannot be named.")
        return index + sum(1 if text is not None else -1 for at, text in list_changes if at < index)

    def _put(self, node: cst.CSTNode, text: str, *, after: bool) -> None:
        if (after, text) not in self._around[statement := self.program.statement(node)]:
            self._around[statement].append((after, text))

    def after_element(self, node: cst.CSTNode | None, *texts: str) -> None:
        """Adds elements of a list, or arguments by position, after another."""
        # Each is put right after the element, so that the last one comes first.
        for text in reversed(texts):
            self._list(node, text)

    def remove_element(self, node: cst.CSTNode | None) -> None:
        """Removes an element of a list or an argument."""
        self._list(node, None)

    def _list(self, node: cst.CSTNode | None, text: str | None) -> None:
        holder, field = self._holder(node)
        index = next(n for n, x in enumerate(getattr(holder, field)) if x is node)
        self._listed[holder].append((index, text))

    def _holder(self, node: cst.CSTNode | None) -> tuple[cst.CSTNode, str]:
        holder = self.program.parents.get(node) if node else None
        if not isinstance(holder, cst.Call | cst.List | cst.Tuple):
            raise NotApplicable("Nothing can be added there.")
        return holder, "args" if isinstance(holder, cst.Call) else "elements"

    def remove(self, node: cst.CSTNode) -> None:
        """Removes the statement that holds a node. Its comments stay."""
        statement = self.program.statement(node)
        if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) > 1:
            raise NotApplicable("A line of several statements cannot be removed.")
        self._removed.append(statement)

    @property
    def imports(self) -> Imports:
        """What the file that is written now imports."""
        return self.program.imports_of(self.file)

    def named(self, full: str, instead: str = "") -> str:
        """How the program names something of a package, which is imported where it has to be,
        instead of a name that is used here alone.
        """
        spelling = self.imports.spelled(full)
        if spelling:
            return spelling
        program = self.program
        uses = [x for x in program.of(cst.Name) if x.value == instead]
        once = len([x for x in uses if program.where(x) == self.file]) == 2
        self._imports.setdefault((self.file, full), instead if once else "")
        return full.rpartition(".")[2] if not _is_module(full) else full

    @property
    def quote(self) -> str:
        """The quotation mark that most of the program's strings have."""
        strings = [x.quote for x in self.program.of(cst.SimpleString)]
        return "'" if strings.count("'") > strings.count('"') else '"'

    def text(self) -> str:
        """The program with all changes. Raises NotApplicable."""
        if any(x not in self.program.spans for x in self._changes):
            raise NotApplicable("What decides the value cannot be written.")
        for node, element, text in self._naming:
            self.after(node, text(self._place_of(element)))
        for file, full in self._imports:
            self._import(file, full)
        for statement in self._removed:
            self._remove(statement)
        for holder, changes in self._listed.items():
            self.change(holder, partial(relisted, changes=tuple(changes)))
        for node, texts in self._around.items():
            self.change(node, partial(surrounded, texts=tuple(texts)))
        try:
            return self.program.module.visit(_Writer(self._changes)).code
        except (cst.CSTValidationError, cst.ParserSyntaxError, TypeError, RecursionError) as error:
            raise NotApplicable("The change does not fit into the program.") from error

    def _import(self, file: str, full: str) -> None:
        module, _, name = full.rpartition(".")
        present = self.program.imports_of(file).froms.get(module)
        if present is not None and not _is_module(full):
            self.change(present, partial(with_name, name=name, instead=self._imports[file, full]))
            return
        text = f"import {full}" if _is_module(full) else f"from {module} import {name}"
        body = [x for x in self.program.module.body if self.program.where(x) == file]
        last = [x for x in body if _imports_something(x)]
        anchor = next((x for x in last if _imports(x, full.partition(".")[0])), None)
        if not body:
            raise NotApplicable("The program is empty.")
        anchor = anchor or (last[-1] if last else None)
        if anchor is not None:
            self.after(anchor, text)
        else:
            self.before(body[0], text)

    def _remove(self, statement: cst.CSTNode) -> None:
        siblings = self._siblings(statement)
        index = next((n for n, x in enumerate(siblings) if x is statement), -1)
        if index < 0:
            raise NotApplicable("The statement cannot be removed.")
        if all(x in self._removed for x in siblings):
            self.change(statement, lambda updated: passing(updated))
            return
        following = next((x for x in siblings[index + 1 :] if x not in self._removed), None)
        lines = getattr(statement, "leading_lines", ())
        if following is not None and any(line.comment for line in lines):
            self.change(following, lambda updated: led(updated, lines))
        self.change(statement, lambda _: cst.RemoveFromParent())

    def _siblings(self, statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
        body = getattr(self.program.parents.get(statement), "body", ())
        return body if isinstance(body, list | tuple) else ()


class _Writer(cst.CSTTransformer):
    def __init__(self, changes: Mapping[cst.CSTNode, Sequence[Change]]) -> None:
        super().__init__()
        self._changes = changes

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        for change in self._changes.get(original_node, ()):
            if updated_node is not cst.RemovalSentinel.REMOVE:
                updated_node = change(updated_node)
        return updated_node


def _entered(settings: cst.CSTNode, name: str, text: str) -> str:
    """Settings with another value for an entry."""
    return f'{{**{cst.Module([]).code_for_node(settings)}, "{name}": {text}}}'


def _last_name(text: str) -> str:
    """The last name or key in an expression: "lr" of `float(args.lr)`."""
    return next(iter(re.findall(r"[A-Za-z_][\w-]*", text)[::-1]), "")


def _is_module(full: str) -> bool:
    return full.rpartition(".")[2].islower() and full in ("keras", "torch", "torch.nn.functional")


def _imports_something(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and any(
        isinstance(x, cst.Import | cst.ImportFrom) for x in node.body
    )


def _imports(node: cst.CSTNode, package: str) -> bool:
    code = cst.Module(body=[]).code_for_node(node).strip()
    return code.startswith((f"import {package}", f"from {package}"))


# A hyperparameter with the way to write another value for it.

Write = Callable[[Rewriting, str], None]
"""Writes a value into a rewriting. Raises NotApplicable."""


@dataclass(frozen=True)
class HyperparameterPlace:
    """Where a hyperparameter stands. Places of one `group` are written together."""

    hyperparameter: Hyperparameter
    write: Write
    group: object = None


def make_place(
    kind: HyperparameterKind,
    value: str,
    line: int,
    write: Write,
    *,
    layer: int | None = None,
    bounds: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    group: object = None,
) -> HyperparameterPlace:
    """One that has the plain id of its kind and layer. `line` is in the whole text."""
    low, high = bounds or (None, None)
    name = kind if layer is None else f"{kind}({layer})"
    hyperparameter = Hyperparameter(
        id=name, kind=kind, value=value, line=line, layer=layer, low=low, high=high,
        choices=choices,
    )  # fmt: skip
    return HyperparameterPlace(hyperparameter, write, group)


def number_places(places: Iterable[HyperparameterPlace]) -> tuple[HyperparameterPlace, ...]:
    """Places with ids of their own: the second of a name is its "#2"."""
    counts: Counter[str] = Counter()
    result: list[HyperparameterPlace] = []
    for place in places:
        counts[place.hyperparameter.id] += 1
        count = counts[place.hyperparameter.id]
        hyperparameter = place.hyperparameter
        if count > 1:
            hyperparameter = hyperparameter.model_copy(
                update={"id": f"{hyperparameter.id}#{count}"}
            )
        result.append(replace(place, hyperparameter=hyperparameter))
    return tuple(result)
