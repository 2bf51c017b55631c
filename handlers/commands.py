"""A comment → its commands: lines of the author's own that begin with `/reproduce`."""

import re
from collections.abc import Iterable

from bot.models.delivery import Choices, Command
from bot.rules.verbs import PREFIX, VERBS, WORDS, Word
from handlers.markdown import CODE, own_lines
from handlers.options import closest, read, shown

MOST_COMMANDS = 5
_MOST_TEXT = 300
_MOST_WORDS = 16
_MOST_PROBLEMS = 4

# Most comments hold no command; this one pass is all that they cost.
_HINT = re.compile(rf"^ {{0,3}}{PREFIX}(?=\s|$)", re.IGNORECASE | re.MULTILINE)
_HASH = re.compile(r"[0-9a-f]{8,64}", re.ASCII)


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
        f"`{PREFIX} approve` takes the hash of a waiting plan: 8 to 64 digits from 0 to 9 and "
        "a to f."
    )
    return Command(text=text, verb="approve", problems=(problem,))


def _unknown(word: str) -> str:
    near = closest(word, (known.verb for known in VERBS if known.verb != "reproduce"))
    if near:
        return f"{shown(word)} is not a command; the closest one is `{PREFIX} {near}`."
    return read([word], WORDS["reproduce"])[1][0]
