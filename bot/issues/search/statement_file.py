"""A file of a repository with one statement of it and what that needs: each line that stays is
where it was.
"""

import ast
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from bot.issues.search.name_errors import (
    ANY,
    DEFINITIONS,
    FUNCTIONS,
    IMPORTS,
    LOOPS,
    NameFailure,
    bound,
    misses,
)
from bot.kernel.source.syntax import bound_names, dotted, loaded_names, name_of, nodes


class SourceFile(NamedTuple):
    """A file of the tree, parsed and by its lines."""

    path: str
    module: ast.Module
    lines: Sequence[str]


class StatementFile:
    """Writes a file with one statement of it and what that needs."""

    def __init__(
        self,
        file: SourceFile,
        definitions: Sequence[ast.AST],
        owners: Sequence[ast.AST],
        statement: ast.stmt,
        core: ast.stmt | ast.expr,
        error: NameFailure,
    ) -> None:
        self.path, self.module, self.lines = file
        self.statement, self.core = statement, core
        self.function = next((one for one in definitions if isinstance(one, FUNCTIONS)), None)
        self.owner = next((one for one in definitions if isinstance(one, ast.ClassDef)), None)
        self.owners = owners
        body = self.module.body
        outer = [node for node in body if node not in owners and node is not statement]
        is_inside = self.function is not None
        self.outer = [one for one in outer if is_inside or one.lineno < statement.lineno]
        self.real = [node for node in self.outer if _is_definition(node)]
        self.bindings, values = dict[int, str](), error.values_at(core, self.path)
        if error.kind == "unbound" and error.parsed is not None and self.function is not None:
            bindings = error.parsed.bindings(self.function, error.name, statement.lineno)
            is_in_loop = any(isinstance(one, LOOPS) for one in owners)
            self.bindings = {} if bindings is None or is_in_loop else bindings
        imported = self.certain()
        self.name = error.name
        self.values = {name: text for name, text in values.items() if name not in imported}
        self.called = error.function if error.kind == "arguments" else ""
        is_at_home = error.home is not None and error.home.path == self.path
        self.home = error.function if is_at_home else ""

    def certain(self) -> set[str]:
        """The names that imports and definitions of the file bind: at its top or, of imports, in
        the function.
        """
        local = [row for row in self._before() if isinstance(row, IMPORTS)]
        names = set().union(*(bound(node) for node in (*self.real, *local)))
        if self.function is not None and self.owner is None:
            names.add(self.function.name)
        if any(row.name == "*" for node in self.real for row in getattr(node, "names", ())):
            # What no line binds comes from there.
            names |= {row.id for row in nodes(self.core, ast.Name)} - bound_names(self.module)
        return names

    def unsure(self, error: NameFailure) -> set[str]:
        """The names that have a value of ours, or whose binding may have been left out."""
        if error.kind == "argument" and error.parsed is not None:
            # What another name is bound to, or that name in another file, may be other arguments.
            others = {name for row in (*self._local(), *self.outer) for name in bound(row)}
            return others - ({error.parsed.name} if self.path == error.parsed.entry else set())
        if error.kind == "forward":
            return self.certain()
        if error.kind == "member":
            is_other = self.owner is not None and self.owner.name != error.function
            return {*self.certain(), *(["self"] if is_other else [])}
        if error.kind == "unbound":
            return set() if self.bindings else {error.name}
        if error.kind == "undefined":
            arguments = {row.arg for row in nodes(self.module, ast.arg)}
            return {*bound_names(self.module), *arguments}
        imports = {
            name for row in self._before() if isinstance(row, IMPORTS) for name in bound(row)
        }
        local = {name for row in self._local() for name in bound(row)} - imports
        real = set().union(*map(bound, self.real))
        dropped = set().union(*(bound(one) for one in self.outer if one not in self.real))
        return local | self._parameters() | (dropped - real)

    def text(self) -> str:
        """The file's text: the other lines are blank."""
        text = [""] * (len(self.lines) + 1)
        needed = {*loaded_names(self.core), *(self.values if self.bindings else ())}
        bases = self._bases()
        needed |= {name for base in bases for name in loaded_names(base)}
        needed |= {self.home} - {"", self.owner.name if self.owner is not None else ""}
        self._write_outer(text, needed - self._parameters() - self._local_names(needed))
        depth = 0
        if self.owner is not None:
            arguments = ", ".join(ast.unparse(base) for base in bases)
            text[self.owner.lineno - 1] = f"class {self.owner.name}({arguments}):"
            depth = 1
        if self.function is not None:
            text[self.function.lineno - 1] = (
                f"{'    ' * depth}def {self.function.name}({self._heads()}):"
            )
            depth += 1
            self._write_local(text, needed, "    " * depth)
            owner = f"{self.owner.name}." if self.owner is not None else ""
            text.append(f"{owner}{self.function.name}({self._arguments()})")
        elif self.owners:
            self._write_local(text, needed, "")
        self._write_statement(text, "    " * depth)
        return "\n".join(text).rstrip() + "\n"

    def _bases(self) -> list[ast.expr]:
        """The bases of the class around a statement, where the error is about its objects."""
        is_own = self.owner is not None and self.owner.name == self.home
        return list(self.owner.bases) if self.owner is not None and is_own else []

    def _write_statement(self, text: list[str], indent: str) -> None:
        node = self.core
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        rows = list(self.lines[first:last])
        if isinstance(node, ast.expr):
            source = ast.get_source_segment("\n".join(self.lines), node) or ast.unparse(node)
            rows = (
                source.split("\n") if len(source.split("\n")) == len(rows) else [ast.unparse(node)]
            )
            rows[0] = f"({rows[0]}" if len(rows) > 1 else rows[0]
            rows[-1] = f"{rows[-1]})" if len(rows) > 1 else rows[-1]
        own = len(rows[0]) - len(rows[0].lstrip())
        for at, row in enumerate(rows):
            plain = row[own:] if not row[:own].strip() else row.lstrip()
            text[first + at] = indent + plain if row.strip() else row

    def _write_outer(self, text: list[str], needed: set[str]) -> None:
        """The file's own imports and definitions that a statement needs, through others as well."""
        selection, waiting = dict[int, ast.stmt](), list(needed)
        always = [node for node in self.outer if _is_always(node)]
        for node in always:
            selection[node.lineno] = node
            waiting += loaded_names(node)
        nodes_by_name = defaultdict[str, list[ast.stmt]](list)
        for node in self.outer:
            for name in bound(node):
                nodes_by_name[name].append(node)
        real, names_met = {id(node) for node in self.real}, set[str]()
        while waiting:
            name = waiting.pop()
            if name in names_met:
                continue
            names_met.add(name)
            for node in nodes_by_name[name]:
                if node.lineno not in selection:
                    selection[node.lineno] = node
                    waiting += self._needs(node) if id(node) in real else []
        for node in selection.values():
            first = min([node.lineno, *(row.lineno for row in getattr(node, "decorator_list", ()))])
            if node in self.real or node in always:
                text[first - 1 : node.end_lineno] = self.lines[first - 1 : node.end_lineno]
            else:
                names = sorted(bound(node) & names_met)
                text[node.lineno - 1] = self._bindings(names)

    def _needs(self, node: ast.stmt) -> list[str]:
        """The names that a statement of the file reads; of a function that does not take the
        arguments of a call, those of its head: its body is not run.
        """
        if not isinstance(node, FUNCTIONS) or node.name != self.called:
            return loaded_names(node)
        return [name for part in (node.args, *node.decorator_list) for name in loaded_names(part)]

    def gives(self, missing: frozenset[str]) -> bool:
        """Whether each call that the statement makes of the function of the error, as the file has
        it, gives it one of the arguments that the error misses, or lacks others.
        """
        functions = [one for one in self.real if isinstance(one, FUNCTIONS)]
        function = next((one for one in functions if one.name == self.called), None)
        calls = [one for one in nodes(self.core, ast.Call) if name_of(one.func) == self.called]
        if function is None or not missing:
            return False
        rows = [misses(call, function) for call in calls]
        return all(row is not None and row != missing for row in rows)

    def _write_local(self, text: list[str], needed: set[str], indent: str) -> None:
        for node in self._before():
            is_needed = isinstance(node, IMPORTS) and bound(node) & needed
            if is_needed or isinstance(node, ast.Global):
                rows = self.lines[node.lineno - 1 : node.end_lineno]
                text[node.lineno - 1 : node.end_lineno] = [indent + row.strip() for row in rows]
        for node in self._local():
            names = sorted(bound(node) & needed - ({self.name} if self.bindings else set()))
            if condition := self.bindings.get(node.lineno):
                text[node.lineno - 1] = f"{indent}if {condition}: {self.name} = {ANY}"
            elif names and not isinstance(node, IMPORTS) and not text[node.lineno - 1]:
                text[node.lineno - 1] = indent + self._bindings(names)
                needed = needed - {*names}

    def _bindings(self, names: Sequence[str]) -> str:
        """What gives names their values, on one line."""
        rest = [name for name in names if name not in self.values]
        rows = [f"{name} = {self.values[name]}" for name in names if name in self.values]
        return "; ".join([*rows, *([" = ".join([*rest, ANY])] if rest else [])])

    def _before(self) -> list[ast.stmt]:
        """The statements around and before the reported one, in its function or, outside of one,
        in the block that it lies in.
        """
        scope = self.function or next(iter(self.owners), None)
        rows = nodes(scope, ast.stmt) if scope is not None else []
        return [row for row in rows if row.lineno < self.statement.lineno and row is not scope]

    def _local(self) -> list[ast.stmt]:
        """Those, with the block itself where it stands in no function."""
        block = (
            []
            if self.function is not None
            else [one for one in self.owners if isinstance(one, ast.stmt)]
        )
        return [*block, *self._before()]

    def _local_names(self, needed: set[str]) -> set[str]:
        return {name for node in self._local() for name in bound(node)} & needed

    def _parameters(self) -> set[str]:
        return {row.arg for row in nodes(self.function.args, ast.arg)} if self.function else set()

    def _heads(self) -> str:
        """The parameters of the function, without defaults and annotations."""
        assert self.function is not None
        rows = self.function.args
        parts = [row.arg for row in (*rows.posonlyargs, *rows.args)]
        parts += [f"*{rows.vararg.arg}"] if rows.vararg else ["*"] * bool(rows.kwonlyargs)
        parts += [row.arg for row in rows.kwonlyargs]
        return ", ".join([*parts, *([f"**{rows.kwarg.arg}"] if rows.kwarg else [])])

    def _arguments(self) -> str:
        assert self.function is not None
        rows = self.function.args
        plain = [self.values.get(row.arg, ANY) for row in (*rows.posonlyargs, *rows.args)]
        keywords = (f"{row.arg}={self.values.get(row.arg, ANY)}" for row in rows.kwonlyargs)
        return ", ".join([*plain, *keywords])


def _is_definition(node: ast.stmt) -> bool:
    """Whether a statement only imports, defines or names a constant."""
    if isinstance(node, (ast.If, ast.Try)):
        parts = chain(node.body, node.orelse, *(row.body for row in getattr(node, "handlers", ())))
        return "__main__" not in ast.unparse(node)[:80] and all(map(_is_definition, parts))
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return not nodes(node, ast.Call)
    return isinstance(node, (*IMPORTS, *DEFINITIONS, ast.Pass))


def _is_always(node: ast.stmt) -> bool:
    """Whether a statement may decide what others import: star imports and what changes the path."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or any(row.name == "*" for row in node.names)
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted(call.func).startswith("sys.path.")
