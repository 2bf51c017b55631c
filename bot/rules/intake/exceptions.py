"""The line that names an exception, and how far its message goes."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DOTTED = r"(?:[A-Za-z_]\w{0,60}\.){0,8}"
_KNOWN = (
    r"[A-Za-z_]\w{0,80}?(?:Error|Exception|KeyboardInterrupt|Fault|Failed|Unsupported|StackTrace)|KeyboardInterrupt"
    r"|SystemExit|Exception|StopIteration|StopAsyncIteration|Unsupported"
    r"|(?:Base)?ExceptionGroup|ConstraintViolation\w*|BackendCompilerFailed|Timeout"
)
LONE = re.compile(rf"^(?P<exc>{_DOTTED}(?:{_KNOWN}))(?::(?:\s(?P<msg>.*)|$)|\s*$)")
NAMED = re.compile(rf"^(?P<exc>{_DOTTED}[A-Za-z_]\w{{0,80}})(?::(?:\s?(?P<msg>.*)|$)|\s*$)")
INLINE = re.compile(rf"(?<![\w./`'\"])(?P<exc>{_DOTTED}[A-Z]\w{{0,60}}(?:Error|Exception)): (?P<msg>[^\s].{{0,2000}})")
LINK = re.compile(
    r"During handling of the above exception|The above exception was|The preceding is the original exception"
    r"|direct cause of the following"
)
_STOP = re.compile(
    r"^\s*(?:-{10,}|={10,}|\*{10,}|_{10,})\s*$|^For simplicity, JAX has removed|^The stack trace below excludes"
    r"|^Traceback \(most recent|^Original Traceback \(most recent"
    r"|^(?:>>> |In ?\[\d*\]:|\$ )|^Process finished with exit code|^Exception ignored in|^Set the environment variable HYDRA"
    r"|^\[\w+\d*\]:\[[WIE]\d|^\d{4}-\d\d-\d\d[ T]\d\d:\d\d|^[WIE]\d{4} \d\d:|^(?:INFO|DEBUG|WARNING):|^#{1,6} \w"
    r"|^NOTE: If your import|^You can suppress this exception"
    r"|^wandb:|^\+-{5,}|^  warnings\.warn\("
)


def message(lines: Sequence[str], start: int, first: str, prefix: str = "", tight: bool = False) -> tuple[str, int]:
    """The whole message that begins on line `start` with the words `first`, and the line after it."""
    nested = first.find("Traceback (most recent call last)")
    if nested >= 0:
        return first[:nested].rstrip(" :"), start + 1
    kept = [first]
    at = start + 1
    while at < len(lines) and at - start < 400:
        line = without(prefix, lines[at])
        if LINK.search(line) or _STOP.match(line) or "Traceback (most recent call last)" in line:
            break
        if not line.strip():
            following = next((without(prefix, text) for text in lines[at + 1 : at + 4] if text.strip()), "")
            unsaid = kept[-1].rstrip().endswith(":") and following and at - start < 4
            indented = following[:1].isspace() and not following.lstrip().startswith(("File ", "at "))
            if tight or not (unsaid or indented):
                break
        elif (tight and not line[:1].isspace()) or (LONE.match(line) and at > start + 1 and not kept[-1].strip().endswith(":")):
            break
        kept.append(line)
        at += 1
    return "\n".join(kept).strip()[:20_000], at


def without(prefix: str, line: str) -> str:
    """The line without the prefix that every line of a log carries."""
    if prefix and line.startswith(prefix):
        return line[len(prefix) :]
    stripped = prefix.strip()
    if stripped and line.lstrip().startswith(stripped):
        return line.lstrip()[len(stripped) :].removeprefix(" ")
    return line
