"""A page read from outside: well formed, of our own elements, and with nothing in it that acts."""

from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser

_VOID = {"meta", "link"}
_ELEMENTS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "link",
        "body",
        "main",
        "header",
        "a",
        "span",
        "section",
        "h1",
        "h2",
        "h3",
        "p",
        "ol",
        "ul",
        "li",
        "small",
        "dl",
        "div",
        "dt",
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "pre",
        "code",
        "details",
        "summary",
        "strong",
        "footer",
        "svg",
        "g",
        "path",
        "circle",
        "rect",
        "text",
        "desc",
        "noscript",
    ]
)
_ATTRIBUTES = frozenset(
    [
        "lang",
        "charset",
        "name",
        "content",
        "http-equiv",
        "rel",
        "href",
        "type",
        "class",
        "id",
        "scope",
        "tabindex",
        "role",
        "aria-label",
        "aria-labelledby",
        "aria-current",
        "aria-hidden",
        "aria-live",
        "viewbox",
        "width",
        "height",
        "d",
        "r",
        "x",
        "y",
        "rx",
        "cx",
        "cy",
        "transform",
    ]
)
_ATTRIBUTES |= {"fill", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"}
_ATTRIBUTES |= {"stroke-linejoin", "text-anchor", "font-size", "font-weight", "font-family"}
_OURS = re.compile(
    r"/|/(?:runs|static)/[\w./?=&-]*|/(?:healthz|readyz|metrics|api/openapi\.json)|https://github\.com/(?:acme/pool/issues/\d+|apps/reprise-test)"
)
# A changelog's address comes from a package index: a plain one, opened without telling where from.
_ELSEWHERE = re.compile(
    r"https?://[a-z0-9.-]+\.[a-z]+(?::\d+)?(?:/[\w./~%+-]*)?(?:#[\w.-]*)?", re.IGNORECASE | re.ASCII
)
_REL = "noreferrer nofollow noopener"


def _is_ours(attrs: list[tuple[str, str | None]]) -> bool:
    """Whether a script is the one of live pages, which a page only names."""
    row = dict(attrs)
    return (
        set(row) == {"src", "defer"}
        and re.fullmatch(r"/static/live\.js\?v=\w+", row["src"] or "") is not None
    )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += " "
        if tag == "script":
            self.wrong += [] if _is_ours(attrs) else [f"script {attrs}"]
            self.open.append(tag)
            return
        if tag not in _ELEMENTS:
            self.wrong.append(f"element {tag}")
        self.wrong += [f"attribute {name} of {tag}" for name, _ in attrs if name not in _ATTRIBUTES]
        safe = _ELSEWHERE if dict(attrs).get("rel") == _REL else _OURS
        self.wrong += [
            f"leads to {value}"
            for name, value in attrs
            if name == "href" and not safe.fullmatch(value or "")
        ]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"comment {data[:40]}")

    def unknown_decl(self, data: str) -> None:
        self.wrong.append(f"declaration {data[:40]}")

    def handle_pi(self, data: str) -> None:
        self.wrong.append(f"instruction {data[:40]}")


def wrong(page: str) -> list[str]:
    """What is wrong with a page; nothing, when it is whole and inert."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    unseen = {
        hex(ord(char))
        for char in page
        if unicodedata.category(char) in {"Cc", "Cf", "Cs"} and char not in "\n\t"
    }
    return (
        reader.wrong
        + [f"{tag} is left open" for tag in reader.open]
        + [f"character {each}" for each in sorted(unseen)]
    )


def words(page: str) -> str:
    """What is read on a page, blanks joined."""
    reader = _Reader()
    reader.feed(page)
    return " ".join(reader.text.split())
