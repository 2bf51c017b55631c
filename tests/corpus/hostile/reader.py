"""A reader of comments that is none of ours: what GitHub would make of a body, looked at from
outside.

Markdown with HTML on (CommonMark, tables, strikethrough), then the HTML parsed again. What GitHub
turns into links and notifications is looked for in the text that stands outside code, after
entities have become characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser

from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_VOID = {"br", "hr", "img", "input", "meta", "link", "source", "wbr"}
OURS = frozenset(
    ["p", "code", "pre", "strong", "sub", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "blockquote"]
)  # fmt: skip

# What GitHub turns into something that acts, in text outside code.
LIVE = {
    "mention": re.compile(r"(?<![\w/`])@[A-Za-z0-9]"),
    "email": re.compile(r"[\w.+-]@[\w-]"),
    "number": re.compile(r"(?<![\w&])(?:[\w.-]+(?:/[\w.-]+)?)?#\d"),
    "gh": re.compile(r"\bgh-\d", re.I),
    "address": re.compile(r"\b(?:https?|ftp)://|\bwww\.\w|\b(?:mailto|xmpp):[\w.+-]+@\w", re.I),
    "commit": re.compile(r"(?<![\w.])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b(?!\.\d)"),
    "emoji": re.compile(r":(?:[a-z_]+|\+1|-1|100):"),
    "closing": re.compile(
        r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:[\w.-]+/[\w.-]+)?(?:#\d|gh-\d|https?://)",
        re.I,
    ),
}
MARKER = re.compile(r"<!--\s*reprise\s*:", re.I)
COMMAND = re.compile(
    r"^[ \t]{0,3}(?:/[a-z][\w-]*(?=\s|$)|@(?:dependabot|pytorchbot|mergify)\b)", re.I | re.M
)  # fmt: skip


@dataclass
class Seen:
    """What the reader saw: elements in order, texts outside code by element, links, what was
    left open.
    """

    tags: list[str] = field(default_factory=list)
    text: str = ""
    summaries: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Seen()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.tags.append(tag)
        self.seen.attributes += [
            (tag, name) for name, _ in attrs if (tag, name) != ("code", "class")
        ]
        if tag not in _VOID:
            self.open.append(tag)
        self.seen.text += " " if tag not in {"code", "strong"} else "\x00"
        if tag == "summary":
            self.seen.summaries.append("")
        if tag == "thead":
            self.seen.headers.append("")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.seen.wrong.append(f"</{tag}> within {self.open}")
        else:
            self.open.pop()
        self.seen.text += "\x00" if tag in {"code", "strong"} else " "

    def handle_data(self, data: str) -> None:
        if "summary" in self.open:
            self.seen.summaries[-1] += data
        if "thead" in self.open:
            self.seen.headers[-1] += data.strip() + "|" if data.strip() else ""
        self.seen.text += "\x00" if {"code", "pre"} & set(self.open) else data

    def handle_comment(self, data: str) -> None:
        self.seen.tags.append("!--")

    def handle_decl(self, decl: str) -> None:
        self.seen.tags.append("!")

    def unknown_decl(self, data: str) -> None:
        self.seen.tags.append("![")

    def handle_pi(self, data: str) -> None:
        self.seen.tags.append("?")


@lru_cache(maxsize=4)
def read(body: str) -> Seen:
    """Read a comment as GitHub would show it."""
    reader = _Reader()
    reader.feed(_MARKDOWN.render(body))
    reader.close()
    reader.seen.wrong += [f"<{tag}> left open" for tag in reader.open]
    return reader.seen


def _formulas(body: str) -> list[str]:
    """Texts outside code with a dollar sign. GitHub looks for formulas before entities become
    characters.
    """
    if "$" not in body.replace("&#36;", "S"):
        return []
    tokens = _MARKDOWN.parse(body.replace("&#36;", "S"))
    parts = (part for token in tokens for part in token.children or ())
    return [part.content for part in parts if part.type != "code_inline" and "$" in part.content]


def alive(body: str) -> list[str]:
    """Everything in a comment that acts, or that is not of our making. Nothing, when outside
    text was made inert.
    """
    seen = read(body)
    found = [f"element {tag}" for tag in set(seen.tags) - OURS]
    found += [f"attribute {name} of {tag}" for tag, name in seen.attributes]
    found += [
        f"{name}: {match.group()!r}"
        for name, pattern in LIVE.items()
        if (match := pattern.search(seen.text))
    ]
    found += [f"formula in {text[:80]!r}" for text in _formulas(body)]
    found += [f"marker {match.group()!r}" for match in MARKER.finditer(body)]
    found += [f"command {match.group()!r}" for match in COMMAND.finditer(body)]
    return found + seen.wrong
