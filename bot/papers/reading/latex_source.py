"""The files of a LaTeX paper → one text: comments out, inputs in, own macros expanded. TeX is never
run, and every step has a limit.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

MOST_TEXT = 4_000_000
"""Characters of the whole text, before and after macros are expanded."""
_MOST_INPUTS, _DEEPEST, _MOST_EXPANSIONS = 200, 12, 20_000
_DOCUMENT = re.compile(r"\\begin\s*\{document\}")
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*\n?[ \t]*")
_HIDDEN = re.compile(r"\\begin\s*\{comment\}.*?\\end\s*\{comment\}|\\iffalse\b.*?\\fi\b", re.DOTALL)
_INPUT = re.compile(
    r"\\(?:input|include|subfile)(?![A-Za-z])\s*(?:\{\s*([^{}\n]{1,200}?)\s*\}|([\w./-]{1,200}))"
)
_DEFINITION = re.compile(
    r"\\(?:(?:re|provide)?newcommand\*?|renewcommand\*?|providecommand\*?|DeclareMathOperator\*?)\s*"
    r"(?:\{\s*\\([A-Za-z]+)\s*\}|\\([A-Za-z]+))\s*(?:\[(\d)\])?\s*(?:\[([^\]\n]{0,200})\])?\s*(?=\{)"
)
_DEF = re.compile(r"\\def\s*\\([A-Za-z]+)\s*((?:#\d){0,9})\s*(?=\{)")
_NAME = re.compile(r"\\([A-Za-z]+)")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def decode(data: bytes) -> str:
    """A source file as text: UTF-8 where it is that, else Latin-1."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return data.decode("latin-1").replace("\r\n", "\n")


def main_file(files: Mapping[str, bytes]) -> str:
    """The file that holds the document, "" where none does; of several the largest that no other
    one includes.
    """
    texts = {path: decode(data) for path, data in files.items() if path.endswith((".tex", ".ltx"))}
    holders = {path: text for path, text in texts.items() if _DOCUMENT.search(text)}
    included = {
        _find_file(a or b, path, files)
        for path, text in texts.items()
        for a, b in _INPUT.findall(without_comments(text))
    }
    free = {path: text for path, text in holders.items() if path not in included} or holders
    return max(free or texts, key=lambda path: (len(texts[path]), path), default="")


def without_comments(text: str) -> str:
    """Text without comments and what is switched off."""
    return _HIDDEN.sub("", _COMMENT.sub(r"\1", text[:MOST_TEXT]))


def _find_file(name: str, holder: str, files: Mapping[str, bytes]) -> str:
    """The file that an input means, "" for none: beside the one that names it, or from the root."""
    for folder in ("", posixpath.dirname(holder)):
        for end in ("", ".tex"):
            path = posixpath.normpath(posixpath.join(folder, name + end))
            if path in files and not path.startswith(".."):
                return path
    return ""


@dataclass
class _Joining:
    files: Mapping[str, bytes]
    count: int = 0
    size: int = 0
    problems: dict[str, None] = field(default_factory=dict)

    def text(self, path: str, above: tuple[str, ...] = ()) -> str:
        text = without_comments(decode(self.files[path]))
        self.count += 1
        self.size += len(text)
        if self.size > MOST_TEXT or self.count > _MOST_INPUTS or len(above) > _DEEPEST:
            self.problems["the source is cut: it is larger than is read"] = None
            return ""

        def included(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            target = _find_file(name, path, self.files)
            if not target or target in (*above, path):
                if target == "" and name.rpartition(".")[2] not in {"pgf", "tikz"}:
                    self.problems[f"the file {name} is missing"] = None
                return " "
            return f"\n{self.text(target, (*above, path))}\n"

        return _INPUT.sub(included, text)


def joined(files: Mapping[str, bytes], path: str) -> tuple[str, tuple[str, ...]]:
    """The text of a document with all that it includes, and sentences on what is missing."""
    joining = _Joining(files)
    return joining.text(path), tuple(joining.problems)


# Macros of the paper's own.


@dataclass(frozen=True, slots=True)
class _Macro:
    body: str
    arguments: int = 0
    default: str | None = None


def braced(text: str, start: int) -> tuple[str, int]:
    """What stands in the braces that open at `start`, and the place after them; to the end of the
    text where they do not close.
    """
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0:
            return text[start + 1 : match.start()], match.end()
    return text[start + 1 :], len(text)


def argument(text: str, at: int) -> tuple[str, int]:
    """The next argument from a place: a group, a command or one character."""
    while at < len(text) and text[at] in " \t\n":
        at += 1
    if at < len(text) and text[at] == "{":
        return braced(text, at)
    if match := _NAME.match(text, at):
        return match[0], match.end()
    return text[at : at + 1], at + 1


def optional(text: str, at: int) -> tuple[str | None, int]:
    """An argument in square brackets, None where there is none."""
    start = at
    while at < len(text) and text[at] in " \t":
        at += 1
    if at < len(text) and text[at] == "[":
        end = text.find("]", at)
        if 0 <= end - at < 2_000:
            return text[at + 1 : end], end + 1
    return None, start


def expanded(text: str) -> str:
    """The text with its own macros expanded and their definitions taken out."""
    macros, plain = _definitions(text)
    if not macros:
        return plain
    return "".join(_Expansion(macros).pieces(plain, 0))[:MOST_TEXT]


def _definitions(text: str) -> tuple[dict[str, _Macro], str]:
    macros, pieces, last = dict[str, _Macro](), list[str](), 0
    matches: Iterable[re.Match[str]] = sorted(
        (*_DEFINITION.finditer(text), *_DEF.finditer(text)), key=lambda match: match.start()
    )
    for match in matches:
        if match.start() < last:
            continue
        body, end = braced(text, match.end())
        pieces.append(text[last : match.start()])
        last = end
        if match.re is _DEF:
            macros[match[1]] = _Macro(body, match[2].count("#"))
        else:
            macros[match[1] or match[2]] = _Macro(body, int(match[3] or 0), match[4])
    return macros, "".join((*pieces, text[last:]))


class _Expansion:
    """Expands macros within a number of expansions and characters."""

    def __init__(self, macros: Mapping[str, _Macro]) -> None:
        self.macros, self.left, self.room = macros, _MOST_EXPANSIONS, MOST_TEXT

    def pieces(self, text: str, depth: int) -> Iterator[str]:
        at = 0
        while self.room > 0 and (match := _NAME.search(text, at)):
            yield self._within_room(text[at : match.start()])
            macro = self.macros.get(match[1])
            at = match.end()
            if macro is None or depth > _DEEPEST or self.left <= 0:
                yield self._within_room(match[0])
                continue
            self.left -= 1
            values, at = self._arguments(macro, text, at)
            body = re.sub(r"#(\d)", lambda m: values.get(m[1], ""), macro.body)  # noqa: B023
            yield from self.pieces(body, depth + 1)
        yield self._within_room(text[at:])

    def _within_room(self, text: str) -> str:
        text = text[: self.room]
        self.room -= len(text)
        return text

    def _arguments(self, macro: _Macro, text: str, at: int) -> tuple[dict[str, str], int]:
        values = dict[str, str]()
        for number in range(1, macro.arguments + 1):
            if number == 1 and macro.default is not None:
                own_value, at = optional(text, at)
                values["1"] = macro.default if own_value is None else own_value
            else:
                values[str(number)], at = argument(text, at)
        return values, at
