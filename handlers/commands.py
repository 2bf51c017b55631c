"""A comment → its commands, lines of the author's own that begin with `/reproduce`, and
their options.
"""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from markdown_it.token import Token

from bot.kernel.markdown import block_tokens
from bot.kernel.run import Choices, Command
from bot.report.verbs import (
    HABITS,
    OPTIONS,
    PREFIX,
    VERBS,
    WORDS,
    Option,
    Word,
    option_for,
)

# Which lines of a comment are its author's own words: no code, no quotation, no fold, nothing
# that GitHub hides.

_LINE_END = re.compile(r"\r\n?|\n")
_FOLD = re.compile(r"<(/?)(?:details|blockquote|pre)\b", re.IGNORECASE)
_MARK = re.compile(r"\\.|`+|<!--", re.DOTALL)


CODE = "\ufffc"
"""Marks each line of inline code, which is never the first word of a command."""

MOST_LINES = 4_000
"""Further lines are ignored: each line of hostile nesting costs up to 40 microseconds."""


def own_lines(body: str) -> Iterator[str]:
    """The lines of the top-level paragraphs, in order. Inline code is marked with CODE, HTML
    comments are removed.

    Linear in the length of `body`, whatever it contains.
    """
    folds = 0
    tokens = block_tokens("\n".join(_LINE_END.split(body, MOST_LINES)[:MOST_LINES]))
    for at, token in enumerate(tokens):
        if token.type == "html_block":
            folds = _folds(token.content, folds)
        elif token.type == "inline" and token.content and not folds and _stands_alone(tokens, at):
            text = _visible_text(token.content)
            yield from text.split("\n")
            folds = _folds(text, folds)


def _folds(html: str, folds: int) -> int:
    """How many folds or quotations written as HTML are open after this piece."""
    for match in _FOLD.finditer(html):
        folds = max(0, folds - 1) if match.group(1) else folds + 1
    return folds


def _stands_alone(tokens: list[Token], at: int) -> bool:
    """A paragraph outside lists and quotations. A line over "---" is a heading to Markdown and a
    signature to its author.
    """
    opening = tokens[at - 1]
    return opening.level == 0 and (opening.type == "paragraph_open" or opening.markup in {"-", "="})


def _visible_text(text: str) -> str:
    """A paragraph with its inline code marked and without its HTML comments."""
    closers = _positions(text)
    parts, end = list[str](), 0
    while (match := _MARK.search(text, end)) is not None:
        mark, start = match.group(), match.start()
        close = _close(mark, match.end(), closers)
        parts.append(text[end:start])
        if mark[0] == "\\" or close < 0:
            parts.append(mark)
            end = match.end()
        else:
            if mark[0] == "`":
                code = text[match.end() : close - len(mark)]
                parts.append(CODE + code.replace("\n", "\n" + CODE))
            end = close
    return "".join([*parts, text[end:]])


def _positions(text: str) -> dict[str, list[int]]:
    """The positions of each run of backticks and each end of an HTML comment, last first."""
    places: dict[str, list[int]] = {}
    for match in re.finditer(r"`+|-->", text):
        places.setdefault(match.group(), []).append(match.start())
    for positions in places.values():
        positions.reverse()
    return places


def _close(mark: str, after: int, closers: dict[str, list[int]]) -> int:
    """Behind the end of the code or comment that a mark opens, -1 when nothing closes it."""
    closer = "-->" if mark == "<!--" else mark
    waiting = closers.get(closer, [])
    while waiting and waiting[-1] < after:
        waiting.pop()
    return waiting[-1] + len(closer) if waiting else -1


# A comment → its commands, lines of the author's own that begin with `/reproduce`, and their
# options: each mistake is answered with a sentence and the closest valid word.

MOST_COMMANDS = 5
_MOST_TEXT = 500
_MOST_WORDS = 16
_MOST_PROBLEMS = 4

# Most comments hold no command; this one pass is all that they cost.
_HINT = re.compile(rf"^ {{0,3}}{PREFIX}(?=\s|$)", re.IGNORECASE | re.MULTILINE)
_HASH = re.compile(r"[0-9a-f]{32,64}", re.ASCII)
_OPTION = re.compile(rf"(?:{'|'.join(sorted({option.key for option in OPTIONS}))})=", re.IGNORECASE)
_LONGEST_WORD = 40


def parse(body: str) -> tuple[Command, ...]:
    """The commands of a comment in order: at most five, and then one that says that there were
    more.
    """
    return _commands(_lines(body))


def added_commands(before: str, after: str) -> tuple[Command, ...]:
    """The commands of an edited comment that its earlier text did not have."""
    lines = _lines(after)
    lines_before = set(_lines(before)) if lines else set()
    return _commands(line for line in lines if line not in lines_before)


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
    text, words = line[:_MOST_TEXT], _joined(line.split()[1:])
    if len(line) > _MOST_TEXT or len(words) > _MOST_WORDS:
        limits = f"{_MOST_WORDS} words, {_MOST_TEXT} characters"
        problem = f"This line is too long for a command (at most {limits})."
        return Command(text=text, verb="", problems=(problem,))
    has_verb = bool(words) and "=" not in words[0]
    word = WORDS.get(words[0].lower()) if has_verb else WORDS["reproduce"]
    if word is None:
        return Command(text=text, verb="", problems=(_unknown(words[0]),))
    return _parse_options(text, word, words[1:] if has_verb else words)


def _joined(words: list[str]) -> list[str]:
    """The words, with all that follows `command=` as one, and with `claim=` all before the next
    option.
    """
    at = next((at for at, one in enumerate(words) if one.lower().startswith("command=")), None)
    if at is not None:
        return [*_joined(words[:at]), " ".join(words[at:])]
    at = next((at for at, one in enumerate(words) if one.lower().startswith("claim=")), None)
    if at is None:
        return words
    after = range(at + 1, len(words))
    end = next((other for other in after if _OPTION.match(words[other])), len(words))
    return [*words[:at], " ".join(words[at:end]), *words[end:]]


def _parse_options(text: str, word: Word, rest: list[str]) -> Command:
    if word.verb == "approve":
        return _approval(text, rest)
    choices, problems = (
        parse_choices(rest, word) if word.options else (Choices(), _needless(word, rest))
    )
    return Command(
        text=text, verb=word.verb, choices=choices, problems=tuple(problems[:_MOST_PROBLEMS])
    )


def _needless(word: Word, rest: list[str]) -> list[str]:
    """A sentence for each option. "/reproduce cancel please" is clear enough; an option would be
    lost, so it is answered.
    """
    options = (part for part in rest if "=" in part)
    return [
        f"`{PREFIX} {word.verb}` takes no options, such as {quote_word(part)}." for part in options
    ]


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
    near = closest(word, (verb.verb for verb in VERBS if verb.verb != "reproduce"))
    if near:
        return f"{quote_word(word)} is not a command; the closest one is `{PREFIX} {near}`."
    return parse_choices([word], WORDS["reproduce"])[1][0]


def quote_word(word: str) -> str:
    """A word of a stranger, as a sentence of ours quotes it: short, and unable to end the
    quotation.
    """
    word = word.replace("`", "'")
    return "`" + (word if len(word) <= _LONGEST_WORD else word[: _LONGEST_WORD - 1] + "…") + "`"


def closest(word: str, candidates: Iterable[str]) -> str:
    """The known word that someone may have meant, "" when none is near."""
    names = list(candidates)
    habit = HABITS.get(word.lower())
    if habit in names:
        return habit
    return next(iter(get_close_matches(word.lower()[:_LONGEST_WORD], names, n=1, cutoff=0.6)), "")


def parse_choices(words: Iterable[str], of: Word) -> tuple[Choices, list[str]]:
    """The choices that the words after a verb make, and a sentence for each that is not
    understood.
    """
    values: dict[str, Any] = {}
    pins: list[str] = []
    problems: list[str] = []
    keys: set[str] = set()
    for word in words:
        key, _, value = word.partition("=")
        option = option_for(key.lower(), of)
        problem = _unusable(word, key, option, of) or (
            f"`{key.lower()}=` is given twice." if key.lower() in keys else ""
        )
        keys.add(key.lower())
        if option is None or problem:
            problems.append(problem)
            continue
        parsed_value = option.read(value.removeprefix("="))  # torch==2.1.0 is how pip has it
        if parsed_value is None:
            problems.append(
                f"{quote_word(word)} is not understood: `{option.key}=` takes {option.values}."
            )
        elif option.package:
            pins.append(f"{option.package}=={parsed_value}")
        else:
            values[option.field or option.key] = parsed_value
    return Choices(pins=tuple(pins), **values), problems


def _unusable(word: str, key: str, option: Option | None, of: Word) -> str:
    """Why a word is no option of this command, "" when it is one."""
    if option is None:
        usual = (choice.key for choice in OPTIONS if choice.only in {"", of.verb})
        near = closest(key, usual)
        kind = "is not an option" if "=" in word else "is neither a command nor an option"
        hint = f"; the closest one is `{near}=`." if near else "."
        return f"{quote_word(key if '=' in word else word)} {kind}{hint}"
    if option.only not in {"", of.verb}:
        return f"`{option.key}=` works only with `{PREFIX} {option.only}`."
    return (
        "" if "=" in word else f"{quote_word(word)} needs a value: write it as `{option.example}`."
    )
