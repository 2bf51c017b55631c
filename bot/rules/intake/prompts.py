"""Transcripts of interactive sessions: doctest prompts and notebook cells taken apart into code and what was shown."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from bot.models.bug import Mend
from bot.rules.intake.python import evidence, tree_of

_DOCTEST = re.compile(r"^\s*>>> ?(?P<code>.*)$")
_MORE = re.compile(r"^\s*\.\.\.(?: (?P<code>.*))?$")
_IN = re.compile(r"^\s*In ?\[[\d ]*\]: ?(?P<code>.*)$")
_CONTINUED = re.compile(r"^\s*\.{3,}: ?(?P<code>.*)$")
_OUT = re.compile(r"^\s*Out ?\[[\d ]*\]: ?(?P<code>.*)$")
_BANNER = re.compile(r"^(?:Python \d\.\d+.*|\[GCC .*|\[Clang .*|Type \"help\".*|IPython \d.*|Type '.*|\$? ?i?python[\d.]*)\s*$")


@dataclass(slots=True)
class Chunk:
    """One entry at the prompt and what followed it."""

    code: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    echoed: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session as a program; `shown` pairs each output with its line in the block."""

    code: str
    shown: tuple[tuple[int, str], ...]
    mends: tuple[Mend, ...]


def read(text: str) -> Transcript | None:
    """The session in a text, or None when it is none."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip() and not _BANNER.match(line.strip())), "")
    if any(_IN.match(line) for line in lines):
        return _assemble(_chunks(lines, _IN, _CONTINUED))
    if not any(_DOCTEST.match(line) for line in lines):
        return None
    if not _DOCTEST.match(first):
        return _marked(lines)
    return _assemble(_chunks(lines, _DOCTEST, _MORE))


def _chunks(lines: list[str], start: re.Pattern[str], more: re.Pattern[str]) -> list[Chunk]:
    chunks: list[Chunk] = []
    entering = False
    for number, line in enumerate(lines):
        begin, further, out = start.match(line), more.match(line), _OUT.match(line)
        if begin:
            chunks.append(Chunk([begin["code"]], line=number))
            entering = True
        elif not chunks:
            continue
        elif further and entering:
            chunks[-1].code.append(further["code"] or "")
        elif out:
            chunks[-1].echoed = True
            chunks[-1].shown.append(out["code"])
            entering = False
        elif entering and _unfinished(chunks[-1].code) and line.strip():
            chunks[-1].code.append(line)
        else:
            entering = entering and not line.strip()
            chunks[-1].shown.append(line)
    return chunks


def _unfinished(code: list[str]) -> bool:
    """Whether the entry so far still needs lines (pasted without their continuation prompts)."""
    return len(code) < 200 and (
        code[-1].rstrip().endswith((":", "(", "[", "{", ",", "\\")) and tree_of("\n".join(code)) is None
    )


def _assemble(chunks: list[Chunk]) -> Transcript:
    code: list[str] = []
    shown: list[tuple[int, str]] = []
    wrapped = 0
    for chunk in chunks:
        text = "\n".join(chunk.code).rstrip()
        output = "\n".join(chunk.shown).strip("\n")
        if output.strip():
            shown.append((chunk.line + len(chunk.code), output.rstrip()))
        if output.strip() and "Traceback (most recent" not in output:
            printed = _printing(text)
            wrapped += printed != text
            text = printed
        code.append(text)
    mends = [Mend(what="took the prompts off", why="the block is a transcript of an interactive session")]
    if wrapped:
        mends.append(
            Mend(
                what=f"printed the value of {wrapped} expression{'s' if wrapped > 1 else ''}",
                why="a prompt shows the value of an expression, a program does not",
            )
        )
    return Transcript("\n".join(code).strip("\n"), tuple(shown), tuple(mends))


def _printing(text: str) -> str:
    """The entry with its last expression printed, as the prompt would have done."""
    tree = tree_of(text)
    last = tree.body[-1] if tree and tree.body else None
    if not isinstance(last, ast.Expr) or last.end_lineno != text.count("\n") + 1:
        return text
    call = last.value
    if (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in {"print", "pprint", "help", "exit", "display"}
    ):
        return text
    expression = ast.get_source_segment(text, last.value)
    if expression is None or len(tree.body if tree else []) != 1:
        return text
    return f"print(repr({expression}))"


def _marked(lines: list[str]) -> Transcript | None:
    """A program whose author set `>>>` before what it printed, or a session whose first lines have no prompt."""
    marks = [(i, match["code"]) for i, line in enumerate(lines) if (match := _DOCTEST.match(line))]
    entered = any((tree := tree_of(code)) and evidence(tree) != "none" for _, code in marks)
    if entered:
        before = "\n".join(lines[: marks[0][0]])
        tree = tree_of(before)
        session = _assemble(_chunks(lines, _DOCTEST, _MORE))
        if tree is None or evidence(tree) == "none":
            return session
        return Transcript(before + "\n" + session.code, session.shown, session.mends)
    code = "\n".join("# " + line.strip() if _DOCTEST.match(line) else line for line in lines)
    tree = tree_of(code)
    if tree is None or evidence(tree) != "strong":
        return None
    shown = tuple((i, text) for i, text in marks if text.strip())
    return Transcript(code, shown, (Mend(what="commented out lines marked >>>", why="they show output, not code"),))
