"""What a report points at: names of code in its words and programs, and the lines of source it
quotes.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bot.models.bug import BugReport, FenceKind, Role
from bot.models.issue import Issue
from bot.rules.code import syntax
from bot.rules.code.words import is_stop_word, query_words

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


class Name(NamedTuple):
    """A name that may stand for code, how much it says, and where it was found."""

    text: str
    weight: float
    where: str


def prose(issue: Issue) -> str:
    """The body's own words: no blocks, comments or addresses, no section on versions, and not
    more than a reader would.
    """
    text = _SURROUNDINGS.sub("\n", _FENCED.sub("\n", _COMMENTED.sub(" ", issue.body)))
    return _ADDRESS.sub(" ", text)[:_PROSE_CHARACTERS]


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
    ordered = sorted(best.values(), key=lambda name: -name.weight)
    return tuple(ordered[:_MOST_NAMES])


def _spoken(name: Name, said: Mapping[str, float]) -> Name:
    own = query_words(name.text.rpartition(".")[2])
    return name._replace(
        weight=name.weight + max((said.get(word, 0.0) for word in own), default=0.0)
    )


def quoted_lines(bug: BugReport) -> tuple[str, ...]:
    """Lines of source that the report shows, long enough to be told from others."""
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
        tree = syntax.tree_of(fence.text)
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
            known |= {
                alias.asname or alias.name: alias.name
                for alias in node.names
                if "." in alias.name or alias.asname
            }
            known |= {
                alias.name: alias.name
                for alias in node.names
                if "." not in alias.name and not alias.asname
            }
    return known


def _bases(tree: ast.Module, known: dict[str, str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                head, _, rest = syntax.dotted(base).partition(".")
                if head in known:
                    yield f"{known[head]}.{rest}" if rest else known[head]
