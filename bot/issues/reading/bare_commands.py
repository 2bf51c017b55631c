"""The commands of a report that stand in its text without a mark around them."""

import re
from collections.abc import Iterator, Sequence

from bot.issues.reading.markdown import ProseLine, polarity
from bot.kernel import exception_names
from bot.kernel.bug import Quote, ShellCommand
from bot.kernel.commands import PLACE, fill_placeholders, read_commands

_MOST, _MOST_LINES, _MOST_WORDS = 8, 400, 100

# What starts a command, the words that lead up to it, and those after it that are the sentence's
# again.

_WIDE = r"\u3000-\u303f\u4e00-\u9fff\uff00-\uffef"
"""Chinese characters and marks, which stand beside a command without a blank."""
_START = re.compile(
    rf"(?<![^\s(:*_\[{_WIDE}])(?:sudo\s)?(?:[A-Z_][A-Z0-9_]{{0,40}}=\S{{1,80}}\s{{1,4}}){{0,6}}"
    r"(?:(?:poetry|uv|pipenv|srun|xvfb-run)\s(?:run\s)?(?:-{1,2}\S{1,80}\s){0,8})?"
    r"(?:\"?(?:[^\s\"]{1,200}[/\\])?[Pp]ython[\d.]{0,5}(?:\.exe)?\"?"
    r"|pytest|py\.test|torchrun|accelerate\slaunch|deepspeed|bash|sh"
    r"|(?<=uv run )[\w./-]{1,200}\.py|[\w./\\-]{1,200}\.py(?=\s--?[A-Za-z])"
    r"|\./[\w./-]{1,200}\.sh)(?=\s{1,4}\S|$)"
)
_STEP = re.compile(r"^(?:cd|export|git clone|pip3? install|conda activate|source)\s")
_ORNAMENT = re.compile(r"^(?:[\s>*_#+-]|\d{1,3}[.)]\s){0,12}(?:[$%]\s)?")
_LEADS = re.compile(
    r"\b(?:r[ua]n(?:ning|s)?|execut(?:e|es|ed|ing)|launch(?:ed|ing)?|start(?:ed|ing)?|call(?:ed|ing)?"
    r"|invok(?:ed?|ing)|typ(?:ed?|ing)|us(?:ed?|ing)|try|tried|trying|did|with|via|by|command|script"
    r"|reproduc\w{1,5}|steps?|cmd)\b[^.!?\n]{0,40}$"
    r"|(?:\u8fd0\u884c|\u6267\u884c|\u8dd1|\u7528|\u547d\u4ee4|\u8f93\u5165|\u542f\u52a8|\u8bad\u7ec3|\u6d4b\u8bd5)[^.!?\n\u3002\uff01\uff1f]{0,40}$",
    re.IGNORECASE,
)
_NO_RUN = re.compile(
    r"\b(?:instead of|rather than|without|not|never|don't|can't)\b[^.!?]{0,20}$"
    r"|(?:\u4e0d|\u6ca1|\u65e0\u6cd5)[^.!?\u3002\uff0c]{0,8}$",
    re.I,
)
_END_OF_COMMAND = re.compile(rf"[\u3001\u3002\uff01-\uff1f]|(?<!\S)[{_WIDE}]")
"""Where a sentence in Chinese goes on."""
_VERBS = frozenset(
    """
    fails failed works worked gives gave raises raised throws threw crashes crashed returns returned
    runs ran shows showed prints produces hangs stops results leads errors dies exits and but then
    or it i we you this that there is was are were does did has have should would will can cannot
    could which when where because while after before first again now here below above directly
    """.split()  # noqa: SIM905
)
_SMALL = frozenset(("a", "an", "the", "in", "on", "for", "from", "with", "to", "as", "at", "by"))
_INSTALLER = "setup.py"


def find_bare_commands(prose: Sequence[ProseLine]) -> Iterator[ShellCommand]:
    """The commands that stand on lines of the text as they are: alone, with the `cd` before them,
    or behind words that say they were run.
    """
    steps, after = list[str](), 0
    lines = prose[:_MOST_LINES]
    for at, line in enumerate(lines):
        text = PLACE.sub("", line.text[:2000].partition(exception_names.TITLE)[0])
        plain = _ORNAMENT.sub("", text)
        if at < after or not text.strip():
            continue
        if _STEP.match(plain):
            steps.append(plain.rstrip("*_ "))
            continue
        starts = [match.start() for match in _START.finditer(text)][:_MOST]
        following = _continuation(text, lines[at + 1 : at + _MOST_WORDS]) if starts else []
        after = at + 1 + len(following)
        for start in starts:
            # Of a quotation, the whole is read as one.
            if any(text.count(mark, 0, start) % 2 and mark in text[start:] for mark in '`"'):
                continue
            words = _without_prose(fill_placeholders(" ".join([text[start:], *following])))
            rows = read_commands([*steps, words]) if _is_run(text, start) else ()
            # The installation of a repository is no program of it.
            rows = tuple(row for row in rows if row.argv[0] != _INSTALLER)
            quote = Quote(text=text.strip()[:600], line=line.number)
            yield from (command.model_copy(update={"quote": quote}) for command in rows)
            if rows:
                break
        else:
            steps = []


def _is_run(text: str, start: int) -> bool:
    """Whether a command in a line is the whole line, or the words before it say that it was run
    and none that it was not, or that it works.
    """
    before = text[:start]
    if len(_ORNAMENT.sub("", before).strip("*_ ")) == 0:
        return True
    if not _LEADS.search(before[-80:]) or _NO_RUN.search(before[-60:]):
        return False
    return polarity(text, start, min(len(text), start + 1)) != "good"


def _continuation(text: str, following: Sequence[ProseLine]) -> list[str]:
    """The lines after a command that belong to it: after a backslash, or options alone."""
    parts = list[str]()
    for line in following:
        stripped = line.text.strip()
        is_broken = text.rstrip().endswith("\\")
        if not stripped or not (is_broken or re.match(r"--?[A-Za-z]", stripped)):
            break
        parts.append(stripped[:2000])
        text = stripped
    return parts


def _without_prose(text: str) -> str:
    """A command up to where the sentence goes on."""
    words, is_open = list[str](), False
    every = text.replace("\\ ", " ").split()[:_MOST_WORDS]
    for at, word in enumerate(every):
        plain = word.strip("*_,.;:!?()").lower()
        is_value = bool(words) and words[-1].startswith("-") and at == len(every) - 1
        is_prose = plain in _VERBS or (plain in _SMALL and not is_value) or word.startswith("(")
        if at and not is_open and is_prose:
            break
        if not is_open and (end := _END_OF_COMMAND.search(word)):
            words += [word[: end.start()]] if end.start() else []
            break
        is_open ^= (word.count('"') + word.count("'")) % 2 == 1
        words.append(word)
        if not is_open and at and word.endswith((",", ";", ":")):
            break
    line = " ".join(words).rstrip("*_ \\")
    if "]" in line and "[" not in line:
        line = line.partition("]")[0]
    return re.sub(r"[.,;:!?)]{1,3}$", "", line)
