"""A comment → its commands, lines of the author's own that begin with `/reproduce`, and their
options: each mistake is answered with a sentence and the closest valid word.
"""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from packaging.utils import canonicalize_name

from bot.models.config import PYTHON, REF
from bot.models.run import Choices, Command
from bot.rules.verbs import CHOICES, HABITS, PREFIX, VERBS, WORDS, Option, Word
from handlers.markdown import CODE, own_lines

MOST_COMMANDS = 5
_MOST_TEXT = 300
_MOST_WORDS = 16
_MOST_PROBLEMS = 4

# Most comments hold no command; this one pass is all that they cost.
_HINT = re.compile(rf"^ {{0,3}}{PREFIX}(?=\s|$)", re.IGNORECASE | re.MULTILINE)
_HASH = re.compile(r"[0-9a-f]{32,64}", re.ASCII)
_VERSION = re.compile(
    r"(\d{1,4}(?:\.\d{1,6}){0,3}(?:\.\*|(?:\.?(?:a|b|rc|post|dev)\d{1,9}){0,2}))(?:\+[a-z0-9.]{1,20})?",
    re.ASCII,
)
_NUMBER = re.compile(r"(\d{1,12})([sm]?)", re.ASCII)
_PATTERNS = {
    "python": re.compile(rf"{PYTHON.removesuffix('$')}(?:\.\d{{1,3}})?", re.ASCII),
    "device": re.compile("cpu|gpu", re.ASCII | re.IGNORECASE),
    "metric": re.compile(r"[a-z][a-z0-9_]{0,39}(?::(?:min|max))?", re.ASCII | re.IGNORECASE),
    "budget": re.compile(r"([1-9]\d?|100)x?", re.ASCII),
    "package": re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?", re.ASCII | re.IGNORECASE),
    # Anyone can open a pull request: what it holds is no ref of this repository.
    "ref": re.compile(rf"(?!(?:refs/)?(?:remotes/[^/]+/)?pull/){REF.pattern}", REF.flags),
}
_NORMAL: dict[str, Callable[[str], str]] = {
    "device": str.lower,
    "package": canonicalize_name,
    "metric": str.lower,
    "budget": lambda text: text.removesuffix("x"),
}
_SHOWN = 40


def parse(body: str) -> tuple[Command, ...]:
    """The commands of a comment in order: at most five, and then one that says that there were
    more.
    """
    return _commands(_lines(body))


def added(before: str, after: str) -> tuple[Command, ...]:
    """The commands of an edited comment that its earlier text did not have."""
    lines = _lines(after)
    known = set(_lines(before)) if lines else set()
    return _commands(line for line in lines if line not in known)


def _lines(body: str) -> list[str]:
    """The lines that are commands, each once, blanks joined."""
    if _HINT.search(body.replace("\r", "\n")) is None:
        return []
    lines = (
        " ".join(line.replace(CODE, "").split()) for line in own_lines(body) if _HINT.match(line)
    )
    return list(dict.fromkeys(lines))


def _commands(lines: Iterable[str]) -> tuple[Command, ...]:
    lines = list(lines)
    commands = [_command(line) for line in lines[:MOST_COMMANDS]]
    if len(lines) > MOST_COMMANDS:
        more = len(lines) - MOST_COMMANDS
        problem = (
            f"A comment may contain {MOST_COMMANDS} commands; the {more} after them were ignored."
        )
        commands.append(
            Command(text=lines[MOST_COMMANDS][:_MOST_TEXT], verb="", problems=(problem,))
        )
    return tuple(commands)


def _command(line: str) -> Command:
    text, words = line[:_MOST_TEXT], line.split()[1:]
    if len(line) > _MOST_TEXT or len(words) > _MOST_WORDS:
        limits = f"{_MOST_WORDS} words, {_MOST_TEXT} characters"
        problem = f"This line is too long for a command (at most {limits})."
        return Command(text=text, verb="", problems=(problem,))
    stated = bool(words) and "=" not in words[0]
    word = WORDS.get(words[0].lower()) if stated else WORDS["reproduce"]
    if word is None:
        return Command(text=text, verb="", problems=(_unknown(words[0]),))
    return _understood(text, word, words[1:] if stated else words)


def _understood(text: str, word: Word, rest: list[str]) -> Command:
    if not word.available:
        problem = f"`{PREFIX} {word.verb}` is not available in this version."
        return Command(text=text, verb=word.verb, problems=(problem,))
    if word.verb == "approve":
        return _approval(text, rest)
    choices, problems = read(rest, word) if word.options else (Choices(), _needless(word, rest))
    return Command(
        text=text, verb=word.verb, choices=choices, problems=tuple(problems[:_MOST_PROBLEMS])
    )


def _needless(word: Word, rest: list[str]) -> list[str]:
    """A sentence for each option. "/reproduce cancel please" is clear enough; an option would be
    lost, so it is answered.
    """
    given = (part for part in rest if "=" in part)
    return [f"`{PREFIX} {word.verb}` takes no options, such as {shown(part)}." for part in given]


def _approval(text: str, rest: list[str]) -> Command:
    plan = rest[0].strip("`<>").lower() if len(rest) == 1 else ""
    if _HASH.fullmatch(plan):
        return Command(text=text, verb="approve", argument=plan)
    problem = (
        f"`{PREFIX} approve` takes the whole hash of a waiting plan, 32 digits from 0 to 9 and a "
        "to f: copy it from the comment that shows the plan. If that shows a shorter one, it is "
        f"from an earlier version of Reprise: ask for the run again with `{PREFIX}`."
    )
    return Command(text=text, verb="approve", problems=(problem,))


def _unknown(word: str) -> str:
    near = closest(word, (known.verb for known in VERBS if known.verb != "reproduce"))
    if near:
        return f"{shown(word)} is not a command; the closest one is `{PREFIX} {near}`."
    return read([word], WORDS["reproduce"])[1][0]


def shown(word: str) -> str:
    """A word of a stranger, as a sentence of ours quotes it: short, and unable to end the
    quotation.
    """
    word = word.replace("`", "'")
    return "`" + (word if len(word) <= _SHOWN else word[: _SHOWN - 1] + "…") + "`"


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that someone may have meant, "" when none is near."""
    names = list(known)
    habit = HABITS.get(word.lower())
    if habit in names:
        return habit
    return next(iter(get_close_matches(word.lower()[:_SHOWN], names, n=1, cutoff=0.6)), "")


def read(words: Iterable[str], of: Word) -> tuple[Choices, list[str]]:
    """The choices that the words after a verb make, and a sentence for each that is not
    understood.
    """
    values: dict[str, Any] = {}
    pins: list[str] = []
    problems: list[str] = []
    given: set[str] = set()
    for word in words:
        key, _, value = word.partition("=")
        option = CHOICES.get(key.lower())
        problem = _unusable(word, key, option, of) or (
            f"`{key.lower()}=` is given twice." if key.lower() in given else ""
        )
        given.add(key.lower())
        if option is None or problem:
            problems.append(problem)
            continue
        chosen = _value(option, value.removeprefix("="))  # torch==2.1.0 is how pip has it
        if chosen is None:
            problems.append(
                f"{shown(word)} is not understood: `{option.key}=` takes {option.values}."
            )
        elif option.package:
            pins.append(f"{option.package}=={chosen}")
        else:
            values["timeout_s" if option.key == "timeout" else option.key] = chosen
    return Choices(pins=tuple(pins), **values), problems


def _unusable(word: str, key: str, option: Option | None, of: Word) -> str:
    """Why a word is no option of this command, "" when it is one."""
    if option is None:
        usual = (known for known in CHOICES.values() if known.available)
        near = closest(key, (known.key for known in usual if known.only in {"", of.verb}))
        kind = "is not an option" if "=" in word else "is neither a command nor an option"
        hint = f"; the closest one is `{near}=`." if near else "."
        return f"{shown(key if '=' in word else word)} {kind}{hint}"
    if option.only not in {"", of.verb}:
        return f"`{option.key}=` works only with `{PREFIX} {option.only}`."
    if not option.available:
        return f"`{option.key}=` is not available in this version."
    return "" if "=" in word else f"{shown(word)} needs a value: write it as `{option.example}`."


def _value(option: Option, text: str) -> str | int | None:
    if option.high:
        return _number(option, text)
    match = (_VERSION if option.package else _PATTERNS[option.key]).fullmatch(text)
    if match is None:
        return None
    # The local part of a version, such as +cu118, names a build that other machines lack.
    return match[1] if option.package else _NORMAL.get(option.key, str)(text)


def _number(option: Option, text: str) -> int | None:
    """A number within its bounds; only a time limit has a unit."""
    match = _NUMBER.fullmatch(text)
    if match is None or (match[2] and option.key != "timeout"):
        return None
    number = int(match[1]) * (60 if match[2] == "m" else 1)
    return number if option.low <= number <= option.high else None
