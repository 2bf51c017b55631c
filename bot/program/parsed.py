"""A parsed program: its calls with the full names of what they call, its assignments, loops and
lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from bot.kernel.source import syntax
from bot.program.modules import LONGEST, JoinedText, ProgramFile, join
from bot.program.text import Imports, dotted, imports_of, spell

# A parsed program: its calls with the full names of what they call, its assignments, its lines.

_Node = TypeVar("_Node", bound=cst.CSTNode)
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(frozen=True, eq=False)
class ProgramTree:
    """`nodes` are in the order of the text; `spans` says which each one holds, `kinds` which
    are of a class. `values` has what is assigned anywhere to a name, an attribute or an entry.
    The text begins with the program's own modules, and `joined` tells where. `observed` has what a
    run told of the `uses` that the rules asked for, by their keys: each value once. `stand_ins` are
    no part of the text: the use for which each stands, and which entry of it.
    """

    module: cst.Module
    lines: dict[cst.CSTNode, int]
    parents: dict[cst.CSTNode, cst.CSTNode]
    nodes: tuple[cst.CSTNode, ...]
    spans: dict[cst.CSTNode, tuple[int, int]]
    kinds: dict[type[cst.CSTNode], list[cst.CSTNode]]
    imports: Imports
    calls: tuple[cst.Call, ...] = ()
    values: dict[str, list[cst.BaseExpression]] = field(default_factory=dict)
    observed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    uses: set[cst.CSTNode] = field(default_factory=set)
    stand_ins: dict[cst.CSTNode, tuple[cst.BaseExpression, str]] = field(default_factory=dict)
    joined: JoinedText = field(default_factory=lambda: join("", ()))

    def where(self, node: cst.CSTNode) -> str:
        """The file of a node of the text, "" for the program's own."""
        return self.joined.located(self.lines.get(node, 0))[0]

    @cached_property
    def _calls(self) -> dict[str, list[cst.Call]]:
        by_name: dict[str, list[cst.Call]] = defaultdict(list)
        for call in self.calls:
            func = call.func
            name = func.attr.value if isinstance(func, cst.Attribute) else dotted(func)
            by_name[name].append(call)
        return by_name

    def called_as(self, name: str) -> list[cst.Call]:
        """The calls of what has this name, or of a method that has it."""
        return self._calls.get(name, []) if name else []

    def use(self, node: cst.CSTNode) -> tuple[cst.CSTNode, str]:
        """The node of the text that one is or stands for, and the entry of it or ""."""
        return self.stand_ins.get(node, (node, ""))

    def key(self, node: cst.CSTNode) -> str:
        """What a use is called in `observed`: the number of names before it, which stays when a
        literal changes, its class, and the entry of it.
        """
        owner, name = self.use(node)
        key = f"{self._names_before[owner]}{type(owner).__name__}"
        return f"{key}:{name}" if name else key

    @cached_property
    def _names_before(self) -> dict[cst.CSTNode, int]:
        names = accumulate((isinstance(node, cst.Name) for node in self.nodes), initial=0)
        return dict(zip(self.nodes, names, strict=False))

    def observe(self, node: cst.CSTNode) -> str:
        """The one value that a run told of a use; "" for none."""
        self.uses.add(self.use(node)[0])
        observations = self.observed.get(self.key(node), ())
        return observations[0] if len(observations) == 1 else ""

    def stand_in(
        self, node: cst.BaseExpression, name: str, stand_in_node: cst.BaseExpression
    ) -> cst.BaseExpression:
        """A node for a use whose own form does not show what it is; for each use the same."""
        earlier = next(
            (x for x, use in self.stand_ins.items() if use == (node, name)), stand_in_node
        )
        self.stand_ins[earlier] = node, name
        return earlier if isinstance(earlier, cst.BaseExpression) else stand_in_node

    def entry(self, node: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
        """The entry of settings that a call unpacks, where a run told that they have it."""
        self.observe(node)
        if f"{self.key(node)}:{name}" not in self.observed:
            return None
        return self.stand_in(node, name, cst.Name("entry"))

    def name(self, node: cst.CSTNode) -> str:
        """The full name of what an expression names, "keras.layers.Dense"; "" for none."""
        return self.imports_of(self.where(node)).full(dotted(node))

    def imports_of(self, file: str) -> Imports:
        """The imports of one file, "" for the program's own."""
        if len(self.joined.names) == 1:
            return self.imports
        return self._imports[file]

    @cached_property
    def _imports(self) -> dict[str, Imports]:
        by_file: dict[str, list[cst.CSTNode]] = {name: [] for name in self.joined.names}
        for node in (*self.of(cst.Import), *self.of(cst.ImportFrom)):
            by_file[self.where(node)].append(node)
        return {name: imports_of(nodes) for name, nodes in by_file.items()}

    def called(self, call: cst.Call) -> str:
        """The full name of what is called, or of a method, ".fit"."""
        full = self.name(call.func)
        if full and (full.startswith(("torch.", "keras.")) or "." not in full):
            return full
        return f".{call.func.attr.value}" if isinstance(call.func, cst.Attribute) else full

    def method(self, name: str) -> Iterator[cst.Call]:
        """The calls of a method of this name on anything."""
        for call in self.calls:
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == name:
                yield call

    def of(self, kind: type[_Node]) -> Iterator[_Node]:
        """Every node of a class."""
        return (node for node in self.kinds.get(kind, ()) if isinstance(node, kind))

    def inside(self, outer: cst.CSTNode) -> list[cst.CSTNode]:
        """All nodes in another, in the order of the text."""
        start, end = self.spans.get(outer, (0, 0))
        return list(self.nodes[start + 1 : end])

    def within(self, outer: cst.CSTNode, kind: type[_Node]) -> list[_Node]:
        """The nodes of a kind in another, in the order of the text."""
        return [x for x in self.inside(outer) if isinstance(x, kind)]

    def above(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """A node and all that hold it, inside out."""
        parent: cst.CSTNode | None = node
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def around(self, node: cst.CSTNode, *kinds: type[cst.CSTNode]) -> cst.CSTNode | None:
        """The innermost node of some kinds that holds one."""
        return next(
            (x for x in self.above(self.parents.get(node, node)) if isinstance(x, kinds)), None
        )

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement, with its line, that holds a node."""
        kinds = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
        return next((x for x in self.above(node) if isinstance(x, kinds)), node)

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function that a node stands in."""
        function = self.around(node, cst.FunctionDef)
        return function if isinstance(function, cst.FunctionDef) else None

    def line(self, node: cst.CSTNode) -> int:
        """Where a node begins in the whole text, 1-based."""
        return self.lines.get(self.use(node)[0], 0)

    def traced(self, line: int) -> int:
        """A line of the whole text as a trace has it: in the program's own file, 0 elsewhere."""
        file, own = self.joined.located(line)
        return 0 if file else own

    def text(self, node: cst.CSTNode) -> str:
        """A node as it is written."""
        return self.module.code_for_node(node)

    def unused(self, name: str) -> str:
        """A name like the wanted one that the program does not have."""
        names = {node.value for node in self.of(cst.Name)}
        return next(x for x in (name, *(f"{name}_{n}" for n in range(2, 10**4))) if x not in names)


@lru_cache(maxsize=4)
def parse_program(source: str, modules: tuple[ProgramFile, ...] = ()) -> ProgramTree | None:
    """The program with its own modules, without them where all cannot be parsed within the budget;
    None where it cannot be by itself.
    """
    program = _parse(join(source, modules))
    return program or (_parse(join(source, ())) if modules else None)


def _parse(whole: JoinedText) -> ProgramTree | None:
    try:
        return _program(syntax.parse_concrete(whole.text, LONGEST), whole)
    except (SyntaxError, RecursionError):
        return None


def _program(module: cst.Module, whole: JoinedText) -> ProgramTree:
    walk = _Walk()
    module.visit(walk)
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    every = tuple(walk.nodes)
    lines = {node: at.start.line for node, at in positions.items()}
    dead = {
        id(node)
        for block in every
        if isinstance(block, cst.If) and _is_main(block) and whole.located(lines[block])[0]
        for node in every[slice(*walk.spans[block])]
    }
    nodes = tuple(node for node in every if id(node) not in dead) if dead else every
    kinds: dict[type[cst.CSTNode], list[cst.CSTNode]] = defaultdict(list)
    for node in nodes:
        kinds[type(node)].append(node)
    return ProgramTree(
        module=module,
        lines=lines,
        parents=walk.parents,
        nodes=every,
        spans=walk.spans,
        kinds=kinds,
        imports=imports_of(nodes),
        calls=tuple(x for x in nodes if isinstance(x, cst.Call)),
        values=_values(nodes),
        joined=whole,
    )


def _is_main(block: cst.If) -> bool:
    """Whether it is what a module does only as a program of its own."""
    test = block.test
    return isinstance(test, cst.Comparison) and dotted(test.left) == "__name__"


class _Walk(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.nodes: list[cst.CSTNode] = []
        self.spans: dict[cst.CSTNode, tuple[int, int]] = {}
        self._stack: list[cst.CSTNode] = []
        self._starts: list[int] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BaseParenthesizableWhitespace | cst.TrailingWhitespace):
            return False
        if self._stack:
            self.parents[node] = self._stack[-1]
        self.nodes.append(node)
        self._stack.append(node)
        self._starts.append(len(self.nodes) - 1)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if self._stack and self._stack[-1] is original_node:
            self._stack.pop()
            self.spans[original_node] = (self._starts.pop(), len(self.nodes))


def _values(nodes: tuple[cst.CSTNode, ...]) -> dict[str, list[cst.BaseExpression]]:
    by_name: dict[str, list[cst.BaseExpression]] = defaultdict(list)
    for node in nodes:
        for target, value in _assignments(node):
            by_name[spell(target)].append(value)
    by_name.pop("", None)
    return dict(by_name)


def _assignments(node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    if isinstance(node, cst.Assign):
        for target in node.targets:
            yield from _pairs(target.target, node.value)
    elif isinstance(node, cst.AnnAssign) and node.value:
        yield node.target, node.value
    elif isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Subscript):
        yield node.target, node.value  # one more value: which one counts cannot be told


def _pairs(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Each name of a tuple with its own value, otherwise with the whole."""
    if not isinstance(target, cst.Tuple | cst.List):
        yield target, value
        return
    own = value.elements if isinstance(value, cst.Tuple | cst.List) else ()
    for number, element in enumerate(target.elements):
        has_pairs = len(own) == len(target.elements)
        yield from _pairs(element.value, own[number].value if has_pairs else value)


# The loops around a node, also those of the functions that call the one it stands in.

_DEEPEST = 4


def loops_around(
    program: ProgramTree, node: cst.CSTNode, depth: int = 0
) -> Iterator[cst.For | cst.While]:
    """Every loop that repeats a node, inside out."""
    for outer in program.above(program.parents.get(node, node)):
        if isinstance(outer, cst.For | cst.While):
            yield outer
        elif isinstance(outer, cst.FunctionDef):
            if depth < _DEEPEST:
                for call in called_at(program, outer):
                    yield from loops_around(program, call, depth + 1)
            return


def called_at(program: ProgramTree, function: cst.FunctionDef) -> list[cst.Call]:
    """The calls of a function or method by its name, none from within itself."""
    name = function.name.value
    return [
        x
        for x in program.calls
        if dotted(x.func).rpartition(".")[2] == name and program.function(x) is not function
    ]


def function_named(program: ProgramTree, name: str) -> cst.FunctionDef | None:
    """The one function of a name."""
    functions = [x for x in program.of(cst.FunctionDef) if x.name.value == name]
    return functions[0] if len(functions) == 1 else None


def iterated(loop: cst.For) -> cst.BaseExpression:
    """What a loop goes through, without `enumerate`, `tqdm` and their like around it."""
    node = loop.iter
    while isinstance(node, cst.Call) and node.args:
        if dotted(node.func).rpartition(".")[2] not in ("enumerate", "tqdm", "track", "list"):
            break
        node = node.args[0].value
    return node
