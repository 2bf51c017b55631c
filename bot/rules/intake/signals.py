"""Deaths that Python does not report itself: signals and aborts, as shells and C++ print them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "SIGSEGV",
        re.compile(
            r"Segmentation fault|\bSIGSEGV\b|exit(?:ed with)? code:? "
            r"-?(?:139|11)\b|0xC0000005|access violation",
            re.I,
        ),
    ),
    (
        "SIGFPE",
        re.compile(r"Floating[ -]point exception|\bSIGFPE\b|exit code:? -?(?:136|8)\b", re.I),
    ),
    ("SIGBUS", re.compile(r"Bus error|\bSIGBUS\b", re.I)),
    ("SIGILL", re.compile(r"Illegal instruction|\bSIGILL\b", re.I)),
    (
        "SIGKILL",
        re.compile(
            r"^\s*Killed\s*$|\bSIGKILL\b|exit code:? -?(?:137|9)\b|^\S{0,60}\s*\d{0,8}\s*Killed\s"
        ),
    ),
    (
        "SIGABRT",
        re.compile(
            r"^Aborted\b|\bSIGABRT\b|exit code:? -?(?:134|6)\b|terminate called|Fatal Python "
            r"error: Aborted|^(?:free"
            r"|malloc|corrupted|double "
            r"free|munmap_chunk|realloc)\b.{0,20}(?:\(\)|corruption|unsorted)"
        ),
    ),
)
_WHAT = re.compile(r"^\s*what\(\):\s*(?P<text>.*)$")
_DUMPED = re.compile(r"\(core dumped\)|\bAborted\b")
WORDS = re.compile(
    r"\b(?:seg(?:mentation)?[ -]?fault(?:s|ed|ing)?|SIGSEGV|core dump(?:ed|s)?)\b", re.I
)


def fatal(lines: Sequence[str], at: int) -> tuple[str, str, int]:
    """The signal a line tells of, the words that go with it, and how many lines that took; ("",
    "", 0) when none.
    """
    line = lines[at]
    if len(line) > 2000:
        return "", "", 0
    for name, pattern in _SIGNS:
        if not pattern.search(line):
            continue
        words, used = line.strip(), 1
        for k, following in enumerate(lines[at + 1 : at + 6], 1):
            what = _WHAT.match(following)
            if what:
                words, used = what["text"].strip(), k + 1
            elif _DUMPED.search(following):
                used = k + 1
        return name, words, used
    return "", "", 0
