"""Comparing the words of two error messages: tolerant where wording varies, strict where it is
the failure.

Tolerated: paths, addresses, line numbers, other numbers, the class prefix that Python 3.10 puts
before a method ("Net.forward()"), names that the program itself defines. Strict: quoted names of
libraries, operand shapes and dtypes. Source of the distinctions: what varied between report and
rerun over real issues, and the crash buckets of Issue2Test (arXiv 2503.16320).
"""

import re
from collections import Counter
from difflib import SequenceMatcher

from bot.rules.signatures.rewordings import canonical

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PATH = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][\w.+@~-]+){2,}[/\\]?")
# A bracket behind a name or another bracket is an index, no shape.
_SHAPE = re.compile(r"\b\d+(?:x\d+)+\b|(?:(?<![\w\]'\"])\[|\()\s*\d+(?:\s*,\s*\d+)*\s*,?\s*[\])]")
_NUMBER = re.compile(r"(?<![\w<])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w>])", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`]([A-Za-z_][\w.]*)['\"`]")
_TOKEN = re.compile(r"<\w+>|\w+(?:\.\w+)*|[^\w\s]")
_CURLY = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})

_VARYING = (
    (re.compile(r"https?://\S+"), "<url>"),
    (_PATH, "<path>"),
    (re.compile(r"0x[0-9a-fA-F]{4,}"), "<addr>"),
    (re.compile(r"\bline \d+\b"), "line <n>"),
    (re.compile(r"\b(?:[A-Za-z_]\w*\.|<locals>\.)+([A-Za-z_]\w*\(\))"), r"\1"),
    (re.compile(r"\b(?:__main__|main|builtins)\.(\w+)"), "<name>"),
)

# Other names of one class: Python renamed it, or had it twice.
_RENAMED = {
    "re.error": "PatternError",
    "sre_constants.error": "PatternError",
    "IOError": "OSError",
    "EnvironmentError": "OSError",
    "socket.timeout": "TimeoutError",
}

ENOUGH = 0.85
_MOST_TOKENS = 1500


def strip_ansi(text: str) -> str:
    """Text without terminal escape sequences."""
    return _ANSI.sub("", text)


def normalise(message: str, own_names: frozenset[str] = frozenset()) -> str:
    """A message with everything that may vary replaced by a word in angle brackets; whitespace
    collapsed.
    """
    text = canonical(strip_ansi(message).translate(_CURLY))
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    if own_names:
        own = "|".join(map(re.escape, sorted(own_names)))
        text = re.sub(rf"\b(?:{own})\b", "<name>", text)
    return " ".join(text.split())


def shapes(message: str) -> tuple[str, ...]:
    """The operand shapes in a message, in order, without spaces: "14x7", "(2,3)"; brackets of
    either kind count as the same.
    """
    found = _SHAPE.findall(_PATH.sub("<path>", strip_ansi(message)))
    return tuple(re.sub(r"[\[(](.*?),?[\])]", r"(\1)", "".join(shape.split())) for shape in found)


def core(message: str) -> str:
    """The phrase that must be found again: the first line with at least three words, or all
    lines before it together.
    """
    phrase = ""
    for line in message.splitlines():
        phrase = f"{phrase} {line.strip()}".strip()
        if len(phrase.split()) >= 3:
            break
    return phrase


def tokens(text: str) -> list[str]:
    """Words and signs, lower case, numbers as "<n>"."""
    return _TOKEN.findall(_NUMBER.sub("<n>", text).lower())[:_MOST_TOKENS]


def resemblance(reported: str, seen: str, own_names: frozenset[str] = frozenset()) -> float:
    """How much of the reported core phrase occurs, in order, in the message that was seen: 0 to 1.

    0 as well when a quoted library name of the reported phrase is missing from what was seen. A
    phrase of one or two words must be equal. Reported text that was cut with an ellipsis is
    compared as far as it goes.
    """
    phrase = normalise(core(reported), own_names).removesuffix("...").removesuffix("\u2026").strip()
    whole = normalise(seen, own_names)
    wanted, given = tokens(phrase), tokens(whole)
    if not wanted:
        return 1.0
    if len(wanted) <= 2:  # too short for a resemblance: a key, a number
        return float(phrase.lower() in {normalise(core(seen), own_names).lower(), whole.lower()})
    names = {name.lower() for name in _QUOTED.findall(phrase)} - {
        name.lower() for name in own_names
    }
    if any(name not in whole.lower() for name in names):
        return 0.0
    blocks = SequenceMatcher(None, wanted, given, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(wanted)


def same_shapes(reported: tuple[str, ...], seen: str) -> bool:
    """Whether the message that was seen contains every reported shape."""
    return Counter(reported) <= Counter(shapes(seen))


def same_exception(reported: str, seen: str, bases: tuple[str, ...] = ()) -> bool:
    """Whether two exception names mean the same class: the module and a leading underscore do
    not count, a base class does only for names that libraries have moved (the reported one must
    be an ancestor, and not one of the roots).
    """
    names = (_RENAMED.get(name, name) for name in (reported, seen))
    short, other = (name.rsplit(".", 1)[-1].lstrip("_") for name in names)
    moved = short not in {"Exception", "BaseException", "Warning"}
    return short == other or (moved and short in {base.lstrip("_") for base in bases})
