"""The line that names an exception, and how far its message goes.

A name is an exception's either by itself (by its ending, as a class of Python's own library, by a
module such as `errors`), or only by its position: `pkg.mod.InvalidThing: some words` alone at the
end of a log. Anything else of the form `Name: words` (`InvalidThing: 3`, `Model: resnet`) may be
one or the other, which only a run can decide; see `bot.rules.signatures.readings`.
"""

import re
import sys
from collections.abc import Sequence

from bot.rules.intake import library
from bot.rules.intake.text import NUMBER, is_value

_DOTTED = r"(?:[A-Za-z_]\w{0,60}\.){0,8}"
_KNOWN = (
    r"[A-Za-z_]\w{0,80}?(?:Error|Exception|KeyboardInterrupt|Fault|Failed|Unsupported|StackTrace)|KeyboardInterrupt"
    r"|SystemExit|Exception|StopIteration|StopAsyncIteration|Unsupported"
    r"|(?:Base)?ExceptionGroup|ConstraintViolation\w*|BackendCompilerFailed|Timeout"
)
LONE = re.compile(rf"^(?P<exc>{_DOTTED}(?:{_KNOWN}))(?::(?:\s(?P<msg>.*)|$)|\s*$)")
NAMED = re.compile(rf"^(?P<exc>{_DOTTED}[A-Za-z_]\w{{0,80}})(?::(?:\s?(?P<msg>.*)|$)|\s*$)")
INLINE = re.compile(
    rf"(?<![\w./`'\"])(?P<exc>{_DOTTED}[A-Z]\w{{0,60}}(?:Error|Exception)): "
    rf"(?P<msg>[^\s].{{0,2000}})"
)
_SUFFIXED = re.compile(rf"{_DOTTED}(?:{_KNOWN})")
_CLASS = re.compile(r"_{0,2}[A-Z]\w*[a-z]\w*")
_COMPOUND = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]")
_HOMES = frozenset(
    {"exceptions", "exception", "exc", "excs", "errors", "error", "errors_impl", "errorfactory"}
)
_LOWER = re.compile(r"[a-z]*error|timeout")
_OTHERS = re.compile(r"log(?:s|ger|gers|ging)?|self|cls")
_WORDS = re.compile(r"(?<![^\s('\"`])[A-Za-z][A-Za-z'-]+(?![^\s.,:;!?)'\"`])")
_CODE = re.compile(r"^\W*\w+\s?=|^lambda\b|\| None\b|\s#\s|[,({\[=|]\s*$")
_FEW = 2
TITLE = "Traceback (most recent call last)"
LINK = re.compile(
    r"During handling of the above exception|The above exception was|The preceding is the "
    r"original exception"
    r"|direct cause of the following"
)
_WRAPS = re.compile(r"\b(?:encountered|occurred|raised) (?:when|while|during) ")
_STOP = re.compile(
    r"^\s*(?:-{10,}|={10,}|\*{10,}|_{10,})\s*$|^For simplicity, JAX has removed|^The stack trace "
    r"below excludes"
    r"|^Traceback \(most recent|^Original Traceback \(most recent"
    r"|^(?:>>> |In ?\[\d*\]:|\$ )|^Process finished with exit code|^Exception ignored in|^Set the "
    r"environment variable HYDRA"
    r"|^\[\w+\d*\]:\[[WIE]\d|^\d{4}-\d\d-\d\d[ T]\d\d:\d\d|^[WIE]\d{4} "
    r"\d\d:|^(?:INFO|DEBUG|WARNING):|^#{1,6} \w"
    r"|^NOTE: If your import|^You can suppress this exception"
    r"|^wandb:|^\+-{5,}|^  warnings\.warn\("
)

_FRAME = re.compile(r"^\s*File \"[^\"]{1,300}\", line \d{1,7}, in \S")


def lone(line: str) -> re.Match[str] | None:
    """A line that names an exception in any position, with groups `exc` and `msg`."""
    match = LONE.match(line)
    if match is not None or (":" not in line and "." not in line):
        return match
    match = NAMED.match(line)
    words = (match["msg"] or "").strip() if match else ""
    if match is None or not named(match["exc"]) or re.fullmatch(NUMBER, words):
        return None
    # Alone on its line, without a module, it is as well a word.
    return match if "." in match["exc"] or words else None


def likely(line: str) -> re.Match[str] | None:
    """A line that names an exception if it is where a program ends: a dotted class (or `error`)
    before some words.
    """
    match = NAMED.match(line)
    path, _, name = match["exc"].rpartition(".") if match else ("", "", "")
    said = (match["msg"] or "") if match else ""
    spelled = _CLASS.fullmatch(name) or _LOWER.fullmatch(name)
    if not path or not spelled or "Warning" in name or path[0].isupper():
        return None
    if any(map(_OTHERS.fullmatch, path.split("."))) or is_value(said) or _CODE.search(said):
        return None
    return match if len(_WORDS.findall(said)) >= _FEW else None


def named(name: str) -> bool:
    """Whether a name by itself is that of an exception."""
    *modules, last = name.split(".")
    if suffixed(name) or "Warning" in last or any(map(_OTHERS.fullmatch, modules)):
        return suffixed(name)
    standard = modules[0] in sys.stdlib_module_names if modules else is_compound(last)
    home = not _HOMES.isdisjoint(modules) and _CLASS.fullmatch(last)
    return bool(home) or (standard and last in library.EXCEPTIONS)


def suffixed(name: str) -> bool:
    """Whether a name ends as those of exceptions do."""
    return bool(_SUFFIXED.fullmatch(name))


def is_class(name: str) -> bool:
    """Whether a name, dotted or not, is spelled as classes are."""
    return bool(_CLASS.fullmatch(name.rpartition(".")[2]))


def could_be(name: str) -> bool:
    """Whether a name is spelled as an exception's may be: a class of a module, or one put
    together of several words. A single word is as well a label.
    """
    return is_class(name) if "." in name else is_compound(name)


def is_compound(name: str) -> bool:
    """Whether a name is that of a class, put together of several words."""
    return bool(_CLASS.fullmatch(name) and _COMPOUND.search(name))


def ends(lines: Sequence[str], at: int, prefix: str = "") -> bool:
    """Whether what was printed ends before line `at`."""
    if at >= len(lines):
        return True
    line = without(prefix, lines[at])
    return not line.strip() or bool(LINK.search(line) or _STOP.match(line))


def _is_beyond(line: str, kept: Sequence[str]) -> bool:
    """Whether a line is no part of a message. A frame is one only where the message announces it,
    as AutoGraph's "in user code:" does.
    """
    frame = _FRAME.match(line) and not any(text.rstrip().endswith(":") for text in kept)
    return bool(LINK.search(line) or _STOP.match(line) or TITLE in line or frame)


def message(
    lines: Sequence[str], start: int, first: str, prefix: str = "", tight: bool = False
) -> tuple[str, int]:
    """The whole message that begins on line `start` with the words `first`, and the line after
    it.
    """
    nested = first.find(TITLE)
    if nested >= 0:
        return first[:nested].rstrip(" :"), start + 1
    kept = [first]
    for at in range(start + 1, min(len(lines), start + 400)):
        line = without(prefix, lines[at])
        if _is_beyond(line, kept):
            break
        unsaid = kept[-1].rstrip().endswith(":") or bool(_WRAPS.search(kept[-1]))
        if not line.strip():
            following = (without(prefix, text) for text in lines[at + 1 : at + 4] if text.strip())
            if tight or not _continues(next(following, ""), unsaid and at - start < 4):
                break
        elif (tight and not line[:1].isspace()) or (
            LONE.match(line) and len(kept) > 1 and not unsaid
        ):
            break
        kept.append(line)
    return "\n".join(kept).strip()[:20_000], start + len(kept)


def _continues(line: str, unsaid: bool) -> bool:
    """Whether a line belongs to the message above a gap; `unsaid` when that announces one."""
    indented = line[:1].isspace() and not line.lstrip().startswith(("File ", "at "))
    return bool(unsaid and line) or indented


def without(prefix: str, line: str) -> str:
    """The line without the prefix that every line of a log carries."""
    stripped = prefix.strip()
    if line.startswith(prefix) or not line.lstrip().startswith(stripped):
        return line.removeprefix(prefix)
    return line.lstrip()[len(stripped) :].removeprefix(" ") if stripped else line
