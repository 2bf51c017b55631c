"""What the metric of a program is computed from: the statements and the values that an edit may
not touch if the metric is to prove anything.

A backward walk from the places that print the metric, over the definitions that reach each use. It
ends at what is trained: a model may be built and trained in another way, but what it is measured
with stays. Where it cannot tell, it finds too much.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bot.kernel.source.syntax import dotted, name_of, root_name

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor | ast.While
Path = tuple[tuple[int, str], ...]

_PRINTING = frozenset((
    "print", "write", "writelines", "info", "debug", "warning", "error", "critical", "echo",
    "display", "pprint", "set_postfix", "set_postfix_str", "set_description", "add_scalar",
    "log_metrics", "log_metric", "log_dict",
))  # fmt: skip
_LOGGERS = frozenset(("self", "logger", "logging", "wandb", "run", "mlflow", "writer", "pl_module"))
_TRAINED_BY = frozenset((
    "parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval", "zero_grad",
    "compile", "fit", "train_on_batch", "requires_grad_", "get_weights", "set_weights",
    "trainable_variables", "trainable_weights",
))  # fmt: skip
_UPDATES = frozenset(("apply_updates", "apply_gradients", "incremental_update"))
_MODEL_BASES = frozenset(("Module", "Model", "Layer", "LightningModule", "Sequential", "Optimizer"))
_TRAINS = frozenset((
    "backward", "step", "zero_grad", "fit", "train_on_batch", "apply_gradients", "gradient",
    "grad", "value_and_grad", "minimize",
))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement, of a compound one its head, with what it reads and binds. `path` are the blocks
    around it within its function; `function` is None outside of any.
    """

    file: str
    node: ast.stmt
    at: int
    path: Path
    function: Function | None
    owner: str
    reads: frozenset[str]
    binds: frozenset[str]
    changes: frozenset[str]

    @property
    def values(self) -> frozenset[str]:
        """The names that it reads, and the entries of them that it names: `parts[1]`, `data.x`."""
        entries = (_entry(x) for x in _own_nodes(self.node))
        return self.reads | {entry for entry in entries if entry}

    @property
    def lines(self) -> range:
        """Those of the statement, of a compound one those of its head."""
        body: list[ast.AST] = getattr(self.node, "body", None) or []
        inner = next((x for x in body if isinstance(x, ast.stmt)), None)
        last = self.node.end_lineno if inner is None else inner.lineno - 1
        return range(self.node.lineno, max(last or 0, self.node.lineno) + 1)


@dataclass
class Measured:
    """The slice: its statements, and the definitions of the values that flow into the metric."""

    statements: set[Statement] = field(default_factory=set)
    definitions: set[tuple[str, Statement]] = field(default_factory=set)
    functions: set[Statement] = field(default_factory=set)

    @property
    def keys(self) -> set[tuple[str, str]]:
        """The definitions as they can be found in another text of the program."""
        return {(name, ast.dump(one.node)) for name, one in self.definitions}

    def line(self, file: str, lines: Iterable[int]) -> int:
        """The first of some lines of a file that the metric is computed in; 0 for none."""
        rows = (x for x in self.statements if x.file == file and not _sets_up(x.node))
        own = {line for one in rows for line in one.lines}
        return min(own.intersection(lines), default=0)


_Row = tuple[Statement, Iterable[str], Iterable[str]]
"""A statement, and of it the names and the calls to follow."""


def _sets_up(node: ast.stmt) -> bool:
    """Whether a statement is a call of `compile` or `fit`: some of its arguments judge, others
    train.
    """
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and name_of(value.func) in ("compile", "fit")


def judging_arguments(tree: ast.AST, *, is_loss: bool) -> list[str]:
    """What `compile` and `fit` are given that a metric is computed by."""
    names = {"metrics", "weighted_metrics", "callbacks", *(("loss",) if is_loss else ())}
    return [
        ast.dump(word)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and name_of(call.func) in ("compile", "fit")
        for word in call.keywords
        if word.arg in names or _validates(word)
    ]


def is_output(call: ast.AST) -> bool:
    """Whether a call prints or logs."""
    if not isinstance(call, ast.Call):
        return False
    name = name_of(call.func)
    return name in _PRINTING or (name == "log" and root_name(call.func) in _LOGGERS)


@dataclass(eq=False)
class Slicer:
    """The statements of a program's files, and the walks over them."""

    trees: Mapping[str, ast.Module]
    limit: Slicer | None = None
    """The program before an edit: what is no model there is none afterwards."""
    statements: list[Statement] = field(default_factory=list)
    _outer: dict[int, Function | None] = field(default_factory=dict)
    _deciding: dict[int, list[Statement]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for file, tree in self.trees.items():
            self._add(file, tree.body, (), None, "")

    def _add(
        self, file: str, body: list[ast.stmt], path: Path, function: Function | None, owner: str
    ) -> None:
        for node in body:
            inner = (*path, (id(node), "body"))
            is_loop = isinstance(node, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith)
            reads, binds, changes = _uses(node)
            self.statements.append(
                Statement(
                    file, node, len(self.statements), inner if is_loop else path, function, owner,
                    reads, binds, changes,
                )
            )  # fmt: skip
            if isinstance(node, Function):
                self._outer[id(node)] = function
                self._add(file, node.body, (), node, owner)
            elif isinstance(node, ast.ClassDef):
                self._add(file, node.body, path, function, node.name)
            else:
                for block in ("body", "orelse", "finalbody"):
                    self._add(
                        file, getattr(node, block, []), (*path, (id(node), block)), function, owner
                    )
                for handler in getattr(node, "handlers", ()):
                    self._add(file, handler.body, (*path, (id(handler), "body")), function, owner)
                for case in getattr(node, "cases", ()):
                    self._add(file, case.body, (*path, (id(case), "body")), function, owner)

    @cached_property
    def _scopes(self) -> Mapping[tuple[int, str], list[Statement]]:
        """The definitions of a name in a function (by its id, 0 outside); attributes of `self`
        belong to all functions.
        """
        scopes: dict[tuple[int, str], list[Statement]] = defaultdict(list)
        imported = {
            name for one in self.statements if isinstance(one.node, ast.Import | ast.ImportFrom)
            for name in one.binds
        }  # fmt: skip
        for one in self.statements:
            for name in one.binds | (one.changes - imported):
                scopes[_scope(one.function, name), name].append(one)
        return scopes

    @cached_property
    def _functions(self) -> Mapping[str, list[Statement]]:
        functions: dict[str, list[Statement]] = defaultdict(list)
        for one in self.statements:
            if isinstance(one.node, Function):
                functions[one.node.name].append(one)
        return functions

    @cached_property
    def _methods(self) -> Mapping[str, list[Statement]]:
        methods: dict[str, list[Statement]] = defaultdict(list)
        for one in self.statements:
            if isinstance(one.node, Function):
                methods[one.owner].append(one)
        return methods

    @cached_property
    def _bodies(self) -> Mapping[int, list[Statement]]:
        """The statements of each function, by its id."""
        bodies: dict[int, list[Statement]] = defaultdict(list)
        for one in self.statements:
            if one.function is not None:
                bodies[id(one.function)].append(one)
        return bodies

    @cached_property
    def _arguments(self) -> Mapping[str, list[tuple[str, Function | None]]]:
        """The names that functions are called with, each with the function around the call."""
        arguments: dict[str, list[tuple[str, Function | None]]] = defaultdict(list)
        for one in self.statements:
            for call in _calls(one.node):
                names = filter(None, map(_spelled, call.args))
                arguments[name_of(call.func)] += [(name, one.function) for name in names]
        return arguments

    @cached_property
    def _model_classes(self) -> frozenset[str]:
        classes = [one.node for one in self.statements if isinstance(one.node, ast.ClassDef)]
        names, new = set[str](), {""}
        while new:
            new = {
                one.name for one in classes
                if any(name_of(base) in _MODEL_BASES | names for base in one.bases)
                and not any("loss" in x.lower() for x in (one.name, *map(name_of, one.bases)))
            } - names  # fmt: skip
            names |= new
        return frozenset(names)

    @cached_property
    def _training_functions(self) -> frozenset[str]:
        """Functions that train, themselves or by others of the program."""
        names, new = set[str](), {""}
        while new:
            new = {
                name for name, functions in self._functions.items()
                for one in functions
                if any(isinstance(x, ast.Call) and name_of(x.func) in _TRAINS | names
                       for x in ast.walk(one.node))
            } - names  # fmt: skip
            names |= new
        return frozenset(names)

    @cached_property
    def _updating(self) -> frozenset[str]:
        """Functions that train, and what is made of them: `step = jax.jit(update)`."""
        names, new = set(self._training_functions), {""}
        while new:
            new = {
                name for one in self.statements if isinstance(one.node, ast.Assign)
                and isinstance(one.node.value, ast.Call | ast.Name) and one.reads & names
                and len(one.binds) == 1 and _wraps(one.node.value, names)
                for name in one.binds
            } - names  # fmt: skip
            names |= new
        return frozenset(names)

    @cached_property
    def _parts(self) -> frozenset[int]:
        """Functions that the loss is computed by and that use what is trained: parts of the model,
        be they methods or plain functions. Those that are differentiated themselves are none: what
        they return may be the metric too.
        """
        if self.limit is not None:
            keys = {self.limit._function_keys[x] for x in self.limit._parts}
            return frozenset(x for x, key in self._function_keys.items() if key in keys)
        differentiated = {name for rows in self._losses() for name in rows}
        entered = self.training.functions
        return frozenset(
            id(one.node) for one in entered
            if isinstance(one.node, Function)
            and one.node.name not in differentiated | self._training_functions
            and (one.owner in self._model_classes or self._uses_trained(one.node))
        )  # fmt: skip

    @cached_property
    def training(self) -> Measured:
        """What the loss is computed from, and what `fit` is given."""
        differentiated = {name for rows in self._losses() for name in rows}
        rows = [
            one for one in self.statements
            if isinstance(one.node, ast.Return) and one.function is not None
            and (one.function.name in differentiated or self._is_forward(one))
        ]  # fmt: skip
        waiting = [self._row(one) for one in rows]
        for one in self.statements:
            for call in _calls(one.node):
                if name_of(call.func) == "backward" and isinstance(call.func, ast.Attribute):
                    waiting.append(_of_nodes(one, [call.func.value]))
                elif name_of(call.func) in ("fit", "train_on_batch"):
                    own = [x.value for x in call.keywords if not _validates(x)]
                    waiting.append(_of_nodes(one, [*call.args, *own]))
        return self._walk(waiting, frozenset())

    def values_behind(self, one: Statement, name: str) -> Measured:
        """What a name that a statement reads is computed from."""
        return self._walk([(one, [name], [])], self._parts)

    def _is_forward(self, one: Statement) -> bool:
        name = one.function.name if one.function is not None else ""
        return one.owner in self._model_classes and name in ("forward", "call", "__call__")

    def _uses_trained(self, function: Function) -> bool:
        parameters = _parameters(function)
        if any(
            isinstance(x, ast.Name) and x.id not in parameters and self.is_trained(x.id, function)
            for x in ast.walk(function)
        ):
            return True
        return any(self.is_trained(*row) for row in self._arguments.get(function.name, ()))

    def _losses(self) -> Iterator[list[str]]:
        """The names of functions that gradients are taken of."""
        for one in self.statements:
            for call in _calls(one.node):
                if name_of(call.func) in ("grad", "value_and_grad"):
                    yield [name_of(x) for x in call.args[:1]]

    def is_trained(self, name: str, function: Function | None) -> bool:
        """Whether a name holds a model, its parameters or what trains it."""
        own = (_scope(function, name), name)
        if own in self._trained or own[0] == 0:
            return own in self._trained
        is_local = own in self._scopes or (function is not None and name in _parameters(function))
        return not is_local and (0, name) in self._trained

    @cached_property
    def _trained(self) -> frozenset[tuple[int, str]]:
        names = set[tuple[int, str]]()
        for one in self.statements:
            for node in _own_nodes(one.node):
                for name in self._trained_in(node):
                    names.add((_scope(one.function, name), name))
        names.discard((0, ""))
        new = names
        while new:  # what a function trains is trained where it comes from, and where it goes
            new = {outer for outer, inner in self._same_values if inner in names} - names
            names |= new
        callers = defaultdict[tuple[int, str], set[tuple[int, str]]](set)
        for outer, inner in self._same_values:
            callers[inner].add(outer)
        names |= {inner for inner, outers in callers.items() if outers <= names}
        return frozenset(x for x in names if self.limit is None or self._key(x) in self._limits)

    @cached_property
    def _limits(self) -> frozenset[tuple[str, str]]:
        limit = self.limit
        return frozenset(map(limit._key, limit._trained)) if limit is not None else frozenset()

    def _key(self, name: tuple[int, str]) -> tuple[str, str]:
        """A name in its function as it can be found in another text of the program."""
        return self._function_keys.get(name[0], ""), name[1]

    @cached_property
    def _function_keys(self) -> Mapping[int, str]:
        rows = (one for one in self.statements if isinstance(one.node, Function))
        return {id(one.node): _function_key(one) for one in rows}

    @cached_property
    def _same_values(self) -> list[tuple[tuple[int, str], tuple[int, str]]]:
        """Names that hold one value, where a function is called and in it: an argument and its
        parameter, what a call is assigned to and what is returned.
        """
        pairs: list[tuple[tuple[int, str], tuple[int, str]]] = []
        for one in self.statements:
            for call in _calls(one.node):
                for function in self._functions.get(name_of(call.func), ()):
                    pairs += self._same_in(one, call, function.node)
        return pairs

    def _same_in(
        self, one: Statement, call: ast.Call, function: ast.stmt
    ) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
        assert isinstance(function, Function)
        parameters = [x for x in _ordered_parameters(function) if x not in ("self", "cls")]
        rows: list[tuple[Sequence[ast.AST], list[str]]] = [(call.args, parameters)]
        if isinstance(one.node, ast.Assign) and one.node.value is call:
            targets = list(_elements(one.node.targets[0]))
            rows += [(targets, row) for row in self._returned_names(function)
                     if len(row) == len(targets)]  # fmt: skip
        for nodes, names in rows:
            for node, inner in zip(nodes, names, strict=False):
                if inner and (outer := _spelled(node)):
                    yield (_scope(one.function, outer), outer), (_scope(function, inner), inner)

    def _returned_names(self, function: Function) -> Iterator[list[str]]:
        for one in self._bodies.get(id(function), ()):
            if isinstance(one.node, ast.Return) and one.node.value:
                yield [_spelled(x) for x in _elements(one.node.value)]

    def _trained_in(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Attribute) and node.attr in _TRAINED_BY:
            yield _spelled(node.value)
        if not isinstance(node, ast.Assign | ast.AugAssign):
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        own = {_spelled(x) for target in targets for x in _elements(target)} - {""}
        value = node.value
        if isinstance(value, ast.Call):
            if name_of(value.func) in self._model_classes:
                yield from own
            names = {_spelled(x) for x in ast.walk(value)} | {name_of(value.func)}
            if names & (self._updating | _UPDATES):
                arguments = (*value.args, *(word.value for word in value.keywords))
                yield from own & {_spelled(x) for one in arguments for x in _elements(one)}
        if any(_is_gradient(x) for x in ast.walk(value)):
            yield from own

    def definitions(self, one: Statement, name: str) -> list[Statement]:
        """The definitions of a name that reach its use in a statement."""
        rows = self._scopes.get((_scope(one.function, name), name), [])
        if name.startswith("self."):
            return rows
        if rows:
            return _reaching(rows, one, name)
        function = one.function
        while function is not None and not rows and name not in _parameters(function):
            function = self._outer.get(id(function))
            rows = self._scopes.get((_scope(function, name), name), [])
        return rows

    def measured(self, metric: str, source: str = "output", *, is_loss: bool = False) -> Measured:
        """What a metric is computed from, by its name and where it is read; the loss too where
        that is what is compared.
        """
        return self._walk(list(self._sinks(metric, source, is_loss=is_loss)), self._parts)

    def _walk(self, waiting: list[_Row], parts: frozenset[int]) -> Measured:
        """All that flows into some expressions, but for what is trained and the `parts` of it."""
        measured = Measured()
        entered = set[tuple[str, int]]()
        while waiting:
            one, names, calls = waiting.pop()
            if one not in measured.statements:
                waiting += map(self._row, self._heads(one))
            measured.statements.add(one)
            for name in names:
                if (name, one.at) not in entered and not self.is_trained(name, one.function):
                    entered.add((name, one.at))
                    waiting += self._defined(one, name, measured)
            for called in calls:
                for function in self._called(called):
                    if function not in measured.functions and id(function.node) not in parts:
                        measured.functions.add(function)
                        waiting += self._returned(function)
        return measured

    def _defined(self, one: Statement, name: str, measured: Measured) -> Iterator[_Row]:
        for definition in self.definitions(one, name):
            measured.definitions.add((name, definition))
            if isinstance(definition.node, Function):
                measured.statements.add(definition)
            elif not isinstance(definition.node, ast.ClassDef):
                yield self._row(definition)

    def _heads(self, one: Statement) -> Iterator[Statement]:
        """The heads of the blocks around a statement that decide whether and how often it runs, and
        of those that leave such a loop early; none for what trains.
        """
        for key, _ in one.path:
            if key not in self._deciding:
                self._deciding[key] = list(self._heads_at(key))
            yield from self._deciding[key]

    def _heads_at(self, key: int) -> Iterator[Statement]:
        head = self._by_node.get(key)
        if head is None or not isinstance(head.node, ast.If | _Loop) or self._trains(head.node):
            return
        yield head
        if isinstance(head.node, _Loop):
            yield from self._leaving(head)

    def _leaving(self, loop: Statement) -> Iterator[Statement]:
        for one in self.statements:
            if isinstance(one.node, ast.Break | ast.Continue):
                around = [key for key, _ in one.path]
                if id(loop.node) in around:
                    inner = around[around.index(id(loop.node)) + 1 :]
                    rows = [self._by_node[key] for key in inner if key in self._by_node]
                    yield from (x for x in rows if isinstance(x.node, ast.If))

    def _trains(self, node: ast.AST) -> bool:
        names = _TRAINS | self._training_functions
        return any(isinstance(x, ast.Call) and name_of(x.func) in names for x in ast.walk(node))

    @cached_property
    def _by_node(self) -> Mapping[int, Statement]:
        return {id(one.node): one for one in self.statements}

    def _row(self, one: Statement) -> _Row:
        own = [
            word.value for call in _calls(one.node) if name_of(call.func) == "fit"
            for word in call.keywords if _validates(word)
        ]  # fmt: skip
        return _of_nodes(one, own or list(_heads_of(one.node)))

    def _called(self, name: str) -> list[Statement]:
        """The functions of a name, and the methods of a class that is no model."""
        own = self._methods.get(name, ()) if name and name not in self._model_classes else ()
        return [*self._functions.get(name, ()), *own]

    def _returned(self, function: Statement) -> Iterator[_Row]:
        for one in self._bodies.get(id(function.node), ()):
            if _gives(one.node):
                yield self._row(one)

    def _sinks(self, metric: str, source: str, *, is_loss: bool) -> Iterator[_Row]:
        rows = list(self._printing(metric)) if source == "output" else []
        for one in self.statements:
            for call in _calls(one.node):
                if parts := _compared(call, metric, source, is_loss=is_loss):
                    rows.append((one, parts))
        for one, parts in rows:
            yield _of_nodes(one, parts)
        if is_loss:
            names = {name for rows in self._losses() for name in rows}
            for function in (x for name in names for x in self._functions.get(name, ())):
                yield from self._returned(function)

    def _printing(self, metric: str) -> list[tuple[Statement, list[ast.AST]]]:
        """Where the metric is printed; where no text tells, all that is."""
        outputs = [
            (one, call) for one in self.statements for call in _calls(one.node) if is_output(call)
        ]
        rows = [(one, parts) for one, call in outputs if (parts := _printed(call, metric))]
        return rows or [(one, [*call.args, *(x.value for x in call.keywords)])
                        for one, call in outputs]  # fmt: skip


def _validates(word: ast.keyword) -> bool:
    return (word.arg or "").startswith("validat")


def _compared(call: ast.Call, metric: str, source: str, *, is_loss: bool) -> list[ast.AST]:
    """What a call is given that the metric is computed by, or the loss where that is compared."""
    words: dict[str, ast.AST] = {word.arg or "": word.value for word in call.keywords}
    match name_of(call.func):
        case "compile":
            names = ("metrics", "weighted_metrics", *(("loss",) if is_loss else ()))
            return [words[name] for name in names if name in words]
        case "fit" if source == "epochs":
            own = [value for name, value in words.items() if name.startswith("validat")]
            return own if metric.startswith("val") else [*call.args, *words.values()]
        case "backward" if is_loss and isinstance(call.func, ast.Attribute):
            return [call.func.value]
    return []


def _reaching(rows: list[Statement], one: Statement, name: str) -> list[Statement]:
    """Of the definitions in one function those that a use may see."""
    before = [
        x for x in rows
        if name in x.binds and x.at < one.at and x.path == one.path[: len(x.path)]
    ]  # fmt: skip
    if not before:
        return [x for x in rows if x is not one or name in x.changes]
    last = before[-1]
    carrying = {key for key in one.path if key not in last.path and key[1] == "body"}
    return [
        x for x in rows
        if x is last or last.at < x.at < one.at or (x.at >= one.at and carrying & set(x.path))
    ]  # fmt: skip


def _function_key(one: Statement) -> str:
    return f"{one.file}:{one.owner}.{getattr(one.node, 'name', '')}"


def _wraps(value: ast.AST, names: set[str]) -> bool:
    """Whether an expression is a function of these names, perhaps compiled."""
    functions = value.args[:1] if isinstance(value, ast.Call) else [value]
    return any(_spelled(x) in names for x in functions)


def _scope(function: Function | None, name: str) -> int:
    return 0 if function is None or name.startswith("self.") else id(function)


def _parameters(function: Function) -> set[str]:
    arguments = function.args
    more = (*arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    return {*_ordered_parameters(function), *(x.arg for x in more if x is not None)}


def _ordered_parameters(function: Function) -> list[str]:
    return [x.arg for x in (*function.args.posonlyargs, *function.args.args)]


def _gives(node: ast.stmt) -> bool:
    """Whether a statement gives a value of its function to the caller."""
    yields = (isinstance(x, ast.Yield | ast.YieldFrom) for x in _own_nodes(node))
    return isinstance(node, ast.Return) or any(yields)


def _of_nodes(one: Statement, parts: Iterable[ast.AST]) -> _Row:
    nodes = [x for part in parts for x in ast.walk(part)]
    names = {_spelled(x) for x in nodes} - {""}
    called = {name_of(x.func) for x in nodes if isinstance(x, ast.Call)}
    return one, names & one.reads, called | names


def _is_gradient(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "grad") or (
        isinstance(node, ast.Name) and node.id.startswith("grad")
    )


def _spelled(node: ast.AST) -> str:
    """A name, or an attribute of `self` with it; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return dotted(node) if is_own and root_name(node) == "self" else ""


def _entry(node: ast.AST) -> str:
    """An entry of a name under a constant, or an attribute of it: "parts[1]"."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        name, key = _spelled(node.value), repr(node.slice.value)
    elif isinstance(node, ast.Attribute) and not _spelled(node):
        name, key = _spelled(node.value), node.attr
    else:
        return ""
    return f"{name}[{key}]" if name and isinstance(node.ctx, ast.Load) else ""


def _elements(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from _elements(element)
    elif isinstance(node, ast.Starred):
        yield from _elements(node.value)
    else:
        yield node


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, of a compound one those of its head."""
    yield node
    for part in _heads_of(node):
        yield from ast.walk(part)


def _heads_of(node: ast.AST) -> Iterator[ast.AST]:
    """What a statement consists of, without the statements in it."""
    for name, value in ast.iter_fields(node):
        if name in ("body", "orelse", "finalbody", "handlers", "cases") and isinstance(value, list):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def _free(node: ast.AST, bound: frozenset[str]) -> Iterator[ast.AST]:
    """The nodes in another but for the names that a comprehension or a lambda in it binds."""
    if isinstance(node, ast.Name) and node.id in bound:
        return
    if isinstance(node, ast.Lambda):
        bound |= {x.arg for x in ast.walk(node.args) if isinstance(x, ast.arg)}
    elif isinstance(node, _Comprehension):
        targets = (x for part in node.generators for x in ast.walk(part.target))
        bound |= {x.id for x in targets if isinstance(x, ast.Name)}
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _free(child, bound)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (x for x in _own_nodes(node) if isinstance(x, ast.Call))


def _uses(node: ast.stmt) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What a statement reads, binds, and changes in place."""
    reads, binds, changes = set[str](), set[str](), set[str]()
    for part in (x for head in _heads_of(node) for x in _free(head, frozenset())):
        name = _spelled(part)
        context = getattr(part, "ctx", None)
        if name and isinstance(context, ast.Load):
            reads.add(name)
        elif name:
            binds.add(name)
        elif isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(context, ast.Load):
            changes.add(_base(part))
        elif isinstance(part, ast.alias):
            binds.add((part.asname or part.name).partition(".")[0])
    if isinstance(node, Function | ast.ClassDef):
        binds.add(node.name)
    if isinstance(node, ast.AugAssign):
        target = _spelled(node.target)
        binds.discard(target)
        changes.add(target)
        reads.add(target)
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and not is_output(node.value)
    ):
        call = node.value
        receiver = _base(call.func) if isinstance(call.func, ast.Attribute) else ""
        changes |= {receiver, *(_base(x) for x in call.args)}
    return frozenset(reads), frozenset(binds - {""}), frozenset(changes - {""})


def _base(node: ast.AST) -> str:
    """The name that a chain of attributes and entries begins with."""
    while not (name := _spelled(node)):
        if not isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            return ""
        node = node.value
    return name


def _printed(call: ast.Call, metric: str) -> list[ast.AST]:
    """The expressions whose values a call prints beside the name of the metric."""
    name, pieces = metric.lower().replace("_", " "), list(_pieces(call))
    parts: list[ast.AST] = []
    for at, piece in enumerate(pieces):
        if isinstance(piece, str) and name in piece.lower().replace("_", " "):
            rest = [x for x in pieces[at + 1 :] if not isinstance(x, str)]
            is_template = _PERCENT.search(piece) or _BRACES.search(piece)
            parts = rest if is_template else rest[:1]  # the last number of a line counts
    return parts


def _pieces(call: ast.Call) -> Iterator[str | ast.AST]:
    """The texts and expressions of an output in their order."""
    for argument in call.args:
        yield from _pieces_of(argument)
    for word in call.keywords:
        if word.arg not in ("sep", "end", "file", "flush"):
            yield from (word.arg or "", word.value)


def _pieces_of(node: ast.expr) -> Iterator[str | ast.AST]:
    match node:
        case ast.JoinedStr(values=values):
            for value in values:
                yield value.value if isinstance(value, ast.FormattedValue) else _text(value)
        case ast.Constant(value=str(text)):
            yield text
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                yield from (_text(key), value)
        case _ if filled := _filled(node):
            yield from filled
        case _:
            yield " ".join(filter(None, map(_text, ast.walk(node))))
            yield node


def _text(node: ast.AST | None) -> str:
    value = node.value if isinstance(node, ast.Constant) else ""
    return value if isinstance(value, str) else ""


_PERCENT, _BRACES = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]"), re.compile(r"\{(?::[^{}]*)?\}")


def _filled(node: ast.AST) -> list[str | ast.AST]:
    """The texts and the expressions of a template that is filled in by position, else none."""
    values: list[ast.expr] = []
    template, pattern = None, _PERCENT
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        template = node.left
        values = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    elif isinstance(node, ast.Call) and name_of(node.func) == "format" and not node.keywords:
        template = node.func.value if isinstance(node.func, ast.Attribute) else None
        values, pattern = node.args, _BRACES
    text = template.value if isinstance(template, ast.Constant) else None
    if not isinstance(text, str) or len(pattern.findall(text)) != len(values):
        return []
    pairs = zip(pattern.split(text), [*values, None], strict=True)
    return [piece for pair in pairs for piece in pair if piece is not None]
