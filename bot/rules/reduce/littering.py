"""Where a program writes files: a smaller one must not fill the working folder where the larger one wrote somewhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.rules.reduce.expressions import name_of

_METHODS = frozenset({"write_text", "write_bytes", "mkdir", "touch"})
_FUNCTIONS = frozenset({
    "mkdir", "makedirs", "save", "savez", "savez_compressed", "savetxt", "savefig", "save_model", "save_weights", "save_file",
    "save_pretrained", "save_state_dict", "save_checkpoint", "save_to_disk", "save_npz", "savemat", "imsave", "imwrite",
    "tofile", "to_csv", "to_json", "to_parquet", "to_pickle", "to_hdf", "to_excel", "export", "export_chrome_trace",
    "FileHandler", "SummaryWriter",
})  # fmt: skip
_WORDS = frozenset({"f", "file", "fid", "filename", "filepath", "fname", "path", "path_or_buf", "save_directory", "log_dir"})
_FOLDERS = frozenset({"Path", "PurePath", "PosixPath", "getcwd", "cwd"})
_BY_ARGUMENT = _FOLDERS | {"str", "fspath", "join", "abspath"}
_BY_HOLDER = frozenset({"joinpath", "resolve", "with_suffix", "with_name"})
_Scope = ast.Module | ast.FunctionDef
_Value = tuple[ast.expr, _Scope]


def written(trees: list[ast.Module]) -> tuple[str, ...]:
    """The beginnings of the relative paths under which a program writes files, as far as they are written down in it."""
    flow = _Flow()
    for tree in trees:
        flow.define(tree)
    for tree in trees:
        flow.read(tree)
    found = (flow.relative(place, scope) for call, scope in flow.calls for place in flow.places(call))
    return tuple(dict.fromkeys(path for path in found if path is not None))


@dataclass(slots=True)
class _Flow:
    """What the names of a program are set to, as far as that is plain to see."""

    names: dict[tuple[_Scope, str], list[_Value]] = field(default_factory=dict)
    attributes: dict[str, list[_Value]] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    modules: dict[_Scope, ast.Module] = field(default_factory=dict)
    imported: set[str] = field(default_factory=set)
    calls: list[tuple[ast.Call, _Scope]] = field(default_factory=list)

    def define(self, tree: ast.Module) -> None:
        """Note the functions, by what they are called by: the class for `__init__`."""
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, node)
            elif isinstance(node, ast.ClassDef):
                made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
                self.functions.update((node.name, each) for each in made)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.imported |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}

    def read(self, tree: ast.Module) -> None:
        """Note what is assigned and passed."""
        stack: list[tuple[ast.AST, _Scope]] = [(tree, tree)]
        while stack:
            node, scope = stack.pop()
            if isinstance(node, ast.FunctionDef):
                self._parameters(node, scope)
                scope = node
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.names.setdefault((scope, node.id), [])
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._assigned(node, scope)
            elif isinstance(node, ast.Call):
                self._called(node, scope)
            self.modules[scope] = tree
            stack.extend((each, scope) for each in ast.iter_child_nodes(node))

    def _parameters(self, function: ast.FunctionDef, scope: _Scope) -> None:
        names = _parameters(function)
        for name in names:
            self.names.setdefault((function, name), [])
        for name, value in zip(reversed(names), reversed(function.args.defaults), strict=False):
            self.names[function, name].append((value, scope))

    def _assigned(self, node: ast.Assign | ast.AnnAssign, scope: _Scope) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and node.value is not None:
                self.names.setdefault((scope, target.id), []).append((node.value, scope))
            elif isinstance(target, ast.Attribute) and node.value is not None:
                self.attributes.setdefault(target.attr, []).append((node.value, scope))

    def _called(self, call: ast.Call, scope: _Scope) -> None:
        self.calls.append((call, scope))
        if self._own(call):
            function = self.functions[name_of(call.func)]
            for name, value in _passed(function, call):
                self.names.setdefault((function, name), []).append((value, scope))

    def _own(self, call: ast.Call) -> bool:
        """Whether a call is of a function of the program."""
        library = isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") in self.imported
        return name_of(call.func) in self.functions and not library

    def places(self, call: ast.Call) -> Iterator[ast.expr]:
        """What may say where a call writes."""
        if self._own(call):
            return
        words = [word.value for word in call.keywords if word.arg in {"mode", *_WORDS}]
        name, given = name_of(call.func), [*call.args, *words]
        opens = name == "open" and any(map(_makes, given))
        if opens or name in _FUNCTIONS:
            yield from (each for each in given if not _makes(each))
        if isinstance(call.func, ast.Attribute) and (opens or name in _METHODS):
            yield call.func.value

    def relative(self, node: ast.expr, scope: _Scope) -> str | None:
        """The beginning of a path that is written down and not absolute; None for any other."""
        waiting, seen = [(node, scope)], set[tuple[int, int]]()
        while waiting:
            part, there = waiting.pop()
            if isinstance(part, ast.Constant):
                if isinstance(part.value, str) and part.value[:1] not in {"/", "~"}:
                    return part.value
            elif isinstance(part, ast.Call) and name_of(part.func) in _FOLDERS and not part.args:
                return "."
            elif (id(part), id(there)) not in seen:  # what is set to itself, or to the same again and again
                seen.add((id(part), id(there)))
                waiting.extend(reversed(self._from(part, there)))
        return None

    def _from(self, node: ast.expr, scope: _Scope) -> list[_Value]:
        """What a path begins with, one step nearer to where it is written down."""
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            if name in _BY_ARGUMENT:
                return [(each, scope) for each in node.args[:1]]
            return [(node.func.value, scope)] if isinstance(node.func, ast.Attribute) and name in _BY_HOLDER else []
        if isinstance(node, ast.BinOp | ast.FormattedValue):
            return [(node.left if isinstance(node, ast.BinOp) else node.value, scope)]
        if isinstance(node, ast.JoinedStr):
            return [(each, scope) for each in node.values[:1]]
        if isinstance(node, ast.Attribute):
            return self.attributes.get(node.attr, [])
        if isinstance(node, ast.Name):
            known = self.names.get((scope, node.id))
            return self.names.get((self.modules[scope], node.id), []) if known is None else known
        return []


def _makes(node: ast.expr) -> bool:
    """Whether this is a mode of `open` that makes a file."""
    mode = node.value if isinstance(node, ast.Constant) else ""
    return isinstance(mode, str) and 0 < len(mode) <= len("wb+") and set(mode) <= set("wax+bt") and bool(set(mode) & set("wax"))


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def _passed(function: ast.FunctionDef, call: ast.Call) -> list[tuple[str, ast.expr]]:
    names = [name for name in _parameters(function) if name not in {"self", "cls"}]
    return [*zip(names, call.args, strict=False), *((word.arg, word.value) for word in call.keywords if word.arg)]
