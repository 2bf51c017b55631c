"""What a report points at: names of code in its words and programs, and the lines of source that
it quotes or links to.
"""

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bot.models.bug import BugReport, FenceKind, Issue, Role
from bot.rules.code import syntax
from bot.rules.code.indexing import is_stop_word, query_words
from bot.rules.parsing import tree_of

_PROSE_CHARACTERS = 8_000
_MOST_NAMES = 40
_FENCED = re.compile(r"(?ms)^[ \t]{0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]{0,3}\1|\Z)")
_SURROUNDINGS = re.compile(
    r"(?ims)^#{1,6}[^\n]{0,40}\b(?:versions?|environment|system "
    r"info|collect_env|dependencies)\b[^\n]*\n.*?(?=^#{1,6}\s|\Z)"
)
_ADDRESS = re.compile(r"https?://\S+")
_COMMENTED = re.compile(r"(?s)<!--.*?-->")
_TICKED = re.compile(r"`([^`\n]{2,160})`")
_CHAIN = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,8}")
_TELLING = re.compile(
    r"(?<![\w./-])(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[A-Za-z]\w*_\w+|_+[A-Za-z]\w+|[A-Z]+[a-z0-9]+[A-Z]\w*|[A-Za-z_]\w+(?=\(\)))(?![\w/])"
)
_LINK = re.compile(
    r"https?://[\w.-]{1,100}/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/(?:blob|blame|raw)/(?P<rest>[\w./@+%-]{1,400}\.py)"
    r"(?:\?[\w=&]{0,40})?(?:#L(?P<start>\d{1,6})(?:C\d{1,4})?(?:-L?(?P<end>\d{1,6}))?)?"
)
_RAW = re.compile(
    r"https?://raw\.githubusercontent\.com/(?P<repository>[\w.-]{1,100}/[\w.-]{1,100})/(?P<rest>[\w./@+%-]{1,400}\.py)"
)
_BUILTIN = frozenset(dir(builtins)) | {
    "self",
    "cls",
    "nn",
    "np",
    "os",
    "sys",
    "pd",
    "plt",
    "GitHub",
    "PyTorch",
    "README",
}


class Link(NamedTuple):
    """Lines of a file of a repository; `start` is 0 when the link names no line. The ref is the
    first part of the path, or more where a branch has slashes in its name.
    """

    repository: str
    ref: str
    path: str
    start: int
    end: int


class Name(NamedTuple):
    """A name that may refer to code, how much it says, and where it was found."""

    text: str
    weight: float
    where: str


def prose(issue: Issue) -> str:
    """The body's own words: no blocks, comments or addresses, no section on versions, and not
    more than a reader would.
    """
    text = _SURROUNDINGS.sub("\n", _FENCED.sub("\n", _COMMENTED.sub(" ", issue.body)))
    return _ADDRESS.sub(" ", text)[:_PROSE_CHARACTERS]


def ticked(text: str) -> list[str]:
    """What stands between backticks."""
    return _TICKED.findall(text)


def names(bug: BugReport, issue: Issue) -> tuple[Name, ...]:
    """Names of code, the most telling first, each once; a name in a program tells more when the
    words speak of it too.
    """
    said = dict.fromkeys(query_words(prose(issue), 400), 1.0) | dict.fromkeys(
        query_words(issue.title, 100), 2.5
    )
    best: dict[str, Name] = {}
    written = (_spoken(name, said) for name in _in_programs(bug))
    found = (
        *_in_words(issue.title, 8.0, "the title"),
        *_in_words(prose(issue), 6.0, "the text"),
        *written,
    )
    for name in (*found, *(Name(text, 4.0, "the report") for text in bug.api)):
        told = name.text not in _BUILTIN and len(name.text) > 2 and not is_stop_word(name.text)
        if told and (name.text not in best or best[name.text].weight < name.weight):
            best[name.text] = name
    return tuple(sorted(best.values(), key=lambda name: -name.weight)[:_MOST_NAMES])


def _spoken(name: Name, said: Mapping[str, float]) -> Name:
    own = query_words(name.text.rpartition(".")[2])
    return name._replace(
        weight=name.weight + max((said.get(word, 0.0) for word in own), default=0.0)
    )


def quoted_lines(bug: BugReport) -> tuple[str, ...]:
    """Lines of source that the report shows, long enough to identify their place."""
    kinds = {FenceKind.PROGRAM, FenceKind.DIFF}
    shown = (fence.text for fence in bug.fences if fence.kind in kinds or fence.role is Role.SOURCE)
    lines = (line.lstrip("+- ").strip() for text in shown for line in text.splitlines()[:400])
    return tuple(
        dict.fromkeys(
            line
            for line in lines
            if len(line) >= 12 and not line.startswith(("import ", "from ", "#"))
        )
    )


def _in_words(text: str, weight: float, where: str) -> Iterator[Name]:
    for ticked in _TICKED.findall(text):
        chains = _CHAIN.findall(ticked)
        plain = len(chains) == 1 and len(chains[0]) + 3 >= len(ticked)
        for position, chain in enumerate(chains[:8]):
            yield Name(chain, weight if plain or position == 0 else weight / 3, where)
    for chain in _TELLING.findall(_TICKED.sub(" ", text)):
        yield Name(chain, weight * 0.7, where)


def _in_programs(bug: BugReport) -> Iterator[Name]:
    """What the report's own programs import and call, in full where their imports tell."""
    for fence in bug.programs:
        tree = tree_of(fence.text)
        if tree is None:
            yield from (
                Name(chain, 2.0, "its program") for chain in _TELLING.findall(fence.text)[:40]
            )
            continue
        known = _imported(tree)
        own = {
            node.name for node in ast.walk(tree) if isinstance(node, syntax.Function | ast.ClassDef)
        }
        for full in known.values():
            yield Name(full, 2.0, "its program")
        for call in syntax.calls(tree):
            head, _, rest = call.partition(".")
            if head in known:
                yield Name(f"{known[head]}.{rest}" if rest else known[head], 3.0, "its program")
            elif rest and head not in own:
                yield Name(call.rpartition(".")[2], 1.5, "its program")
        yield from (Name(base, 2.5, "its program") for base in _bases(tree, known))


def _imported(tree: ast.Module) -> dict[str, str]:
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            known |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}"
                for alias in node.names
                if alias.name != "*"
            }
        elif isinstance(node, ast.Import):
            known |= {alias.asname or alias.name: alias.name for alias in node.names}
    return known


def _bases(tree: ast.Module, known: dict[str, str]) -> Iterator[str]:
    for base in (base for node in syntax.nodes(tree, ast.ClassDef) for base in node.bases):
        head, _, rest = syntax.dotted(base).partition(".")
        if head in known:
            yield f"{known[head]}.{rest}" if rest else known[head]


def links(text: str) -> Iterator[Link]:
    """The links to Python sources, each once, in order."""
    seen = set()
    for found in sorted(
        [*_LINK.finditer(text), *_RAW.finditer(text)], key=lambda match: match.start()
    ):
        groups = found.groupdict()
        ref, _, path = groups["rest"].partition("/")
        start = int(groups.get("start") or 0)
        link = Link(groups["repository"], ref, path, start, max(int(groups.get("end") or 0), start))
        if path and link not in seen:
            seen.add(link)
            yield link


def installed(path: str, files: Sequence[str]) -> str | None:
    """The installed file that a path means: the same, one that ends with it, or one that its own
    end names; None when it is not clear which.
    """
    wanted = path.replace("\\", "/").strip("/")
    if "site-packages/" in wanted:
        wanted = wanted.rpartition("site-packages/")[2]
    parts = [part for part in wanted.split("/") if part not in {"", ".", ".."}]
    for skipped in range(max(len(parts) - 1, 1)):
        ending = "/".join(parts[skipped:])
        found = [file for file in files if file == ending or file.endswith(f"/{ending}")]
        if ending in found:
            return ending
        if len(found) == 1:
            return found[0]
        if found:
            return None
    return None
