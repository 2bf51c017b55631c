"""Outside text made inert, and programs that cannot be shown exactly as they are."""

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any, TypeVar

from bot.kernel.redaction import credentials, redact
from bot.kernel.values import Record

# Outside text made inert: what a stranger wrote can be shown in a comment, but cannot act in it.
#
# Three shapes of output: `prose` (one line of Markdown), `code_span` (one line, monospaced) and
# `fence` (a block). Text passes `clean`, which removes what the eye cannot see; `redact` removes
# what nobody should see.

# A zero-width space as an entity, so that the source of a comment holds nothing invisible.
BREAK = "&#8203;"

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_ESCAPE = re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]")  # what a sequence begins with, found faster
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")

# A path is looked for only where one can begin, and is of bounded depth: hostile text must not cost
# quadratic time.
_FOLDERS = r"(?<![\w./\\-])(?:[A-Za-z]:)?(?:[/\\]+[^\s/\\'\"`:|<>(),;]{1,120}){0,40}?[/\\]+"
_SITE_PACKAGES = re.compile(_FOLDERS + r"(site-packages|dist-packages)(?=[/\\])")
_STDLIB = re.compile(_FOLDERS + r"(python3?\.\d+)(?=[/\\])")
_HOME = re.compile(
    r"(?<![\w.])(?:(?:[A-Za-z]:)?[/\\](?:home|Users)[/\\][^\s/\\'\"`:|<>(),;]+|/root)(?=[/\\])"
)
# Each with words that it needs: they are looked for a thousand times faster than paths.
_MACHINE_PATHS = (
    (_SITE_PACKAGES, ("-packages",), r".../\1"),
    (_STDLIB, ("/python", "\\python"), r".../\1"),
    (_HOME, ("home", "Users", "/root"), "~"),
)

_INLINE_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_SPECIAL = re.compile(r"[\\`*_\[\]|~]")
_LINE_START = re.compile(r"^(?:[#+\-=>/]|\d+(?=[.)]))")

# Comments of ours are found by a hidden marker; no outside text, not even in code, may hold one.
_MARKER = re.compile(r"<!--(?=\s*reprise\b)", re.IGNORECASE)
# Some bots take commands from the bare lines of a comment, those of code among them.
_COMMAND = re.compile(
    r"^[ \t]{0,3}(?=/[a-z][\w-]*(?:\s|$)|@[\w-]+[ \t]+\w)", re.IGNORECASE | re.MULTILINE
)
ACTS = re.compile(f"{_MARKER.pattern}|{_COMMAND.pattern}", re.IGNORECASE)
"""What of a line `inert` would take the effect of."""

# GitHub links hashes of commits, and draws emoji by their names.
_COMMIT = re.compile(r"(?<![\w&#])(?<!\d\.)[0-9a-f]{7,40}(?!\w)", re.IGNORECASE)
# One that stands as a word of its own; code needs no break, so that it can be copied. Digits alone
# are rather a number.
_HASH = re.compile(
    r"(?<![^\s(\[,;:\"'])(?=[0-9]*[a-f])[0-9a-f]{7,40}(?![^\s)\],;:.!?\"'\u2026]|[.:]\w)",
    re.IGNORECASE,
)
_MONOSPACED = re.compile(f"{_INLINE_CODE.pattern}|{_HASH.pattern}", re.IGNORECASE)
_EMOJI = re.compile(r":(?=([\w+\\-]{1,50}):)")
R = TypeVar("R", bound=Record)


def clean(text: str) -> str:
    """Text without terminal control, invisible and direction-changing characters, or our marker;
    line ends become newlines.
    """
    text = (
        text.replace("\r\n", "\n")
        .replace("\r", "\n")
        .replace("\u2028", "\n")
        .replace("\u2029", "\n")
    )
    if _ESCAPE.search(text):
        text = _ANSI.sub("", text)
    return _MARKER.sub("<!- -", text.translate(_SHOWN_CHARACTERS))


class _VisibleCharacters(dict[int, str]):
    """What is shown for a character, found out once; long hostile texts pass here many times."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        category = unicodedata.category(char)
        hidden = category in ("Cc", "Cf") or char in _FILLERS or _SELECTORS.match(char)
        text_of_character = {"Cs": "\ufffd", "Zs": " "}.get(category, "" if hidden else char)
        return self.setdefault(code, text_of_character)


_SHOWN_CHARACTERS = _VisibleCharacters({ord(char): char for char in "\n\t"})


def shorten_paths(text: str) -> str:
    """Text in which a path of some machine starts at the part that means the same everywhere."""
    for path, words, replacement in _MACHINE_PATHS:
        if any(word in text for word in words):
            text = path.sub(replacement, text)
    return text


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, the last one an ellipsis when something was left out."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def one_line(text: str) -> str:
    """Text on one line, blanks joined."""
    return " ".join(clean(text).split())


def _defused(text: str) -> str:
    """Breaks whatever GitHub turns into a notification, a reference or a link, in text that is
    already escaped.
    """
    text = text.replace("@", "@" + BREAK).replace("://", f":{BREAK}//")
    text = re.sub(r"(?<!&)#(?=\w)", "#" + BREAK, text)
    text = _COMMIT.sub(lambda match: BREAK.join(re.findall(".{1,6}", match.group())), text)
    text = _EMOJI.sub(
        lambda match: (
            ":" if match[1].isdigit() and match[1] not in {"100", "1234"} else ":" + BREAK
        ),
        text,
    )
    text = re.sub(r"(?i)\b(gh)-(?=\d)", rf"\1{BREAK}-", text)
    return re.sub(r"(?i)(?<![a-z0-9])(www)\.", rf"\1{BREAK}.", text)


def html_text(text: str) -> str:
    """One line for the inside of an HTML element, such as the summary of a fold."""
    return _defused(html.escape(one_line(text), quote=True)).replace("$", "&#36;")


def _plain(text: str) -> str:
    escaped_text = _SPECIAL.sub(lambda match: "\\" + match.group(), html.escape(text, quote=False))
    return _defused(escaped_text).replace("$", "&#36;")


def prose(text: str, *, limit: int = 600, cell: bool = False) -> str:
    """One line of Markdown that can only be read. `words in backticks` stay monospaced, and the
    hash of a commit becomes so; `cell` makes it fit for a table.
    """
    line = clip(one_line(text), limit)
    parts: list[str] = []
    end = 0
    for match in _MONOSPACED.finditer(line):
        parts += [
            _plain(line[end : match.start()]),
            code_span(match.group(1) or match.group(), limit=limit, cell=cell),
        ]
        end = match.end()
    whole_line = "".join([*parts, _plain(line[end:])])
    return whole_line if cell else _LINE_START.sub(_escaped_start, whole_line)


def _escaped_start(match: re.Match[str]) -> str:
    return match.group() + "\\" if match.group()[0].isdigit() else "\\" + match.group()


def code_span(text: str, *, limit: int = 300, cell: bool = False) -> str:
    """One monospaced line; `cell` makes it fit for a table."""
    line = clip(one_line(text), limit)
    if not line:
        return ""
    if cell:
        line = re.sub(r"\\(?=\|)", r"\\ ", line).replace("|", "\\|")
    ticks = "`" * (_longest_run(line, "`") + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def inert(text: str) -> str:
    """Text of several lines that no bot takes for its own, as a fence holds it."""
    return _COMMAND.sub("    ", clean(text))


def fence(text: str, tag: str = "") -> str:
    """A fenced block whose marks are longer than any run of backticks inside, so that nothing in
    it can close it.
    """
    body = inert(text).strip("\n")
    ticks = "`" * max(3, _longest_run(body, "`") + 1)
    return f"{ticks}{tag}\n{body}\n{ticks}"


def _longest_run(text: str, char: str) -> int:
    return max((len(run) for run in re.findall(re.escape(char) + "+", text)), default=0)


def scrubbed(record: R, secrets: tuple[str, ...] = ()) -> R:
    """The record with every text in it cleaned; `secrets` are values that must not appear."""
    return rewritten(record, cache(lambda text: redact(clean(text), secrets)))


def rewritten(record: R, change: Callable[[str], str]) -> R:
    """The record with every text in it changed."""

    def walk(value: Any) -> Any:
        match value:
            case str():
                return change(value)
            case Mapping():
                return {walk(key): walk(item) for key, item in value.items()}
            case list() | tuple():
                return tuple(map(walk, value))
        return value

    return type(record).model_validate(walk(record.model_dump()))


# Programs that cannot be shown exactly as they are: which lines, and why. What is approved or
# proposed by reading it must be what runs.

CREDENTIAL = "what looks like a credential (if it is one, revoke it)"
HIDDEN = "invisible characters, or blanks and line ends of an unusual kind"
ACTING = "text that other bots or Reprise would take for their own"
OTHER = "text that is shown in another way than it runs"
NAME = "a file name of unusual characters or length"

_NAME = re.compile(r"(?=.{1,100}$)\w[\w.+-]*(?:/\w[\w.+-]*)*", re.ASCII)
_SHOWN_LINES = 8


@dataclass(frozen=True, slots=True)
class Unshowable:
    """Lines of a file, from 1, that are not shown as they are, and why; no lines where that is its
    name, which `file` then leaves out.
    """

    file: str
    lines: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        return (
            ", ".join(filter(None, (f"`{self.file}`", _list_lines(self.lines))))
            + f": {self.reason}"
        )


def unshowable(files: Mapping[str, str], secrets: Collection[str] = ()) -> tuple[Unshowable, ...]:
    """What of a program's files is not shown as it is; () where all of it is."""
    problems = list[Unshowable]()
    for name, text in files.items():
        plain = _NAME.fullmatch(name) is not None and redact(name, secrets) == name
        file = name if plain else "another file"
        problems += [] if plain else [Unshowable(file, (), NAME)]
        for reason, lines in _reasons(text, secrets).items():
            problems.append(Unshowable(file, tuple(sorted(lines)), reason))
    return tuple(problems)


def whole(file: str, text: str, reason: str) -> Unshowable:
    """A file of which no line is shown."""
    return Unshowable(file, tuple(range(1, text.removesuffix("\n").count("\n") + 2)), reason)


def _reasons(text: str, secrets: Collection[str]) -> dict[str, set[int]]:
    # What decides is the text as a fence shows it; the reasons only explain.
    if inert(redact(clean(text), secrets)).strip("\n") == text.removesuffix("\n"):
        return {}
    lines_by_reason = dict[str, set[int]]()
    for reason, first, last in (*_characters(text), *_credentials(text, secrets)):
        lines_by_reason.setdefault(reason, set()).update(range(first, last + 1))
    return lines_by_reason or {OTHER: set(whole("", text, OTHER).lines)}


def _characters(text: str) -> Iterator[tuple[str, int, int]]:
    for number, line in enumerate(text.split("\n"), 1):
        if ACTS.search(line):
            yield ACTING, number, number
        elif clean(line) != line:
            yield HIDDEN, number, number


def _credentials(text: str, secrets: Collection[str]) -> Iterator[tuple[str, int, int]]:
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    for start, end in credentials(text, secrets):
        yield CREDENTIAL, bisect_right(starts, start), bisect_right(starts, end - 1)


def _list_lines(lines: tuple[int, ...]) -> str:
    """Sorted line numbers in words: "lines 3 to 8 and 12"; "" for none."""
    spans = list[tuple[int, int]]()
    for line in lines:
        first = spans.pop()[0] if spans and spans[-1][1] == line - 1 else line
        spans.append((first, line))
    words = [str(a) if a == b else f"{a} to {b}" for a, b in spans]
    words[_SHOWN_LINES:] = (
        [f"{len(words) - _SHOWN_LINES} more"] if len(words) > _SHOWN_LINES else []
    )
    joined = " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
    return f"line{'s' if len(lines) > 1 else ''} {joined}" if lines else ""
