"""The failure that a smaller program must still show: the confirmed one, in every detail that smaller text cannot change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from bot.models.attempt import Failure, Judgement, Script
from bot.models.base import Record
from bot.models.bug import Frame
from bot.rules.reduce import littering
from bot.rules.reduce.edits import parsed, programs
from bot.rules.signatures import genuine, values, wording

_TOKEN = re.compile(r"[A-Za-z_]\w*|[^\w\s]")
_NON_FINITE = re.compile(r"\b(?:nan|inf)(?:inity)?\b", re.IGNORECASE)
_STACK = re.compile(r'File "[^"]*(?:site|dist)-packages/[^"]*", line \d+ in (\S+)')
_TOP = 2
_NEUTRAL = frozenset("()[]{},.=:")


class Reference(Record):
    """What a confirmed run of the unreduced program showed.

    Of an exception: its class, the words and operand shapes of its message, and the innermost frame of a package with the
    line in its file, or, when none is of a package, the words of the program's own statement that failed. Of printed values:
    the line that showed it, without its numbers, and the `literals` that the program prints as they stand: a value that was
    computed must not be written down. `written` are the relative paths of files that the program writes. `member` is that of
    the signature, `rate` the part of the runs that failed.
    """

    member: int = 0
    exception: str = ""
    words: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    path: str = ""
    function: str = ""
    line: int | None = None
    statement: tuple[str, ...] = ()
    evidence: str = ""
    names: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    rate: float = 1.0


def reference(judgement: Judgement, script: Script, rate: float = 1.0, names: tuple[str, ...] = ()) -> Reference:
    """The reference that a confirmed judgement gives; `names` are those that the unreduced program defines."""
    failure, written = judgement.failure, littering.written([tree for _, _, tree in programs(script.files)])
    if failure is None:
        evidence, literals = _evidence(judgement), _literals(script)
        return Reference(member=judgement.member, evidence=evidence, literals=literals, written=written, rate=rate)
    place = _place(failure)
    own = names or tuple(sorted({name for text in script.files.values() for name in genuine.own_names(text)}))
    said = wording.normalise(wording.core(failure.message), frozenset(own))
    return Reference(
        member=judgement.member,
        names=own,
        exception=failure.exception,
        words=tuple(wording.tokens(said)),
        shapes=wording.shapes(failure.message),
        path=place.module_path if place else "",
        function=_bare(place.function) if place else "",
        line=place.line if place else None,
        statement=() if place else _statement(failure, script),
        written=written,
        rate=rate,
    )


def slipped(held: Reference, judgement: Judgement, script: Script) -> str:
    """In what a failure that meets the signature is not the confirmed one, or ""."""
    now = reference(judgement, script, held.rate, held.names)
    if now.member != held.member:
        return "another of the report's failures"
    if now.exception != held.exception:
        return f"{now.exception} in the place of {held.exception}"
    if now.words != held.words:
        return "other words: " + " ".join(now.words)
    if not (_within(now.shapes, held.shapes) and bool(now.shapes) == bool(held.shapes)):
        return f"other shapes: {', '.join(now.shapes)}"
    if (now.path, now.function, now.line) != (held.path, held.function, held.line):
        return f"another place: {now.path or 'the program'} {now.function}"
    if not _within(now.statement, held.statement):
        return "another statement: " + " ".join(now.statement)
    if own := next((each for each in now.literals if not any(each in known for known in held.literals)), ""):
        return f"it prints {own} by itself"
    if now.written and not held.written:
        return f"it writes {now.written[0] or 'a file'} into the working folder"
    return "" if now.evidence == held.evidence else f"another line: {now.evidence}"


def _literals(script: Script) -> tuple[str, ...]:
    """What the program's prints write as it stands in them, outside of calls and subscripts."""
    found: dict[str, None] = {}
    for text in script.files.values():
        tree = parsed(text)
        prints = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
        for call in prints:
            if isinstance(call.func, ast.Name) and call.func.id == "print":
                found |= dict.fromkeys(value for part in call.args for value in _plain(part))
    return tuple(found)


def _plain(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif not isinstance(node, ast.Call | ast.Subscript | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _plain(child)


def _evidence(judgement: Judgement) -> str:
    """The words of the printed line; of numbers only whether they are finite and whole: `4` in the place of `4.` is of another
    type. Of a hang, the library functions it hangs in.
    """
    if frames := _STACK.findall(judgement.evidence):
        return " ".join(frames[:_TOP])
    shown = _NON_FINITE.sub(lambda found: f"<{found[0].lower()}>", wording.normalise(judgement.evidence))
    return values.written(values.clean(shown)) if judgement.evidence else ""


def _place(failure: Failure) -> Frame | None:
    """The innermost frame of a package."""
    own = {"", "<stdlib>"}
    return next((frame for frame in reversed(failure.frames) if frame.package not in own), None)


def _bare(function: str) -> str:
    return function.rsplit(".", 1)[-1]


def _statement(failure: Failure, script: Script) -> tuple[str, ...]:
    """The words of the statement of the program that failed; names that only hold its value do not count."""
    frame = failure.script_frame
    if frame is None or frame.line is None:
        return ()
    text = next((text for path, text in script.files.items() if frame.path.endswith(path)), "")
    tree = parsed(text)
    around = [node for node in ast.walk(tree) if _covers(node, frame.line)] if tree is not None else []
    if not around:
        return ()
    inner = min(around, key=lambda node: (getattr(node, "end_lineno", 0) or 0) - getattr(node, "lineno", 0))
    return tuple(word for word in _TOKEN.findall(_head(inner)) if word not in _NEUTRAL)


def _covers(node: ast.AST, line: int) -> bool:
    return isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)


def _head(node: ast.AST) -> str:
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr) and node.value is not None:
        return ast.unparse(node.value)
    parts = [getattr(node, name, None) for name in ("test", "iter")]
    return " ".join(ast.unparse(part) for part in parts if isinstance(part, ast.AST)) or ast.unparse(node).splitlines()[0]


def _within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether the parts stand in the whole, in order."""
    rest = iter(whole)
    return all(each in rest for each in part)
