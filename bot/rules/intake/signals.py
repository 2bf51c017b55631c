"""Deaths that Python does not report itself: signals and aborts, as shells and C++ print them."""

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
    """The signal that a line reports, the words that go with it, and how many lines that took; ("",
    "", 0) when none.
    """
    signs = _SIGNS if len(lines[at]) <= 2000 else ()
    name = next((name for name, pattern in signs if pattern.search(lines[at])), "")
    words, used = (lines[at].strip(), 1) if name else ("", 0)
    for k, following in enumerate(lines[at + 1 : at + 6] if name else (), 2):
        if what := _WHAT.match(following):
            words = what["text"].strip()
        if what or _DUMPED.search(following):
            used = k
    return name, words, used
