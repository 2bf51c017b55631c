"""A pasted program made to parse again, every change written down; what was not program is set aside."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace

from bot.models.bug import Mend
from bot.rules.intake import installs, prompts, repairs
from bot.rules.intake.python import LONGEST, Evidence, attempt, evidence, looks_like, tree_of
from bot.rules.intake.text import plain_typography

_TYPOGRAPHIC = re.compile(
    "[\u2018\u2019\u201a\u201c\u201d\u201e\u00a0\u202f\u2007\u3000\u2013\u2212\u2026\uff08\uff09\uff0c\uff1a]"
)
_PYTEST = re.compile(r"^E {3,}\S", re.M)
_NUMBERED = re.compile(r"^\s{0,6}(\d{1,4})(?:[:|.)]|\s|$)\s?(.*)$")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text after mending. `shown` are outputs found in it with their line in the block (0-based)."""

    text: str
    mends: tuple[Mend, ...] = ()
    shown: tuple[tuple[int, str], ...] = ()
    installs: tuple[str, ...] = ()
    evidence: Evidence = "none"
    parses: bool = False
    transcript: bool = False


def clean(raw: str, patience: int = 30) -> Cleaned:
    """Mend what is plainly damage from pasting. A text that is no program comes back without evidence."""
    if _PYTEST.search(raw):
        return Cleaned(raw)
    if not raw.strip() or len(raw) > LONGEST or not (looks_like(raw) or "In [" in raw or "In[" in raw):
        return Cleaned(raw)
    session = prompts.read(raw)
    state = Cleaned(raw)
    if session:
        state = Cleaned(session.code, session.mends, session.shown, transcript=True)
    state = _take_commands(state)
    state = _dedent(state)
    for step in (_typography, _line_numbers, _tabs):
        if tree_of(state.text) is not None:
            break
        state = step(state)
    if tree_of(state.text) is None:
        state = _repair(state, patience)
    tree = tree_of(state.text)
    if tree is None:
        return replace(state, parses=False)
    text, shown = repairs.echoes(state.text, tree)
    if shown:
        note = Mend(what="commented out pasted output", why="values stand between the lines of code")
        state = replace(state, text=text, shown=(*state.shown, *shown), mends=(*state.mends, note))
        tree = tree_of(text) or tree
    return replace(state, evidence=evidence(tree), parses=True)


def _take_commands(state: Cleaned) -> Cleaned:
    if not re.search(r"^\s*[!%$]|\b(?:pip|conda|apt)\b", state.text, re.M):
        return state
    lines = state.text.split("\n")
    wanted: list[str] = []
    taken: list[str] = []
    for i, line in enumerate(lines):
        named = installs.requirements_of(line)
        if named is None and not (installs.is_magic(line) and not _continues(lines, i)):
            continue
        wanted.extend(named or ())
        taken.append(line.strip())
        lines[i] = f"{line[: len(line) - len(line.lstrip())]}# {line.strip()}"
    if not taken:
        return state
    mend = Mend(what="commented out " + "; ".join(taken[:3])[:200], why="a command for the notebook or the shell, not Python")
    return replace(state, text="\n".join(lines), mends=(*state.mends, mend), installs=tuple(dict.fromkeys(wanted)))


def _continues(lines: list[str], at: int) -> bool:
    """Whether a line that begins with % goes on with the expression before it."""
    return lines[at].lstrip().startswith("%") and at > 0 and lines[at - 1].rstrip().endswith(("(", ",", "\\"))


def _dedent(state: Cleaned) -> Cleaned:
    text = textwrap.dedent(state.text.expandtabs(4) if _mixed(state.text) and tree_of(state.text) is None else state.text)
    text = text.rstrip()
    if [line.rstrip() for line in text.split("\n")] == [line.rstrip() for line in state.text.rstrip().split("\n")]:
        return replace(state, text=text)
    return replace(
        state, text=text, mends=(*state.mends, Mend(what="shifted to the left margin", why="the whole block was indented"))
    )


def _mixed(text: str) -> bool:
    return "\t" in text


def _typography(state: Cleaned) -> Cleaned:
    if not _TYPOGRAPHIC.search(state.text):
        return state
    text = plain_typography(state.text)
    return replace(
        state,
        text=text,
        mends=(*state.mends, Mend(what="typewriter quotes and spaces", why="typographic characters are not Python")),
    )


def _line_numbers(state: Cleaned) -> Cleaned:
    rows = [(line, _NUMBERED.match(line)) for line in state.text.split("\n")]
    numbers = [int(match[1]) for line, match in rows if match and line.strip()]
    filled = sum(bool(line.strip()) for line, _ in rows)
    if len(numbers) < 3 or len(numbers) != filled or numbers != sorted(set(numbers)):
        return state
    bodies = [match[2] if match else "" for _, match in rows]
    text = textwrap.dedent("\n".join(bodies)).strip("\n")
    return replace(
        state, text=text, mends=(*state.mends, Mend(what="took line numbers off", why="each line began with its number"))
    )


def _tabs(state: Cleaned) -> Cleaned:
    text = state.text.expandtabs(4)
    if "\t" not in state.text or tree_of(text) is None:
        return state
    return replace(state, text=text, mends=(*state.mends, Mend(what="tabs to spaces", why="tabs and spaces were mixed")))


def _repair(state: Cleaned, patience: int) -> Cleaned:
    """Follow the parser's complaints, one small repair at a time."""
    current, seen = state, {state.text}
    for _ in range(patience):
        error = attempt(current.text)
        if not isinstance(error, SyntaxError):
            return current if error is not None and _mostly_code(current.text, state.text) else state
        fix = repairs.next_repair(current.text, error)
        if fix is None or fix.text in seen:
            return state
        seen.add(fix.text)
        current = _merge(current, fix)
    return state


def _mostly_code(after: str, before: str) -> bool:
    """Whether more was kept than commented out: a text of which sentences are the larger part is no program."""
    said = {line.strip() for line in before.split("\n")}
    lines = [line.strip() for line in after.split("\n") if line.strip()]
    silenced = sum(line.startswith("#") and line not in said for line in lines)
    return 2 * silenced <= len(lines)


def _merge(state: Cleaned, fix: repairs.Repair) -> Cleaned:
    mends = state.mends if fix.mend in state.mends else (*state.mends, fix.mend)
    return replace(state, text=fix.text, mends=mends, shown=(*state.shown, *fix.shown))
