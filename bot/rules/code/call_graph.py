"""Call edges: what a segment calls and who calls it, found by resolving names through imports."""

import builtins
import re
from collections.abc import Iterable, Iterator

from bot.rules.code import symbols, syntax
from bot.rules.code.outline import Segment
from bot.rules.code.symbols import DefinitionStore

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
    """Definitions of what a segment calls, each once, in the order of the calls."""
    seen = {segment}
    for name in dict.fromkeys(_called(text)):
        found = _target(store, segment, name)
        if found is not None and found not in seen:
            seen.add(found)
            yield found


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
        calls = [call for call in dict.fromkeys(_called(text)) if call.rpartition(".")[2] == name]
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


def _is_target(found: Segment | None, target: Segment) -> bool:
    return (
        found is not None
        and found.path == target.path
        and f"{target.name}.".startswith(f"{found.name}.")
    )


def _called(text: str) -> Iterator[str]:
    tree = syntax.tree_of_lines(text)
    names = syntax.calls(tree) if tree is not None else _CALL.findall(text)
    return (name for name in names if name not in _BUILTIN)


def _target(store: DefinitionStore, caller: Segment, name: str) -> Segment | None:
    owner = caller.name if caller.kind == "class" else caller.name.rpartition(".")[0]
    found = symbols.bound(store, caller.path, name, owner)
    last = name.rpartition(".")[2]
    if found is not None or "." not in name or last in _COMMON or len(last) < 4:
        return found
    namesakes = store.named(last)
    package = caller.path.partition("/")[0]
    same = [other for other in namesakes if other.path.partition("/")[0] == package]
    return same[0] if len(same) == 1 and len(namesakes) <= _MAX_NAMESAKES else None
