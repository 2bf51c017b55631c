"""The failure that a smaller program must still show: the confirmed one, in every detail that
smaller text cannot change.
"""

import ast
import re
from collections.abc import Iterator

from bot.issues.reduce.edits import parsed_files
from bot.issues.signature import staged, values, wording
from bot.kernel.attempt import Failure, Judgement, Script
from bot.kernel.bug import Frame
from bot.kernel.source.syntax import nodes, tree_of
from bot.kernel.values import Record

_TOKEN = re.compile(r"[A-Za-z_]\w*|[^\w\s]")
_NON_FINITE = re.compile(r"\b(?:nan|inf)(?:inity)?\b", re.IGNORECASE)
_STACK = re.compile(r'File "[^"]*(?:site|dist)-packages/[^"]*", line \d+ in (\S+)')
_TOP = 2
_NEUTRAL = frozenset("()[]{},.=:")


class FailureIdentity(Record):
    """What a confirmed run of the unreduced program showed.

    Of an exception: its class, the words and operand shapes of its message, and the innermost frame
    of a package with the line in its file, or, when none is of a package, the words of the
    program's own statement that failed. Of printed values: the line that showed it, without its
    numbers, and the `literals` that the program prints as they stand: a value that was computed
    must not be written down. `names` are those that the program defines, `member` is that of the
    signature, `rate` the part of the runs that failed.
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
    rate: float = 1.0


def identity(
    judgement: Judgement, script: Script, rate: float = 1.0, names: tuple[str, ...] = ()
) -> FailureIdentity:
    """The identity of the failure in a confirmed judgement; `names` are those that the unreduced
    program defines, where the script is a smaller one.
    """
    member, failure = judgement.member, judgement.failure
    if failure is None:
        literals = tuple(dict.fromkeys(_literals(script)))
        evidence = _evidence(judgement)
        return FailureIdentity(member=member, evidence=evidence, literals=literals, rate=rate)
    place = _place(failure)
    defined = {name for text in script.files.values() for name in staged.own_names(text)}
    own = names or tuple(sorted(defined))
    message = wording.normalise(wording.core(failure.message), frozenset(own))
    return FailureIdentity(
        member=member,
        names=own,
        exception=failure.exception,
        words=tuple(wording.tokens(message)),
        shapes=wording.shapes(failure.message),
        path=place.module_path if place else "",
        function=place.function.rsplit(".", 1)[-1] if place else "",
        line=place.line if place else None,
        statement=() if place else _statement(failure, script),
        rate=rate,
    )


def difference(identity_before: FailureIdentity, judgement: Judgement, script: Script) -> str:
    """In what a failure that matches the signature is not the confirmed one, or ""."""
    now = identity(judgement, script, identity_before.rate, identity_before.names)
    known_place, place = ((one.path, one.function, one.line) for one in (identity_before, now))
    texts = (
        text for text in now.literals if not any(text in one for one in identity_before.literals)
    )
    shapes = _within(now.shapes, identity_before.shapes) and bool(now.shapes) == bool(
        identity_before.shapes
    )
    printed_text = next(texts, "")
    differences = {
        "another failure of the bug report": now.member != identity_before.member,
        f"{now.exception} instead of {identity_before.exception}": now.exception
        != identity_before.exception,
        f"another message: {' '.join(now.words)}": now.words != identity_before.words,
        f"other shapes: {', '.join(now.shapes)}": not shapes,
        f"another location: {now.path or 'the program'} {now.function}": place != known_place,
        f"another statement: {' '.join(now.statement)}": not _within(
            now.statement, identity_before.statement
        ),
        f"it prints {printed_text} by itself": bool(printed_text),
        f"another line: {now.evidence}": now.evidence != identity_before.evidence,
    }
    return next((words for words, differs in differences.items() if differs), "")


def _literals(script: Script) -> Iterator[str]:
    """What the program's prints write literally, outside of calls and subscripts."""
    for file in parsed_files(script.files):
        for call in nodes(file.tree, ast.Call):
            if getattr(call.func, "id", "") == "print":
                yield from (value for part in call.args for value in _plain(part))


def _plain(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif not isinstance(node, ast.Call | ast.Subscript | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _plain(child)


def _evidence(judgement: Judgement) -> str:
    """The words of the printed line; of numbers only whether they are finite and whole: `4` in
    the place of `4.` is of another type. Of a hang, the library functions it hangs in.
    """
    if frames := _STACK.findall(judgement.evidence):
        return " ".join(frames[:_TOP])
    text = _NON_FINITE.sub(
        lambda match: f"<{match[0].lower()}>", wording.normalise(judgement.evidence)
    )
    return values.number_pattern(values.clean(text)) if judgement.evidence else ""


def _place(failure: Failure) -> Frame | None:
    own = {"", "<stdlib>"}
    return next((frame for frame in reversed(failure.frames) if frame.package not in own), None)


def _statement(failure: Failure, script: Script) -> tuple[str, ...]:
    """The words of the statement that failed; names that only hold its value do not count."""
    frame = failure.script_frame
    line = frame.line if frame is not None else None
    if frame is None or line is None:
        return ()
    text = next((text for path, text in script.files.items() if frame.path.endswith(path)), "")
    tree = tree_of(text)
    around = [
        node
        for node in (nodes(tree, ast.stmt) if tree else ())
        if node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not around:
        return ()
    inner = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno)
    return tuple(word for word in _TOKEN.findall(_head(inner)) if word not in _NEUTRAL)


def _head(node: ast.stmt) -> str:
    """What a statement computes by itself: its value, or its condition or data."""
    parts = [getattr(node, name, None) for name in ("value", "test", "iter")]
    head = " ".join(ast.unparse(part) for part in parts if isinstance(part, ast.expr))
    return head or ast.unparse(node).splitlines()[0]


def _within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether the whole contains the parts, in order."""
    rest = iter(whole)
    return all(part_name in rest for part_name in part)
