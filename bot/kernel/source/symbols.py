"""Definitions, imports and calls, by name."""

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from bot.kernel.source import objects as source_objects, syntax
from bot.kernel.source.objects import ENTRIES, ITSELF, objects_of
from bot.kernel.source.outline import Segment, module_of, publishes
from bot.kernel.source.syntax import name_of, tree_of

# The modules that a program imports, by name.

_LINE = re.compile(
    r"^[ \t>.]*(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b|import[ \t]+([A-Za-z_][\w., \t]*))",
    re.MULTILINE,
)


_LOADERS = {"import_module", "__import__", "importorskip"}


@lru_cache(maxsize=64)
def imported_modules(source: str) -> tuple[str, ...]:
    """Dotted names of what is imported from outside the standard library, in order; relative
    imports are left out.
    """
    try:
        names = _from_tree(syntax.parse(source))
    except SyntaxError:
        names = _from_lines(source)
    outside = (
        name
        for name in names
        if name.partition(".")[0] not in sys.stdlib_module_names and name.isascii()
    )
    return tuple(dict.fromkeys(outside))


def top_level(source: str) -> tuple[str, ...]:
    """The top-level packages that a program imports from outside the standard library."""
    return tuple(dict.fromkeys(name.partition(".")[0] for name in imported_modules(source)))


def _from_tree(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Call) and _loads(node):
            names.append(ast.literal_eval(node.args[0]))
    return [name for name in names if name]


def _loads(node: ast.Call) -> bool:
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    return name_of(node.func) in _LOADERS and isinstance(first, str) and first.isidentifier()


def _from_lines(source: str) -> list[str]:
    names = [
        name
        for source_module, plain in _LINE.findall(source)
        for part in (plain or source_module).split(",")
        for name in part.split()[:1]
    ]
    return [name.strip(".") for name in names if re.fullmatch(r"[A-Za-z_][\w.]*", name)]


# The names that a module's imports and aliases bind, and the bases of its classes.


class Bindings(NamedTuple):
    """`names` maps a name of the module to the dotted name it stands for; `stars` are the modules
    of its star imports.
    """

    names: dict[str, str]
    stars: tuple[str, ...]


def paths_of(module: str) -> tuple[str, str]:
    """Where a module can lie: as a file, and as a package."""
    base = module.replace(".", "/")
    return f"{base}.py", f"{base}/__init__.py"


@lru_cache(maxsize=256)
def bindings(text: str, path: str) -> Bindings:
    """The imports of a module, at any depth of it, and plain aliases at its top (`linear =
    torch._C.linear`).
    """
    tree = tree_of(text) or ast.Module([], [])
    package = module_of(path)
    if not path.endswith("__init__.py"):
        package = package.rpartition(".")[0]
    names: dict[str, str] = {}
    nested = list(syntax.statements(tree))
    for node in nested:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names.setdefault(alias.asname or top, alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            for alias in node.names:
                names.setdefault(alias.asname or alias.name, f"{base}.{alias.name}".lstrip("."))
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if syntax.dotted(value):
                names.setdefault(name, syntax.dotted(value))
    stars = tuple(
        dict.fromkeys(
            _base(node, package)
            for node in nested
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        )
    )
    return Bindings(names, stars)


def bases(text: str, name: str) -> tuple[str, ...]:
    """Dotted names of the bases of the first class of that (simple) name in a module."""
    return _bases_of_classes(text).get(name, ())


@lru_cache(maxsize=256)
def _bases_of_classes(text: str) -> dict[str, tuple[str, ...]]:
    tree = syntax.tree_of_lines(text) or ast.Module([], [])
    bases_by_class: dict[str, tuple[str, ...]] = {}
    for node in syntax.statements(tree):
        if isinstance(node, ast.ClassDef):
            plain = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
            bases_by_class.setdefault(node.name, tuple(filter(None, map(syntax.dotted, plain))))
    return bases_by_class


def _base(node: ast.ImportFrom, package: str) -> str:
    """The absolute name of the module that an import statement names."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")[: package.count(".") + 2 - node.level]
    return ".".join(filter(None, (*parts, node.module)))


# Finds definitions by name: through modules and re-exports where these lead to one, else by the
# end of the name.

_SELF = frozenset({"self", "cls", "super"})
_MOST_STEPS, _MOST_LEVELS = 60, 3
_SECONDARY = frozenset(
    {"test", "tests", "testing", "_testing", "benchmark", "benchmarks", "examples", "docs"}
    | {"_vendor"}
)


class DefinitionStore(Protocol):
    """The sources that names are looked up in."""

    def text(self, path: str) -> str | None:
        """The text of a file, None when there is none."""

    def segments(self, path: str) -> Sequence[Segment]:
        """The segments of a file, in order."""

    def named(self, last: str) -> Sequence[Segment]:
        """First segments of the definitions with this simple name."""


def lookup(
    store: DefinitionStore, name: str, limit: int, main: Sequence[str] = ()
) -> tuple[Segment, ...]:
    """Definitions of a partly dotted name: what it resolves to, then those whose names end like
    it; `main` packages first.
    """
    first = _Resolution(store).absolute(name)
    if first is not None and limit == 1:  # who has a name like it takes long to tell
        return (first,)
    parts = name.split(".")
    others = store.named(parts[-1])
    ending = "." + ".".join(parts[-2:])
    matches = [other for other in others if len(parts) == 1 or other.dotted.endswith(ending)]
    if first is None and not matches:
        matches = [other for other in others if _in_order(parts, other.dotted.split("."))]
    matches.sort(key=lambda other: _distance(other, parts, main))
    return tuple(dict.fromkeys([*([first] if first else []), *matches]))[:limit]


def definition_of(store: DefinitionStore, path: str, name: str, owner: str = "") -> Segment | None:
    """What a dotted name means inside a file: a local definition, an import of it, or a member
    of the class `owner`.
    """
    head, _, rest = name.partition(".")
    if head not in _SELF:
        return _Resolution(store).inside(path, name)
    if not owner or not rest:
        return None
    member = rest.partition(".")[0]
    return _Resolution(store).member(path, owner, member, inherited=head == "super")


class _Resolution:
    """Follows one name. Each step is taken once, and bases are followed so many levels up: cyclic
    imports and bases end, long before Python's stack does.
    """

    def __init__(self, store: DefinitionStore, level: int = 0) -> None:
        self.store = store
        self.level = level
        self.seen: set[tuple[str, str]] = set()

    def absolute(self, name: str) -> Segment | None:
        """The definition of a full dotted name, by the modules it goes through."""
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            for path in paths_of(".".join(parts[:cut])):
                if self.store.text(path) is not None:
                    rest = ".".join(parts[cut:])
                    return self.inside(path, rest) if rest else self._attribute(name, path)
        return None

    def _attribute(self, name: str, path: str) -> Segment | None:
        """What the name of a module means: what its package gives that name to, else the module."""
        package, _, last = name.rpartition(".")
        init = paths_of(package)[1]
        text = self.store.text(init) if package else None
        if text is None or path == init or bindings(text, init).names.get(last, name) == name:
            return self._module(path)
        return self.inside(init, last) or self._module(path)

    def inside(self, path: str, name: str) -> Segment | None:
        """What a dotted name means at the top level of a file."""
        if not self._first_time(path, name):
            return None
        own = self._definition(path, name)
        if own is not None:
            return own
        head, _, rest = name.partition(".")
        owner = self._definition(path, head) if rest else None
        if owner is not None and owner.kind == "class":
            return self.member(path, head, rest.partition(".")[0])
        module_bindings = bindings(self.store.text(path) or "", path)
        if head in module_bindings.names:
            full = f"{module_bindings.names[head]}.{rest}" if rest else module_bindings.names[head]
            return self.absolute(full) or self.inside(path, full)
        definitions = (self.absolute(f"{star}.{name}") for star in module_bindings.stars)
        return next(filter(None, definitions), None)

    def member(
        self, path: str, owner: str, name: str, *, inherited: bool = False
    ) -> Segment | None:
        """A method of a class or of its bases; `inherited` leaves out the class itself."""
        if not self._first_time(path, f"{owner}:{name}"):
            return None
        own = None if inherited else self._definition(path, f"{owner}.{name}")
        definitions = (self.member(base.path, base.name, name) for base in self._bases(path, owner))
        return own or next(filter(None, definitions), None)

    def _bases(self, path: str, owner: str) -> Iterator[Segment]:
        base_names = bases(self.store.text(path) or "", owner.rpartition(".")[2])
        for base in base_names if self.level < _MOST_LEVELS else ():
            definition = _Resolution(self.store, self.level + 1).inside(path, base)
            if definition is not None and definition.kind == "class":
                yield definition

    def _first_time(self, path: str, name: str) -> bool:
        new = (path, name) not in self.seen
        self.seen.add((path, name))
        return new and len(self.seen) < _MOST_STEPS

    def _module(self, path: str) -> Segment | None:
        return next(iter(self.store.segments(path)), None)

    def _definition(self, path: str, name: str) -> Segment | None:
        """The last definition of that name in a file: overloads and fallbacks come before the real
        one.
        """
        segments = self.store.segments(path)
        definitions = [segment for segment in segments if segment.name == name and not segment.part]
        return definitions[-1] if definitions else None


def _in_order(parts: Sequence[str], full: Sequence[str]) -> bool:
    """Whether the parts occur in this order in a full name: re-exports leave modules out."""
    rest = iter(full)
    return all(part in rest for part in parts)


def _distance(
    definition: Segment, parts: Sequence[str], main: Sequence[str]
) -> tuple[int, bool, int, int, int, str, int]:
    """How far a definition is from what was asked for: shared end and beginning of the name, the
    package, how public it is.
    """
    own = definition.dotted.split(".")
    shared = sum(a == b for a, b in zip(reversed(own), reversed(parts), strict=False))
    secondary = any(part in _SECONDARY or part.startswith("test_") for part in own[:-1])
    return (
        -shared,
        len(parts) > 1 and own[0] != parts[0],
        (bool(main) and own[0] not in main) + 2 * secondary,
        sum(part.startswith("_") for part in own),
        len(own),
        definition.path,
        definition.start,
    )


# Call edges: what a segment calls and who calls it, found by resolving names through imports.

_BUILTIN = frozenset(dir(builtins))
_CALL = re.compile(r"(?<![\w.])((?:[A-Za-z_]\w*\.){0,6}[A-Za-z_]\w*)\s*\(")
_MAX_NAMESAKES = 3
_CONSTRUCTORS = frozenset({"__init__", "__call__", "__new__", "forward"})
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """
    append extend items keys values get pop copy update add join split strip format replace startswith endswith
    encode decode to size view reshape dim item type shape mean sum max min abs clone detach cpu cuda float int
    bool long insert sort index count read write close
""",
    )
)


def callees(store: DefinitionStore, segment: Segment, text: str) -> Iterator[Segment]:
    """Definitions of what a segment calls, each once, in the order of the calls: of a class its
    constructor, of an object that is called its forward pass.
    """
    visited = {segment}
    objects = _objects_in(store, segment, text)
    for name in dict.fromkeys((*_calls_in(text), *_uses_in(text, objects))):
        definition = _target(store, segment, name, objects)
        if definition is not None and definition.kind == "class":
            constructor = _Resolution(store).member(definition.path, definition.name, "__init__")
            same = constructor is not None and _package(constructor) == _package(segment)
            definition = constructor if same else definition
        if definition is not None and definition not in visited:
            visited.add(definition)
            yield definition


def callers(
    store: DefinitionStore, target: Segment, candidates: Iterable[tuple[Segment, str]]
) -> Iterator[Segment]:
    """Of segments (with their texts) that contain the name, those that call it: first where the
    name resolves to the target, then where only the name is the same.
    """
    name = callable_name(target)
    namesakes: list[Segment] = []
    for segment, text in candidates:
        if (segment.path, segment.name) == (target.path, target.name):
            continue
        calls = [call for call in dict.fromkeys(_calls_in(text)) if call.rpartition(".")[2] == name]
        if any(_is_target(_target(store, segment, call), target) for call in calls):
            yield segment
        elif calls:
            namesakes.append(segment)
    yield from namesakes


def callable_name(target: Segment) -> str:
    """The name under which a definition is called: a class for its constructor and its forward
    pass.
    """
    owner, _, last = target.name.rpartition(".")
    return owner.rpartition(".")[2] if last in _CONSTRUCTORS and owner else last


def _is_target(definition: Segment | None, target: Segment) -> bool:
    return (
        definition is not None
        and definition.path == target.path
        and f"{target.name}.".startswith(f"{definition.name}.")
    )


def _calls_in(text: str) -> Iterator[str]:
    """What is called, then the functions that are given to calls, and last what decorates it:
    mostly that only checks.
    """
    tree = syntax.tree_of_lines(text)
    if tree is None:
        yield from (name for name in _CALL.findall(text) if name not in _BUILTIN)
        return
    decorators = dict(_decorators(tree))
    telling = [name for name, publishing in decorators.items() if not publishing]
    called = (name for name in syntax.calls(tree) if name not in decorators)
    names = (*called, *_arguments(tree), *telling, *(f"{name}.__call__" for name in telling))
    yield from (name for name in names if name not in _BUILTIN)


def own_calls(text: str) -> Iterator[str]:
    """The methods that a method calls of its own object, also through one that gives it back, such
    as `self.fit(x).transform(x)`.
    """
    tree = syntax.tree_of_lines(text) or ast.Module([], [])
    calls = (call.func for call in syntax.nodes(tree, ast.Call))
    names = [call.attr for call in calls if isinstance(call, ast.Attribute) and _is_own(call.value)]
    yield from dict.fromkeys(names)


def _is_own(value: ast.expr) -> bool:
    match value:
        case ast.Name(id="self" | "cls"):
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in ITSELF:
            return _is_own(inner)
    return False


def _decorators(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """The decorators, and whether they only publish what they decorate."""
    for node in syntax.statements(tree):
        for decorator in getattr(node, "decorator_list", ()):
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if name := syntax.dotted(function):
                yield name, publishes(decorator)


_ASKING = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "type", "id", "repr"})


def _arguments(tree: ast.AST) -> Iterator[str]:
    """Names that are given to calls: functions among them are called there, but for those of which
    only the kind is asked.
    """
    bound = {argument.arg for argument in syntax.nodes(tree, ast.arg)}
    for call in syntax.nodes(tree, ast.Call):
        if syntax.name_of(call.func) in _ASKING:
            continue
        for value in (*call.args, *(keyword.value for keyword in call.keywords)):
            name = syntax.dotted(value)
            if name and name.partition(".")[0] not in bound and name != "super":
                yield name


def _uses_in(text: str, objects: Mapping[str, str]) -> Iterator[str]:
    """What the operators of a segment use of its objects, and its own attributes, which may be
    properties.
    """
    tree = syntax.tree_of_lines(text) or ast.Module([], [])
    yield from (
        use.dotted for use in source_objects.uses(tree, objects) if use.member.startswith("__")
    )
    names = map(syntax.dotted, syntax.nodes(tree, ast.Attribute))
    yield from (name for name in names if name.startswith("self.") and name.count(".") == 1)


def _target(
    store: DefinitionStore, caller: Segment, name: str, objects: Mapping[str, str] | None = None
) -> Segment | None:
    owner = caller.name if caller.kind == "class" else caller.name.rpartition(".")[0]
    definition = _entry(store, caller.path, name) or definition_of(store, caller.path, name, owner)
    if definition is None and objects:
        definition = _of_object(store, caller.path, name, objects)
    last = name.rpartition(".")[2]
    if definition is not None or "." not in name or last in _COMMON or len(last) < 4:
        return definition
    module = bindings(store.text(caller.path) or "", caller.path).names.get(name.partition(".")[0])
    if module and module.partition(".")[0] != module_of(caller.path).partition(".")[0]:
        return None  # another package's, such as `np.sqrt`
    namesakes = store.named(last)
    same = [other for other in namesakes if _package(other) == _package(caller)]
    return same[0] if len(same) == 1 and len(namesakes) <= _MAX_NAMESAKES else None


def _entry(store: DefinitionStore, path: str, name: str) -> Segment | None:
    """What does the work of a call of a class itself, as `forward` does for the `apply` of a
    function of autograd.
    """
    holder, _, member = name.rpartition(".")
    if not holder or holder in _SELF or member not in ENTRIES:
        return None
    owner = _Resolution(store).inside(path, holder)
    if owner is None or owner.kind != "class":
        return None
    own = _Resolution(store).member(owner.path, owner.name, member)
    if own is not None and _package(own) == _package(owner):
        return None
    entry = member_of(store, owner, member)
    return entry if entry is not None and entry.simple_name in ENTRIES[member] else None


def _of_object(
    store: DefinitionStore, path: str, name: str, objects: Mapping[str, str]
) -> Segment | None:
    """What a call means through the class of the object that it goes through."""
    holder, _, member = name.rpartition(".")
    for variable, called in ((name, "__call__"), (holder, member)):
        if variable in objects:
            owner = _Resolution(store).inside(path, objects[variable])
            if owner is not None and owner.kind == "class":
                return member_of(store, owner, called)
    return None


def member_of(store: DefinitionStore, owner: Segment, name: str) -> Segment | None:
    """A method of a class or its bases; of a call what does the work, of an attribute without a
    definition what answers for it.
    """
    for entry in (*ENTRIES.get(name, ()), name, *(() if name in ENTRIES else ("__getattr__",))):
        definition = _Resolution(store).member(owner.path, owner.name, entry)
        if definition is not None and _package(definition) == _package(owner):
            return definition
    return None


def _package(segment: Segment) -> str:
    return segment.path.removeprefix("src/").partition("/")[0]


_SETUPS = ("__init__", "build", "setup", "__post_init__")


def _objects_in(store: DefinitionStore, segment: Segment, text: str) -> dict[str, str]:
    """The objects of a method: its own, and those that its class sets up."""
    classes: dict[str, str] = {}
    owner = segment.name.rpartition(".")[0] if segment.kind == "method" else ""
    for name in _SETUPS if owner else ():
        setup = _Resolution(store).member(segment.path, owner, name)
        if setup is not None and setup.path == segment.path:
            classes = objects_of(_tree_of(store, setup), classes)
    classes = {name: owner for name, owner in classes.items() if name.startswith("self.")}
    tree = syntax.tree_of_lines(text)
    return objects_of(tree, classes) if tree is not None else classes


def _tree_of(store: DefinitionStore, segment: Segment) -> ast.AST:
    lines = (store.text(segment.path) or "").split("\n")
    tree = syntax.tree_of_lines("\n".join(lines[segment.start - 1 : segment.end]))
    return tree or ast.Module([], [])
