"""What a name, an attribute or an entry was given: an assignment, an argument of a call, a default
of a parameter, of a command line's option or of a field, an entry of a dictionary or of a
configuration file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from bot.rules.hyperparameters.text.arguments import argument, keywords, positional
from bot.rules.hyperparameters.text.program import FORMATS, READERS, WHOLE, ProgramTree
from bot.rules.hyperparameters.text.settings import SUFFIXES
from bot.rules.hyperparameters.text.spelling import dotted, element_key, entries, entry_key, spelled

_MOST, _DEEPEST = 2_000, 25
"""Steps of one lookup, and steps behind each other: hostile assignments branch at each."""
_KEYS = re.compile(r'(?:\.|\[")([^."\]]+)')
_Mapping = cst.Dict | cst.Call


def given(program: ProgramTree, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Every expression that decides one, each once; none for what is no lookup."""
    kept = program.known.get((node,))
    if not isinstance(kept, list):
        kept = program.known[(node,)] = _Lookup(program).given(node)
    return kept


def supplied(
    program: ProgramTree, call: cst.Call, name: str, position: int = -1
) -> cst.BaseExpression | None:
    """What a call is given for a parameter, also by `**settings`; None where it is not, or where
    that cannot be told.
    """
    own = argument(call, name, position)
    if own is not None or not any(arg.star == "**" for arg in call.args):
        return own
    kept = program.known.get((call, name))
    if not isinstance(kept, list):
        kept = program.known[call, name] = _Lookup(program).unpacked(call, name)
    return kept[0] if len(kept) == 1 else None


@dataclass(slots=True)
class _Lookup:
    program: ProgramTree
    left: int = _MOST
    depth: int = 0

    def given(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        if self._ended():
            return []
        self.depth += 1
        found = self._candidates(node) or self._loose(node)
        self.depth -= 1
        return list({id(each): each for each in found}.values())

    def _ended(self) -> bool:
        self.left -= 1
        spent = self.program.spend()
        return spent or self.left <= 0 or self.depth >= _DEEPEST

    def _candidates(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        if isinstance(node, cst.Name):
            return self._named(node)
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        key = entry_key(node)
        own = self.program.values.get(spelled(node), []) if key else []
        if isinstance(node, cst.Subscript):
            maybe = not own or any(self.program.around(x, cst.If, cst.AugAssign) for x in own)
            return [*own, *(self._entries(node.value, key) if maybe else ())]
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and key:
            return [*own, *self._gotten(node, node.func.value, key)]
        return []

    def _gotten(
        self, call: cst.Call, owner: cst.BaseExpression, key: str
    ) -> list[cst.BaseExpression]:
        """`settings.get("lr", 0.1)`: the entry, or the default where all settings are known."""
        found = self._entries(owner, key)
        if found or not any(True for _ in self._mappings(owner)):
            return found
        return positional(call)[1:2]

    def _named(self, node: cst.Name) -> list[cst.BaseExpression]:
        """What a name was given in the functions around it, in its module, or where that has it
        from; anywhere, where none of these tells.
        """
        name, function = node.value, self.program.function(node)
        if name in self.program.declared:
            return self.program.values.get(name, [])
        while function is not None:
            for parameter in (*function.params.params, *function.params.kwonly_params):
                if parameter.name.value == name:
                    return self._passed(function, parameter)
            if own := self.program.scopes.get((function, name)):
                return own
            function = self.program.function(function)
        return self._global(self.program.where(node), name) or self.program.values.get(name, [])

    def _global(self, file: str, name: str) -> list[cst.BaseExpression]:
        """What a name of a module was given, there or where it is imported from."""
        if self._ended():
            return []
        own = self.program.scopes.get((file, name), [])
        known = self.program.imported.get(file, {})
        whole = [] if own else [(source, "*") for source in self.program.whole.get(file, ())]
        self.depth += 1
        found: list[cst.BaseExpression] = []
        for source, inner in [known[name]] if name in known else whole:
            found = found or self._global(source, name if inner == "*" else inner)
        self.depth -= 1
        return [*own, *found]

    def _passed(self, function: cst.FunctionDef, parameter: cst.Param) -> list[cst.BaseExpression]:
        kept = self.program.known.get((function, parameter))
        if not isinstance(kept, list):
            kept = self._given(function, parameter)
            if self.left > 0 and self.depth < _DEEPEST - 1:
                self.program.known[function, parameter] = kept
        return kept

    def _given(self, function: cst.FunctionDef, parameter: cst.Param) -> list[cst.BaseExpression]:
        """What the calls of a function give for a parameter, and its default where one does not;
        nothing where a call may give it that is not seen.
        """
        name = parameter.name.value
        names = [x.name.value for x in function.params.params]
        method = names[:1] in (["self"], ["cls"])
        made: cst.FunctionDef | cst.ClassDef = function
        holder = self.program.around(function, cst.ClassDef)
        if function.name.value == "__init__" and isinstance(holder, cst.ClassDef):
            made = holder
        position = names.index(name) - method if name in names else -1
        default = [parameter.default] if parameter.default else []
        found: list[cst.BaseExpression] = []
        calls = self.program.called_as(made.name.value)
        if not calls and (made.decorators or made.name.value in self.program.handed):
            return []
        for call in calls:
            own = argument(call, name, position)
            given = [own] if own else self.unpacked(call, name)
            if not given and self._hides(call):
                return []
            found += given or default
        return found or default

    def _hides(self, call: cst.Call) -> bool:
        """Whether a call is given what cannot be told: `*rest`, or settings that are not known."""
        spread = [arg for arg in call.args if arg.star]
        return any(
            arg.star == "*" or not any(True for _ in self._mappings(arg.value)) for arg in spread
        )

    def unpacked(self, call: cst.Call, name: str) -> list[cst.BaseExpression]:
        """What `**settings` of a call gives for a parameter."""
        spread = [arg.value for arg in call.args if arg.star == "**"]
        return [found for each in spread for found in self._entries(each, name)]

    def _attribute(self, node: cst.Attribute) -> list[cst.BaseExpression]:
        """`self.lr`, `config.lr`, `args.lr`, `config.training.lr`."""
        name, whole = node.attr.value, dotted(node)
        own = self.program.values.get(whole, [])
        if own:
            return own
        rest = whole.partition(".")[2]
        if rest and (aliased := self._aliased(node, rest)):
            return (self._loose(node) if self.program.merges else []) or aliased
        fields = [
            value
            for value in self.program.values.get(name, [])
            if isinstance(self.program.around(value, cst.ClassDef, cst.FunctionDef), cst.ClassDef)
        ]
        return (
            self._entries(node.value, name)
            or [*self._options(name), *self._field(name, fields)]
            or self.program.values.get(f"self.{name}", [])
        )

    def _aliased(self, node: cst.CSTNode, rest: str) -> list[cst.BaseExpression]:
        """What the attribute was given by another name of its object: `_C.SOLVER.LR` for `cfg`."""
        while isinstance(node, cst.Attribute):
            node = node.value
        waiting, seen = [node] if isinstance(node, cst.Name) else [], set[cst.CSTNode]()
        while waiting and len(seen) < _DEEPEST:
            root = waiting.pop()
            known = self.program.imported.get(self.program.where(root), {})
            module, inner = known.get(root.value, ("", "*"))
            if self._is_parameter(root):
                module, inner = "", "*"
            if not inner and "." not in rest:
                return self._global(module, rest)
            name = root.value
            if not self._is_parameter(root):
                name = self._final(self.program.where(root), name)
            if found := self.program.values.get(f"{name}.{rest}"):
                return [] if self._is_told(rest.rpartition(".")[2]) else found
            seen.add(root)
            others = self.given(root)
            waiting += [x for x in others if isinstance(x, cst.Name) and x not in seen]
        return []

    def _is_parameter(self, node: cst.Name) -> bool:
        function = self.program.function(node)
        names = function.params if function is not None else cst.Parameters()
        return node.value in {x.name.value for x in (*names.params, *names.kwonly_params)}

    def _final(self, file: str, name: str) -> str:
        """What a name of a module is called where it is made."""
        for _ in range(_DEEPEST):
            if (file, name) in self.program.scopes:
                break
            source, inner = self.program.imported.get(file, {}).get(name, ("", ""))
            if not inner:
                break
            file, name = source, inner
        return name

    def _loose(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """What configuration files have for the keys of a lookup, where the program reads some but
        how it comes to its values cannot be followed.
        """
        keys = _KEYS.findall(spelled(node))
        if not keys or not self.program.reads or self._is_told(keys[-1]):
            return []
        program = self.program
        told = {name for text in program.arguments for name in program.named(_bare(text))}
        names = told or program.settings.keys() - program.written
        roots = [root for name, root in program.settings.items() if name in names]
        return [x for root in roots for x in _under(root, keys)]

    def _field(self, name: str, fields: list[cst.BaseExpression]) -> list[cst.BaseExpression]:
        """The default of a class's field, or what the one call of the class gives instead."""
        for default in fields:
            holder = self.program.around(default, cst.ClassDef)
            if isinstance(holder, cst.ClassDef):
                calls = self.program.called_as(holder.name.value)
                found = [value for x in calls if (value := keywords(x).get(name))]
                unpacked = [y for x in calls for y in self.unpacked(x, name)]
                other = [x for y in self.program.called_as("replace") for x in _named_so(y, name)]
                return [*(found or unpacked or fields), *other]
        return fields

    def _options(self, name: str) -> list[cst.BaseExpression]:
        """The default of an option that the command line does not give, or what replaces it."""
        found: list[cst.BaseExpression] = []
        for flags, default in self.program.options.get(name, ()):
            if any(_tells(text, flag) for text in self.program.arguments for flag in flags):
                return []
            found += [default] if default else []
        for call in self.program.called_as("set_defaults"):
            own = keywords(call).get(name)
            replaced = [own] if own else self.unpacked(call, name)
            if replaced or self._hides(call):
                return replaced
        return found

    def _entries(self, node: cst.BaseExpression, key: str) -> list[cst.BaseExpression]:
        """The values of a key in what an expression may be, with those that the program sets
        itself; none where the command line has one.
        """
        if not key or self._is_told(key):
            return []
        mappings = list(self._mappings(node))
        found = [x for mapping in mappings for x in self._of(mapping, key)]
        for owner, value in self.program.set_entries.get(key, ()) if found else ():
            if any(mapping is mine for mapping in self._mappings(owner) for mine in mappings):
                found.append(value)
        return found

    def _is_told(self, key: str) -> bool:
        """Whether the command line has the key: `--lr 1`, `--train.lr=1`, `train.lr=1`."""
        ends = [text.partition("=")[0] for text in self.program.arguments]
        told = {end.rpartition(".")[2].lstrip("-").replace("-", "_") for end in ends}
        return key.replace("-", "_") in told

    def _of(self, mapping: _Mapping, key: str) -> list[cst.BaseExpression]:
        """The value of a key in a dictionary; what is merged into it later comes first."""
        if isinstance(mapping, cst.Call):
            own = [x for name, x in keywords(mapping).items() if name == key]
            return (
                own
                or self.unpacked(mapping, key)
                or [x for arg in positional(mapping) for x in self._entries(arg, key)]
            )
        for element in reversed(mapping.elements):
            if isinstance(element, cst.StarredDictElement):
                merged = list(self._mappings(element.value))
                found = [x for each in merged for x in self._of(each, key)]
                if found or not merged:
                    return found
            elif element_key(element) == key:
                return [element.value]
        return []

    def _mappings(self, node: cst.BaseExpression) -> Iterator[_Mapping]:
        """The dictionaries that an expression may be, as they are written: `{...}`, `dict(...)`,
        or a configuration file that is read; also in what holds one alone, `Namespace(**settings)`.
        """
        if self._ended():
            return
        self.depth += 1
        try:
            yield from self._known(node)
        finally:
            self.depth -= 1

    def _known(self, node: cst.BaseExpression) -> Iterator[_Mapping]:
        if isinstance(node, cst.Dict):
            yield node
        elif isinstance(node, cst.BooleanOperation):
            yield from self._mappings(node.left)  # `yaml.safe_load(file) or {}`
        elif isinstance(node, cst.Call) and dotted(node.func) == "dict" and node.args:
            yield node
        elif isinstance(node, cst.Call):
            for inner in self._behind(node):
                yield from self._mappings(inner)
        elif isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
            for value in self.given(node):
                yield from self._mappings(value)

    def _behind(self, call: cst.Call) -> Iterator[cst.BaseExpression]:
        """What a call gives back: the file that it reads, what its function returns, or the one
        thing that it is given; and for `settings.get("training")` the entry.
        """
        full = self.program.name(call.func)
        package, name = full.partition(".")[0], full.rpartition(".")[2]
        function = self._function(call)
        if name in READERS and package in FORMATS:
            yield from _files(self.program, call)
        elif entry := self.given(call):
            yield from entry
        elif function is not None:
            yield from self.program.returns(function)
        elif name in WHOLE:
            yield from _files(self.program, call)
        elif len(call.args) == 1 and call.args[0].star != "*":
            yield call.args[0].value

    def _function(self, call: cst.Call) -> cst.FunctionDef | None:
        """The program's own function, or method of a class of that name, that is called."""
        full, written = self.program.name(call.func), dotted(call.func)
        module, _, name = written.rpartition(".")
        local = self.program.imported.get(self.program.where(call), {})
        own = (
            (full == written or name in local)
            if not module
            else local.get(module, ("", "*"))[1] == ""
        )
        methods = self.program.methods.get(name, ())
        if module and not own and len(methods) == 1:
            return methods[0]
        return self.program.functions.get(name) if own else None


def _named_so(call: cst.Call, name: str) -> list[cst.BaseExpression]:
    """What `dataclasses.replace` gives a field."""
    return [value for key, value in keywords(call).items() if key == name]


def _under(
    mapping: cst.Dict, keys: Sequence[str], path: tuple[str, ...] = ()
) -> Iterator[cst.BaseExpression]:
    """The values whose path in a file ends as the keys do, or is the end of those."""
    for key, value in entries(mapping):
        own = (*path, key)
        common = min(len(own), len(keys))
        if isinstance(value, cst.Dict):
            yield from _under(value, keys, own)
        elif own[-common:] == tuple(keys[-common:]):
            yield value


def _tells(text: str, flag: str) -> bool:
    """Whether an argument of the command line is an option, perhaps shortened: `--batch`, `-b4`."""
    name = text.partition("=")[0]
    short = flag.startswith("-") and not flag.startswith("--") and text.startswith(flag)
    return name == flag or short or (len(name) > 3 and name[:2] == "--" and flag.startswith(name))


def _files(program: ProgramTree, call: cst.Call) -> list[cst.Dict]:
    """The file that a call reads: what the call names with its `with`, else the command line, else
    the program. Each that there is where none of these does; none where what is named is not known.
    """
    block = program.around(call, cst.With)
    near = [call, *(block.items if isinstance(block, cst.With) else ())]
    here = [x.evaluated_value for part in near for x in program.within(part, cst.SimpleString)]
    texts = [x for x in here if isinstance(x, str)]
    everywhere = program.strings
    for said in (texts, program.arguments, everywhere):
        named = (program.named(_bare(text)) for text in said)
        names = {name for each in named for name in each}
        if len(names) == 1:
            return [program.settings[name] for name in names if name in program.settings]
        if names:
            break
        if said is not everywhere and any(_is_path(text) for text in said):
            return []
    return [found for name, found in program.settings.items() if name not in program.written]


def _is_path(text: str) -> bool:
    return text.endswith(SUFFIXES) and text not in SUFFIXES


def _bare(text: str) -> str:
    return (text.partition("=")[2] if text.startswith("--") else text).removeprefix("./")
