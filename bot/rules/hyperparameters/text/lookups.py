"""What a name, an attribute or an entry was given: an assignment, an argument of a call, a default
of a parameter, of a command line's option or of a field, an entry of a dictionary or of a
configuration file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from bot.rules.hyperparameters.text.arguments import argument, keywords, positional
from bot.rules.hyperparameters.text.program import ProgramTree, dotted

_MOST = 100
"""Steps of one lookup: hostile assignments branch at each."""
_READERS = frozenset({"safe_load", "full_load", "unsafe_load", "load", "loads"})
_FORMATS = frozenset({"yaml", "json", "omegaconf", "ruamel", "hjson"})


def given(program: ProgramTree, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Every expression that decides one, each once; none for what is no lookup."""
    return _Lookup(program).given(node)


@dataclass(slots=True)
class _Lookup:
    program: ProgramTree
    left: int = _MOST

    def given(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        self.left -= 1
        found = self._candidates(node) if self.left > 0 else []
        return list({id(each): each for each in found}.values())

    def _candidates(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        if isinstance(node, cst.Name):
            return self._named(node)
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        if isinstance(node, cst.Subscript):
            own = self.program.values.get(self.program.text(node), [])
            return own or self._entries(node.value, _key(node))
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            key = positional(node)[:1]
            if node.func.attr.value == "get" and key and isinstance(key[0], cst.SimpleString):
                return self._entries(node.func.value, key[0].evaluated_value)
        return []

    def _named(self, node: cst.Name) -> list[cst.BaseExpression]:
        function = self.program.function(node)
        while function is not None:
            for parameter in (*function.params.params, *function.params.kwonly_params):
                if parameter.name.value == node.value:
                    return self._passed(function, parameter)
            function = self.program.function(function)
        return self.program.values.get(node.value, [])

    def _passed(self, function: cst.FunctionDef, parameter: cst.Param) -> list[cst.BaseExpression]:
        """What the calls of a function give for a parameter, and its default where one does not."""
        name = parameter.name.value
        names = [x.name.value for x in function.params.params]
        method = names[:1] in (["self"], ["cls"])
        called = function.name.value
        holder = self.program.around(function, cst.ClassDef)
        if called == "__init__" and isinstance(holder, cst.ClassDef):
            called = holder.name.value
        position = names.index(name) - method if name in names else -1
        found: list[cst.BaseExpression] = []
        for call in self.program.calls:
            if dotted(call.func).rpartition(".")[2] == called:
                own = argument(call, name, position)
                unpacked = [] if own else self._unpacked(call, name)
                default = [parameter.default] if parameter.default else []
                found += [own] if own else unpacked or default
        return found or ([parameter.default] if parameter.default else [])

    def _unpacked(self, call: cst.Call, name: str) -> list[cst.BaseExpression]:
        """What `**settings` of a call gives for a parameter."""
        spread = [arg.value for arg in call.args if arg.star == "**"]
        return [found for each in spread for found in self._entries(each, name)]

    def _attribute(self, node: cst.Attribute) -> list[cst.BaseExpression]:
        """`self.lr`, `config.lr`, `args.lr`, `config.training.lr`."""
        name = node.attr.value
        own = self.program.values.get(dotted(node), [])
        if own:
            return own
        fields = [
            value
            for value in self.program.values.get(name, [])
            if isinstance(self.program.around(value, cst.ClassDef, cst.FunctionDef), cst.ClassDef)
        ]
        options = self._options(name)
        return [*options, *self._field(name, fields)] or (
            self._entries(node.value, name) or self.program.values.get(f"self.{name}", [])
        )

    def _field(self, name: str, fields: list[cst.BaseExpression]) -> list[cst.BaseExpression]:
        """The default of a class's field, or what the one call of the class gives instead."""
        for default in fields:
            holder = self.program.around(default, cst.ClassDef)
            if isinstance(holder, cst.ClassDef):
                calls = [x for x in self.program.calls if dotted(x.func) == holder.name.value]
                found = [value for x in calls if (value := keywords(x).get(name))]
                unpacked = [y for x in calls for y in self._unpacked(x, name)]
                return found or unpacked or fields
        return fields

    def _options(self, name: str) -> list[cst.BaseExpression]:
        """The default of an option that the command line does not give, or what replaces it."""
        for call in self.program.method("set_defaults"):
            own = keywords(call).get(name)
            if replaced := [own] if own else self._unpacked(call, name):
                return replaced
        found: list[cst.BaseExpression] = []
        told = {text.partition("=")[0] for text in self.program.arguments}
        for call in self.program.method("add_argument"):
            strings = [
                x.evaluated_value for x in positional(call) if isinstance(x, cst.SimpleString)
            ]
            flags = {x for x in strings if isinstance(x, str)}
            names = {x.lstrip("-").replace("-", "_") for x in flags}
            default = argument(call, "default")
            if default and name in names and not flags & told:
                found.append(default)
        return found

    def _entries(self, node: cst.BaseExpression, key: object) -> list[cst.BaseExpression]:
        """The values of a key in what an expression may be."""
        found: list[cst.BaseExpression] = []
        for value in self._mappings(node) if key is not None else ():
            if isinstance(value, cst.Dict):
                found += [
                    x.value
                    for x in value.elements
                    if isinstance(x, cst.DictElement)
                    and isinstance(x.key, cst.SimpleString)
                    and x.key.evaluated_value == key
                ]
            else:
                found += [x for name, x in keywords(value).items() if name == key]
        return found

    def _mappings(self, node: cst.BaseExpression) -> Iterator[cst.Dict | cst.Call]:
        """The dictionaries that an expression may be, as they are written: `{...}`, `dict(...)`,
        or a configuration file that is read; also in what holds one alone, `Namespace(**settings)`.
        """
        self.left -= 1
        if self.left <= 0:
            return
        if isinstance(node, cst.Dict):
            yield node
        elif isinstance(node, cst.Call):
            if dotted(node.func) == "dict" and keywords(node):
                yield node
            else:
                for inner in self._behind(node):
                    yield from self._mappings(inner)
        if isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
            for value in self.given(node):
                yield from self._mappings(value)

    def _behind(self, call: cst.Call) -> Iterator[cst.BaseExpression]:
        """What a call gives back: the file that it reads, what its function returns, or the one
        thing that it is given; and for `settings.get("training")` the entry.
        """
        full = self.program.name(call.func)
        if full.rpartition(".")[2] in _READERS and full.partition(".")[0] in _FORMATS:
            read = _file(self.program, call)
            yield from [read] if read else []
            return
        entry = self.given(call)
        function = self.program.functions.get(dotted(call.func))
        if entry or function is not None:
            yield from entry
            for each in self.program.within(function, cst.Return) if function else ():
                yield from [each.value] if each.value else []
        elif len(call.args) == 1 and call.args[0].star != "*":
            yield call.args[0].value


def _key(node: cst.Subscript) -> object:
    index = node.slice[0].slice if len(node.slice) == 1 else None
    if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
        return index.value.evaluated_value
    return None


def _file(program: ProgramTree, call: cst.Call) -> cst.Dict | None:
    """The file that a call reads: the only one that the command line, the call with its `with`, or
    else the program names.
    """
    block = program.around(call, cst.With)
    near = [call, *(block.items if isinstance(block, cst.With) else ())]
    for texts in (program.arguments, _texts(program, near), _texts(program, [program.module])):
        named = {name for name in program.settings if any(_names(text, name) for text in texts)}
        if len(named) == 1:
            return program.settings[named.pop()]
        if named:
            return None
    return None


def _texts(program: ProgramTree, nodes: Sequence[cst.CSTNode]) -> list[str]:
    strings = [x for node in nodes for x in program.within(node, cst.SimpleString)]
    return [x.evaluated_value for x in strings if isinstance(x.evaluated_value, str)]


def _names(text: str, file: str) -> bool:
    """Whether a text is the path of a file, or the end of it as it is joined to a folder."""
    bare = text.partition("=")[2] if text.startswith("--") else text
    bare = bare.removeprefix("./")
    return bool(bare) and (bare == file or file.endswith(f"/{bare}"))
